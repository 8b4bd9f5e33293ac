// Trial: one graph read in several ways by one program, on the user's own devices.
//
//   where it is      the graph's own directory
//   one disk         a copy on the first device
//   preloaded        a volume over all devices, `graphlane run`
//   mounted          the same, `graphlane mount`
//
// Everything is made in a scratch folder on each device, which the destructor removes.
//
// Threads: one.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/measure/memory_group.h"
#include "iomgr/base/error.h"

namespace graphlane::cli {

struct TrialOptions {
  std::string graph;                     // a file or a directory
  std::vector<std::string> devices;      // at least two
  std::vector<std::string> command;      // "{}" in a word stands for the graph's path
  std::optional<uint64_t> memory_bytes;  // for the program, its daemon and the page cache
};

struct Timing {
  std::string way;
  double cold_seconds = 0;  // with none of the graph in the page cache
  double warm_seconds = 0;  // the run after it
};

class Trial {
 public:
  // Makes the scratch folders. Errors name the device.
  static Outcome<std::unique_ptr<Trial>> begin(const TrialOptions& options);
  ~Trial();

  // Runs the program in each way, after `tell` with the way's name. Its output must be the same in
  // all ways.
  Outcome<std::vector<Timing>> measure(const std::function<void(const std::string&)>& tell);
  uint64_t graph_bytes() const { return graph_bytes_; }

 private:
  explicit Trial(const TrialOptions& options) : options_(options) {}

  Outcome<void> make_copy();
  Outcome<void> make_volume();
  Outcome<Timing> time_way(const std::string& way, const std::string& graph,
                           std::vector<std::string> prefix);
  Outcome<double> time_once(const std::string& way, const std::string& graph,
                            const std::vector<std::string>& prefix);
  Outcome<void> run_ourselves(std::vector<std::string> words, bool in_group = false);
  void drop_pages() const;

  const TrialOptions options_;
  std::unique_ptr<MemoryGroup> group_;
  std::vector<std::string> scratch_;  // a folder on each device
  std::string mounted_;               // "": nothing is
  std::string output_;                // of the first run
  bool has_output_ = false;
  uint64_t graph_bytes_ = 0;
};

}  // namespace graphlane::cli
