#include "iomgr/read/cache_keeper.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace graphlane {

using Clock = std::chrono::steady_clock;

CacheKeeper::CacheKeeper(ExtentCache& cache, Duration interval, Duration idle_max, Fd pressure)
    : cache_(cache),
      interval_(interval),
      idle_max_(idle_max),
      stopping_(::eventfd(0, EFD_CLOEXEC)),
      pressure_(std::move(pressure)),
      thread_([this] { run(); }) {}

CacheKeeper::~CacheKeeper() {
  ::eventfd_write(stopping_.get(), 1);
  thread_.join();
}

void CacheKeeper::run() {
  if (!stopping_) return;  // without it the thread could not be stopped
  auto next = Clock::now() + interval_;
  for (;;) {
    pollfd polled[] = {{stopping_.get(), POLLIN, 0}, {pressure_.get(), POLLPRI, 0}};
    const auto left = std::chrono::ceil<Duration>(next - Clock::now());
    const int ready = ::poll(polled, std::size(polled), std::max<int>(left.count(), 0));
    if (ready > 0 && polled[0].revents != 0) return;
    if (ready > 0 && (polled[1].revents & POLLERR) != 0) {
      pressure_.reset();  // the cgroup is gone
    } else if (ready > 0) {
      cache_.adjust_budget();
    }
    if (Clock::now() < next) continue;
    look();
    next = Clock::now() + interval_;
  }
}

void CacheKeeper::look() {
  const ExtentCacheStats now = cache_.stats();
  if (now.frames.resident_bytes == 0) return;
  cache_.adjust_budget();
  const uint64_t used = now.hit_bytes + now.fetched_bytes + now.bypassed_bytes;
  idle_ = used == used_before_ ? idle_ + interval_ : Duration{0};
  used_before_ = used;
  if (idle_ >= idle_max_) cache_.clear();
}

}  // namespace graphlane
