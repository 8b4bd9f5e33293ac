#include "cli/measure/memory_group.h"

#include <fcntl.h>
#include <mntent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "iomgr/base/fd.h"

namespace graphlane::cli {
namespace {

constexpr int kRemoveTries = 50;
constexpr std::chrono::milliseconds kRemoveWait{20};

struct Hierarchy {
  std::string root;
  bool is_version2 = false;
};

// The place for groups of the memory controller. If both versions are mounted, version 1 has the
// controller.
Outcome<Hierarchy> find_hierarchy() {
  Hierarchy found;
  FILE* const mounts = ::setmntent("/proc/self/mounts", "re");
  if (mounts == nullptr) return os_error(errno, "/proc/self/mounts", "cannot open");
  while (const mntent* mount = ::getmntent(mounts)) {
    const bool is_version1 =
        std::strcmp(mount->mnt_type, "cgroup") == 0 && ::hasmntopt(mount, "memory") != nullptr;
    const bool is_version2 = std::strcmp(mount->mnt_type, "cgroup2") == 0;
    if (is_version1 || (is_version2 && found.root.empty())) found = {mount->mnt_dir, is_version2};
    if (is_version1) break;
  }
  ::endmntent(mounts);
  if (found.root.empty()) {
    return make_error(ENOTSUP, "--memory: no control groups are mounted here");
  }
  return found;
}

Outcome<void> write_text(const std::string& path, const std::string& text) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) < 0) {
    return os_error(errno, path, "cannot write");
  }
  return {};
}

}  // namespace

Outcome<std::unique_ptr<MemoryGroup>> MemoryGroup::make(uint64_t limit_bytes) {
  const Outcome<Hierarchy> hierarchy = find_hierarchy();
  if (!hierarchy) return hierarchy.error();
  const std::string path = fmt::format("{}/graphlane-try-{}", hierarchy->root, ::getpid());
  if (hierarchy->is_version2) {
    // Fails if it is on already and may not be changed. Then mkdir or the limit reports the error.
    (void)write_text(hierarchy->root + "/cgroup.subtree_control", "+memory");
  }
  if (::mkdir(path.c_str(), 0755) != 0) {
    return os_error(errno, path, "--memory: cannot make a control group");
  }
  std::unique_ptr<MemoryGroup> group(new MemoryGroup(path));
  const char* const limit = hierarchy->is_version2 ? "/memory.max" : "/memory.limit_in_bytes";
  if (Outcome<void> done = write_text(path + limit, fmt::format("{}", limit_bytes)); !done) {
    return done.error();
  }
  // missing: no swap is counted
  if (hierarchy->is_version2) (void)write_text(path + "/memory.swap.max", "0");
  return group;
}

MemoryGroup::~MemoryGroup() {
  for (int i = 0; i < kRemoveTries && ::rmdir(path_.c_str()) != 0 && errno == EBUSY; ++i) {
    std::this_thread::sleep_for(kRemoveWait);
  }
}

std::vector<std::string> MemoryGroup::enter(std::vector<std::string> words) const {
  std::vector<std::string> all = {"sh", "-c", "echo $$ > \"$1\" && shift && exec \"$@\"", "sh",
                                  path_ + "/cgroup.procs"};
  all.insert(all.end(), std::make_move_iterator(words.begin()),
             std::make_move_iterator(words.end()));
  return all;
}

}  // namespace graphlane::cli
