// Work for several devices at once, so that their waits overlap.
#pragma once

#include <cstdint>
#include <system_error>
#include <thread>
#include <vector>

namespace graphlane {

// Calls work(i) for each i of 0 .. count - 1, each in a thread of its own; in this thread if no
// more can be started. Returns when all are done.
template <class Work>
void parallel_for(uint32_t count, const Work& work) {
  std::vector<std::thread> threads;
  threads.reserve(count);
  uint32_t begun = 0;
  try {
    for (; begun + 1 < count; ++begun) threads.emplace_back([&work, i = begun] { work(i); });
  } catch (const std::system_error&) {
  }
  for (; begun < count; ++begun) work(begun);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace graphlane
