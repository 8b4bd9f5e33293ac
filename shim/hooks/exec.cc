// exec and spawn. A program that loads the library looks at its files itself. For a program that
// does not (static, Go, without LD_PRELOAD in its environment), the volumes are mounted before it starts (foresight.h).
//
// A vfork() child runs this, too. So it changes no state, takes no lock, and uses only the stack.
#include <alloca.h>
#include <spawn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>

#include "iomgr/base/sys.h"
#include "shim/base/settings.h"
#include "shim/base/text.h"
#include "shim/hooks/hooks.h"
#include "shim/hooks/real.h"
#include "shim/locate/foresight.h"

namespace graphlane::shim {
namespace {

constexpr size_t kWordsOnStackMax = 4096;

bool is_watched() { return settings().mounter != nullptr || settings().program != nullptr; }

bool may_be_executed(const char* path) {
  const int saved_errno = errno;
  struct stat st;
  const bool may_be = ::syscall(SYS_newfstatat, AT_FDCWD, path, &st, 0) == 0 &&
                      S_ISREG(st.st_mode) && ::syscall(SYS_faccessat, AT_FDCWD, path, X_OK) == 0;
  errno = saved_errno;
  return may_be;
}

// The graphlane command itself: it puts off the library, and knows stubs.
bool is_graphlane(const char* path) {
  const int saved_errno = errno;
  struct stat one, other;
  const bool is_same = settings().program != nullptr &&
                       ::syscall(SYS_newfstatat, AT_FDCWD, path, &one, 0) == 0 &&
                       ::syscall(SYS_newfstatat, AT_FDCWD, settings().program, &other, 0) == 0 &&
                       one.st_dev == other.st_dev && one.st_ino == other.st_ino;
  errno = saved_errno;
  return is_same;
}

// Not after a chroot(2).
bool is_graphlane_reachable() {
  return settings().program != nullptr && may_be_executed(settings().program);
}

// A name that means another file to another process.
bool is_own_link(const char* path) { return std::strncmp(path, "/proc/", 6) == 0; }

// "/proc/self/fd/N" for a descriptor of the program that `graphlane run` inherits and starts the
// program by. The program inherits it, too.
class InheritedProgram {
 public:
  // `path`: a name that is_own_link().
  explicit InheritedProgram(const char* path) : fd_(sys::openat(AT_FDCWD, path, O_PATH)) {
    path_ << "/proc/self/fd/" << static_cast<uint64_t>(fd_ < 0 ? 0 : fd_);
  }
  InheritedProgram(const InheritedProgram&) = delete;
  ~InheritedProgram() {  // the program was not started, or it is a child
    if (fd_ >= 0) sys::close(fd_);
  }
  const char* path() const { return fd_ < 0 ? nullptr : path_.c_str(); }

 private:
  const int fd_;
  Text<40> path_;
};

void tell_reads_stubs(char* const* words) {
  complain(words != nullptr && words[0] != nullptr ? words[0] : "a program",
           "the preload library is not in it; volumes that are not mounted it reads as stubs");
}

size_t count_of(char* const* list) {
  size_t count = 0;
  while (list != nullptr && list[count] != nullptr) ++count;
  return count;
}

// Calls `start(path, words)` with `graphlane run` in front of the caller's program.
template <class Start>
int start_by_graphlane(const ProgramCall& call, Start start) {
  const size_t count = count_of(call.words);
  const size_t bytes = (count + kRunAgainWords) * sizeof(char*);
  const char** words = nullptr;
  if (count <= kWordsOnStackMax) {
    words = static_cast<const char**>(alloca(bytes));
  } else {
    words = static_cast<const char**>(sys::map_memory(bytes));
  }
  if (words == nullptr) return start(call.path, call.words);
  const char* const program = run_again(call, words);
  const int status = start(program, const_cast<char* const*>(words));
  if (count > kWordsOnStackMax) sys::munmap(words, bytes);
  return status;
}

// As start_by_graphlane(), for a program that another process does not find by `call.path`.
template <class Start>
int start_link_by_graphlane(const ProgramCall& call, Start start) {
  const int saved_errno = errno;
  const InheritedProgram link(call.path);
  errno = saved_errno;
  if (link.path() == nullptr) return start(call.path, call.words);
  return start_by_graphlane({link.path(), call.words, call.environment}, start);
}

// Calls `start(path, words)` with the caller's program, or with `graphlane run` in front of it.
template <class Start>
int start_program(const ProgramCall& call, Start start) {
  const size_t count = count_of(call.words);
  if (!is_watched() || call.path == nullptr || count == 0) return start(call.path, call.words);
  // A shell tries every directory of $PATH, and libc rejects a file that cannot be executed.
  if (!may_be_executed(call.path)) return start(call.path, call.words);
  if (gets_library(call.path, call.environment)) {
    // It may use io_uring, so it gets a mount, too, if its arguments name a volume.
    const bool asks_later = settings().mounter != nullptr || settings().no_mount;
    if (asks_later || is_own_link(call.path) || !is_graphlane_reachable() ||
        !names_unmounted(call.words)) {
      return start(call.path, call.words);
    }
  } else if (is_graphlane(call.path) ||
             // Not if the volume could not be mounted, or this process left the mounts' namespace.
             (foresee_program(call) && !names_unmounted(call.words))) {
    return start(call.path, call.words);
  }
  if (!is_graphlane_reachable()) {
    tell_reads_stubs(call.words);
    return start(call.path, call.words);
  }
  return is_own_link(call.path) ? start_link_by_graphlane(call, start)
                                : start_by_graphlane(call, start);
}

// Calls `start(path)` with the file that execvp(3) would execute, or with the name itself.
template <class Start>
int with_found(const char* name, Start start) {
  if (!is_watched() || name == nullptr || *name == '\0' || std::strchr(name, '/') != nullptr) {
    return start(name);
  }
  const char* list = ::getenv("PATH");
  if (list == nullptr) list = "/bin:/usr/bin";
  auto* const path = static_cast<char*>(alloca(std::strlen(list) + std::strlen(name) + 3));
  const int saved_errno = errno;
  for (const char* directory = list;;) {
    const size_t length = ::strcspn(directory, ":");
    std::memcpy(path, length > 0 ? directory : ".", length > 0 ? length : 1);
    path[length > 0 ? length : 1] = '/';
    std::strcpy(path + (length > 0 ? length : 1) + 1, name);
    if (may_be_executed(path)) {
      errno = saved_errno;
      return start(path);
    }
    if (directory[length] == '\0') break;
    directory += length + 1;
  }
  errno = saved_errno;
  return start(name);
}

// Collects the words of a call like execl(3), from `first` on.
template <class Call>
int with_list(const char* first, va_list values, Call call) {
  va_list again;
  va_copy(again, values);
  size_t count = 1;
  for (const char* word = first; word != nullptr; word = va_arg(again, const char*)) ++count;
  va_end(again);
  auto** const words = static_cast<char**>(alloca((count + 1) * sizeof(char*)));
  size_t at = 0;
  for (const char* word = first; word != nullptr; word = va_arg(values, const char*)) {
    words[at++] = const_cast<char*>(word);
  }
  words[at] = nullptr;
  return call(words);
}

}  // namespace
}  // namespace graphlane::shim

using namespace graphlane;
using namespace graphlane::shim;

int hook_execve(const char* path, char* const* words, char* const* environment) {
  return start_program({path, words, environment}, [&](const char* file, char* const* list) {
    return real::execve(file, list, environment);
  });
}

int hook_execv(const char* path, char* const* words) { return hook_execve(path, words, environ); }

int hook_execvpe(const char* name, char* const* words, char* const* environment) {
  // Passes the name to libc, which runs a file of no known format by a shell.
  return with_found(name, [&](const char* path) {
    return start_program({path, words, environment}, [&](const char* file, char* const* list) {
      return real::execvpe(file == path ? name : file, list, environment);
    });
  });
}

int hook_execvp(const char* name, char* const* words) { return hook_execvpe(name, words, environ); }

int hook_execl(const char* path, const char* word, ...) {
  va_list values;
  va_start(values, word);
  const int status = with_list(word, values, [&](char** words) { return hook_execv(path, words); });
  va_end(values);
  return status;
}

int hook_execlp(const char* name, const char* word, ...) {
  va_list values;
  va_start(values, word);
  const int status =
      with_list(word, values, [&](char** words) { return hook_execvp(name, words); });
  va_end(values);
  return status;
}

int hook_execle(const char* path, const char* word, ...) {
  va_list values;
  va_start(values, word);
  const int status = with_list(word, values, [&](char** words) {
    return hook_execve(path, words, va_arg(values, char* const*));
  });
  va_end(values);
  return status;
}

int hook_fexecve(int fd, char* const* words, char* const* environment) {
  if (fd < 0) return real::fexecve(fd, words, environment);
  Text<40> path;
  path << "/proc/self/fd/" << static_cast<uint64_t>(fd);
  return start_program({path.c_str(), words, environment},
                       [&](const char* file, char* const* list) {
                         return file == path.c_str() ? real::fexecve(fd, list, environment)
                                                     : real::execve(file, list, environment);
                       });
}

int hook_execveat(int directory, const char* path, char* const* words, char* const* environment,
                  int flags) {
  if (directory == AT_FDCWD && flags == 0) return hook_execve(path, words, environment);
  if (path != nullptr && *path == '\0' && flags == AT_EMPTY_PATH) {
    return hook_fexecve(directory, words, environment);
  }
  return real::execveat(directory, path, words, environment, flags);
}

int hook_posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                     const posix_spawnattr_t* attributes, char* const* words,
                     char* const* environment) {
  return start_program({path, words, environment}, [&](const char* file, char* const* list) {
    return real::posix_spawn(child, file, actions, attributes, list, environment);
  });
}

int hook_posix_spawnp(pid_t* child, const char* name, const posix_spawn_file_actions_t* actions,
                      const posix_spawnattr_t* attributes, char* const* words,
                      char* const* environment) {
  return with_found(name, [&](const char* path) {
    return start_program({path, words, environment}, [&](const char* file, char* const* list) {
      return real::posix_spawnp(child, file == path ? name : file, actions, attributes, list,
                                environment);
    });
  });
}

int hook_chdir(const char* path) {
  foresee(AT_FDCWD, path, O_DIRECTORY);
  return real::chdir(path);
}

DIR* hook_opendir(const char* path) {
  foresee(AT_FDCWD, path, O_DIRECTORY);
  return real::opendir(path);
}
