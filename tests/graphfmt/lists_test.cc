#include "graphfmt/lists/lists.h"

#include <fmt/format.h>

#include "iomgr/base/crc32c_long.h"
#include "tests/graphfmt/fixture.h"

namespace graphlane::graphfmt {
namespace {

using Adjacency = std::vector<std::vector<uint32_t>>;

// The file of lists and the index of one direction, as FORMAT.md has them.
struct SideFiles {
  std::string lists, index;
  uint32_t sums_checksum = 0;
};

SideFiles side_files(const Adjacency& adjacency, const ListCodec& codec) {
  SideFiles files;
  ListIndexBuilder builder(list_index_shape(codec.kind(), false));
  for (uint32_t v = 0; v < adjacency.size(); ++v) {
    if (adjacency[v].empty()) continue;
    std::string bytes(codec.bytes_max(adjacency[v].size()), '\0');
    bytes.resize(codec.encode(adjacency[v], reinterpret_cast<uint8_t*>(bytes.data())));
    builder.append(v, adjacency[v].size(), bytes.size());
    files.lists += bytes;
  }
  builder.finish(adjacency.size());
  (void)builder.write([&](const void* data, size_t length) -> Outcome<void> {
    files.index.append(static_cast<const char*>(data), length);
    return {};
  });
  std::vector<uint32_t> sums;
  for (size_t at = 0; at < files.lists.size(); at += kChecksumPieceBytes) {
    const std::string piece = files.lists.substr(at, kChecksumPieceBytes);
    sums.push_back(crc32c_extend(0, piece.data(), piece.size()));
  }
  files.sums_checksum = crc32c_extend(0, sums.data(), sums.size() * 4);
  if (sums.size() % 2 != 0) sums.push_back(0);
  files.index += bytes_of(sums);
  return files;
}

class ListsTest : public TempDirTest {
 protected:
  static Adjacency turned(const Adjacency& out) {
    Adjacency in(out.size());
    for (uint32_t v = 0; v < out.size(); ++v) {
      for (const uint32_t target : out[v]) in[target].push_back(v);
    }
    return in;
  }

  void write_graph(const Adjacency& out, CodecKind kind) {
    std::filesystem::create_directory(path("g"));
    GraphHeader header{.codec = kind, .vertex_count = out.size(), .files = {}};
    for (const auto& list : out) header.arc_count += list.size();
    header.edge_count = header.arc_count;
    for (const std::string name : {"out", "in"}) {
      const SideFiles side = side_files(name == "out" ? out : turned(out), ListCodec::of(kind));
      write("g/" + name + ".index", side.index);
      write("g/" + name + ".lists", side.lists);
      header.files.push_back({name + ".index", side.index.size(),
                              crc32c_extend(0, side.index.data(), side.index.size())});
      header.files.push_back({name + ".lists", side.lists.size(), side.sums_checksum});
    }
    const auto bytes = encode_header(header);
    write("g/graph", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  const Adjacency example_ = {{1}, {3}, {2}, {0, 3}};
};

TEST_F(ListsTest, GivesEachVertexItsPlaceInEitherDirection) {
  write_graph(example_, CodecKind::kVarint);
  const auto lists = Lists::open(path("g"));
  ASSERT_TRUE(lists) << lists.error().text;
  const Lists& graph = **lists;
  EXPECT_EQ(graph.vertex_count(), 4u);
  EXPECT_EQ(graph.index(Direction::kOut).place(3), (ListPlace{3, 2}));
  EXPECT_EQ(graph.index(Direction::kOut).degree(3), 2u);
  EXPECT_EQ(graph.index(Direction::kIn).place(0), (ListPlace{0, 1}));
  EXPECT_EQ(graph.file_name(Direction::kIn), "in.lists");
  EXPECT_EQ(graph.file_bytes(Direction::kOut), 5u);
  const auto file = graph.directory().open_file("out.lists");
  ASSERT_TRUE(file);
  std::vector<uint8_t> bytes(5);
  ASSERT_TRUE(file->read({0, 5}, bytes.data()));
  EXPECT_EQ(bytes, (std::vector<uint8_t>{1, 3, 2, 0, 0x83}));
  EXPECT_TRUE(graph.check_piece(Direction::kOut, ListPart::kLists, 0, bytes));
  bytes[4] ^= 1;
  EXPECT_EQ(
      graph.check_piece(Direction::kOut, ListPart::kLists, 0, bytes).error().text,
      path("g/out.lists") + ": byte 0: the checksum of these 5 bytes is wrong: they are damaged");
  EXPECT_EQ(file->read({3, 3}, bytes.data()).error().code, EIO);
}

TEST_F(ListsTest, EveryFlippedBitOfHeaderAndIndexIsAnErrorThatNamesTheFile) {
  write_graph(example_, CodecKind::kSimd);
  for (const std::string name : {"g/graph", "g/out.index", "g/in.index"}) {
    const std::string sound = read(path(name));
    for (size_t bit = 0; bit < 8 * sound.size(); ++bit) {
      flip_bit(name, bit);
      const auto lists = Lists::open(path("g"));
      flip_bit(name, bit);
      ASSERT_FALSE(lists) << name << " bit " << bit;
      ASSERT_NE(lists.error().text.find(path("g/")), std::string::npos) << lists.error().text;
    }
    EXPECT_EQ(read(path(name)), sound);
  }
  EXPECT_TRUE(Lists::open(path("g")));
}

TEST_F(ListsTest, EveryTruncationOfAFileIsAnErrorThatNamesIt) {
  write_graph(example_, CodecKind::kRaw);
  for (const std::string name :
       {"g/graph", "g/out.index", "g/in.index", "g/out.lists", "g/in.lists"}) {
    const std::string sound = read(path(name));
    for (size_t length = 0; length < sound.size(); ++length) {
      std::filesystem::resize_file(path(name), sound.size() - 1 - length);
      const auto lists = Lists::open(path("g"));
      ASSERT_FALSE(lists) << name << " cut by " << length + 1;
      ASSERT_NE(lists.error().text.find(path(name)), std::string::npos) << lists.error().text;
    }
    std::filesystem::remove(path(name));
    EXPECT_FALSE(Lists::open(path("g"))) << name;
    write(name, sound);
  }
  EXPECT_TRUE(Lists::open(path("g")));
}

TEST_F(ListsTest, AnIndexOfAnotherGraphIsAnError) {
  write_graph(example_, CodecKind::kVarint);
  const std::string other = read(path("g/out.index"));
  write_graph({{1}, {2}, {3}, {0, 1}}, CodecKind::kVarint);
  write("g/out.index", other);
  EXPECT_EQ(Lists::open(path("g")).error().code, EIO);
}

TEST_F(ListsTest, ANonGraphIsNamed) {
  EXPECT_EQ(Lists::open(dir_).error().text, dir_ + ": not a stored graph: it has no file `graph`");
  EXPECT_EQ(Lists::open(path("absent")).error().code, ENOENT);
}

}  // namespace
}  // namespace graphlane::graphfmt
