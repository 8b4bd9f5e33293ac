#include "iomgr/base/process/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "iomgr/base/process/terminal.h"
#include "iomgr/base/size.h"

namespace graphlane {
namespace {

using std::chrono::milliseconds;

constexpr int64_t kQuietMs = 1000;  // shorter work prints nothing
constexpr milliseconds kTerminalInterval(100);
constexpr milliseconds kLineIntervalMin(5000);
constexpr milliseconds kLineIntervalMax(300'000);
constexpr int kLinesPerDoubling = 8;  // about: an hour prints some 50 lines
constexpr int kBarWidth = 24;
constexpr size_t kColumnsUnlessKnown = 80;
constexpr double kEtaAfterSeconds = 2;  // before that the speed says little

std::atomic<bool> silenced{false};

std::string duration(double seconds) {
  const auto whole = static_cast<uint64_t>(std::max(seconds, 1.0) + 0.5);
  if (whole < 100) return fmt::format("{} s", whole);
  if (whole < 100 * 60) return fmt::format("{} min", (whole + 30) / 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace

std::string progress_line(const ProgressState& state, size_t columns) {
  const auto amount = [&](uint64_t n) {
    return state.unit_is_bytes ? format_size(n) : fmt::format("{}", n);
  };
  const double rate =
      state.seconds > 0 ? static_cast<double>(state.done) / state.seconds : 0;  // a second
  std::string amounts = " " + amount(state.done);
  std::string percent, bar, left;
  if (state.total > 0) {
    const double share =
        std::min(1.0, static_cast<double>(state.done) / static_cast<double>(state.total));
    amounts += " of " + amount(state.total);
    percent = fmt::format(" ({:.0f}%)", 100 * share);
    const int filled = static_cast<int>(share * kBarWidth);
    bar = fmt::format(" [{:=>{}}{:>{}}]", "", filled, "", kBarWidth - filled);
    if (rate > 0 && state.done < state.total && state.seconds >= kEtaAfterSeconds) {
      left =
          fmt::format(", {} left", duration(static_cast<double>(state.total - state.done) / rate));
    }
  }
  const bool is_slow = !state.unit_is_bytes && rate < 10;
  std::string speed = is_slow ? fmt::format("{:.1f}", rate) : amount(static_cast<uint64_t>(rate));
  speed = state.seconds > 0 ? ", " + speed + "/s" : "";
  const std::string label = state.label + ":";
  if (columns == 0) return label + amounts + percent + speed + left;
  const std::string lines[] = {
      label + amounts + percent + bar + speed + left,
      label + amounts + percent + speed + left,
      label + amounts + percent + left,
      label + (percent.empty() ? amounts : percent) + left,
  };
  // A terminal begins a new line when its last column is written.
  for (const std::string& line : lines) {
    if (columns_in(line) < columns) return line;
  }
  return std::string(first_columns(lines[3], columns - 1));
}

milliseconds plain_line_interval(milliseconds elapsed) {
  return std::clamp(elapsed / kLinesPerDoubling, kLineIntervalMin, kLineIntervalMax);
}

Progress::Progress(std::string label, uint64_t total, bool unit_is_bytes)
    : begin_{.label = std::move(label), .total = total, .unit_is_bytes = unit_is_bytes},
      on_terminal_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      next_print_ms_(kQuietMs) {}

Progress::~Progress() { print(true); }

void Progress::silence() { silenced = true; }

void Progress::add(uint64_t amount) {
  // Relaxed: the counter is only displayed.
  done_.fetch_add(amount, std::memory_order_relaxed);
  const auto now =
      std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start_);
  int64_t due_ms = next_print_ms_.load(std::memory_order_relaxed);
  const milliseconds interval = on_terminal_ ? kTerminalInterval : plain_line_interval(now);
  if (now.count() < due_ms ||
      !next_print_ms_.compare_exchange_strong(due_ms, (now + interval).count())) {
    return;
  }
  print(false);
}

void Progress::print(bool last) {
  MutexLock lock(mu_);
  if (silenced || (last && !printed_)) return;
  printed_ = true;
  ProgressState state = begin_;
  state.done = done_.load(std::memory_order_relaxed);
  state.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  if (on_terminal_) {
    const size_t columns = terminal_columns(STDERR_FILENO);
    fmt::print(stderr, "\r\033[K{}{}",
               progress_line(state, columns > 0 ? columns : kColumnsUnlessKnown), last ? "\n" : "");
  } else {
    fmt::print(stderr, "{}\n", progress_line(state, 0));
  }
  std::fflush(stderr);
}

}  // namespace graphlane
