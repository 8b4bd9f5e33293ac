#include "adapters/share/coordinator/label_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "adapters/share/memory/sealed_memory.h"
#include "iomgr/base/files/atomic_file.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/cache/memory_budget.h"

namespace graphlane::share {

std::string label_file_name(std::string_view graph_file_name) {
  return fmt::format(".graphlane-chunks-{}", graph_file_name);
}

bool is_beside(int directory, const std::string& name, const FileIdentity& graph_file) {
  struct stat st;
  return !name.empty() && name.find('/') == name.npos &&
         ::fstatat(directory, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
         st.st_dev == graph_file.device && st.st_ino == graph_file.inode;
}

bool may_write_label_file(uid_t owner) { return owner == 0 || owner == ::geteuid(); }

Outcome<Fd> read_label_file(int directory, const std::string& name, uid_t owner, uint64_t bytes_max,
                            uint64_t graph_hash, uint64_t chunk_bytes,
                            std::span<const uint64_t> partition_bytes) {
  const std::string file_name = label_file_name(name);
  const Fd file(
      ::openat(directory, file_name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return os_error(errno, file_name, "cannot open");
  struct stat st;
  if (::fstat(file.get(), &st) != 0) return os_error(errno, file_name, "cannot stat");
  if (!S_ISREG(st.st_mode)) return make_error(EINVAL, "{}: not a regular file", file_name);
  const bool trusted = st.st_uid == 0 || st.st_uid == owner || st.st_uid == ::geteuid();
  if (!trusted || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return make_error(EPERM, "{}: user {} is not trusted, or other users may write it", file_name,
                      st.st_uid);
  }
  // The header first, because a foreign file may have any size.
  const auto size_bytes = static_cast<uint64_t>(st.st_size);
  char head[sizeof(LabelHeader)];
  Result<size_t> got = pread_full(file.get(), head, sizeof head, 0);
  if (!got) return os_error(got.error().code, file_name, "cannot read");
  const auto header =
      parse_label_header({head, *got}, size_bytes, graph_hash, chunk_bytes, partition_bytes);
  if (!header) return make_error(EINVAL, "{}: {}", file_name, header.error().text);
  // Overlapping ranges can make labels larger than memory.
  if (size_bytes > std::min(bytes_max, budget_of(MemoryUse::kBuffers, memory_available_bytes()))) {
    return make_error(ENOMEM, "{}: no memory for {} bytes", file_name, size_bytes);
  }
  auto memory = make_memory(size_bytes);
  if (!memory) return memory.error();
  {
    auto mapping = Mapping::for_filling(memory->get(), size_bytes);
    if (!mapping) return mapping.error();
    got = pread_full(file.get(), mapping->data(), size_bytes, 0);
    if (!got) return os_error(got.error().code, file_name, "cannot read");
  }
  if (Outcome<void> sealed = seal(memory->get()); !sealed) return sealed.error();
  const auto mapping = Mapping::of_sealed(memory->get(), size_bytes);
  if (!mapping) return mapping.error();
  const auto labels = Labels::parse(mapping->bytes(), graph_hash, chunk_bytes, partition_bytes);
  if (!labels) return make_error(EINVAL, "{}: {}", file_name, labels.error().text);
  return memory;
}

// The labels name the vertices of each chunk, so their mode must not be wider than the graph's.
Outcome<void> write_label_file(int directory, const std::string& name, std::string_view bytes) {
  const std::string file_name = label_file_name(name);
  struct stat graph;
  const bool is_public = ::fstatat(directory, name.c_str(), &graph, AT_SYMLINK_NOFOLLOW) == 0 &&
                         (graph.st_mode & 0044) == 0044;
  return write_file_atomically(directory, "./" + file_name, file_name, bytes,
                               is_public ? 0644 : 0600);
}

}  // namespace graphlane::share
