#include "shim/locate/foresight.h"

#include <elf.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/process/hidden_io.h"
#include "iomgr/base/sys.h"
#include "iomgr/server/mount_request.h"
#include "iomgr/server/server_socket.h"
#include "shim/base/process.h"
#include "shim/base/settings.h"
#include "shim/base/slow_lock.h"
#include "shim/base/text.h"
#include "shim/fd/fd_table.h"
#include "shim/locate/locate.h"
#include "shim/locate/stub_path.h"

namespace graphlane::shim {
namespace {

constexpr timeval kMounterPatience{.tv_sec = 20, .tv_usec = 0};
constexpr int kRingFdMax = 1024;  // descriptors that are checked for rings
constexpr int kScriptsMax = 5;    // the kernel's limit
constexpr std::string_view kVolumeFile = "/.graphlane/volume.json";

class KeptErrno {
 public:
  ~KeptErrno() { errno = saved_; }

 private:
  const int saved_ = errno;
};

// Hashes of the names of volumes that could not be mounted: they are not tried again.
constexpr uint32_t kFailedMax = 16;
std::atomic<uint64_t> failed_roots[kFailedMax];
std::atomic<uint32_t> failed_count{0};

uint64_t hash_of(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash | 1;
}

bool has_failed(uint64_t root) {
  for (const auto& one : failed_roots) {
    if (one.load(std::memory_order_relaxed) == root) return true;
  }
  return false;
}

bool send_all(int socket, const void* data, size_t size) {
  constexpr size_t kPieceMax = 32 << 10;  // a message fits the socket's buffer
  for (auto* at = static_cast<const char*>(data); size > 0;) {
    const iovec piece{.iov_base = const_cast<char*>(at),
                      .iov_len = size < kPieceMax ? size : kPieceMax};
    if (!send_message(socket, {&piece, 1}, {})) return false;
    at += piece.iov_len;
    size -= piece.iov_len;
  }
  return true;
}

Fd connect_to_mounter() {
  const char* const name = settings().mounter;
  if (name == nullptr || std::strlen(name) != kServerNameSize) return {};
  return ServerAddress::of_mount(name).connect(kMounterPatience);
}

// False: no answer, or the mount failed.
bool is_answered(int socket) {
  MountReply reply{.magic = 0};
  ssize_t n;
  do n = sys::read(socket, &reply, sizeof reply);
  while (n < 0 && errno == EINTR);
  return n == sizeof reply && reply.magic == MountRequest::kMagic && reply.error == 0;
}

// Two paths, which are much for a signal's stack.
struct PlacePaths {
  PathText place;
  PathText file;  // scratch
};
PlacePaths own_paths;  // under the SlowLock

// Cuts the path to the root of its volume. False: it is in no volume.
bool cut_to_root(PlacePaths* paths) {
  PathText* const path = &paths->place;
  for (;;) {
    paths->file.cut(0);
    paths->file << path->view() << kVolumeFile;
    if (paths->file.ok() && ::syscall(SYS_faccessat, AT_FDCWD, paths->file.c_str(), F_OK) == 0) {
      return true;
    }
    const size_t slash = path->view().rfind('/');
    if (slash == std::string_view::npos) return false;
    path->cut(slash);
  }
}

// Opens (O_PATH) the file or directory that may lie in an unmounted volume; for a new file, its
// directory: then under the SlowLock.
Fd open_candidate(int directory, const char* path, int flags) {
  struct stat st;
  const int nofollow = (flags & O_NOFOLLOW) != 0 ? AT_SYMLINK_NOFOLLOW : 0;
  if (::syscall(SYS_newfstatat, directory, path, &st, nofollow) == 0) {
    if (!has_stub_size(st) && !S_ISDIR(st.st_mode)) return {};
    return Fd(sys::openat(directory, path, O_PATH | O_CLOEXEC | (flags & O_NOFOLLOW)));
  }
  return (flags & O_CREAT) != 0 && errno == ENOENT ? open_parent(directory, path) : Fd();
}

bool read_at(int fd, void* buffer, size_t size, uint64_t offset) {
  return sys::pread(fd, buffer, size, offset) == static_cast<ssize_t>(size);
}

// Finds the note that Go's linker leaves: 4 bytes of name, "Go".
bool has_go_note(int fd, const Elf64_Phdr& header) {
  char note[256];
  const size_t size = header.p_filesz < sizeof note ? header.p_filesz : sizeof note;
  constexpr std::string_view kGo("\4\0\0\0Go\0\0", 8);  // type, then name
  return read_at(fd, note, size, header.p_offset) &&
         std::string_view(note, size).find(kGo) != std::string_view::npos;
}

bool is_blind_elf(int fd, const Elf64_Ehdr& elf) {
  if (elf.e_ident[EI_CLASS] != ELFCLASS64) return true;  // the library is a 64-bit one
  bool has_loader = false;
  for (unsigned i = 0; i < elf.e_phnum; ++i) {
    Elf64_Phdr header;
    if (!read_at(fd, &header, sizeof header, elf.e_phoff + uint64_t{i} * elf.e_phentsize)) {
      return false;
    }
    if (header.p_type == PT_NOTE && has_go_note(fd, header)) return true;
    if (header.p_type != PT_INTERP) continue;
    has_loader = true;
    char name[64] = {};
    const size_t size = header.p_filesz < sizeof name ? header.p_filesz : sizeof name;
    if (read_at(fd, name, size, header.p_offset) &&
        std::string_view(name, size).find("ld-musl") != std::string_view::npos) {
      return true;
    }
  }
  return !has_loader;
}

bool changes_identity(int fd) {
  struct stat st;
  if (sys::fstat(fd, &st) != 0) return false;
  const bool user =
      (st.st_mode & S_ISUID) != 0 && st.st_uid != static_cast<uid_t>(::syscall(SYS_getuid));
  const bool group =
      (st.st_mode & S_ISGID) != 0 && st.st_gid != static_cast<gid_t>(::syscall(SYS_getgid));
  return user || group ||
         (::syscall(SYS_getuid) != 0 &&
          ::syscall(SYS_fgetxattr, fd, "security.capability", nullptr, 0) > 0);
}

}  // namespace

void foresee(int directory, const char* path, int flags) {
  if (settings().mounter == nullptr || path == nullptr || *path == '\0' || in_vfork_child()) return;
  const KeptErrno kept;
  const SlowLockGuard lock(slow_lock);
  if (!lock) return;
  PathText& place = own_paths.place;
  const Fd candidate = open_candidate(directory, path, flags);
  if (!candidate || lies_on_fuse(candidate.get())) return;
  find_path(candidate.get(), &place);
  if (!cut_to_root(&own_paths)) return;
  const uint64_t root = hash_of(place.view());
  if (has_failed(root)) return;
  const Fd mounter = connect_to_mounter();
  const MountRequest request{.kind = MountRequest::kPath,
                             .text_bytes = static_cast<uint32_t>(place.view().size())};
  if (mounter && send_all(mounter.get(), &request, sizeof request) &&
      send_all(mounter.get(), place.view().data(), place.view().size()) &&
      is_answered(mounter.get())) {
    return;
  }
  failed_roots[failed_count.fetch_add(1, std::memory_order_relaxed) % kFailedMax].store(
      root, std::memory_order_relaxed);
}

bool is_blind(const char* path) {
  const KeptErrno kept;
  char interpreter[256];
  for (int script = 0; script < kScriptsMax; ++script) {
    const Fd fd(sys::openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    union {
      Elf64_Ehdr elf;
      char text[256];
    } head = {};
    const ssize_t length = fd ? sys::pread(fd.get(), &head, sizeof head, 0) : -1;
    if (length >= static_cast<ssize_t>(sizeof head.elf) &&
        std::memcmp(&head, ELFMAG, SELFMAG) == 0) {
      return is_blind_elf(fd.get(), head.elf) || changes_identity(fd.get());
    }
    if (length < 3 || head.text[0] != '#' || head.text[1] != '!') return false;
    std::string_view line(head.text + 2, static_cast<size_t>(length) - 2);
    line = line.substr(0, line.find('\n'));
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return false;
    line.remove_prefix(begin);
    line = line.substr(0, line.find_first_of(" \t\r"));
    if (line.size() >= sizeof interpreter) return false;
    std::memcpy(interpreter, line.data(), line.size());
    interpreter[line.size()] = '\0';
    path = interpreter;
  }
  return false;
}

bool gets_library(const char* path, char* const* environment) {
  constexpr std::string_view kPreload = "LD_PRELOAD=", kLibrary = "libgraphlane";
  bool preloads = false;
  for (char* const* entry = environment; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    preloads |= text.starts_with(kPreload) && text.find(kLibrary) != text.npos;
  }
  return preloads && !is_blind(path);
}

namespace {

bool name_unmounted(char* const* words, PlacePaths* paths) {
  for (char* const* word = words; *word != nullptr; ++word) {
    const char* const value = std::strchr(*word, '=');
    for (const char* path : {static_cast<const char*>(*word), value == nullptr ? "" : value + 1}) {
      const Fd candidate = *path == '\0' ? Fd() : open_candidate(AT_FDCWD, path, 0);
      if (!candidate || lies_on_fuse(candidate.get())) continue;
      find_path(candidate.get(), &paths->place);
      if (cut_to_root(paths)) return true;
    }
  }
  return false;
}

// A vfork() child takes no lock, so it has paths of its own.
bool name_unmounted_in_vfork_child(char* const* words) {
  void* const memory = sys::map_memory(sizeof(PlacePaths));
  if (memory == nullptr) return false;
  const bool found = name_unmounted(words, new (memory) PlacePaths);
  sys::munmap(memory, sizeof(PlacePaths));
  return found;
}

}  // namespace

bool names_unmounted(char* const* words) {
  const KeptErrno kept;
  if (in_vfork_child()) return name_unmounted_in_vfork_child(words);
  const SlowLockGuard lock(slow_lock);
  return lock && name_unmounted(words, &own_paths);
}

int serve_alone() {
  static std::atomic<bool> is_alone{false};
  if (settings().program == nullptr || settings().no_mount ||
      is_alone.load(std::memory_order_relaxed)) {
    return 0;
  }
  Text<40> link;
  char target[32];
  const int limit = internal_fd_floor() < kRingFdMax ? internal_fd_floor() : kRingFdMax;
  for (int fd = 0; fd < limit; ++fd) {
    link.cut(0);
    link << "/proc/self/fd/" << static_cast<uint64_t>(fd);
    const long length = ::syscall(SYS_readlinkat, AT_FDCWD, link.c_str(), target, sizeof target);
    if (length > 0 &&
        std::string_view(target, static_cast<size_t>(length)) == "anon_inode:[io_uring]") {
      return EIO;
    }
  }
  (void)hide_unseen_io();
  is_alone.store(true, std::memory_order_relaxed);
  return 0;
}

bool foresee_program(const ProgramCall& call) {
  const KeptErrno kept;
  const Fd mounter = connect_to_mounter();
  if (!mounter) return settings().program == nullptr;  // no mounter: starts the program unchanged
  MountRequest request{.kind = MountRequest::kCommand};
  size_t bytes = std::strlen(call.path) + 1;
  for (char* const* word = call.words; word != nullptr && *word != nullptr; ++word) {
    bytes += std::strlen(*word) + 1;
    ++request.word_count;
  }
  for (char* const* entry = call.environment; entry != nullptr && *entry != nullptr; ++entry) {
    bytes += std::strlen(*entry) + 1;
  }
  if (bytes > MountRequest::kTextMax) return true;
  request.text_bytes = static_cast<uint32_t>(bytes);
  bool sent = send_all(mounter.get(), &request, sizeof request) &&
              send_all(mounter.get(), call.path, std::strlen(call.path) + 1);
  for (char* const* const* list : {&call.words, &call.environment}) {
    for (char* const* text = *list; text != nullptr && *text != nullptr; ++text) {
      sent = sent && send_all(mounter.get(), *text, std::strlen(*text) + 1);
    }
  }
  if (!sent || !is_answered(mounter.get())) {
    complain(
        call.words[0],
        "the preload library is not in it; of volumes that are not mounted and that its words do "
        "not name it reads stubs");
  }
  return true;
}

const char* run_again(const ProgramCall& call, const char** words) {
  int count = 0;
  for (const char* word : {settings().program, "run", "--again"}) words[count++] = word;
  if (settings().no_mount) words[count++] = "--no-mount";
  for (const char* word : {"--program", call.path, "--"}) words[count++] = word;
  for (char* const* word = call.words; *word != nullptr; ++word) words[count++] = *word;
  words[count] = nullptr;
  return settings().program;
}

}  // namespace graphlane::shim
