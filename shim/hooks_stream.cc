// Streams. libc's own stdio calls read() where no preload sees it.
//
// Over a mount that is no matter: FUSE serves it. Without one the stream would
// read the stub, so fopen() of a stub gives a stream (fopencookie) whose reads
// and seeks come back here. Its descriptor is the stub's own, and fileno() tells
// it, because libstdc++'s ifstream asks for it and then reads by itself.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "iomgr/base/sys.h"
#include "shim/hooks.h"
#include "shim/open_file.h"
#include "shim/real.h"
#include "shim/settings.h"
#include "shim/stub_path.h"

namespace graphlane {
namespace {

int cookie_fd(void* cookie) { return static_cast<int>(reinterpret_cast<intptr_t>(cookie)); }

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

// A stream over the stub's descriptor, which it takes over; null: out of memory.
FILE* stub_stream(int fd) {
  const cookie_io_functions_t functions = {
      .read = cookie_read, .write = nullptr, .seek = cookie_seek, .close = cookie_close};
  FILE* stream = fopencookie(reinterpret_cast<void*>(static_cast<intptr_t>(fd)), "r", functions);
  // glibc marks such a stream with a number below 0; any that is not -1 is open
  // to it. A true one makes fileno() answer.
  // And it marks the want of wide characters so that freopen() would crash.
  if (stream != nullptr) {
    stream->_fileno = fd;
    stream->_wide_data = nullptr;
  }
  return stream;
}

bool mode_writes(const char* mode) { return std::strpbrk(mode, "wa+") != nullptr; }

bool would_write_stub(const char* path, const char* mode) {
  Layout layout;
  if (!mode_writes(mode) || !is_stub_at(AT_FDCWD, path, 0, &layout)) return false;
  explain_once(Refusal::kWrite);
  errno = EROFS;
  return true;
}

bool has_stub_size(int fd) {
  struct stat st;
  return sys::fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == kStubSize;
}

// Keeps a stream over an ordinary file, exchanges one over a stub.
FILE* opened(FILE* stream) {
  if (stream == nullptr) return nullptr;
  const int fd = ::fileno(stream);
  forget(fd);
  if (settings().report != nullptr) acquire_stub(fd, Group::stream);  // counts it
  if (!has_stub_size(fd) || !acquire_stub(fd)) return stream;
  const int own = real::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return stream;
  if ((sys::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) sys::fcntl(own, F_SETFD, 0);
  forget(own);
  hook_fclose(stream);
  return stub_stream(own);
}

// libc makes its custom streams without room for wide characters, and crashes
// when it is used.
bool lacks_wide(FILE* stream) {
  if (stream->_wide_data != nullptr) return false;
  explain_once(Refusal::kWide);
  errno = ENOTSUP;
  return true;
}

// A program that was started with `< VOL/file` reads a stream that libc made.
__attribute__((constructor)) void open_stdin() {
  if (has_stub_size(STDIN_FILENO) && acquire_stub(STDIN_FILENO)) {
    FILE* stream = stub_stream(STDIN_FILENO);
    if (stream != nullptr) stdin = stream;
  }
}

}  // namespace
}  // namespace graphlane

using namespace graphlane;

FILE* hook_fopen(const char* path, const char* mode) {
  if (would_write_stub(path, mode)) return nullptr;
  return opened(real::fopen(path, mode));
}

FILE* hook_fopen64(const char* path, const char* mode) {
  if (would_write_stub(path, mode)) return nullptr;
  return opened(real::fopen64(path, mode));
}

FILE* hook_fdopen(int fd, const char* mode) {
  if (!mode_writes(mode) && acquire_stub(fd, Group::stream)) return stub_stream(fd);
  return real::fdopen(fd, mode);
}

#define FREOPEN_HOOK(name)                                                 \
  FILE* hook_##name(const char* path, const char* mode, FILE* stream) {    \
    if (path != nullptr && would_write_stub(path, mode)) return nullptr;   \
    Layout layout;                                                         \
    if (path != nullptr && is_stub_at(AT_FDCWD, path, 0, &layout)) {       \
      explain_once(Refusal::kFreopen);                                     \
      errno = ENOTSUP;                                                     \
      return nullptr;                                                      \
    }                                                                      \
    forget(::fileno(stream));                                              \
    FILE* result = real::name(path, mode, stream);                         \
    if (result != nullptr) forget(::fileno(result));                       \
    return result;                                                         \
  }
FREOPEN_HOOK(freopen)
FREOPEN_HOOK(freopen64)
#undef FREOPEN_HOOK

int hook_fclose(FILE* stream) {
  if (stream != nullptr) forget(::fileno(stream));
  return real::fclose(stream);
}

#define WIDE_HOOK(result, name, parameters, arguments, failure) \
  result hook_##name parameters {                               \
    return lacks_wide(stream) ? failure : real::name arguments; \
  }
WIDE_HOOK(wint_t, fgetwc, (FILE* stream), (stream), WEOF)
WIDE_HOOK(wint_t, getwc, (FILE* stream), (stream), WEOF)
WIDE_HOOK(wint_t, fgetwc_unlocked, (FILE* stream), (stream), WEOF)
WIDE_HOOK(wint_t, getwc_unlocked, (FILE* stream), (stream), WEOF)
WIDE_HOOK(wint_t, ungetwc, (wint_t character, FILE* stream), (character, stream), WEOF)
WIDE_HOOK(wchar_t*, fgetws, (wchar_t* line, int room, FILE* stream), (line, room, stream), nullptr)
WIDE_HOOK(wchar_t*, fgetws_unlocked, (wchar_t* line, int room, FILE* stream), (line, room, stream), nullptr)
WIDE_HOOK(wchar_t*, __fgetws_chk, (wchar_t* line, size_t size, int room, FILE* stream),
          (line, size, room, stream), nullptr)
WIDE_HOOK(wchar_t*, __fgetws_unlocked_chk, (wchar_t* line, size_t size, int room, FILE* stream),
          (line, size, room, stream), nullptr)
WIDE_HOOK(int, vfwscanf, (FILE* stream, const wchar_t* format, va_list values),
          (stream, format, values), EOF)
WIDE_HOOK(int, __isoc99_vfwscanf, (FILE* stream, const wchar_t* format, va_list values),
          (stream, format, values), EOF)
#undef WIDE_HOOK

// A stream that is asked for its orientation says "bytes".
int hook_fwide(FILE* stream, int mode) {
  return mode > 0 && lacks_wide(stream) ? -1 : real::fwide(stream, mode);
}

int hook_fwscanf(FILE* stream, const wchar_t* format, ...) {
  va_list values;
  va_start(values, format);
  const int count = hook_vfwscanf(stream, format, values);
  va_end(values);
  return count;
}

int hook___isoc99_fwscanf(FILE* stream, const wchar_t* format, ...) {
  va_list values;
  va_start(values, format);
  const int count = hook___isoc99_vfwscanf(stream, format, values);
  va_end(values);
  return count;
}
