#include "iomgr/tree.h"

#include <dirent.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <map>
#include <memory>

#include "iomgr/base/open_below.h"
#include "iomgr/base/regular_file.h"
#include "iomgr/file_attributes.h"

namespace graphlane {
namespace {

Outcome<std::vector<std::string>> list_names(const TreePlace& directory) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  // Within a volume no link is followed, which somebody may just have put on the way.
  Fd fd(directory.directory_fd == AT_FDCWD
            ? ::openat(AT_FDCWD, directory.path.c_str(), kFlags)
            : open_below(directory.directory_fd, directory.path.c_str(), kFlags));
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

class Listing {
 public:
  explicit Listing(const TreePlace& top, bool skips_closed = false)
      : top_(top), skips_closed_(skips_closed) {}

  // `depth_max` 0: the top alone.
  Outcome<std::vector<TreeNode>> take(unsigned depth_max) {
    if (Outcome<void> listed = add("", depth_max); !listed) return listed.error();
    return std::move(nodes_);
  }

 private:
  // What goes while we look was not there; but for the top.
  static bool has_gone(const Error& error, const std::string& path) {
    return (error.code == ENOENT || error.code == ENOTDIR || error.code == ELOOP) && !path.empty();
  }

  Outcome<void> add(const std::string& path, unsigned depth_max) {
    const TreePlace place = top_.at(path);
    TreeNode node{.path = path};
    if (::fstatat(place.directory_fd, place.path.c_str(), &node.info, AT_SYMLINK_NOFOLLOW) != 0) {
      const Error error = place.error(errno, "cannot read");
      return has_gone(error, path) ? Outcome<void>() : error;
    }
    nodes_.push_back(node);
    if (!S_ISDIR(node.info.st_mode) || depth_max == 0) return {};
    const Outcome<std::vector<std::string>> names = list_names(place);
    if (!names && has_gone(names.error(), path)) {
      nodes_.pop_back();
      return {};
    }
    if (!names && names.error().code == EACCES && skips_closed_) return {};
    if (!names) return names.error();
    for (const std::string& name : *names) {
      const std::string below = path.empty() ? name : path + "/" + name;
      if (Outcome<void> added = add(below, depth_max - 1); !added) return added;
    }
    return {};
  }

  const TreePlace& top_;
  const bool skips_closed_;
  std::vector<TreeNode> nodes_;
};

Outcome<void> copy_link(const TreePlace& from, const struct stat& info, const TreePlace& to) {
  char target[PATH_MAX + 1];
  const ssize_t length = ::readlinkat(from.directory_fd, from.path.c_str(), target, PATH_MAX);
  if (length < 0) return from.error(errno, "cannot read the link");
  target[length] = '\0';
  if (::symlinkat(target, to.directory_fd, to.path.c_str()) != 0) {
    return to.error(errno, "cannot create");
  }
  copy_attributes_at(info, to.directory_fd, to.path.c_str());
  return {};
}

Outcome<void> copy_special(const struct stat& info, const TreePlace& to) {
  if (::mknodat(to.directory_fd, to.path.c_str(), (info.st_mode & S_IFMT) | 0600, info.st_rdev) !=
      0) {
    return to.error(errno, "cannot create the special file");
  }
  copy_attributes_at(info, to.directory_fd, to.path.c_str());
  return {};
}

// Opens what was listed; that it still is what it was then is checked.
Outcome<void> copy_regular(const TreePlace& from, const struct stat& info, const TreePlace& to,
                           const FileCopier& copy_file) {
  const Fd fd = open_regular(from.directory_fd, from.path.c_str(), O_RDONLY);
  if (!fd) return from.error(errno, "cannot open");
  struct stat now;
  if (::fstat(fd.get(), &now) != 0) return from.error(errno, "cannot read");
  if (now.st_dev != info.st_dev || now.st_ino != info.st_ino || now.st_size != info.st_size) {
    return make_error(EBUSY, "{}: changed while it was read", from.shown);
  }
  return copy_file(fd.get(), from, info, to);
}

Outcome<void> copy_node(const TreePlace& from, const struct stat& info, const TreePlace& to,
                        const FileCopier& copy_file) {
  switch (info.st_mode & S_IFMT) {
    case S_IFDIR:
      if (::mkdirat(to.directory_fd, to.path.c_str(), 0700) == 0) return {};
      return to.error(errno, "cannot create");
    case S_IFLNK: return copy_link(from, info, to);
    case S_IFREG: return copy_regular(from, info, to, copy_file);
    default: return copy_special(info, to);
  }
}

void copy_directory_attributes(const TreePlace& from, const TreePlace& to) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const Fd source(::openat(from.directory_fd, from.path.c_str(), kFlags));
  const Fd target(::openat(to.directory_fd, to.path.c_str(), kFlags));
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

Outcome<std::vector<TreeNode>> list_tree(const TreePlace& top) {
  return Listing(top).take(UINT_MAX);
}

Outcome<std::vector<TreeNode>> list_open_tree(const TreePlace& top) {
  return Listing(top, /*skips_closed=*/true).take(UINT_MAX);
}

Outcome<std::vector<TreeNode>> list_directory(const TreePlace& top) {
  return Listing(top).take(1);
}

Outcome<void> copy_tree(const TreePlace& from, const std::vector<TreeNode>& nodes,
                        const TreePlace& to, const FileCopier& copy_file) {
  std::map<std::pair<dev_t, ino_t>, std::string> linked;  // first copy of what has several names
  for (const TreeNode& node : nodes) {
    const TreePlace target = to.at(node.path);
    if (!S_ISDIR(node.info.st_mode) && node.info.st_nlink > 1) {
      const auto [first, is_first] =
          linked.try_emplace({node.info.st_dev, node.info.st_ino}, target.path);
      if (!is_first) {
        if (::linkat(to.directory_fd, first->second.c_str(), to.directory_fd, target.path.c_str(),
                     0) != 0) {
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
    struct stat there;
    if (::fstatat(target.directory_fd, target.path.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0) {
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
    // A link is replaced itself, but not one to what is no file, as /dev/stdout is.
    if (S_ISLNK(there.st_mode)) {
      (void)::fstatat(target.directory_fd, target.path.c_str(), &there, 0);  // of a dangling one: as it was
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
  const TreeNode* moved_directory = nullptr;  // what is below it came along
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
  if (::renameat2(from.directory_fd, from.path.c_str(), to.directory_fd, to.path.c_str(),
                  RENAME_NOREPLACE) == 0) {
    return {};
  }
  if (errno != EINVAL && errno != ENOSYS && errno != EXDEV) return last_errno();
  // A filesystem without that flag: look first, and hope that nobody is faster. What other
  // filesystem there is may begin at `to`, which is taken then.
  struct stat there;
  if (::fstatat(to.directory_fd, to.path.c_str(), &there, AT_SYMLINK_NOFOLLOW) == 0) {
    return Errno{EEXIST};
  }
  if (::renameat(from.directory_fd, from.path.c_str(), to.directory_fd, to.path.c_str()) != 0) {
    return last_errno();
  }
  return {};
}

}  // namespace graphlane
