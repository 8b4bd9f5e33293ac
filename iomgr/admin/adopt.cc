#include "iomgr/admin/adopt.h"

#include <algorithm>
#include <map>
#include <set>

#include "iomgr/base/files/open_below.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/base/files/tree.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/volume/home.h"
#include "iomgr/volume/mount_table.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "iomgr/volume/sum/sum_file.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {
namespace {

using FileId = std::array<uint8_t, 16>;

// A stub that names parts of the volume, by the first of its names.
struct Claim {
  TreePlace place;
  Layout layout;
  StubSeen seen;
};

// If the mode forbids opening the file, changes the mode for a moment: the caller owns the file.
Fd open_to_bind(const Fd& place) {
  Fd opened = reopen(place.get(), O_RDWR | O_NONBLOCK);
  struct stat st;
  if (opened || errno != EACCES || ::fstat(place.get(), &st) != 0) return opened;
  if (::chmod(ProcPath(place.get()).c_str(), (st.st_mode & 07777) | S_IRUSR | S_IWUSR) != 0) {
    return opened;
  }
  opened = reopen(place.get(), O_RDWR | O_NONBLOCK);
  (void)::chmod(ProcPath(place.get()).c_str(), st.st_mode & 07777);
  return opened;
}

class Binder {
 public:
  explicit Binder(const Volume& volume) : volume_(volume) {}

  // Finds all stubs of the volume that name its parts.
  Outcome<void> find_claims() {
    const TreePlace top{.directory_fd = volume_.root_fd(), .path = ".", .shown = volume_.root()};
    const Outcome<std::vector<TreeNode>> nodes = list_tree(top);
    if (!nodes) return nodes.error();
    std::set<std::pair<dev_t, ino_t>> seen;
    for (const TreeNode& node : *nodes) {
      if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
      if (!S_ISREG(node.info.st_mode) || node.info.st_size != kStubSize) continue;
      if (is_within(node.path, kControlDirectory)) continue;
      if (!seen.insert({node.info.st_dev, node.info.st_ino}).second) continue;
      auto claim = read_claim(top.at(node.path));
      if (!claim) {
        left(claim.error().text);
      } else if (*claim) {
        claims_[(*claim)->layout.file_id.bytes].push_back(std::move(**claim));
      }
    }
    return {};
  }

  Outcome<void> bind_all() {
    for (const auto& [id, claims] : claims_) {
      if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
      bind_single(claims);
    }
    return {};
  }

  // Binds the files that the caller chose.
  Outcome<void> bind_chosen(const TreePlace& place) {
    auto claim = read_claim(place);
    if (!claim) return claim.error();
    if (!*claim) return make_error(EINVAL, "{}: not a stub", place.shown);
    return bind(**claim, /*is_chosen=*/true);
  }

  BindReport report;

 private:
  void left(std::string line) { report.left.push_back(std::move(line)); }

  // Empty: the file is not a stub.
  Outcome<std::optional<Claim>> read_claim(TreePlace place) const {
    const Fd at = open_place(place, O_PATH | O_NOFOLLOW);
    struct stat st;
    if (!at || ::fstat(at.get(), &st) != 0) return place.error(errno, "cannot open");
    if (!S_ISREG(st.st_mode)) return std::optional<Claim>();
    const Fd stub = open_to_bind(at);
    if (!stub) return place.error(errno, "cannot open");
    Claim claim{.place = std::move(place), .layout = {}, .seen = {}};
    const Result<StubVerdict> verdict = inspect_stub(stub.get(), &claim.layout);
    if (!verdict) return claim.place.error(verdict.error().code, "cannot read");
    if (*verdict == StubVerdict::kNotAStub) return std::optional<Claim>();
    if (*verdict != StubVerdict::kStub) {
      return make_error(EIO, "{}: {}", claim.place.shown, describe(*verdict));
    }
    if (Outcome<void> own = volume_.accept(claim.layout, claim.place.shown); !own) {
      return own.error();
    }
    const Result<StubSeen> seen = identify_stub(stub.get());
    if (!seen) return claim.place.error(seen.error().code, "cannot look at");
    claim.seen = *seen;
    return std::optional<Claim>(std::move(claim));
  }

  Outcome<PartSeen> look_at(const Claim& claim, uint32_t d) const {
    const int root = volume_.devices()[d].root_fd.get();
    const Fd part = open_part(root, claim.layout.file_id);
    const Result<PartSeen> seen =
        part ? look_at_part(part.get(), part_of(root, claim.layout)) : last_errno();
    if (seen) return *seen;
    return os_error(seen.error().code, volume_.part_path(d, claim.layout.file_id),
                    "cannot look at the part");
  }

  // Whether the parts may be this stub's: of the same owner, in their place, and naming no other
  // stub. An error says why not.
  Outcome<void> may_bind(const Claim& claim, bool is_chosen, uint32_t* generation) const {
    const Layout& stub = claim.layout;
    *generation = stub.generation;
    for (uint32_t d = 0; d < volume_.device_count(); ++d) {
      const Outcome<PartSeen> part = look_at(claim, d);
      if (!part) {
        return make_error(part.error().code, "{}: {}", claim.place.shown, part.error().text);
      }
      const auto refuse = [&](Ownership why) {
        return make_error(EIO, "{}: {}: {}", claim.place.shown, volume_.part_path(d, stub.file_id),
                          describe(why));
      };
      if (part->uid != claim.seen.uid) return refuse(Ownership::kOwnerDiffers);
      if (part->verdict == RecordVerdict::kNone) continue;
      if (part->verdict != RecordVerdict::kRecord) {
        return make_error(EIO, "{}: {} {}", claim.place.shown, volume_.part_path(d, stub.file_id),
                          describe(part->verdict));
      }
      const PartRecord& record = part->record;
      if (record.ordinal != d || record.geometry != stub.geometry) {
        return refuse(Ownership::kMisplaced);
      }
      const bool names_it = record.stub == StubIdentity{} || record.stub == claim.seen.identity ||
                            (stub.format == kStubFormat && record.stub == stub.identity);
      if (!names_it && !is_chosen) return refuse(Ownership::kPartOfAnother);
      const auto ahead = static_cast<int32_t>(record.generation - stub.generation);
      if (ahead < 0) return refuse(Ownership::kStale);
      if (ahead > 1 && !is_chosen && stub.format == kStubFormat) {
        return refuse(Ownership::kStubStale);
      }
      if (static_cast<int32_t>(record.generation - *generation) > 0) {
        *generation = record.generation;
      }
    }
    return {};
  }

  // `claims` are the stubs that name the same parts.
  void bind_single(const std::vector<Claim>& claims) {
    std::vector<const Claim*> possible;
    const Claim* owner = nullptr;  // the stub that the parts are bound to
    std::vector<std::string> reasons;
    for (const Claim& claim : claims) {
      const Fd at = open_place(claim.place, O_PATH | O_NOFOLLOW);
      uint32_t generation = 0;
      if (claim.layout.format == kStubFormat &&
          verify_parts(volume_, at.get(), claim.layout, claim.place.shown)) {
        owner = &claim;
      } else if (Outcome<void> may = may_bind(claim, /*is_chosen=*/false, &generation); may) {
        possible.push_back(&claim);
      } else {
        reasons.push_back(may.error().text);
      }
    }
    for (std::string& reason : reasons) left(std::move(reason));
    if (owner != nullptr) report.kept_count += 1;
    if (owner == nullptr && possible.size() == 1) {
      Outcome<void> bound = bind(*possible.front(), /*is_chosen=*/false);
      if (!bound) left(bound.error().text);
      return;
    }
    for (const Claim* claim : possible) {
      left(owner != nullptr
               ? fmt::format("{}: a copy of the stub {}", claim->place.shown, owner->place.shown)
               : fmt::format(
                     "{}: one of {} stubs that name the same parts (graphlane adopt {} if this "
                     "is the right one)",
                     claim->place.shown, possible.size(), claim->place.shown));
    }
  }

  Outcome<std::vector<Fd>> open_parts(const Claim& claim) const {
    std::vector<Fd> parts;
    for (uint32_t d = 0; d < volume_.device_count(); ++d) {
      const Fd place = find_part(volume_.devices()[d].root_fd.get(), claim.layout.file_id);
      struct stat st;
      Fd part;
      if (place && ::fstat(place.get(), &st) == 0 && S_ISREG(st.st_mode) &&
          st.st_uid == claim.seen.uid) {
        part = open_to_bind(place);
      }
      if (!part) {
        return os_error(errno, volume_.part_path(d, claim.layout.file_id), "cannot open the part");
      }
      parts.push_back(std::move(part));
    }
    return parts;
  }

  Outcome<void> bind(const Claim& claim, bool is_chosen) {
    const TreePlace& place = claim.place;
    uint32_t generation = 0;
    if (Outcome<void> may = may_bind(claim, is_chosen, &generation); !may) return may;
    const Fd at = open_place(place, O_PATH | O_NOFOLLOW);
    const Fd stub = open_to_bind(at);
    if (!stub) return place.error(errno, "cannot open");
    if (Result<void> mine = lock_to_change(stub.get(), F_WRLCK); !mine) {
      return place.error(mine.error().code, "is being written");
    }
    Layout layout;
    const Result<StubSeen> seen = identify_stub(stub.get());
    const Result<StubVerdict> verdict = inspect_stub(stub.get(), &layout);
    if (!seen || !verdict || *verdict != StubVerdict::kStub || layout != claim.layout ||
        seen->identity != claim.seen.identity) {
      return place.error(EBUSY, "changed while it was looked at");
    }
    const Outcome<std::vector<Fd>> parts = open_parts(claim);
    if (!parts) return parts.error();
    layout.format = kStubFormat;
    layout.identity = seen->identity;
    layout.generation = generation + 1;
    layout.is_new = false;
    if (Outcome<void> bound = write_records(layout, *parts); !bound) return bound;
    struct stat before;
    const bool is_known = ::fstat(stub.get(), &before) == 0;
    Result<void> said = write_stub(stub.get(), layout);
    if (said && ::fsync(stub.get()) != 0) said = last_errno();
    if (!said) return place.error(said.error().code, "cannot write");
    const timespec times[2] = {before.st_atim, before.st_mtim};
    if (is_known) (void)::futimens(stub.get(), times);
    report.bound_count += 1;
    return {};
  }

  // Has the mode of the part, which may forbid its owner to write.
  static Result<SumFile> open_sums(const PartOf& part, int part_fd, uint32_t ordinal) {
    Result<SumFile> sums = SumFile::open(part, part_fd, ordinal, O_RDWR);
    if (sums || sums.error().code != EACCES) return sums;
    const Fd place = open_part_sum(part, part_fd, O_PATH);
    Fd file = place ? open_to_bind(place) : Fd();
    if (!file) return last_errno();
    return SumFile(std::move(file), part, ordinal);
  }

  // Takes over what the part's present record says of checksums, and gives these the new generation.
  // Lost ones stay lost. 0 or an errno.
  static int keep_checksums(const PartOf& part, int part_fd, PartRecord* record) {
    PartRecord old;
    if (read_part_record(part_fd, part, &old).value_or(RecordVerdict::kNone) !=
        RecordVerdict::kRecord) {
      return 0;
    }
    record->flags =
        old.flags & (PartRecord::kSummed | PartRecord::kBlockSums | PartRecord::kAllocated);
    record->sum = old.sum;
    if ((old.flags & PartRecord::kBlockSums) == 0) return 0;
    Result<SumFile> sums = open_sums(part, part_fd, record->ordinal);
    if (!sums)
      return verdict_of_error(sums.error().code) == SumVerdict::kGood ? sums.error().code : 0;
    SumHeader header;
    const Result<SumVerdict> verdict = sums->read_header(&header);
    if (!verdict) return verdict.error().code;
    const bool is_the_parts = *verdict == SumVerdict::kGood &&
                              (fits_generation(header.generation, old.generation) ||
                               header.generation == record->generation);  // a killed adoption's
    if (!is_the_parts) return 0;
    header.generation = record->generation;
    int error = sums->write_header(&header);
    if (error == 0) error = sums->write_header(&header);  // both slots
    return error == 0 ? sums->sync() : error;
  }

  Outcome<void> write_records(const Layout& layout, const std::vector<Fd>& parts) const {
    std::vector<int> fds;
    for (uint32_t d = 0; d < parts.size(); ++d) {
      PartRecord record{
          .flags = 0,
          .ordinal = d,
          .geometry = layout.geometry,
          .generation = layout.generation,
          .stub = layout.identity,
          .synced_bytes = layout.state == FileState::kClosed ? layout.logical_size : 0};
      const PartOf part = part_of(volume_.devices()[d].root_fd.get(), layout);
      if (const int error = keep_checksums(part, parts[d].get(), &record); error != 0) {
        return os_error(error, volume_.part_path(d, layout.file_id), "cannot keep its checksums");
      }
      if (const int error = write_part_record(parts[d].get(), part, record); error != 0) {
        return os_error(error, volume_.part_path(d, layout.file_id), "cannot say whose it is");
      }
      fds.push_back(parts[d].get());
    }
    if (Result<void> synced = sync_records(volume_, layout, fds); !synced) {
      return os_error(synced.error().code, volume_.root(), "cannot write the parts' records");
    }
    return {};
  }

  const Volume& volume_;
  std::map<FileId, std::vector<Claim>> claims_;
};

// Hides file names from other users, with the mode that create_volume() sets.
void close_part_directories(const Volume& volume) {
  for (const Device& device : volume.devices()) {
    const TreePlace parts{
        .directory_fd = device.root_fd.get(), .path = "parts", .shown = device.root + "/parts"};
    const Outcome<std::vector<TreeNode>> nodes = list_directory(parts);
    if (!nodes) continue;
    for (const TreeNode& node : *nodes) {
      if (!S_ISDIR(node.info.st_mode)) continue;
      const std::string path = parts.at(node.path).path;
      const Fd directory(open_below(device.root_fd.get(), path.c_str(), O_RDONLY | O_DIRECTORY));
      if (directory) (void)::fchmod(directory.get(), 0711);
    }
  }
}

Outcome<BindReport> finish_binding(Binder& binder, const Outcome<void>& done) {
  if (!done) binder.report.stopped = done.error();
  return std::move(binder.report);
}

}  // namespace

Outcome<BindReport> upgrade_volume(const Volume& volume) {
  if (find_volume_mount(volume.root())) {
    return make_error(EBUSY, "{0}: is mounted; first: graphlane umount {0}", volume.root());
  }
  const Outcome<VolumeLock> lock = VolumeLock::take(volume, VolumeLock::kExclusive);
  if (!lock) return lock.error();
  Binder binder(volume);
  if (volume.format() > 1) return finish_binding(binder, {});
  if (Outcome<void> found = binder.find_claims(); !found) return found.error();
  if (Outcome<void> bound = binder.bind_all(); !bound) return finish_binding(binder, bound);
  close_part_directories(volume);
  return finish_binding(binder, take_home(volume));
}

Outcome<BindReport> adopt_volume(const Volume& volume, const std::string& path) {
  if (volume.format() == 1) {
    return make_error(EINVAL, "{0}: a volume of format 1; first: graphlane check --upgrade {0}",
                      volume.root());
  }
  const Outcome<VolumeLock> lock = VolumeLock::take(volume, VolumeLock::kExclusive);
  if (!lock) return lock.error();
  Binder binder(volume);
  if (!path.empty()) {
    if (const auto own = Volume::open(volume.root()); !own) return own.error();
    const Outcome<TreePlace> place = locate_in_volume(volume, path);
    if (!place) return place.error();
    if (Outcome<void> bound = binder.bind_chosen(*place); !bound) return bound.error();
    return finish_binding(binder, {});
  }
  if (Outcome<void> taken = take_home(volume); !taken) return taken.error();
  if (Outcome<void> found = binder.find_claims(); !found) return found.error();
  return finish_binding(binder, binder.bind_all());
}

}  // namespace graphlane
