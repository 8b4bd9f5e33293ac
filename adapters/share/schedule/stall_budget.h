// StallBudget: for how long one job has kept others waiting, in this sweep.
//
//   lease     until then it may compute: twice what its chunk should take (formulas 3
//             and 4), kLeaseMaxNs at most
//   credit    kCreditNs beyond its leases; then it is late until its sweep ends, and nobody
//             waits for it any more. While nobody waits for it, it gets an eighth of the
//             time back: on a crowded machine every job holds the others up for some
//             milliseconds time and again, and a long sweep has many of them
//
// So a job that is stopped or spins gets no further lease, and holds the others up for
// kLeaseMaxNs + kCreditNs = 0.9 s at most. Time is charged only while somebody waits.
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

  // It computes what should take `expected_ns`; 0: who knows.
  void lease(uint64_t now_ns, uint64_t expected_ns) {
    const uint64_t length_ns = expected_ns == 0 ? kLeaseMaxNs : 2 * expected_ns + kLeaseSlackNs;
    lease_end_ns_ = now_ns + std::min(length_ns, kLeaseMaxNs);
  }
  // Before its end, if it was done sooner.
  void end_lease(uint64_t now_ns) {
    charge(now_ns);  // what was leased is not charged later
    lease_end_ns_ = 0;
  }
  bool leased(uint64_t now_ns) const { return now_ns < lease_end_ns_; }

  // Whether others wait for it from now on; false again: they have it back.
  void set_holding(uint64_t now_ns, bool holding) {
    charge(now_ns);
    holding_ = holding;
  }
  bool exhausted(uint64_t now_ns) {
    charge(now_ns);
    return held_ns_ >= kCreditNs;
  }
  // When it will be, if nothing else happens; UINT64_MAX: never.
  uint64_t exhausted_at_ns() const {
    if (!holding_) return UINT64_MAX;
    return std::max(since_ns_, lease_end_ns_) + kCreditNs - std::min(held_ns_, kCreditNs);
  }
  uint64_t lease_end_ns() const { return lease_end_ns_; }

  // A sweep ends: all is forgiven.
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
  uint64_t since_ns_ = 0;  // charged up to here
  bool holding_ = false;
};

}  // namespace graphlane::share
