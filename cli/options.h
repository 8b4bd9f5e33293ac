// The words of a command line: commands, their operands and options. CLI11 parses them, in
// options.cc alone, because each file that includes its header costs eight seconds of compilation.
//
//   Command* command = parser.add("create", "make a volume over several devices", "graphlane create …");
//   command->add_option("VOL", options->root, "new or empty directory")->required();   an operand
//   command->add_option("-d,--device", options->devices, "a device")->type_name("DIR");
//   command->add_flag("-f,--overwrite", options->overwrite, "replace what is there");
//
// A variable that is bound to an option must live until the command has run. An error in the
// command line is a usage error (exit status 2) that names the option.
#pragma once

#include <concepts>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "iomgr/base/error.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace graphlane::cli {

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  const CLI::Option* cli() const { return option_; }
  const std::vector<std::string>& choices() const { return choices_; }

  Option* required();
  Option* type_name(const std::string& name);  // the value in help: SIZE, N, DIR …
  Option* help_text(const std::string& text);  // replaces all that help shows of the value
  Option* hidden();                            // not in help
  template <std::integral Integer>
  Option* in_range(Integer min, Integer max) {
    return in_integers(min, max);
  }
  Option* in_range(double min, double max);
  Option* one_of(const std::vector<std::string>& words);
  // `complaint` returns the reason against a value; empty: the value is good.
  Option* check(const std::function<std::string(const std::string&)>& complaint);
  Option* one_value_each();  // for a list: the option is repeated for each value
  Option* excludes(Option* other);
  Option* needs(Option* other);

 private:
  Option* in_integers(int64_t min, int64_t max);

  CLI::Option* const option_;
  std::vector<std::string> choices_;
};

class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  // `names` is "-d,--device", or a word in capitals: a positional operand.
  Option* add_option(const std::string& names, std::string& value, const std::string& description);
  Option* add_option(const std::string& names, std::vector<std::string>& values,
                     const std::string& description);
  Option* add_option(const std::string& names, uint32_t& value, const std::string& description);
  Option* add_option(const std::string& names, uint64_t& value, const std::string& description);
  Option* add_option(const std::string& names, double& value, const std::string& description);
  Option* add_option(const std::string& names, std::optional<uint32_t>& value,
                     const std::string& description);
  Option* add_option(const std::string& names, std::optional<uint64_t>& value,
                     const std::string& description);
  // Adds an option whose value `parse` accepts; its error is a usage error.
  Option* add_option(const std::string& names,
                     const std::function<Outcome<void>(const std::string&)>& parse,
                     const std::string& description);
  Option* add_flag(const std::string& names, bool& value, const std::string& description);
  // "--report{1}": the value is "1" if none is given.
  Option* add_flag(const std::string& names, std::string& value, const std::string& description);

  // Adds a subcommand ("gen rmat"); `example` ends its help.
  Command* add_command(const std::string& name, const std::string& description,
                       const std::string& example);
  // A subcommand must be named.
  void require_command();
  // Options end at the first word that is not an option. That word and all that follow go into
  // `words`, and so do the words after the first "--", whatever they look like.
  void take_rest(std::vector<std::string>* words);
  // Whether the rest begins, before any "--", with a word that looks like an option.
  bool had_unknown_option() const;
  // `call` runs after parsing if this command was chosen. Its error is a usage error.
  void on_chosen(const std::function<Outcome<void>()>& call);

 private:
  friend class CommandLine;
  template <class Value>
  Option* bind(const std::string& names, Value& value, const std::string& description);
  Option* keep(CLI::Option* option);

  CLI::App* const app_;
  std::vector<std::string>* rest_ = nullptr;              // of take_rest()
  std::optional<std::vector<std::string>> after_dashes_;  // of the line being parsed
  std::deque<Option> options_;
  std::deque<Command> commands_;
};

// A command as shells complete it: its options and its subcommands.
struct CommandWords {
  struct Option {
    std::vector<std::string> names = {};  // "-d", "--device"; none: an operand
    std::string description;
    bool takes_value = false;
    std::vector<std::string> choices = {};  // values; none: any value, completed as a file name
  };
  std::string name;
  std::string description;
  std::vector<Option> options = {};  // without hidden ones
  std::vector<CommandWords> commands = {};
};

// A whole command line.
class CommandLine {
 public:
  // `about` begins the help, `more` ends it. --version prints `version`.
  CommandLine(const std::string& name, const std::string& about, const std::string& more,
              const std::string& version);
  ~CommandLine();

  Command* root() { return &root_; }

  struct Parsed {
    enum What { kChosen, kHelp, kVersion, kUsageError } what = kChosen;
    std::string text;     // to be printed; for a usage error, the reason
    std::string command;  // the chosen one, " gen rmat"; "": none
  };
  // `words`: without the program's name.
  Parsed parse(std::vector<std::string> words);
  CommandWords words() const;

 private:
  void split_at_dashes(std::vector<std::string>* words);
  // The reason why the first word is not a command; "": it is one, or there is none.
  std::string wrong_command(const std::vector<std::string>& words) const;

  static CommandWords words_of(const Command& command);

  const std::unique_ptr<CLI::App> app_;
  const std::string version_;
  Command root_;
};

}  // namespace graphlane::cli
