#include "adapters/kv/kv_reader.h"

#include <cstring>

namespace graphlane::kv {
using graphfmt::PageView;
namespace {

void unpin(PageBuffer::Frame* frame) {
  if (frame != nullptr) frame->pins.fetch_sub(1, std::memory_order_release);
}

}  // namespace

KvCounts& KvCounts::operator+=(const KvCounts& other) {
  gets += other.gets;
  cache_hits += other.cache_hits;
  missing += other.missing;
  buffer.hits += other.buffer.hits;
  buffer.misses += other.buffer.misses;
  buffer.requests += other.buffer.requests;
  buffer.pages += other.buffer.pages;
  return *this;
}

KvReader::KvReader(KvStore& store, const BufferOptions& options)
    : store_(store), buffer_(store.pages(), store.file().paged(), options) {}

KvCounts KvReader::counts() const {
  KvCounts counts = counts_;
  counts.buffer = buffer_.counts();
  return counts;
}

Outcome<PinnedValue> KvReader::get(uint64_t key, float hotness) {
  ++counts_.gets;
  PinnedValue value;
  if (store_.cache().find(key, hotness, value)) {
    ++counts_.cache_hits;
    return value;
  }
  uint64_t page_index = 0;
  if (!store_.pages().find_page(key, page_index)) {
    ++counts_.missing;
    return PinnedValue();
  }
  if (store_.is_in_memory()) return find_in_memory(key, page_index);
  const auto frame = buffer_.get(page_index);
  if (!frame) return frame.error();
  return take(key, hotness, **frame);
}

// Gets from a store in memory.
Outcome<PinnedValue> KvReader::find_in_memory(uint64_t key, uint64_t page_index) {
  const PageView& view = store_.view(page_index);
  const uint32_t at = view.find(key);
  if (at == view.key_count()) {
    ++counts_.missing;
    return PinnedValue();
  }
  if (view.is_continued(at)) return gather(key, view, at, page_index);
  return PinnedValue(view.value(at), nullptr);
}

// Takes the value of the key from its page. The pin of the page goes to the value.
Outcome<PinnedValue> KvReader::take(uint64_t key, float hotness, PageBuffer::Frame& frame) {
  const PageView& view = frame.view;
  const uint32_t at = view.find(key);
  if (at == view.key_count()) {
    unpin(&frame);
    ++counts_.missing;
    return PinnedValue();
  }
  if (view.is_continued(at)) {
    auto whole = gather(key, view, at, frame.page_index);
    unpin(&frame);
    PinnedValue cached;
    if (whole && store_.cache().insert(key, hotness, whole->bytes(), cached)) return cached;
    return whole;
  }
  PinnedValue value;
  if (store_.cache().insert(key, hotness, view.value(at), value)) {
    unpin(&frame);
    return value;
  }
  return PinnedValue(view.value(at), &frame.pins);
}

uint64_t KvReader::pages_of_rest(uint64_t bytes) const {
  const uint64_t room = store_.pages().page_bytes() - sizeof(graphfmt::PageHead);
  return (bytes + room - 1) / room;
}

// A value that begins at the end of a page, with the rest from the pages that follow.
Outcome<PinnedValue> KvReader::gather(uint64_t key, const PageView& view, uint32_t at_place,
                                      uint64_t page_index) {
  const graphfmt::PageStore& pages = store_.pages();
  const std::span<const uint8_t> begin = view.value(at_place);
  const uint64_t more_bytes = view.head().more_bytes;
  if (more_bytes > (pages.page_count() - page_index) * pages.page_bytes()) {
    return pages.page_error(page_index, "its last value does not end");
  }
  const size_t size = begin.size() + more_bytes;
  std::unique_ptr<uint8_t[]> whole(new (std::nothrow) uint8_t[size]);
  if (whole == nullptr) {
    return make_error(ENOMEM, "{}: no memory for the {} bytes of the key {}", pages.path(), size,
                      key);
  }
  std::memcpy(whole.get(), begin.data(), begin.size());
  for (size_t at = begin.size(), i = 0; at < size; ++i) {
    if (i % rest_pages_max() == 0 && !store_.is_in_memory()) {
      buffer_.add(page_index + 1, std::min(pages_of_rest(size - at), rest_pages_max()));
      buffer_.flush();
    }
    if (++page_index >= pages.page_count()) {
      return pages.page_error(page_index - 1, "its last value does not end");
    }
    PageBuffer::Frame* frame = nullptr;
    const auto next = view_of(page_index, frame);
    if (!next) return next.error();
    const std::span<const uint8_t> rest = (*next)->rest();
    const uint64_t left = (*next)->key_count() == 0 ? (*next)->head().more_bytes : 0;
    const bool goes_on = !rest.empty() && rest.size() + left == size - at;
    if (goes_on) std::memcpy(whole.get() + at, rest.data(), rest.size());
    at += rest.size();
    unpin(frame);
    if (!goes_on) return pages.page_error(page_index, "a value does not go on in it");
  }
  return PinnedValue(std::move(whole), size);
}

// The page; `frame` is its pin, none of a store in memory.
Outcome<const PageView*> KvReader::view_of(uint64_t page_index, PageBuffer::Frame*& frame) {
  if (store_.is_in_memory()) return &store_.view(page_index);
  const auto got = buffer_.get(page_index);
  if (!got) return got.error();
  frame = *got;
  return &std::as_const(frame->view);
}

// ---- many at once

void KvReader::submit(uint64_t key, float hotness, GetTask& task) {
  ++counts_.gets;
  waiting_.push_back({.key = key, .hotness = hotness, .task = &task, .value = {}, .error = {}});
  begin_more();
}

// Begins gets until the buffer is full, and then none until half of it is free: so that adjacent
// pages go in one request.
void KvReader::begin_more() {
  if (asked_ <= buffer_.ask_max() / 2) waits_for_room_ = false;
  while (!waits_for_room_ && begun_ < waiting_.size()) {
    begin(waiting_[begun_++]);
    waits_for_room_ = asked_ >= buffer_.ask_max();
    if (waits_for_room_) buffer_.flush();
  }
}

// Looks the key up in the cache, else asks for its page.
void KvReader::begin(Waiting& waiting) {
  if (store_.cache().find(waiting.key, waiting.hotness, waiting.value)) {
    ++counts_.cache_hits;
    return;
  }
  uint64_t page_index = 0;
  if (!store_.pages().find_page(waiting.key, page_index)) {
    ++counts_.missing;
    return;
  }
  if (store_.is_in_memory()) {
    auto found = find_in_memory(waiting.key, page_index);
    if (found) {
      waiting.value = std::move(*found);
    } else {
      waiting.error = found.error();
    }
    return;
  }
  const auto frame = buffer_.ask(page_index);
  if (!frame) {
    waiting.error = frame.error();
    return;
  }
  waiting.frame = *frame;
  if (waiting.frame->asks++ == 0) ++asked_;
  // Pages that hold nothing but the rest of a value have its key in the index, too. What is left of
  // it begins the page behind them.
  const std::vector<uint64_t>& first_keys = store_.pages().index().first_keys;
  uint64_t rest = 0;
  while (rest + added_ < rest_pages_max() && page_index + rest + 1 < first_keys.size() &&
         first_keys[page_index + rest + 1] == waiting.key) {
    ++rest;
  }
  if (rest == 0) return;
  waiting.added = static_cast<uint32_t>(rest + 1);
  added_ += waiting.added;
  buffer_.add(page_index + 1, waiting.added);
}

Outcome<PinnedValue> KvReader::complete(Waiting& waiting) {
  if (waiting.error) return *waiting.error;
  if (waiting.frame == nullptr) return std::move(waiting.value);
  PageBuffer::Frame& frame = *waiting.frame;
  if (--frame.asks == 0) --asked_;
  added_ -= waiting.added;
  if (Outcome<void> there = buffer_.wait(frame); !there) {
    unpin(&frame);
    return there.error();
  }
  return take(waiting.key, waiting.hotness, frame);
}

bool KvReader::wait() {
  if (waiting_.empty()) return false;
  if (begun_ == 0) begin(waiting_[begun_++]);
  Waiting waiting = std::move(waiting_.front());
  waiting_.pop_front();
  --begun_;
  Outcome<PinnedValue> value = complete(waiting);
  begin_more();
  waiting.task->done(std::move(value));
  return true;
}

Outcome<void> KvReader::multi_get(std::span<const uint64_t> keys, std::span<const float> hotness,
                                  const Visit& visit) {
  struct Collect final : GetTask {
    void done(Outcome<PinnedValue> value) override {
      if (!failed) {
        if (value) {
          if (Outcome<void> visited = (*visit)(next, std::move(*value)); !visited) {
            failed = visited.error();
          }
        } else {
          failed = value.error();
        }
      }
      ++next;
    }
    const Visit* visit = nullptr;
    size_t next = 0;
    std::optional<Error> failed;
  };
  constexpr size_t kAhead = 4096;  // keys in the queue
  Collect collect;
  collect.visit = &visit;
  for (size_t i = 0; i < keys.size() && !collect.failed; ++i) {
    prefetch_cached(keys.subspan(i));
    const float hot = hotness.empty() ? 0 : hotness[i];
    // Nothing waits: what is cached needs no place in the queue.
    if (PinnedValue value; waiting_.empty() && store_.cache().find(keys[i], hot, value)) {
      ++counts_.gets;
      ++counts_.cache_hits;
      collect.done(std::move(value));
      continue;
    }
    submit(keys[i], hot, collect);
    if (waiting_count() >= kAhead || is_full()) wait();
  }
  while (wait()) {
  }
  if (collect.failed) return *collect.failed;
  return {};
}

Outcome<void> KvReader::for_each(uint64_t first, const VisitKey& visit) {
  const graphfmt::PageStore& pages = store_.pages();
  uint64_t page_index = 0;
  (void)pages.find_page(first, page_index);
  if (page_index == UINT64_MAX) page_index = 0;  // below all keys
  for (; page_index < pages.page_count(); ++page_index) {
    PageBuffer::Frame* frame = nullptr;
    const auto view = view_of(page_index, frame);
    if (!view) return view.error();
    for (uint32_t i = (*view)->lower_bound(first); i < (*view)->key_count(); ++i) {
      Outcome<void> visited;
      const uint64_t key = (*view)->key(i);
      if ((*view)->is_continued(i)) {
        const auto value = gather(key, **view, i, page_index);
        visited = value ? visit(key, value->bytes()) : value.error();
      } else {
        visited = visit(key, (*view)->value(i));
      }
      if (!visited) {
        unpin(frame);
        return visited;
      }
    }
    unpin(frame);
  }
  return {};
}

}  // namespace graphlane::kv
