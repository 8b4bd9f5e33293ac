#include "shim/hooks/standard_streams.h"

#include <fcntl.h>
#include <stdio_ext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "shim/base/process.h"
#include "shim/fd/open_file.h"
#include "shim/hooks/hooks.h"
#include "shim/locate/stub_path.h"

namespace graphlane::shim {
namespace {

int cookie_fd(void* cookie) { return static_cast<int>(reinterpret_cast<intptr_t>(cookie)); }

// A custom stream reports a failed write by 0.
ssize_t cookie_write(void* cookie, const char* buffer, size_t size) {
  const ssize_t n = hook_write(cookie_fd(cookie), buffer, size);
  return n < 0 ? 0 : n;
}

ssize_t cookie_read(void* cookie, char* buffer, size_t size) {
  return hook_read(cookie_fd(cookie), buffer, size);
}

int cookie_seek(void* cookie, off64_t* offset, int whence) {
  const off_t position = hook_lseek(cookie_fd(cookie), *offset, whence);
  if (position < 0) return -1;
  *offset = position;
  return 0;
}

int cookie_close(void* cookie) { return hook_close(cookie_fd(cookie)); }

struct StandardStream {
  FILE** variable;
  const char* mode;
  FILE* libc = nullptr;  // while the library's stream replaces it
  FILE* ours = nullptr;  // the library's stream, once it was made
};
StandardStream streams[] = {{&stdin, "r"}, {&stdout, "w"}, {&stderr, "w"}};

// How many streams are replaced. Relaxed: orders nothing.
std::atomic<int> replaced_count{0};

void replace(int fd, StandardStream& stream) {
  if (stream.ours == nullptr) stream.ours = stub_stream(fd, stream.mode);
  if (stream.ours == nullptr) return;
  if (fd == STDERR_FILENO) ::setvbuf(stream.ours, nullptr, _IONBF, 0);
  ::__fpurge(stream.ours);  // drops bytes read from another file
  ::clearerr(stream.ours);
  stream.libc = *stream.variable;
  *stream.variable = stream.ours;
  replaced_count.fetch_add(1, std::memory_order_relaxed);
}

void restore(StandardStream& stream) {
  if (stream.libc != nullptr) replaced_count.fetch_sub(1, std::memory_order_relaxed);
  if (stream.libc != nullptr && *stream.variable == stream.ours) *stream.variable = stream.libc;
  stream.libc = nullptr;
}

// For a program started with `< VOL/in > VOL/out`.
__attribute__((constructor)) void look_at_standard_streams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) follow_standard_stream(fd);
}

}  // namespace

FILE* standing_in_for(FILE* stream) {
  if (replaced_count.load(std::memory_order_relaxed) == 0) return stream;
  for (const StandardStream& one : streams) {
    if (one.libc != nullptr && one.libc == stream) return one.ours;
  }
  return stream;
}

void end_standard_stream(const FILE* closing) {
  for (StandardStream& stream : streams) {
    if (stream.ours != closing) continue;
    restore(stream);
    stream.ours = nullptr;
  }
}

FILE* stub_stream(int fd, const char* mode) {
  const cookie_io_functions_t functions = {
      .read = cookie_read, .write = cookie_write, .seek = cookie_seek, .close = cookie_close};
  FILE* stream = fopencookie(reinterpret_cast<void*>(static_cast<intptr_t>(fd)), mode, functions);
  // glibc marks such a stream with a number below 0; any other number than -1 means open. The true
  // number makes fileno() work. glibc's mark for missing wide characters would make freopen()
  // crash.
  if (stream != nullptr) {
    stream->_fileno = fd;
    stream->_wide_data = nullptr;
  }
  return stream;
}

void follow_standard_stream(int fd) {
  if (fd < STDIN_FILENO || fd > STDERR_FILENO) return;
  StandardStream& stream = streams[fd];
  const bool replaced = stream.libc != nullptr;
  if (!replaced && !may_be_stub(fd)) return;
  const int saved_errno = errno;
  const bool stub = !in_vfork_child() && acquire_stub(fd);
  if (stub && !replaced) replace(fd, stream);
  if (!stub && replaced && !in_vfork_child()) restore(stream);
  errno = saved_errno;
}

}  // namespace graphlane::shim
