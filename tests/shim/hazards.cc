// hazards NAME FILE: does what preload libraries are known to get wrong, and prints what a program
// sees of it. It knows nothing of Graphlane: its output for a plain file and for the striped twin
// must be the same.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

extern char** environ;

namespace {

__attribute__((noinline)) uint64_t digest(const void* data, ssize_t length) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  uint64_t hash = 14695981039346656037u;  // FNV-1a
  for (ssize_t i = 0; i < length; ++i) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

// A call's result, its errno if it failed, and the bytes that it gave.
void say(const char* what, ssize_t result, const void* data = nullptr) {
  const int error = errno;
  std::printf("%s: %zd", what, result);
  if (result < 0) std::printf(" %s", strerrorname_np(error));
  if (data != nullptr && result > 0) {
    std::printf(" %016llx", static_cast<unsigned long long>(digest(data, result)));
  }
  std::printf("\n");
}

void require(bool holds, const char* what) {
  if (holds) return;
  std::printf("not so: %s\n", what);
  std::exit(1);
}

constexpr size_t kLarge = 2'500'000;  // over several stripe units
std::vector<char> buffer(kLarge);

int open_file(const char* path, int flags = O_RDONLY) {
  const int fd = open(path, flags);
  require(fd >= 0, "the file opens");
  return fd;
}

// Reads the whole of `buffer` from `offset`.
void say_large(const char* what, int fd, off_t offset = 12345) {
  say(what, pread(fd, buffer.data(), kLarge, offset), buffer.data());
}

// Reads with O_DIRECT, which needs multiples of a block.
void say_direct(const char* path) {
  static char* const aligned = static_cast<char*>(aligned_alloc(4096, 2 << 20));
  const int fd = open_file(path, O_RDONLY | O_DIRECT);
  say("direct", pread(fd, aligned, 2 << 20, 8192), aligned);
}

int open_descriptors() {
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

void end_child(pid_t child) {
  int status = 0;
  require(waitpid(child, &status, 0) == child && WIFEXITED(status), "the child ends");
  say("child", WEXITSTATUS(status));
}

// ---- 1: a shared offset, 13: descriptor numbers that are passed in unusual ways

void send_descriptor(int socket, int fd) {
  char byte = 'x';
  iovec iov{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof fd)] = {};
  msghdr message{};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof fd);
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  require(sendmsg(socket, &message, 0) == 1, "sendmsg");
}

int receive_descriptor(int socket) {
  char byte = 0;
  iovec iov{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &iov;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  require(recvmsg(socket, &message, 0) == 1, "recvmsg");
  int fd = -1;
  std::memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
  return fd;
}

void sent_to_another_process(const char* path) {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  const pid_t child = fork();
  if (child == 0) {
    const int fd = receive_descriptor(ends[1]);
    _exit(read(fd, buffer.data(), 1'100'000) == 1'100'000 ? digest(buffer.data(), 1'100'000) & 127
                                                          : 200);
  }
  const int fd = open_file(path);
  say("before", read(fd, buffer.data(), 1000), buffer.data());
  send_descriptor(ends[0], fd);
  end_child(child);
  say("where the other left off", read(fd, buffer.data(), 5000), buffer.data());
  say("offset", lseek(fd, 0, SEEK_CUR));
}

void received_under_a_known_number(const char* path) {
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
  send_descriptor(ends[0], open_file(path));
  const int zero = open_file("/dev/zero");
  say("another file", read(zero, buffer.data(), 100), buffer.data());
  syscall(SYS_close, zero);
  const int fd = receive_descriptor(ends[1]);
  require(fd == zero, "the number is used again");
  say_large("the file", fd);
}

void replaced_by_a_raw_system_call(const char* path) {
  const int fd = open_file(path);
  say_large("the file", fd);
  const int zero = open_file("/dev/zero");
  syscall(SYS_dup3, zero, fd, 0);
  say_large("zeros", fd);
  const int again = open_file(path);
  say_large("the file again", again);
}

// ---- 3: the same call by each of its names

template <class Result, class... Arguments>
Result call(const char* name, Arguments... arguments) {
  void* function = dlsym(RTLD_DEFAULT, name);
  require(function != nullptr, name);
  return reinterpret_cast<Result (*)(Arguments...)>(function)(arguments...);
}

void by_every_name(const char* path) {
  const size_t count = 1'500'000;
  void* const room = buffer.data();
  const iovec iov[2] = {{buffer.data(), 700'000}, {buffer.data() + 700'000, count - 700'000}};
  for (const char* name : {"open", "open64", "__open", "__open64"}) {
    const int fd = call<int, const char*, int, mode_t>(name, path, O_RDONLY, 0);
    say(name, pread(fd, room, 1000, 0), room);
    call<int, int>("__close", fd);
  }
  for (const char* name : {"__open_2", "__open64_2"}) {
    const int fd = call<int, const char*, int>(name, path, O_RDONLY);
    say(name, pread(fd, room, 1000, 0), room);
  }
  const int fd = open_file(path);
  for (const char* name : {"read", "__read"}) {
    say(name, call<ssize_t, int, void*, size_t>(name, fd, room, count), room);
  }
  for (const char* name : {"pread", "pread64", "__pread64"}) {
    say(name, call<ssize_t, int, void*, size_t, off_t>(name, fd, room, count, 77), room);
  }
  for (const char* name : {"lseek", "lseek64", "__lseek"}) {
    say(name, call<off_t, int, off_t, int>(name, fd, -5, SEEK_END));
  }
  lseek(fd, 0, SEEK_SET);
  say("__read_chk",
      call<ssize_t, int, void*, size_t, size_t>("__read_chk", fd, room, count, kLarge), room);
  for (const char* name : {"__pread_chk", "__pread64_chk"}) {
    say(name, call<ssize_t, int, void*, size_t, off_t, size_t>(name, fd, room, count, 77, kLarge),
        room);
  }
  say("readv", call<ssize_t, int, const iovec*, int>("readv", fd, iov, 2), room);
  for (const char* name : {"preadv", "preadv64"}) {
    say(name, call<ssize_t, int, const iovec*, int, off_t>(name, fd, iov, 2, 77), room);
  }
  for (const char* name : {"preadv2", "preadv64v2"}) {
    say(name, call<ssize_t, int, const iovec*, int, off_t, int>(name, fd, iov, 2, -1, 0), room);
  }
  struct stat st;
  for (const char* name : {"stat", "stat64", "lstat", "lstat64"}) {
    call<int, const char*, struct stat*>(name, path, &st);
    say(name, st.st_size);
  }
  for (const char* name : {"__xstat", "__xstat64", "__lxstat", "__lxstat64"}) {
    call<int, int, const char*, struct stat*>(name, 1, path, &st);
    say(name, st.st_size);
  }
  for (const char* name : {"fstat", "fstat64"}) {
    call<int, int, struct stat*>(name, fd, &st);
    say(name, st.st_size);
  }
  for (const char* name : {"__fxstat", "__fxstat64"}) {
    call<int, int, int, struct stat*>(name, 1, fd, &st);
    say(name, st.st_size);
  }
  for (const char* name : {"__fxstatat", "__fxstatat64"}) {
    call<int, int, int, const char*, struct stat*, int>(name, 1, AT_FDCWD, path, &st, 0);
    say(name, st.st_size);
  }
  call<int, int, int>("__dup2", open_file("/dev/zero"), fd);
  say("__dup2", read(fd, room, 100), room);
}

// ---- 10: errors

void errors(const char* path) {
  const int fd = open_file(path);
  // Volatile: the compiler would see through them.
  char* volatile const nowhere = reinterpret_cast<char*>(16);
  iovec* volatile const no_vector = reinterpret_cast<iovec*>(16);
  say("a vector that is nowhere", readv(fd, no_vector, 3));
  say("preadv of it", preadv(fd, no_vector, 3, 1000));
  iovec many[IOV_MAX + 1];
  for (iovec& one : many) one = {buffer.data(), 1};
  say("too many", readv(fd, many, IOV_MAX + 1));
  many[1].iov_len = static_cast<size_t>(-1);
  say("a negative length", readv(fd, many, 2));
  many[0] = {buffer.data(), 1000};
  many[1] = {nowhere, 1000};
  say("as far as there is memory", preadv(fd, many, 2, 0), buffer.data());
  many[1].iov_len = 10;
  say("unknown flags", preadv2(fd, many, 1, 0, 0x4000'0000));
  size_t volatile huge = size_t{1} << 62;
  say("a count beyond memory", read(fd, buffer.data(), huge));
  huge = SIZE_MAX;
  say("a negative count", pread(fd, buffer.data(), huge, 0));
  const off_t volatile far = LLONG_MAX;
  say("far off", pread(fd, buffer.data(), 10, far));
  auto* pages = static_cast<char*>(
      mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  mprotect(pages + 4096, 4096, PROT_NONE);
  say("a page, then none", pread(fd, pages, 8192, 5000), pages);
  say("the end of a page, then none", pread(fd, pages + 4000, 1'000'000, 1'048'500), pages + 4000);
  say("the offset", lseek(fd, 0, SEEK_CUR));
  int volatile bad = 12345;
  say("no descriptor", read(bad, buffer.data(), 10));
  say("fstat of none", lseek(bad, 0, SEEK_END));
  const int directory = open_file("/tmp", O_RDONLY | O_DIRECTORY);
  say("a directory", read(directory, buffer.data(), 10));
  say("path only", pread(open_file(path, O_PATH), buffer.data(), 10, 0));
  // Success leaves errno alone.
  errno = 77;
  const int again = open_file(path);
  struct stat st;
  (void)!read(again, buffer.data(), kLarge);
  (void)!pread(again, buffer.data(), 100, 10);
  fstat(again, &st);
  stat(path, &st);
  lseek(again, 0, SEEK_END);
  (void)!readv(again, many, 1);
  fcntl(again, F_GETFL);
  close(dup(again));
  close(again);
  say("errno", errno);
}

// ---- 11, 12: children and other programs

void forked_by_a_raw_system_call(const char* path) {
  const int fd = open_file(path);
  say_large("before", fd);
  for (int i = 0; i < 3; ++i) {
    const long child = syscall(SYS_fork);
    if (child == 0) {
      const ssize_t n = pread(fd, buffer.data(), kLarge, 1000 * i);
      _exit(digest(buffer.data(), n) & 127);
    }
    end_child(static_cast<pid_t>(child));
    say_large("meanwhile", fd);
  }
}

__attribute__((noinline)) void close_in_vfork_child(int fd) {
  const pid_t child = vfork();
  if (child == 0) {
    close(fd);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
}

void a_vfork_child_closes(const char* path) {
  const int fd = open_file(path);
  say_large("before", fd);
  const int open_before = open_descriptors();
  for (int i = 0; i < 20; ++i) {
    close_in_vfork_child(fd);
    require(pread(fd, buffer.data(), 100, i) == 100, "it reads on");
  }
  say("more descriptors", open_descriptors() - open_before);
  say_large("after", fd);
}

// Acts as a shell's child before it executes another program.
__attribute__((noinline)) void redirect_in_vfork_child() {
  int ends[2];
  require(pipe(ends) == 0, "pipe");
  const pid_t child = vfork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  close(ends[0]);
  close(ends[1]);
}

void a_vfork_child_comes_first(const char* path) {
  redirect_in_vfork_child();
  const int fd = open_file(path);
  say_large("after a child by vfork", fd);
  const pid_t child = fork();
  if (child == 0) {
    redirect_in_vfork_child();
    say_large("known, after a fork", fd);
    say_large("unknown", open_file(path));
    _exit(0);
  }
  end_child(child);
}

void spawned(const char* path) {
  const int fd = open_file(path);
  say("before", read(fd, buffer.data(), 1'000'001), buffer.data());
  int ends[2];
  require(pipe(ends) == 0, "pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, fd, 0);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  char word[] = "sha256sum";
  char* const words[] = {word, nullptr};
  pid_t child = 0;
  require(posix_spawnp(&child, "sha256sum", &actions, nullptr, words, environ) == 0, "posix_spawn");
  close(ends[1]);
  say("its digest", read(ends[0], buffer.data(), 64), buffer.data());
  end_child(child);
  say("at the end", read(fd, buffer.data(), 100));
}

void an_exec_that_fails(const char* path) {
  const int fd = open_file(path);
  say_large("before", fd);
  say("exec", execl("/no/such/program", "program", nullptr));
  say("exec", execl("/tmp", "program", nullptr));
  say_large("after", fd);
  const pid_t child = fork();
  if (child == 0) {
    execl("/no/such/program", "program", nullptr);
    _exit(pread(fd, buffer.data(), kLarge, 5) == kLarge ? digest(buffer.data(), kLarge) & 127
                                                        : 200);
  }
  end_child(child);
}

void the_environment_is_cleared(const char* path) {
  const int fd = open_file(path);
  clearenv();
  say_large("after", fd);
  say_large("opened after", open_file(path));
}

// ---- 14: programs that close everything

void all_is_closed_by_raw_system_calls(const char* path) {
  const int fd = open_file(path);
  say_large("before", fd);
  for (int i = 3; i < 70'000; ++i) {
    if (i != fd) syscall(SYS_close, i);
  }
  say_large("after", fd);
  say("read", read(fd, buffer.data(), 100'000), buffer.data());
  say_direct(path);
  syscall(SYS_close_range, fd + 1, ~0u, 0);
  say_large("after", fd);
}

void all_is_closed(const char* path) {
  for (int round = 0; round < 3; ++round) {
    const int fd = open_file(path);
    say_large("open", fd);
    rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    for (int i = 3; i < static_cast<int>(std::min<rlim_t>(limit.rlim_cur, 70'000)); ++i) {
      if (i != fd) close(i);
    }
    say_large("others closed", fd);
    closefrom(3);
    say("closed", pread(fd, buffer.data(), 10, 0));
  }
  const int open_before = open_descriptors();
  for (int i = 0; i < 100; ++i) {
    const int fd = open_file(path);
    require(read(fd, buffer.data(), kLarge) == kLarge, "it reads");
    close(fd);
  }
  say("more descriptors", open_descriptors() - open_before);
}

// ---- 14, 16: few descriptors

void few_descriptors(const char* path) {
  const rlimit few{24, 24};
  require(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
  const int fd = open_file(path);
  say_large("with few", fd);
  close(fd);
  // Leaves one descriptor for the file, and none for the library.
  int last = -1;
  for (int n = open_file("/dev/null"); n >= 0; n = open("/dev/null", O_RDONLY)) last = n;
  close(last);
  const int tight = open_file(path);
  (void)!pread(tight, buffer.data(), kLarge, 0);  // EMFILE without a mount
  for (int n = 3; n < last; ++n) {
    if (n != tight) close(n);
  }
  say_large("with room again", tight);
}

void fewer_descriptors_later(const char* path) {
  const int fd = open_file(path);
  say_large("before", fd);
  const rlimit few{16, 16};
  require(setrlimit(RLIMIT_NOFILE, &few) == 0, "setrlimit");
  say_large("after", fd);
  close(fd);
  say_large("opened after", open_file(path));
  say_direct(path);
}

// ---- 15, 17: signals, cancellation, small stacks

int signal_fd = -1;
std::atomic<int> wrong_in_handler{0};
std::atomic<int> handled{0};
uint64_t digest_in_handler = 0;

void on_signal_read(int) {
  const int saved_errno = errno;
  static char own[200'000];
  const ssize_t n = pread(signal_fd, own, sizeof own, 990'000);
  if (n != static_cast<ssize_t>(sizeof own) || digest(own, n) != digest_in_handler) {
    ++wrong_in_handler;
  }
  ++handled;
  errno = saved_errno;
}

// Signals a thread until `done`, without a clock, so at other places each time. It waits until each
// signal is handled, and a little more: otherwise the thread could spend all its time in the
// handler.
class Pest {
 public:
  Pest() : target_(pthread_self()), thread_([this] { work(); }) {}
  ~Pest() {
    done_ = true;
    thread_.join();
  }

 private:
  void work() {
    uint32_t chance = 1;
    while (!done_) {
      const int before = handled;
      pthread_kill(target_, SIGUSR1);
      while (handled == before && !done_) sched_yield();
      chance = chance * 1'664'525 + 1'013'904'223;
      for (uint32_t i = 0; i < chance >> 25; ++i) sched_yield();
    }
  }
  const pthread_t target_;
  std::atomic<bool> done_{false};
  std::thread thread_;
};

void handlers_read(const char* path) {
  const int fd = open_file(path);
  signal_fd = open_file(path);
  digest_in_handler = digest(buffer.data(), pread(fd, buffer.data(), 200'000, 990'000));
  struct sigaction action{};
  action.sa_handler = on_signal_read;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  const uint64_t right = digest(buffer.data(), pread(fd, buffer.data(), kLarge, 777));
  int wrong = 0;
  {
    const Pest pest;
    for (int i = 0; i < 200 || handled < 100; ++i) {
      const int own = open(path, O_RDONLY);  // identified again
      if (pread(own, buffer.data(), kLarge, 777) != kLarge) ++wrong;
      if (i % 10 == 0 && digest(buffer.data(), kLarge) != right) ++wrong;
      close(own);
    }
  }
  say("wrong", wrong);
  say("wrong in the handler", wrong_in_handler);
}

sigjmp_buf way_out;
volatile sig_atomic_t may_leave = 0;

void on_signal_leave(int) {
  ++handled;
  if (may_leave) siglongjmp(way_out, 1);
}

void handlers_leave(const char* path) {
  struct sigaction action{};
  action.sa_handler = on_signal_leave;
  sigaction(SIGUSR1, &action, nullptr);
  static int fd = open_file(path);
  static int left = 0;
  static volatile int rounds = 0;
  const uint64_t right = digest(buffer.data(), pread(fd, buffer.data(), kLarge, 777));
  {
    const Pest pest;
    while (rounds < 300 || left < 50) {
      rounds = rounds + 1;
      if (sigsetjmp(way_out, 1) != 0) {
        may_leave = 0;
        ++left;
      } else {
        may_leave = 1;
        (void)!pread(open(path, O_RDONLY), buffer.data(), kLarge, 100);  // identified again
        may_leave = 0;
      }
      closefrom(fd + 1);
    }
  }
  say("the same bytes",
      pread(fd, buffer.data(), kLarge, 777) == kLarge && digest(buffer.data(), kLarge) == right);
  std::thread([&] { say_large("another thread", open_file(path)); }).join();
  close(fd);
  say_large("opened after", open_file(path));
}

const char* thread_path = nullptr;

void* in_small_stack(void*) {
  const int fd = open(thread_path, O_RDONLY);
  const int direct = open(thread_path, O_RDONLY | O_DIRECT);
  struct stat st;
  say("stat", stat(thread_path, &st) == 0 ? st.st_size : -1);
  say("fstat", fstat(fd, &st) == 0 ? st.st_size : -1);
  say("read", read(fd, buffer.data(), 1000), buffer.data());
  say("over units", pread(fd, buffer.data(), kLarge, 1), buffer.data());
  static char* const aligned = static_cast<char*>(aligned_alloc(4096, 2 << 20));
  say("direct", pread(direct, aligned, 2 << 20, 4096), aligned);
  close(fd);
  close(direct);
  FILE* file = fopen(thread_path, "r");
  say("fread", static_cast<ssize_t>(fread(buffer.data(), 1, 5000, file)), buffer.data());
  fclose(file);
  return nullptr;
}

void on_a_small_stack(const char* path) {
  thread_path = path;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  require(pthread_attr_setstacksize(&attributes, PTHREAD_STACK_MIN) == 0, "a stack of 16 KiB");
  pthread_t thread;
  require(pthread_create(&thread, &attributes, in_small_stack, nullptr) == 0, "pthread_create");
  pthread_join(thread, nullptr);
}

void* read_when_cancelled(void* argument) {
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  pthread_cancel(pthread_self());
  (void)!pread(fd, buffer.data(), 100, 0);  // a cancellation point
  return nullptr;
}

void* read_until_cancelled(void* argument) {
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  std::vector<char> own(1'500'000);
  while (pread(fd, own.data(), own.size(), 0) > 0) ++handled;
  return nullptr;
}

void* make_when_cancelled(void* argument) {
  pthread_cancel(pthread_self());
  (void)!open(static_cast<const char*>(argument), O_RDWR | O_CREAT, 0600);  // a cancellation point
  return nullptr;
}

void* wait_for_a_lock(void* argument) {
  const int fd = static_cast<int>(reinterpret_cast<intptr_t>(argument));
  ++handled;
  (void)lockf(fd, F_LOCK, 0);  // a cancellation point
  return nullptr;
}

// A thread that waits for the cancelled one goes on when that one has ended.
void cancelled_elsewhere(const char* path) {
  const std::string made = std::string(path) + ".made";
  pthread_t thread;
  require(
      pthread_create(&thread, nullptr, make_when_cancelled, const_cast<char*>(made.c_str())) == 0,
      "pthread_create");
  pthread_join(thread, nullptr);
  say_large("opened after", open_file(path));
  unlink(made.c_str());

  const int open_before = open_descriptors();
  int ends[2];
  require(pipe(ends) == 0, "pipe");
  const pid_t child = fork();
  if (child == 0) {
    const int fd = open_file(path, O_RDWR);
    require(lockf(fd, F_LOCK, 0) == 0, "lockf");
    (void)!write(ends[1], "x", 1);
    pause();
  }
  require(read(ends[0], buffer.data(), 1) == 1, "the child has the lock");
  const int fd = open_file(path, O_RDWR);
  handled = 0;
  require(pthread_create(&thread, nullptr, wait_for_a_lock,
                         reinterpret_cast<void*>(static_cast<intptr_t>(fd))) == 0,
          "pthread_create");
  while (handled == 0) sched_yield();
  usleep(100'000);
  pthread_cancel(thread);
  void* result = nullptr;
  pthread_join(thread, &result);
  say("cancelled", result == PTHREAD_CANCELED);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  for (const int one : {fd, ends[0], ends[1]}) close(one);
  say("more descriptors", open_descriptors() - open_before);
}

void cancelled(const char* path) {
  const int fd = open_file(path);
  say_large("before", fd);
  const int open_before = open_descriptors();
  int ends = 0;
  for (const auto work : {read_when_cancelled, read_until_cancelled}) {
    for (int i = 0; i < 20; ++i) {
      const int own = open_file(path);
      handled = 0;
      pthread_t thread;
      require(pthread_create(&thread, nullptr, work,
                             reinterpret_cast<void*>(static_cast<intptr_t>(own))) == 0,
              "pthread_create");
      while (work == read_until_cancelled && handled == 0) sched_yield();
      if (work == read_until_cancelled) pthread_cancel(thread);
      void* result = nullptr;
      pthread_join(thread, &result);
      ends += result == PTHREAD_CANCELED;
      close(own);
    }
  }
  say("ended by it", ends);
  say_large("after", fd);
  close(fd);
  say("more descriptors", std::max(0, open_descriptors() - open_before));
}

// ---- 16: dlopen

void loaded_late(const char* path) {
  const char* library = std::getenv("LIBRARY");  // none: libc itself
  void* handle = dlopen(library, RTLD_NOW);
  require(handle != nullptr, "dlopen");
  const auto read_at =
      reinterpret_cast<ssize_t (*)(int, void*, size_t, off_t)>(dlsym(handle, "pread"));
  const int fd = open_file(path);
  say("pread", read_at(fd, buffer.data(), kLarge, 5), buffer.data());
}

// ---- 19: names that change under an open file

void unlinked_and_renamed(const char* path) {
  const std::string other = std::string(path) + ".renamed";
  const int fd = open_file(path);
  const int late = open_file(path);
  say_large("before", fd);
  require(rename(path, other.c_str()) == 0, "rename");
  say_large("renamed", fd);
  say_large("by its new name", open_file(other.c_str()));
  say("by its old", open(path, O_RDONLY));
  require(unlink(other.c_str()) == 0, "unlink");
  say_large("unlinked", fd);
  say_large("unlinked before the first read", late);
}

const std::map<std::string, void (*)(const char*)> kHazards = {
    {"sent-to-another-process", sent_to_another_process},
    {"received-under-a-known-number", received_under_a_known_number},
    {"replaced-by-a-raw-system-call", replaced_by_a_raw_system_call},
    {"by-every-name", by_every_name},
    {"errors", errors},
    {"forked-by-a-raw-system-call", forked_by_a_raw_system_call},
    {"a-vfork-child-closes", a_vfork_child_closes},
    {"a-vfork-child-comes-first", a_vfork_child_comes_first},
    {"spawned", spawned},
    {"an-exec-that-fails", an_exec_that_fails},
    {"the-environment-is-cleared", the_environment_is_cleared},
    {"all-is-closed-by-raw-system-calls", all_is_closed_by_raw_system_calls},
    {"all-is-closed", all_is_closed},
    {"few-descriptors", few_descriptors},
    {"fewer-descriptors-later", fewer_descriptors_later},
    {"handlers-read", handlers_read},
    {"handlers-leave", handlers_leave},
    {"on-a-small-stack", on_a_small_stack},
    {"cancelled", cancelled},
    {"cancelled-elsewhere", cancelled_elsewhere},
    {"loaded-late", loaded_late},
    {"unlinked-and-renamed", unlinked_and_renamed},
};

}  // namespace

int main(int argc, char** argv) {
  if (argc == 1) {
    for (const auto& [name, hazard] : kHazards) std::puts(name.c_str());
    return 0;
  }
  const auto hazard = kHazards.find(argv[1]);
  if (argc != 3 || hazard == kHazards.end()) {
    std::fprintf(stderr, "usage: hazards [NAME FILE]\n");
    return 2;
  }
  setvbuf(stdout, nullptr, _IONBF, 0);
  hazard->second(argv[2]);
  return 0;
}
