// export_files and remove_files: see transfer.h.
#include "iomgr/admin/bulk_copy.h"
#include "iomgr/admin/orphans.h"
#include "iomgr/admin/salvage.h"
#include "iomgr/admin/transfer_common.h"
#include "iomgr/base/files/file_attributes.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/locked_name.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/volume/parts/live_file.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {
namespace fs = std::filesystem;
namespace {

// A directory in the target, if that is a directory, or beside it, so that the copies can be
// renamed. The destructor removes it. The next export removes the one of a killed export.
class ExportStage {
 public:
  static Outcome<ExportStage> create(const fs::path& target) {
    std::error_code ignored;
    const fs::path place = fs::is_directory(target, ignored) ? target : target.parent_path();
    remove_unlocked(place, kPrefix);
    for (;;) {
      const std::string id(UuidText(Uuid::random()).view().substr(0, 8));
      const fs::path own = place / (kPrefix + id);
      if (::mkdir(own.c_str(), 0700) != 0) return os_error(errno, target.string(), "cannot create");
      ExportStage stage(own);
      stage.directory_ = lock_name(own, O_RDONLY | O_DIRECTORY);
      if (stage.directory_) return stage;
      // another export removes it as a dead one
      if (errno == EWOULDBLOCK || errno == ENOENT) continue;
      // This filesystem has no such locks, so no export removes it.
      stage.directory_ = Fd(::open(own.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!stage.directory_) return os_error(errno, own.string(), "cannot open");
      return stage;
    }
  }
  ExportStage(ExportStage&& other) noexcept
      : own_(std::exchange(other.own_, {})), directory_(std::move(other.directory_)) {}
  ~ExportStage() {
    std::error_code error;
    if (!own_.empty()) fs::remove_all(own_, error);
  }
  // A network server or a quota may reject writes late.
  Outcome<void> sync() const {
    if (::syncfs(directory_.get()) == 0) return {};
    return os_error(errno, own_.parent_path().string(), "cannot write");
  }
  TreePlace top() const {
    return {.directory_fd = AT_FDCWD, .path = own_ / "top", .shown = own_ / "top"};
  }

 private:
  static constexpr char kPrefix[] = ".graphlane-export-";

  explicit ExportStage(fs::path own) : own_(std::move(own)) {}
  fs::path own_;
  Fd directory_;  // locked; opened before the first write, so that syncfs() reports its errors
};

// The copy's name: inside an existing directory, or as given.
Outcome<TreePlace> resolve_target(const Volume& volume, const std::string& given,
                                  const std::string& name, bool contents) {
  std::error_code error;
  fs::path target = fs::absolute(parse_copy_path(given).path, error).lexically_normal();
  if (fs::is_directory(target, error)) {
    target = fs::canonical(target, error);
    if (!contents) target /= name;
  }
  const fs::path parent = fs::canonical(target.parent_path(), error);
  if (error) return os_error(error.value(), target.parent_path().string(), "cannot open");
  const fs::path real = parent / target.filename();
  if (is_within(real, volume.root())) {
    return make_error(EINVAL, "{}: lies inside the volume (cp or mv copy there, through a mount)",
                      given);
  }
  return TreePlace{.directory_fd = AT_FDCWD, .path = real.string(), .shown = target.string()};
}

// Copies into `target`, which is `to`, and takes the attributes over.
Outcome<void> fill_copy(BulkCopy copy, int stub_fd, const Fd& target, const TreePlace& to,
                        TransferState* state) {
  copy.write = [&](ByteRange range, const char* buffer) -> Outcome<void> {
    const Result<void> written =
        pwrite_full(target.get(), buffer, range.length_bytes, range.offset);
    if (!written) return to.error(written.error().code, "cannot write");
    return {};
  };
  copy.progress = state->progress;
  if (Outcome<void> copied = run(copy); !copied) return copied;
  copy_attributes(stub_fd, target.get());
  state->summary.striped_count += 1;
  state->summary.bytes += copy.size_bytes;
  return {};
}

// Copies the remaining bytes of a damaged file, with zeros for the rest.
Outcome<void> salvage_striped(const Volume& volume, int stub_fd, const Layout& layout,
                              const TreePlace& from, const TreePlace& to, TransferState* state) {
  struct stat st;
  if (::fstat(stub_fd, &st) != 0) return from.error(errno, "cannot read");
  if (layout.volume != volume.uuid() || layout.geometry.device_count != volume.device_count()) {
    return volume.accept(layout, from.shown);
  }
  SalvageReader reader(volume, layout);
  if (reader.is_of_another(st.st_uid)) {
    return from.error(EPERM, "the stub's owner does not own the parts");
  }
  const Outcome<Fd> target = create_file(to, reader.size_bytes());
  if (!target) return target.error();
  const BulkCopy copy{.size_bytes = reader.size_bytes(),
                      .thread_count = 2 * volume.device_count(),
                      .read = [&](ByteRange range, char* buffer) -> Outcome<void> {
                        reader.read(range, buffer);
                        return {};
                      }};
  if (Outcome<void> copied = fill_copy(copy, stub_fd, *target, to, state); !copied) return copied;
  if (std::vector<MissingRange> missing = reader.missing(); !missing.empty()) {
    state->missing[to.path] = std::move(missing);
  }
  return {};
}

// Writes the lists beside the copies that lack bytes, after these are in place.
Outcome<void> write_lists(const std::vector<TreeNode>& nodes, const TreePlace& staged,
                          const TreePlace& target, bool overwrite, TransferState* state) {
  for (const TreeNode& node : nodes) {
    const auto found = state->missing.find(staged.at(node.path).path);
    if (found == state->missing.end()) continue;
    const TreePlace copy = target.at(node.path);
    const TreePlace list{.directory_fd = copy.directory_fd,
                         .path = copy.path + ".missing",
                         .shown = copy.shown + ".missing"};
    const int how = overwrite ? O_TRUNC : O_EXCL;
    const ShortPlace place(list);
    const Fd file(::openat(place.directory_fd(), place.path(),
                           O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | how, 0600));
    const std::string text = format_missing(found->second);
    if (!file) return list.error(errno, "cannot create");
    if (Result<void> written = write_full(file.get(), text.data(), text.size()); !written) {
      return list.error(written.error().code, "cannot write");
    }
    SalvagedFile told{
        .shown = copy.shown, .list_shown = list.shown, .range_count = found->second.size()};
    for (const MissingRange& one : found->second) told.missing_bytes += one.range.length_bytes;
    state->summary.salvaged.push_back(std::move(told));
  }
  return {};
}

Outcome<void> export_file(const Volume& volume, bool salvage, int fd, const TreePlace& from,
                          const struct stat& info, const TreePlace& to, TransferState* state) {
  if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
  if (info.st_size == kStubSize) hold_parts(fd);
  Layout layout;
  const Result<StubVerdict> verdict = inspect_stub(fd, &layout);
  if (!verdict) return from.error(verdict.error().code, "cannot read");
  if (*verdict == StubVerdict::kNotAStub) return copy_plain(fd, from, info, to, state);
  if (salvage) {
    if (const auto layout_left = salvage_layout(fd)) {
      return salvage_striped(volume, fd, *layout_left, from, to, state);
    }
  }
  if (*verdict == StubVerdict::kStub) {
    const auto file = StripedFile::open(volume, fd, current_layout(volume, layout), from.shown);
    if (!file) return file.error();
    return copy_striped(volume, **file, fd, to, state);
  }
  return make_error(EIO, "{}: {}", from.shown, describe(*verdict));
}

// A stub counts as its file's size.
uint64_t logical_bytes(const std::vector<TreeNode>& nodes, const TreePlace& top) {
  uint64_t bytes = total_bytes(nodes);
  for (const TreeNode& node : nodes) {
    if (!S_ISREG(node.info.st_mode) || node.info.st_size != kStubSize) continue;
    const TreePlace place = top.at(node.path);
    const ShortPlace stub(place);
    const Fd fd = open_regular(stub.directory_fd(), stub.path(), O_RDONLY);
    Layout layout;
    const Result<StubVerdict> verdict = inspect_stub(fd.get(), &layout);
    if (verdict && *verdict == StubVerdict::kStub) bytes += layout.logical_size - kStubSize;
  }
  return bytes;
}

}  // namespace

Outcome<void> copy_striped(const Volume& volume, const StripedFile& file, int stub_fd,
                           const TreePlace& to, TransferState* state) {
  const Outcome<Fd> target = create_file(to, file.size());
  if (!target) return target.error();
  const BulkCopy copy{.size_bytes = file.size(),
                      .thread_count = 2 * volume.device_count(),
                      .read_in_turn = false,
                      .write_in_turn = true,
                      .read = [&](ByteRange range, char* buffer) {
                        const Outcome<void> go_on = state->check_wanted();
                        if (!go_on) return go_on;
                        return transfer_striped(volume, file, IoOp::kRead, range, buffer);
                      }};
  return fill_copy(copy, stub_fd, *target, to, state);
}

Outcome<TransferSummary> export_files(const Volume& volume, const ExportOptions& options) {
  // Whatever the volume says: a copy is not compared with anything later. Errors name the place.
  reads_are_verified = true;
  tell_sum_failure = nullptr;
  const CopyPath source = parse_copy_path(options.source);
  const Outcome<TreePlace> from = locate_in_volume(volume, source.path);
  if (!from) return from.error();
  Outcome<std::vector<TreeNode>> nodes = list_tree(*from);
  if (!nodes) return nodes.error();
  // Leaves out lost+found, unless it is named as the source.
  std::erase_if(*nodes, [&](const TreeNode& node) {
    return from->path == "." &&
           (is_within(node.path, kControlDirectory) || is_within(node.path, kLostAndFound));
  });
  const std::string name = fs::path(from->shown).filename().string();
  const Outcome<TreePlace> target =
      resolve_target(volume, options.destination, name, source.contents);
  if (!target) return target.error();
  if (Outcome<void> checked = check_target(*from, *nodes, *target, options.overwrite); !checked) {
    return checked.error();
  }

  Outcome<ExportStage> stage = ExportStage::create(target->path);
  if (!stage) return stage.error();
  Progress progress("export", logical_bytes(*nodes, *from));
  TransferState state{.progress = &progress, .summary = {}};
  Outcome<void> done =
      copy_tree(*from, *nodes, stage->top(),
                [&](int fd, const TreePlace& file, const struct stat& info, const TreePlace& to) {
                  return export_file(volume, options.salvage, fd, file, info, to, &state);
                });
  FileReplacer replace;
  if (options.overwrite) {
    replace = [](const TreePlace& staged, const TreePlace& existing) -> Outcome<void> {
      const ShortPlace new_file(staged), old_file(existing);
      if (::renameat(new_file.directory_fd(), new_file.path(), old_file.directory_fd(),
                     old_file.path()) == 0) {
        return {};
      }
      return existing.error(errno, "cannot replace");
    };
  }
  if (done) done = stage->sync();
  if (done) done = move_tree(stage->top(), *nodes, *from, *target, replace);
  if (done) done = write_lists(*nodes, stage->top(), *target, options.overwrite, &state);
  if (!done) return done.error();
  return state.summary;
}

Outcome<void> remove_files(const Volume& volume, const std::string& path, bool recursive) {
  const Outcome<TreePlace> place = locate_in_volume(volume, path);
  if (!place) return place.error();
  if (place->path == ".") {
    return make_error(EINVAL, "{}: is the volume itself, not a file in it", volume.root());
  }
  struct stat info;
  if (::fstatat(place->directory_fd, place->path.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) {
    return place->error(errno, "cannot remove");
  }
  if (S_ISDIR(info.st_mode) && !recursive) {
    return make_error(EISDIR, "{}: is a directory (--recursive removes it)", place->shown);
  }
  const Outcome<VolumeLock> lock = VolumeLock::take(volume, VolumeLock::kShared);
  if (!lock) return lock.error();
  return remove_volume_tree(volume, *place, /*force=*/false);
}

}  // namespace graphlane
