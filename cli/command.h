// The common parts of `graphlane`'s commands: how each adds itself to the parser,
// how it reports, and how it finds the volume that a path lies in.
//
//   main.cc        parses, runs the chosen command, turns its outcome
//                  into one line on stderr and an exit status
//   command_*.cc   one command or a group each: options, help, and the work
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "iomgr/admin/adopt.h"
#include "iomgr/base/error.h"
#include "iomgr/base/json.h"
#include "iomgr/volume/volume.h"

namespace graphlane::cli {

enum ExitStatus {
  kOk = 0,
  kFailed = 1,           // one line on stderr says why
  kUsage = 2,            // the command line is wrong; nothing was done
  kRunFailed = 125,      // `run`: could not do its own part; as env(1)
  kCannotExecute = 126,  // `run`: the command exists, but cannot be executed
  kNotFound = 127,       // `run`: no such command
};

// The work of a command, after parsing: returns an exit status, or the error to print before
// exiting with kFailed.
using Action = std::function<Outcome<int>()>;

// The exit statuses of a command that cannot do its work, and of one with a wrong command line.
struct FailureStatus {
  int failed = kFailed;
  int usage = kUsage;
};

struct Parser {
  CommandLine line;
  Action action;                                       // of the command that was chosen
  std::map<std::string, FailureStatus> failures = {};  // of commands that have their own

  // Adds a command; `example` ends its help.
  Command* add(const std::string& name, const std::string& description, const std::string& example,
               FailureStatus failure = {}) {
    failures[" " + name] = failure;
    return line.root()->add_command(name, description, example);
  }
  // `command` as in CommandLine::Parsed.
  FailureStatus failure_of(const std::string& command) const {
    const auto own = failures.find(command);
    return own == failures.end() ? FailureStatus{} : own->second;
  }

  // When `command` is chosen, calls `work` with `options`.
  template <class Options>
  void on_chosen(Command* command, std::shared_ptr<Options> options,
                 Outcome<int> (*work)(const Options&)) {
    command->on_chosen([this, options, work]() -> Outcome<void> {
      action = [=] { return work(*options); };
      return {};
    });
  }
};

void add_create(Parser& parser);
void add_import(Parser& parser);
void add_export(Parser& parser);
void add_ls(Parser& parser);
void add_info(Parser& parser);
void add_check(Parser& parser);
void add_adopt(Parser& parser);
void add_destroy(Parser& parser);
void add_relocate(Parser& parser);
void add_rm(Parser& parser);
void add_restripe(Parser& parser);
void add_convert(Parser& parser);
void add_gen(Parser& parser);
void add_algo(Parser& parser);
void add_compare_results(Parser& parser);
void add_mount(Parser& parser);
void add_umount(Parser& parser);
void add_serve(Parser& parser);
void add_run(Parser& parser);
void add_explain(Parser& parser);
void add_stat(Parser& parser);
void add_advise(Parser& parser);
void add_calibrate(Parser& parser);
void add_completion(Parser& parser);
void add_try(Parser& parser);

// Parses "12M" and the like; other text is a usage error.
Option* add_size(Command* command, const std::string& names, std::optional<uint64_t>* size,
                 const std::string& description);

// Prints JSON on several lines, or on one (-1). Names that are not UTF-8 are printed all the same.
void print_json(const Json& all, int indent = 2);

// A path in a volume, as given by the user: "VOL", "VOL/dir/file", from any directory.
struct VolumePath {
  std::shared_ptr<const Volume> volume;
  std::string below;  // "" for the volume itself; keeps a "/" or "/." at the end
};
Outcome<VolumePath> open_volume_of(const std::string& path, OpenOptions how = {});

// Prints the bound stubs and the others; kFailed if there are others.
Outcome<int> print_bound(const BindReport& report, const std::string& root);

// Prints a line on stderr.
void complain(const std::string& line);

// An error's text with the path as the user gave it: without the working directory in front, unless
// the command line has it. Call set_command_line() first.
std::string in_users_words(const std::string& text);
void set_command_line(std::vector<std::string> words);

// Does `work` to each operand as rm(1) does: reports each failure at once and continues, but not
// after an interrupt.
Outcome<int> to_each(const std::vector<std::string>& operands,
                     const std::function<Outcome<void>(const std::string&)>& work);

// From now on SIGINT, SIGTERM and SIGHUP end the work (base/interrupt.h) rather than the program.
// The work cleans up, and main() then dies of the signal.
void catch_interrupts();
int caught_signal();  // 0: none

// Whether --quiet was given. Results of queries are printed even then.
extern bool quiet;

}  // namespace graphlane::cli
