// graphlane: the one command. Its subcommands are in command_*.cc.
#include <sys/prctl.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <new>
#include <system_error>

#include "cli/command.h"
#include "cli/run/preload.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/volume/sum/tell.h"

namespace graphlane::cli {
namespace {

constexpr char kAbout[] =
    "Stripes graphs over several devices for programs that were never changed.";

constexpr char kMore[] =
    "Sizes: K, M, G are powers of 1024; KB, MB, GB powers of 1000.\n\n"
    "Exit status: 0 done; 1 failed; 2 wrong command line; `run`: the command's own, "
    "125 if it could not be prepared, 126 or 127 if it could not be executed or found; "
    "`check`: fsck(8)'s.\n\n"
    "`graphlane COMMAND --help` lists the options; graphlane-COMMAND(1) is the manual.";

// Dies of the signal that interrupted the work, so that a shell script stops as well.
int die_of(int number) {
  std::fflush(stdout);
  std::signal(number, SIG_DFL);
  std::raise(number);
  return 128 + number;
}

Outcome<int> act(const Parser& parser) {
  try {
    return parser.action();
  } catch (const std::bad_alloc&) {
    return make_error(ENOMEM, "out of memory");
  } catch (const std::system_error& error) {
    const bool is_thread = error.code() == std::errc::resource_unavailable_try_again;
    return make_error(error.code().value(), "{}{}", is_thread ? "cannot start a thread: " : "",
                      error.what());
  } catch (const std::exception& error) {
    return make_error(EIO, "{}", error.what());
  }
}

int run_action(const Parser& parser, int failed) {
  const Outcome<int> status = act(parser);
  if (!status) complain(in_users_words(status.error().text));
  if (!status && caught_signal() != 0) return die_of(caught_signal());
  if (std::fflush(stdout) != 0) {
    complain("cannot write to stdout");
    return failed;
  }
  return status ? *status : failed;
}

// For the type fuse.graphlane, mount(8) runs mount.fuse3, which runs "graphlane VOL MNT -o OPTIONS"
// with an absolute VOL. No command's name has a slash.
void name_command_of_mount8(std::vector<std::string>* words) {
  if (!words->empty() && words->front().starts_with('/')) words->insert(words->begin(), "mount");
}

// For the type graphlane, mount(8) runs "mount.graphlane VOL MNT [-sfnv] [-t TYPE] [-o OPTIONS]", a
// link to this program. Its -f asks for a trial, which opens nothing: `is_trial` becomes true.
std::vector<std::string> words_of_mount8(const std::vector<std::string>& given, bool* is_trial) {
  std::vector<std::string> words = {"mount"};
  for (size_t i = 0; i < given.size(); ++i) {
    const std::string& word = given[i];
    if (word == "-t") {
      ++i;
    } else if (word.size() > 1 && word[0] == '-' &&
               word.find_first_not_of("sfnv", 1) == std::string::npos) {
      *is_trial = *is_trial || word.find('f') != std::string::npos;
    } else {
      words.push_back(word);
    }
  }
  return words;
}

// fsck(8) runs "fsck.fuse.graphlane [-a|-p|-y|-n] VOL", a link to this program too.
std::vector<std::string> words_by_name(const char* program, std::vector<std::string> words,
                                       bool* is_trial) {
  std::string_view name(program != nullptr ? program : "");
  name = name.substr(name.rfind('/') + 1);
  if (name == "fsck.fuse.graphlane" || name == "fsck.graphlane") {
    words.insert(words.begin(), "check");
  }
  return name == "mount.graphlane" ? words_of_mount8(words, is_trial) : words;
}

// `graphlane run` must begin quickly, so its words alone are set up if it is called by them.
void add_commands(Parser& parser, const std::vector<std::string>& words) {
  if (!words.empty() && words.front() == "run") return add_run(parser);
  for (const auto add :
       {add_create,   add_import,  add_export,    add_ls,         add_info,
        add_check,    add_adopt,   add_destroy,   add_relocate,   add_rm,
        add_restripe, add_convert, add_gen,       add_algo,       add_compare_results,
        add_run,      add_explain, add_mount,     add_umount,     add_serve,
        add_stat,     add_advise,  add_calibrate, add_completion, add_try}) {
    add(parser);
  }
}

int parse_and_run(Parser& parser, std::vector<std::string> words) {
  name_command_of_mount8(&words);
  const CommandLine::Parsed parsed = parser.line.parse(std::move(words));
  switch (parsed.what) {
    case CommandLine::Parsed::kHelp:
    case CommandLine::Parsed::kVersion: fmt::print("{}", parsed.text); return kOk;
    case CommandLine::Parsed::kUsageError:
      complain(fmt::format("{} (see graphlane{} --help)", parsed.text, parsed.command));
      return parser.failure_of(parsed.command).usage;
    case CommandLine::Parsed::kChosen: break;
  }
  if (quiet) Progress::silence();
  return run_action(parser, parser.failure_of(parsed.command).failed);
}

// A write behind the limit of file sizes (ulimit -f) becomes an error, EFBIG, instead of the end of a
// command between two steps, or of a mount. A handler, which programs that are executed do not
// inherit.
void survive_file_size_limit() {
  struct sigaction action;
  if (::sigaction(SIGXFSZ, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return;
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  (void)::sigaction(SIGXFSZ, &action, nullptr);
}

// The Python package names itself as the parent: when it dies, this command is interrupted and
// cleans up. The kernel sends nothing for a parent that died before the call, so getppid() is
// checked after it.
void end_with_parent() {
  constexpr char kParent[] = "GRAPHLANE_PARENT";
  const char* const given = std::getenv(kParent);
  if (given == nullptr) return;
  pid_t parent = 0;
  std::from_chars(given, given + std::strlen(given), parent);
  ::unsetenv(kParent);
  ::prctl(PR_SET_PDEATHSIG, SIGINT);
  if (::getppid() != parent) std::raise(SIGINT);
}

}  // namespace
}  // namespace graphlane::cli

int main(int argc, char** argv) {
  using namespace graphlane::cli;
  shed_preload(argv);
  end_with_parent();
  survive_file_size_limit();
  graphlane::log_sum_failures();
  try {
    Parser parser{.line = {"graphlane", kAbout, kMore, GRAPHLANE_VERSION}, .action = {}};
    parser.line.root()->require_command();
    parser.line.root()->add_flag("-q,--quiet", quiet, "no progress and no summary");
    std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
    set_command_line(words);
    bool is_trial = false;
    words = words_by_name(argv[0], std::move(words), &is_trial);
    add_commands(parser, words);
    return is_trial ? kOk : parse_and_run(parser, std::move(words));
  } catch (const std::bad_alloc&) {
    complain("out of memory");
  } catch (const std::exception& error) {
    complain(error.what());
  }
  return kFailed;
}
