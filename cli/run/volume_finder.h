// VolumeFinder: the volumes that a command will meet, as far as its words tell before it runs.
//
//   words        FILE, if=FILE, --graph=FILE, -IDIR; text within a word: sh -c "cat FILE"
//   environment  GRAPH=FILE
//   scripts      what a word, a #! line or another script names, if it is text
//   directories  the working one, and those that words name: a volume in them
//   descriptors  a shell has opened a stub for the command: < FILE
//   lists        /etc/fstab, and the user's own: ~/.config/graphlane/volumes
//
// A path that a program computes is not found. The preload library asks for such volumes later.
//
// Threads: one owner.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace graphlane::cli {

class VolumeFinder {
 public:
  // `directory`: the command's working directory, absolute. `environment`: "NAME=value".
  VolumeFinder(std::string directory, const std::vector<std::string>& environment);

  // `program`: the file that is executed, if it is not words[0] as execvp(3) finds it.
  void look_at_command(const std::vector<std::string>& words, const std::string& program = {});
  void look_at_environment();
  void look_at_descriptors();  // this process's own
  void look_at_lists();

  // Roots that the command itself was given by its words or descriptors: to be opened, or nothing
  // runs.
  const std::set<std::string>& named() const { return named_; }
  // Roots that stand in text, scripts, the environment or a list: one that cannot be opened does
  // not stop the command.
  std::set<std::string> guessed() const;
  // All others, which merely lie in a directory that the command may use.
  std::set<std::string> listed() const;
  bool has_found() const { return !named_.empty() || !found_.empty() || !listed_.empty(); }

 private:
  void look_at_word(const std::string& word);
  void look_at_text(std::string_view text);
  void look_at_token(const std::string& token, bool enters);
  void look_at_script(const std::string& path);
  void look_below(const std::string& directory, uint32_t depth);
  void look_at_list(const std::string& path, bool is_fstab);
  bool look_at_path(const std::string& path);
  std::set<std::string>& place_of_found() {
    return is_word_ ? named_ : is_listing_ ? listed_ : found_;
  }
  std::string find_in_path(const std::string& name) const;
  std::string expand(std::string_view text) const;

  std::map<std::string, std::string, std::less<>> variables_;
  std::vector<std::string> directories_;  // that relative paths may start from
  std::set<std::string, std::less<>> seen_;
  std::set<std::string, std::less<>> scripts_;
  std::set<std::string> named_, found_, listed_;
  bool is_word_ = false;     // what is found now was named by the command
  bool is_listing_ = false;  // what is found now lies in a directory
  uint32_t script_depth_ = 0;
  uint32_t probes_left_ = 512;  // of directories
  uint64_t script_bytes_left_ = 4 << 20;
};

}  // namespace graphlane::cli
