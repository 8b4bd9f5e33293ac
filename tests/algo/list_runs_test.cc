// Vertices request their own lists: requests are merged into runs, and lists returned from pages.
#include "adapters/semiext/list_runs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <vector>

namespace graphlane::semiext {
using graphfmt::CodecKind;
namespace {

constexpr uint64_t kPage = 4096;

// Random lists: a third are empty, most are short, some lie on several pages; encoded one behind
// the other.
struct StoredLists {
  explicit StoredLists(CodecKind kind, VertexId count = 4000)
      : codec(graphfmt::ListCodec::of(kind)), lists(count) {
    std::mt19937 random(11);
    graphfmt::ListIndexBuilder builder(graphfmt::list_index_shape(kind, /*is_weighted=*/false));
    for (VertexId v = 0; v < count; ++v) {
      const size_t degree = random() % 3 == 0     ? 0
                            : random() % 200 == 0 ? 1000 + random() % 20'000
                                                  : 1 + random() % 30;
      for (size_t i = 0; i < degree; ++i) lists[v].push_back(random() % count);
      std::sort(lists[v].begin(), lists[v].end());
      if (degree == 0) continue;
      const size_t begin = bytes.size();
      bytes.resize(begin + codec.bytes_max(degree));
      bytes.resize(begin + codec.encode(lists[v], bytes.data() + begin));
      builder.append(v, degree, bytes.size() - begin);
    }
    builder.finish(count);
    const auto append = [&](const void* data, size_t length) -> Outcome<void> {
      const auto* from = static_cast<const uint8_t*>(data);
      index_bytes.insert(index_bytes.end(), from, from + length);
      return {};
    };
    EXPECT_TRUE(builder.write(append));
    std::span<const uint8_t> rest(index_bytes);
    auto parsed =
        graphfmt::ListIndex::parse(rest, graphfmt::list_index_shape(kind, false), "index");
    EXPECT_TRUE(parsed) << parsed.error().text;
    if (parsed) index = std::move(*parsed);
  }

  // As the page reader has them: each page's part of the range.
  std::vector<PageBytes::Piece> pages(uint64_t begin, uint64_t end) const {
    std::vector<PageBytes::Piece> pieces;
    const auto* const data = reinterpret_cast<const std::byte*>(bytes.data());
    for (uint64_t at = begin; at < end;) {
      const uint64_t next = std::min(end, (at / kPage + 1) * kPage);
      pieces.emplace_back(data + at, next - at);
      at = next;
    }
    return pieces;
  }

  const graphfmt::ListCodec& codec;
  std::vector<std::vector<VertexId>> lists;
  std::vector<uint8_t> bytes;
  std::vector<uint8_t> index_bytes;
  graphfmt::ListIndex index;
};

class ListRunsTest : public ::testing::TestWithParam<CodecKind> {
 protected:
  // Asks for these lists, and reads the runs. The lists that were in none must be empty.
  void ask_and_read(const std::vector<VertexId>& owners) {
    ListRuns runs;
    std::map<VertexId, size_t> given;
    for (const VertexId owner : owners) {
      if (runs.add(stored_.index, owner, kPage)) continue;
      EXPECT_TRUE(stored_.lists[owner].empty());
      ++given[owner];
    }
    runs.close();
    RunReader reader(stored_.codec, stored_.lists.size());
    for (const ListRuns::Run& run : runs.runs()) {
      const auto pages = stored_.pages(run.begin, run.behind);
      EXPECT_TRUE(pages.size() <= ListRuns::kBytesMax / kPage + 1 || run.end - run.first == 1);
      ASSERT_TRUE(reader.read(stored_.index, runs.owners_of(run), run.begin, pages,
                              [&](VertexId owner, std::span<const VertexId> list) {
                                EXPECT_TRUE(std::ranges::equal(list, stored_.lists[owner]))
                                    << owner;
                                ++given[owner];
                              }));
    }
    EXPECT_EQ(given.size(), owners.size());
    EXPECT_TRUE(std::ranges::all_of(given, [](const auto& one) { return one.second == 1; }));
    run_count_ = runs.count();
  }

  StoredLists stored_{GetParam()};
  size_t run_count_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Codecs, ListRunsTest,
                         ::testing::Values(CodecKind::kRaw, CodecKind::kVarint, CodecKind::kSimd),
                         [](const auto& codec) { return std::string(name_of(codec.param)); });

TEST_P(ListRunsTest, AllListsAreRunsOfFullSize) {
  std::vector<VertexId> all(stored_.lists.size());
  std::iota(all.begin(), all.end(), 0u);
  ask_and_read(all);
  // Two runs that follow one another are more than one can be.
  const size_t most = 2 * stored_.bytes.size() / ListRuns::kBytesMax + 1;
  EXPECT_LE(run_count_, most);
  std::reverse(all.begin(), all.end());
  ask_and_read(all);
  EXPECT_LE(run_count_, most);
}

TEST_P(ListRunsTest, SomeListsComeUpwardsDownwardsAndMixed) {
  std::mt19937 random(3);
  for (const unsigned share : {2, 7, 50, 900}) {
    std::vector<VertexId> some;
    for (VertexId v = 0; v < stored_.lists.size(); ++v) {
      if (random() % share == 0) some.push_back(v);
    }
    ask_and_read(some);
    std::reverse(some.begin(), some.end());
    ask_and_read(some);
    std::shuffle(some.begin(), some.end(), random);
    ask_and_read(some);
  }
}

// Wrong content with a right checksum: the first damaged list is named, and earlier lists are
// delivered.
TEST_P(ListRunsTest, ADamagedListIsNamed) {
  VertexId damaged = 2000;
  while (stored_.lists[damaged].size() < 2) ++damaged;
  const uint64_t at = stored_.index.offset(damaged);
  // raw: a neighbour that is no vertex. Others: a byte that no list ends with, or more bytes than
  // are there.
  std::fill_n(stored_.bytes.begin() + static_cast<ptrdiff_t>(at), stored_.index.bytes(damaged),
              uint8_t{0xff});
  ListRuns runs;
  for (VertexId v = damaged - 500; v < damaged + 50; ++v) (void)runs.add(stored_.index, v, kPage);
  runs.close();
  RunReader reader(stored_.codec, stored_.lists.size());
  bool found = false;
  for (const ListRuns::Run& run : runs.runs()) {
    VertexId last = 0;
    const bool read = reader.read(
        stored_.index, runs.owners_of(run), run.begin, stored_.pages(run.begin, run.behind),
        [&](VertexId owner, std::span<const VertexId>) { last = std::max(last, owner); });
    if (read) continue;
    found = true;
    EXPECT_EQ(reader.damaged_owner(), damaged);
    EXPECT_EQ(reader.damaged_offset(), at);
    EXPECT_LT(last, damaged);
    break;
  }
  EXPECT_TRUE(found);
}

}  // namespace
}  // namespace graphlane::semiext
