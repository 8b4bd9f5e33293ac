// graphlane explain: predicts what the preload library will see of a program, without running it.
// The words are those of the report (shim/hooks/calls.def).
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "cli/command.h"
#include "cli/run/elf_file.h"
#include "cli/run/executable.h"
#include "shim/hooks/groups.h"

namespace graphlane::cli {

using namespace shim;  // its table of calls
namespace {

struct ExplainOptions {
  std::string program;
  bool as_json = false;
};

const std::map<std::string, Group>& table() {
  static const std::map<std::string, Group> names = {
#define CALL(group, result, name, parameters, arguments) {#name, Group::group},
#define LEFT(group, name) {#name, Group::group},
#include "shim/hooks/calls.def"
  };
  return names;
}

// The calls of a program or a library, by the way in which each is served.
using Calls = std::map<Group, std::set<std::string>>;

Calls calls_of(const ElfFile& file) {
  Calls calls;
  for (const std::string& name : file.imports) {
    const auto known = table().find(name);
    if (known != table().end()) calls[known->second].insert(name);
  }
  return calls;
}

struct Explanation {
  std::string program;          // as given
  std::vector<Script> scripts;  // each is run by the next one, the last by `file`
  ElfFile file;
  std::string blind_because;                        // why the library is not in it; empty: it is
  std::map<std::string, Calls> calls_of_libraries;  // by the libraries' paths
  std::map<std::string, Calls> calls_of_named;      // of libraries that it names and may load
  std::vector<std::string> libraries_missing;
  std::vector<std::string> io_uring_in;  // files with io_uring system calls of their own
  bool loads = false;                    // calls dlopen(3)
};

// libc's own parts call each other without a preload library seeing it.
bool is_of_libc(const std::string& name) {
  for (const char* start :
       {"ld-", "libc.", "libm.", "libdl.", "librt.", "libpthread.", "libgcc_s.", "linux-vdso"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

void read_libraries(const ElfFile& file, Explanation* about) {
  for (const std::string& name : file.needed) {
    if (is_of_libc(name)) continue;
    const std::string path = find_library(file, name);
    const Outcome<ElfFile> library =
        path.empty() ? Outcome<ElfFile>(Error{ENOENT, name}) : read_elf(path);
    if (!library) {
      auto& missing = about->libraries_missing;
      if (std::find(missing.begin(), missing.end(), name) == missing.end()) missing.push_back(name);
    } else if (about->calls_of_libraries.emplace(path, calls_of(*library)).second) {
      read_libraries(*library, about);
    }
  }
}

bool calls_dlopen(const ElfFile& file) {
  return file.imports.contains("dlopen") || file.imports.contains("dlmopen");
}

// Searches beside the naming file too, because programs often keep plugins there.
std::string find_named(const ElfFile& file, const std::string& name) {
  const std::filesystem::path given(name);
  std::error_code error;
  if (given.is_absolute()) {
    return std::filesystem::is_regular_file(given, error) ? name : std::string();
  }
  if (given.has_parent_path()) return {};
  const std::filesystem::path beside = std::filesystem::path(file.path).parent_path() / name;
  return std::filesystem::is_regular_file(beside, error) ? beside.string()
                                                         : find_library(file, name);
}

// Examines a file, and all libraries that it needs or may load by name.
class Looker {
 public:
  explicit Looker(Explanation* about) : about_(*about) {}

  void look_at_all() {
    look(about_.file);
    for (const auto& [path, calls] : about_.calls_of_libraries) {
      if (const Outcome<ElfFile> library = read_elf(path)) look(*library);
    }
    for (size_t i = 0; i < to_look_.size() && about_.calls_of_named.size() < kNamedMax; ++i) {
      const Outcome<ElfFile> library = read_elf(to_look_[i]);
      if (!library || !library->for_this_machine) continue;
      about_.calls_of_named.emplace(to_look_[i], calls_of(*library));
      look(*library);
      for (const std::string& needed : library->needed) add(find_library(*library, needed));
    }
    // A program that never calls dlopen() loads no library by name.
    if (!about_.loads) about_.calls_of_named.clear();
  }

 private:
  static constexpr size_t kNamedMax = 500;

  void look(const ElfFile& file) {
    about_.loads = about_.loads || calls_dlopen(file);
    const ElfContent content = look_into_elf(file.path);
    if (content.calls_io_uring) about_.io_uring_in.push_back(file.path);
    for (const std::string& name : content.libraries) add(find_named(file, name));
  }

  void add(const std::string& path) {
    const std::string name = std::filesystem::path(path).filename();
    if (path.empty() || is_of_libc(name) || path == about_.file.path ||
        about_.calls_of_libraries.contains(path)) {
      return;
    }
    if (seen_.insert(path).second) to_look_.push_back(path);
  }

  Explanation& about_;
  std::set<std::string> seen_;
  std::vector<std::string> to_look_;
};

Outcome<Explanation> explain_program(const std::string& program) {
  const Outcome<Executable> found = find_executable(program);
  if (!found) return found.error();
  Explanation about;
  about.program = program;
  about.scripts = found->scripts;
  about.file = found->file;
  about.blind_because = found->blind_because;
  if (!about.blind_because.empty()) return about;
  read_libraries(about.file, &about);
  Looker(&about).look_at_all();
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

// The prediction, in a sentence.
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

// Whether a call reads a file's bytes; others of its group may write or look up.
bool reads(Group group, const std::string& name) {
  const auto has = [&](std::string_view part) { return name.find(part) != std::string::npos; };
  switch (group) {
    case Group::data: return true;
    case Group::stream: return has("fread") || has("get") || has("scanf");
    case Group::map: return has("mmap");
    case Group::copy: return has("sendfile") || has("copy_file_range") || has("splice");
    case Group::aio: return has("read");
    case Group::raw: return true;
    default: return false;
  }
}

// Prints a line for each library that reads.
void print_readers(const std::map<std::string, Calls>& libraries) {
  for (const auto& [path, calls] : libraries) {
    std::vector<std::string> names;
    for (const auto& [group, of_group] : calls) {
      std::copy_if(of_group.begin(), of_group.end(), std::back_inserter(names),
                   [group = group](const std::string& name) { return reads(group, name); });
    }
    if (!names.empty()) fmt::print("      {}: {}\n", path, fmt::join(names, " "));
  }
}

// Prints calls such as syscall(2), for which only the number tells how they are served.
void print_by_number(const Calls& calls, const std::string& indent) {
  const auto found = calls.find(Group::number);
  if (found == calls.end()) return;
  fmt::print("{}by number: {}\n{}  {}\n", indent, info_of(Group::number).phrase, indent,
             fmt::join(found->second, " "));
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
  print_by_number(calls_of(about.file), "    ");
  Calls calls;
  for (const auto& [path, of_library] : about.calls_of_libraries) {
    for (const auto& [group, names] : of_library) calls[group].insert(names.begin(), names.end());
  }
  if (!calls.empty()) {
    fmt::print("  its libraries ({}):\n", about.calls_of_libraries.size());
    print_calls(calls, "    ");
    print_by_number(calls, "    ");
    fmt::print("    those that read:\n");
    print_readers(about.calls_of_libraries);
  }
  if (!about.calls_of_named.empty()) {
    fmt::print(
        "  it may load {} more as it runs, which it or its libraries name; those that read:\n",
        about.calls_of_named.size());
    print_readers(about.calls_of_named);
  }
  if (!about.io_uring_in.empty()) {
    fmt::print(
        "  not seen: io_uring by system calls of its own (without a mount: ENOSYS), in\n    {}\n",
        fmt::join(about.io_uring_in, "\n    "));
  }
  if (!about.libraries_missing.empty()) {
    fmt::print("  not examined, because not found: {}\n", fmt::join(about.libraries_missing, " "));
  }
  if (about.loads) {
    fmt::print(
        "  libraries with names that it computes (dlopen), such as plugins and modules, are not "
        "listed here;\n"
        "  graphlane run --report tells of every read afterwards\n");
  }
}

Json json_of(const std::string& object, const Calls& calls) {
  constexpr const char* kWays[] = {"devices", "fuse", "not seen", "no data"};
  Json list = Json::array();
  for (const auto& [group, names] : calls) {
    const GroupInfo& info = info_of(group);
    list.push_back(
        {{"way", kWays[static_cast<size_t>(info.way)]}, {"why", info.phrase}, {"names", names}});
  }
  return {{"path", object}, {"calls", list}};
}

Json json_of(const Explanation& about) {
  Json scripts = Json::array();
  for (const Script& script : about.scripts) {
    scripts.push_back({{"path", script.path}, {"line", script.line}});
  }
  Json libraries = Json::array();
  for (const auto& [path, calls] : about.calls_of_libraries) {
    libraries.push_back(json_of(path, calls));
  }
  Json named = Json::array();
  for (const auto& [path, calls] : about.calls_of_named) named.push_back(json_of(path, calls));
  Json reason = nullptr;
  if (!about.blind_because.empty()) reason = about.blind_because;
  return {{"program", about.program},
          {"verdict", verdict(about)},
          {"preload", about.blind_because.empty()},
          {"reason", reason},
          {"scripts", scripts},
          {"executable", json_of(about.file.path, calls_of(about.file))},
          {"libraries", libraries},
          {"libraries_named", named},
          {"libraries_missing", about.libraries_missing},
          {"io_uring_itself", about.io_uring_in},
          {"dlopen", about.loads}};
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
      "that no preload library sees. So are libraries that they name and may load as they run.");
  command->add_option("PROGRAM", options->program, "a path, or a name in $PATH")->required();
  command->add_flag("--json", options->as_json, "as JSON, with what each library calls");
  parser.on_chosen(command, options, explain);
}

}  // namespace graphlane::cli
