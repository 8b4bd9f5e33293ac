// Graphs of the format `pages`: the bytes, what is read back, and what damage is noticed.
#include "graphfmt/pages/pages_build.h"

#include <fmt/format.h>

#include <random>

#include "graphfmt/pages/pages_read.h"
#include "tests/graphfmt/fixture.h"

namespace graphlane::graphfmt {
namespace {

class PagesTest : public TempDirTest {
 protected:
  std::string write_edges(const std::vector<WeightedEdge>& edges, bool is_weighted) const {
    std::string bytes;
    for (const WeightedEdge& edge : edges) {
      bytes.append(reinterpret_cast<const char*>(&edge), is_weighted ? 12 : 8);
    }
    return write("edges.bin", bytes);
  }
  PagesOptions options(bool is_weighted, bool is_undirected, CodecKind codec,
                       uint32_t page_bytes) const {
    return {.input = {.path = path("edges.bin"),
                      .format = EdgeFormat::kBin,
                      .weighted = is_weighted,
                      .threads = 2,
                      .undirected = is_undirected,
                      .as_given = true},
            .output = path("graph"),
            .codec = codec,
            .page_bytes = page_bytes,
            .overwrite = true};
  }
};

// A few vertices of very long lists, many of short ones, some without.
std::vector<WeightedEdge> skewed_edges(size_t count) {
  std::mt19937_64 random(1);
  std::vector<WeightedEdge> edges;
  for (size_t i = 0; i < count; ++i) {
    const auto source =
        static_cast<uint32_t>(random() % 4 == 0 ? random() % 3 * 500 : random() % 2000);
    edges.push_back(
        {source, static_cast<uint32_t>(random() % 2000), static_cast<float>(random() % 1000)});
  }
  return edges;
}

TEST_F(PagesTest, WritesTheExampleOfTheFormatPage) {
  write_edges({{0, 1, 0}, {1, 3, 0}, {3, 0, 0}, {2, 2, 0}, {3, 3, 0}}, false);
  PagesOptions wanted = options(false, false, CodecKind::kVarint, 4096);
  wanted.input.vertices = 4;
  const auto built = build_pages(wanted);
  ASSERT_TRUE(built) << built.error().text;
  const std::string store = read(path("graph/out.pages"));
  ASSERT_EQ(store.size(), 8192u + 4096 + 12);
  EXPECT_EQ(store.substr(0, 4096), std::string(4096, '\0'));
  const auto hex = [&](size_t at, size_t count) {
    std::string text;
    for (const char c : store.substr(at, count)) {
      text += fmt::format("{:02x}", static_cast<uint8_t>(c));
    }
    return text;
  };
  EXPECT_EQ(store.substr(4096, 8), "Glpages\n");
  EXPECT_EQ(hex(4104, 8), "0100000000100000");  // version, page bytes
  // sequence, finished, the index's checksum
  EXPECT_EQ(hex(4120, 16),
            "0100000000000000"
            "01000000" +
                hex(4132, 4));
  EXPECT_EQ(hex(4136, 32),
            "0100000000000000"
            "0400000000000000"
            "0300000000000000"
            "0500000000000000");
  EXPECT_EQ(hex(8196, 4), "00000000");    // consecutive keys
  EXPECT_EQ(hex(8200, 8), hex(4112, 8));  // the store's id
  EXPECT_EQ(hex(8208, 16),
            "0000000000000000"
            "0000000000000000");  // page 0, first key 0
  // 4 keys, no rest, no more
  EXPECT_EQ(hex(8224, 16),
            "04000000"
            "00000000"
            "0000000000000000");
  EXPECT_EQ(hex(8240, 8), "0100020003000500");  // ends
  EXPECT_EQ(hex(8248, 5), "0103020083");        // values
  EXPECT_EQ(store.substr(8253, 12288 - 8253), std::string(12288 - 8253, '\0'));
  EXPECT_EQ(hex(12288, 8), "0000000000000000");  // the index: first key
  EXPECT_EQ(hex(12296, 4), hex(8192, 4));        // the page's checksum
  EXPECT_EQ(hex(4112, 8), "0849763364a73731");   // the store's id
  EXPECT_EQ(hex(8192, 4), "a0b64579");
  EXPECT_EQ(hex(4132, 4), "4ddf80ce");
  EXPECT_EQ(hex(8188, 4), "5c3762d4");  // the slot's checksum
}

TEST_F(PagesTest, GivesBackTheEdges) {
  std::vector<WeightedEdge> edges = skewed_edges(20'000);
  for (const bool is_weighted : {false, true}) {
    write_edges(edges, is_weighted);
    for (const CodecKind codec : {CodecKind::kRaw, CodecKind::kVarint, CodecKind::kSimd}) {
      for (const uint32_t page_bytes : {4096u, 8192u, 1u << 17}) {
        const auto built = build_pages(options(is_weighted, false, codec, page_bytes));
        ASSERT_TRUE(built) << built.error().text;
        const auto checked = check_pages(path("graph"), 2);
        ASSERT_TRUE(checked) << checked.error().text;
        Collect there;
        const auto read_back = read_pages(
            {.path = path("graph"), .weighted = is_weighted, .vertex_count_max = 2000}, there);
        ASSERT_TRUE(read_back) << read_back.error().text;
        const size_t size = is_weighted ? sizeof(WeightedEdge) : sizeof(Edge);
        std::vector<WeightedEdge> back(there.records.size() / size), expected = edges;
        for (size_t i = 0; i < back.size(); ++i) {
          std::memcpy(&back[i], there.records.data() + i * size, size);
        }
        if (!is_weighted) {
          for (WeightedEdge& edge : back) edge.weight = 0;
          for (WeightedEdge& edge : expected) edge.weight = 0;
        }
        const auto before = [](const WeightedEdge& a, const WeightedEdge& b) {
          return std::tie(a.source, a.target) < std::tie(b.source, b.target);
        };
        std::stable_sort(expected.begin(), expected.end(), before);
        ASSERT_EQ(back.size(), expected.size());
        EXPECT_EQ(std::memcmp(back.data(), expected.data(), back.size() * sizeof(WeightedEdge)), 0);
      }
    }
  }
}

TEST_F(PagesTest, DoesNotDependOnThreadsOrBudget) {
  write_edges(skewed_edges(30'000), false);
  PagesOptions wanted = options(false, false, CodecKind::kVarint, 4096);
  ASSERT_TRUE(build_pages(wanted));
  const auto once = files_of(path("graph"));
  wanted.input.threads = 1;
  wanted.run_edges = 1000;
  ASSERT_TRUE(build_pages(wanted));
  EXPECT_TRUE(files_of(path("graph")) == once);
}

TEST_F(PagesTest, EveryFlippedBitAndEveryCutIsNoticed) {
  write_edges(skewed_edges(3000), false);
  for (const bool is_undirected : {false, true}) {
    ASSERT_TRUE(build_pages(options(false, is_undirected, CodecKind::kVarint, 4096)));
    ASSERT_TRUE(check_pages(path("graph"), 1));
    std::mt19937_64 random(2);
    for (const auto& [name, content] : files_of(path("graph"))) {
      const size_t step = name == "graph" ? 8 * 7 : 8 * 97;
      for (size_t bit = random() % step; bit < content.size() * 8; bit += step) {
        // The slot that does not hold.
        if (name != "graph" && bit / 8 < kStoreSlotBytes) continue;
        flip_bit("graph/" + name, bit);
        const auto checked = check_pages(path("graph"), 1);
        ASSERT_FALSE(checked) << name << " bit " << bit;
        EXPECT_NE(checked.error().text.find(path("graph")), std::string::npos);
        flip_bit("graph/" + name, bit);
      }
      for (size_t size :
           {size_t{0}, size_t{1}, content.size() / 3, content.size() - 4096, content.size() - 1}) {
        if (size > content.size()) continue;
        write("graph/" + name, content.substr(0, size));
        EXPECT_FALSE(check_pages(path("graph"), 1)) << name << " of " << size;
      }
      write("graph/" + name, content + "x");
      EXPECT_FALSE(check_pages(path("graph"), 1)) << name << " longer";
      write("graph/" + name, content);
    }
    ASSERT_TRUE(check_pages(path("graph"), 1));
  }
}

TEST_F(PagesTest, AStoreOfAnotherGraphIsAnError) {
  write_edges(skewed_edges(3000), false);
  ASSERT_TRUE(build_pages(options(false, false, CodecKind::kVarint, 4096)));
  const std::string out = read(path("graph/out.pages"));
  write_edges(skewed_edges(3001), false);
  ASSERT_TRUE(build_pages(options(false, false, CodecKind::kVarint, 4096)));
  write("graph/out.pages", out);
  EXPECT_FALSE(check_pages(path("graph"), 1));
}

// Bytes that no writer has made never lead outside of the page.
TEST_F(PagesTest, APageOfAnyBytesIsReadWithinItself) {
  std::mt19937_64 random(3);
  std::vector<uint8_t> page(4096);
  size_t sound = 0;
  for (int round = 0; round < 20'000; ++round) {
    for (uint8_t& byte : page) byte = static_cast<uint8_t>(random());
    PageHead head{.key_bytes = static_cast<uint32_t>(random() % 3 * 2),
                  .first_key = random() % 100,
                  .key_count = static_cast<uint32_t>(random() % 4),
                  .rest_bytes = static_cast<uint32_t>(random() % 5000)};
    std::memcpy(page.data(), &head, sizeof head);
    for (size_t at = sizeof head; at < sizeof head + 16; at += 2) {
      page[at + 1] = static_cast<uint8_t>(random() % 16);
    }
    PageView view;
    if (PageView::parse(page, view) != nullptr) continue;
    ++sound;
    for (uint32_t i = 0; i < view.key_count(); ++i) {
      EXPECT_EQ(view.find(view.key(i)), i);
      const auto value = view.value(i);
      EXPECT_TRUE(value.data() >= page.data() &&
                  value.data() + value.size() <= page.data() + page.size());
    }
    EXPECT_EQ(view.find(~uint64_t{0}), view.key_count());
  }
  EXPECT_GT(sound, 100u);
}

}  // namespace
}  // namespace graphlane::graphfmt
