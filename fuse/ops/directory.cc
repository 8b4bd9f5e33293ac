// Directories. .graphlane is not listed.
#include <dirent.h>

#include <memory>
#include <string_view>

#include "fuse/ops/operations.h"
#include "iomgr/base/mutex.h"

namespace graphlane::fuse {
namespace {

struct OpenDirectory : OpenHandle {
  ~OpenDirectory() override {
    if (stream != nullptr) ::closedir(stream);
  }
  static OpenDirectory& of(const fuse_file_info* fi) { return OpenHandles::of<OpenDirectory>(fi); }

  Mutex mu;
  DIR* stream GUARDED_BY(mu) = nullptr;
  off_t offset GUARDED_BY(mu) = 0;  // where `stream` stands
};

// The number of a file that was not looked up (inode_table.h), as in libfuse.
constexpr ino_t kUnknownNumber = 0xffffffff;

// One listing into a reply's buffer.
class Listing {
 public:
  Listing(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, size_t size, bool plus)
      : fs_(fs),
        req_(req),
        directory_(fs.inodes.of(ino)),
        plus_(plus),
        room_(size),
        buffer_(std::make_unique<char[]>(size)) {}

  // Lists from `offset` on, until the buffer is full. 0 or an errno.
  int fill(OpenDirectory& open, off_t offset) REQUIRES(open.mu) {
    if (offset != open.offset) ::seekdir(open.stream, offset);
    open.offset = offset;
    while (true) {
      errno = 0;
      const dirent* entry = ::readdir(open.stream);
      // Listed entries count as looked up, so they must reach the kernel. The error comes again
      // with the next call.
      if (entry == nullptr) return used_ > 0 ? 0 : errno;
      open.offset = entry->d_off;  // even if it finds no room: the next call seeks
      if (!hidden(entry->d_name) && !add(*entry)) return 0;
    }
  }

  const char* data() const { return buffer_.get(); }
  size_t size() const { return used_; }

 private:
  bool hidden(const char* name) const {
    return !directory_.control && !is_dot(name) && refuse_change(fs_, directory_, name) != 0;
  }

  // False: the buffer is full.
  bool add(const dirent& entry) {
    fuse_entry_param known = {};
    if (plus_ && !is_dot(entry.d_name) && !fs_.inodes.crowded()) {
      if (look_up(fs_, directory_, entry.d_name, &known) != 0) known = {};
    }
    const bool looked_up = known.ino != 0;
    if (!looked_up) {
      known.attr.st_ino = fs_.inodes.is_elsewhere(directory_) ? kUnknownNumber : entry.d_ino;
      known.attr.st_mode = static_cast<mode_t>(entry.d_type) << 12;
    }
    char* at = buffer_.get() + used_;
    const size_t left = room_ - used_;
    const size_t length =
        plus_ ? ::fuse_add_direntry_plus(req_, at, left, entry.d_name, &known, entry.d_off)
              : ::fuse_add_direntry(req_, at, left, entry.d_name, &known.attr, entry.d_off);
    if (length > left) {
      if (looked_up) fs_.inodes.forget(known.ino, 1);
      return false;
    }
    used_ += length;
    return true;
  }

  Filesystem& fs_;
  const fuse_req_t req_;
  Inode& directory_;
  const bool plus_;
  const size_t room_;
  const std::unique_ptr<char[]> buffer_;
  size_t used_ = 0;
};

int list(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
         fuse_file_info* fi, bool plus) {
  OpenDirectory& open = OpenDirectory::of(fi);
  Listing listing(fs, req, ino, size, plus);
  {
    // Released before the reply, after which the kernel may release `open`.
    MutexLock lock(open.mu);
    if (const int error = listing.fill(open, offset); error != 0) return error;
  }
  reply::buf(req, listing.data(), listing.size());
  return 0;
}

}  // namespace

int op::opendir(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  if (fs.handles.full()) return EMFILE;
  auto open = std::make_unique<OpenDirectory>();
  const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | access_time_flag(fs);
  const Result<HostPath> path = fs.inodes.path(fs.inodes.of(ino));
  if (!path) return path.error().code;
  Fd fd(::openat(path->get(), ".", flags));
  if (!fd) return errno;
  {
    MutexLock lock(open->mu);
    open->stream = ::fdopendir(fd.get());
    if (open->stream == nullptr) return errno;
  }
  (void)fd.release();  // owned by the stream now
  fs.handles.give(std::move(open), fi);
  if (reply::open(req, fi) == -ENOENT) fs.handles.release(fi);
  return 0;
}

int op::readdir(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                fuse_file_info* fi) {
  return list(fs, req, ino, size, offset, fi, false);
}

int op::readdirplus(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    fuse_file_info* fi) {
  return list(fs, req, ino, size, offset, fi, true);
}

int op::fsyncdir(Filesystem&, fuse_req_t req, fuse_ino_t, int data_only, fuse_file_info* fi) {
  OpenDirectory& open = OpenDirectory::of(fi);
  const int fd = [&] {
    MutexLock lock(open.mu);
    return ::dirfd(open.stream);
  }();
  return answer_result(req, data_only != 0 ? ::fdatasync(fd) : ::fsync(fd));
}

int op::releasedir(Filesystem& fs, fuse_req_t req, fuse_ino_t, fuse_file_info* fi) {
  fs.handles.release(fi);
  return answer_result(req, 0);
}

}  // namespace graphlane::fuse
