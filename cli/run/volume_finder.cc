#include "cli/run/volume_finder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/volume/mount_table.h"
#include "iomgr/volume/stub/stub.h"
#include "iomgr/volume/volume.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::cli {
namespace fs = std::filesystem;
namespace {

constexpr uint32_t kScriptDepthMax = 4;          // a script that reads a script …
constexpr uint64_t kScriptBytesMax = 256 << 10;  // of one
constexpr size_t kWordsOfTextMax = 20'000;
constexpr std::string_view kBlanksAndSigns = " \t\r\n;&|<>(){}[]`,!";

bool is_name_sign(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_directory(const std::string& path) {
  struct stat st;
  return ::stat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

// Words after which a directory becomes the one that relative paths start from.
bool enters_directory(std::string_view word) {
  for (const std::string_view name : {"cd", "pushd", "-C", "chdir", "os.chdir", "--chdir",
                                      "--directory", "setwd", "process.chdir", "Dir.chdir", "-D"}) {
    if (word == name) return true;
  }
  return false;
}

std::string joined(const std::string& directory, const std::string& path) {
  return (fs::path(directory) / path).string();
}

// The words of a shell's text. A quoted text stays together with the words around it: '/my
// dir'/file. Strings of other languages come out as words, too.
std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;
  char quote = 0;
  const auto end_word = [&] {
    if (begun && !word.empty()) words.push_back(word);
    word.clear();
    begun = false;
  };
  for (size_t i = 0; i < text.size() && words.size() < kWordsOfTextMax; ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      if (text[++i] != '\n') word += text[i];
      begun = true;
    } else if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else {
        word += c;
      }
      if (c == '\n') {  // an apostrophe in a comment
        quote = 0;
        end_word();
      }
    } else if (c == '"' || c == '\'') {
      quote = c;
      begun = true;
    } else if (c == '$' && i + 1 < text.size() && text[i + 1] == '{') {
      const size_t end = std::min(text.find('}', i), text.size());
      word += text.substr(i, end + 1 - i);
      begun = true;
      i = end;
    } else if (kBlanksAndSigns.find(c) != std::string_view::npos) {
      end_word();
    } else {
      word += c;
      begun = true;
    }
  }
  end_word();
  return words;
}

std::set<std::string> without(const std::set<std::string>& all, const std::set<std::string>& some) {
  std::set<std::string> others;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(),
                      std::inserter(others, others.end()));
  return others;
}

// A file's beginning, if it is a regular one that holds text; else "".
std::string read_text(const std::string& path, uint64_t bytes_max) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0 || !S_ISREG(st.st_mode)) return {};
  std::string text(std::min(bytes_max, static_cast<uint64_t>(st.st_size)), '\0');
  const Result<size_t> got = pread_full(fd.get(), text.data(), text.size(), 0);
  if (!got) return {};
  text.resize(*got);
  if (text.find('\0') != std::string::npos) return {};
  return text;
}

}  // namespace

VolumeFinder::VolumeFinder(std::string directory, const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos) variables_[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  variables_["PWD"] = directory;
  directories_.push_back(std::move(directory));
}

std::set<std::string> VolumeFinder::guessed() const { return without(found_, named_); }

std::set<std::string> VolumeFinder::listed() const {
  return without(without(listed_, found_), named_);
}

void VolumeFinder::look_at_command(const std::vector<std::string>& words,
                                   const std::string& program) {
  if (words.empty()) return;
  is_word_ = true;
  const std::string own = directories_.front();  // `cd` adds to the list
  look_at_path(own);
  const std::string file = program.empty() ? find_in_path(words.front()) : program;
  look_at_path(file);
  is_word_ = false;
  look_below(own, 1);
  for (const std::string& word : words) look_at_word(word);
  // After all words are known: they may name the directory from which a script reads.
  look_at_script(file);
  for (const std::string& word : words) look_at_script(joined(own, word));
}

void VolumeFinder::look_at_word(const std::string& word) {
  is_word_ = true;
  const std::string path = joined(directories_.front(), word);
  look_at_path(path);
  const size_t equals = word.find('=');
  if (equals != std::string::npos) {
    look_at_path(joined(directories_.front(), word.substr(equals + 1)));
  }
  is_word_ = false;
  if (is_directory(path)) look_below(path, 2);
  look_at_text(word);
}

void VolumeFinder::look_at_environment() {
  const auto given = variables_;
  for (const auto& [name, value] : given) {
    // Skips variables that tell the shell's last directory or command: they say nothing about this
    // command.
    if (name == "OLDPWD" || name == "_" || name == "PWD" || name.starts_with("GRAPHLANE_")) {
      continue;
    }
    if (value.find('/') != std::string::npos) look_at_text(value);
  }
}

void VolumeFinder::look_at_text(std::string_view text) {
  bool enters = false;
  for (const std::string& word : words_of(text)) {
    const std::string expanded = expand(word);
    const size_t equals = expanded.find('=');
    const bool assigns =
        equals != std::string::npos && equals > 0 &&
        std::all_of(expanded.begin(), expanded.begin() + static_cast<ptrdiff_t>(equals),
                    is_name_sign);
    if (assigns) variables_[expanded.substr(0, equals)] = expanded.substr(equals + 1);
    look_at_token(expanded, enters);
    enters = enters_directory(word);
  }
}

// "FILE", and within it what follows "=", ":" or "@", and from the first slash on (-IDIR,
// file:///FILE).
void VolumeFinder::look_at_token(const std::string& token, bool enters) {
  if (token.size() > 4096 || !seen_.insert(token + (enters ? "\n" : "")).second) return;
  std::vector<std::string> candidates = {token};
  size_t begin = 0;
  while ((begin = token.find_first_of("=:@", begin)) != std::string::npos) {
    const size_t end = token.find_first_of(":", begin + 1);
    candidates.push_back(token.substr(begin + 1, end == std::string::npos ? end : end - begin - 1));
    ++begin;
  }
  if (const size_t colon = token.find(':'); colon != std::string::npos) {
    candidates.push_back(token.substr(0, colon));
  }
  if (const size_t slash = token.find('/'); slash != std::string::npos && slash > 0) {
    candidates.push_back(token.substr(slash));
  }
  for (const std::string& candidate : candidates) {
    if (candidate.empty() || candidate == "/" || candidate == ".") continue;
    const bool has_slash = candidate.find('/') != std::string::npos;
    const auto before = directories_;
    for (const std::string& directory : before) {
      const std::string path = joined(directory, candidate);
      look_at_path(path);
      if (enters && is_directory(path)) {
        if (std::find(before.begin(), before.end(), path) == before.end()) {
          directories_.push_back(path);
        }
        look_below(path, 1);
      }
      if (script_depth_ > 0 && has_slash) {
        // "$(dirname "$0")/data/FILE": what the script computes lies beside it.
        if (candidate.starts_with('/')) look_at_path(directory + candidate);
        look_at_script(path);
      }
      if (candidate.starts_with('/') && script_depth_ == 0) break;
    }
  }
}

void VolumeFinder::look_at_script(const std::string& path) {
  if (script_depth_ == kScriptDepthMax || script_bytes_left_ == 0) return;
  struct stat st;
  if (path.empty() || ::stat(path.c_str(), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0) {
    return;
  }
  std::error_code error;
  const std::string real = fs::canonical(path, error).string();
  if (error || !scripts_.insert(real).second) return;
  const std::string text = read_text(real, std::min(script_bytes_left_, kScriptBytesMax));
  script_bytes_left_ -= text.size();
  if (text.empty()) return;
  const auto before = directories_;
  const std::string above = fs::path(real).parent_path().string();
  if (std::find(before.begin(), before.end(), above) == before.end()) directories_.push_back(above);
  ++script_depth_;
  if (text.starts_with("#!")) {  // its interpreter may be a script, too
    std::istringstream first(text.substr(2, text.find('\n') - 2));
    for (std::string word; first >> word;) look_at_script(find_in_path(word));
  }
  look_at_text(text);
  --script_depth_;
  directories_ = before;
}

// Finds volumes in a directory, and in its subdirectories.
void VolumeFinder::look_below(const std::string& directory, uint32_t depth) {
  for (const char* skipped : {"/proc", "/sys", "/dev"}) {
    if (directory == skipped) return;
  }
  if (!seen_.insert(directory + "\n" + static_cast<char>('0' + depth)).second) return;
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(directory.c_str()), ::closedir);
  if (list == nullptr) return;
  std::vector<std::string> below;
  while (const dirent* entry = ::readdir(list.get())) {
    const bool may_be =
        entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
    if (!may_be || std::strcmp(entry->d_name, ".") == 0 || std::strcmp(entry->d_name, "..") == 0) {
      continue;
    }
    if (probes_left_ == 0) return;
    --probes_left_;
    const std::string path = joined(directory, entry->d_name);
    if (::access(joined(path, kVolumeJson).c_str(), F_OK) == 0) {
      is_listing_ = true;
      look_at_path(path);
      is_listing_ = false;
    } else if (depth > 1) {
      below.push_back(path);
    }
  }
  for (const std::string& path : below) look_below(path, depth - 1);
}

// Whether the path lies in a volume.
bool VolumeFinder::look_at_path(const std::string& path) {
  if (path.empty() || path.size() >= 4096) return false;
  const std::string how = is_word_ ? "\n!" : is_listing_ ? "\n," : "\n?";
  const std::string key = path + how;
  if (!seen_.insert(key).second) return false;
  // A missing path lies in a volume only if its nearest parent does.
  std::string there = fs::path(path).lexically_normal().string();
  while (there.size() > 1 && ::access(there.c_str(), F_OK) != 0) {
    const size_t slash = there.find_last_of('/', there.size() - 2);
    if (slash == std::string::npos) return false;
    there.resize(std::max<size_t>(slash, 1));
  }
  if (there.size() <= 1 || (!is_word_ && !seen_.insert(there + how + ".").second)) return false;
  const Outcome<std::string> root = find_volume_root(there);
  if (!root) return false;
  place_of_found().insert(*root);
  return true;
}

void VolumeFinder::look_at_descriptors() {
  const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir("/proc/self/fd"), ::closedir);
  if (list == nullptr) return;
  is_word_ = true;
  while (const dirent* entry = ::readdir(list.get())) {
    const int fd = std::atoi(entry->d_name);
    struct stat st;
    if (fd == ::dirfd(list.get()) || ::fstat(fd, &st) != 0) continue;
    const bool may_be_stub = S_ISREG(st.st_mode) && st.st_size == static_cast<off_t>(kStubSize);
    if (!may_be_stub && !S_ISDIR(st.st_mode)) continue;
    std::error_code error;
    const std::string path =
        fs::read_symlink(joined("/proc/self/fd", entry->d_name), error).string();
    if (!error && path.starts_with('/')) look_at_path(path);
  }
  is_word_ = false;
}

void VolumeFinder::look_at_lists() {
  look_at_list("/etc/fstab", true);
  const auto config = variables_.find("XDG_CONFIG_HOME");
  const auto home = variables_.find("HOME");
  if (config != variables_.end() && config->second.starts_with('/')) {
    look_at_list(joined(config->second, "graphlane/volumes"), false);
  } else if (home != variables_.end() && home->second.starts_with('/')) {
    look_at_list(joined(home->second, ".config/graphlane/volumes"), false);
  }
}

void VolumeFinder::look_at_list(const std::string& path, bool is_fstab) {
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    if (!is_fstab) {
      look_at_path(joined(directories_.front(), expand(line)));
      continue;
    }
    std::istringstream fields(line);
    std::string source, point, type;
    fields >> source >> point >> type;
    if (type == kMountType || type == "graphlane") look_at_path(unescape_mount_field(source));
  }
}

// Finds it as execvp(3) does; "": not found.
std::string VolumeFinder::find_in_path(const std::string& name) const {
  if (name.find('/') != std::string::npos) return joined(directories_.front(), name);
  const auto path = variables_.find("PATH");
  std::istringstream directories(path != variables_.end() ? path->second : "/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string candidate = joined(joined(directories_.front(), directory), name);
    if (::access(candidate.c_str(), X_OK) == 0 && !is_directory(candidate)) return candidate;
  }
  return {};
}

// $NAME, ${NAME…} and ~/, as far as they are known; the rest stays as it is.
std::string VolumeFinder::expand(std::string_view text) const {
  std::string all;
  if (text.starts_with("~/")) {
    const auto home = variables_.find("HOME");
    if (home != variables_.end()) {
      all = home->second;
      text.remove_prefix(1);
    }
  }
  while (!text.empty()) {
    const size_t dollar = text.find('$');
    all += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    const bool braces = text.starts_with('{');
    if (braces) text.remove_prefix(1);
    size_t length = 0;
    while (length < text.size() && is_name_sign(text[length])) ++length;
    const auto known = variables_.find(text.substr(0, length));
    if (known != variables_.end() && all.size() < 65536) all += known->second;
    text.remove_prefix(length);
    if (!braces) continue;
    // ${NAME:-FILE}: what stands there may be it.
    const size_t end = std::min(text.find('}'), text.size());
    if (known == variables_.end()) {
      all += text.substr(std::min(text.find_first_not_of(":-="), end),
                         end - std::min(text.find_first_not_of(":-="), end));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

}  // namespace graphlane::cli
