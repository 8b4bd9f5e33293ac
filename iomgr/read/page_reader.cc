#include "iomgr/read/page_reader.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <functional>
#include <new>
#include <utility>

namespace graphlane {
namespace {

constexpr uint64_t kPage = PageReader::kPageBytes;
constexpr uint64_t kBudgetMin = 2 << 20;  // half of it holds the longest request

uint64_t first_page_of(ByteRange range) { return range.offset / kPage; }
uint64_t end_page_of(ByteRange range) {
  return range.length_bytes == 0 ? first_page_of(range) : (range.end() + kPage - 1) / kPage;
}
uint64_t page_count_of(ByteRange range) { return end_page_of(range) - first_page_of(range); }

FrameKey key_of(const PagedFile& file, uint64_t page_index) {
  return {.file_id = file.file_id, .generation = file.generation, .frame_index = page_index};
}

// The piece of the range that lies on this page.
PageBytes::Piece piece_of(const Pin& pin, uint64_t page_index, ByteRange range) {
  const uint64_t page_begin = page_index * kPage;
  const uint64_t begin = std::max(range.offset, page_begin);
  const uint64_t end = std::min(range.end(), page_begin + kPage);
  return pin.bytes().subspan(begin - page_begin, end - begin);
}

PartRequest request_of(const PagedFile& file, std::span<const Piece> pieces) {
  return {.map = file.map,
          .parts = file.parts,
          .size_bytes = file.size_bytes,
          .op = IoOp::kRead,
          .direct = true,
          .pieces = pieces};
}

bool is_sound(const PagedFile& file, uint64_t page_index, std::span<const std::byte> bytes) {
  return file.checker == nullptr || file.checker->is_sound(page_index, bytes);
}

AlignedBytes allocate_aligned(uint64_t bytes) {
  return AlignedBytes(
      static_cast<std::byte*>(::operator new(bytes, std::align_val_t{kPage}, std::nothrow)));
}

template <class T>
void push(T*& list, T* one) {
  one->next = std::exchange(list, one);
}

template <class T>
T* pop(T*& list) {
  return std::exchange(list, list->next);
}

}  // namespace

Result<std::unique_ptr<PageReader>> PageReader::start(const PageReaderOptions& options) {
  if (options.budget_bytes < kBudgetMin) return Errno{EINVAL};
  std::unique_ptr<PageReader> reader(new (std::nothrow) PageReader());
  if (!reader) return Errno{ENOMEM};
  const Result<void> mapped = reader->cache_.map(
      options.budget_bytes, {.frames = {.frame_bytes = kPage, .policy = options.policy}});
  if (!mapped) return mapped.error();
  reader->merges_ = options.merges;
  return reader;
}

void FreeAligned::operator()(std::byte* memory) const {
  ::operator delete(memory, std::align_val_t{kPage});
}

bool PageReader::contains(const PagedFile& file, uint64_t page_index) {
  return cache_->contains(key_of(file, page_index));
}

PageQueue::PageQueue(PageReader& reader)
    : cache_(*reader.cache_),
      fetch_pages_max_(reader.merges_ ? kFetchPages : 1),
      gap_pages_max_(reader.merges_ ? reader.gap_pages_ : 0),
      requests_(kRequestCount),
      pages_(kPageCount),
      fetches_(kFetchPages / fetch_pages_max_ * kFetchCount) {
  if (gap_pages_max_ > 0) {
    gap_bytes_ = allocate_aligned(gap_pages_max_ * kPage);
    if (!gap_bytes_) throw std::bad_alloc();
  }
  waiting_.reserve(kRequestCount);
  waits_.reserve(kPageCount);
  pieces_.reserve(kRequestPagesMax);
  for (Request& request : requests_) push(free_request_, &request);
  for (uint32_t i = 0; i < kPageCount; ++i) pages_[i].next = i + 1;
  // Takes at most half of the cache: other queues need frames, too.
  free_page_count_ = std::min(kPageCount, cache_.frame_count() / 2);
  for (Fetch& fetch : fetches_) {
    fetch.queue = this;
    push(free_fetch_, &fetch);
  }
  free_fetch_count_ = static_cast<uint32_t>(fetches_.size());
}

PageQueue::~PageQueue() {
  while (wait()) {
  }
}

// ---- submitting

void PageQueue::submit(const PagedFile& file, ByteRange range, PageTask& task) {
  const uint64_t left = range.offset < file.size_bytes ? file.size_bytes - range.offset : 0;
  range.length_bytes = std::min(range.length_bytes, left);
  const Waiting request{.file = &file, .range = range, .task = &task};
  // Must not run it within a task: each task would run the next one, and the stack would grow.
  if (!running_ && run_from_cache(request)) return;
  waiting_.push_back(request);
  sorted_ = false;
}

// False: a page is missing.
bool PageQueue::run_from_cache(const Waiting& request) {
  const uint64_t page_count = page_count_of(request.range);
  if (page_count > kRequestPagesMax || page_count > free_page_count_) return false;
  pieces_.clear();
  uint32_t page = free_page_;
  bool all = true;
  const uint64_t end = end_page_of(request.range);
  for (uint64_t i = first_page_of(request.range); all && i < end; ++i) {
    Pin& pin = pages_[page].pin;
    pin = cache_.find(key_of(*request.file, i));
    all = static_cast<bool>(pin);
    if (all) pieces_.push_back(piece_of(pin, i, request.range));
    page = pages_[page].next;
  }
  if (all) call(*request.task, pieces_);
  for (uint32_t i = free_page_; i != page; i = pages_[i].next) pages_[i].pin.release();
  return all;
}

bool PageQueue::has_room(uint64_t page_count) const {
  const uint64_t fetch_room = free_fetch_count_ * fetch_pages_max_ +
                              (open_fetch_ ? fetch_pages_max_ - open_fetch_->piece_count : 0);
  const uint64_t piece_count = gap_pages_max_ > 0 ? 2 * page_count : page_count;
  return page_count <= free_page_count_ && piece_count <= fetch_room;
}

// Begins requests in the order of the files, so that neighbours share a fetch, as far as there
// is room.
void PageQueue::flush() {
  assert(!running_);
  if (!sorted_) {
    std::sort(waiting_.begin() + static_cast<ptrdiff_t>(first_waiting_), waiting_.end(),
              [](const Waiting& a, const Waiting& b) {
                return a.file != b.file ? std::less<>()(a.file, b.file)
                                        : a.range.offset < b.range.offset;
              });
    sorted_ = true;
  }
  while (first_waiting_ < waiting_.size() && activate(waiting_[first_waiting_])) ++first_waiting_;
  if (first_waiting_ == waiting_.size()) {
    waiting_.clear();
    first_waiting_ = 0;
  }
  if (open_fetch_ != nullptr) start_fetch();
}

bool PageQueue::activate(const Waiting& waiting) {
  const uint64_t page_count = page_count_of(waiting.range);
  const bool is_large = page_count > kRequestPagesMax;
  // Starts an open fetch of another file first; its unused room is lost.
  if (open_fetch_ != nullptr && open_fetch_->file != waiting.file) start_fetch();
  if (free_request_ == nullptr || (!is_large && !has_room(page_count))) return false;
  Request& request = *pop(free_request_);
  static_cast<Waiting&>(request) = waiting;
  request.alone = is_large;
  request.pending = 1;  // this function
  ++active_count_;
  uint32_t* link = &request.first_page;
  const uint64_t end = is_large ? 0 : end_page_of(waiting.range);
  for (uint64_t i = first_page_of(waiting.range); i < end; ++i) {
    Page& page = pages_[*link = free_page_];
    free_page_ = page.next;
    --free_page_count_;
    page.request = &request;
    link = &page.next;
    ask_for(request, page, i);
  }
  if (--request.pending == 0) push(ready_, &request);
  return true;
}

void PageQueue::ask_for(Request& request, Page& page, uint64_t page_index) {
  const FrameKey key = key_of(*request.file, page_index);
  if ((page.pin = cache_.find(key))) return;
  Reservation reservation = cache_.reserve(key);
  switch (reservation.kind) {
    case Reservation::Kind::kHit: page.pin = std::move(reservation.pin); break;
    case Reservation::Kind::kFill:
      add_to_fetch(request, page, page_index, std::move(reservation.fill));
      break;
    case Reservation::Kind::kWait:
      page.wait = std::move(reservation.wait);
      waits_.push_back(&page);
      ++request.pending;
      break;
    case Reservation::Kind::kBypass: request.alone = true; break;
  }
}

// ---- fetching

// The pages between the fetch's last one and this, if they are read, too.
ByteRange PageQueue::gap_before(const Fetch& fetch, uint64_t page_index) const {
  const uint64_t end = fetch.page_indexes[fetch.count - 1] + 1;
  if (page_index <= end || page_index - end > gap_pages_max_) return {};
  return {.offset = end * kPage, .length_bytes = (page_index - end) * kPage};
}

void PageQueue::add_to_fetch(Request& request, Page& page, uint64_t page_index, Fill fill) {
  ByteRange gap = {};
  if (open_fetch_ != nullptr) {
    gap = gap_before(*open_fetch_, page_index);
    if (open_fetch_->piece_count + (gap.length_bytes > 0) >= fetch_pages_max_) start_fetch();
  }
  if (open_fetch_ == nullptr) {
    gap = {};
    open_fetch_ = pop(free_fetch_);
    --free_fetch_count_;
    open_fetch_->file = request.file;
    open_fetch_->count = open_fetch_->piece_count = 0;
  }
  Fetch& fetch = *open_fetch_;
  if (gap.length_bytes > 0) {
    fetch.pieces[fetch.piece_count++] = {.range = gap, .buffer = gap_bytes_.get()};
  }
  // Whole pages, also at the end of the file, where the device brings fewer bytes.
  fetch.pieces[fetch.piece_count++] = {
      .range = {.offset = page_index * kPage, .length_bytes = kPage},
      .buffer = fill.bytes().data()};
  const uint32_t i = fetch.count++;
  fetch.page_indexes[i] = page_index;
  fetch.fills[i] = std::move(fill);
  fetch.pages[i] = &page;
  ++request.pending;
}

void PageQueue::start_fetch() {
  Fetch& fetch = *std::exchange(open_fetch_, nullptr);
  ++fetching_count_;
  fetch.started = true;
  const PartRequest request = request_of(*fetch.file, {fetch.pieces, fetch.piece_count});
  IoEngine& engine = fetch.file->engine;
  if (!engine.submit(request, &fetch)) fetch.on_done(engine.run(request));
}

void PageQueue::Fetch::on_done(int error) {
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t left = file->size_bytes - page_indexes[i] * kPage;
    const uint64_t valid_bytes = std::min(left, kPage);
    const int outcome =
        error != 0 || is_sound(*file, page_indexes[i], fills[i].bytes().first(valid_bytes))
            ? error
            : EBADMSG;
    if (outcome == 0) {
      pages[i]->pin = fills[i].publish(valid_bytes);
    } else {
      fills[i].abandon(outcome);
    }
  }
  MutexLock lock(queue->mu_);
  push(queue->ended_, this);
  // Must hold the lock: the queue may be destroyed once it has seen this.
  queue->fetched_.notify_one();
}

void PageQueue::take_ended() {
  Fetch* list;
  {
    MutexLock lock(mu_);
    list = std::exchange(ended_, nullptr);
  }
  while (list != nullptr) {
    Fetch* const fetch = pop(list);
    for (uint32_t i = 0; i < fetch->count; ++i) {
      arrived(*fetch->pages[i], static_cast<bool>(fetch->pages[i]->pin));
    }
    fetch->started = false;
    --fetching_count_;
    push(free_fetch_, fetch);
    ++free_fetch_count_;
  }
}

// Takes pages that another queue, or an earlier fetch of this one, has fetched.
void PageQueue::take_waited() {
  const auto rest = std::partition(waits_.begin(), waits_.end(),
                                   [](const Page* page) { return !page->wait.ended(); });
  std::for_each(rest, waits_.end(), [this](Page* page) { take(*page); });
  waits_.erase(rest, waits_.end());
}

void PageQueue::take(Page& page) {
  Result<Pin> pin = page.wait.wait();
  if (pin) page.pin = std::move(*pin);
  arrived(page, static_cast<bool>(pin));
}

void PageQueue::arrived(Page& page, bool there) {
  Request& request = *page.request;
  if (!there) request.alone = true;
  if (--request.pending == 0) push(ready_, &request);
}

// ---- running

bool PageQueue::wait() {
  do {
    flush();
    take_ended();
    take_waited();
    if (run_ready() > 0) {
      flush();  // the devices work while the caller computes
      return true;
    }
  } while (wait_for_any());
  return false;
}

// Polls engines that complete nothing by themselves. False: they complete by themselves.
bool PageQueue::poll() {
  for (const Fetch& fetch : fetches_) {
    if (fetch.started && fetch.file->engine.poll()) return true;
  }
  return false;
}

// False: nothing is in flight.
bool PageQueue::wait_for_any() {
  if (fetching_count_ > 0) {
    if (poll()) return true;
    MutexLock lock(mu_);
    while (ended_ == nullptr) fetched_.wait(mu_);
    return true;
  }
  if (waits_.empty()) return false;
  take(*waits_.back());
  waits_.pop_back();
  return true;
}

size_t PageQueue::run_ready() {
  size_t count = 0;
  for (Request* list = std::exchange(ready_, nullptr); list != nullptr; ++count) {
    Request* const request = pop(list);
    run(*request);
    release(*request);
  }
  return count;
}

void PageQueue::run(Request& request) {
  if (request.alone) return run_alone(request);
  pieces_.clear();
  uint32_t page = request.first_page;
  const uint64_t end = end_page_of(request.range);
  for (uint64_t i = first_page_of(request.range); i < end; ++i) {
    pieces_.push_back(piece_of(pages_[page].pin, i, request.range));
    page = pages_[page].next;
  }
  call(*request.task, pieces_);
}

void PageQueue::run_alone(const Waiting& request) {
  const uint64_t begin = first_page_of(request.range) * kPage;
  const ByteRange pages{.offset = begin,
                        .length_bytes = end_page_of(request.range) * kPage - begin};
  const AlignedBytes memory = allocate_aligned(pages.length_bytes);
  if (!memory) return request.task->failed(ENOMEM);
  const Piece piece{.range = pages, .buffer = memory.get()};
  const int error = request.file->engine.run(request_of(*request.file, {&piece, 1}));
  if (error != 0) return request.task->failed(error);
  const uint64_t valid_bytes = std::min(pages.end(), request.file->size_bytes) - begin;
  for (uint64_t at = 0; at < valid_bytes; at += kPage) {
    const std::span<const std::byte> page(memory.get() + at, std::min(kPage, valid_bytes - at));
    if (!is_sound(*request.file, (begin + at) / kPage, page)) return request.task->failed(EBADMSG);
  }
  const PageBytes::Piece bytes(memory.get() + (request.range.offset - begin),
                               request.range.length_bytes);
  call(*request.task, {&bytes, 1});
}

void PageQueue::call(PageTask& task, std::span<const PageBytes::Piece> pieces) {
  running_ = true;
  task.run(PageBytes(pieces));
  running_ = false;
}

void PageQueue::release(Request& request) {
  const uint64_t page_count = page_count_of(request.range);
  uint32_t page = request.first_page;
  for (uint64_t n = page_count <= kRequestPagesMax ? page_count : 0; n > 0; --n) {
    const uint32_t next = pages_[page].next;
    pages_[page].pin.release();
    pages_[page].next = std::exchange(free_page_, page);
    ++free_page_count_;
    page = next;
  }
  --active_count_;
  push(free_request_, &request);
}

}  // namespace graphlane
