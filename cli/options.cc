#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "cli/help.h"

namespace graphlane::cli {

Option* Option::required() {
  option_->required();
  return this;
}

Option* Option::type_name(const std::string& name) {
  option_->type_name(name);
  return this;
}

Option* Option::help_text(const std::string& text) {
  option_->option_text(text);
  return this;
}

Option* Option::hidden() {
  option_->group("");
  return this;
}

namespace {

// The validator keeps CLI11's description for --help, but reports errors in plain words.
template <class Number>
CLI::Validator range_of(Number min, Number max) {
  const auto complain = [min, max](std::string& text) {
    Number value{};
    if (CLI::detail::lexical_cast(text, value) && value >= min && value <= max) {
      return std::string();
    }
    return fmt::format("{}: not a number from {} to {}", text, min, max);
  };
  return {complain, CLI::Range(min, max).get_description()};
}

}  // namespace

Option* Option::in_integers(int64_t min, int64_t max) {
  option_->check(range_of(min, max));
  return this;
}

Option* Option::in_range(double min, double max) {
  option_->check(range_of(min, max));
  return this;
}

Option* Option::one_of(const std::vector<std::string>& words) {
  const auto complain = [words](std::string& text) {
    if (std::find(words.begin(), words.end(), text) != words.end()) return std::string();
    return fmt::format("{}: not one of {}", text, fmt::join(words, ", "));
  };
  option_->check(CLI::Validator(complain, CLI::IsMember(words).get_description()));
  choices_ = words;
  return this;
}

Option* Option::check(const std::function<std::string(const std::string&)>& complaint) {
  option_->check(complaint);
  return this;
}

Option* Option::one_value_each() {
  option_->allow_extra_args(false);
  return this;
}

Option* Option::excludes(Option* other) {
  option_->excludes(other->option_);
  return this;
}

Option* Option::needs(Option* other) {
  option_->needs(other->option_);
  return this;
}

namespace {

template <class Value>
struct IsUnsigned : std::is_unsigned<Value> {};
template <class Value>
struct IsUnsigned<std::optional<Value>> : std::is_unsigned<Value> {};

}  // namespace

Option* Command::keep(CLI::Option* option) { return &options_.emplace_back(option); }

template <class Value>
Option* Command::bind(const std::string& names, Value& value, const std::string& description) {
  CLI::Option* const option = app_->add_option(names, value, description);
  if constexpr (IsUnsigned<Value>::value) {
    // CLI11 2.1 reads -1 as 2^64 - 1.
    option->check([](const std::string& text) {
      return text.find('-') == std::string::npos ? std::string() : text + ": not a number";
    });
  }
  return keep(option);
}

Option* Command::add_option(const std::string& names, std::string& value,
                            const std::string& description) {
  return bind(names, value, description);
}

Option* Command::add_option(const std::string& names, std::vector<std::string>& values,
                            const std::string& description) {
  return bind(names, values, description);
}

Option* Command::add_option(const std::string& names, uint32_t& value,
                            const std::string& description) {
  return bind(names, value, description);
}

Option* Command::add_option(const std::string& names, uint64_t& value,
                            const std::string& description) {
  return bind(names, value, description);
}

Option* Command::add_option(const std::string& names, double& value,
                            const std::string& description) {
  return bind(names, value, description);
}

Option* Command::add_option(const std::string& names, std::optional<uint32_t>& value,
                            const std::string& description) {
  return bind(names, value, description);
}

Option* Command::add_option(const std::string& names, std::optional<uint64_t>& value,
                            const std::string& description) {
  return bind(names, value, description);
}

Option* Command::add_option(const std::string& names,
                            const std::function<Outcome<void>(const std::string&)>& parse,
                            const std::string& description) {
  const auto take = [names, parse](const std::string& text) {
    if (const Outcome<void> taken = parse(text); !taken) {
      throw CLI::ValidationError(names, taken.error().text);
    }
  };
  return keep(app_->add_option_function<std::string>(names, take, description));
}

Option* Command::add_flag(const std::string& names, bool& value, const std::string& description) {
  return keep(app_->add_flag(names, value, description));
}

Option* Command::add_flag(const std::string& names, std::string& value,
                          const std::string& description) {
  return keep(app_->add_flag(names, value, description));
}

Command* Command::add_command(const std::string& name, const std::string& description,
                              const std::string& example) {
  CLI::App* command = app_->add_subcommand(name, description);
  command->footer("Example:\n  " + example);
  return &commands_.emplace_back(command);
}

void Command::require_command() { app_->require_subcommand(1); }

void Command::take_rest(std::vector<std::string>* words) {
  rest_ = words;
  app_->prefix_command();
}

bool Command::had_unknown_option() const {
  const std::vector<std::string> words = app_->remaining();
  return !words.empty() && words.front().starts_with('-');
}

void Command::on_chosen(const std::function<Outcome<void>()>& call) {
  app_->callback([this, call] {
    if (rest_ != nullptr) *rest_ = app_->remaining();
    if (after_dashes_) {
      if (!rest_->empty()) rest_->push_back("--");  // it belongs to the program
      rest_->insert(rest_->end(), after_dashes_->begin(), after_dashes_->end());
    }
    if (const Outcome<void> done = call(); !done) throw CLI::ValidationError(done.error().text);
  });
}

CommandLine::CommandLine(const std::string& name, const std::string& about, const std::string& more,
                         const std::string& version)
    : app_(std::make_unique<CLI::App>(about, name)),
      version_(name + " " + version + "\n"),
      root_(app_.get()) {
  app_->footer(more);
  app_->set_version_flag("-V,--version", version);
}

CommandLine::~CommandLine() = default;

namespace {

Help help_of(const CLI::App& app, const std::string& name) {
  const CLI::Formatter formatter;
  HelpSection operands{.title = "Positionals", .entries = {}};
  HelpSection options{.title = "Options", .entries = {}};
  HelpSection commands{.title = "Subcommands", .entries = {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    const bool is_operand = option->get_positional();
    HelpSection& section = is_operand ? operands : options;
    section.entries.push_back({.name = formatter.make_option_name(option, is_operand) +
                                       formatter.make_option_opts(option),
                               .text = option->get_description()});
  }
  for (const CLI::App* command : app.get_subcommands(nullptr)) {
    commands.entries.push_back({.name = command->get_name(), .text = command->get_description()});
  }
  return {.about = app.get_description(),
          .usage = formatter.make_usage(&app, name),
          .sections = {std::move(operands), std::move(options), std::move(commands)},
          .more = app.get_footer()};
}

// The help of the chosen command, or of the program.
std::string chosen_help(const CLI::App& app, const std::string& before) {
  const std::string name = before + (before.empty() ? "" : " ") + app.get_name();
  for (const CLI::App* command : app.get_subcommands()) return chosen_help(*command, name);
  return fold(help_of(app, name), help_width());
}

const CLI::App* innermost(const CLI::App* app) {
  for (const CLI::App* command : app->get_subcommands()) return innermost(command);
  return app;
}

std::string chosen_below(const CLI::App* app) {
  std::string names;
  for (const CLI::App* command : app->get_subcommands()) {
    names = " " + command->get_name() + chosen_below(command);
  }
  return names;
}

}  // namespace

// Takes the words after the first "--" from a command with take_rest(), because CLI11 would look
// for options in them.
void CommandLine::split_at_dashes(std::vector<std::string>* words) {
  const auto name = std::find_if(words->begin(), words->end(),
                                 [](const std::string& word) { return !word.starts_with('-'); });
  const auto dashes = std::find(name, words->end(), "--");
  if (dashes == words->end()) return;
  for (Command& command : root_.commands_) {
    if (command.rest_ == nullptr || command.app_->get_name() != *name) continue;
    command.after_dashes_.emplace(dashes + 1, words->end());
    words->erase(dashes, words->end());
    return;
  }
}

namespace {

size_t distance_of(const std::string& one, const std::string& other);

// "--device" for "--devices"; empty: no option is close.
std::string nearest_option(const CLI::App& app, const std::string& word) {
  std::string nearest;
  size_t least = 3;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const size_t distance = distance_of(word, "--" + name);
      if (distance < least && !option->get_group().empty()) {
        least = distance;
        nearest = "--" + name;
      }
    }
  }
  return nearest;
}

std::string names_below(const CLI::App& app) {
  std::string names;
  for (const CLI::App* command :
       app.get_subcommands([](const CLI::App* one) { return !one->get_name().empty(); })) {
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  return names;
}

// Describes the error in the command line, without CLI11's own words.
std::string in_plain_words(const CLI::ParseError& error, const CLI::App& root) {
  const CLI::App& app = *innermost(&root);
  const std::vector<std::string> left = app.remaining();
  // Comes first, because a misspelt option makes others missing.
  for (const std::string& word : left) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string name = word.substr(0, word.find('='));
    const std::string nearest = nearest_option(app, name);
    return "unknown option " + name + (nearest.empty() ? "" : "; did you mean " + nearest + "?");
  }
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr && !left.empty()) {
    return left.front() + ": one argument too many";
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) != nullptr &&
      app.get_require_subcommand_min() > 0) {
    if (&app == &root) return "no command given";
    return left.empty() ? "one of " + names_below(app) + " is required"
                        : left.front() + ": not one of " + names_below(app);
  }
  const std::string text = error.what();
  constexpr std::string_view kCast = "Could not convert: ";
  if (text.starts_with(kCast)) {
    const std::string rest = text.substr(kCast.size());
    const size_t equals = rest.find(" = ");
    if (equals != std::string::npos) {
      return rest.substr(0, equals) + ": " + rest.substr(equals + 3) + ": not a number";
    }
  }
  const auto between = [&](std::string_view word, std::string_view with, std::string_view behind) {
    const size_t at = text.find(word);
    return text.substr(0, at) + std::string(with) + text.substr(at + word.size()) +
           std::string(behind);
  };
  if (dynamic_cast<const CLI::RequiresError*>(&error) != nullptr) {
    return between(" requires ", " needs ", "");
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) != nullptr) {
    return between(" excludes ", " and ", " exclude each other");
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    return text.substr(0, text.find(':')) + " needs a value";
  }
  return text;
}

// The edit distance: letters to change, insert, delete or swap with the next to make one word of
// the other.
size_t distance_of(const std::string& one, const std::string& other) {
  std::vector<std::vector<size_t>> rows(one.size() + 1, std::vector<size_t>(other.size() + 1));
  for (size_t i = 0; i <= one.size(); ++i) {
    for (size_t j = 0; j <= other.size(); ++j) {
      if (i == 0 || j == 0) {
        rows[i][j] = i + j;
        continue;
      }
      const size_t changed = rows[i - 1][j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1);
      rows[i][j] = std::min({changed, rows[i - 1][j] + 1, rows[i][j - 1] + 1});
      const bool swapped =
          i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
    }
  }
  return rows[one.size()][other.size()];
}

}  // namespace

std::string CommandLine::wrong_command(const std::vector<std::string>& words) const {
  const auto word = std::find_if(words.begin(), words.end(),
                                 [](const std::string& one) { return !one.starts_with('-'); });
  if (word == words.end()) return {};
  std::string nearest;
  size_t least = 3;
  for (const Command& command : root_.commands_) {
    const std::string& name = command.app_->get_name();
    if (name == *word) return {};
    const size_t distance = distance_of(*word, name);
    // In a name, less than half of the letters may differ.
    if (distance < least && 2 * distance < name.size()) {
      least = distance;
      nearest = name;
    }
    if (nearest.empty() && word->size() >= 3 && name.starts_with(*word)) nearest = name;
  }
  return *word + ": no such command" + (nearest.empty() ? "" : "; did you mean " + nearest + "?");
}

CommandWords CommandLine::words_of(const Command& command) {
  CommandWords words{.name = command.app_->get_name(),
                     .description = command.app_->get_description()};
  for (const CLI::Option* option : command.app_->get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    CommandWords::Option one{.description = option->get_description(),
                             .takes_value = option->get_items_expected_max() > 0};
    for (const std::string& name : option->get_snames()) one.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) one.names.push_back("--" + name);
    for (const Option& ours : command.options_) {
      if (ours.cli() == option) one.choices = ours.choices();
    }
    words.options.push_back(std::move(one));
  }
  for (const Command& below : command.commands_) words.commands.push_back(words_of(below));
  return words;
}

CommandWords CommandLine::words() const { return words_of(root_); }

CommandLine::Parsed CommandLine::parse(std::vector<std::string> words) {
  if (!words.empty() && words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  if (std::string wrong = wrong_command(words); !wrong.empty()) {
    return {.what = Parsed::kUsageError, .text = std::move(wrong), .command = {}};
  }
  split_at_dashes(&words);
  std::reverse(words.begin(), words.end());  // CLI11 reads them from the back
  try {
    app_->parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    return {.what = Parsed::kHelp, .text = chosen_help(*app_, ""), .command = {}};
  } catch (const CLI::CallForVersion&) {
    return {.what = Parsed::kVersion, .text = version_, .command = {}};
  } catch (const CLI::ParseError& error) {
    return {.what = Parsed::kUsageError,
            .text = in_plain_words(error, *app_),
            .command = chosen_below(app_.get())};
  }
  return {.what = Parsed::kChosen, .text = {}, .command = chosen_below(app_.get())};
}

}  // namespace graphlane::cli
