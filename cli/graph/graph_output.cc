#include "cli/graph/graph_output.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>

#include "cli/volume/stripe_options.h"
#include "iomgr/admin/transfer.h"
#include "iomgr/base/files/rename_exchange.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::cli {
namespace fs = std::filesystem;
namespace {

// A directory that is removed with all its contents at the end.
class Scratch {
 public:
  explicit Scratch(fs::path path) : path_(std::move(path)) {}
  Scratch(const Scratch&) = delete;
  ~Scratch() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  const fs::path& path() const { return path_; }

 private:
  const fs::path path_;
};

bool exists(const TreePlace& place) {
  struct stat info;
  return ::fstatat(place.directory_fd, place.path.c_str(), &info, AT_SYMLINK_NOFOLLOW) == 0;
}

// Checks that no mount covers the volume's name, because graphfmt finds stubs by name.
Outcome<void> check_not_covered(const Volume& volume) {
  struct stat named, opened;
  if (::stat(volume.root().c_str(), &named) == 0 && ::fstat(volume.root_fd(), &opened) == 0 &&
      named.st_dev == opened.st_dev && named.st_ino == opened.st_ino) {
    return {};
  }
  return make_error(EBUSY,
                    "{}: is mounted over itself; unmount it first, or write outside and "
                    "import",
                    volume.root());
}

Outcome<TransferSummary> import_built(const Volume& volume, const std::string& source,
                                      ImportOptions options) {
  options.source = source;
  if (volume.is_depth_auto()) choose_depths(volume, &options);
  return import_files(volume, options);
}

// Swaps the two names, durably, before the old graph is removed.
Outcome<void> exchange(const Volume& volume, const TreePlace& staged, const TreePlace& target) {
  const int error = rename_exchange(target.directory_fd, staged.path, target.path);
  if (error != 0) return target.error(error, "cannot replace");
  if (::syncfs(volume.root_fd()) != 0) return os_error(errno, volume.root(), "cannot write");
  return {};
}

// Imports as `staged`, below .graphlane/tmp, where `check` finds it after a kill. Then swaps both,
// if the present target may be replaced.
Outcome<void> import_over(const Volume& volume, const std::string& source, const TreePlace& staged,
                          const TreePlace& target,
                          const std::function<Outcome<void>()>& check_target) {
  const auto imported = import_built(volume, source, {.place = &staged});
  if (!imported) return imported.error();
  Outcome<void> done = check_target();
  if (done) done = exchange(volume, staged, target);
  const Outcome<void> removed = remove_volume_tree(volume, staged, /*force=*/true);
  return done ? removed : done;
}

// Replaces the temporary path in an error by `given`, the path that the user gave.
Error with_given_path(Error error, const std::string& built, const std::string& given) {
  std::string& text = error.text;
  for (size_t at = text.find(built); at != std::string::npos;
       at = text.find(built, at + given.size())) {
    text.replace(at, built.size(), given);
  }
  return error;
}

Outcome<void> write_in_volume(const VolumePath& out, const GraphOutput& output) {
  const Volume& volume = *out.volume;
  const std::string below =
      fs::path(out.below).has_filename() ? out.below : fs::path(out.below).parent_path().string();
  if (below.empty()) {
    return make_error(EINVAL, "{}: is the volume; name a file or directory in it", volume.root());
  }
  const Outcome<TreePlace> target = locate_in_volume(volume, below);
  if (!target) return target.error();
  const auto check_target = [&]() -> Outcome<void> {
    if (!exists(*target)) return {};
    if (output.overwrite) return output.may_replace(volume.root() + "/" + target->path);
    return make_error(EEXIST, "{}: exists already (--overwrite replaces it)", target->shown);
  };
  if (Outcome<void> free = check_not_covered(volume); !free) return free;
  if (Outcome<void> may = check_target(); !may) return may;
  // A shared lock: other processes then do not take files below .graphlane/tmp for a dead import's.
  const Outcome<VolumeLock> lock = VolumeLock::take(volume, VolumeLock::kShared);
  if (!lock) return lock.error();
  const fs::path own = fs::path(kStagingDirectory) / UuidText(Uuid::random()).c_str();
  const Scratch scratch(volume.root() / own);
  if (::mkdir(scratch.path().c_str(), 0700) != 0) {
    return control_error(volume.root(), scratch.path().string(), errno,
                         "cannot write to the volume");
  }
  const std::string built = scratch.path() / fs::path(below).filename();
  if (Outcome<void> done = output.build(built); !done) {
    return with_given_path(done.error(), built, output.path);
  }
  // the target may have appeared meanwhile
  if (Outcome<void> may = check_target(); !may) return may;
  if (exists(*target)) {
    const TreePlace staged{.directory_fd = volume.root_fd(),
                           .path = (own / "imported").string(),
                           .shown = (scratch.path() / "imported").string()};
    const Outcome<void> done = import_over(volume, built, staged, *target, check_target);
    return done ? done : with_given_path(done.error(), built, output.path);
  }
  const auto imported = import_built(volume, built, {.destination = target->path});
  if (!imported) return with_given_path(imported.error(), built, output.path);
  return {};
}

}  // namespace

Outcome<void> write_graph(const GraphOutput& output) {
  catch_interrupts();
  if (!find_volume_root(output.path)) return output.build(output.path);
  const Outcome<VolumePath> path = open_volume_of(output.path);
  if (!path) return path.error();
  return write_in_volume(*path, output);
}

}  // namespace graphlane::cli
