// block_log: disk images as files of a FUSE filesystem, which logs every write and every flush.
//
//   ext4 on /dev/loopN ──► loop device ──► MNT/disk0 ──► IMAGE0, and the log
//   the workload       ──────────────────► MNT/mark  ──►             the log
//
//   block_log MNT LOG IMAGE0 [IMAGE1 …]
//
// The log is a sequence of records, of all disks together, in the order of completion:
//
//   offset  bytes
//   0       1      'W' a write, 'F' a flush, 'M' a mark
//   1       1      the number of the disk; 0 for a mark
//   2       2      0
//   4       4      length of what follows the record
//   8       8      offset on the disk; 0 for a flush and a mark
//   16             the bytes written, or the text of the mark
//
// One thread serves all requests, so a flush follows the writes that it makes durable.
#define FUSE_USE_VERSION 35
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Record {
  char kind;
  uint8_t disk;
  uint16_t zero;
  uint32_t length_bytes;
  uint64_t offset;
};
static_assert(sizeof(Record) == 16);

int log_fd = -1;
std::vector<int> images;

// The number of the disk. -1 is the mark, -2 means that there is no such file.
int disk_of(const char* path) {
  if (std::strcmp(path, "/mark") == 0) return -1;
  for (size_t i = 0; i < images.size(); ++i) {
    if (path == "/disk" + std::to_string(i)) return static_cast<int>(i);
  }
  return -2;
}

void append(char kind, int disk, const char* data, size_t length_bytes, off_t offset) {
  const Record record{kind, static_cast<uint8_t>(disk < 0 ? 0 : disk), 0,
                      static_cast<uint32_t>(length_bytes), static_cast<uint64_t>(offset)};
  const iovec pieces[2] = {{const_cast<Record*>(&record), sizeof record},
                           {const_cast<char*>(data), length_bytes}};
  const ssize_t whole = static_cast<ssize_t>(sizeof record + length_bytes);
  if (::writev(log_fd, pieces, length_bytes > 0 ? 2 : 1) != whole) {
    std::perror("block_log: cannot write the log");
    std::abort();
  }
}

int get_attributes(const char* path, struct stat* st, fuse_file_info*) {
  *st = {};
  if (std::strcmp(path, "/") == 0) {
    st->st_mode = S_IFDIR | 0755;
    return 0;
  }
  const int disk = disk_of(path);
  if (disk < -1) return -ENOENT;
  if (disk >= 0 && ::fstat(images[static_cast<size_t>(disk)], st) != 0) return -errno;
  st->st_mode = S_IFREG | 0600;
  st->st_nlink = 1;
  return 0;
}

int open_file(const char* path, fuse_file_info* info) {
  const int disk = disk_of(path);
  if (disk < -1) return -ENOENT;
  info->direct_io = disk < 0;
  return 0;
}

int read_file(const char* path, char* buffer, size_t length, off_t offset, fuse_file_info*) {
  const int disk = disk_of(path);
  if (disk < 0) return 0;
  const ssize_t got = ::pread(images[static_cast<size_t>(disk)], buffer, length, offset);
  return got < 0 ? -errno : static_cast<int>(got);
}

int write_file(const char* path, const char* data, size_t length, off_t offset, fuse_file_info*) {
  const int disk = disk_of(path);
  if (disk >= 0) {
    const ssize_t written = ::pwrite(images[static_cast<size_t>(disk)], data, length, offset);
    if (written != static_cast<ssize_t>(length)) return -EIO;
  }
  append(disk < 0 ? 'M' : 'W', disk, data, length, disk < 0 ? 0 : offset);
  return static_cast<int>(length);
}

int truncate_file(const char* path, off_t, fuse_file_info*) {
  return disk_of(path) == -1 ? 0 : -EPERM;
}

int sync_file(const char* path, int, fuse_file_info*) {
  if (const int disk = disk_of(path); disk >= 0) append('F', disk, nullptr, 0, 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "block_log MNT LOG IMAGE...\n");
    return 2;
  }
  log_fd = ::open(argv[2], O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
  for (int i = 3; i < argc; ++i) images.push_back(::open(argv[i], O_RDWR | O_CLOEXEC));
  for (const int image : images) {
    if (image < 0) log_fd = -1;
  }
  if (log_fd < 0) {
    std::perror("block_log");
    return 1;
  }
  fuse_operations operations = {};
  operations.getattr = get_attributes;
  operations.open = open_file;
  operations.read = read_file;
  operations.write = write_file;
  operations.truncate = truncate_file;
  operations.fsync = sync_file;
  std::string foreground = "-f", single = "-s";
  char* words[] = {argv[0], argv[1], foreground.data(), single.data(), nullptr};
  return fuse_main(4, words, &operations, nullptr);
}
