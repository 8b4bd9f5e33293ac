// MappedPages: what a program reads is shown in its buffer, not copied to it (GRAPHLANE_SHARE=map).
//
//   buffer   | head | page | page | page | tail |
//             copied   the part's own       copied
//
// However many programs have a block in their buffers, it is in memory once. The pages are mapped
// privately: who writes to his buffer gets a copy of that page, as after a fork.
//
// **Nobody may change the file** as long as a buffer may show it: until the program, and all its
// children by fork, have ended. They hold StubLock::kMapped by a descriptor, a permit; who wants
// to write the file finds it busy.
//
// **What is replaced** is private memory that may be written, and no stack; the kernel is asked
// each time. Afterwards it is what it was before to a program, but for what it had told the kernel
// of it: pages that it locked (mlock), or gave to a device (a buffer that is registered with
// io_uring), are not those in its buffer any more. That is why a user has to wish for it.
// Allocators take it for granted that what they gave back by madvise(MADV_DONTNEED) is zero: so it
// is, since that call is ours (hooks/memory.cc).
//
// Threads: any; permit_mapping() under the SlowLock.
// No allocation, no exceptions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "iomgr/base/fd.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane {

struct OpenFile;

// Whether what is read of the file is to be shown, and there is no permit for that yet.
bool wants_permit(const OpenFile& file);

// The process holds the permit until it ends. Empty: there is none.
void permit_mapping(const OpenFile& file, Fd permit);

// Whether it has one for the file.
bool may_map(const OpenFile& file);

// Whether the buffer's memory may be replaced, by pages of the file.
bool is_replaceable(const OpenFile& file, const void* buffer, size_t length);

// Shows a range of the file in a buffer that may be replaced. Not `waits`: false, if some of it is
// not in the page cache. False, too: it cannot be read. Some of the buffer may show something then.
bool show_range(const OpenFile& file, ByteRange range, char* buffer, bool waits);

// Whole pages of the buffer that show something are memory of its own again, with whatever
// content, before they are read into: else the kernel would first copy what they show.
void hide(void* buffer, size_t length);

// Shown so far, of all files: for the report.
uint64_t mapped_bytes();

// A range from the page cache, copied. Not `waits`: false, if some of it is not there.
bool copy_range(const OpenFile& file, ByteRange range, char* buffer, bool waits);

}  // namespace graphlane
