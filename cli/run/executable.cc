#include "cli/run/executable.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace graphlane::cli {
namespace fs = std::filesystem;
namespace {

constexpr size_t kScriptLineBytesMax = 4096;  // of a #! line; the kernel looks at 256
constexpr size_t kScriptsMax = 5;             // the kernel's limit

// Searches as execvp(3) does.
Outcome<std::string> find_program(const std::string& name) {
  std::error_code error;
  if (name.find('/') != std::string::npos) {
    const fs::file_status status = fs::status(name, error);
    if (status.type() == fs::file_type::none) return os_error(error.value(), name, "cannot open");
    if (status.type() == fs::file_type::not_found) {
      return make_error(ENOENT, "{}: no such program", name);
    }
    if (status.type() != fs::file_type::regular) {
      return make_error(EINVAL, "{}: not a program", name);
    }
    return name;
  }
  const char* path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    const fs::path candidate = fs::path(directory.empty() ? "." : directory) / name;
    if (fs::is_regular_file(candidate, error) && ::access(candidate.c_str(), X_OK) == 0) {
      return candidate.string();
    }
  }
  const bool is_here = fs::is_regular_file(name, error);
  return make_error(ENOENT, "{0}: no such program in $PATH{1}", name,
                    is_here ? fmt::format(" (./{} is one here)", name) : "");
}

// The program of a "#!" line; for env(1), the program that env would run.
Outcome<std::string> interpreter_of(const Script& script) {
  if (script.line.empty()) return std::string("/bin/sh");  // what shells and execvp(3) do
  std::istringstream words(script.line);
  std::string word;
  words >> word;
  if (fs::path(word).filename() != "env") return find_program(word);
  while (words >> word) {
    if (!word.starts_with('-') && word.find('=') == std::string::npos) return find_program(word);
  }
  return make_error(EINVAL, "{}: its #! line names no program", script.path);
}

Script read_script(const std::string& path) {
  // A file that is not a script may have its first newline anywhere.
  std::string line(kScriptLineBytesMax, '\0');
  std::ifstream file(path);
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(file.gcount()));
  if (!line.starts_with("#!")) return {path, ""};
  line.resize(std::min(line.size(), line.find('\n')));
  const size_t begin = line.find_first_not_of(" \t", 2);
  const size_t end = line.find_last_not_of(" \t\r");
  return {path, begin > end ? "" : line.substr(begin, end - begin + 1)};
}

// The reason why the loader would not load the preload library into it; empty: it would.
std::string why_blind(const ElfFile& file) {
  struct stat info = {};
  (void)::stat(file.path.c_str(), &info);
  const bool changes_user = (info.st_mode & S_ISUID) != 0 && info.st_uid != ::getuid();
  const bool changes_group = (info.st_mode & S_ISGID) != 0 && info.st_gid != ::getgid();
  const bool has_capabilities =
      ::getuid() != 0 && ::getxattr(file.path.c_str(), "security.capability", nullptr, 0) > 0;
  if (!file.for_this_machine) return "built for another machine than the preload library";
  if (file.is_go && file.interpreter.empty()) return "a Go program: makes its system calls itself";
  if (file.interpreter.empty()) return "statically linked: its libc is its own";
  if (file.interpreter.find("ld-musl") != std::string::npos) {
    return "linked to musl: the preload library is glibc's";
  }
  if (changes_user || changes_group) return "set-user-ID or set-group-ID: LD_PRELOAD is ignored";
  if (has_capabilities) return "has file capabilities: LD_PRELOAD is ignored";
  if (file.is_go) return "a Go program: makes its system calls itself, but for those of its C code";
  return {};
}

}  // namespace

Outcome<Executable> find_executable(const std::string& program) {
  Executable found;
  Outcome<std::string> path = find_program(program);
  while (path) {
    const Outcome<bool> elf = is_elf(*path);
    if (!elf) return elf.error();
    if (*elf) break;
    if (found.scripts.size() == kScriptsMax) {
      return make_error(ELOOP, "{}: too many #! lines", program);
    }
    found.scripts.push_back(read_script(*path));
    path = interpreter_of(found.scripts.back());
    if (!path) {
      return make_error(path.error().code, "{}: {}", found.scripts.back().path, path.error().text);
    }
  }
  if (!path) return path.error();
  Outcome<ElfFile> file = read_elf(*path);
  if (!file) return file.error();
  if (file->is_library) return make_error(EINVAL, "{}: a library, not a program", *path);
  found.blind_because = why_blind(*file);
  found.file = std::move(*file);
  return found;
}

}  // namespace graphlane::cli
