#include "graphfmt/graph_requests.h"

#include "graphfmt/depth_chooser.h"
#include "tests/graphfmt/fixture.h"

namespace graphlane::graphfmt {
namespace {

namespace fs = std::filesystem;

class GraphRequestsTest : public TempDirTest {
 protected:
  Outcome<GraphRequests> find() const {
    const Outcome<GraphDirectory> directory = GraphDirectory::open(dir_);
    if (!directory) return directory.error();
    return find_requests(*directory);
  }

  // Two partitions: blocks of 1, 2, 0 and 3 edges. No block files: engines do not read them.
  void make_grid() const {
    const std::string offsets = bytes_of<int64_t>({0, 8, 24, 24, 48});
    write("meta", "0 4 6 2");
    for (const char* name : {"column", "row"}) {
      write(name, std::string(48, '\0'));
      write(std::string(name) + "_offset", offsets);
    }
  }
};

TEST_F(GraphRequestsTest, AGridIsColumnAndRow) {
  make_grid();
  const auto found = find();
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->format, GraphFormat::kGrid);
  EXPECT_EQ(found->grid->edge_count, 6u);
  ASSERT_EQ(found->sweeps.size(), 2u);
  EXPECT_EQ(found->sweeps[0].name, "column");
  EXPECT_EQ(found->sweeps[0].bytes, 48u);
  EXPECT_EQ(found->sweeps[0].requests.count(), 1u);  // all in one page
  EXPECT_EQ(found->sweeps[1].name, "row");
}

TEST_F(GraphRequestsTest, AGridForOneDirectionOnly) {
  make_grid();
  fs::remove(path("row"));
  fs::remove(path("row_offset"));
  const auto found = find();
  ASSERT_TRUE(found) << found.error().text;
  ASSERT_EQ(found->sweeps.size(), 1u);
}

struct TableDamage {
  const char* name;
  const char* file;
  std::string content;  // "-" removes the file
  std::string reason;   // behind the directory
};
class DamagedTableTest : public GraphRequestsTest,
                         public testing::WithParamInterface<TableDamage> {};

TEST_P(DamagedTableTest, IsRefusedByFileOffsetAndReason) {
  const TableDamage& damage = GetParam();
  make_grid();
  fs::remove(path(damage.file));
  if (damage.content != "-") write(damage.file, damage.content);
  const auto found = find();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().text, fs::canonical(dir_).string() + damage.reason);
  // An import that would use the advice is refused too.
  EXPECT_FALSE(DepthChooser(4).choose(path("column")));
}

const TableDamage kTableDamages[] = {
    {"NoMeta", "meta", "-", "/meta: cannot open: No such file or directory"},
    {"ForeignMeta", "meta", "<html>",
     "/meta: byte 0: not GridGraph's four numbers (type, vertices, edges, partitions)"},
    {"LongMeta", "meta", std::string(101, '1'), "/meta: byte 100: 101 bytes, expected 100 at most"},
    // 2^61 and 6 of them: in 64 bits their bytes were those of 6.
    {"EdgesBeyondOffsets", "meta", "0 6 2305843009213693958 2",
     "/meta: 2305843009213693958 edges: offsets of 64 bits count 1152921504606846975 at most"},
    {"NoTable", "column_offset", "-", "/column_offset: cannot open: No such file or directory"},
    {"ShortTable", "column_offset", bytes_of<int64_t>({0, 8, 24, 24}),
     "/column_offset: byte 32: 32 bytes, expected 40"},
    {"LongTable", "column_offset", bytes_of<int64_t>({0, 8, 24, 24, 48, 48}),
     "/column_offset: byte 40: 48 bytes, expected 40 at most"},
    {"EmptyTable", "row_offset", "", "/row_offset: byte 0: 0 bytes, expected 40"},
    {"TableBeginsLate", "column_offset", bytes_of<int64_t>({8, 8, 24, 24, 48}),
     "/column_offset: byte 0: offset 8, expected 0"},
    {"OffsetsGoBack", "column_offset", bytes_of<int64_t>({0, 24, 8, 24, 48}),
     "/column_offset: byte 16: offset 8: must be a multiple of 8, from 24 on"},
    {"OffsetInAnEdge", "column_offset", bytes_of<int64_t>({0, 8, 23, 24, 48}),
     "/column_offset: byte 16: offset 23: must be a multiple of 8, from 8 on"},
    {"NegativeOffset", "column_offset", bytes_of<int64_t>({0, -8, 24, 24, 48}),
     "/column_offset: byte 8: offset -8: must be a multiple of 8, from 0 on"},
    {"OtherGraphsTable", "column_offset", bytes_of<int64_t>({0, 8, 24, 24, 56}),
     "/column_offset: byte 32: ends at 56, but 6 edges (meta) have 48 bytes"},
    {"ShortColumn", "column", std::string(40, '\0'), "/column: byte 40: 40 bytes, expected 48"},
    {"NoColumn", "column", "-", "/column: cannot open: No such file or directory"},
};
INSTANTIATE_TEST_SUITE_P(Table, DamagedTableTest, testing::ValuesIn(kTableDamages),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(GraphRequestsTest, ShardsAreReadByTheirPiecesAndBlocksWhole) {
  write("g", "an edge list");
  write("g.edata_azv.0_2.adj", std::string((17u << 20) + 5, '\0'));
  write("g.edata_azv.1_2.adj", "");
  fs::create_directory(path("g.edata.e4B.0_2_blockdir_1048576"));
  write("g.edata.e4B.0_2_blockdir_1048576/0", std::string(1u << 20, '\0'));
  write("g.edata.e4B.0_2_blockdir_1048576/1", std::string(777, '\0'));
  const auto found = find();
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->format, GraphFormat::kShards);
  ASSERT_EQ(found->sweeps.size(), 3u);
  const Sweep& adjacency = found->sweeps[0];
  EXPECT_EQ(adjacency.name, "g.edata_azv.0_2.adj");
  EXPECT_EQ(adjacency.requests.count(), 2u + 18u);  // by 16 MiB, and by 1 MiB
  EXPECT_EQ(adjacency.requests.max_bytes(), 16u << 20);
  EXPECT_EQ(found->sweeps[1].requests.count(), 0u);
  const Sweep& values = found->sweeps[2];
  EXPECT_EQ(values.name, "g.edata.e4B.0_2_blockdir_1048576/*");
  EXPECT_EQ(values.file_count, 2u);
  EXPECT_EQ(values.bytes, (1u << 20) + 777u);
  EXPECT_EQ(values.requests.max_bytes(), 1u << 20);
  EXPECT_TRUE(values.is_rewritten);
}

TEST_F(GraphRequestsTest, ABlockGetsTheDepthOfAllTheBlocksOfItsShard) {
  write("g.0_1.adj", "x");
  const std::string blocks = "g.edata.0_1_blockdir_1048576";
  fs::create_directory(path(blocks));
  for (const char* name : {"0", "1", "2", "3", "4", "5", "6", "7"}) {
    write(blocks + "/" + name, std::string(1u << 20, '\0'));
  }
  DepthChooser chooser(2);
  const auto depth = chooser.choose(path(blocks + "/3"));
  ASSERT_TRUE(depth) << depth.error().text;
  EXPECT_EQ(depth->bytes, 1u << 20);  // one block, one unit; the next file begins elsewhere
  const auto other = chooser.choose(path("g.0_1.adj"));
  ASSERT_TRUE(other) << other.error().text;
  EXPECT_EQ(other->bytes, kAutoDepthMin);
}

TEST_F(GraphRequestsTest, ANonGraphHasNoSweeps) {
  write("column", "words");
  write("meta", "data");
  const auto found = find();
  ASSERT_TRUE(found) << found.error().text;
  EXPECT_EQ(found->format, GraphFormat::kUnknown);
  EXPECT_TRUE(found->sweeps.empty());
  const auto depth = DepthChooser(4).choose(path("column"));
  ASSERT_TRUE(depth) << depth.error().text;
  EXPECT_EQ(depth->bytes, kAutoDepthMin);
}

}  // namespace
}  // namespace graphlane::graphfmt
