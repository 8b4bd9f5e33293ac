#include "iomgr/base/process/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "iomgr/base/size.h"

namespace graphlane {
namespace {

constexpr int64_t kQuietMs = 1000;            // shorter work prints nothing
constexpr int64_t kTerminalIntervalMs = 100;  // redraw of the bar
constexpr int64_t kLineIntervalMs = 5000;     // plain lines, for logs
constexpr int kBarWidth = 24;

std::atomic<bool> silenced{false};

}  // namespace

Progress::Progress(std::string label, uint64_t total, bool unit_is_bytes)
    : label_(std::move(label)),
      total_(total),
      unit_is_bytes_(unit_is_bytes),
      on_terminal_(isatty(STDERR_FILENO) == 1),
      start_(std::chrono::steady_clock::now()),
      next_print_ms_(kQuietMs) {}

Progress::~Progress() { print(true); }

void Progress::silence() { silenced = true; }

void Progress::add(uint64_t amount) {
  // Relaxed: the counter is only displayed.
  done_.fetch_add(amount, std::memory_order_relaxed);
  const auto now_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                          std::chrono::steady_clock::now() - start_)
                          .count();
  int64_t due_ms = next_print_ms_.load(std::memory_order_relaxed);
  const int64_t interval_ms = on_terminal_ ? kTerminalIntervalMs : kLineIntervalMs;
  if (now_ms < due_ms || !next_print_ms_.compare_exchange_strong(due_ms, now_ms + interval_ms)) {
    return;
  }
  print(false);
}

void Progress::print(bool last) {
  MutexLock lock(mu_);
  if (silenced || (last && !printed_)) return;
  printed_ = true;
  const uint64_t done = done_.load(std::memory_order_relaxed);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const auto amount = [&](uint64_t n) {
    return unit_is_bytes_ ? format_size(n) : fmt::format("{}", n);
  };
  std::string line = fmt::format("{}: {}", label_, amount(done));
  if (total_ > 0) {
    const double share = static_cast<double>(done) / static_cast<double>(total_);
    line += fmt::format(" of {} ({:.0f}%)", amount(total_), 100 * share);
    if (on_terminal_) {
      const int filled = std::min(kBarWidth, static_cast<int>(share * kBarWidth));
      line += fmt::format(" [{:=>{}}{:>{}}]", "", filled, "", kBarWidth - filled);
    }
  }
  if (seconds > 0) {
    line +=
        fmt::format(", {}/s", amount(static_cast<uint64_t>(static_cast<double>(done) / seconds)));
  }
  if (on_terminal_) {
    fmt::print(stderr, "\r\033[K{}{}", line, last ? "\n" : "");
  } else {
    fmt::print(stderr, "{}\n", line);
  }
  std::fflush(stderr);
}

}  // namespace graphlane
