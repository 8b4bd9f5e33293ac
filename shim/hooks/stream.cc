// Streams. libc's stdio calls read() and write() internally, where no library sees it.
//
// Over a mount that is right, because FUSE serves them. Without a mount the stream would read the
// stub. So fopen() of a stub returns a custom stream (fopencookie), which calls the library's
// reads, writes and seeks. Its descriptor is the stub's, and fileno() returns it, because
// libstdc++'s fstream asks for it and then reads by itself.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "iomgr/base/sys.h"
#include "shim/base/settings.h"
#include "shim/fd/open_file.h"
#include "shim/hooks/hooks.h"
#include "shim/hooks/real.h"
#include "shim/hooks/standard_streams.h"
#include "shim/locate/foresight.h"
#include "shim/locate/stub_open.h"
#include "shim/locate/stub_path.h"

namespace graphlane::shim {
namespace {

// The flags of open(2) for a stream's mode.
int flags_of_mode(const char* mode) {
  const bool both = std::strchr(mode, '+') != nullptr;
  int flags = both ? O_RDWR : *mode == 'r' ? O_RDONLY : O_WRONLY;
  if (*mode == 'w') flags |= O_CREAT | O_TRUNC;
  if (*mode == 'a') flags |= O_CREAT | O_APPEND;
  if (std::strchr(mode, 'x') != nullptr) flags |= O_EXCL;
  if (std::strchr(mode, 'e') != nullptr) flags |= O_CLOEXEC;
  return flags;
}

// "a" begins at the end; "a+" reads from the beginning.
bool begins_at_end(int flags) { return (flags & (O_ACCMODE | O_APPEND)) == (O_WRONLY | O_APPEND); }

// Whether the library does this fopen(): of a striped file, for writing. If so, *stream is the
// result.
bool open_to_write(const char* path, const char* mode, FILE** stream) {
  const int flags = flags_of_mode(mode);
  const int saved_errno = errno;
  int fd = -1;
  if ((flags & O_ACCMODE) == O_RDONLY || !open_stub(AT_FDCWD, path, flags, 0666, &fd)) {
    errno = saved_errno;
    return false;
  }
  *stream = nullptr;
  if (fd < 0) return true;
  errno = saved_errno;
  if (begins_at_end(flags)) hook_lseek(fd, 0, SEEK_END);
  *stream = stub_stream(fd, mode);
  if (*stream == nullptr) hook_close(fd);
  return true;
}

// Keeps a stream over an ordinary file, replaces one over a stub.
FILE* opened(FILE* stream) {
  if (stream == nullptr) return nullptr;
  const int fd = ::fileno(stream);
  forget(fd);
  if (settings().report != nullptr) acquire_stub(fd, Group::stream);  // counts it
  if (!may_be_stub(fd) || !acquire_stub(fd)) return stream;
  const int own = real::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return stream;
  if ((sys::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) sys::fcntl(own, F_SETFD, 0);
  forget(own);
  hook_fclose(stream);
  return stub_stream(own, "r");
}

// The file of a stub's stream that is about to be closed or replaced. Its buffered bytes are
// written then, so the parts must still be open: the file's mode may forbid opening them again.
OpenFileRef file_of(FILE* stream) { return acquire_known_stub(::fileno(stream)); }

// freopen() without a path opens the stream's own file again.
bool would_open_stub(const char* path, const char* mode, FILE* stream) {
  if (path == nullptr) return static_cast<bool>(acquire_stub(::fileno(stream)));
  Layout layout;
  return is_stub_at(AT_FDCWD, path, 0, &layout) || ((flags_of_mode(mode) & O_ACCMODE) != O_RDONLY &&
                                                    may_be_unreadable_stub(AT_FDCWD, path, 0));
}

// libc makes its custom streams without room for wide characters. Their use would crash, or write
// bytes.
bool lacks_wide(FILE* stream) {
  if (stream->_wide_data != nullptr) return false;
  explain_once(Refusal::kWide, ::fileno(stream));
  errno = ENOTSUP;
  return true;
}

// As lacks_wide(), for a read or write, which must not look like the end of the file.
bool fails_as_wide(FILE* stream) {
  stream = standing_in_for(stream);
  if (!lacks_wide(stream)) return false;
  stream->_flags |= _IO_ERR_SEEN;
  return true;
}

}  // namespace
}  // namespace graphlane::shim

using namespace graphlane;
using namespace graphlane::shim;

FILE* hook_fopen(const char* path, const char* mode) {
  FILE* stream = nullptr;
  foresee(AT_FDCWD, path, flags_of_mode(mode));
  if (open_to_write(path, mode, &stream)) return stream;
  return opened(real::fopen(path, mode));
}

FILE* hook_fopen64(const char* path, const char* mode) {
  FILE* stream = nullptr;
  foresee(AT_FDCWD, path, flags_of_mode(mode));
  if (open_to_write(path, mode, &stream)) return stream;
  return opened(real::fopen64(path, mode));
}

FILE* hook_fdopen(int fd, const char* mode) {
  Access access = Access::kNone;
  if (const OpenFileRef file = acquire_stub(fd, Group::stream)) access = file.access();
  if (access == Access::kNone) return real::fdopen(fd, mode);
  const int flags = flags_of_mode(mode);
  const auto wanted = static_cast<int>(access_of_flags(flags));
  if ((wanted & ~static_cast<int>(access)) != 0) {
    errno = EINVAL;
    return nullptr;
  }
  const int has_flags = sys::fcntl(fd, F_GETFL);
  if ((flags & O_APPEND) != 0 && (has_flags & O_APPEND) == 0) {
    sys::fcntl(fd, F_SETFL, has_flags | O_APPEND);
    if (begins_at_end(flags)) hook_lseek(fd, 0, SEEK_END);
  }
  return stub_stream(fd, mode);
}

#define FREOPEN_HOOK(name)                                              \
  FILE* hook_##name(const char* path, const char* mode, FILE* stream) { \
    if (path != nullptr) foresee(AT_FDCWD, path, flags_of_mode(mode));  \
    if (would_open_stub(path, mode, stream)) {                          \
      if (path != nullptr)                                              \
        explain_once(Refusal::kFreopen, path);                          \
      else                                                              \
        explain_once(Refusal::kFreopen, ::fileno(stream));              \
      errno = ENOTSUP;                                                  \
      return nullptr;                                                   \
    }                                                                   \
    const OpenFileRef written = file_of(stream);                        \
    forget(::fileno(stream));                                           \
    FILE* result = real::name(path, mode, stream);                      \
    if (result != nullptr) forget(::fileno(result));                    \
    return result;                                                      \
  }
FREOPEN_HOOK(freopen)
FREOPEN_HOOK(freopen64)
#undef FREOPEN_HOOK

int hook_fclose(FILE* stream) {
  if (stream == nullptr) return real::fclose(stream);
  const OpenFileRef written = file_of(stream);
  forget(::fileno(stream));
  end_standard_stream(stream);
  return real::fclose(stream);
}

// The functions that libstdc++ calls for std::cin and std::cout.
#define STANDARD_HOOK(result, name, parameters, ...) \
  result hook_##name parameters { return real::name(__VA_ARGS__); }
STANDARD_HOOK(size_t, fread, (void* buffer, size_t size, size_t count, FILE* stream), buffer, size,
              count, standing_in_for(stream))
STANDARD_HOOK(size_t, fwrite, (const void* buffer, size_t size, size_t count, FILE* stream), buffer,
              size, count, standing_in_for(stream))
STANDARD_HOOK(int, getc, (FILE * stream), standing_in_for(stream))
STANDARD_HOOK(int, fgetc, (FILE * stream), standing_in_for(stream))
STANDARD_HOOK(int, ungetc, (int character, FILE* stream), character, standing_in_for(stream))
STANDARD_HOOK(int, putc, (int character, FILE* stream), character, standing_in_for(stream))
STANDARD_HOOK(int, fputc, (int character, FILE* stream), character, standing_in_for(stream))
STANDARD_HOOK(int, fputs, (const char* text, FILE* stream), text, standing_in_for(stream))
STANDARD_HOOK(int, fflush, (FILE * stream), standing_in_for(stream))
STANDARD_HOOK(int, fseeko64, (FILE * stream, off64_t offset, int whence), standing_in_for(stream),
              offset, whence)
STANDARD_HOOK(off64_t, ftello64, (FILE * stream), standing_in_for(stream))
#undef STANDARD_HOOK

#define WIDE_HOOK(result, name, parameters, arguments, used, failure) \
  result hook_##name parameters { return fails_as_wide(used) ? failure : real::name arguments; }
WIDE_HOOK(wint_t, fgetwc, (FILE * stream), (stream), stream, WEOF)
WIDE_HOOK(wint_t, getwc, (FILE * stream), (stream), stream, WEOF)
WIDE_HOOK(wint_t, fgetwc_unlocked, (FILE * stream), (stream), stream, WEOF)
WIDE_HOOK(wint_t, getwc_unlocked, (FILE * stream), (stream), stream, WEOF)
WIDE_HOOK(wint_t, getwchar, (), (), stdin, WEOF)
WIDE_HOOK(wint_t, getwchar_unlocked, (), (), stdin, WEOF)
WIDE_HOOK(wint_t, ungetwc, (wint_t character, FILE* stream), (character, stream), stream, WEOF)
WIDE_HOOK(wchar_t*, fgetws, (wchar_t * line, int room, FILE* stream), (line, room, stream), stream,
          nullptr)
WIDE_HOOK(wchar_t*, fgetws_unlocked, (wchar_t * line, int room, FILE* stream), (line, room, stream),
          stream, nullptr)
WIDE_HOOK(wchar_t*, __fgetws_chk, (wchar_t * line, size_t size, int room, FILE* stream),
          (line, size, room, stream), stream, nullptr)
WIDE_HOOK(wchar_t*, __fgetws_unlocked_chk, (wchar_t * line, size_t size, int room, FILE* stream),
          (line, size, room, stream), stream, nullptr)
WIDE_HOOK(int, vfwscanf, (FILE * stream, const wchar_t* format, va_list values),
          (stream, format, values), stream, EOF)
WIDE_HOOK(int, __isoc99_vfwscanf, (FILE * stream, const wchar_t* format, va_list values),
          (stream, format, values), stream, EOF)
WIDE_HOOK(int, vwscanf, (const wchar_t* format, va_list values), (format, values), stdin, EOF)
WIDE_HOOK(int, __isoc99_vwscanf, (const wchar_t* format, va_list values), (format, values), stdin,
          EOF)
WIDE_HOOK(wint_t, fputwc, (wchar_t character, FILE* stream), (character, stream), stream, WEOF)
WIDE_HOOK(wint_t, putwc, (wchar_t character, FILE* stream), (character, stream), stream, WEOF)
WIDE_HOOK(wint_t, fputwc_unlocked, (wchar_t character, FILE* stream), (character, stream), stream,
          WEOF)
WIDE_HOOK(wint_t, putwc_unlocked, (wchar_t character, FILE* stream), (character, stream), stream,
          WEOF)
WIDE_HOOK(wint_t, putwchar, (wchar_t character), (character), stdout, WEOF)
WIDE_HOOK(wint_t, putwchar_unlocked, (wchar_t character), (character), stdout, WEOF)
WIDE_HOOK(int, fputws, (const wchar_t* text, FILE* stream), (text, stream), stream, -1)
WIDE_HOOK(int, fputws_unlocked, (const wchar_t* text, FILE* stream), (text, stream), stream, -1)
WIDE_HOOK(int, vfwprintf, (FILE * stream, const wchar_t* format, va_list values),
          (stream, format, values), stream, -1)
WIDE_HOOK(int, __vfwprintf_chk, (FILE * stream, int flag, const wchar_t* format, va_list values),
          (stream, flag, format, values), stream, -1)
WIDE_HOOK(int, vwprintf, (const wchar_t* format, va_list values), (format, values), stdout, -1)
WIDE_HOOK(int, __vwprintf_chk, (int flag, const wchar_t* format, va_list values),
          (flag, format, values), stdout, -1)
#undef WIDE_HOOK

// Calls the twin that takes a va_list.
#define WIDE_VARIADIC_HOOK(name, twin, parameters, ...) \
  int hook_##name parameters {                          \
    va_list values;                                     \
    va_start(values, format);                           \
    const int count = hook_##twin(__VA_ARGS__, values); \
    va_end(values);                                     \
    return count;                                       \
  }
WIDE_VARIADIC_HOOK(fwscanf, vfwscanf, (FILE * stream, const wchar_t* format, ...), stream, format)
WIDE_VARIADIC_HOOK(__isoc99_fwscanf, __isoc99_vfwscanf, (FILE * stream, const wchar_t* format, ...),
                   stream, format)
WIDE_VARIADIC_HOOK(wscanf, vwscanf, (const wchar_t* format, ...), format)
WIDE_VARIADIC_HOOK(__isoc99_wscanf, __isoc99_vwscanf, (const wchar_t* format, ...), format)
WIDE_VARIADIC_HOOK(fwprintf, vfwprintf, (FILE * stream, const wchar_t* format, ...), stream, format)
WIDE_VARIADIC_HOOK(__fwprintf_chk, __vfwprintf_chk,
                   (FILE * stream, int flag, const wchar_t* format, ...), stream, flag, format)
WIDE_VARIADIC_HOOK(wprintf, vwprintf, (const wchar_t* format, ...), format)
WIDE_VARIADIC_HOOK(__wprintf_chk, __vwprintf_chk, (int flag, const wchar_t* format, ...), flag,
                   format)
#undef WIDE_VARIADIC_HOOK

// When asked for its orientation, the stream says "bytes".
int hook_fwide(FILE* stream, int mode) {
  return mode > 0 && lacks_wide(stream) ? -1 : real::fwide(stream, mode);
}
