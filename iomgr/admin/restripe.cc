#include "iomgr/admin/restripe.h"

#include <algorithm>
#include <optional>
#include <set>
#include <thread>

#include "iomgr/admin/bulk_copy.h"
#include "iomgr/admin/orphans.h"
#include "iomgr/admin/write_behind.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/files/tree.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/volume/parts/live_file.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "iomgr/volume/sum/sum_builder.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {
namespace {

using Clock = std::chrono::steady_clock;

// A process that opened the file during the copy may be about to close it.
constexpr auto kSwitchPatience = std::chrono::seconds(2);
constexpr auto kInterval = std::chrono::milliseconds(5);

struct Candidate {
  TreePlace place;
  Layout layout;
};

Error busy(const TreePlace& place, const char* what) {
  return make_error(EBUSY, "{}: {}", place.shown, what);
}

// Restripes one file, which no other process changes meanwhile.
class Job {
 public:
  Job(const Volume& volume, const Candidate& file, uint64_t depth_bytes, Progress* progress)
      : volume_(volume), place_(file.place), progress_(progress), from_(file.layout) {
    to_ = from_;
    to_.file_id = Uuid::random();
    to_.geometry.stripe_depth_bytes = depth_bytes;
  }

  Outcome<RestripedFile> run() {
    if (Outcome<void> taken = take(); !taken) return taken.error();
    Outcome<void> done = make_new_parts();
    if (done) done = switch_parts();
    if (!done) {
      (void)remove_parts(volume_, to_.file_id);
      return done.error();
    }
    if (done = remove_old_parts(); !done) return done.error();
    return RestripedFile{.shown = place_.shown,
                         .bytes = to_.logical_size,
                         .from = from_.geometry,
                         .to = to_.geometry};
  }

 private:
  Outcome<void> take() {
    Fd stub = only_regular(open_place(place_, O_RDWR | kNoWait));
    if (!stub) return place_.error(errno, "cannot change");
    struct stat st;
    if (::fstat(stub.get(), &st) != 0) return place_.error(errno, "cannot change");
    if (::geteuid() != 0 && ::geteuid() != st.st_uid) {
      return place_.error(EPERM, "only its owner, or root, can give it new parts");
    }
    const bool is_mapped = is_stub_locked(stub.get(), StubLock::kMapped, F_WRLCK);
    auto live = LiveFile::open(volume_, from_, std::move(stub), place_.shown);
    if (!live && live.error().code == EBUSY) {
      return busy(place_, is_mapped ? "is shown in a program's memory" : "is being written");
    }
    if (!live) return live.error();
    live_ = std::move(*live);
    if (is_stub_locked(live_->file()->held_stub(), StubLock::kParts, F_WRLCK)) {
      return busy(place_, "is in use");
    }
    if (live_->is_open()) {  // left by a dead writer
      const uint64_t change_count = live_->change_count();
      Result<void> closed = live_->sync(/*data_only=*/true);
      if (closed) closed = live_->close(change_count);
      if (!closed) return place_.error(closed.error().code, "cannot close");
    }
    const Result<StubSeen> seen = identify_stub(live_->stub_fd());
    if (!seen) return place_.error(seen.error().code, "cannot look at");
    to_.state = FileState::kClosed;
    to_.logical_size = live_->size();
    to_.identity = seen->identity;
    to_.is_new = false;
    return {};
  }

  Outcome<void> make_new_parts() {
    // A sparse file stays sparse.
    const bool is_dense = stat_parts(volume_, from_).block_count * 512 >= to_.logical_size;
    if (auto made = create_parts(volume_, to_, place_.shown, is_dense); !made) return made.error();
    auto opened = StripedFile::open_new(volume_, to_, place_.shown);
    if (!opened) return opened.error();
    new_file_ = std::move(*opened);
    Outcome<SumBuilder> sums = SumBuilder::create(volume_, *new_file_);
    if (!sums) return sums.error();
    sums_.emplace(std::move(*sums));
    const StripedFile& old_file = *live_->file();
    WriteBehind write_behind(*new_file_);
    const BulkCopy copy{
        .size_bytes = to_.logical_size,
        .thread_count = 2 * volume_.device_count(),
        .read =
            [&](ByteRange range, char* buffer) {
              return transfer_striped(volume_, old_file, IoOp::kRead, range, buffer);
            },
        .write =
            [&](ByteRange range, const char* buffer) {
              Outcome<void> written = transfer_striped(volume_, *new_file_, IoOp::kWrite, range,
                                                       const_cast<char*>(buffer));
              write_behind.noticed(range);
              return written ? sums_->add(range, buffer) : written;
            },
        .next_data =
            [&](uint64_t offset) {
              const Result<uint64_t> data = old_file.seek(offset, SEEK_DATA);
              if (data) return *data;
              return data.error().code == ENXIO ? to_.logical_size : offset;
            },
        .progress = progress_};
    Outcome<void> copied = graphlane::run(copy);
    return copied ? sums_->finish() : copied;
  }

  // Until here the file is unchanged.
  Outcome<void> switch_parts() {
    // The parts are marked `making` until they are whole and durable. After a kill the stub names
    // either these or the old ones, and a repair removes the others.
    Outcome<void> bound = bind_parts(volume_, new_file_->parts().all_buffered(), to_,
                                     live_->stub_fd(), PartRecord::kMaking, place_.shown,
                                     [&](PartRecord& record) { sums_->note_in(record); });
    if (!bound) return bound;
    UnsyncedParts unsynced(volume_);
    if (Outcome<void> added = unsynced.add(*new_file_); !added) return added;
    if (Outcome<void> synced = unsynced.sync(); !synced) return synced;
    const auto deadline = Clock::now() + kSwitchPatience;
    for (;;) {
      if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
      const Result<void> moved = live_->move_to(*new_file_);
      if (moved) return {};
      if (moved.error().code != EBUSY) return place_.error(moved.error().code, "cannot change");
      if (Clock::now() >= deadline) return busy(place_, "is in use");
      std::this_thread::sleep_for(kInterval);
    }
  }

  // Must follow the sync of the stub: until then either parts may be the file.
  Outcome<void> remove_old_parts() const {
    struct stat st;
    if (::fsync(live_->stub_fd()) != 0 || ::fstat(live_->stub_fd(), &st) != 0) {
      return place_.error(errno, "has new parts, but the stub cannot be synced");
    }
    // A process that removed the last name has looked at the stub after that. It may have removed
    // either parts.
    if (st.st_nlink == 0) (void)remove_parts(volume_, to_.file_id);
    const Outcome<void> removed = remove_parts(volume_, from_.file_id);
    if (removed) return {};
    return make_error(removed.error().code, "{}: has new parts, but the old ones stay: {}",
                      place_.shown, removed.error().text);
  }

  const Volume& volume_;
  const TreePlace& place_;
  Progress* const progress_;
  Layout from_, to_;
  std::shared_ptr<LiveFile> live_;
  std::shared_ptr<StripedFile> new_file_;
  std::optional<SumBuilder> sums_;  // for new_file_
};

class Restripe {
 public:
  Restripe(const Volume& volume, const RestripeOptions& options)
      : volume_(volume),
        depth_bytes_(options.stripe_depth_bytes != 0 ? options.stripe_depth_bytes
                                                     : volume.stripe_depth_bytes()),
        patience_(options.patience) {}

  Outcome<std::vector<Candidate>> find(const std::string& path) {
    const Outcome<TreePlace> top = locate_in_volume(volume_, path);
    if (!top) return top.error();
    std::vector<Candidate> found;
    std::set<std::pair<dev_t, ino_t>> seen;  // so that a file with several names counts once
    const TreeVisitor visitor{
        .enter = [&](const TreeEntry& entry) -> Outcome<void> {
          const struct stat& info = entry.info;
          if (!S_ISREG(info.st_mode) || info.st_size != kStubSize) return {};
          if (!seen.insert({info.st_dev, info.st_ino}).second) return {};
          if (auto file = examine(entry)) found.push_back(std::move(*file));
          return {};
        },
        .closed = [&](const TreeEntry& entry, const Error& error) -> Outcome<void> {
          if (entry.path.empty()) return error;
          report_.left.push_back(error);
          return {};
        },
        .wants =
            [&](const TreeEntry& entry) {
              return top->path != "." ||
                     (entry.path != kControlDirectory && entry.path != kLostAndFound);
            }};
    if (Outcome<void> walked = walk_tree(*top, visitor); !walked) return walked.error();
    return found;
  }

  void only_tell(const std::vector<Candidate>& files) {
    for (const Candidate& file : files) {
      RestripedFile told{.shown = file.place.shown,
                         .bytes = current_layout(volume_, file.layout).logical_size,
                         .from = file.layout.geometry,
                         .to = file.layout.geometry};
      told.to.stripe_depth_bytes = depth_bytes_;
      report_.changed.push_back(std::move(told));
    }
  }

  Outcome<void> change(std::vector<Candidate> files) {
    uint64_t total = 0;
    for (const Candidate& file : files) total += current_layout(volume_, file.layout).logical_size;
    Progress progress("restripe", total);
    std::optional<Clock::time_point> deadline;  // counted from the end of the first round
    while (!files.empty()) {
      std::vector<Candidate> busy_files;
      std::vector<Error> reasons;
      for (Candidate& file : files) {
        if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
        Outcome<RestripedFile> done = Job(volume_, file, depth_bytes_, &progress).run();
        if (done) {
          report_.changed.push_back(std::move(*done));
        } else if (Outcome<void> go_on = check_interrupt(); !go_on) {
          return go_on;
        } else if (done.error().code == EBUSY) {
          busy_files.push_back(std::move(file));
          reasons.push_back(done.error());
        } else {
          report_.left.push_back(done.error());
        }
      }
      if (!deadline) deadline = Clock::now() + patience_;
      files = std::move(busy_files);
      if (Clock::now() >= *deadline) {
        report_.left.insert(report_.left.end(), reasons.begin(), reasons.end());
        break;
      }
      if (!files.empty()) std::this_thread::sleep_for(kInterval * 20);
    }
    return check_interrupt();
  }

  RestripeReport& report() { return report_; }

 private:
  std::optional<Candidate> examine(const TreeEntry& entry) {
    TreePlace place = entry.place();
    const Fd fd = open_regular(entry.parent_fd, entry.name, O_RDONLY);
    Layout layout;
    const Result<StubVerdict> verdict =
        fd ? inspect_stub(fd.get(), &layout) : Result<StubVerdict>(last_errno());
    if (verdict && *verdict == StubVerdict::kNotAStub) return std::nullopt;
    if (!verdict) {
      report_.left.push_back(place.error(verdict.error().code, "cannot read"));
    } else if (*verdict != StubVerdict::kStub) {
      report_.left.push_back(make_error(EIO, "{}: {}", place.shown, describe(*verdict)));
    } else if (Outcome<void> accepted = volume_.accept(layout, place.shown); !accepted) {
      report_.left.push_back(accepted.error());
    } else if (layout.geometry.stripe_depth_bytes == depth_bytes_) {
      report_.kept_count += 1;
    } else if (Outcome<void> own = verify_parts(volume_, fd.get(), layout, place.shown); !own) {
      report_.left.push_back(own.error());
    } else {
      return Candidate{.place = std::move(place), .layout = layout};
    }
    return std::nullopt;
  }

  const Volume& volume_;
  const uint64_t depth_bytes_;
  const std::chrono::seconds patience_;
  RestripeReport report_;
};

}  // namespace

Outcome<RestripeReport> restripe_files(const Volume& volume, const RestripeOptions& options) {
  const uint64_t depth = options.stripe_depth_bytes;
  if (depth != 0) {
    if (Outcome<void> valid = check_stripe_depth(depth); !valid) return valid.error();
  }
  if (depth == 0 && volume.is_depth_auto()) {
    return make_error(EINVAL,
                      "{}: imports choose the stripe depth of each file there (auto): say with "
                      "--stripe-depth which one all are to get",
                      volume.root());
  }
  if (Outcome<void> writable = require_writable(volume); !writable) return writable.error();
  reads_are_verified = true;   // or the new parts would get valid checksums of damaged data
  tell_sum_failure = nullptr;  // errors name the place
  const Outcome<VolumeLock> lock = VolumeLock::take(volume, VolumeLock::kShared);
  if (!lock) return lock.error();
  Restripe work(volume, options);
  Outcome<std::vector<Candidate>> files = work.find(options.path);
  if (!files) return files.error();
  if (options.dry_run) {
    work.only_tell(*files);
    return std::move(work.report());
  }
  if (options.path.empty() && depth != 0) {
    if (Outcome<void> set = set_stripe_depth(volume, depth); !set) return set.error();
  }
  if (Outcome<void> done = work.change(std::move(*files)); !done) {
    work.report().stopped = done.error();
  }
  return std::move(work.report());
}

}  // namespace graphlane
