#include "tests/engines/arguments.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "tests/engines/posix.h"

namespace engines {
namespace {

bool contains(const std::initializer_list<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// A number that is not negative, and what follows it.
int64_t parse_number(const std::string& option, const std::string& text, std::string& rest) {
  int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc{} || number < 0) {
    die("%s '%s': not a number from 0", option.c_str(), text.c_str());
  }
  rest.assign(parsed.ptr, end);
  return number;
}

}  // namespace

Arguments::Arguments(int argc, char** argv, const char* usage,
                     std::initializer_list<std::string> options,
                     std::initializer_list<std::string> flags)
    : usage_(usage) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!word.starts_with("--")) {
      words_.push_back(word);
    } else if (contains(flags, word)) {
      values_[word] = "";
    } else if (contains(options, word) && i + 1 < argc) {
      values_[word] = argv[++i];
    } else {
      wrong();
    }
  }
}

void Arguments::wrong() const {
  std::fputs(usage_, stderr);
  std::exit(2);
}

const std::string& Arguments::word(size_t index) const {
  if (index >= words_.size()) wrong();
  return words_[index];
}

std::string Arguments::text(const std::string& option, const std::string& otherwise) const {
  const auto found = values_.find(option);
  return found == values_.end() ? otherwise : found->second;
}

int64_t Arguments::number(const std::string& option, int64_t otherwise) const {
  if (!has(option)) return otherwise;
  std::string rest;
  const int64_t number = parse_number(option, values_.at(option), rest);
  if (!rest.empty()) die("%s '%s': not a number", option.c_str(), values_.at(option).c_str());
  return number;
}

int64_t Arguments::size_bytes(const std::string& option, int64_t otherwise) const {
  if (!has(option)) return otherwise;
  std::string suffix;
  const int64_t number = parse_number(option, values_.at(option), suffix);
  const std::string suffixes = "KMGT";
  if (suffix.empty()) return number;
  const size_t power = suffixes.find(suffix);
  if (power == std::string::npos) {
    die("%s '%s': not a size (write 4096, 64K, 12M, 1G)", option.c_str(),
        values_.at(option).c_str());
  }
  return number << (10 * (power + 1));
}

}  // namespace engines
