#include "adapters/kv/kv_store.h"

#include <algorithm>

namespace graphlane::kv {
namespace {

constexpr uint64_t kLoadBytes = 4 << 20;

}  // namespace

Outcome<std::unique_ptr<KvStore>> KvStore::open(const std::string& path, const KvOptions& options) {
  auto pages = graphfmt::PageStore::open(path);
  if (!pages) return pages.error();
  std::unique_ptr<KvStore> store(new KvStore(options));
  store->own_ = std::make_unique<graphfmt::PageStore>(std::move(*pages));
  store->pages_ = store->own_.get();
  if (auto started = store->start(options); !started) return started.error();
  return store;
}

Outcome<std::unique_ptr<KvStore>> KvStore::open(const graphfmt::PageStore& pages,
                                                const KvOptions& options) {
  std::unique_ptr<KvStore> store(new KvStore(options));
  store->pages_ = &pages;
  if (auto started = store->start(options); !started) return started.error();
  return store;
}

Outcome<void> KvStore::start(const KvOptions& options) {
  const auto file = files_.open(pages_->path());
  if (!file) return file.error();
  file_ = *file;
  if (file_->size_bytes() < pages_->head().page_offset(pages_->page_count())) {
    return make_error(EIO, "{}: byte {}: ends there, and had more when it was opened",
                      pages_->path(), file_->size_bytes());
  }
  return options.in_memory ? load() : Outcome<void>();
}

Outcome<void> KvStore::load() {
  const uint64_t page_bytes = pages_->page_bytes();
  const uint64_t count = pages_->page_count();
  auto memory = graphfmt::Buffer::allocate(count * page_bytes);
  if (!memory) return make_error(ENOMEM, "{}: no memory for its {} pages", pages_->path(), count);
  memory_ = std::move(*memory);
  views_.reserve(count);
  const uint64_t step = std::max<uint64_t>(1, kLoadBytes / page_bytes);
  for (uint64_t first = 0; first < count; first += step) {
    const uint64_t pages = std::min(step, count - first);
    const ByteRange range{pages_->head().page_offset(first), pages * page_bytes};
    if (auto done = file_->read(range, memory_.data() + first * page_bytes); !done) return done;
    for (uint64_t page = first; page < first + pages; ++page) {
      const auto view =
          pages_->check_page(page, {memory_.as<uint8_t>() + page * page_bytes, page_bytes});
      if (!view) return view.error();
      views_.push_back(*view);
    }
  }
  return {};
}

}  // namespace graphlane::kv
