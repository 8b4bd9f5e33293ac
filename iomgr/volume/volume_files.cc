#include "iomgr/volume/volume_files.h"

#include <linux/openat2.h>
#include <pwd.h>
#include <sys/syscall.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <thread>

#include "iomgr/base/files/atomic_file.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/volume/home.h"
#include "iomgr/volume/lost_and_found.h"
#include "iomgr/volume/name_lock.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/volume_json.h"

namespace graphlane {
namespace fs = std::filesystem;
namespace {

// A rename in a mount holds the lock for a moment, an import for its whole time.
constexpr auto kLockPatience = std::chrono::seconds(2);
constexpr auto kLockInterval = std::chrono::milliseconds(5);

Error busy(const Volume& volume, VolumeLock::Mode mode) {
  return make_error(
      EBUSY, "{}: busy: {}", volume.root(),
      mode == VolumeLock::kExclusive ? "an import or a removal is running" : "a check is running");
}

Result<Fd> open_beneath(int root_fd, const char* path, uint64_t flags) {
  const open_how how{.flags = flags | O_CLOEXEC, .mode = 0, .resolve = RESOLVE_BENEATH};
  const long fd = ::syscall(SYS_openat2, root_fd, path, &how, sizeof how);
  if (fd < 0) return last_errno();
  return Fd(static_cast<int>(fd));
}

// An error unless it is a plain file, or a stub that can be removed with its parts.
Outcome<void> check_removable(const Volume& volume, int fd, const TreePlace& place) {
  Layout layout;
  const Result<StubVerdict> verdict = inspect_stub(fd, &layout);
  if (!verdict) return place.error(verdict.error().code, "cannot read");
  if (*verdict == StubVerdict::kStub) return volume.accept(layout, place.shown);
  if (*verdict == StubVerdict::kNotAStub) return {};
  return make_error(EIO, "{}: {}; rm(1) removes it, then `graphlane check --repair` its parts",
                    place.shown, describe(*verdict));
}

Fd open_file_at(const TreeEntry& entry) {
  return open_regular(entry.parent_fd, entry.name, O_RDONLY);
}

// Whether this entry may be removed: see check_removable().
Outcome<void> check_node(const Volume& volume, const TreeEntry& entry) {
  if (!S_ISREG(entry.info.st_mode)) return {};
  const Fd fd = open_file_at(entry);
  if (!fd && errno == ENOENT) return {};  // another process has removed it
  if (!fd) return entry.place().error(errno, "cannot open");
  return check_removable(volume, fd.get(), entry.place());
}

// Removes one name. `orphans` gets the file if it was a stub's last name.
Outcome<void> remove_node(const Volume& volume, const TreeEntry& entry,
                          std::vector<Uuid>* orphans) {
  const int flags = S_ISDIR(entry.info.st_mode) ? AT_REMOVEDIR : 0;
  const Fd fd = S_ISREG(entry.info.st_mode) ? open_file_at(entry) : Fd();
  // An entry of lost+found owns no parts.
  Layout said;
  const bool is_lost =
      fd && inspect_stub(fd.get(), &said).value_or(StubVerdict::kNotAStub) == StubVerdict::kStub &&
      is_lost_and_found(volume.root_fd(), fd.get(), said.file_id);
  if (::unlinkat(entry.parent_fd, entry.name, flags) != 0) {
    if (errno == ENOENT && !entry.path.empty()) return {};  // another process has removed it
    return entry.place().error(errno, "cannot remove");
  }
  if (is_lost) return {};
  if (const auto layout = own_layout_of_removed(volume, fd.get())) {
    orphans->push_back(layout->file_id);
    // the parts are removed after all names, which may take long
    mark_removed(volume, layout->file_id);
  }
  return {};
}

}  // namespace

std::optional<Layout> own_layout_of_removed(const Volume& volume, int stub_fd) {
  Layout layout;
  struct stat left;
  if (stub_fd < 0 || ::fstat(stub_fd, &left) != 0 || left.st_nlink > 0) return std::nullopt;
  const Result<StubVerdict> verdict = inspect_stub(stub_fd, &layout);
  if (!verdict || *verdict != StubVerdict::kStub || !verify_parts(volume, stub_fd, layout, "")) {
    return std::nullopt;
  }
  return layout;
}

bool is_within(const fs::path& path, const fs::path& directory) {
  const auto [end, at] =
      std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return end == directory.end();
}

Outcome<void> check_stripe_depth(uint64_t depth_bytes) {
  if (depth_bytes == 0) return make_error(EINVAL, "stripe depth 0: must be at least 4096 bytes");
  if (depth_bytes % kBlockSize != 0) {
    return make_error(EINVAL, "stripe depth {}: not a multiple of 4096 bytes", depth_bytes);
  }
  if (depth_bytes > kStripeDepthMax) {
    return make_error(EINVAL, "stripe depth {}: larger than 1T", depth_bytes);
  }
  return {};
}

Outcome<void> set_stripe_depth(const Volume& volume, uint64_t depth_bytes) {
  const Outcome<HomeLock> lock = HomeLock::take(volume);
  if (!lock) return lock.error();
  return change_volume_json(volume, *lock, [&](VolumeRecord* record) {
    if (record->stripe_depth_bytes == depth_bytes && !record->is_depth_auto) return false;
    record->stripe_depth_bytes = depth_bytes;
    record->is_depth_auto = false;
    return true;
  });
}

Outcome<void> change_volume_json(const Volume& volume, const HomeLock&,
                                 const std::function<bool(VolumeRecord*)>& change) {
  const int root = volume.root_fd();
  const std::string path = volume.root() + "/" + kVolumeJson;
  const Outcome<std::string> old_text = read_whole_file(root, kVolumeJson, path);
  if (!old_text) return old_text.error();
  Outcome<VolumeRecord> record = parse_volume_json(*old_text, path);
  if (!record) return record.error();
  if (!change(&*record)) return {};
  const Outcome<std::string> text = to_json(*record);
  if (!text) return text.error();
  // Staged among the imports, so that `check` removes it after a kill.
  const std::string staged =
      fmt::format("{}/{}", kStagingDirectory, UuidText(Uuid::random()).view());
  (void)::mkdirat(root, kStagingDirectory, 0700);
  if (Outcome<void> made = write_file_atomically(root, staged, path, *text, 0644); !made) {
    return made;
  }
  struct stat st;
  if (::fstatat(root, kVolumeJson, &st, 0) == 0) {
    (void)!::fchownat(root, staged.c_str(), st.st_uid, st.st_gid, AT_SYMLINK_NOFOLLOW);
  }
  if (::renameat(root, staged.c_str(), root, kVolumeJson) != 0) {
    const Error error = os_error(errno, path, "cannot replace");
    ::unlinkat(root, staged.c_str(), 0);
    return error;
  }
  return sync_directory(std::string(kControlDirectory), root);
}

Outcome<TreePlace> locate_in_volume(const Volume& volume, const std::string& path) {
  const TreePlace root{.directory_fd = volume.root_fd(), .path = ".", .shown = volume.root()};
  fs::path below = fs::path(path).relative_path();
  if (!below.has_filename()) below = below.parent_path();  // "a/b/"
  if (below.empty() || below == ".") return root;
  const std::string shown = volume.root() + "/" + below.string();
  if (below.filename() == ".." || below.filename() == ".") {
    return make_error(EINVAL, "{}: ends in '.' or '..'", shown);
  }
  const std::string parent = below.has_parent_path() ? below.parent_path().string() : ".";
  const Result<Fd> directory = open_beneath(volume.root_fd(), parent.c_str(), O_PATH | O_DIRECTORY);
  if (!directory) {
    const int code = directory.error().code;
    if (code == EXDEV) return make_error(EXDEV, "{}: leads out of the volume", shown);
    return os_error(code, volume.root() + "/" + parent, "cannot open");
  }
  // The resolved path, relative to the root, for the *at() calls.
  std::error_code error;
  const fs::path at = fs::read_symlink(fmt::format("/proc/self/fd/{}", directory->get()), error);
  const fs::path base = fs::read_symlink(fmt::format("/proc/self/fd/{}", volume.root_fd()), error);
  if (error) return os_error(error.value(), "/proc/self/fd", "cannot read");
  const fs::path real = (at.lexically_relative(base) / below.filename()).lexically_normal();
  if (*real.begin() == kControlDirectory) {
    return make_error(EINVAL, "{}: is Graphlane's own", shown);
  }
  return TreePlace{.directory_fd = volume.root_fd(), .path = real.string(), .shown = shown};
}

Result<StubVerdict> inspect_stub(int fd, Layout* layout) {
  std::array<uint8_t, kStubSize + 1> bytes;
  return read_stub(fd, bytes, layout);
}

Outcome<void> remove_volume_tree(const Volume& volume, const TreePlace& top, bool force) {
  if (Outcome<void> writable = require_writable(volume); !writable) return writable;
  if (!force) {
    const TreeVisitor check{
        .enter = [&](const TreeEntry& entry) { return check_node(volume, entry); }};
    if (Outcome<void> checked = walk_tree(top, check); !checked) return checked;
  }
  std::vector<Uuid> orphans;
  const TreeVisitor remove{.enter = [](const TreeEntry&) -> Outcome<void> { return {}; },
                           .leave = [&](const TreeEntry& entry) -> Outcome<void> {
                             if (!force) {  // with force a clean-up is not interrupted
                               if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
                             }
                             return remove_node(volume, entry, &orphans);
                           }};
  const Outcome<void> removed = walk_tree(top, remove);
  if (orphans.empty()) return removed;
  // Syncs first: a stub that a power failure brings back must find its parts.
  Outcome<void> reaped = ::syncfs(volume.root_fd()) == 0
                             ? remove_all_parts(volume, orphans)
                             : os_error(errno, volume.root(), "cannot write");
  return removed ? reaped : removed;
}

Error control_error(const std::string& root, const std::string& path, int code,
                    std::string_view what) {
  struct stat st;
  if ((code != EACCES && code != EPERM) || ::stat(root.c_str(), &st) != 0 ||
      st.st_uid == ::geteuid()) {
    return os_error(code, path, what);
  }
  const passwd* const owner = ::getpwuid(st.st_uid);
  return make_error(code, "{}: {}: only {} may", root, what,
                    st.st_uid == 0     ? "root"
                    : owner != nullptr ? fmt::format("{} and root", owner->pw_name)
                                       : fmt::format("user {} and root", st.st_uid));
}

std::string device_root(const std::string& directory, const Uuid& uuid) {
  return fmt::format("{}/graphlane-{}", directory, UuidText(uuid).view());
}

Outcome<VolumeLock> VolumeLock::take(const Volume& volume, Mode mode) {
  const std::string path = volume.root() + "/" + kLockFile;
  const int access = mode == kExclusive ? O_RDWR : O_RDONLY;
  Fd file = open_lock_file(volume.root_fd(), access | O_CREAT);
  const bool is_constant = !file && errno == EROFS;
  if (is_constant) file = open_lock_file(volume.root_fd(), O_RDONLY);
  if (!file) return control_error(volume.root(), path, errno, "cannot lock the volume");
  const short type = mode == kExclusive && !is_constant ? F_WRLCK : F_RDLCK;
  const auto deadline = std::chrono::steady_clock::now() + kLockPatience;
  while (!lock_names(file.get(), type, F_OFD_SETLK)) {
    if (errno != EAGAIN) return os_error(errno, path, "cannot lock");
    if (std::chrono::steady_clock::now() >= deadline) return busy(volume, mode);
    std::this_thread::sleep_for(kLockInterval);
  }
  return VolumeLock(std::move(file));
}

}  // namespace graphlane
