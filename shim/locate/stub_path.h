// Names of stubs: questions of the hooks that take a path, before they call libc. Over a mount
// every answer is "no", and FUSE serves the call.
#pragma once

#include <sys/stat.h>

#include <string_view>

#include "iomgr/base/fd.h"
#include "iomgr/volume/stub/stub.h"

namespace graphlane::shim {

// A path's last part: "c" of "a/b/c", "" of "a/b/".
const char* last_name(const char* path);

// Whether a file may be made by that name: not "", "." or "..".
bool names_an_entry(const char* name);

// The directory of a path's last part, as an O_PATH descriptor. Under the SlowLock (a static
// buffer).
Fd open_parent(int directory, const char* path);

// Whether a file could be a stub.
bool has_stub_size(const struct stat& st);
bool has_stub_size(int fd);  // one fstat
bool may_be_stub(int fd);    // also one that was cut short, or to which something was appended

// Whether the name is a valid stub's that this process may read. `flags`: AT_SYMLINK_NOFOLLOW.
// Costs one fstatat for a file that cannot be a stub. Keeps errno.
bool is_stub_at(int directory, const char* path, int flags, Layout* layout);

// As above, if libc has filled `st` for that name.
bool is_stub_at(int directory, const char* path, int flags, const struct stat& st, Layout* layout);

// Fills in the size that stat() shows for a striped file.
void fill_stat(const Layout& layout, struct stat* st);

// Tells once for each kind of refusal that a program made a call that needs a mount: on which file,
// and the remedy. Keeps errno.
enum class Refusal { kMmap, kFreopen, kAio, kWide, kSpawn, kLock, kSubmit, kGrowMap, kRing };
inline constexpr int kRefusalCount = 9;
void explain_once(Refusal refusal, std::string_view path = "a striped file");
void explain_once(Refusal refusal, int fd);

}  // namespace graphlane::shim
