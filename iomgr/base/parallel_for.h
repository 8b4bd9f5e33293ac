// Work for several devices at once, so that their waits overlap.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <new>
#include <system_error>
#include <thread>
#include <vector>

namespace graphlane {

// Calls work(i) for each i of 0 .. count - 1, each in a thread of its own; in this thread if no
// more can be started. Returns when all are done. If some throw (bad_alloc), the first exception is
// thrown then.
template <class Work>
void parallel_for(uint32_t count, const Work& work) {
  std::atomic_flag has_thrown;
  std::exception_ptr thrown;
  const auto do_one = [&](uint32_t i) {
    try {
      work(i);
    } catch (...) {
      if (!has_thrown.test_and_set()) thrown = std::current_exception();
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(count);
  uint32_t begun = 0;
  try {
    for (; begun + 1 < count; ++begun) threads.emplace_back(do_one, begun);
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  for (; begun < count; ++begun) do_one(begun);
  for (std::thread& thread : threads) thread.join();
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace graphlane
