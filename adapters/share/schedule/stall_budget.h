// StallBudget: how long one job may hold others up in a sweep.
//
//   lease     the time to compute a chunk: twice the expected time (formulas 3 and 4), at most
//             kLeaseMaxNs
//   credit    kCreditNs beyond its leases. After that the job is late until its sweep ends, and no
//             other job waits for it. While it holds no job up, it regains an eighth of the time.
//             (On a crowded machine every job stalls for some milliseconds now and then, and a long
//             sweep has many such stalls.)
//
// So a job that is stopped or spins gets no further lease, and holds others up for at most
// kLeaseMaxNs + kCreditNs = 0.9 s. Time is charged only while another job waits.
#pragma once

#include <algorithm>
#include <cstdint>

namespace graphlane::share {

class StallBudget {
 public:
  static constexpr uint64_t kCreditNs = 500'000'000;
  static constexpr uint64_t kRefill = 8;
  static constexpr uint64_t kLeaseMaxNs = 400'000'000;
  static constexpr uint64_t kLeaseSlackNs = 10'000'000;
  static_assert(kCreditNs + kLeaseMaxNs < 1'000'000'000, "nobody is held up for a second");

  // Begins a lease for work that should take `expected_ns`; 0: unknown.
  void lease(uint64_t now_ns, uint64_t expected_ns) {
    const uint64_t length_ns = expected_ns == 0 ? kLeaseMaxNs : 2 * expected_ns + kLeaseSlackNs;
    lease_end_ns_ = now_ns + std::min(length_ns, kLeaseMaxNs);
  }
  // Ends the lease early, when the work is done.
  void end_lease(uint64_t now_ns) {
    charge(now_ns);  // leased time must not be charged later
    lease_end_ns_ = 0;
  }
  bool leased(uint64_t now_ns) const { return now_ns < lease_end_ns_; }

  // Whether other jobs wait for this one from now on.
  void set_holding(uint64_t now_ns, bool holding) {
    charge(now_ns);
    holding_ = holding;
  }
  bool exhausted(uint64_t now_ns) {
    charge(now_ns);
    return held_ns_ >= kCreditNs;
  }
  // When the credit ends if nothing else happens; UINT64_MAX: never.
  uint64_t exhausted_at_ns() const {
    if (!holding_) return UINT64_MAX;
    return std::max(since_ns_, lease_end_ns_) + kCreditNs - std::min(held_ns_, kCreditNs);
  }
  uint64_t lease_end_ns() const { return lease_end_ns_; }

  // Forgets all charges, at a sweep's end.
  void reset() { *this = StallBudget(); }

 private:
  void charge(uint64_t now_ns) {
    now_ns = std::max(now_ns, since_ns_);
    const uint64_t from_ns = std::max(since_ns_, lease_end_ns_);
    if (holding_ && now_ns > from_ns) held_ns_ += now_ns - from_ns;
    if (!holding_) held_ns_ -= std::min(held_ns_, (now_ns - since_ns_) / kRefill);
    since_ns_ = now_ns;
  }

  uint64_t held_ns_ = 0;
  uint64_t lease_end_ns_ = 0;
  uint64_t since_ns_ = 0;  // the last time charged
  bool holding_ = false;
};

}  // namespace graphlane::share
