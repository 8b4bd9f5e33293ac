// Stores of random keys and values, of every length that matters to a page.
#pragma once

#include <map>
#include <random>
#include <string>

#include "graphfmt/pages/page_store.h"
#include "graphfmt/pages/store_writer.h"
#include "tests/graphfmt/fixture.h"

namespace graphlane {

using Values = std::map<uint64_t, std::string>;

inline std::span<const uint8_t> bytes_of_text(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::string text_of(std::span<const uint8_t> bytes) { return {bytes.begin(), bytes.end()}; }

// The value of a key is known from the key alone.
inline std::string value_of(uint64_t key, size_t length) {
  std::string value(length, '\0');
  std::mt19937_64 random(key);
  for (char& c : value) c = static_cast<char>(random());
  return value;
}

// Mostly short; some empty, some as long as several pages. Keys in runs and with gaps up to 2^40.
inline Values random_values(uint64_t seed, size_t count, size_t long_length = 30'000) {
  std::mt19937_64 random(seed);
  Values values;
  uint64_t key = random() % 3;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t kind = random() % 100;
    const size_t length = kind < 10   ? 0
                          : kind < 90 ? random() % 60
                          : kind < 98 ? random() % 5000
                                      : random() % long_length;
    values[key] = value_of(key, length);
    const uint64_t gap = random() % 1000;
    key += gap < 900   ? 1
           : gap < 990 ? 1 + random() % 1000
           : gap < 998 ? 1 + random() % 100'000
                       : 1 + (random() >> 24);
  }
  return values;
}

inline void put_all(graphfmt::StoreWriter& writer, const Values& values) {
  for (const auto& [key, value] : values) {
    const auto done = writer.put(key, bytes_of_text(value));
    ASSERT_TRUE(done) << done.error().text;
  }
}

class StoreTest : public graphfmt::TempDirTest {
 protected:
  // A finished store.
  std::string make_store(const std::string& name, const Values& values,
                         uint32_t page_bytes = 4096) {
    auto writer = graphfmt::StoreWriter::create(path(name), {.page_bytes = page_bytes});
    EXPECT_TRUE(writer) << writer.error().text;
    put_all(**writer, values);
    EXPECT_TRUE((*writer)->finish());
    return path(name);
  }
};

}  // namespace graphlane
