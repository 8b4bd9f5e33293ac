// AppendPage: the memory in which a client says how far it has appended
// (iomgr/server/server_protocol.h, "Appending").
#pragma once

#include <utility>

#include "iomgr/base/fd.h"
#include "iomgr/volume/parts/append_progress.h"

namespace graphlane::fuse {

class AppendPage {
 public:
  AppendPage();  // `false` without memory: then progress() must not be used
  ~AppendPage();
  AppendPage(AppendPage&& other) noexcept
      : fd_(std::move(other.fd_)), memory_(std::exchange(other.memory_, nullptr)) {}
  AppendPage& operator=(AppendPage&&) = delete;

  explicit operator bool() const { return memory_ != nullptr; }
  AppendProgress& progress() const { return *memory_; }
  int fd() const { return fd_.get(); }

 private:
  Fd fd_;
  AppendProgress* memory_ = nullptr;
};

}  // namespace graphlane::fuse
