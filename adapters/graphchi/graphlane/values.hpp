// Values: each job has its own values of vertices and edges, while the structure is shared.
//
//   BASE.edata.Z.e4B.0_2_blockdir_1048576/0    the first job's, locked by BASE.edata.Z.e4B.0_2.size
//   BASE.job-c5Wq1x/edata.Z.e4B.0_2_blockdir_1048576/0    another job's, a copy at first
//
// GraphChi's programs keep their values beside the graph, in files named by the size of a value, so two
// programs would overwrite each other's. Here the first job has those files. A job that comes while they
// are in use gets a directory of its own, which is removed with the job. With GRAPHLANE_JOB_DIR=DIR a
// job has its values in DIR, and they stay.
//
// Locks are flock(). One file locks a set of values for a program's lifetime. A block of edges' values is
// locked while it is written or copied, so that no copy is torn.
// Threads: any.
#ifndef GRAPHLANE_GRAPHCHI_VALUES_HPP
#define GRAPHLANE_GRAPHCHI_VALUES_HPP

#include <ftw.h>
#include <stdio.h>
#include <sys/file.h>

#include <map>
#include <mutex>
#include <string>

#include "graphlane/files.hpp"

namespace graphlane_graphchi {

class Values {
 public:
  static Values& of_program() {
    static Values values;
    return values;
  }

  // The program's path of the file that is BASE + `rest` beside the graph.
  std::string vertex_file(const std::string& base, const std::string& rest) {
    const std::string path = base + rest;
    std::lock_guard<std::mutex> lock(mu_);
    const std::string directory = directory_for(path, base, O_RDWR | O_CREAT);
    if (directory.empty()) return path;
    const std::string own = directory + "/" + name_in(path);
    // The copy takes no lock: the owner of those values holds it until its end.
    copy_once(path, own, false);
    return own;
  }

  // The program's path of block PREFIX.P_S_blockdir_N/I of the edges' values; `shard` is PREFIX.P_S.
  std::string edge_block(const std::string& shard, const std::string& block) {
    const ShardName name = shard_name(shard);
    // Values of a graph that the program changes are its own already.
    if (!name.valid) return block;
    const size_t edata = name.prefix.rfind(".edata.");
    if (edata == std::string::npos) return block;
    std::lock_guard<std::mutex> lock(mu_);
    const std::string directory = directory_for(name.of(0) + ".size", name.prefix.substr(0, edata), O_RDONLY);
    if (directory.empty()) return block;
    const size_t slash = block.rfind('/');
    const std::string own_directory = directory + "/" + name_in(block.substr(0, slash));
    if (::mkdir(own_directory.c_str(), 0777) != 0 && errno != EEXIST) {
      fail(own_directory, "cannot make the directory", errno);
    }
    const std::string own = own_directory + block.substr(slash);
    copy_once(block, own, true);
    return own;
  }

  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;

 private:
  Values() {
    before_failing() = [] { of_program().remove_temporary(); };
  }
  ~Values() { remove_temporary(); }

  static std::string name_in(const std::string& path) { return path.substr(path.rfind('/') + 1); }

  // The directory of the values that the file `lock` locks; empty: beside the graph.
  std::string directory_for(const std::string& lock, const std::string& base, int flags) {
    const auto known = directories_.find(lock);
    if (known != directories_.end()) return known->second;
    const char* wished = ::getenv("GRAPHLANE_JOB_DIR");
    std::string& directory = directories_[lock];
    if (wished != nullptr && *wished != '\0') {
      if (locked_directory_.empty() && !take_lock(wished, O_RDONLY | O_DIRECTORY)) {
        fail(std::string(wished) + ": another job has its values here");
      }
      return directory = locked_directory_ = wished;
    }
    if (take_lock(lock, flags)) return directory;
    if (temporary_.empty()) {
      std::string made = base + ".job-XXXXXX";
      if (::mkdtemp(&made[0]) == nullptr) {
        fail(lock, "another job uses these values, and no directory can be made beside them", errno);
      }
      temporary_ = made;
    }
    return directory = temporary_;
  }

  // Locks for the program's lifetime. On a filesystem without locks it assumes to be alone.
  static bool take_lock(const std::string& path, int flags) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, S_IRUSR | S_IWUSR | S_IROTH | S_IWOTH);
    if (fd < 0) {
      if ((flags & O_DIRECTORY) != 0) fail(path, "cannot open", errno);
      return true;
    }
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return true;  // `fd` stays open
    const bool taken = errno == EWOULDBLOCK;
    ::close(fd);
    return !taken;
  }

  void copy_once(const std::string& from, const std::string& to, bool locked) {
    if (::access(to.c_str(), F_OK) == 0) return;
    const int source = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
    if (source < 0) return;  // it does not exist yet
    while (locked && ::flock(source, LOCK_SH) != 0 && errno == EINTR) {
    }
    std::vector<char> bytes(size_of(source, from));
    read_at(source, from, bytes.data(), bytes.size(), 0);
    ::close(source);
    // The copy appears complete or not at all.
    const std::string half = to + ".half";
    const int target = ::open(half.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (target < 0) fail(half, "cannot make the file", errno);
    write_at(target, half, bytes.data(), bytes.size(), 0);
    if (::close(target) != 0 || ::rename(half.c_str(), to.c_str()) != 0) fail(to, "cannot make the file", errno);
  }

  void remove_temporary() {
    if (temporary_.empty()) return;
    const auto remove_one = [](const char* path, const struct stat*, int, struct FTW*) { return ::remove(path); };
    ::nftw(temporary_.c_str(), remove_one, 16, FTW_DEPTH | FTW_PHYS);
    temporary_.clear();
  }

  std::mutex mu_;
  std::map<std::string, std::string> directories_;  // lock file to directory
  std::string temporary_;
  std::string locked_directory_;
};

}  // namespace graphlane_graphchi

#endif
