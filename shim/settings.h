// What the environment says, read once.
//
//   GRAPHLANE_IO=auto|direct|buffered
//   GRAPHLANE_BACKEND=auto|io_uring|libaio|threads
//   GRAPHLANE_REPORT=1 (stderr) or a file, to which one JSON line is added
#pragma once

#include "iomgr/io_queue.h"
#include "iomgr/memory_limit.h"

namespace graphlane {

struct Settings {
  IoMode io_mode = IoMode::kAuto;
  IoBackend backend = IoBackend::kAuto;
  const char* report = nullptr;  // null: none wanted
};

const Settings& settings();

}  // namespace graphlane
