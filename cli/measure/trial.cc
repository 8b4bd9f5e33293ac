#include "cli/measure/trial.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "cli/measure/child.h"
#include "iomgr/base/fd.h"
#include "iomgr/base/process/interrupt.h"

namespace graphlane::cli {
namespace {

namespace fs = std::filesystem;

constexpr char kSelf[] = "/proc/self/exe";
constexpr char kPlace[] = "{}";

std::string program_path() {
  std::error_code error;
  const fs::path path = fs::read_symlink(kSelf, error);
  return error ? "graphlane" : path.string();
}

std::string replaced(std::string word, const std::string& by) {
  for (size_t at = 0; (at = word.find(kPlace, at)) != std::string::npos; at += by.size()) {
    word.replace(at, sizeof(kPlace) - 1, by);
  }
  return word;
}

template <class Each>
void for_each_file(const std::string& path, const Each& each) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) each(path);
  fs::recursive_directory_iterator at(path, error);
  for (; !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
    std::error_code none;
    if (at->is_regular_file(none)) each(at->path().string());
  }
}

}  // namespace

Outcome<std::unique_ptr<Trial>> Trial::begin(const TrialOptions& options) {
  std::unique_ptr<Trial> trial(new Trial(options));
  struct stat info = {};
  if (::stat(options.graph.c_str(), &info) != 0) {
    return os_error(errno, options.graph, "cannot read");
  }
  for_each_file(options.graph, [&](const std::string& path) {
    std::error_code error;
    const uint64_t bytes = fs::file_size(path, error);
    if (!error) trial->graph_bytes_ += bytes;
  });
  if (trial->graph_bytes_ == 0) return make_error(EINVAL, "{}: nothing to read", options.graph);
  if (options.memory_bytes) {
    auto group = MemoryGroup::make(*options.memory_bytes);
    if (!group) return group.error();
    trial->group_ = std::move(*group);
  }
  for (const std::string& device : options.devices) {
    std::string folder = device + "/graphlane-try-XXXXXX";
    if (::mkdtemp(folder.data()) == nullptr) {
      return os_error(errno, device, "cannot make a scratch folder");
    }
    trial->scratch_.push_back(fs::absolute(folder).string());
  }
  return trial;
}

Trial::~Trial() {
  // An interrupt must not end the clean-up.
  const bool interrupted = interrupt_requested.exchange(false, std::memory_order_relaxed);
  if (!mounted_.empty()) (void)run_ourselves({"umount", mounted_});
  for (const std::string& folder : scratch_) {
    std::error_code error;
    fs::remove_all(folder, error);
  }
  if (interrupted) interrupt_requested.store(true, std::memory_order_relaxed);
}

Outcome<void> Trial::run_ourselves(std::vector<std::string> words, bool in_group) {
  words.insert(words.begin(), {program_path(), "-q"});
  if (in_group && group_) words = group_->enter(std::move(words));
  const Outcome<Finished> finished = run_child(std::move(words));
  if (!finished) return finished.error();
  if (!finished->succeeded()) {
    std::string complaint = finished->complaint();
    if (complaint.starts_with("graphlane: ")) complaint.erase(0, sizeof("graphlane: ") - 1);
    return make_error(EIO, "{}", complaint);
  }
  return {};
}

Outcome<void> Trial::make_copy() {
  const Outcome<Finished> copied =
      run_child({"cp", "-rL", "--", options_.graph, scratch_.front() + "/copy"});
  if (!copied) return copied.error();
  if (!copied->succeeded()) return make_error(EIO, "{}", copied->complaint());
  return {};
}

Outcome<void> Trial::make_volume() {
  std::vector<std::string> words = {"create", scratch_.front() + "/volume"};
  for (const std::string& folder : scratch_) {
    std::error_code error;
    fs::create_directory(folder + "/device", error);
    words.insert(words.end(), {"--device", folder + "/device"});
  }
  if (Outcome<void> made = run_ourselves(std::move(words)); !made) return made.error();
  return run_ourselves({"import", scratch_.front() + "/copy", scratch_.front() + "/volume/graph"});
}

// Drops the graph's pages from the page cache, and no others, because the machine may do other
// work.
void Trial::drop_pages() const {
  const auto drop = [](const std::string& path) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (!file) return;
    (void)::fdatasync(file.get());
    (void)::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  };
  for_each_file(options_.graph, drop);
  for (const std::string& folder : scratch_) for_each_file(folder, drop);
}

Outcome<double> Trial::time_once(const std::string& way, const std::string& graph,
                                 const std::vector<std::string>& prefix) {
  std::vector<std::string> words = prefix;
  for (const std::string& word : options_.command) words.push_back(replaced(word, graph));
  if (group_) words = group_->enter(std::move(words));
  const auto begin = std::chrono::steady_clock::now();
  const Outcome<Finished> finished = run_child(std::move(words));
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  if (!finished) return finished.error();
  if (!finished->succeeded()) {
    return make_error(EIO, "{}: {}: {}", way, options_.command.front(), finished->complaint());
  }
  if (!has_output_) {
    output_ = finished->out;
    has_output_ = true;
  } else if (output_ != finished->out) {
    return make_error(EIO, "{}: {}: it printed something else than the first time", way,
                      options_.command.front());
  }
  return seconds;
}

Outcome<Timing> Trial::time_way(const std::string& way, const std::string& graph,
                                std::vector<std::string> prefix) {
  drop_pages();
  const Outcome<double> cold = time_once(way, graph, prefix);
  if (!cold) return cold.error();
  const Outcome<double> warm = time_once(way, graph, prefix);
  if (!warm) return warm.error();
  return Timing{.way = way, .cold_seconds = *cold, .warm_seconds = *warm};
}

Outcome<std::vector<Timing>> Trial::measure(const std::function<void(const std::string&)>& tell) {
  std::vector<Timing> timings;
  const auto add = [&](const std::string& way, const std::string& graph,
                       std::vector<std::string> prefix) -> Outcome<void> {
    tell(way);
    Outcome<Timing> timing = time_way(way, graph, std::move(prefix));
    if (!timing) return timing.error();
    timings.push_back(std::move(*timing));
    return {};
  };
  std::error_code error;
  const std::string graph = fs::absolute(options_.graph, error).string();
  if (Outcome<void> done = add("where it is", graph, {}); !done) return done.error();
  tell("copying");
  if (Outcome<void> done = make_copy(); !done) return done.error();
  if (Outcome<void> done = add("one disk", scratch_.front() + "/copy", {}); !done) {
    return done.error();
  }
  tell("importing");
  if (Outcome<void> done = make_volume(); !done) return done.error();
  const std::string volume = scratch_.front() + "/volume";
  if (Outcome<void> done = add("preloaded", volume + "/graph", {program_path(), "run", "--"});
      !done) {
    return done.error();
  }
  const std::string at = scratch_.front() + "/mounted";
  fs::create_directory(at, error);
  if (Outcome<void> done = run_ourselves({"mount", volume, at}, /*in_group=*/true); !done) {
    return done.error();
  }
  mounted_ = at;
  if (Outcome<void> done = add("mounted", at + "/graph", {}); !done) return done.error();
  return timings;
}

}  // namespace graphlane::cli
