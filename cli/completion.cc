#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace graphlane::cli {
namespace {

using WordOption = CommandWords::Option;

// Quotes a word for a shell.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The first line of a description, without characters that are special to the shell.
std::string plain(const std::string& text) {
  std::string out;
  for (const char c : text.substr(0, text.find('\n'))) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') {
      out += c == ':' ? "," : "";
    } else {
      out += c;
    }
  }
  return out;
}

std::vector<std::string> option_names(const CommandWords& command) {
  std::vector<std::string> names;
  for (const WordOption& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

std::vector<std::string> command_names(const CommandWords& words) {
  std::vector<std::string> names;
  for (const CommandWords& command : words.commands) names.push_back(command.name);
  return names;
}

// The choices of an operand, as of `graphlane algo`.
std::vector<std::string> operand_choices(const CommandWords& command) {
  std::vector<std::string> choices;
  for (const WordOption& option : command.options) {
    if (option.names.empty()) {
      choices.insert(choices.end(), option.choices.begin(), option.choices.end());
    }
  }
  return choices;
}

std::string bash_command(const CommandWords& command) {
  std::string values;
  for (const WordOption& option : command.options) {
    if (option.names.empty() || option.choices.empty()) continue;
    values += fmt::format("        {}) COMPREPLY=($(compgen -W {} -- \"$word\")); return ;;\n",
                          fmt::join(option.names, "|"),
                          quoted(fmt::format("{}", fmt::join(option.choices, " "))));
  }
  if (!values.empty()) values = "      case $before in\n" + values + "      esac\n";
  std::vector<std::string> operands = operand_choices(command);
  const std::vector<std::string> below = command_names(command);
  operands.insert(operands.end(), below.begin(), below.end());
  return fmt::format("    {})\n{}      options={}\n      operands={}\n      ;;\n", command.name,
                     values, quoted(fmt::format("{}", fmt::join(option_names(command), " "))),
                     quoted(fmt::format("{}", fmt::join(operands, " "))));
}

}  // namespace

std::string bash_completion(const CommandWords& words) {
  std::string cases;
  for (const CommandWords& command : words.commands) cases += bash_command(command);
  return fmt::format(R"(# bash completion for {0}, made by `{0} completion bash`.
_{0}() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= i
  local options={1} operands=
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case ${{COMP_WORDS[i]}} in -*) ;; *) command=${{COMP_WORDS[i]}}; break ;; esac
  done
  COMPREPLY=()
  case $command in
    "") operands={2} ;;
{3}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
  elif [[ -n $operands ]]; then
    COMPREPLY=($(compgen -W "$operands" -- "$word"))
  fi
}}
complete -o bashdefault -o default -F _{0} {0}
)",
                     words.name, quoted(fmt::format("{}", fmt::join(option_names(words), " "))),
                     quoted(fmt::format("{}", fmt::join(command_names(words), " "))), cases);
}

std::string zsh_completion(const CommandWords& words) {
  std::string commands, cases;
  for (const CommandWords& command : words.commands) {
    commands += "    " + quoted(command.name + ":" + plain(command.description)) + "\n";
    std::string arguments;
    for (const WordOption& option : command.options) {
      const std::string value = !option.takes_value ? ""
                                : option.choices.empty()
                                    ? ":value:_files"
                                    : fmt::format(":value:({})", fmt::join(option.choices, " "));
      for (const std::string& name : option.names) {
        arguments += " \\\n        " +
                     quoted(fmt::format("*{}[{}]{}", name, plain(option.description), value));
      }
    }
    std::vector<std::string> operands = operand_choices(command);
    const std::vector<std::string> below = command_names(command);
    operands.insert(operands.end(), below.begin(), below.end());
    if (!operands.empty()) {
      arguments += " \\\n        " + quoted(fmt::format("1:word:({})", fmt::join(operands, " ")));
    }
    cases += fmt::format("    {}) _arguments{} \\\n        '*:file:_files' ;;\n", command.name,
                         arguments);
  }
  return fmt::format(R"(#compdef {0}
# zsh completion for {0}, made by `{0} completion zsh`.
_{0}() {{
  local -a commands=(
{1}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  local command=${{words[2]}}
  shift words
  (( CURRENT-- ))
  case $command in
{2}  esac
}}
_{0} "$@"
)",
                     words.name, commands, cases);
}

std::string fish_completion(const CommandWords& words) {
  std::string out =
      fmt::format("# fish completion for {0}, made by `{0} completion fish`.\n", words.name);
  const auto add_options = [&](const CommandWords& command, const std::string& when) {
    for (const WordOption& option : command.options) {
      std::string line = fmt::format("complete -c {} {}", words.name, when);
      if (option.names.empty()) {
        if (option.choices.empty()) continue;
        out += fmt::format("{} -a {}\n", line,
                           quoted(fmt::format("{}", fmt::join(option.choices, " "))));
        continue;
      }
      for (const std::string& name : option.names) {
        line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.takes_value) line += " -r";
      if (!option.choices.empty()) {
        line += " -f -a " + quoted(fmt::format("{}", fmt::join(option.choices, " ")));
      }
      out += line + " -d " + quoted(plain(option.description)) + "\n";
    }
  };
  add_options(words, "-n __fish_use_subcommand");
  for (const CommandWords& command : words.commands) {
    out += fmt::format("complete -c {} -f -n __fish_use_subcommand -a {} -d {}\n", words.name,
                       command.name, quoted(plain(command.description)));
    const std::string when = "-n " + quoted("__fish_seen_subcommand_from " + command.name);
    add_options(command, when);
    if (!command.commands.empty()) {
      out += fmt::format("complete -c {} {} -a {}\n", words.name, when,
                         quoted(fmt::format("{}", fmt::join(command_names(command), " "))));
    }
  }
  return out;
}

}  // namespace graphlane::cli
