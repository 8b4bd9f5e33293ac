// The stores that a trace is replayed on, behind one interface: our pages, a flat CSR file under
// mmap, and, where the program is built with them, LMDB and RocksDB.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "iomgr/base/error.h"

namespace graphlane::replay {

class StoreBuilder {
 public:
  // EINVAL: a kind that this program is not built with.
  static Outcome<std::unique_ptr<StoreBuilder>> create(const std::string& kind,
                                                       const std::string& dir,
                                                       uint64_t vertex_count);
  virtual ~StoreBuilder() = default;
  virtual Outcome<void> put(uint64_t key, std::span<const uint8_t> value) = 0;
  virtual Outcome<void> finish() = 0;
};

// The gets of one thread.
class StoreSession {
 public:
  using Take = std::function<void(std::span<const uint8_t> value)>;
  virtual ~StoreSession() = default;
  // Gets each, in turn. ENOENT: a key is not there.
  virtual Outcome<void> gets(std::span<const uint64_t> keys, std::span<const float> hotness,
                             const Take& take) = 0;
};

class OpenStore {
 public:
  // `cache_bytes`: of the store's own cache; what it leaves to the page cache is the cgroup's.
  static Outcome<std::unique_ptr<OpenStore>> open(const std::string& kind, const std::string& dir,
                                                  uint64_t cache_bytes, unsigned threads);
  virtual ~OpenStore() = default;
  virtual std::unique_ptr<StoreSession> session() = 0;
};

}  // namespace graphlane::replay
