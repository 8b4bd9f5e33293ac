// Walks over trees (ftw, nftw, fts). Their own stat() is within libc, where no library sees it. So
// their results for stubs are corrected before the program gets them.
//
// scandir(), glob() and readdir() show names and types, which are right anyway.
#include <cerrno>

#include "iomgr/base/fd.h"
#include "shim/hooks/hooks.h"
#include "shim/hooks/real.h"
#include "shim/locate/stub_path.h"

namespace graphlane::shim {
namespace {

// The walk of this thread; a visit may start a nested walk. Needed because neither ftw() nor nftw()
// passes a context to the visit.
struct Walk {
  __ftw_func_t ftw = nullptr;
  __nftw_func_t nftw = nullptr;
  bool changes_directory = false;
  Walk* outer = nullptr;
};
thread_local Walk* current_walk = nullptr;

class WalkScope {
 public:
  explicit WalkScope(Walk walk) : walk_(walk) {
    walk_.outer = current_walk;
    current_walk = &walk_;
  }
  ~WalkScope() { current_walk = walk_.outer; }
  WalkScope(const WalkScope&) = delete;
  WalkScope& operator=(const WalkScope&) = delete;

 private:
  Walk walk_;
};

struct stat as_file(int directory, const char* path, const struct stat& st) {
  struct stat shown = st;
  Layout layout;
  if (is_stub_at(directory, path, 0, st, &layout)) fill_stat(layout, &shown);
  return shown;
}

int visit_ftw(const char* path, const struct stat* st, int kind) {
  if (kind != FTW_F) return current_walk->ftw(path, st, kind);
  const struct stat shown = as_file(AT_FDCWD, path, *st);
  return current_walk->ftw(path, &shown, kind);
}

int visit_nftw(const char* path, const struct stat* st, int kind, FTW* place) {
  if (kind != FTW_F) return current_walk->nftw(path, st, kind, place);
  const char* reachable = current_walk->changes_directory ? path + place->base : path;
  const struct stat shown = as_file(AT_FDCWD, reachable, *st);
  return current_walk->nftw(path, &shown, kind, place);
}

void show_file(FTSENT* entry, int directory, const char* path) {
  if (entry->fts_info != FTS_F) return;
  *entry->fts_statp = as_file(directory, path, *entry->fts_statp);
}

}  // namespace
}  // namespace graphlane::shim

using namespace graphlane;
using namespace graphlane::shim;

int hook_ftw(const char* path, __ftw_func_t visit, int fd_max) {
  const WalkScope scope({.ftw = visit});
  return real::ftw(path, visit_ftw, fd_max);
}

int hook_ftw64(const char* path, __ftw_func_t visit, int fd_max) {
  return hook_ftw(path, visit, fd_max);
}

int hook_nftw(const char* path, __nftw_func_t visit, int fd_max, int flags) {
  const WalkScope scope({.nftw = visit, .changes_directory = (flags & FTW_CHDIR) != 0});
  return real::nftw(path, visit_nftw, fd_max, flags);
}

int hook_nftw64(const char* path, __nftw_func_t visit, int fd_max, int flags) {
  return hook_nftw(path, visit, fd_max, flags);
}

FTSENT* hook_fts_read(FTS* walk) {
  FTSENT* entry = real::fts_read(walk);
  if (entry != nullptr) show_file(entry, AT_FDCWD, entry->fts_accpath);
  return entry;
}

FTSENT* hook_fts64_read(FTS* walk) { return hook_fts_read(walk); }

// Children are reached by their directory, which the walk has not entered yet. Before the first
// fts_read() they are the roots.
FTSENT* hook_fts_children(FTS* walk, int options) {
  FTSENT* const children = real::fts_children(walk, options);
  if (children == nullptr || (options & FTS_NAMEONLY) != 0) return children;
  const bool are_roots = walk->fts_cur->fts_info == FTS_INIT;
  Fd directory;
  if (!are_roots) {
    const int saved_errno = errno;
    directory = Fd(sys::openat(AT_FDCWD, walk->fts_cur->fts_accpath, O_PATH | O_CLOEXEC));
    errno = saved_errno;
    if (!directory) return children;
  }
  for (FTSENT* child = children; child != nullptr; child = child->fts_link) {
    if (are_roots) {
      show_file(child, AT_FDCWD, child->fts_accpath);
    } else {
      show_file(child, directory.get(), child->fts_name);
    }
  }
  return children;
}

FTSENT* hook_fts64_children(FTS* walk, int options) { return hook_fts_children(walk, options); }
