#include "cli/command.h"

#include <algorithm>
#include <csignal>
#include <filesystem>

#include "iomgr/base/printable.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {
namespace fs = std::filesystem;

bool quiet = false;

Option* add_size(Command* command, const std::string& names, std::optional<uint64_t>* size,
                 const std::string& description) {
  const auto parse = [size](const std::string& text) -> Outcome<void> {
    const Outcome<uint64_t> parsed = parse_size(text);
    if (!parsed) return parsed.error();
    *size = *parsed;
    return {};
  };
  return command->add_option(names, parse, description)->type_name("SIZE");
}

void print_json(const Json& all, int indent) { fmt::print("{}\n", all.dump(indent)); }

namespace {

// Resolves links on the way, but not the last name, because a link in a volume is a file of the
// volume. A link outside that leads to a volume stands for that volume.
Outcome<std::pair<std::string, fs::path>> find_root_and_path(const std::string& path) {
  std::error_code error;
  const fs::path given = fs::absolute(path, error);
  if (fs::is_symlink(given, error)) {
    const fs::path parent = fs::canonical(given.parent_path(), error);
    const Outcome<std::string> root = find_volume_root(parent.string());
    if (root) return std::pair(*root, parent / given.filename());
  }
  const Outcome<std::string> root = find_volume_root(path);
  if (!root) return root.error();
  return std::pair(*root, fs::weakly_canonical(given, error));
}

}  // namespace

Outcome<VolumePath> open_volume_of(const std::string& path, OpenOptions how) {
  const auto found = find_root_and_path(path);
  if (!found) return found.error();
  const auto& [root, real] = *found;
  auto volume = Volume::open(root, how);
  if (!volume) return volume.error();
  std::string below = real.lexically_relative(root).string();
  if (below == "." || below == "./") below.clear();
  if (below.ends_with('/')) below.pop_back();
  if (!below.empty() && path.ends_with("/.")) below += "/.";
  if (!below.empty() && path.ends_with('/')) below += "/";
  return VolumePath{std::move(*volume), below};
}

namespace {

std::atomic<int> signal_number{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int number) {
  // Relaxed: the interrupted thread itself reads it, after the work has ended.
  signal_number.store(number, std::memory_order_relaxed);
  interrupt_requested.store(true, std::memory_order_relaxed);
}

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before;
    // Signals that nohup(1) or a shell's background job ignores stay ignored.
    if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    ::sigaction(number, &action, nullptr);
  }
}

int caught_signal() { return signal_number.load(std::memory_order_relaxed); }

void complain(const std::string& line) { fmt::print(stderr, "graphlane: {}\n", printable(line)); }

namespace {

std::vector<std::string> command_line;

}  // namespace

void set_command_line(std::vector<std::string> words) { command_line = std::move(words); }

std::string in_users_words(const std::string& text) {
  std::error_code error;
  const std::string here = fs::current_path(error).string() + "/";
  if (error || here == "//" || !text.starts_with(here)) return text;
  const bool is_given =
      std::any_of(command_line.begin(), command_line.end(), [&](const std::string& word) {
        return word.find(here.substr(0, here.size() - 1)) != std::string::npos;
      });
  return is_given ? text : text.substr(here.size());
}

Outcome<int> to_each(const std::vector<std::string>& operands,
                     const std::function<Outcome<void>(const std::string&)>& work) {
  int status = kOk;
  for (const std::string& operand : operands) {
    const Outcome<void> done = work(operand);
    if (done) continue;
    if (caught_signal() != 0) return done.error();
    complain(in_users_words(done.error().text));
    status = kFailed;
  }
  return status;
}

}  // namespace graphlane::cli
