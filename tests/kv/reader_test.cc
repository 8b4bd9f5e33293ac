// Gets: one at a time, many at once, in order; through the buffer, the cache, and from memory.
#include "adapters/kv/kv_reader.h"

#include <thread>

#include "tests/kv/store_fixture.h"

namespace graphlane::kv {
namespace {

class ReaderTest : public StoreTest {
 protected:
  std::unique_ptr<KvStore> open(const std::string& file, const KvOptions& options = {}) {
    auto store = KvStore::open(file, options);
    EXPECT_TRUE(store) << store.error().text;
    return store ? std::move(*store) : nullptr;
  }
};

TEST_F(ReaderTest, GetsWhatWasPut) {
  for (const uint32_t page_bytes : {4096u, 8192u, 131072u}) {
    const Values values = random_values(page_bytes, 3000);
    const std::string file = make_store(fmt::format("store{}", page_bytes), values, page_bytes);
    for (const KvOptions& options : {KvOptions{}, KvOptions{.cache = {.budget_bytes = 100'000}},
                                     KvOptions{.in_memory = true}}) {
      const auto store = open(file, options);
      KvReader reader(*store, {.frames = 4});
      for (int round = 0; round < 2; ++round) {
        for (const auto& [key, value] : values) {
          const auto got = reader.get(key, 1);
          ASSERT_TRUE(got) << got.error().text;
          ASSERT_TRUE(*got) << "key " << key;
          ASSERT_EQ(text_of(got->bytes()), value) << "key " << key;
        }
      }
    }
  }
}

TEST_F(ReaderTest, TellsAMissingKeyFromAnEmptyValue) {
  const auto store = open(make_store("store", {{5, ""}, {9, value_of(9, 20'000)}, {12, "x"}}));
  KvReader reader(*store, {});
  for (const uint64_t missing : {0ull, 4ull, 6ull, 8ull, 10ull, 11ull, 13ull, ~0ull}) {
    const auto got = reader.get(missing);
    ASSERT_TRUE(got);
    EXPECT_FALSE(*got) << missing;
  }
  const auto empty = reader.get(5);
  ASSERT_TRUE(empty && *empty);
  EXPECT_EQ(empty->bytes().size(), 0u);
  EXPECT_EQ(reader.counts().missing, 8u);
}

TEST_F(ReaderTest, AnEmptyStoreHasNoKey) {
  const auto store = open(make_store("store", {}));
  KvReader reader(*store, {});
  EXPECT_FALSE(*reader.get(0));
  EXPECT_TRUE(reader.for_each(
      0, [](uint64_t, std::span<const uint8_t>) { return make_error(EIO, "a key"); }));
}

TEST_F(ReaderTest, ManyAtOnceComeInTheOrderOfTheKeys) {
  const Values values = random_values(3, 4000);
  const auto store = open(make_store("store", values), {.cache = {.budget_bytes = 50'000}});
  std::vector<uint64_t> keys;
  // some are missing
  for (const auto& [key, value] : values) keys.insert(keys.end(), {key, key ^ 1});
  std::mt19937_64 random(4);
  for (const bool shuffled : {false, true}) {
    if (shuffled) std::shuffle(keys.begin(), keys.end(), random);
    KvReader reader(*store, {.frames = 16});
    size_t next = 0;
    const auto done =
        reader.multi_get(keys, {}, [&](size_t index, PinnedValue value) -> Outcome<void> {
          EXPECT_EQ(index, next++);
          const auto there = values.find(keys[index]);
          EXPECT_EQ(static_cast<bool>(value), there != values.end());
          EXPECT_EQ(text_of(value.bytes()), there == values.end() ? "" : there->second);
          return {};
        });
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_EQ(next, keys.size());
  }
}

TEST_F(ReaderTest, ManyThatAreCachedAreHitsInTheOrderOfTheKeys) {
  const Values values = random_values(6, 3000);
  const auto store =
      open(make_store("store", values), {.cache = {.budget_bytes = 100 << 20, .shards = 4}});
  std::vector<uint64_t> keys;
  for (const auto& [key, value] : values) keys.push_back(key);
  std::shuffle(keys.begin(), keys.end(), std::mt19937_64(7));
  KvReader reader(*store, {});
  for (const bool is_cached : {false, true}) {
    const uint64_t hits = reader.counts().cache_hits;
    size_t next = 0;
    const auto done =
        reader.multi_get(keys, {}, [&](size_t index, PinnedValue value) -> Outcome<void> {
          EXPECT_EQ(index, next++);
          EXPECT_TRUE(value);
          EXPECT_EQ(text_of(value.bytes()), values.at(keys[index]));
          return index + 1 == 2500 && is_cached ? make_error(EIO, "enough") : Outcome<void>();
        });
    EXPECT_EQ(static_cast<bool>(done), !is_cached);
    EXPECT_EQ(next, is_cached ? 2500 : keys.size());
    EXPECT_EQ(reader.counts().cache_hits - hits, is_cached ? 2500 : 0);
  }
  EXPECT_EQ(reader.counts().gets, keys.size() + 2500);
}

TEST_F(ReaderTest, IteratesInOrderFromAnyKey) {
  const Values values = random_values(5, 2000);
  const auto store = open(make_store("store", values));
  for (const uint64_t first :
       {uint64_t{0}, std::next(values.begin(), 1000)->first,
        std::next(values.begin(), 700)->first + 1, values.rbegin()->first, ~uint64_t{0}}) {
    KvReader reader(*store, {});
    auto expected = values.lower_bound(first);
    const auto done =
        reader.for_each(first, [&](uint64_t key, std::span<const uint8_t> value) -> Outcome<void> {
          EXPECT_NE(expected, values.end());
          EXPECT_EQ(key, expected->first);
          EXPECT_EQ(text_of(value), (expected++)->second);
          return {};
        });
    ASSERT_TRUE(done) << done.error().text;
    EXPECT_EQ(expected, values.end());
  }
}

// Values of 100 bytes: about 40 to a page of 4 KiB.
Values even_values(size_t count) {
  Values values;
  for (uint64_t key = 0; key < count; ++key) values[key] = value_of(key, 100);
  return values;
}

TEST_F(ReaderTest, SequentialGetsReadEachPageOnceAndAheadOfTheReader) {
  const Values values = even_values(8000);
  const auto store = open(make_store("store", values));
  const uint64_t pages = store->pages().page_count();
  for (const uint32_t depth : {0u, 3u, 16u}) {
    KvReader reader(*store, {.frames = 2, .depth = depth});
    for (const auto& [key, value] : values) ASSERT_EQ(text_of(reader.get(key)->bytes()), value);
    const BufferCounts counts = reader.counts().buffer;
    EXPECT_EQ(counts.pages, pages) << depth;
    EXPECT_LE(counts.requests, pages / (depth + 1) + 2) << depth;
    EXPECT_EQ(counts.misses, depth == 0 ? pages : 1) << depth;
  }
}

TEST_F(ReaderTest, ALongValueIsReadByOneOrTwoRequests) {
  Values values;
  for (uint64_t key = 0; key < 60; ++key) values[key] = value_of(key, 100'000 + 997 * key);
  const auto store = open(make_store("store", values));
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; key < 60; key += 3) keys.push_back(key);
  KvReader one_by_one(*store, {.frames = 256}), together(*store, {.frames = 256});
  for (const uint64_t key : keys) {
    const auto got = one_by_one.get(key);
    ASSERT_TRUE(got && *got);
    EXPECT_EQ(text_of(got->bytes()), values[key]);
  }
  EXPECT_LE(one_by_one.counts().buffer.requests, 2 * keys.size());
  size_t seen = 0;
  const auto done =
      together.multi_get(keys, {}, [&](size_t index, PinnedValue value) -> Outcome<void> {
        EXPECT_EQ(text_of(value.bytes()), values[keys[index]]);
        ++seen;
        return {};
      });
  ASSERT_TRUE(done) << done.error().text;
  EXPECT_EQ(seen, keys.size());
  // One request for a value that is begun while there is room, else two.
  EXPECT_LE(together.counts().buffer.requests, 2 * keys.size());
  EXPECT_LE(together.counts().buffer.pages, store->pages().page_count() / 2) << "none twice";
}

TEST_F(ReaderTest, ThePagesOfTheBufferAreReusedInTheOrderTheyCame) {
  const auto store = open(make_store("store", even_values(4000)));
  const auto& first = store->pages().index().first_keys;
  KvReader reader(*store, {.frames = 3});
  const auto missed = [&](uint64_t page) {
    const uint64_t before = reader.counts().buffer.misses;
    EXPECT_TRUE(*reader.get(first[page]));
    return reader.counts().buffer.misses > before;
  };
  for (const uint64_t page : {0, 1, 2}) EXPECT_TRUE(missed(page));
  EXPECT_FALSE(missed(0));
  EXPECT_TRUE(missed(3));  // in the place of page 0, although it was used last
  EXPECT_FALSE(missed(1));
  EXPECT_TRUE(missed(0));
}

TEST_F(ReaderTest, APinnedPageStays) {
  const Values values = even_values(4000);
  const auto store = open(make_store("store", values));
  KvReader reader(*store, {.frames = 2});
  const auto held = reader.get(17);
  for (const auto& [key, value] : values) ASSERT_TRUE(*reader.get(key));
  EXPECT_EQ(text_of(held->bytes()), values.at(17));
}

TEST_F(ReaderTest, ADamagedPageIsNamedAndOthersGoOn) {
  const Values values = even_values(4000);
  const std::string file = make_store("store", values);
  const auto store = open(file);
  const auto& first = store->pages().index().first_keys;
  flip_bit("store", (store->pages().head().page_offset(7) + 1234) * 8);
  for (const uint32_t depth : {0u, 16u}) {
    KvReader reader(*store, {.frames = 8, .depth = depth});
    for (uint64_t page = 0; page < first.size(); ++page) {
      const auto got = reader.get(first[page]);
      EXPECT_EQ(static_cast<bool>(got), page != 7) << page;
      EXPECT_TRUE(got || got.error().text.find(file + ": page 7 ") != std::string::npos)
          << got.error().text;
    }
  }
  EXPECT_FALSE(KvStore::open(file, {.in_memory = true}));
}

// A device that has lost the end of the file.
TEST_F(ReaderTest, APageThatCannotBeReadIsNamedAndOthersGoOn) {
  const std::string file = make_store("store", even_values(4000));
  const auto store = open(file);
  const auto& first = store->pages().index().first_keys;
  std::filesystem::resize_file(file, store->pages().head().page_offset(50));
  KvReader reader(*store, {.frames = 64, .depth = 16});
  for (uint64_t page = 0; page < first.size(); ++page) {
    const auto got = reader.get(first[page]);
    EXPECT_EQ(static_cast<bool>(got), page < 50) << page;
    const std::string named = fmt::format("{}: page {}", file, page);
    EXPECT_TRUE(got || got.error().text.find(named) != std::string::npos) << got.error().text;
  }
}

TEST_F(ReaderTest, ThreadsShareTheCache) {
  const Values values = random_values(8, 2000, 5000);
  const auto store =
      open(make_store("store", values), {.cache = {.budget_bytes = 60'000, .shards = 4}});
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      KvReader reader(*store, {.frames = 4});
      std::mt19937_64 random(static_cast<uint64_t>(t));
      for (int i = 0; i < 5000; ++i) {
        auto at = values.lower_bound(random() % values.rbegin()->first);
        if (i % 2 == 0) at = std::next(values.begin(), static_cast<long>(random() % 50));
        const auto got = reader.get(at->first, static_cast<float>(random() % 100));
        wrong += !got || !*got || text_of(got->bytes()) != at->second;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace graphlane::kv
