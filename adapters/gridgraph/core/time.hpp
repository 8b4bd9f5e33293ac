#ifndef GRAPHLANE_GRIDGRAPH_TIME_HPP
#define GRAPHLANE_GRIDGRAPH_TIME_HPP

#include <sys/time.h>
#include <time.h>

// Seconds since an arbitrary moment.
inline double get_time() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

#endif
