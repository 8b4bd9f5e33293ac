// completion: prints the script with which a shell completes the command line.
#include "cli/command.h"
#include "cli/completion.h"

namespace graphlane::cli {
namespace {

struct CompletionCommand {
  std::string shell;
  const CommandLine* line = nullptr;
};

Outcome<int> print_completion(const CompletionCommand& options) {
  const CommandWords words = options.line->words();
  fmt::print("{}", options.shell == "bash"  ? bash_completion(words)
                   : options.shell == "zsh" ? zsh_completion(words)
                                            : fish_completion(words));
  return kOk;
}

}  // namespace

void add_completion(Parser& parser) {
  const auto options = std::make_shared<CompletionCommand>();
  options->line = &parser.line;
  Command* command = parser.add(
      "completion", "print what a shell needs to complete the command line",
      "graphlane completion bash > ~/.local/share/bash-completion/completions/graphlane\n\n"
      "zsh: a file _graphlane in a directory of $fpath;\n"
      "fish: ~/.config/fish/completions/graphlane.fish.");
  command->add_option("SHELL", options->shell, "bash, zsh or fish")
      ->required()
      ->one_of({"bash", "zsh", "fish"})
      ->type_name("");
  parser.on_chosen(command, options, print_completion);
}

}  // namespace graphlane::cli
