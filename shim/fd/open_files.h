// OpenFiles: the slots of the files that this process has open, and their references.
//
// Threads: a slot is taken and filled under the SlowLock. References are safe from any thread.
#pragma once

#include <sys/stat.h>

#include "shim/fd/open_file.h"

namespace graphlane::shim {

OpenFile& open_file(uint32_t slot);

// Adds a reference unless the file is being closed. The last unreference() closes it.
bool reference(OpenFile* file);
void unreference(OpenFile* file);

// An open file with that inode, with a reference added; a written one is preferred. A read-only one
// is no use to a writer, and stays with its readers. `linked`: one with a WriteLink. Under the lock.
OpenFile* find_open(const struct stat& st, Access access, bool linked = false);

// A free slot, with parts that are not open yet; null: all are taken. Under the lock. end_slot():
// instead of a first reference.
OpenFile* take_slot();
void end_slot(OpenFile* file);

// Keeps the program from closing the parts that a descriptor needs, and from taking their numbers.
void protect_parts(const OpenFile& file, bool o_direct);

// A slot with one reference, for the file that the descriptor is of. Null: the file is foreign. `stub`:
// the stub, open for writing, if the caller has it. Under the lock.
OpenFile* open_slot(int fd, const struct stat& st, Access access, bool o_direct, Fd stub);
// As open_slot(), for a file that the mount's server lets this process write.
OpenFile* open_link(int fd, const struct stat& st, bool o_direct);

// The size, when the stub says that.
uint64_t size_now(const OpenFile& file, const StubSize& said);

}  // namespace graphlane::shim
