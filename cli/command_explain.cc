// graphlane explain: what the preload library will see of a program, told before
// it runs. The words are those of the report (shim/calls.def).
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "cli/command.h"
#include "cli/elf_file.h"
#include "shim/groups.h"

namespace graphlane::cli {
namespace fs = std::filesystem;
namespace {

constexpr size_t kLineBytesMax = 4096;  // of a #! line; the kernel looks at 256

struct ExplainOptions {
  std::string program;
  bool as_json = false;
};

const std::map<std::string, Group>& table() {
  static const std::map<std::string, Group> names = {
#define CALL(group, result, name, parameters, arguments) {#name, Group::group},
#define LEFT(group, name) {#name, Group::group},
#include "shim/calls.def"
  };
  return names;
}

// What a program or a library calls, by the reason for how it is served.
using Calls = std::map<Group, std::set<std::string>>;

Calls calls_of(const ElfFile& file) {
  Calls calls;
  for (const std::string& name : file.imports) {
    const auto known = table().find(name);
    if (known != table().end()) calls[known->second].insert(name);
  }
  return calls;
}

struct Script {
  std::string path;
  std::string line;  // what follows "#!"; empty: it has none
};

struct Explanation {
  std::string program;             // as given
  std::vector<Script> scripts;     // each is run by the next, the last by `file`
  ElfFile file;
  std::string blind_because;       // the library is not in it; empty: it is
  std::map<std::string, Calls> calls_of_libraries;  // by their paths
  std::vector<std::string> libraries_missing;
};

// As execvp(3) finds it.
Outcome<std::string> find_program(const std::string& name) {
  std::error_code error;
  if (name.find('/') != std::string::npos) {
    const fs::file_status status = fs::status(name, error);
    if (status.type() == fs::file_type::not_found) return make_error(ENOENT, "{}: no such program", name);
    if (status.type() != fs::file_type::regular) return make_error(EINVAL, "{}: not a program", name);
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
  return make_error(ENOENT, "{}: no such program in $PATH", name);
}

// The program that a "#!" line names; of env(1) the one that it would run.
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
  // What is no script may have its first newline anywhere.
  std::string line(kLineBytesMax, '\0');
  std::ifstream file(path);
  file.read(line.data(), static_cast<std::streamsize>(line.size()));
  line.resize(static_cast<size_t>(file.gcount()));
  if (!line.starts_with("#!")) return {path, ""};
  line.resize(std::min(line.size(), line.find('\n')));
  const size_t begin = line.find_first_not_of(" \t", 2);
  const size_t end = line.find_last_not_of(" \t\r");
  return {path, begin > end ? "" : line.substr(begin, end - begin + 1)};
}

// Why the loader would not put a library into it; empty: it would.
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

// libc's own parts call each other where no preload library sees it.
bool is_of_libc(const std::string& name) {
  for (const char* start : {"ld-", "libc.", "libm.", "libdl.", "librt.", "libpthread.", "libgcc_s.",
                            "linux-vdso"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

void read_libraries(const ElfFile& file, Explanation* about) {
  for (const std::string& name : file.needed) {
    if (is_of_libc(name)) continue;
    const std::string path = find_library(file, name);
    const Outcome<ElfFile> library = path.empty() ? Outcome<ElfFile>(Error{ENOENT, name}) : read_elf(path);
    if (!library) {
      auto& missing = about->libraries_missing;
      if (std::find(missing.begin(), missing.end(), name) == missing.end()) missing.push_back(name);
    } else if (about->calls_of_libraries.emplace(path, calls_of(*library)).second) {
      read_libraries(*library, about);
    }
  }
}

Outcome<Explanation> explain_program(const std::string& program) {
  constexpr size_t kScriptsMax = 5;  // the kernel's limit
  Explanation about;
  about.program = program;
  Outcome<std::string> path = find_program(program);
  while (path) {
    const Outcome<bool> elf = is_elf(*path);
    if (!elf) return elf.error();
    if (*elf) break;
    if (about.scripts.size() == kScriptsMax) return make_error(ELOOP, "{}: too many #! lines", program);
    about.scripts.push_back(read_script(*path));
    path = interpreter_of(about.scripts.back());
    if (!path) {
      return make_error(path.error().code, "{}: {}", about.scripts.back().path, path.error().text);
    }
  }
  if (!path) return path.error();
  const Outcome<ElfFile> file = read_elf(*path);
  if (!file) return file.error();
  if (file->is_library) return make_error(EINVAL, "{}: a library, not a program", *path);
  about.file = *file;
  about.blind_because = why_blind(*file);
  if (about.blind_because.empty()) read_libraries(*file, &about);
  return about;
}

const char* name_of(Way way) {
  switch (way) {
    case Way::fast: return "to the devices";
    case Way::fuse: return "left to FUSE";
    case Way::blind: return "not seen";
    case Way::none: break;
  }
  return "no data";
}

bool has_way(const Explanation& about, Way way) {
  const auto any = [&](const Calls& calls) {
    return std::any_of(calls.begin(), calls.end(),
                       [&](const auto& call) { return info_of(call.first).way == way; });
  };
  return any(calls_of(about.file)) ||
         std::any_of(about.calls_of_libraries.begin(), about.calls_of_libraries.end(),
                     [&](const auto& library) { return any(library.second); });
}

// What to expect, in a sentence.
std::string verdict(const Explanation& about) {
  if (!about.blind_because.empty()) {
    return "everything goes through a mount (graphlane mount); the preload library is not in it";
  }
  if (has_way(about, Way::fast)) return "the preload library takes its reads to the devices";
  if (has_way(about, Way::fuse)) return "the preload library leaves its reads to a mount";
  return "it calls nothing itself that reads files";
}

void print_calls(const Calls& calls, const std::string& indent) {
  for (const Way way : {Way::fast, Way::fuse, Way::blind}) {
    for (const auto& [group, names] : calls) {
      const GroupInfo& info = info_of(group);
      if (info.way != way) continue;
      fmt::print("{}{}: {}\n{}  {}\n", indent, name_of(way), info.phrase, indent,
                 fmt::join(names, " "));
    }
  }
}

void print_text(const Explanation& about) {
  fmt::print("{}: {}\n", about.program, verdict(about));
  for (const Script& script : about.scripts) {
    if (script.line.empty()) {
      fmt::print("  {}: no #! line: a shell runs it\n", script.path);
    } else {
      fmt::print("  {}: a script: #!{}\n", script.path, script.line);
    }
  }
  if (!about.blind_because.empty()) {
    fmt::print("  {}: {}\n", about.file.path, about.blind_because);
    return;
  }
  fmt::print("  {}: dynamically linked\n", about.file.path);
  print_calls(calls_of(about.file), "    ");
  Calls calls;
  for (const auto& [path, of_library] : about.calls_of_libraries) {
    for (const auto& [group, names] : of_library) calls[group].insert(names.begin(), names.end());
  }
  if (!calls.empty()) {
    fmt::print("  its libraries ({}):\n", about.calls_of_libraries.size());
    print_calls(calls, "    ");
  }
  if (!about.libraries_missing.empty()) {
    fmt::print("  not looked at, because not found: {}\n", fmt::join(about.libraries_missing, " "));
  }
  if (about.file.imports.contains("dlopen")) fmt::print("  loads more libraries as it runs (dlopen)\n");
}

Json json_of(const std::string& object, const Calls& calls) {
  constexpr const char* kWays[] = {"devices", "fuse", "not seen", "no data"};
  Json list = Json::array();
  for (const auto& [group, names] : calls) {
    const GroupInfo& info = info_of(group);
    list.push_back({{"way", kWays[static_cast<size_t>(info.way)]}, {"why", info.phrase}, {"names", names}});
  }
  return {{"path", object}, {"calls", list}};
}

Json json_of(const Explanation& about) {
  Json scripts = Json::array();
  for (const Script& script : about.scripts) {
    scripts.push_back({{"path", script.path}, {"line", script.line}});
  }
  Json libraries = Json::array();
  for (const auto& [path, calls] : about.calls_of_libraries) libraries.push_back(json_of(path, calls));
  Json reason = nullptr;
  if (!about.blind_because.empty()) reason = about.blind_because;
  return {{"program", about.program},
          {"verdict", verdict(about)},
          {"preload", about.blind_because.empty()},
          {"reason", reason},
          {"scripts", scripts},
          {"executable", json_of(about.file.path, calls_of(about.file))},
          {"libraries", libraries},
          {"libraries_missing", about.libraries_missing},
          {"dlopen", about.file.imports.contains("dlopen")}};
}

Outcome<int> explain(const ExplainOptions& options) {
  const Outcome<Explanation> about = explain_program(options.program);
  if (!about) return about.error();
  if (options.as_json) {
    print_json(json_of(*about));
  } else {
    print_text(*about);
  }
  return kOk;
}

}  // namespace

void add_explain(Parser& parser) {
  const auto options = std::make_shared<ExplainOptions>();
  Command* command = parser.add(
      "explain", "tell how a program's reads will go, without running it",
      "graphlane explain pagerank\n\n"
      "Calls are listed that the program and its libraries make by name: those that the\n"
      "preload library takes to the devices, those that it leaves to a mount, and those\n"
      "that no preload library sees.");
  command->add_option("PROGRAM", options->program, "a path, or a name in $PATH")->required();
  command->add_flag("--json", options->as_json, "as JSON, with what each library calls");
  parser.on_chosen(command, options, explain);
}

}  // namespace graphlane::cli
