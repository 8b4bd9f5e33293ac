// eventually(): waits for something that another thread or process brings about.
#pragma once

#include <chrono>
#include <thread>

namespace graphlane {

// Whether the condition holds within a minute. It is asked every millisecond.
template <class Condition>
bool eventually(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!condition()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace graphlane
