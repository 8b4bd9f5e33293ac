// Scripts that complete the command line in a shell, made from the options that the commands declare.
#pragma once

#include <string>

#include "cli/options.h"

namespace graphlane::cli {

// The script for the program that `words` describes. Commands, options and the words that an option
// takes are completed; everything else is completed as a file name.
std::string bash_completion(const CommandWords& words);
std::string zsh_completion(const CommandWords& words);
std::string fish_completion(const CommandWords& words);

}  // namespace graphlane::cli
