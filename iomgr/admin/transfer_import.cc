// import_files: see transfer.h.
#include <algorithm>
#include <map>
#include <optional>

#include "iomgr/admin/transfer_common.h"
#include "iomgr/admin/transfer_staging.h"
#include "iomgr/base/files/regular_file.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {
namespace fs = std::filesystem;
namespace {

// The tree to import. `name` is the copy's name by cp's rules.
struct Source {
  TreePlace place;
  std::string name;
  bool contents = false;
  std::vector<TreeNode> nodes;
  bool is_directory() const { return S_ISDIR(nodes.front().info.st_mode); }
};

// The source and the volume must not contain each other.
Outcome<void> check_apart(const Volume& volume, const fs::path& source, std::string_view shown) {
  const fs::path root(volume.root());
  if (is_within(source, root) && !is_within(source, root / kStagingDirectory)) {
    return make_error(EINVAL, "{}: lies inside the volume already", shown);
  }
  if (is_within(root, source)) return make_error(EINVAL, "{}: contains the volume", shown);
  for (const Device& device : volume.devices()) {
    std::error_code error;
    const fs::path parts = fs::canonical(device.root, error);
    if (!error && (is_within(parts, source) || is_within(source, parts))) {
      return make_error(EINVAL, "{}: holds parts of the volume ({})", shown, device.root);
    }
  }
  return {};
}

Outcome<Source> resolve_source(const Volume& volume, const std::string& given) {
  const CopyPath parsed = parse_copy_path(given);
  std::error_code error;
  const fs::path real = fs::canonical(given, error);
  if (error) return os_error(error.value(), given, "cannot open");
  if (Outcome<void> apart = check_apart(volume, real, given); !apart) return apart.error();
  fs::path name = fs::path(parsed.path).filename();
  if (name.empty() || name == "." || name == "..") name = real.filename();
  Source source{.place = {.directory_fd = AT_FDCWD, .path = real.string(), .shown = parsed.path},
                .name = name.string(),
                .contents = parsed.contents,
                .nodes = {}};
  Outcome<std::vector<TreeNode>> nodes = list_tree(source.place);
  if (!nodes) return nodes.error();
  source.nodes = std::move(*nodes);
  const mode_t type = source.nodes.front().info.st_mode;
  if (!S_ISDIR(type) && !S_ISREG(type)) {
    return make_error(EINVAL, "{}: neither a regular file nor a directory", given);
  }
  return source;
}

// The place of the tree's top: inside an existing directory, or under the given name.
Outcome<TreePlace> resolve_target(const Volume& volume, const std::string& destination,
                                  const Source& source) {
  const CopyPath parsed = parse_copy_path(destination);
  const Outcome<TreePlace> place = locate_in_volume(volume, parsed.path);
  if (!place) return place.error();
  struct stat info;
  const bool exists = ::fstatat(place->directory_fd, place->path.c_str(), &info, 0) == 0;
  if (!exists || !S_ISDIR(info.st_mode)) {
    if (parsed.slash && !source.is_directory()) {
      return make_error(ENOTDIR, "{}: not a directory", place->shown);
    }
    return *place;
  }
  Outcome<TreePlace> below = locate_in_volume(volume, parsed.path + "/" + source.name);
  if (!below || !source.contents) return below;
  // The directory itself; its path with links resolved, as the place below has it.
  const std::string path = fs::path(below->path).parent_path().string();
  return TreePlace{.directory_fd = place->directory_fd,
                   .path = path.empty() ? "." : path,
                   .shown = place->shown};
}

class Import {
 public:
  Import(const Volume& volume, const ImportOptions& options, const Source& source)
      : volume_(volume),
        options_(options),
        source_(source),
        policy_(options.policy != nullptr ? *options.policy : volume.policy()),
        striped_(volume, &state_) {}

  Outcome<TransferSummary> run(const TreePlace& target) {
    if (Outcome<void> writable = require_writable(volume_); !writable) return writable.error();
    if (Outcome<void> checked = check(target); !checked) return checked.error();
    if (Outcome<void> chosen = choose_depths(); !chosen) return chosen.error();
    Progress progress("import", total_bytes(source_.nodes));
    state_.progress = &progress;

    const Outcome<VolumeLock> lock = VolumeLock::take(volume_, VolumeLock::kShared);
    if (!lock) return lock.error();
    Outcome<StagingDirectory> stage = StagingDirectory::create(volume_);
    if (!stage) return stage.error();
    Outcome<void> done =
        copy_tree(source_.place, source_.nodes, stage->top(),
                  [this](int fd, const TreePlace& from, const struct stat& info,
                         const TreePlace& to) { return copy_file(fd, from, info, to); });
    if (done) done = put_in_place(*stage, target);
    if (!done) return done.error();
    return state_.summary;
  }

 private:
  Outcome<void> check(const TreePlace& target) const {
    const uint64_t depth = options_.stripe_depth_bytes;
    for (const TreeNode& node : source_.nodes) {
      const auto size = static_cast<uint64_t>(node.info.st_size);
      if (depth != 0 && wants_striping(node) && size < depth) {
        return make_error(EINVAL, "{}: has {} bytes, less than one stripe of {}",
                          source_.place.at(node.path).shown, size, depth);
      }
      if (node.path == kControlDirectory && target.path == ".") {
        return make_error(EINVAL, "{}: is a name of Graphlane's own",
                          source_.place.at(node.path).shown);
      }
    }
    if (Outcome<void> valid = check_stripe_depth(depth == 0 ? volume_.stripe_depth_bytes() : depth);
        !valid) {
      return valid;
    }
    return check_target(source_.place, source_.nodes, target, options_.overwrite);
  }

  // Before anything is copied, because an unknown depth ends the import.
  Outcome<void> choose_depths() {
    if (!options_.choose_depth) return {};
    for (const TreeNode& node : source_.nodes) {
      if (!wants_striping(node)) continue;
      const std::string path = source_.place.at(node.path).path;
      const Outcome<uint64_t> depth = options_.choose_depth(path);
      if (!depth) return depth.error();
      if (Outcome<void> valid = check_stripe_depth(*depth); !valid) return valid;
      depths_[path] = *depth;
    }
    return {};
  }

  // The stripe depth of the file at `path`.
  uint64_t depth_of(const std::string& path) const {
    if (const auto chosen = depths_.find(path); chosen != depths_.end()) return chosen->second;
    return options_.stripe_depth_bytes != 0 ? options_.stripe_depth_bytes
                                            : volume_.stripe_depth_bytes();
  }

  bool wants_striping(const TreeNode& node) const {
    if (!S_ISREG(node.info.st_mode)) return false;
    if (node.path.empty()) return node.info.st_size > 0;  // a single file as source
    return policy_.wants(fs::path(node.path).filename().string(),
                         static_cast<uint64_t>(node.info.st_size));
  }

  Outcome<void> copy_file(int fd, const TreePlace& from, const struct stat& info,
                          const TreePlace& to) {
    if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
    Layout layout;
    const Result<StubVerdict> verdict = inspect_stub(fd, &layout);
    if (verdict && *verdict != StubVerdict::kNotAStub) {
      return make_error(EINVAL,
                        "{}: is a stub of a volume, not data (import what "
                        "`graphlane export` makes of it)",
                        from.shown);
    }
    const std::string below = from.path.size() > source_.place.path.size()
                                  ? from.path.substr(source_.place.path.size() + 1)
                                  : "";
    if (!wants_striping({.path = below, .info = info})) {
      return copy_plain(fd, from, info, to, &state_);
    }
    return striped_.add(fd, from, info, to, depth_of(from.path));
  }

  Outcome<void> put_in_place(const StagingDirectory& stage, const TreePlace& target) {
    if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
    // Syncs stubs and plain files before they get their names, and before their parts lose
    // `making`.
    if (::syncfs(volume_.root_fd()) != 0) return os_error(errno, volume_.root(), "cannot write");
    if (Outcome<void> synced = striped_.sync(); !synced) return synced;
    FileReplacer replace;
    if (options_.overwrite) {
      replace = [this](const TreePlace& staged, const TreePlace& existing) {
        return replace_file(staged, existing);
      };
    }
    Outcome<void> moved = move_tree(stage.top(), source_.nodes, source_.place, target, replace);
    // Syncs the new names before the replaced parts are removed.
    Outcome<void> removed = ::syncfs(volume_.root_fd()) == 0
                                ? remove_all_parts(volume_, replaced_)
                                : os_error(errno, volume_.root(), "cannot write");
    return moved ? removed : moved;
  }

  Outcome<void> replace_file(const TreePlace& staged, const TreePlace& existing) {
    const ShortPlace from(staged), to(existing);
    const Fd old = open_regular(to.directory_fd(), to.path(), O_RDONLY);
    if (::renameat(from.directory_fd(), from.path(), to.directory_fd(), to.path()) != 0) {
      return existing.error(errno, "cannot replace");
    }
    if (const auto layout = own_layout_of_removed(volume_, old.get())) {
      replaced_.push_back(layout->file_id);
      mark_removed(volume_, layout->file_id);
    }
    return {};
  }

  const Volume& volume_;
  const ImportOptions& options_;
  const Source& source_;
  const StripePolicy& policy_;
  std::map<std::string, uint64_t> depths_;  // by path, where chosen
  TransferState state_;
  StripedCopies striped_;  // adds to state_
  std::vector<Uuid> replaced_;
};

}  // namespace

Outcome<TransferSummary> import_files(const Volume& volume, const ImportOptions& options) {
  const Outcome<Source> source = resolve_source(volume, options.source);
  if (!source) return source.error();
  const Outcome<TreePlace> target = options.place != nullptr
                                        ? Outcome<TreePlace>(*options.place)
                                        : resolve_target(volume, options.destination, *source);
  if (!target) return target.error();
  return Import(volume, options, *source).run(*target);
}

}  // namespace graphlane
