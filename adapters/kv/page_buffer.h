// PageBuffer: the prefetching buffer (MaiterStore §3.3): pages in memory, and those behind them
// fetched ahead.
//
//   frames     |p7|p8|p9|p2|p3|…      reused in the order in which they were filled (FIFO), but for pinned ones
//   miss on p  one request for p and the `depth` pages behind it
//   hit on a page that was fetched ahead: the next `depth` pages are begun before the reader gets there
//
// Requests go past the page cache, by the lanes of the devices. What adjoins is one request.
//
// Threads: one.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "adapters/kv/pinned_value.h"
#include "graphfmt/buffer.h"
#include "graphfmt/pages/page_store.h"
#include "iomgr/base/mutex.h"
#include "iomgr/read/page_reader.h"

namespace graphlane::kv {

struct BufferOptions {
  uint32_t frames = 64;  // pages; at least two windows of the depth
  uint32_t depth = 0;    // pages fetched ahead, at most 63
};

struct BufferCounts {
  uint64_t hits = 0;  // the page was there, or on its way
  uint64_t misses = 0;
  uint64_t requests = 0;  // to the devices, of adjacent pages
  uint64_t pages = 0;     // that were read
};

class PageBuffer {
 public:
  class Fetch;
  struct Frame {
    uint64_t page_index = 0;
    uint8_t* bytes = nullptr;
    graphfmt::PageView view = {};
    PinCount pins{0};
    Fetch* fetch = nullptr;  // that reads it
    uint32_t asks = 0;       // gets that wait for it; the reader's
    bool is_used = false;    // has a page, or waits for one
    bool is_first_of_window = false;
    bool is_ahead = false;  // nothing has asked for it yet
    std::optional<Error> error = {};
  };

  PageBuffer(const graphfmt::PageStore& store, const PagedFile& file, const BufferOptions& options);
  ~PageBuffer();  // what was begun has ended
  PageBuffer(const PageBuffer&) = delete;
  PageBuffer& operator=(const PageBuffer&) = delete;

  // The page, read if need be. Pinned: the caller counts the pins down.
  Outcome<Frame*> get(uint64_t page_index);
  // A frame for the page, pinned; begins to read it, together with pages beside it that are asked
  // for next. ENOMEM.
  Outcome<Frame*> ask(uint64_t page_index);
  // Adds to what ask() has put together: those of these pages that are not there. They are not
  // pinned, so no more than half of the frames should wait for their get(). Returns the frame of
  // the first page that it added, or null.
  Frame* add(uint64_t first, uint64_t count);
  // Begins what ask() and add() have put together.
  void flush();
  // Waits for what ask() gave. An error: the pin is the caller's still.
  Outcome<void> wait(Frame& frame);

  // Pages that ask() may have on their way.
  uint32_t ask_max() const { return ask_max_; }
  const BufferCounts& counts() const { return counts_; }

 private:
  static constexpr uint32_t kFetchPages = 64;
  Frame* find(uint64_t page_index);
  Frame* take_frame();
  Frame* begin_page(uint64_t page_index);
  Outcome<void> finish(Frame& frame);
  Outcome<void> read_alone(Frame& frame);
  void forget(Frame& frame);
  Fetch* free_fetch();

  const graphfmt::PageStore& store_;
  const PagedFile& file_;
  const uint32_t page_bytes_;
  const uint32_t depth_;
  const uint32_t ask_max_;
  std::vector<std::unique_ptr<Frame>> frames_;
  std::vector<graphfmt::Buffer> memory_;
  std::unordered_map<uint64_t, Frame*> by_page_;
  Frame* last_ = nullptr;  // the latest hit
  size_t hand_ = 0;        // the frame to be reused next
  std::vector<std::unique_ptr<Fetch>> fetches_;
  Fetch* open_ = nullptr;  // not begun yet
  BufferCounts counts_;
};

}  // namespace graphlane::kv
