#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "cli/command.h"
#include "cli/preload.h"
#include "fuse/private_mount.h"
#include "iomgr/extent_cache.h"
#include "iomgr/mount_table.h"
#include "iomgr/volume_server.h"

namespace graphlane::cli {
namespace fs = std::filesystem;
namespace {

struct RunOptions {
  std::vector<std::string> command;
  std::vector<std::string> volumes;
  std::string report;  // "1" or a file; empty: none
  std::string io;
  std::string cache;
  std::string share;
  bool no_mount = false;
};

// The words of the command that may be paths: "FILE", "if=FILE", "--graph=FILE".
std::vector<std::string> possible_paths(const std::vector<std::string>& command) {
  std::vector<std::string> paths = {"."};
  for (const std::string& word : command) {
    if (!word.empty()) paths.push_back(word);
    const size_t equals = word.find('=');
    if (equals != std::string::npos && equals + 1 < word.size()) {
      paths.push_back(word.substr(equals + 1));
    }
  }
  return paths;
}

// The roots of the volumes that the command is about.
Outcome<std::set<std::string>> find_roots(const RunOptions& options) {
  std::set<std::string> roots;
  for (const std::string& given : options.volumes) {
    const Outcome<std::string> root = find_volume_root(given);
    if (!root) return root.error();
    roots.insert(*root);
  }
  for (const std::string& path : possible_paths(options.command)) {
    if (const Outcome<std::string> root = find_volume_root(path)) roots.insert(*root);
  }
  return roots;
}

Outcome<void> set_environment(const RunOptions& options) {
  const Outcome<std::string> library = find_preload_library();
  if (!library) return library.error();
  if (Outcome<void> set = prepend_preload(*library); !set) return set;
  if (!options.io.empty()) ::setenv("GRAPHLANE_IO", options.io.c_str(), 1);
  if (!options.cache.empty()) ::setenv("GRAPHLANE_CACHE", options.cache.c_str(), 1);
  if (!options.share.empty()) ::setenv("GRAPHLANE_SHARE", options.share.c_str(), 1);
  if (!options.report.empty()) {
    std::error_code error;  // the command may change its directory
    const std::string target =
        options.report == "1" ? options.report : fs::absolute(options.report, error).string();
    ::setenv("GRAPHLANE_REPORT", target.c_str(), 1);
  }
  return {};
}

// Becomes the command: so its exit status and the signals are its own.
Outcome<int> become(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(argv[0], argv.data());
  const int code = errno;
  fmt::print(stderr, "graphlane: {}: {}\n", command[0], std::strerror(code));
  return code == ENOENT ? kNotFound : kCannotExecute;
}

IoMode io_mode(const std::string& name) {
  if (name == "direct") return IoMode::kDirect;
  return name == "buffered" ? IoMode::kBuffered : IoMode::kAuto;
}

Outcome<int> run_mounted(const RunOptions& options,
                         const std::vector<std::shared_ptr<const Volume>>& volumes) {
  MountOptions mount;
  mount.io_mode = io_mode(options.io);
  const char* const share = std::getenv("GRAPHLANE_SHARE");
  std::vector<ServerUse> uses;  // until the command has ended
  for (const auto& volume : volumes) {
    if (share == nullptr || std::strcmp(share, "no") != 0) uses.push_back(ServerUse::begin(volume));
  }
  const Outcome<int> status = run_in_private_mounts(volumes, mount, options.command);
  if (status) return *status;
  fmt::print(stderr, "graphlane: {}; by the preload library alone\n", status.error().text);
  return become(options.command);
}

Outcome<int> prepare_and_run(const RunOptions& options) {
  const Outcome<std::set<std::string>> roots = find_roots(options);
  if (!roots) return roots.error();
  if (Outcome<void> set = set_environment(options); !set) return set.error();
  std::vector<std::shared_ptr<const Volume>> volumes;  // that are to be mounted
  for (const std::string& root : *roots) {
    if (find_volume_mount(root)) continue;
    const auto volume = Volume::open(root);
    if (!volume) return volume.error();
    volumes.push_back(*volume);
  }
  if (options.no_mount || volumes.empty()) return become(options.command);
  return run_mounted(options, volumes);
}

Outcome<int> run(const RunOptions& options) {
  const Outcome<int> status = prepare_and_run(options);
  if (status) return *status;
  fmt::print(stderr, "graphlane: {}\n", status.error().text);
  return kRunFailed;
}

}  // namespace

void add_run(Parser& parser) {
  const auto options = std::make_shared<RunOptions>();
  Command* command = parser.add(
      "run", "run a program that reads striped files, unchanged",
      "graphlane run -- pagerank graphs/twitter-grid 20 8\n\n"
      "Volumes are found from the command's words that are paths (FILE, if=FILE,\n"
      "--graph=FILE), from the working directory, and from --volume. One that is not\n"
      "mounted is mounted for the command alone, where the system allows that; commands\n"
      "that run so at once share what they read.");
  command->add_option("--volume", options->volumes, "a volume that the command will use")
      ->type_name("VOL")
      ->one_value_each();
  command->add_flag("--no-mount", options->no_mount, "by the preload library alone");
  command->add_flag("--report{1}", options->report,
                    "tell at the end what was read and how; =FILE appends JSON there");
  command->add_option("--io", options->io, "auto, direct or buffered reads of the devices")
      ->one_of({"auto", "direct", "buffered"})
      ->type_name("MODE");
  command->add_option("--cache", options->cache,
                      "memory for what is read past the page cache: auto, 0 or a size")
      ->check([](const std::string& text) {
        return parse_budget(text) ? std::string() : text + ": not auto, 0 or a size";
      })
      ->type_name("SIZE");
  command->add_option("--share", options->share,
                      "what several programs read, once for all: auto, no, or map, in their own\n"
                      "buffers (nobody can write the file then)")
      ->one_of({"auto", "no", "map"})
      ->type_name("MODE");
  command->take_rest(&options->command);
  command->on_chosen([&parser, options]() -> Outcome<void> {
    if (options->command.empty()) return make_error(EINVAL, "CMD is required");
    parser.action = [options] { return run(*options); };
    return {};
  });
}

}  // namespace graphlane::cli
