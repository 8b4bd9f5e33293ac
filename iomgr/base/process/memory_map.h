// The areas of the process's memory: by PROCMAP_QUERY of /proc/self/maps where Linux (6.11) has it,
// otherwise from the text of that file.
//
// `maps_fd` is /proc/self/maps, opened by this process. In a forked child, the parent's descriptor
// describes the parent.
//
// Threads: any. No allocation, no exceptions: the preload library uses this too. Keeps errno.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "iomgr/base/fd.h"
#include "iomgr/base/function_ref.h"

namespace graphlane {

struct MemoryArea {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  bool is_stack = false;  // the first thread's
  ino_t inode = 0;        // of the file behind it; 0: none

  bool is_private_and_writable() const { return readable && writable && !executable && !shared; }
};

Fd open_memory_map();

// The area that contains the address, or the next one above it. False: there is none, or it is
// unknown.
bool find_area(int maps_fd, uintptr_t address, MemoryArea* area);
// As find_area(), from the text, which every kernel has.
bool find_area_in_text(int maps_fd, uintptr_t address, MemoryArea* area);

// Visits every area of [begin, end), upwards, each cut to that range. False: there is a gap, or
// `visit` returned false.
bool for_each_area(int maps_fd, uintptr_t begin, uintptr_t end,
                   FunctionRef<bool(const MemoryArea&)> visit);

// Makes the memory's pages present for writing, as MADV_POPULATE_WRITE does. False: some of it is
// not mapped, or not writable. A copy into it would raise a signal, where read(2) fails with EFAULT.
bool populate_writable(void* memory, size_t length);

}  // namespace graphlane
