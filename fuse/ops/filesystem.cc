#include "fuse/ops/filesystem.h"

#include <linux/securebits.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <vector>

#include "fuse/inode/striped.h"
#include "fuse/ops/reply.h"
#include "iomgr/volume/preferred_io.h"

namespace graphlane::fuse {
namespace {

constexpr uint64_t kRequestMin = 4096;

// The cache prefetches at least this much: bytes of in_turn reads are in flight nowhere else.
constexpr uint64_t kAheadMin = uint64_t{24} << 20;

// The half of descriptors that inodes do not use, less some: for lanes and clients, for workers'
// pipes, and for files that operations open and close again.
size_t handles_max() {
  constexpr size_t kReserved = 64, kPerWorker = 8;
  const size_t half = InodeTable::half_of_descriptors();
  return half - std::min<size_t>(half / 2, kReserved + kPerWorker * kBackgroundMax);
}

constexpr uint64_t kRequestAlwaysSpliced = 512u << 10;
constexpr int kFirstLibfuseWithLargeRequests = 317;

// The limit of libfuse and of the kernel (fs.fuse.max_pages_limit, 1 MiB by default).
uint64_t largest_allowed_request() {
  if (::fuse_version() < kFirstLibfuseWithLargeRequests) return kOldLibfuseRequestMax;
  uint64_t pages = 0;
  std::ifstream("/proc/sys/fs/fuse/max_pages_limit") >> pages;
  if (pages == 0) return kOldLibfuseRequestMax;  // Linux before 6.14
  return std::min(pages * static_cast<uint64_t>(::getpagesize()), kRequestMax);
}

// A spliced request needs a pipe larger than itself. If the pipe cannot grow that far
// (pipe-max-size is 1 MiB by default), libfuse allocates and copies for every request, at 0.1 of
// native throughput. 512 KiB always fit.
uint64_t largest_spliced_request(uint64_t wanted) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return kRequestAlwaysSpliced;
  const Fd reader(ends[0]), writer(ends[1]);
  while (wanted > kRequestAlwaysSpliced &&
         ::fcntl(writer.get(), F_SETPIPE_SZ, static_cast<int>(2 * wanted)) < 0) {
    wanted /= 2;
  }
  return std::max(wanted / kRequestMin * kRequestMin, kRequestMin);
}

}  // namespace

uint64_t largest_request(const MountOptions& options) {
  const uint64_t asked = options.max_read_bytes / kRequestMin * kRequestMin;
  return std::clamp(asked, kRequestMin, largest_spliced_request(largest_allowed_request()));
}

Filesystem::Filesystem(std::shared_ptr<const Volume> served, const MountOptions& asked)
    : volume(std::move(served)),
      options(asked),
      privileged(::geteuid() == 0),
      read_bytes_max(largest_request(asked)),
      memory_at_start_bytes(memory_available_bytes()),
      inodes(volume->root_fd()),
      live(*volume),
      invalidation(*this),
      kinds(*this),
      handles(handles_max()),
      files_made_(Uuid::random().bytes[0]) {}  // random, so that volumes of one file balance too

uint32_t Filesystem::next_first_device() {
  // Relaxed: the order of files does not matter.
  return files_made_.fetch_add(1, std::memory_order_relaxed) % volume->device_count();
}

Outcome<std::unique_ptr<Filesystem>> Filesystem::start(std::shared_ptr<const Volume> volume,
                                                       const MountOptions& options) {
  auto fs = std::make_unique<Filesystem>(std::move(volume), options);
  Outcome<std::unique_ptr<Lanes>> lanes = Lanes::start(*fs->volume, options.lanes);
  if (!lanes) return lanes.error();
  fs->lanes = std::move(*lanes);
  if (options.cache.budget_bytes != 0) {
    fs->shared.emplace(
        options.shared(),
        [raw = fs.get()](const PartRequest& request) { return raw->lanes->run(request); },
        [raw = fs.get()](const StripedFile& file, const SharedCache::Content& content) {
          return raw->live.generations().of(file.layout().file_id) == content.generation;
        });
  }
  return fs;
}

void Filesystem::prepare_to_read() {
  std::call_once(prepared_, [this] {
    sweeps.start(*volume, options.io_mode);
    if (options.cache.budget_bytes == 0) return;
    ExtentCacheOptions cache = options.cache;
    cache.reclaimable = true;
    cache.ahead_min_bytes = kAheadMin;
    cache.turns_wait = !volume->is_on_ssds();
    // Without memory the mount runs without the cache.
    if (extents.start(cache)) cache_keeper.emplace(extents);
    extents.set_beside_page_cache(true);  // until a handle reads past the page cache
  });
}

bool leave_common_umask() {
  // CLONE_FS also covers the working directory, which must not keep a filesystem busy.
  thread_local const bool alone = ::unshare(CLONE_FS) == 0 && ::chdir("/") == 0;
  return alone;
}

// A raw system call, because libc's setfsuid() would change all threads' IDs.
AsCaller::AsCaller(const Filesystem& fs, fuse_req_t req) : active_(fs.privileged) {
  if (!active_) return;
  const fuse_ctx* caller = ::fuse_req_ctx(req);
  if (fs.applies_umask && leave_common_umask()) ::umask(caller->umask);
  ::syscall(SYS_setfsgid, caller->gid);
  ::syscall(SYS_setfsuid, caller->uid);
}

AsCaller::~AsCaller() {
  if (!active_) return;
  ::umask(0);
  ::syscall(SYS_setfsuid, ::geteuid());
  ::syscall(SYS_setfsgid, ::getegid());
}

void prepare_identities() {
  ::umask(0);  // The kernel has applied the caller's, or AsCaller does.
  // Without this bit, setfsuid() to a user drops CAP_DAC_OVERRIDE. The host would then check the
  // caller again, without its supplementary groups.
  if (::geteuid() == 0) ::prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0);
}

bool is_in_group(fuse_req_t req, gid_t group) {
  if (::fuse_req_ctx(req)->gid == group) return true;
  std::array<gid_t, 64> few;
  const int count = ::fuse_req_getgroups(req, few.size(), few.data());
  if (count <= 0) return false;  // also if the caller's process is not visible here
  std::vector<gid_t> groups(few.begin(), few.end());
  groups.resize(static_cast<size_t>(count));
  if (groups.size() > few.size()) ::fuse_req_getgroups(req, count, groups.data());
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

int refuse_change(const Filesystem& fs, const Inode& parent, const char* name) {
  const bool is_control =
      parent.control || (&parent == &fs.inodes.root() && name == kControlDirectory);
  return is_control ? EROFS : 0;
}

void drop_set_id_bits(Filesystem& fs, fuse_req_t req, int fd) {
  if (!fs.privileged || ::fuse_req_ctx(req)->uid == 0) return;
  struct stat st;
  if (::fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) return;
  mode_t drop = st.st_mode & (S_ISUID | S_ISGID);
  const bool for_locking = (drop & S_ISGID) != 0 && (st.st_mode & S_IXGRP) == 0;
  if (for_locking && is_in_group(req, st.st_gid)) drop &= ~static_cast<mode_t>(S_ISGID);
  // Best effort, because the write has its own result.
  if (drop == 0 || ::fchmod(fd, (st.st_mode & ~drop) & 07777) != 0) return;
  // After a write the kernel asks for size and times again, but not for the mode: until its timeout
  // an exec would still give the file's owner.
  Inode* inode = fs.inodes.find({.device = st.st_dev, .number = st.st_ino});
  if (inode == nullptr) return;
  drop_cached_attributes(fs, *inode);
  fs.inodes.forget(inode->nodeid, 1);
}

void drop_cached_attributes(Filesystem& fs, const Inode& inode) {
  (void)::fuse_lowlevel_notify_inval_inode(fs.session, inode.nodeid, -1, 0);  // keeps its pages
}

double attr_timeout_seconds(const Filesystem& fs, const Inode& inode) {
  return inode.passthrough.is_open() || inode.is_appended.load() ? 0
                                                                 : fs.options.attr_timeout_seconds;
}

bool is_replaced(const Inode& inode, const struct stat& st) {
  return S_ISREG(st.st_mode) && st.st_nlink == 0 && !inode.control &&
         inode.handle_count.load(std::memory_order_acquire) == 0;
}

bool is_replaced(const Inode& inode, int path_fd) {
  struct stat st;
  return ::fstat(path_fd, &st) == 0 && is_replaced(inode, st);
}

int look_at(Filesystem& fs, Inode& inode, struct stat* st, StubView* view) {
  const Result<HostPath> path = fs.inodes.path(inode);
  if (!path) return path.error().code;
  if (::fstatat(path->get(), "", st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) return errno;
  StubView found;
  if (!inode.control) found = inode.stub.look(path->get(), *st);
  if (found.error != 0) return found.error;
  if (S_ISREG(st->st_mode)) {
    const Uuid& file_id = found.striped() ? found.layout.file_id : Uuid{};
    fs.invalidation.see(inode, file_id, *st);
  }
  if (view != nullptr) *view = found;
  return 0;
}

int show_attributes(Filesystem& fs, Inode& inode, struct stat* st) {
  StubView view;
  const int error = look_at(fs, inode, st, &view);
  st->st_ino = fs.inodes.shown_number(inode);
  if (error == 0 && view.striped() && fs.volume->accept(view.layout, "")) {
    show_as_striped(fs, view.layout, st);
    st->st_blksize = preferred_io_bytes(inode);
  }
  return error;
}

blksize_t preferred_io_bytes(const Inode& inode) {
  // Relaxed: a hint.
  return inode.write_only_count.load(std::memory_order_relaxed) > 0 ? kPreferredWriteBytes
                                                                    : kPreferredIoBytes;
}

int look_up(Filesystem& fs, Inode& parent, const char* name, fuse_entry_param* entry) {
  *entry = {};
  const Result<HostPath> directory = fs.inodes.path(parent);
  if (!directory) return directory.error().code;
  Fd fd(::openat(directory->get(), name, O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return errno;
  struct stat st;
  if (::fstatat(fd.get(), "", &st, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW) != 0) return errno;
  const bool control = refuse_change(fs, parent, name) != 0;
  return describe_entry(fs, fs.inodes.acquire(std::move(fd), st, control), entry);
}

int describe_entry(Filesystem& fs, Inode& inode, fuse_entry_param* entry) {
  *entry = {};
  entry->ino = inode.nodeid;
  entry->attr_timeout = attr_timeout_seconds(fs, inode);
  entry->entry_timeout = fs.options.entry_timeout_seconds;
  const int error = show_attributes(fs, inode, &entry->attr);
  if (error != 0) fs.inodes.forget(entry->ino, 1);
  return error;
}

int answer_entry(Filesystem& fs, fuse_req_t req, Inode& parent, const char* name) {
  fuse_entry_param entry;
  const int error = look_up(fs, parent, name, &entry);
  if (error != 0) return error;
  // An interrupted kernel request gets no reply, so the kernel will not forget the inode.
  if (reply::entry(req, &entry) == -ENOENT) fs.inodes.forget(entry.ino, 1);
  return 0;
}

}  // namespace graphlane::fuse
