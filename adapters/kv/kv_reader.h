// KvReader: gets from a store: one at a time, many at once, and all in order.
//
//   get()          cache, then buffer, then devices; waits
//   submit()       puts a get into the queue and begins to read its page; wait() completes the oldest
//   multi_get()    both, over many keys, as far ahead as the buffer allows: every device is busy
//   for_each()     all keys from one on, ascending; sequential reads, past the cache
//
// What is returned is pinned, not copied (pinned_value.h). A value that lies on several pages is
// put together, in the cache or in memory of its own.
//
// Errors are one line: file, page, reason. They are of one get; others go on.
//
// Threads: one reader a thread; readers share the store's cache.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <vector>

#include "adapters/kv/kv_store.h"
#include "adapters/kv/page_buffer.h"

namespace graphlane::kv {

struct KvCounts {
  uint64_t gets = 0;
  uint64_t cache_hits = 0;
  uint64_t missing = 0;  // keys that the store does not have
  BufferCounts buffer = {};

  KvCounts& operator+=(const KvCounts& other);
};

// The receiver of a get that was submitted.
class GetTask {
 public:
  // A value, or none: the store does not have the key; or an error.
  virtual void done(Outcome<PinnedValue> value) = 0;

 protected:
  ~GetTask() = default;
};

class KvReader {
 public:
  KvReader(KvStore& store, const BufferOptions& options);

  // `hotness`: how hot the key is now, for the cache. Not found: a value that is false.
  Outcome<PinnedValue> get(uint64_t key, float hotness = 0);

  // Has the processor fetch what the cache has of gets that come soon; `next` are their keys, in order.
  template <class Key>
  void prefetch_cached(std::span<const Key> next) const {
    if (next.size() > kPlaceAhead) store_.cache().prefetch_place(next[kPlaceAhead]);
    if (next.size() > kValueAhead) store_.cache().prefetch_value(next[kValueAhead]);
  }

  // The task lives until it is done, which happens in wait(), in the order of submission.
  void submit(uint64_t key, float hotness, GetTask& task);
  // Completes the oldest; false: none is left.
  bool wait();
  size_t waiting_count() const { return waiting_.size(); }
  // Whether some of them have not begun: the buffer has no room for more pages.
  bool is_full() const { return begun_ < waiting_.size(); }

  // visit(index, value) for each key in turn. `hotness`: of each key, or empty. Ascending keys read
  // each page once. Ends at the first error.
  using Visit = std::function<Outcome<void>(size_t index, PinnedValue value)>;
  Outcome<void> multi_get(std::span<const uint64_t> keys, std::span<const float> hotness,
                          const Visit& visit);

  // visit(key, value) for all keys from `first` on.
  using VisitKey = std::function<Outcome<void>(uint64_t key, std::span<const uint8_t> value)>;
  Outcome<void> for_each(uint64_t first, const VisitKey& visit);

  KvCounts counts() const;

 private:
  static constexpr size_t kPlaceAhead = 16, kValueAhead = 8;  // gets
  struct Waiting {
    uint64_t key = 0;
    float hotness = 0;
    GetTask* task = nullptr;
    PinnedValue value;                   // from the cache
    PageBuffer::Frame* frame = nullptr;  // else its page, pinned
    uint32_t added = 0;                  // pages that were begun for the rest of a long value
    std::optional<Error> error;
  };

  void begin_more();
  void begin(Waiting& waiting);
  Outcome<PinnedValue> complete(Waiting& waiting);
  Outcome<PinnedValue> find_in_memory(uint64_t key, uint64_t page_index);
  Outcome<PinnedValue> take(uint64_t key, float hotness, PageBuffer::Frame& frame);
  Outcome<PinnedValue> gather(uint64_t key, const graphfmt::PageView& view, uint32_t at,
                              uint64_t page_index);
  uint64_t pages_of_rest(uint64_t bytes) const;
  // The most of them on their way at once.
  uint64_t rest_pages_max() const { return std::max(1u, buffer_.ask_max() / 2); }
  Outcome<const graphfmt::PageView*> view_of(uint64_t page_index, PageBuffer::Frame*& frame);

  KvStore& store_;
  PageBuffer buffer_;
  std::deque<Waiting> waiting_;  // the oldest first
  size_t begun_ = 0;             // the first of them
  uint32_t asked_ = 0;           // pages that they wait for
  uint32_t added_ = 0;           // pages with the rests of their values
  bool waits_for_room_ = false;  // in the buffer
  KvCounts counts_;
};

}  // namespace graphlane::kv
