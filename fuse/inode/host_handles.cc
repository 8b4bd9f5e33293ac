#include "fuse/inode/host_handles.h"

#include <fcntl.h>

#include <cerrno>
#include <cstddef>

namespace graphlane::fuse {
namespace {

constexpr unsigned kWordsMax = 3;
constexpr uint64_t kReservedMax = 1;  // 0 means no file, 1 is the root (FUSE_ROOT_ID)

// The kernel's struct file_handle, with room for its bytes.
struct Handle {
  struct file_handle* get() { return reinterpret_cast<struct file_handle*>(&header); }

  struct {
    unsigned byte_count = 4 * kWordsMax;
    int type = 0;
  } header;
  uint32_t words[kWordsMax] = {};
};
static_assert(offsetof(struct file_handle, f_handle) == offsetof(Handle, words));

bool read_handle(int fd, Handle* handle) {
  int mount_id;
  return ::name_to_handle_at(fd, "", handle->get(), &mount_id, AT_EMPTY_PATH) == 0;
}

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

HostHandles::HostHandles(int root_fd) : root_fd_(root_fd) {
  Handle handle;
  if (::fstat(root_fd, &root_) != 0 || !read_handle(root_fd, &handle)) return;
  type_ = handle.header.type;
  byte_count_ = handle.header.byte_count;
  second_word_ = byte_count_ == sizeof handle.words && handle.words[1] == 0 ? 2 : 1;
  const std::optional<uint64_t> number = number_of(root_fd, root_);
  // Only an attempt shows whether this process may open by handle.
  usable_ = number && open(*number);
}

std::optional<uint64_t> HostHandles::number_of(int path_fd, const struct stat& st) const {
  Handle handle;
  if (st.st_dev != root_.st_dev || !read_handle(path_fd, &handle)) return std::nullopt;
  if (handle.header.type != type_ || handle.header.byte_count != byte_count_) return std::nullopt;
  const unsigned zero_word = 3 - second_word_;  // the third word, zero in handles that fit
  if (byte_count_ < 2 * sizeof(uint32_t) || handle.words[zero_word] != 0) return std::nullopt;
  const uint64_t number = uint64_t{handle.words[second_word_]} << 32 | handle.words[0];
  return number > kReservedMax ? std::optional(number) : std::nullopt;
}

Result<Fd> HostHandles::open(uint64_t number) const {
  Handle handle;
  handle.header = {.byte_count = byte_count_, .type = type_};
  handle.words[0] = static_cast<uint32_t>(number);
  handle.words[second_word_] = static_cast<uint32_t>(number >> 32);
  Fd fd(::open_by_handle_at(root_fd_, handle.get(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!fd) return last_errno();
  return fd;
}

bool HostHandles::is_below_root(int directory_fd) const {
  struct stat st;
  if (::fstat(directory_fd, &st) != 0) return false;
  int below = directory_fd;
  Fd above;
  while (!same_file(st, root_)) {
    const struct stat before = st;
    above.reset(::openat(below, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!above || ::fstat(above.get(), &st) != 0 || same_file(st, before)) return false;
    below = above.get();
  }
  return true;
}

}  // namespace graphlane::fuse
