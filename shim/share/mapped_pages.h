// MappedPages: maps a file's pages into the buffer of a read instead of copying
// (GRAPHLANE_SHARE=map).
//
//   buffer   | head | page | page | page | tail |
//             copied   the part's own       copied
//
// However many programs have a block in their buffers, it is in memory once. The pages are mapped
// privately: a write to the buffer copies that page, as after a fork.
//
// **No process may change the file** while a buffer may show it: until the program, and all its
// forked children, have ended. They hold StubLock::kMapped by a descriptor, the permit. A writer of
// the file gets EBUSY.
//
// **Replaced memory** is private, writable, and not a stack; the kernel is asked each time. To the
// program it stays the same, except for its registrations in the kernel. Locked pages (mlock), and
// pages given to a device (a buffer registered with io_uring), are no longer those of the buffer.
// So the user must ask for this mode.
//
// Allocators expect zeros after madvise(MADV_DONTNEED). The library hooks that call, and restores
// private memory first (hooks/memory.cc).
//
// Threads: any; permit_mapping() under the SlowLock.
// No allocation, no exceptions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iomgr/base/fd.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane::shim {

struct OpenFile;

// Whether reads of the file should be mapped, and it has no permit yet.
bool wants_permit(const OpenFile& file);

// Keeps the permit until the process ends. Empty: refused.
void permit_mapping(const OpenFile& file, Fd permit);

// Whether there is a permit for the file.
bool may_map(const OpenFile& file);

// How a shared read fills the caller's buffer.
enum class Fill { kMap, kCopy };

// Prepares a buffer for a read of the file: by kMap where its memory may be replaced by pages of
// the file (never without `shares`). Where the file may not be mapped at all, hides the buffer
// first.
Fill prepare_buffer(const OpenFile& file, void* buffer, size_t length, bool shares);

// Maps a range of the file into a buffer prepared for it. False: it cannot be read, or (without
// `waits`) some of it is not in the page cache. Part of the buffer may be mapped then.
bool show_range(const OpenFile& file, ByteRange range, char* buffer, bool waits);

// Replaces mapped whole pages of the buffer by private memory with any content. Call it before a
// read into them, or the kernel would first copy the pages.
void hide(void* buffer, size_t length);

// The bytes mapped so far, of all files: for the report.
uint64_t mapped_bytes();

// Copies a range from the page cache. False: (without `waits`) some of it is not there.
bool copy_range(const OpenFile& file, ByteRange range, char* buffer, bool waits);

}  // namespace graphlane::shim
