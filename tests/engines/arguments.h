// Arguments: a command line of words, --options with a value, and --flags.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

namespace engines {

class Arguments {
 public:
  // Ends the program with `usage` on an option that is in neither list.
  Arguments(int argc, char** argv, const char* usage, std::initializer_list<std::string> options,
            std::initializer_list<std::string> flags);

  // The word at `index`, or the usage when there is none.
  const std::string& word(size_t index) const;
  bool has(const std::string& name) const { return values_.count(name) != 0; }
  std::string text(const std::string& option, const std::string& otherwise) const;
  int64_t number(const std::string& option, int64_t otherwise) const;
  // 4096, 64K, 12M, 1G: powers of 1024.
  int64_t size_bytes(const std::string& option, int64_t otherwise) const;
  [[noreturn]] void wrong() const;

 private:
  const char* usage_;
  std::vector<std::string> words_;
  std::map<std::string, std::string> values_;
};

}  // namespace engines
