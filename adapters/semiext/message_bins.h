// MessageBins: messages between vertices, bundled by the range that their targets lie in.
//
//   worker 0   | bundle for range 0 | for range 1 | …       filled by one worker, no lock
//   worker 1   | bundle for range 0 | for range 1 | …
//                      │ full
//   range 0    inbox: bundles       token: only its holder runs, or delivers to, the range's vertices
//
// So no vertex's state needs a lock, and delivery to a range's vertices touches that range's memory
// only.
//
// A bundle is a sequence of {message, count, count targets}: a multicast is in it once.
//
// Threads: a worker's own bundles are its own; the rest is any thread's.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "iomgr/base/mutex.h"

namespace graphlane::semiext {

template <class Message>
class MessageBins {
 public:
  static_assert(std::is_trivially_copyable_v<Message>);
  static constexpr size_t kBundleBytes = 4096;
  static constexpr size_t kRangesMax = 1024;

  MessageBins(size_t range_count, unsigned worker_count, unsigned range_shift)
      : range_shift_(range_shift), inboxes_(range_count), workers_(worker_count) {
    for (Worker& worker : workers_) worker.bundles.resize(range_count);
  }

  // To targets in any order; those that follow one another in one range are told once. True: some
  // range has a full bundle now (take_full()).
  bool send(unsigned worker, std::span<const uint32_t> targets, const Message& message) {
    bool full = false;
    for (size_t at = 0; at < targets.size();) {
      const size_t range = targets[at] >> range_shift_;
      size_t end = at + 1;
      const size_t room = kBundleBytes / sizeof(uint32_t);
      while (end < targets.size() && targets[end] >> range_shift_ == range && end - at < room) {
        ++end;
      }
      full |= append(worker, range, targets.subspan(at, end - at), message);
      at = end;
    }
    return full;
  }

  // Posts the worker's bundles that are not full, too. Returns whether there were any.
  bool flush(unsigned worker) {
    bool any = false;
    Worker& own = workers_[worker];
    for (size_t range = 0; range < own.bundles.size(); ++range) {
      if (!own.bundles[range].empty()) {
        post(own, range);
        any = true;
      }
    }
    return any;
  }
  // The ranges to which this worker has posted full bundles since the last call.
  std::vector<uint32_t>& posted(unsigned worker) { return workers_[worker].posted; }

  bool try_hold(size_t range) {
    return !inboxes_[range].held.test_and_set(std::memory_order_acquire);
  }
  void hold(size_t range) {
    while (!try_hold(range)) inboxes_[range].held.wait(true, std::memory_order_relaxed);
  }
  void release(size_t range) {
    inboxes_[range].held.clear(std::memory_order_release);
    inboxes_[range].held.notify_one();
  }

  // Calls deliver(target, message) for all posted messages. The caller holds the range. Returns
  // whether there was any.
  template <class Deliver>
  bool drain(size_t range, const Deliver& deliver) {
    Inbox& inbox = inboxes_[range];
    if (!inbox.has_some.load(std::memory_order_relaxed)) return false;
    std::vector<std::vector<std::byte>> bundles;
    {
      MutexLock lock(inbox.mu);
      bundles.swap(inbox.bundles);
      inbox.has_some.store(false, std::memory_order_relaxed);
    }
    for (const std::vector<std::byte>& bundle : bundles) open(bundle, deliver);
    return !bundles.empty();
  }

  size_t range_count() const { return inboxes_.size(); }

 private:
  struct Inbox {
    std::atomic_flag held;
    std::atomic<bool> has_some{false};
    Mutex mu;
    std::vector<std::vector<std::byte>> bundles GUARDED_BY(mu);
  };
  struct alignas(64) Worker {
    std::vector<std::vector<std::byte>> bundles;  // by range
    std::vector<uint32_t> posted;
  };

  bool append(unsigned worker, size_t range, std::span<const uint32_t> targets,
              const Message& message) {
    Worker& own = workers_[worker];
    std::vector<std::byte>& bundle = own.bundles[range];
    const auto count = static_cast<uint32_t>(targets.size());
    const size_t begin = bundle.size();
    if (bundle.capacity() == 0) bundle.reserve(kBundleBytes);
    bundle.resize(begin + sizeof(Message) + sizeof count + targets.size_bytes());
    std::byte* to = bundle.data() + begin;
    std::memcpy(to, &message, sizeof(Message));
    std::memcpy(to + sizeof(Message), &count, sizeof count);
    std::memcpy(to + sizeof(Message) + sizeof count, targets.data(), targets.size_bytes());
    // With room for another small one, or it would be allocated anew.
    if (bundle.size() + sizeof(Message) + 2 * sizeof(uint32_t) <= kBundleBytes) return false;
    post(own, range);
    own.posted.push_back(static_cast<uint32_t>(range));
    return true;
  }

  void post(Worker& own, size_t range) {
    Inbox& inbox = inboxes_[range];
    MutexLock lock(inbox.mu);
    inbox.bundles.push_back(std::exchange(own.bundles[range], {}));
    inbox.has_some.store(true, std::memory_order_relaxed);  // a hint; the lock orders
  }

  template <class Deliver>
  static void open(const std::vector<std::byte>& bundle, const Deliver& deliver) {
    const std::byte* at = bundle.data();
    const std::byte* const end = at + bundle.size();
    while (at < end) {
      Message message;
      uint32_t count;
      std::memcpy(&message, at, sizeof message);
      std::memcpy(&count, at + sizeof message, sizeof count);
      at += sizeof message + sizeof count;
      for (; count > 0; --count, at += sizeof(uint32_t)) {
        uint32_t target;
        std::memcpy(&target, at, sizeof target);
        deliver(target, message);
      }
    }
  }

  const unsigned range_shift_;
  std::vector<Inbox> inboxes_;
  std::vector<Worker> workers_;
};

}  // namespace graphlane::semiext
