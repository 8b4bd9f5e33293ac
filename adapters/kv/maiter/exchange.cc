#include "adapters/kv/maiter/exchange.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <chrono>
#include <new>
#include <thread>

#include "iomgr/base/process/interrupt.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane::maiter {
namespace {

constexpr uint64_t kRingsBytes = 64 << 20;  // of all rings together
constexpr size_t kRingSlotsMax = 16384;
constexpr size_t kRingSlotsMin = 64;
constexpr auto kTick = std::chrono::milliseconds(2);

}  // namespace

Outcome<Exchange> Exchange::create(unsigned workers, uint64_t vertex_count) {
  Exchange exchange;
  exchange.worker_count_ = workers;
  const size_t pairs = size_t{workers} * workers;
  exchange.ring_slots_ =
      std::clamp(std::bit_floor(kRingsBytes / sizeof(Delta) / pairs), kRingSlotsMin, kRingSlotsMax);
  uint64_t size = 0;
  const auto place = [&size](uint64_t bytes) {
    return std::exchange(size, size + round_up(bytes, kBlockSize));
  };
  const uint64_t parent_at = place(sizeof(Parent));
  const uint64_t workers_at = place(workers * sizeof(Worker));
  const uint64_t ends_at = place(pairs * sizeof(DeltaRing::Ends));
  const uint64_t slots_at = place(pairs * exchange.ring_slots_ * sizeof(Delta));
  const uint64_t values_at = place(vertex_count * sizeof(double));
  const uint64_t deltas_at = place(vertex_count * sizeof(double));
  auto memory = graphfmt::Buffer::allocate_shared(size);
  if (!memory) return memory.error();
  exchange.memory_ = std::move(*memory);
  char* const base = exchange.memory_.data();
  exchange.parent_ = new (base + parent_at) Parent;
  exchange.workers_ = reinterpret_cast<Worker*>(base + workers_at);
  for (unsigned w = 0; w < workers; ++w) new (&exchange.workers_[w]) Worker;
  exchange.ends_ = reinterpret_cast<DeltaRing::Ends*>(base + ends_at);
  for (size_t p = 0; p < pairs; ++p) new (&exchange.ends_[p]) DeltaRing::Ends;
  exchange.slots_ = {reinterpret_cast<Delta*>(base + slots_at), pairs * exchange.ring_slots_};
  exchange.values_ = {reinterpret_cast<double*>(base + values_at), vertex_count};
  exchange.deltas_ = {reinterpret_cast<double*>(base + deltas_at), vertex_count};
  return exchange;
}

namespace {

// Processes of this run that have not been waited for.
class Children {
 public:
  ~Children() {
    for (const pid_t pid : pids_) {
      if (pid > 0) ::kill(pid, SIGKILL);
    }
    for (const pid_t pid : pids_) {
      if (pid > 0) (void)::waitpid(pid, nullptr, 0);
    }
  }

  Outcome<void> start(const WorkerProcesses& processes) {
    const pid_t parent = ::getpid();
    for (unsigned w = 0; w < processes.count; ++w) {
      const pid_t pid = ::fork();
      if (pid < 0) {
        return make_error(errno, "cannot start worker {}: {}", w,
                          os_error(errno, "fork", "failed").text);
      }
      if (pid == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::signal(SIGINT, SIG_IGN);  // the parent ends them
        if (::getppid() != parent) ::_exit(1);
        ::_exit(processes.body(w));
      }
      pids_.push_back(pid);
    }
    return {};
  }

  // False: all have ended. An error: one has ended badly.
  Outcome<bool> look(const WorkerProcesses& processes) {
    bool any = false;
    for (unsigned w = 0; w < pids_.size(); ++w) {
      if (pids_[w] <= 0) continue;
      int status = 0;
      const pid_t pid = ::waitpid(pids_[w], &status, WNOHANG);
      if (pid == 0) {
        any = true;
        continue;
      }
      pids_[w] = 0;
      if (WIFEXITED(status) && WEXITSTATUS(status) == 0) continue;
      if (const auto told = processes.describe(w)) return *told;
      if (WIFSIGNALED(status)) {
        return make_error(
            ECHILD, "worker {} (process {}) was ended by signal {}: its part of the result is lost",
            w, pid, WTERMSIG(status));
      }
      return make_error(ECHILD, "worker {} (process {}) has ended with status {}", w, pid,
                        WEXITSTATUS(status));
    }
    return any;
  }

 private:
  std::vector<pid_t> pids_;
};

}  // namespace

void Exchange::answer(unsigned w, uint64_t round, const RoundAnswer& answer) {
  Answer& slot = workers_[w].answers[round % kAnswers];
  slot.round.store(0, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  slot.sent.store(answer.sent, std::memory_order_relaxed);
  slot.received.store(answer.received, std::memory_order_relaxed);
  slot.left.store(answer.left, std::memory_order_relaxed);
  slot.round.store(round, std::memory_order_release);
  workers_[w].answered.store(round, std::memory_order_release);
}

uint64_t Exchange::answered_round() const {
  uint64_t round = UINT64_MAX;
  for (unsigned w = 0; w < worker_count_; ++w) {
    round = std::min(round, workers_[w].answered.load(std::memory_order_acquire));
  }
  return round;
}

std::optional<RoundAnswer> Exchange::sum_of(uint64_t round) const {
  RoundAnswer sum;
  for (unsigned w = 0; w < worker_count_; ++w) {
    const Answer& slot = workers_[w].answers[round % kAnswers];
    if (slot.round.load(std::memory_order_acquire) != round) return std::nullopt;
    sum.sent += slot.sent.load(std::memory_order_relaxed);
    sum.received += slot.received.load(std::memory_order_relaxed);
    sum.left += slot.left.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (slot.round.load(std::memory_order_relaxed) != round) return std::nullopt;
  }
  return sum;
}

Outcome<void> run_processes(const WorkerProcesses& processes) {
  Children children;
  if (auto started = children.start(processes); !started) return started;
  while (true) {
    const auto any = children.look(processes);
    if (!any) return any.error();
    if (!*any) return {};
    if (auto go_on = check_interrupt(); !go_on) return go_on;
    if (auto ticked = processes.tick(); !ticked) return ticked;
    std::this_thread::sleep_for(kTick);
  }
}

}  // namespace graphlane::maiter
