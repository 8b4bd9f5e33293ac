#include "graphfmt/list_index.h"

#include <fmt/format.h>

#include <random>

#include "graphfmt/graph_header.h"
#include "tests/graphfmt/fixture.h"

namespace graphlane::graphfmt {
namespace {

struct ListOf {
  uint32_t vertex;
  uint64_t degree;
  uint64_t length;
};

// An index and the bytes that it lies in.
struct Indexed {
  std::vector<uint64_t> words;
  ListIndex index;
};

std::string index_bytes(const ListIndexShape& shape, uint64_t vertex_count,
                        const std::vector<ListOf>& lists) {
  ListIndexBuilder builder(shape);
  for (const ListOf& list : lists) builder.append(list.vertex, list.degree, list.length);
  builder.finish(vertex_count);
  std::string bytes;
  const auto done = builder.write([&](const void* data, size_t length) -> Outcome<void> {
    bytes.append(static_cast<const char*>(data), length);
    return {};
  });
  EXPECT_TRUE(done);
  EXPECT_EQ(bytes.size(), builder.size_bytes());
  return bytes;
}

Outcome<Indexed> parse_index(const ListIndexShape& shape, const std::string& bytes) {
  Indexed indexed;
  indexed.words.resize(bytes.size() / 8 + 1);
  std::memcpy(indexed.words.data(), bytes.data(), bytes.size());
  std::span<const uint8_t> rest(reinterpret_cast<const uint8_t*>(indexed.words.data()),
                                bytes.size());
  auto index = ListIndex::parse(rest, shape, "index");
  if (!index) return index.error();
  EXPECT_TRUE(rest.empty());
  indexed.index = std::move(*index);
  return indexed;
}

std::vector<ListIndexShape> all_shapes() {
  std::vector<ListIndexShape> shapes;
  for (const bool sparse : {false, true}) {
    shapes.push_back(list_index_shape(CodecKind::kRaw, false, sparse));
    shapes.push_back(list_index_shape(CodecKind::kSimd, false, sparse));
    shapes.push_back(list_index_shape(CodecKind::kVarint, true, sparse));
    shapes.push_back(
        {.is_sparse = sparse, .has_degrees = false, .has_lengths = true, .has_arc_starts = false});
  }
  for (const bool has_arc_starts : {false, true}) {
    shapes.push_back({.is_sparse = true,
                      .has_degrees = has_arc_starts,
                      .has_lengths = true,
                      .has_arc_starts = has_arc_starts,
                      .is_derived = true});
  }
  return shapes;
}

std::vector<ListOf> random_lists(std::mt19937_64& random, const ListIndexShape& shape,
                                 uint64_t vertex_count) {
  std::vector<ListOf> lists;
  const unsigned one_in = 1 + static_cast<unsigned>(random() % 5);
  for (uint32_t v = 0; v < vertex_count; ++v) {
    if (random() % one_in != 0) continue;
    const uint64_t sizes[] = {1, 253, 254, 255, 256, 70'000, uint64_t{1} << 33};
    const uint64_t degree =
        random() % 3 != 0 ? 1 + random() % 40 : sizes[random() % std::size(sizes)];
    lists.push_back({v, degree, shape.has_lengths ? degree + random() % 300 : 4 * degree});
  }
  return lists;
}

TEST(ListIndexTest, AnswersAsAModelDoes) {
  for (const ListIndexShape& shape : all_shapes()) {
    for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
      for (const uint64_t vertex_count :
           {0, 1, 31, 32, 33, 63, 64, 65, 255, 256, 257, 4096, 4097, 20'000}) {
        SCOPED_TRACE(fmt::format("seed {} vertices {} sparse {} lengths {}", seed, vertex_count,
                                 shape.is_sparse, shape.has_lengths));
        std::mt19937_64 random(seed * 1000 + vertex_count);
        const auto lists = random_lists(random, shape, vertex_count);
        const auto indexed = parse_index(shape, index_bytes(shape, vertex_count, lists));
        ASSERT_TRUE(indexed) << indexed.error().text;
        const ListIndex& index = indexed->index;
        ASSERT_EQ(index.vertex_count(), vertex_count);
        uint64_t offset = 0, arcs = 0;
        auto next = lists.begin();
        for (uint32_t v = 0; v < vertex_count; ++v) {
          const bool has_list = next != lists.end() && next->vertex == v;
          const uint64_t degree = has_list ? next->degree : 0;
          const uint64_t length = has_list ? next->length : 0;
          ASSERT_EQ(index.offset(v), offset);
          ASSERT_EQ(index.bytes(v), length);
          ASSERT_EQ(index.place(v).length_bytes, length);
          if (has_list) {
            ASSERT_EQ(index.place(v).offset, offset);
          }
          if (shape.has_degrees) {
            ASSERT_EQ(index.degree(v), degree);
          }
          if (shape.has_arc_starts) {
            ASSERT_EQ(index.first_arc(v), arcs);
          }
          offset += length;
          arcs += degree;
          next += has_list;
        }
        ASSERT_EQ(index.offset(vertex_count), offset);
        ASSERT_EQ(index.lists_bytes(), offset);
        ASSERT_EQ(index.arc_count(), arcs);
      }
    }
  }
}

// The lists of a group have one place.
TEST(ListIndexTest, GroupsAreAsAModelSays) {
  for (const bool has_arcs : {false, true}) {
    const ListIndexShape shape{.is_sparse = true,
                               .has_degrees = has_arcs,
                               .has_lengths = true,
                               .has_arc_starts = has_arcs,
                               .is_derived = true,
                               .has_groups = true};
    for (const uint64_t vertex_count : {1, 31, 32, 33, 64, 65, 255, 256, 257, 4097}) {
      for (const unsigned one_in : {1, 3, 40}) {
        std::mt19937_64 random(vertex_count * 100 + one_in);
        ListIndexBuilder builder(shape);
        std::vector<ListPlace> places(vertex_count);
        std::vector<uint64_t> offsets(vertex_count + 1);
        std::vector<uint64_t> first_arcs(vertex_count + 1), arcs_of(vertex_count);
        uint64_t offset = 0, arcs = 0;
        for (uint64_t group = 0; group < vertex_count; group += kIndexGroupVertices) {
          const ListPlace place{offset, 1 + random() % 400};
          uint64_t of_group = 0;
          for (uint64_t v = group; v < std::min(group + kIndexGroupVertices, vertex_count); ++v) {
            offsets[v] = offset;
            first_arcs[v] = arcs;
            if (random() % one_in != 0) continue;
            const uint64_t degree = 1 + random() % 100;
            builder.append(static_cast<uint32_t>(v), degree, 0);
            places[v] = place;
            of_group += degree;
          }
          if (of_group == 0) continue;
          builder.append_group(place.length_bytes, of_group);
          for (uint64_t v = group; v < std::min(group + kIndexGroupVertices, vertex_count); ++v)
            arcs_of[v] = of_group;
          arcs += of_group;
          offset += place.length_bytes;
        }
        offsets[vertex_count] = offset;
        first_arcs[vertex_count] = arcs;
        builder.finish(vertex_count);
        std::string bytes;
        ASSERT_TRUE(builder.write([&](const void* data, size_t length) -> Outcome<void> {
          bytes.append(static_cast<const char*>(data), length);
          return {};
        }));
        ASSERT_EQ(bytes.size(), builder.size_bytes());
        const auto indexed = parse_index(shape, bytes);
        ASSERT_TRUE(indexed) << indexed.error().text;
        const ListIndex& index = indexed->index;
        for (uint32_t v = 0; v < vertex_count; ++v) {
          ASSERT_EQ(index.place(v), places[v]) << v << " of " << vertex_count;
          ASSERT_EQ(index.bytes(v), places[v].length_bytes);
          if (has_arcs && places[v].length_bytes > 0) {
            ASSERT_EQ(index.arcs(v), arcs_of[v]) << v;
          }
        }
        for (uint64_t v = 0; v <= vertex_count; ++v) {
          ASSERT_EQ(index.offset(v), offsets[v]) << v << " of " << vertex_count;
          if (has_arcs) {
            ASSERT_EQ(index.first_arc(v), first_arcs[v]) << v << " of " << vertex_count;
          }
        }
        for (const uint64_t first : {uint64_t{0}, vertex_count / 64 * 32}) {
          uint32_t expected = static_cast<uint32_t>(first);
          index.scan(first, vertex_count, [&](uint32_t v, const ListPlace& place, uint64_t) {
            while (expected < v) ASSERT_EQ(places[expected++], ListPlace());
            ASSERT_EQ(place, places[expected++]);
          });
          while (expected < vertex_count) ASSERT_EQ(places[expected++], ListPlace());
        }
      }
    }
  }
}

TEST(ListIndexTest, AScanAgreesWithLookups) {
  std::mt19937_64 random(5);
  for (const ListIndexShape& shape : all_shapes()) {
    const uint64_t vertex_count = 3000;
    const auto indexed = parse_index(
        shape, index_bytes(shape, vertex_count, random_lists(random, shape, vertex_count)));
    ASSERT_TRUE(indexed);
    const ListIndex& index = indexed->index;
    for (const auto& [first, end] :
         {std::pair{0u, 3000u}, {0u, 0u}, {3000u, 3000u}, {17u, 18u}, {64u, 128u}, {31u, 2999u}}) {
      uint32_t expected = first;
      index.scan(first, end, [&](uint32_t vertex, const ListPlace& place, uint64_t degree) {
        while (expected < vertex) ASSERT_EQ(index.bytes(expected++), 0u);
        ++expected;
        ASSERT_EQ(place, index.place(vertex));
        ASSERT_EQ(degree, shape.has_degrees ? index.degree(vertex) : 0);
      });
      while (expected < end) ASSERT_EQ(index.bytes(expected++), 0u);
      EXPECT_EQ(expected, end);
    }
  }
}

TEST(ListIndexTest, TakesAByteOrTwoAVertex) {
  const uint64_t vertex_count = 1'000'000;
  const std::vector<ListOf> one = {{5, 3, 12}};
  const auto bytes_a_vertex = [&](CodecKind codec) {
    return static_cast<double>(
               index_bytes(list_index_shape(codec, false), vertex_count, one).size()) /
           vertex_count;
  };
  EXPECT_LE(bytes_a_vertex(CodecKind::kRaw), 1.251);
  EXPECT_LE(bytes_a_vertex(CodecKind::kVarint), 2.251);
  const std::string sparse =
      index_bytes(list_index_shape(CodecKind::kRaw, false, true), vertex_count, one);
  EXPECT_LE(static_cast<double>(sparse.size()), 0.142 * vertex_count);
}

// A checksum guards it where it is stored; here, whatever bytes are accepted give places within the
// lists.
TEST(ListIndexTest, EveryFlippedBitIsAnErrorOrLeavesPlacesInBounds) {
  std::mt19937_64 random(6);
  for (const ListIndexShape& shape : all_shapes()) {
    const uint64_t vertex_count = 300;
    const std::string bytes =
        index_bytes(shape, vertex_count, random_lists(random, shape, vertex_count));
    for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      std::string damaged = bytes;
      damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
      const auto indexed = parse_index(shape, damaged);
      if (!indexed) continue;
      const ListIndex& index = indexed->index;
      for (uint32_t v = 0; v < index.vertex_count(); ++v) {
        const ListPlace place = index.place(v);
        ASSERT_LE(place.offset + place.length_bytes, index.lists_bytes()) << "bit " << bit;
      }
    }
  }
}

TEST(ListIndexTest, EveryTruncationIsAnError) {
  std::mt19937_64 random(7);
  for (const ListIndexShape& shape : all_shapes()) {
    const std::string bytes = index_bytes(shape, 300, random_lists(random, shape, 300));
    for (size_t length = 0; length < bytes.size(); ++length) {
      EXPECT_FALSE(parse_index(shape, bytes.substr(0, length))) << length;
    }
  }
}

TEST(ListIndexTest, AnotherShapeIsAnError) {
  const std::string bytes = index_bytes(list_index_shape(CodecKind::kRaw, false), 10, {{1, 2, 8}});
  EXPECT_EQ(parse_index(list_index_shape(CodecKind::kSimd, false), bytes).error().code, EIO);
}

GraphHeader some_header() {
  return {.kind = GraphKind::kLists,
          .is_directed = false,
          .codec = CodecKind::kSimd,
          .weight = WeightKind::kFloat32,
          .vertex_count = 10,
          .arc_count = 20,
          .edge_count = 11,
          .files = {{"out.index", 100, 7}, {"out.lists", uint64_t{1} << 40, 0xffffffff}}};
}

std::string header_bytes(const GraphHeader& header) {
  const auto bytes = encode_header(header);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(GraphHeaderTest, IsReadBack) {
  const auto header = parse_header(header_bytes(some_header()), "graph");
  ASSERT_TRUE(header) << header.error().text;
  EXPECT_EQ(*header, some_header());
  EXPECT_EQ(header->find("out.lists")->size_bytes, uint64_t{1} << 40);
  EXPECT_EQ(header->find("in.lists"), nullptr);
}

TEST(GraphHeaderTest, EveryFlippedBitAndEveryTruncationIsAnError) {
  const std::string bytes = header_bytes(some_header());
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    EXPECT_FALSE(parse_header(damaged, "graph")) << bit;
  }
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(parse_header(bytes.substr(0, length), "graph"));
  }
  EXPECT_FALSE(parse_header(bytes + '\0', "graph"));
}

TEST(GraphHeaderTest, RefusesImpossibleHeaders) {
  const auto refused = [](auto change) {
    GraphHeader header = some_header();
    change(header);
    return !parse_header(header_bytes(header), "graph");
  };
  EXPECT_TRUE(refused([](GraphHeader& h) { h.codec = static_cast<CodecKind>(9); }));
  EXPECT_TRUE(refused([](GraphHeader& h) { h.weight = static_cast<WeightKind>(9); }));
  EXPECT_TRUE(refused([](GraphHeader& h) { h.kind = static_cast<GraphKind>(9); }));
  EXPECT_TRUE(refused([](GraphHeader& h) { h.vertex_count = kListVertexCountMax + 1; }));
  EXPECT_TRUE(refused([](GraphHeader& h) { h.edge_count = 21; }));
  EXPECT_TRUE(refused([](GraphHeader& h) { h.is_directed = true; }));
  EXPECT_TRUE(refused([](GraphHeader& h) { h.checksum_piece_bytes = 0; }));
  EXPECT_TRUE(refused([](GraphHeader& h) { h.files[0].name = "../x"; }));
  EXPECT_TRUE(refused([](GraphHeader& h) { h.files[0].name = ""; }));
}

}  // namespace
}  // namespace graphlane::graphfmt
