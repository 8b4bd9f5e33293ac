#include "shim/read/swept_files.h"

#include <sys/stat.h>

#include "iomgr/base/memory_order.h"
#include "iomgr/base/sys.h"
#include "shim/base/settings.h"
#include "shim/fd/open_file.h"

namespace graphlane::shim {
SweptFiles::File* SweptFiles::look_up(const Uuid& file_id) {
  for (File& file : files_) {
    if (file.last_used != 0 && file.file_id == file_id) return &file;
  }
  return nullptr;
}

void SweptFiles::close(File& file) {
  for (uint32_t d = 0; d < file.part_count; ++d) drop_internal(file.parts[d]);
  file.part_count = 0;
  file.last_used = 0;
}

void SweptFiles::close_removed() {
  for (File& file : files_) {
    // Acquire: pairs with the release of the last user.
    if (file.last_used == 0 || file.users.load(std::memory_order_acquire) > 0) continue;
    struct stat st;
    if (sys::fstat(file.parts[0], &st) != 0 || st.st_nlink == 0) close(file);
  }
}

// False: no descriptors are left.
bool SweptFiles::fill(File& slot, const OpenFile& file) {
  slot.file_id = file.file_id;
  slot.map = file.map;
  slot.way.store(Way::kFits, relaxed);  // until share_memory() decides
  for (const int part : file.parts->all_buffered()) {
    const int fd = sys::fcntl(part, F_DUPFD_CLOEXEC, internal_fd_floor());
    if (fd < 0) {
      close(slot);
      return false;
    }
    set_entry(fd, FdEntry::internal());
    slot.parts[slot.part_count++] = fd;
  }
  return true;
}

// A slot for a file with so many parts, perhaps that of the least recently read one. Null: all are
// in use.
SweptFiles::File* SweptFiles::make_room(uint32_t part_count) {
  // An eighth of the program's descriptors, because it needs some, and so do open files.
  const auto parts_max = static_cast<uint32_t>(internal_fd_floor()) / 6;
  for (;;) {
    File* unused = nullptr;
    File* oldest = nullptr;
    uint32_t parts = part_count;
    for (File& each : files_) {
      parts += each.part_count;
      if (each.users.load(std::memory_order_acquire) > 0) continue;
      File*& best = each.last_used == 0 ? unused : oldest;
      if (best == nullptr || each.last_used < best->last_used) best = &each;
    }
    if (unused != nullptr && parts <= parts_max) return unused;
    if (oldest == nullptr) return nullptr;
    close(*oldest);
  }
}

SweptFiles::Ref SweptFiles::use(const OpenFile& file, uint64_t size_bytes) {
  if (!lock_.lock_patiently()) return {};
  File* found = look_up(file.file_id);
  if (found == nullptr) {
    close_removed();
    found = make_room(file.parts->count());
    if (found != nullptr && !fill(*found, file)) found = nullptr;
  }
  if (found != nullptr) {
    found->size_bytes = size_bytes;
    found->last_used = ++clock_;
    found->users.fetch_add(1, std::memory_order_relaxed);
  }
  lock_.unlock();
  return Ref(found);
}

SweptFiles::Ref SweptFiles::find(const Uuid& file_id) {
  if (!lock_.lock_patiently()) return {};
  File* const found = look_up(file_id);
  if (found != nullptr) found->users.fetch_add(1, std::memory_order_relaxed);
  lock_.unlock();
  return Ref(found);
}

void SweptFiles::record_use(const Ref& file, uint64_t wanted_bytes, uint64_t missing_bytes) {
  if (file.is_kept()) kept_share_.record_use(wanted_bytes, missing_bytes);
}

void SweptFiles::share_memory(uint64_t available_bytes) {
  if (!lock_.lock_patiently()) return;
  close_removed();
  uint64_t all_bytes = 0;
  for (const File& file : files_) all_bytes += file.last_used == 0 ? 0 : file.size_bytes;
  const bool fit = fit_in_memory(settings().io_mode, all_bytes, available_bytes) != MemoryFit::kNot;
  kept_share_.adjust(available_bytes);
  uint64_t kept_bytes = kept_share_.bytes();
  for (File& file : files_) {
    if (file.last_used == 0) continue;
    const bool is_kept = !fit && file.size_bytes <= kept_bytes;
    if (is_kept) kept_bytes -= file.size_bytes;
    file.way.store(fit ? Way::kFits : is_kept ? Way::kKept : Way::kLeaves, relaxed);
  }
  lock_.unlock();
}

}  // namespace graphlane::shim
