// A growing store: refusals of put, the promise of sync, and the state after a crash.
#include "graphfmt/pages/store_writer.h"

#include <signal.h>
#include <sys/wait.h>

#include <thread>

#include "adapters/kv/kv_reader.h"
#include "tests/kv/store_fixture.h"

namespace graphlane::graphfmt {
namespace {

class WriterTest : public StoreTest {
 protected:
  std::unique_ptr<StoreWriter> create(uint32_t page_bytes = 4096) {
    auto writer = StoreWriter::create(path("store"), {.page_bytes = page_bytes});
    EXPECT_TRUE(writer) << writer.error().text;
    return std::move(*writer);
  }
  // The keys and values that a reader finds.
  Values found() {
    Values values;
    auto store = kv::KvStore::open(path("store"), {});
    EXPECT_TRUE(store) << store.error().text;
    if (!store) return values;
    kv::KvReader reader(**store, {.depth = 8});
    const auto done =
        reader.for_each(0, [&](uint64_t key, std::span<const uint8_t> value) -> Outcome<void> {
          values[key] = text_of(value);
          return {};
        });
    EXPECT_TRUE(done) << done.error().text;
    EXPECT_EQ(values.size(), (*store)->pages().key_count());
    return values;
  }
};

int put_error(StoreWriter& writer, uint64_t key, const std::string& value = "value") {
  const auto done = writer.put(key, bytes_of_text(value));
  return done ? 0 : done.error().code;
}

TEST_F(WriterTest, TakesAscendingKeysOnce) {
  const auto writer = create();
  EXPECT_EQ(put_error(*writer, 5), 0);
  EXPECT_EQ(put_error(*writer, 5), EEXIST);
  EXPECT_EQ(put_error(*writer, 4), EINVAL);
  EXPECT_EQ(put_error(*writer, 6), 0);
  EXPECT_EQ(put_error(*writer, ~uint64_t{0}, ""), 0);
  EXPECT_EQ(put_error(*writer, 7), EINVAL);
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(put_error(*writer, ~uint64_t{0}), EINVAL);
  EXPECT_EQ(found(), (Values{{5, "value"}, {6, "value"}, {~uint64_t{0}, ""}}));
}

TEST_F(WriterTest, RefusesABadPageSizeAndAFileThatIsThere) {
  for (const uint32_t bytes : {0u, 100u, 4097u, 2u << 20}) {
    const auto writer = StoreWriter::create(path("store"), {.page_bytes = bytes});
    EXPECT_EQ(writer.error().code, EINVAL) << bytes;
  }
  write("store", "something");
  EXPECT_EQ(StoreWriter::create(path("store"), {}).error().code, EEXIST);
  EXPECT_EQ(StoreWriter::open(path("store")).error().code, EINVAL);
}

TEST_F(WriterTest, IsTheOnlyOne) {
  const auto writer = create();
  const pid_t pid = ::fork();
  if (pid == 0) {
    const auto other = StoreWriter::open(path("store"));
    ::_exit(!other && other.error().code == EBUSY ? 0 : 1);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(WriterTest, ReadersSeeWhatWasSynced) {
  const auto writer = create();
  EXPECT_EQ(found(), Values{});
  ASSERT_EQ(put_error(*writer, 1, "one"), 0);
  EXPECT_EQ(found(), Values{});
  ASSERT_TRUE(writer->sync());
  EXPECT_EQ(found(), (Values{{1, "one"}}));
  ASSERT_EQ(put_error(*writer, 2, value_of(2, 50'000)), 0);
  ASSERT_TRUE(writer->sync());
  EXPECT_EQ(found(), (Values{{1, "one"}, {2, value_of(2, 50'000)}}));
}

TEST_F(WriterTest, GoesOnWithAStore) {
  const Values values = random_values(1, 3000);
  size_t count = 0;
  auto writer = create();
  for (const auto& [key, value] : values) {
    ASSERT_EQ(put_error(*writer, key, value), 0);
    if (++count % 700 != 0) continue;
    ASSERT_TRUE(count % 1400 == 0 ? writer->finish() : writer->sync());
    writer.reset();
    auto opened = StoreWriter::open(path("store"));
    ASSERT_TRUE(opened) << opened.error().text;
    writer = std::move(*opened);
    EXPECT_EQ(writer->head().key_count, count);
  }
  ASSERT_TRUE(writer->finish());
  EXPECT_EQ(found(), values);
}

// A store cut anywhere behind its last sync has all synced values, and a prefix of the others.
TEST_F(WriterTest, ATornTailIsCutAtTheLastWholePage) {
  Values values = random_values(2, 300, 20'000);
  const uint64_t synced_keys = 150;
  {
    const auto writer = create();
    uint64_t count = 0;
    for (const auto& [key, value] : values) {
      ASSERT_EQ(put_error(*writer, key, value), 0);
      ASSERT_TRUE(++count != synced_keys || writer->sync());
    }
    ASSERT_TRUE(writer->sync());
  }
  const std::string whole = read(path("store"));
  // The head as it was after the first sync is in the other slot.
  std::string torn = whole;
  const auto head = parse_store_head(bytes_of_text(whole), "store");
  torn.replace(head->sequence % 2 * kStoreSlotBytes, kStoreSlotBytes, kStoreSlotBytes, '\0');
  const auto before = parse_store_head(bytes_of_text(torn), "store");
  ASSERT_TRUE(before);
  const uint64_t synced_bytes = before->page_offset(before->page_count);
  std::mt19937_64 random(3);
  for (int i = 0; i < 30; ++i) {
    std::string left = torn;
    const uint64_t at = synced_bytes + random() % (whole.size() - synced_bytes);
    if (i % 3 == 0) left.resize(at);                                               // cut
    if (i % 3 == 1) left.replace(at, std::string::npos, whole.size() - at, '\0');  // never written
    if (i % 3 == 2) left[at] ^= 4;  // written wrongly
    write("store", left);
    const Values there = found();
    ASSERT_GE(there.size(), synced_keys);
    ASSERT_TRUE(std::equal(there.begin(), there.end(), values.begin())) << at;
    auto writer = StoreWriter::open(path("store"));
    ASSERT_TRUE(writer) << writer.error().text;
    for (auto rest = std::next(values.begin(), static_cast<long>(there.size()));
         rest != values.end(); ++rest) {
      ASSERT_EQ(put_error(**writer, rest->first, rest->second), 0);
    }
    ASSERT_TRUE((*writer)->finish());
    ASSERT_EQ(found(), values);
  }
}

TEST_F(WriterTest, DamageBelowTheLastSyncIsAnError) {
  {
    const auto writer = create();
    put_all(*writer, random_values(4, 300, 20'000));
    ASSERT_TRUE(writer->sync());
  }
  const uint64_t size = std::filesystem::file_size(path("store"));
  std::mt19937_64 random(5);
  for (int i = 0; i < 50; ++i) {
    const uint64_t bit = (kStoreHeadBytes + random() % (size - kStoreHeadBytes)) * 8;
    flip_bit("store", bit);
    const auto store = PageStore::open(path("store"));
    ASSERT_FALSE(store) << bit;
    EXPECT_EQ(store.error().code, EIO);
    EXPECT_NE(store.error().text.find(path("store") + ": page "), std::string::npos)
        << store.error().text;
    flip_bit("store", bit);
  }
  std::filesystem::resize_file(path("store"), size - 1);
  EXPECT_EQ(PageStore::open(path("store")).error().code, EIO);
}

TEST_F(WriterTest, APageOfAnotherStoreIsAnError) {
  const Values values = random_values(6, 300);
  const std::string one = read(make_store("one", values)),
                    other = read(make_store("other", values));
  ASSERT_EQ(one.size(), other.size());
  std::string mixed = one;
  mixed.replace(kStoreHeadBytes, 4096, other, kStoreHeadBytes, 4096);
  const auto store = PageStore::open(write("mixed", mixed));
  ASSERT_TRUE(store);
  const auto page = store->check_page(0, bytes_of_text(mixed).subspan(kStoreHeadBytes, 4096));
  ASSERT_FALSE(page);
  EXPECT_NE(page.error().text.find("of another store"), std::string::npos) << page.error().text;
}

// Writes until it is killed, and tells each key that was synced.
[[noreturn]] void write_until_killed(const std::string& store, int told) {
  auto writer = StoreWriter::open(store);
  if (!writer) ::_exit(1);
  uint64_t key = (*writer)->head().key_count == 0 ? 0 : (*writer)->head().last_key + 1;
  std::mt19937_64 random(key);
  while (true) {
    for (uint64_t n = random() % 40; n > 0; --n, ++key) {
      if (!(*writer)->put(key, bytes_of_text(value_of(key, key % 50 == 0 ? 20'000 : key % 300)))) {
        ::_exit(1);
      }
    }
    if (!(*writer)->sync()) ::_exit(1);
    if (key > 0 && ::write(told, &key, sizeof key) != sizeof key) ::_exit(1);
  }
}

// kill -9 at random instants: GRAPHLANE_CRASH_POINTS of them.
TEST_F(WriterTest, WhatWasSyncedSurvivesAKill) {
  create().reset();
  const char* const wanted = std::getenv("GRAPHLANE_CRASH_POINTS");
  const int points = wanted != nullptr ? std::atoi(wanted) : 15;
  std::mt19937_64 random(std::random_device{}());
  uint64_t synced_end = 0;
  for (int point = 0; point < points; ++point) {
    int told[2];
    ASSERT_EQ(::pipe(told), 0);
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::close(told[0]);
      write_until_killed(path("store"), told[1]);
    }
    ::close(told[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(2000 + random() % 30'000));
    ::kill(pid, SIGKILL);
    int status = 0;
    ::waitpid(pid, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    for (uint64_t end; ::read(told[0], &end, sizeof end) == sizeof end;) synced_end = end;
    ::close(told[0]);
    auto store = PageStore::open(path("store"));
    ASSERT_TRUE(store) << store.error().text;
    ASSERT_GE(store->key_count(), synced_end);
    synced_end = store->key_count();
  }
  uint64_t next = 0;
  for (const auto& [key, value] : found()) {
    ASSERT_EQ(key, next++);
    ASSERT_EQ(value, value_of(key, key % 50 == 0 ? 20'000 : key % 300));
  }
  EXPECT_GE(next, synced_end);
}

}  // namespace
}  // namespace graphlane::graphfmt
