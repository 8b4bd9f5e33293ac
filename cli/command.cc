#include "cli/command.h"

#include <csignal>
#include <filesystem>

#include "iomgr/base/size.h"

namespace graphlane::cli {
namespace fs = std::filesystem;

bool quiet = false;

CLI::App* Parser::add(const std::string& name, const std::string& description,
                      const std::string& example) {
  CLI::App* command = app.add_subcommand(name, description);
  command->footer("Example:\n  " + example);
  return command;
}

CLI::Option* add_size(CLI::App* command, const std::string& names, std::optional<uint64_t>* size,
                      const std::string& description) {
  const auto parse = [names, size](const std::string& text) {
    const Outcome<uint64_t> parsed = parse_size(text);
    if (!parsed) throw CLI::ValidationError(names, parsed.error().text);
    *size = *parsed;
  };
  return command->add_option_function<std::string>(names, parse, description)->type_name("SIZE");
}

Outcome<VolumePath> open_volume_of(const std::string& path) {
  const Outcome<std::string> root = find_volume_root(path);
  if (!root) return root.error();
  auto volume = Volume::open(*root);
  if (!volume) return volume.error();
  // Links on the way are resolved, the last name is not: it may be what is meant.
  std::error_code error;
  const fs::path given = fs::absolute(path, error);
  const bool contents = path == "." || path.ends_with("/.");
  fs::path real = fs::weakly_canonical(given, error);
  const fs::path last = given.filename();
  const bool is_root = real.lexically_normal() == fs::path(*root);
  if (!is_root && !last.empty() && last != "." && last != "..") {
    real = fs::weakly_canonical(given.parent_path(), error) / last;
  }
  std::string below = real.lexically_relative(*root).string();
  if (below == ".") below.clear();
  if (contents && !below.empty()) below += "/.";
  if (last.empty() && !below.empty() && !below.ends_with('/')) below += "/";
  return VolumePath{std::move(*volume), below};
}

namespace {

std::atomic<bool> interrupted{false};
std::atomic<int> signal_number{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

extern "C" void on_interrupt(int number) {
  // Relaxed: whoever polls needs nothing but the flag.
  signal_number.store(number, std::memory_order_relaxed);
  interrupted.store(true, std::memory_order_relaxed);
}

}  // namespace

const std::atomic<bool>* catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before;
    // nohup(1) and shells' background jobs ignore some: that stays so.
    if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) continue;
    ::sigaction(number, &action, nullptr);
  }
  return &interrupted;
}

int caught_signal() { return signal_number.load(std::memory_order_relaxed); }

}  // namespace graphlane::cli
