// The C interface over KvStore, KvReader and StoreWriter. No exception crosses it.
#include <cerrno>
#include <deque>
#include <memory>
#include <new>
#include <string>

#include "adapters/graph/kit/graphlane_kv.h"
#include "adapters/kv/kv_reader.h"
#include "graphfmt/pages/store_writer.h"

using graphlane::Error;
using graphlane::Outcome;
using graphlane::graphfmt::StoreWriter;
using graphlane::kv::KvReader;
using graphlane::kv::KvStore;
using graphlane::kv::PinnedValue;

namespace graphlane::kit {

thread_local std::string last_kv_error;

int kv_failed(const Error& error) {
  last_kv_error = error.text;
  return error.code;
}

template <class Work>
int kv_guarded(const Work& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    last_kv_error = "out of memory";
    return ENOMEM;
  }
}

int kv_status(const Outcome<void>& done) { return done ? 0 : kv_failed(done.error()); }

int missing_key(const std::string& path, uint64_t key) {
  return kv_failed(make_error(ENOENT, "{}: does not have the key {}", path, key));
}

}  // namespace graphlane::kit

using graphlane::kit::kv_failed;
using graphlane::kit::kv_guarded;
using graphlane::kit::kv_status;
using graphlane::kit::last_kv_error;
using graphlane::kit::missing_key;

struct graphlane_kv {
  std::unique_ptr<KvStore> store;
  graphlane::kv::BufferOptions buffer;
};

struct graphlane_kv_reader final : graphlane::kv::GetTask {
  graphlane_kv_reader(KvStore& kv_store, const graphlane::kv::BufferOptions& buffer)
      : store(kv_store), reader(kv_store, buffer) {}

  struct Submitted {
    uint64_t key;
    graphlane_kv_done done;
    void* context;
  };
  // Gets complete in the order in which they were submitted.
  void done(Outcome<PinnedValue> value) override {
    const Submitted get = submitted.front();
    submitted.pop_front();
    int error = 0;
    if (!value) {
      error = kv_failed(value.error());
    } else if (!*value) {
      error = missing_key(store.pages().path(), get.key);
    }
    const auto bytes = error == 0 ? value->bytes() : std::span<const uint8_t>();
    get.done(get.context, get.key, error, bytes.data(), bytes.size());
  }

  KvStore& store;
  KvReader reader;
  std::deque<Submitted> submitted;
};

struct graphlane_kv_writer {
  std::unique_ptr<StoreWriter> writer;
};

extern "C" {

const char* graphlane_kv_error(void) { return last_kv_error.c_str(); }

int graphlane_kv_open(const char* path, const graphlane_kv_options* options, graphlane_kv** store) {
  return kv_guarded([&] {
    const graphlane_kv_options wanted = options != nullptr ? *options : graphlane_kv_options{};
    graphlane::kv::KvOptions kv{.in_memory = wanted.in_memory != 0};
    kv.cache.budget_bytes = wanted.cache_bytes;
    kv.cache.hotness = wanted.accumulates != 0 ? graphlane::kv::HotnessKind::kAccumulated
                                               : graphlane::kv::HotnessKind::kLast;
    kv.cache.threshold = wanted.threshold;
    kv.cache.shards = wanted.threads > 1 ? 4 * wanted.threads : 1;
    if (wanted.cache_policy != nullptr) {
      const auto policy = graphlane::kv::parse_policy(wanted.cache_policy);
      if (!policy) return kv_failed(policy.error());
      kv.cache.policy = *policy;
    }
    auto opened = KvStore::open(path, kv);
    if (!opened) return kv_failed(opened.error());
    *store = new graphlane_kv{std::move(*opened),
                              {.frames = wanted.buffer_pages != 0 ? wanted.buffer_pages : 64,
                               .depth = wanted.prefetch_pages}};
    return 0;
  });
}

void graphlane_kv_close(graphlane_kv* store) { delete store; }
uint64_t graphlane_kv_key_count(const graphlane_kv* store) {
  return store->store->pages().key_count();
}
uint64_t graphlane_kv_page_count(const graphlane_kv* store) {
  return store->store->pages().page_count();
}

int graphlane_kv_reader_open(graphlane_kv* store, graphlane_kv_reader** reader) {
  return kv_guarded([&] {
    *reader = new graphlane_kv_reader(*store->store, store->buffer);
    return 0;
  });
}

void graphlane_kv_reader_close(graphlane_kv_reader* reader) { delete reader; }

void graphlane_kv_release(graphlane_kv_value* value) {
  delete static_cast<PinnedValue*>(value->pin);
  *value = {nullptr, 0, nullptr};
}

int graphlane_kv_get(graphlane_kv_reader* reader, uint64_t key, float hotness,
                     graphlane_kv_value* value) {
  *value = {nullptr, 0, nullptr};
  return kv_guarded([&] {
    auto got = reader->reader.get(key, hotness);
    if (!got) return kv_failed(got.error());
    if (!*got) return missing_key(reader->store.pages().path(), key);
    auto* const pin = new PinnedValue(std::move(*got));
    *value = {pin->bytes().data(), pin->bytes().size(), pin};
    return 0;
  });
}

int graphlane_kv_submit(graphlane_kv_reader* reader, uint64_t key, float hotness,
                        graphlane_kv_done done, void* context) {
  return kv_guarded([&] {
    reader->submitted.push_back({key, done, context});
    reader->reader.submit(key, hotness, *reader);
    return 0;
  });
}

int graphlane_kv_wait(graphlane_kv_reader* reader) { return reader->reader.wait() ? 1 : 0; }

int graphlane_kv_multi_get(graphlane_kv_reader* reader, const uint64_t* keys, const float* hotness,
                           size_t count, graphlane_kv_done done, void* context) {
  constexpr size_t kAhead = 4096;
  for (size_t i = 0; i < count; ++i) {
    const int error =
        graphlane_kv_submit(reader, keys[i], hotness != nullptr ? hotness[i] : 0, done, context);
    if (error != 0) return error;
    while (reader->reader.waiting_count() >= kAhead || reader->reader.is_full()) {
      graphlane_kv_wait(reader);
    }
  }
  while (graphlane_kv_wait(reader) != 0) {
  }
  return 0;
}

int graphlane_kv_each(graphlane_kv_reader* reader, uint64_t first, graphlane_kv_visit visit,
                      void* context) {
  return kv_guarded([&] {
    int stopped = 0;
    const auto walked = reader->reader.for_each(
        first, [&](uint64_t key, std::span<const uint8_t> value) -> Outcome<void> {
          stopped = visit(context, key, value.data(), value.size());
          return stopped == 0 ? Outcome<void>() : Error{stopped, "stopped by the caller"};
        });
    return stopped != 0 ? stopped : kv_status(walked);
  });
}

void graphlane_kv_reader_counts(const graphlane_kv_reader* reader, graphlane_kv_counts* counts) {
  const graphlane::kv::KvCounts all = reader->reader.counts();
  *counts = {all.gets,         all.cache_hits, all.buffer.hits, all.buffer.requests,
             all.buffer.pages, all.missing};
}

int graphlane_kv_create(const char* path, uint32_t page_bytes, graphlane_kv_writer** writer) {
  return kv_guarded([&] {
    auto made = StoreWriter::create(
        path, {.page_bytes = page_bytes != 0 ? page_bytes : graphlane::graphfmt::kPageBytesUsual});
    if (!made) return kv_failed(made.error());
    *writer = new graphlane_kv_writer{std::move(*made)};
    return 0;
  });
}

int graphlane_kv_append(const char* path, graphlane_kv_writer** writer) {
  return kv_guarded([&] {
    auto opened = StoreWriter::open(path);
    if (!opened) return kv_failed(opened.error());
    *writer = new graphlane_kv_writer{std::move(*opened)};
    return 0;
  });
}

int graphlane_kv_put(graphlane_kv_writer* writer, uint64_t key, const void* data, size_t size) {
  return kv_guarded([&] {
    return kv_status(writer->writer->put(key, {static_cast<const uint8_t*>(data), size}));
  });
}
int graphlane_kv_sync(graphlane_kv_writer* writer) {
  return kv_guarded([&] { return kv_status(writer->writer->sync()); });
}
int graphlane_kv_finish(graphlane_kv_writer* writer) {
  return kv_guarded([&] { return kv_status(writer->writer->finish()); });
}
void graphlane_kv_writer_close(graphlane_kv_writer* writer) { delete writer; }
uint64_t graphlane_kv_writer_key_count(const graphlane_kv_writer* writer) {
  return writer->writer->head().key_count;
}

}  // extern "C"
