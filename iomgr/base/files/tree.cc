#include "iomgr/base/files/tree.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>

#include "iomgr/base/files/file_attributes.h"
#include "iomgr/base/files/open_below.h"
#include "iomgr/base/files/regular_file.h"

namespace graphlane {
namespace {

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

Outcome<std::vector<std::string>> list_names(int directory_fd, const TreePlace& directory) {
  Fd fd(::openat(directory_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));  // has its own offset
  if (!fd) return directory.error(errno, "cannot open");
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (!stream) return directory.error(errno, "cannot read");
  fd.release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return directory.error(errno, "cannot read");
  std::sort(names.begin(), names.end());
  return names;
}

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// A name that disappears during the walk counts as absent.
bool has_gone(const Error& error) {
  return error.code == ENOENT || error.code == ENOTDIR || error.code == ELOOP ||
         error.code == ESTALE;
}

class TreeWalk {
 public:
  TreeWalk(const TreePlace& top, const TreeVisitor& visitor, size_t depth_max)
      : top_(top), visitor_(visitor), depth_max_(depth_max) {}

  Outcome<void> run() {
    // Within a volume, starts at the directory that holds the top, which no link has led to.
    const size_t slash = top_.path.rfind('/');
    const bool has_parent = top_.directory_fd != AT_FDCWD && slash != std::string::npos;
    if (has_parent) {
      top_parent_ = open_place({.directory_fd = top_.directory_fd,
                                .path = top_.path.substr(0, slash),
                                .shown = top_.shown},
                               O_PATH | O_DIRECTORY);
      if (!top_parent_) return top_.error(errno, "cannot open");
    }
    top_name_ = has_parent ? top_.path.substr(slash + 1) : top_.path;
    if (Outcome<void> visited = visit(top_name_.c_str()); !visited) return visited;
    while (!levels_.empty()) {
      Level& level = levels_.back();
      Outcome<void> done;
      if (level.next == level.names.size()) {
        done = leave_directory();
      } else {
        const std::string name = std::move(level.names[level.next++]);
        path_.resize(level.path_length);
        if (!path_.empty()) path_ += '/';
        path_ += name;
        done = visit(name.c_str());
      }
      if (!done) return done;
    }
    return {};
  }

 private:
  // A directory in progress.
  struct Level {
    std::vector<std::string> names;
    size_t next = 0;         // index into names
    size_t path_length = 0;  // of path_, up to this directory
    size_t name_at = 0;      // where this directory's name begins in path_
    struct stat info{};
    Fd fd;  // empty: closed, to be found again by ".." of the one below
  };
  // Only the deepest directories stay open: short ways up and down cost no call.
  static constexpr size_t kOpenMax = 32;

  int parent_fd() const {
    if (!levels_.empty()) return levels_.back().fd.get();
    return top_parent_ ? top_parent_.get() : top_.directory_fd;
  }

  TreeEntry entry(const char* name, const struct stat& info) const {
    return {.top = top_, .path = path_, .parent_fd = parent_fd(), .name = name, .info = info};
  }

  Outcome<void> told_closed(const TreeEntry& at, int code) {
    const Error error = at.place().error(code, "cannot read");
    if (has_gone(error) && !levels_.empty()) return {};
    // A shortage is this process's fault: skipping the entry would make it seem absent.
    if (code == EMFILE || code == ENFILE || code == ENOMEM) return error;
    return visitor_.closed ? visitor_.closed(at, error) : error;
  }

  Outcome<void> visit(const char* name) {
    struct stat info{};
    if (::fstatat(parent_fd(), name, &info, AT_SYMLINK_NOFOLLOW) != 0) {
      return told_closed(entry(name, info), errno);
    }
    const TreeEntry at = entry(name, info);
    const bool goes_in = S_ISDIR(info.st_mode) && levels_.size() < depth_max_ &&
                         (!visitor_.wants || visitor_.wants(at));
    Level level;
    int error = 0;
    if (goes_in) {
      level.fd.reset(::openat(parent_fd(), name, kDirectoryFlags));
      if (!level.fd) error = errno;
      // Checks again, because something may have been mounted over the directory.
      else if (::fstat(level.fd.get(), &level.info) != 0) {
        error = errno;
      }
      if (error == ENOENT || error == ENOTDIR) {
        return levels_.empty() ? at.place().error(error, "cannot open") : Outcome<void>();
      }
    }
    if (Outcome<void> entered = visitor_.enter(at); !entered) return entered;
    if (error == 0 && goes_in) {
      Outcome<std::vector<std::string>> names = list_names(level.fd.get(), at.place());
      if (names) {
        level.names = std::move(*names);
      } else {
        error = names.error().code;
      }
    }
    if (error != 0) {
      if (Outcome<void> told = told_closed(at, error); !told) return told;
    }
    if (error != 0 || !goes_in) return visitor_.leave ? visitor_.leave(at) : Outcome<void>();
    level.path_length = path_.size();
    level.name_at = levels_.empty() ? 0 : path_.rfind('/') + 1;  // npos + 1 is 0
    levels_.push_back(std::move(level));
    if (levels_.size() > kOpenMax) levels_[levels_.size() - 1 - kOpenMax].fd.reset();
    return {};
  }

  Outcome<void> leave_directory() {
    const Level done = std::move(levels_.back());
    levels_.pop_back();
    path_.resize(done.path_length);
    if (!levels_.empty() && !levels_.back().fd && !find_again(done.fd)) {
      // It was moved elsewhere with its content: for this walk it is absent.
      levels_.back().next = levels_.back().names.size();
      return {};
    }
    const std::string name = levels_.empty() ? top_name_ : path_.substr(done.name_at);
    return visitor_.leave ? visitor_.leave(entry(name.c_str(), done.info)) : Outcome<void>();
  }

  // Opens the last level again after its descriptor was closed.
  bool find_again(const Fd& below) {
    Level& level = levels_.back();
    const auto accept = [&](Fd fd) {
      struct stat info;
      if (!fd || ::fstat(fd.get(), &info) != 0 || !is_same_file(info, level.info)) return false;
      level.fd = std::move(fd);
      return true;
    };
    if (below && accept(Fd(::openat(below.get(), "..", kDirectoryFlags)))) return true;
    return accept(open_place(top_.at(path_.substr(0, level.path_length)), kDirectoryFlags));
  }

  const TreePlace& top_;
  const TreeVisitor& visitor_;
  const size_t depth_max_;
  Fd top_parent_;  // if the top lies below top_.directory_fd
  std::string top_name_;
  std::string path_;
  std::vector<Level> levels_;
};

// `depth_max` 0: visits the top alone.
Outcome<std::vector<TreeNode>> list_down_to(const TreePlace& top, size_t depth_max) {
  std::vector<TreeNode> nodes;
  const TreeVisitor visitor{.enter = [&](const TreeEntry& entry) -> Outcome<void> {
    nodes.push_back({.path = entry.path, .info = entry.info});
    return {};
  }};
  if (Outcome<void> walked = TreeWalk(top, visitor, depth_max).run(); !walked) {
    return walked.error();
  }
  return nodes;
}

Outcome<void> copy_link(const TreePlace& from, const struct stat& info, const TreePlace& to) {
  char target[PATH_MAX + 1];
  const ShortPlace source(from), copy(to);
  const ssize_t length = ::readlinkat(source.directory_fd(), source.path(), target, PATH_MAX);
  if (length < 0) return from.error(errno, "cannot read the link");
  target[length] = '\0';
  if (::symlinkat(target, copy.directory_fd(), copy.path()) != 0) {
    return to.error(errno, "cannot create");
  }
  copy_attributes_at(info, copy.directory_fd(), copy.path());
  return {};
}

Outcome<void> copy_special(const struct stat& info, const TreePlace& to) {
  const ShortPlace copy(to);
  if (::mknodat(copy.directory_fd(), copy.path(), (info.st_mode & S_IFMT) | 0600, info.st_rdev) !=
      0) {
    return to.error(errno, "cannot create the special file");
  }
  copy_attributes_at(info, copy.directory_fd(), copy.path());
  return {};
}

// Opens a listed file, and checks that it is still the same.
Outcome<void> copy_regular(const TreePlace& from, const struct stat& info, const TreePlace& to,
                           const FileCopier& copy_file) {
  const ShortPlace source(from);
  const Fd fd = open_regular(source.directory_fd(), source.path(), O_RDONLY);
  if (!fd) return from.error(errno, "cannot open");
  struct stat now;
  if (::fstat(fd.get(), &now) != 0) return from.error(errno, "cannot read");
  if (now.st_dev != info.st_dev || now.st_ino != info.st_ino || now.st_size != info.st_size) {
    return make_error(EBUSY, "{}: changed while it was read", from.shown);
  }
  return copy_file(fd.get(), from, info, to);
}

Outcome<void> make_directory(const TreePlace& place) {
  const ShortPlace made(place);
  if (::mkdirat(made.directory_fd(), made.path(), 0700) == 0) return {};
  return place.error(errno, "cannot create");
}

Outcome<void> copy_node(const TreePlace& from, const struct stat& info, const TreePlace& to,
                        const FileCopier& copy_file) {
  switch (info.st_mode & S_IFMT) {
    case S_IFDIR: return make_directory(to);
    case S_IFLNK: return copy_link(from, info, to);
    case S_IFREG: return copy_regular(from, info, to, copy_file);
    default: return copy_special(info, to);
  }
}

void copy_directory_attributes(const TreePlace& from, const TreePlace& to) {
  const ShortPlace original(from), copy(to);
  const Fd source(::openat(original.directory_fd(), original.path(), kDirectoryFlags));
  const Fd target(::openat(copy.directory_fd(), copy.path(), kDirectoryFlags));
  if (source && target) copy_attributes(source.get(), target.get());
}

bool is_below(const std::string& path, const std::string& directory) {
  return directory.empty() || (path.size() > directory.size() && path.starts_with(directory) &&
                               path[directory.size()] == '/');
}

}  // namespace

TreePlace TreePlace::at(const std::string& below) const {
  if (below.empty()) return *this;
  const auto join = [&](const std::string& above) {
    return above.empty() || above.ends_with('/') ? above + below : above + "/" + below;
  };
  return {.directory_fd = directory_fd, .path = join(path), .shown = join(shown)};
}

Outcome<void> walk_tree(const TreePlace& top, const TreeVisitor& visitor) {
  return TreeWalk(top, visitor, SIZE_MAX).run();
}

Fd open_place(const TreePlace& place, int flags) {
  std::string_view rest = place.path;
  Fd held;
  int from = place.directory_fd;
  while (rest.size() >= PATH_MAX) {
    const size_t cut = rest.rfind('/', PATH_MAX - 1);
    if (cut == std::string_view::npos || cut == 0) {
      errno = ENAMETOOLONG;
      return {};
    }
    Fd next(open_below(from, std::string(rest.substr(0, cut)).c_str(), O_PATH | O_DIRECTORY));
    if (!next) return {};
    held = std::move(next);
    from = held.get();
    rest.remove_prefix(cut + 1);
  }
  return Fd(open_below(from, std::string(rest).c_str(), flags));
}

ShortPlace::ShortPlace(const TreePlace& place)
    : directory_fd_(place.directory_fd), path_(place.path.c_str()) {
  if (place.path.size() < PATH_MAX) return;
  const size_t slash = place.path.rfind('/');
  if (slash != std::string::npos && slash > 0) {
    parent_ = open_place({.directory_fd = place.directory_fd,
                          .path = place.path.substr(0, slash),
                          .shown = place.shown},
                         O_PATH | O_DIRECTORY);
  }
  path_ = parent_ ? path_ + slash + 1 : "";
}

Outcome<std::vector<TreeNode>> list_tree(const TreePlace& top) {
  return list_down_to(top, SIZE_MAX);
}

Outcome<std::vector<TreeNode>> list_directory(const TreePlace& top) { return list_down_to(top, 1); }

Outcome<void> copy_tree(const TreePlace& from, const std::vector<TreeNode>& nodes,
                        const TreePlace& to, const FileCopier& copy_file) {
  std::map<std::pair<dev_t, ino_t>, std::string> linked;  // the first copy of each hard-linked file
  for (const TreeNode& node : nodes) {
    const TreePlace target = to.at(node.path);
    if (!S_ISDIR(node.info.st_mode) && node.info.st_nlink > 1) {
      const auto [first, is_first] =
          linked.try_emplace({node.info.st_dev, node.info.st_ino}, node.path);
      if (!is_first) {
        const TreePlace first_place = to.at(first->second);
        const ShortPlace old_name(first_place), new_name(target);
        if (::linkat(old_name.directory_fd(), old_name.path(), new_name.directory_fd(),
                     new_name.path(), 0) != 0) {
          return target.error(errno, "cannot link");
        }
        continue;
      }
    }
    Outcome<void> copied = copy_node(from.at(node.path), node.info, target, copy_file);
    if (!copied) return copied;
  }
  return {};
}

Outcome<void> check_target(const TreePlace& from, const std::vector<TreeNode>& nodes,
                           const TreePlace& to, bool overwrite) {
  for (const TreeNode& node : nodes) {
    const TreePlace target = to.at(node.path);
    const ShortPlace place(target);
    struct stat there;
    if (::fstatat(place.directory_fd(), place.path(), &there, AT_SYMLINK_NOFOLLOW) != 0) {
      if (errno == ENOENT) continue;
      return target.error(errno, "cannot read");
    }
    const bool is_directory = S_ISDIR(there.st_mode);
    const bool wants_directory = S_ISDIR(node.info.st_mode);
    if (is_directory && wants_directory) continue;
    if (is_directory) {
      return make_error(EISDIR, "{}: is a directory, {} is not", target.shown,
                        from.at(node.path).shown);
    }
    if (wants_directory) {
      return make_error(ENOTDIR, "{}: is not a directory, {} is", target.shown,
                        from.at(node.path).shown);
    }
    // A link is replaced itself, unless it leads to a special file, as /dev/stdout does.
    if (S_ISLNK(there.st_mode)) {
      (void)::fstatat(place.directory_fd(), place.path(), &there, 0);  // no change if dangling
    }
    if (!S_ISREG(there.st_mode) && !S_ISLNK(there.st_mode) && !S_ISDIR(there.st_mode)) {
      return make_error(EEXIST, "{}: exists and is not a regular file", target.shown);
    }
    if (!overwrite) {
      return make_error(EEXIST, "{}: exists already (--overwrite replaces it)", target.shown);
    }
  }
  return {};
}

Outcome<void> move_tree(const TreePlace& staged, const std::vector<TreeNode>& nodes,
                        const TreePlace& from, const TreePlace& to, const FileReplacer& replace) {
  uint64_t moved_count = 0;
  const auto failed = [&](Error error) {
    if (moved_count > 0) error.text += fmt::format(" ({} files are in place)", moved_count);
    return error;
  };
  std::vector<const TreeNode*> new_directories;
  const TreeNode* moved_directory = nullptr;  // its content moved with it
  for (const TreeNode& node : nodes) {
    const bool is_directory = S_ISDIR(node.info.st_mode);
    if (moved_directory != nullptr && is_below(node.path, moved_directory->path)) {
      if (is_directory) new_directories.push_back(&node);
      moved_count += is_directory ? 0 : 1;
      continue;
    }
    const TreePlace target = to.at(node.path);
    const Result<void> renamed = rename_new(staged.at(node.path), target);
    if (renamed) {
      if (is_directory) new_directories.push_back(moved_directory = &node);
      moved_count += is_directory ? 0 : 1;
    } else if (renamed.error().code == EEXIST && is_directory) {
      continue;  // its children move one by one
    } else if (renamed.error().code == EEXIST && replace) {
      if (Outcome<void> replaced = replace(staged.at(node.path), target); !replaced) {
        return failed(replaced.error());
      }
      ++moved_count;
    } else {
      return failed(target.error(renamed.error().code, "cannot create"));
    }
  }
  std::for_each(new_directories.rbegin(), new_directories.rend(), [&](const TreeNode* directory) {
    copy_directory_attributes(from.at(directory->path), to.at(directory->path));
  });
  return {};
}

Result<void> rename_new(const TreePlace& from, const TreePlace& to) {
  const ShortPlace old_name(from), new_name(to);
  if (::renameat2(old_name.directory_fd(), old_name.path(), new_name.directory_fd(),
                  new_name.path(), RENAME_NOREPLACE) == 0) {
    return {};
  }
  if (errno != EINVAL && errno != ENOSYS && errno != EXDEV) return last_errno();
  // Without that flag: checks first, so another process may win the race. `to` may lie on another
  // filesystem.
  struct stat there;
  if (::fstatat(new_name.directory_fd(), new_name.path(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
    return Errno{EEXIST};
  }
  if (::renameat(old_name.directory_fd(), old_name.path(), new_name.directory_fd(),
                 new_name.path()) != 0) {
    return last_errno();
  }
  return {};
}

}  // namespace graphlane
