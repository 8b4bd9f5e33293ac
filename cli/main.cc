// graphlane: the one command. What it can do is in command_*.cc.
#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <new>

#include "cli/command.h"
#include "cli/preload.h"
#include "iomgr/base/progress.h"

namespace graphlane::cli {
namespace {

constexpr char kAbout[] =
    "Stripes graphs over several devices for programs that were never changed.";

constexpr char kMore[] =
    "Sizes: K, M, G are powers of 1024; KB, MB, GB powers of 1000.\n"
    "Exit status: 0 done; 1 failed; 2 wrong command line; `run`: the command's own,\n"
    "125 if it could not be prepared, 126 or 127 if it could not be executed or found.\n"
    "`graphlane COMMAND --help` says more, graphlane(1) most.";

// What stands after the first "--" of `run` is nobody's but the program's that it starts.
std::optional<std::vector<std::string>> split_at_dashes(std::vector<std::string>* words) {
  const auto command = std::find_if(words->begin(), words->end(),
                                    [](const std::string& word) { return !word.starts_with('-'); });
  if (command == words->end() || *command != "run") return std::nullopt;
  const auto dashes = std::find(command, words->end(), "--");
  if (dashes == words->end()) return std::nullopt;
  std::vector<std::string> rest(dashes + 1, words->end());
  words->erase(dashes, words->end());
  return rest;
}

int usage_error(const Parser& parser, const std::string& reason) {
  std::string command;
  for (const CLI::App* chosen : parser.app.get_subcommands()) {
    command = " " + chosen->get_name();
    for (const CLI::App* below : chosen->get_subcommands()) command += " " + below->get_name();
  }
  complain(fmt::format("{} (see graphlane{} --help)", reason, command));
  return kUsage;
}

// The help of the command that was chosen, of the program if none was.
std::string help_of(const CLI::App* app, const std::string& before) {
  for (const CLI::App* command : app->get_subcommands()) {
    return help_of(command, before + (before.empty() ? "" : " ") + app->get_name());
  }
  return app->help(before);
}

// Dies of the signal that interrupted the work, so that a shell script stops too.
int die_of(int number) {
  std::fflush(stdout);
  std::signal(number, SIG_DFL);
  std::raise(number);
  return 128 + number;
}

int run_action(const Parser& parser) {
  const Outcome<int> status = parser.action();
  if (!status) complain(status.error().text);
  if (!status && caught_signal() != 0) return die_of(caught_signal());
  if (std::fflush(stdout) != 0) {
    complain("cannot write to stdout");
    return kFailed;
  }
  return status ? *status : kFailed;
}

// mount(8) has mount.fuse3 run "graphlane VOL MNT -o OPTIONS" for the type
// fuse.graphlane, VOL being absolute. No command has a slash in its name.
void name_command_of_mount8(std::vector<std::string>* words) {
  if (!words->empty() && words->front().starts_with('/')) words->insert(words->begin(), "mount");
}

int parse_and_run(Parser& parser, std::vector<std::string> words) {
  name_command_of_mount8(&words);
  parser.after_dashes = split_at_dashes(&words);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    parser.app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", help_of(&parser.app, ""));
    return kOk;
  } catch (const CLI::CallForVersion&) {
    fmt::print("graphlane {}\n", GRAPHLANE_VERSION);
    return kOk;
  } catch (const CLI::ParseError& error) {
    return usage_error(parser, error.what());
  }
  if (quiet) Progress::silence();
  return run_action(parser);
}

}  // namespace
}  // namespace graphlane::cli

int main(int argc, char** argv) {
  using namespace graphlane::cli;
  shed_preload(argv);
  try {
    Parser parser{.app = CLI::App(kAbout, "graphlane"), .action = {}, .after_dashes = {}};
    parser.app.footer(kMore);
    parser.app.require_subcommand(1);
    parser.app.set_version_flag("--version", GRAPHLANE_VERSION);
    parser.app.add_flag("-q,--quiet", quiet, "no progress and no summary");
    for (const auto add : {add_create, add_import, add_export, add_ls, add_info, add_check, add_rm,
                           add_restripe, add_convert, add_gen, add_run, add_explain, add_mount,
                           add_umount, add_serve, add_stat, add_advise,
                           add_calibrate}) {
      add(parser);
    }
    return parse_and_run(parser, std::vector<std::string>(argv + 1, argv + argc));
  } catch (const std::bad_alloc&) {
    complain("out of memory");
  } catch (const std::exception& error) {
    complain(error.what());
  }
  return kFailed;
}
