// KvStore: a store of pages that is open for gets: its index in memory, its pages on the devices,
// and a hot-aware cache of values (MaiterStore §3.1).
//
//   get(key, hotness) ─▶ ValueCache ─▶ PageBuffer ─▶ devices
//                        shared        of each reader
//
// Gets are a KvReader's (kv_reader.h). A store may be opened by any number of processes, also while
// one writes it (graphfmt/pages/store_writer.h): it has the pages that were there when it was
// opened.
//
// Threads: does not change once it is open, but for the cache, which any thread may use.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "adapters/kv/cache/value_cache.h"
#include "graphfmt/buffer.h"
#include "graphfmt/pages/page_store.h"
#include "iomgr/read/paged_files.h"

namespace graphlane::kv {

struct KvOptions {
  CacheOptions cache = {};
  bool in_memory = false;  // all pages are read at once and checked; no cache is needed then
};

class KvStore {
 public:
  // Errors are one line that names the file. EIO: damaged; EINVAL: no store.
  static Outcome<std::unique_ptr<KvStore>> open(const std::string& path, const KvOptions& options);
  // Opens a store whose index is loaded. `pages` must live longer.
  static Outcome<std::unique_ptr<KvStore>> open(const graphfmt::PageStore& pages,
                                                const KvOptions& options);

  const graphfmt::PageStore& pages() const { return *pages_; }
  const OpenPagedFile& file() const { return *file_; }
  ValueCache& cache() { return cache_; }
  bool is_in_memory() const { return !views_.empty(); }
  const graphfmt::PageView& view(uint64_t page_index) const { return views_[page_index]; }
  PagedFiles::Moved moved() const { return files_.moved(); }

 private:
  explicit KvStore(const KvOptions& options) : cache_(options.cache) {}
  Outcome<void> start(const KvOptions& options);
  Outcome<void> load();

  std::unique_ptr<graphfmt::PageStore> own_;
  const graphfmt::PageStore* pages_ = nullptr;
  PagedFiles files_;
  OpenPagedFile* file_ = nullptr;
  ValueCache cache_;
  graphfmt::Buffer memory_;
  std::vector<graphfmt::PageView> views_;  // of a store in memory
};

}  // namespace graphlane::kv
