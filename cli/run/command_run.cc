#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <set>

#include "cli/command.h"
#include "cli/run/closer.h"
#include "cli/run/executable.h"
#include "cli/run/preload.h"
#include "cli/run/report_watch.h"
#include "cli/run/volume_finder.h"
#include "fuse/mount/held_signals.h"
#include "fuse/mount/private_mount.h"
#include "iomgr/base/process/hidden_io.h"
#include "iomgr/read/extent_cache.h"
#include "iomgr/server/mount_request.h"
#include "iomgr/server/volume_server.h"
#include "iomgr/volume/mount_table.h"

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
  std::string verify;   // empty: the volume's setting
  std::string program;  // the file of command[0]; empty: by $PATH
  bool no_mount = false;
  bool again = false;  // the preload library has started this process (shim/locate/foresight.h)
};

using Volumes = std::vector<std::shared_ptr<const Volume>>;

std::vector<std::string> environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; *entry != nullptr; ++entry) entries.emplace_back(*entry);
  return entries;
}

std::string working_directory() {
  std::error_code error;
  return fs::current_path(error).string();
}

struct FoundVolumes {
  Volumes to_mount;
  bool any = false;       // including volumes that are mounted
  bool foreseen = false;  // not by --volume alone
};

// Whether the command names a volume or has opened a file in one, so that it may pass descriptors on.
bool may_pass_files = false;

// A program without the library that no volume was found for. It may compute a path, and gets the
// stub of a volume that is not mounted.
void tell_unforeseen(const std::string& program, const std::string& blind) {
  complain(
      fmt::format("{}: {}; of volumes that neither its words nor --volume name it reads stubs "
                  "(run --volume VOL)",
                  program, blind));
}

// Finds the command's volumes. A named one that cannot be opened is an error; others get a line.
Outcome<FoundVolumes> find_volumes(const RunOptions& options) {
  VolumeFinder finder(working_directory(), environment());
  finder.look_at_command(options.command, options.program);
  finder.look_at_environment();
  finder.look_at_descriptors();
  finder.look_at_lists();
  std::set<std::string> named = finder.named();
  const bool foreseen = finder.has_found();
  for (const std::string& given : options.volumes) {
    const Outcome<std::string> root = find_volume_root(given);
    if (!root) return root.error();
    named.insert(*root);
  }
  FoundVolumes found;
  found.foreseen = may_pass_files = foreseen;
  const auto add = [&](const std::string& root) -> Outcome<void> {
    if (!find_volume_mount(root)) {
      const auto volume = Volume::open(root);
      if (!volume) return volume.error();
      found.to_mount.push_back(*volume);
    }
    found.any = true;
    return {};
  };
  for (const std::string& root : named) {
    if (Outcome<void> added = add(root); !added) return added.error();
  }
  for (const std::string& root : finder.guessed()) {
    if (named.contains(root)) continue;
    if (Outcome<void> added = add(root); !added) {
      complain(added.error().text + " (not mounted for the command)");
    }
  }
  // A listed volume that cannot be opened is reported when a program opens a file in it.
  for (const std::string& root : finder.listed()) {
    if (!named.contains(root)) (void)add(root);
  }
  return found;
}

// The volumes that a running program of the command needs.
std::vector<std::shared_ptr<const Volume>> find_later(const fuse::LaterQuestion& question) {
  Volumes volumes;
  const auto add = [&](const std::set<std::string>& roots, bool tells) {
    for (const std::string& root : roots) {
      if (find_volume_mount(root)) continue;
      const auto volume = Volume::open(root);
      if (volume) {
        volumes.push_back(*volume);
      } else if (tells) {
        complain(volume.error().text);
      }
    }
  };
  if (!question.path.empty()) {
    if (const Outcome<std::string> root = find_volume_root(question.path)) {
      add({*root}, /*tells=*/true);
      may_pass_files = true;
    }
    return volumes;
  }
  VolumeFinder finder(question.directory, question.environment);
  finder.look_at_command(question.words, question.program);
  finder.look_at_environment();
  add(finder.named(), /*tells=*/true);
  add(finder.guessed(), /*tells=*/true);
  add(finder.listed(), /*tells=*/false);
  static std::set<std::string> told;  // a script may start the program a thousand times
  if (!may_pass_files && !finder.has_found() && told.insert(question.program).second) {
    const Outcome<Executable> program = find_executable(question.program);
    if (program) {
      tell_unforeseen(question.program, program->blind_because.empty()
                                            ? "its environment has no LD_PRELOAD"
                                            : program->blind_because);
    }
  }
  return volumes;
}

// Makes the path absolute, because the command may change its directory.
std::string report_target(const RunOptions& options) {
  std::error_code error;
  return options.report == "1" ? options.report : fs::absolute(options.report, error).string();
}

Outcome<void> preload() {
  const Outcome<std::string> library = find_preload_library();
  if (!library) return library.error();
  return prepend_preload(*library);
}

void set_environment(const RunOptions& options) {
  std::error_code unknown;
  ::setenv(kProgramVariable, fs::read_symlink("/proc/self/exe", unknown).c_str(), 1);
  ::unsetenv(kMounterVariable);  // it is an outer command's, with other mounts
  if (options.no_mount) {
    ::setenv(kNoMountVariable, "1", 1);
  } else {
    ::unsetenv(kNoMountVariable);
  }
  if (!options.io.empty()) ::setenv("GRAPHLANE_IO", options.io.c_str(), 1);
  if (!options.cache.empty()) ::setenv("GRAPHLANE_CACHE", options.cache.c_str(), 1);
  if (!options.share.empty()) ::setenv("GRAPHLANE_SHARE", options.share.c_str(), 1);
  if (!options.verify.empty()) ::setenv("GRAPHLANE_VERIFY", options.verify.c_str(), 1);
  if (!options.report.empty()) ::setenv("GRAPHLANE_REPORT", report_target(options).c_str(), 1);
}

// Replaces this process by the command, so that exit status and signals are the command's own.
int execute(const RunOptions& options) {
  std::vector<char*> argv;
  for (const std::string& word : options.command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::execvp(options.program.empty() ? argv[0] : options.program.c_str(), argv.data());
  const int code = errno;
  complain(fmt::format("{}: {}", options.command[0], std::strerror(code)));
  return code == ENOENT ? kNotFound : kCannotExecute;
}

// As execute(), but in a child if a report is wanted.
int become(const RunOptions& options) {
  if (options.report.empty() || options.again) return execute(options);
  const fuse::HeldSignals signals;
  const pid_t child = ::fork();
  if (child == 0) {
    ::sigprocmask(SIG_SETMASK, &signals.before(), nullptr);
    ::_exit(execute(options));
  }
  if (child < 0) return execute(options);
  const int status = signals.wait_for(child);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

IoMode io_mode(const std::string& name) {
  if (name == "direct") return IoMode::kDirect;
  return name == "buffered" ? IoMode::kBuffered : IoMode::kAuto;
}

Outcome<int> run_mounted(const RunOptions& options, const Volumes& volumes) {
  fuse::MountOptions mount;
  mount.io_mode = io_mode(options.io);
  if (const char* verify = std::getenv("GRAPHLANE_VERIFY"); verify != nullptr && *verify != '\0') {
    mount.verifies_reads = std::strcmp(verify, "read") == 0;
  }
  const char* const share = std::getenv("GRAPHLANE_SHARE");
  std::vector<ServerUse> uses;  // until the command ends
  for (const auto& volume : volumes) {
    if (share == nullptr || std::strcmp(share, "no") != 0) uses.push_back(ServerUse::begin(volume));
  }
  return fuse::run_in_private_mounts(
      volumes, mount, {.argv = options.command, .program = options.program}, find_later);
}

// The reason why the preload library will not be in the command; "": it will be.
std::string why_blind(const RunOptions& options) {
  const Outcome<Executable> found =
      find_executable(options.program.empty() ? options.command[0] : options.program);
  return found ? found->blind_because : "";  // execvp() reports a program that cannot be executed
}

// Runs the command without a mount, with the library only.
Outcome<int> run_preloaded(const RunOptions& options, const std::string& blind,
                           const Error* missing) {
  if (missing != nullptr) return *missing;
  if (!blind.empty()) {
    return make_error(ENOEXEC,
                      "{}: {}; without a mount it would read stubs: run it without --no-mount",
                      options.command[0], blind);
  }
  if (Result<void> hidden = hide_unseen_io(); !hidden) {
    return os_error(
        hidden.error().code, "io_uring",
        "no preload library sees it, and it cannot be switched off here; run without --no-mount");
  }
  if (!options.again) start_closer();
  return become(options);
}

Outcome<int> start(const RunOptions& options, const FoundVolumes& found, const std::string& blind,
                   const Outcome<void>& preloaded) {
  const Volumes& volumes = found.to_mount;
  const Error* const missing = preloaded ? nullptr : &preloaded.error();
  // Under --no-mount a child may be any program, so it may need no volume.
  if (options.no_mount && !(options.again && volumes.empty())) {
    return run_preloaded(options, blind, missing);
  }
  if (volumes.empty()) {
    if (found.any) {  // through the existing mounts
      if (!found.foreseen && !blind.empty()) tell_unforeseen(options.command[0], blind);
      return become(options);
    }
    if (missing != nullptr) {
      complain(missing->text +
               "; volumes that its words do not name it will not see (run --volume VOL)");
    } else if (!blind.empty()) {
      tell_unforeseen(options.command[0], blind);
    }
    return become(options);
  }
  if (!found.foreseen && !blind.empty()) tell_unforeseen(options.command[0], blind);
  const Outcome<int> status = run_mounted(options, volumes);
  if (status) return status;
  const std::string& reason = status.error().text;
  if (!blind.empty()) {
    return make_error(ENOEXEC, "{}: {}, so that it needs a mount: {}", options.command[0], blind,
                      reason);
  }
  if (missing != nullptr) return make_error(missing->code, "{}; and {}", reason, missing->text);
  complain(reason + "; by the preload library alone");
  return run_preloaded(options, blind, missing);
}

Outcome<int> prepare_and_run(const RunOptions& options) {
  const Outcome<FoundVolumes> found = find_volumes(options);
  if (!found) return found.error();
  set_environment(options);
  const Outcome<void> preloaded = preload();
  const std::string blind = why_blind(options);
  std::optional<ReportWatch> watch;
  if (!options.report.empty() && !options.again) watch.emplace(report_target(options));
  const Outcome<int> status = start(options, *found, blind, preloaded);
  if (status && watch) watch->tell_if_none_reported(options.command[0], blind);
  return status;
}

Outcome<int> run(const RunOptions& options) {
  const Outcome<int> status = prepare_and_run(options);
  if (status) return *status;
  complain(in_users_words(status.error().text));
  return kRunFailed;
}

}  // namespace

void add_run(Parser& parser) {
  const auto options = std::make_shared<RunOptions>();
  Command* command = parser.add(
      "run", "run a program that reads striped files, unchanged",
      "graphlane run -- pagerank graphs/twitter-grid 20 8\n\n"
      "Volumes are found from the command's words (FILE, if=FILE, sh -c \"cat FILE\"), from\n"
      "scripts, the environment, the working directory, /etc/fstab, and from --volume. One that\n"
      "is not mounted is mounted for the command alone, where the system allows that; commands\n"
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
  command
      ->add_option("--cache", options->cache,
                   "memory for what is read past the page cache: auto, 0 or a size")
      ->check([](const std::string& text) {
        return parse_budget(text) ? std::string() : text + ": not auto, 0 or a size";
      })
      ->type_name("SIZE");
  command
      ->add_option("--share", options->share,
                   "share what several programs read: auto, no, or map, in their own\n"
                   "buffers (no program can write the file then)")
      ->one_of({"auto", "no", "map"})
      ->type_name("MODE");
  command
      ->add_option("--verify", options->verify,
                   "read: what comes from a device is compared with its checksum first, and a read "
                   "of damaged\n"
                   "data fails; scrub: not. Else as the volume says")
      ->one_of({"scrub", "read"})
      ->type_name("WHEN");
  command->add_option("--program", options->program, "the file to execute; CMD is the name it gets")
      ->type_name("FILE")
      ->hidden();
  command->add_flag("--again", options->again, "from the preload library")->hidden();
  command->take_rest(&options->command);
  command->on_chosen([&parser, options, command]() -> Outcome<void> {
    if (options->command.empty()) return make_error(EINVAL, "CMD is required");
    if (options->report == "-") {
      return make_error(EINVAL, "--report=-: a file is expected; --report alone prints to stderr");
    }
    if (command->had_unknown_option()) {
      return make_error(EINVAL, "unknown option {}", options->command[0]);
    }
    parser.action = [options] { return run(*options); };
    return {};
  });
}

}  // namespace graphlane::cli
