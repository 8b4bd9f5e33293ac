#include "adapters/kv/page_buffer.h"

#include <algorithm>

namespace graphlane::kv {

// Adjacent pages that are read by one request.
class PageBuffer::Fetch final : public Completion {
 public:
  // Called by any thread.
  void on_done(int error) override {
    MutexLock lock(mu_);
    error_ = error;
    is_under_way_ = false;
    changed_.notify_all();
  }

  void begin(const PagedFile& file) {
    {
      MutexLock lock(mu_);
      is_under_way_ = true;
      error_ = 0;
    }
    const PartRequest request{.map = file.map,
                              .parts = file.parts,
                              .size_bytes = file.size_bytes,
                              .op = IoOp::kRead,
                              .direct = true,
                              .pieces = {pieces, count}};
    engine_ = &file.engine;
    is_begun = true;
    if (!file.engine.submit(request, this)) on_done(file.engine.run(request));
  }

  bool has_ended() {
    MutexLock lock(mu_);
    return !is_under_way_;
  }

  // 0 or an errno.
  int wait() {
    MutexLock lock(mu_);
    while (is_under_way_) {
      mu_.unlock();
      const bool driven = engine_->poll();
      mu_.lock();
      if (!driven && is_under_way_) changed_.wait(mu_);
    }
    return error_;
  }

  // The reader's.
  uint32_t count = 0;
  uint32_t pending = 0;  // frames that have not been finished
  bool is_begun = false;
  Piece pieces[kFetchPages];

 private:
  IoEngine* engine_ = nullptr;
  Mutex mu_;
  CondVar changed_;
  bool is_under_way_ GUARDED_BY(mu_) = false;
  int error_ GUARDED_BY(mu_) = 0;
};

PageBuffer::PageBuffer(const graphfmt::PageStore& store, const PagedFile& file,
                       const BufferOptions& options)
    : store_(store),
      file_(file),
      page_bytes_(store.page_bytes()),
      depth_(std::min(options.depth, kFetchPages - 1)),
      ask_max_(std::max(1u, std::max(options.frames, 2 * (depth_ + 1)) / 2)) {
  const uint32_t count = std::max({options.frames, 2 * (depth_ + 1), 2u});
  for (uint32_t i = 0; i < count; ++i) frames_.push_back(std::make_unique<Frame>());
  by_page_.reserve(count * 2);
}

PageBuffer::~PageBuffer() {
  for (const auto& fetch : fetches_) {
    if (fetch->is_begun) (void)fetch->wait();
  }
}

PageBuffer::Frame* PageBuffer::find(uint64_t page_index) {
  if (last_ != nullptr && last_->is_used && last_->page_index == page_index) return last_;
  const auto found = by_page_.find(page_index);
  return found == by_page_.end() ? nullptr : (last_ = found->second);
}

// The next one that is neither pinned nor being read; one more where all are. nullptr: no memory.
PageBuffer::Frame* PageBuffer::take_frame() {
  Frame* frame = nullptr;
  // Twice round: a page that was fetched ahead, and that nothing has asked for, is waited for only
  // if all others are taken.
  for (size_t step = 0; step < 2 * frames_.size() && frame == nullptr; ++step) {
    Frame* const next = frames_[hand_].get();
    hand_ = (hand_ + 1) % frames_.size();
    if (next->pins.load(std::memory_order_acquire) > 0 ||
        (next->fetch != nullptr && next->fetch == open_)) {
      continue;
    }
    if (next->fetch != nullptr && step < frames_.size() && !next->fetch->has_ended()) continue;
    frame = next;
  }
  if (frame != nullptr && frame->fetch != nullptr) {
    (void)frame->fetch->wait();
    --std::exchange(frame->fetch, nullptr)->pending;
  }
  if (frame == nullptr) {
    frames_.push_back(std::make_unique<Frame>());
    frame = frames_.back().get();
  }
  if (frame->bytes == nullptr) {
    auto memory = graphfmt::Buffer::allocate(page_bytes_);
    if (!memory) return nullptr;
    frame->bytes = memory->as<uint8_t>();
    memory_.push_back(std::move(*memory));
  }
  if (frame->is_used) forget(*frame);
  return frame;
}

void PageBuffer::forget(Frame& frame) {
  by_page_.erase(frame.page_index);
  frame.is_used = false;
  frame.error.reset();
}

PageBuffer::Fetch* PageBuffer::free_fetch() {
  for (const auto& fetch : fetches_) {
    if (fetch->pending == 0 && fetch.get() != open_) return fetch.get();
  }
  fetches_.push_back(std::make_unique<Fetch>());
  return fetches_.back().get();
}

// Puts the page into the open fetch, or a new one.
PageBuffer::Frame* PageBuffer::begin_page(uint64_t page_index) {
  Frame* const frame = take_frame();
  if (frame == nullptr) return nullptr;
  const ByteRange range{store_.head().page_offset(page_index), page_bytes_};
  if (open_ != nullptr && (open_->count == kFetchPages ||
                           open_->pieces[open_->count - 1].range.end() != range.offset)) {
    flush();
  }
  if (open_ == nullptr) {
    open_ = free_fetch();
    open_->count = 0;
    open_->is_begun = false;
  }
  open_->pieces[open_->count++] = {.range = range, .buffer = frame->bytes};
  ++open_->pending;
  frame->page_index = page_index;
  frame->fetch = open_;
  frame->is_used = true;
  frame->is_ahead = frame->is_first_of_window = false;
  by_page_[page_index] = frame;
  ++counts_.pages;
  return frame;
}

void PageBuffer::flush() {
  if (open_ == nullptr) return;
  ++counts_.requests;
  std::exchange(open_, nullptr)->begin(file_);
}

Outcome<PageBuffer::Frame*> PageBuffer::get(uint64_t page_index) {
  Frame* frame = find(page_index);
  if (frame == nullptr) {
    ++counts_.misses;
    frame = begin_page(page_index);
    if (frame == nullptr) return make_error(ENOMEM, "{}: no memory for a page", store_.path());
    frame->pins.fetch_add(1, std::memory_order_relaxed);
    if (depth_ > 0) {
      add(page_index + 1, depth_);
      // The one behind the page that was missed tells whether reading goes on.
      if (Frame* const next = find(page_index + 1); next != nullptr && next->is_ahead) {
        next->is_first_of_window = true;
      }
      last_ = frame;
    }
    flush();
  } else {
    ++counts_.hits;
    frame->pins.fetch_add(1, std::memory_order_relaxed);
    if (frame->is_ahead) {
      frame->is_ahead = false;
      if (frame->is_first_of_window) {
        // Behind the window that begins here.
        uint64_t next = page_index + 1;
        while (next <= page_index + depth_ + 1 && by_page_.contains(next)) ++next;
        if (Frame* const first = add(next, depth_ + 1); first != nullptr) {
          first->is_first_of_window = true;
        }
        flush();
      }
    }
  }
  if (Outcome<void> there = wait(*frame); !there) {
    frame->pins.fetch_sub(1, std::memory_order_release);
    return there.error();
  }
  return frame;
}

Outcome<PageBuffer::Frame*> PageBuffer::ask(uint64_t page_index) {
  Frame* frame = find(page_index);
  if (frame == nullptr) {
    ++counts_.misses;
    frame = begin_page(page_index);
    if (frame == nullptr) return make_error(ENOMEM, "{}: no memory for a page", store_.path());
    last_ = frame;
  } else {
    ++counts_.hits;
  }
  frame->pins.fetch_add(1, std::memory_order_relaxed);
  return frame;
}

PageBuffer::Frame* PageBuffer::add(uint64_t first, uint64_t count) {
  const uint64_t end = std::min(first + count, store_.page_count());
  Frame* first_begun = nullptr;
  for (uint64_t page = first; page < end; ++page) {
    if (by_page_.contains(page)) continue;
    Frame* const frame = begin_page(page);
    if (frame == nullptr) break;
    frame->is_ahead = true;
    if (first_begun == nullptr) first_begun = frame;
  }
  return first_begun;
}

Outcome<void> PageBuffer::wait(Frame& frame) {
  if (frame.fetch != nullptr) {
    if (frame.fetch == open_) flush();
    if (Outcome<void> done = finish(frame); !done) frame.error = done.error();
  }
  if (!frame.error) return {};
  const Error error = *frame.error;
  // The next get tries again.
  if (frame.is_used) forget(frame);
  return error;
}

Outcome<void> PageBuffer::finish(Frame& frame) {
  Fetch* const fetch = std::exchange(frame.fetch, nullptr);
  const int error = fetch->wait();
  const bool was_shared = fetch->count > 1;
  --fetch->pending;
  if (error != 0 && was_shared) return read_alone(frame);  // the error may be another page's
  if (error != 0) {
    return os_error(error, store_.path(), fmt::format("page {}: cannot read", frame.page_index));
  }
  auto view = store_.check_page(frame.page_index, {frame.bytes, page_bytes_});
  if (!view) return view.error();
  frame.view = *view;
  return {};
}

Outcome<void> PageBuffer::read_alone(Frame& frame) {
  Fetch* const fetch = free_fetch();
  fetch->count = 1;
  fetch->pieces[0] = {.range = {store_.head().page_offset(frame.page_index), page_bytes_},
                      .buffer = frame.bytes};
  fetch->pending = 1;
  frame.fetch = fetch;
  ++counts_.requests;
  fetch->begin(file_);
  return finish(frame);
}

}  // namespace graphlane::kv
