#include "iomgr/admin/relocate.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <vector>

#include "iomgr/admin/transfer_common.h"
#include "iomgr/base/files/atomic_file.h"
#include "iomgr/base/files/tree.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/volume/home.h"
#include "iomgr/volume/parts/live_file.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/volume_files.h"
#include "iomgr/volume/volume_json.h"

namespace graphlane {
namespace fs = std::filesystem;
namespace {

// The directory below NEW in which a copy is made, and what that below the old one becomes before it is removed.
std::string staged_root(const std::string& root) { return root + ".copy"; }
std::string removed_root(const std::string& root) { return root + ".moved"; }

bool is_same_directory(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::absolute(a, error).lexically_normal() == b || fs::equivalent(a, b, error);
}

Outcome<uint32_t> find_device(const Volume& volume, const std::string& name) {
  std::string known;
  for (uint32_t i = 0; i < volume.device_count(); ++i) {
    if (is_same_directory(name, volume.devices()[i].directory)) return i;
    known += (i > 0 ? ", " : "") + volume.devices()[i].directory;
  }
  return make_error(EINVAL, "{}: not a device of {}, which has {}", name, volume.root(), known);
}

// Its device.json says that it is device `i` of the volume.
Outcome<void> check_is_device(const Volume& volume, uint32_t i, const std::string& root) {
  const std::string path = root + "/" + kDeviceJson;
  const Outcome<std::string> text = read_whole_file(AT_FDCWD, path.c_str(), path);
  if (!text) return text.error();
  const Outcome<DeviceRecord> found = parse_device_json(*text, path);
  if (!found) return found.error();
  if (found->volume == volume.uuid() && found->ordinal == i &&
      found->device_count == volume.device_count()) {
    return {};
  }
  return make_error(EINVAL, "{}: is not device {} of {}, but device {} of {} of {}", root, i,
                    volume.root(), found->ordinal, found->device_count,
                    UuidText(found->volume).view());
}

// The directory from which a killed run copied what is at `root`; empty if that is no such copy.
Outcome<std::string> relocated_from(const std::string& root) {
  const std::string path = root + "/" + kRelocatedFrom;
  const Outcome<std::string> from = read_whole_file(AT_FDCWD, path.c_str(), path);
  if (!from && from.error().code == ENOENT) return std::string();
  return from;
}

// Removes the device's root below the directory that it was copied from, then the note of it in the copy.
Outcome<void> remove_old_root(const std::string& old_root, const std::string& copy) {
  const std::string doomed = removed_root(old_root);
  std::error_code error;
  if (fs::exists(old_root, error)) {
    fs::remove_all(doomed, error);
    if (::rename(old_root.c_str(), doomed.c_str()) != 0) {
      return os_error(errno, old_root, "cannot remove");
    }
  }
  fs::remove_all(doomed, error);
  if (error) return os_error(error.value(), doomed, "cannot remove");
  const std::string note = copy + "/" + kRelocatedFrom;
  if (::unlink(note.c_str()) != 0 && errno != ENOENT) return os_error(errno, note, "cannot remove");
  return {};
}

// A run from `device` to `to` was killed when the volume had its new directory already: what is left
// of the old one is removed. False: there was none.
Outcome<bool> end_killed_run(const Volume& volume, const std::string& device,
                             const std::string& to) {
  for (uint32_t i = 0; i < volume.device_count(); ++i) {
    const Device& now = volume.devices()[i];
    if (!now.root_fd || !is_same_directory(to, now.directory)) continue;
    const Outcome<std::string> from = relocated_from(now.root);
    if (!from) return from.error();
    if (from->empty() || !is_same_directory(device, *from)) return false;
    const std::string old_root = device_root(*from, volume.uuid());
    std::error_code error;
    if (fs::exists(old_root, error)) {
      if (Outcome<void> same = check_is_device(volume, i, old_root); !same) return same.error();
    }
    if (Outcome<void> removed = remove_old_root(old_root, now.root); !removed) {
      return removed.error();
    }
    return true;
  }
  return false;
}

// Programs without a mount are told by their locks.
Outcome<void> check_nobody_writes(const Volume& volume) {
  return walk_tree(
      {.directory_fd = volume.root_fd(), .path = ".", .shown = volume.root()},
      {.enter = [&](const TreeEntry& entry) -> Outcome<void> {
         if (!S_ISREG(entry.info.st_mode)) return {};
         const Fd fd(
             ::openat(entry.parent_fd, entry.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
         Layout layout;
         if (!fd ||
             inspect_stub(fd.get(), &layout).value_or(StubVerdict::kNotAStub) !=
                 StubVerdict::kStub ||
             !is_being_changed(fd.get())) {
           return {};
         }
         return make_error(EBUSY, "{}/{}: a program writes it", volume.root(), entry.path);
       },
       .wants = [&](const TreeEntry& entry) { return entry.path != kControlDirectory; }});
}

class Copy {
 public:
  Copy(std::string from, std::string to)
      : from_{.path = from, .shown = from},
        to_{.path = to, .shown = to},
        staged_{.path = staged_root(to), .shown = staged_root(to)} {}
  ~Copy() {
    std::error_code error;
    if (!done_) fs::remove_all(staged_.path, error);
  }
  Copy(const Copy&) = delete;
  Copy& operator=(const Copy&) = delete;

  Outcome<uint64_t> run() {
    std::error_code error;
    fs::remove_all(staged_.path, error);  // a killed run's
    const Outcome<std::vector<TreeNode>> nodes = list_tree(from_);
    if (!nodes) return nodes.error();
    const uint64_t bytes = total_bytes(*nodes);
    Progress progress("moving", bytes);
    TransferState state{.progress = &progress, .summary = {}};
    Outcome<void> done =
        copy_tree(from_, *nodes, staged_,
                  [&](int fd, const TreePlace& place, const struct stat& info,
                      const TreePlace& to) { return copy_plain(fd, place, info, to, &state); });
    if (done) done = check_same(*nodes);
    if (done) done = note_source();
    if (done) done = move_tree(staged_, *nodes, from_, to_, nullptr);
    if (done) done = sync();
    if (!done) {
      fs::remove_all(to_.path, error);
      return done.error();
    }
    done_ = true;
    return bytes;
  }

 private:
  // Nothing has changed since it was listed, and the parts' records came along.
  Outcome<void> check_same(const std::vector<TreeNode>& nodes) const {
    for (const TreeNode& node : nodes) {
      if (!S_ISREG(node.info.st_mode)) continue;
      const TreePlace old = from_.at(node.path), copy = staged_.at(node.path);
      const Fd old_fd = open_place(old, O_RDONLY | O_CLOEXEC),
               copy_fd = open_place(copy, O_RDONLY | O_CLOEXEC);
      if (!old_fd) return old.error(errno, "cannot open");
      if (!copy_fd) return copy.error(errno, "cannot open");
      if (Outcome<void> same = check_unchanged(old_fd.get(), old, node.info); !same) return same;
      if (::fgetxattr(old_fd.get(), kPartRecordAttribute, nullptr, 0) >= 0 &&
          ::fgetxattr(copy_fd.get(), kPartRecordAttribute, nullptr, 0) < 0) {
        return make_error(EOPNOTSUPP, "{}: this filesystem has no extended attributes, and {} has",
                          copy.shown, old.shown);
      }
    }
    return {};
  }

  // A run that finds it with the volume's device still at the old place knows that the copy counts for nothing.
  Outcome<void> note_source() const {
    const Fd fd(::open(staged_.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return staged_.error(errno, "cannot open");
    return write_file_atomically(fd.get(), kRelocatedFrom, staged_.shown + "/" + kRelocatedFrom,
                                 fs::path(from_.path).parent_path().string(), 0644);
  }

  Outcome<void> sync() const {
    const Fd fd(::open(to_.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::syncfs(fd.get()) != 0) return to_.error(errno, "cannot sync");
    return sync_directory(fs::path(to_.path).parent_path());
  }

  const TreePlace from_, to_, staged_;
  bool done_ = false;
};

// Makes the device's root be below the new directory. Bytes copied; none: it was renamed.
Outcome<std::optional<uint64_t>> move_root(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) {
    if (Outcome<void> synced = sync_directory(fs::path(to).parent_path()); !synced) {
      return synced.error();
    }
    return std::optional<uint64_t>();
  }
  if (errno != EXDEV) return os_error(errno, to, "cannot move " + from + " there");
  const Outcome<uint64_t> copied = Copy(from, to).run();
  if (!copied) return copied.error();
  return std::optional<uint64_t>(*copied);
}

// Whether the volume is whole with the device where it is now. Other devices may still be missing.
Outcome<void> check_moved(const Volume& before, uint32_t i) {
  const auto whole = Volume::open(before.root());
  if (whole) return {};
  bool others_are_missing = false;
  for (uint32_t d = 0; d < before.device_count(); ++d) {
    others_are_missing |= d != i && !before.devices()[d].root_fd;
  }
  if (whole.error().code != ENODEV || !others_are_missing) return whole.error();
  const auto rest = Volume::open(before.root(), {.allows_missing_devices = true});
  if (!rest) return rest.error();
  return (*rest)->devices()[i].root_fd ? Outcome<void>() : Outcome<void>(whole.error());
}

}  // namespace

Outcome<void> check_relocate_ended(const Volume& volume, uint32_t i) {
  const Device& device = volume.devices()[i];
  const Outcome<std::string> from = relocated_from(device.root);
  if (!from) return from.error();
  if (from->empty()) return {};
  const std::string old_root = device_root(*from, volume.uuid());
  std::error_code error;
  for (const std::string& left : {old_root, removed_root(old_root)}) {
    if (!fs::exists(left, error)) continue;
    return make_error(EBUSY,
                      "{}: left over by a killed relocate: graphlane relocate {} {} {} removes it",
                      left, volume.root(), *from, device.directory);
  }
  return {};
}

Outcome<RelocateReport> relocate_device(const Volume& volume, const std::string& device,
                                        const std::string& to) {
  const Outcome<uint32_t> i = find_device(volume, device);
  if (!i) {
    const Outcome<bool> ended = end_killed_run(volume, device, to);
    if (!ended) return ended.error();
    if (!*ended) return i.error();
    return RelocateReport{.from = device, .to = to, .ended_killed_run = true};
  }
  const Device& old = volume.devices()[*i];
  const Outcome<std::string> directory = check_device_directory(to, volume.root());
  if (!directory) return directory.error();
  RelocateReport report{.from = old.directory, .to = *directory};
  if (is_same_directory(old.directory, *directory)) {
    return make_error(EINVAL, "{}: is where the device lies", to);
  }
  std::vector<std::string> others;
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    if (d == *i) continue;
    if (is_same_directory(volume.devices()[d].directory, *directory)) {
      return make_error(EINVAL, "{}: the same directory as device {}", to, d);
    }
    others.push_back(volume.devices()[d].directory);
  }
  if (Outcome<void> apart = check_devices_apart(others, *directory); !apart) return apart.error();

  const Outcome<HomeLock> lock = HomeLock::take(volume);  // no program begins to change files
  if (!lock) return lock.error();
  if (Outcome<void> quiet = check_nobody_writes(volume); !quiet) return quiet.error();
  bool copied = false;
  const std::string root = device_root(*directory, volume.uuid());
  std::error_code error;
  if (old.root_fd) {
    if (Outcome<void> ended = check_relocate_ended(volume, *i); !ended) return ended.error();
    const Outcome<std::string> unfinished = relocated_from(root);
    if (!unfinished) return unfinished.error();
    if (!unfinished->empty() && is_same_directory(*unfinished, old.directory)) {
      fs::remove_all(root, error);
      if (error) return os_error(error.value(), root, "cannot remove");
    }
  }
  report.was_there = fs::exists(root, error);
  if (report.was_there && old.root_fd) {
    return make_error(EEXIST, "{} and {} are both there: remove the one that is not the device's",
                      old.root, root);
  }
  if (report.was_there) {
    if (Outcome<void> same = check_is_device(volume, *i, root); !same) return same.error();
  } else if (!old.root_fd) {
    return make_error(ENODEV, "{} and {} are both not there: where is the device?", old.root, root);
  } else {
    const Outcome<std::optional<uint64_t>> moved = move_root(old.root, root);
    if (!moved) return moved.error();
    copied = moved->has_value();
    report.copied_bytes = moved->value_or(0);
  }
  const auto put_at = [&](const std::string& place) {
    return change_volume_json(volume, *lock, [&](VolumeRecord* record) {
      record->devices[*i] = place;
      return true;
    });
  };
  Outcome<void> changed = put_at(*directory);
  if (changed) {
    changed = check_moved(volume, *i);
    if (!changed) {
      if (Outcome<void> back = put_at(old.directory); !back) return back.error();
    }
  }
  if (!changed) {
    if (copied) {
      fs::remove_all(root, error);
    } else if (!report.was_there) {
      (void)::rename(root.c_str(), old.root.c_str());
    }
    return changed.error();
  }
  if (copied) {
    if (Outcome<void> removed = remove_old_root(old.root, root); !removed) {
      report.left = removed.error().text;
    }
  } else {
    // Left by a killed run; its old directory is gone.
    (void)::unlink((root + "/" + kRelocatedFrom).c_str());
  }
  return report;
}

}  // namespace graphlane
