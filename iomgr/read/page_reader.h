// PageReader: random small reads, each with a task that runs as soon as its bytes are in memory
// (SAFS's asynchronous user tasks, FlashGraph §3.1).
//
//   submit(file, range, task) ─► a hit on all its pages: the task runs at once
//
//                             ─► otherwise the request joins this thread's queue
//
//   wait()                    ─► sorts the queue by file and offset, and fetches missing pages,
//                                neighbours in one I/O (FlashGraph §3.6)
//
//                             ─► runs tasks with complete pages, in this thread
//
// Tasks read the cached pages in place: no caller's buffer, no copy. No thread waits for one
// device while it could compute or ask others. More requests before wait() merge better.
//
// Some ranges are read by themselves, into memory that lives as long as the task: one of more
// than 1 MiB, one that finds no free page, and one with a failed shared fetch. So an error
// always belongs to the range itself.
//
// Memory: the budget, and 550 KiB per queue. Only those ranges, and more than a thousand queued
// requests, allocate. So submit some thousands, then wait().
//
// Threads: a reader may be shared, a queue belongs to one thread. Queues share pages: a page
// that one queue fetches, the others wait for. Not across fork().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "iomgr/base/mutex.h"
#include "iomgr/base/result.h"
#include "iomgr/cache/mapped_cache.h"
#include "iomgr/io/engine.h"
#include "iomgr/read/page_bytes.h"
#include "iomgr/volume/parts/lane_io.h"

namespace graphlane {

// Checks that a page has the bytes that were written. Must be safe from any thread.
class PageChecker {
 public:
  // `bytes`: all of the page, shorter at the end of the file.
  virtual bool is_sound(uint64_t page_index, std::span<const std::byte> bytes) const = 0;

 protected:
  ~PageChecker() = default;
};

// A file to read from. The caller keeps it until its tasks have run.
struct PagedFile {
  Uuid file_id;
  uint64_t generation = 0;  // changes with the bytes
  uint64_t size_bytes = 0;
  const StripeMap& map;
  const PartFiles& parts;
  IoEngine& engine;
  const PageChecker* checker = nullptr;  // none: pages are not checked
};

struct FreeAligned {
  void operator()(std::byte* memory) const;
};
using AlignedBytes = std::unique_ptr<std::byte, FreeAligned>;  // of kBlockSize

// The work on a range's bytes. It must live until one of the two functions is called, once.
class PageTask {
 public:
  // Gets the range, cut off at the end of the file. The bytes are valid until it returns. It
  // may submit more requests; they run after it.
  virtual void run(const PageBytes& bytes) noexcept = 0;
  // The range could not be read: an errno. EBADMSG: the file's checker rejected a page.
  virtual void failed(int error) noexcept = 0;

 protected:
  ~PageTask() = default;
};

struct PageReaderOptions {
  uint64_t budget_bytes = 64 << 20;
  // Engines sweep forth and back, so what was read last is read first: LRU then has as many hits as
  // can be, and what is missing is in one piece.
  CachePolicy policy = CachePolicy::kLru;
  bool merges = true;  // neighbouring pages are one I/O; false only for experiments
};

class PageReader {
 public:
  static constexpr uint64_t kPageBytes = kBlockSize;
  // ENOMEM; EINVAL: a budget below 2 MiB.
  static Result<std::unique_ptr<PageReader>> start(const PageReaderOptions& options);

  // Gaps of at most so many bytes between two missing pieces of a file are read, too, and thrown
  // away: a disk takes longer to skip them. For queues that are made after it; at most kGapBytesMax.
  static constexpr uint64_t kGapBytesMax = 256 << 10;
  void read_through_gaps(uint64_t bytes) {
    gap_pages_ = static_cast<uint32_t>(std::min(bytes, kGapBytesMax) / kPageBytes);
  }

  CacheStats stats() const { return cache_->stats(); }
  // Whether the page is in memory. Does not count as a use.
  bool contains(const PagedFile& file, uint64_t page_index);

 private:
  friend class PageQueue;
  PageReader() = default;
  MappedCache cache_;
  bool merges_ = true;
  uint32_t gap_pages_ = 0;
};

class PageQueue {
 public:
  explicit PageQueue(PageReader& reader);
  ~PageQueue();  // all tasks must have run
  PageQueue(const PageQueue&) = delete;
  PageQueue& operator=(const PageQueue&) = delete;

  void submit(const PagedFile& file, ByteRange range, PageTask& task);
  // Begins submitted requests, as far as there is room. Must not be called by a task.
  void flush();
  // As flush(), and runs at least one task. False: none is left.
  bool wait();
  // Tasks that have not run yet.
  size_t waiting_count() const { return waiting_.size() - first_waiting_ + active_count_; }

 private:
  static constexpr uint32_t kRequestCount = 1024;    // in flight
  static constexpr uint32_t kPageCount = 4096;       // of all requests
  static constexpr uint32_t kRequestPagesMax = 256;  // per request
  // Requests to the devices: 8 MiB, so that a sweep in stripe units of some MiB keeps several disks
  // busy.
  static constexpr uint32_t kFetchCount = 32;
  static constexpr uint32_t kFetchPages = 64;  // per fetch; a gap counts as one

  struct Waiting {
    const PagedFile* file;
    ByteRange range;  // within the file
    PageTask* task;
  };
  struct Request : Waiting {
    uint32_t first_page = 0;  // in pages_, linked by `next`
    uint32_t pending = 0;     // missing pages
    bool alone = false;       // is read by itself, because it did not get all its pages
    Request* next = nullptr;  // free, or ready
  };
  struct Page {
    Pin pin;
    FrameWait wait;
    Request* request = nullptr;
    uint32_t next = 0;
  };
  // Pages that are requested from the devices together.
  struct Fetch final : Completion {
    void on_done(int error) override;  // by any thread

    PageQueue* queue = nullptr;
    const PagedFile* file = nullptr;
    uint32_t count = 0;  // of pages
    uint32_t piece_count = 0;
    bool started = false;
    Piece pieces[kFetchPages];  // one for each page, and one for each gap
    uint64_t page_indexes[kFetchPages];
    Fill fills[kFetchPages];
    Page* pages[kFetchPages];
    Fetch* next = nullptr;  // free, or ended
  };

  bool run_from_cache(const Waiting& request);
  bool activate(const Waiting& request);
  void ask_for(Request& request, Page& page, uint64_t page_index);
  void add_to_fetch(Request& request, Page& page, uint64_t page_index, Fill fill);
  ByteRange gap_before(const Fetch& fetch, uint64_t page_index) const;
  void start_fetch();
  void take_ended();
  void take_waited();
  void take(Page& page);
  bool poll();
  bool wait_for_any();
  void arrived(Page& page, bool there);
  size_t run_ready();
  void run(Request& request);
  void run_alone(const Waiting& request);
  void call(PageTask& task, std::span<const PageBytes::Piece> pieces);
  void release(Request& request);
  bool has_room(uint64_t page_count) const;

  FrameCache& cache_;
  const uint32_t fetch_pages_max_;
  const uint32_t gap_pages_max_;
  AlignedBytes gap_bytes_;  // filled by the bytes of gaps, which are not used
  std::vector<Waiting> waiting_;
  size_t first_waiting_ = 0;  // the requests before it have begun
  bool sorted_ = true;
  std::vector<Request> requests_;
  std::vector<Page> pages_;
  std::vector<Fetch> fetches_;
  std::vector<Page*> waits_;  // pages that another queue, or this one, is fetching
  std::vector<PageBytes::Piece> pieces_;
  Request* free_request_ = nullptr;
  Request* ready_ = nullptr;
  uint32_t free_page_ = 0;
  uint32_t free_page_count_ = 0;
  Fetch* open_fetch_ = nullptr;  // not started yet
  Fetch* free_fetch_ = nullptr;
  uint32_t free_fetch_count_ = 0;
  uint32_t fetching_count_ = 0;
  size_t active_count_ = 0;
  bool running_ = false;  // a task

  Mutex mu_;
  CondVar fetched_;
  Fetch* ended_ GUARDED_BY(mu_) = nullptr;
};

}  // namespace graphlane
