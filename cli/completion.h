// Scripts that complete the command line in a shell, made from the options that the commands
// declare.
#pragma once

#include <string>

#include "cli/options.h"

namespace graphlane::cli {

// The script for the program that `words` describes. It completes commands, options and options'
// choices, and everything else as a file name.
std::string bash_completion(const CommandWords& words);
std::string zsh_completion(const CommandWords& words);
std::string fish_completion(const CommandWords& words);

}  // namespace graphlane::cli
