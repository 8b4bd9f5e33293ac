#include "graphfmt/edge_list.h"

#include <fmt/format.h>

#include <random>

#include "tests/graphfmt/fixture.h"

namespace graphlane::graphfmt {
namespace {

class EdgeListTest : public TempDirTest {
 protected:
  Outcome<EdgeListSummary> read_text(const std::string& text, bool weighted = false) {
    return read_edges({.path = write("in", text), .weighted = weighted}, sink_);
  }
  Collect sink_;
};

TEST_F(EdgeListTest, ReadsTabsSpacesCommentsBlankLinesAndCrLf) {
  auto summary = read_text("# SNAP\r\n% Matrix\n\n0\t1\r\n  2   3  \n \t\n4 \t 5");
  ASSERT_TRUE(summary) << summary.error().text;
  EXPECT_EQ(sink_.edges(), (std::vector<Edge>{{0, 1}, {2, 3}, {4, 5}}));
  EXPECT_EQ(summary->edge_count, 3u);
  EXPECT_EQ(summary->vertex_count, 6u);
}

TEST_F(EdgeListTest, AcceptsTheLargestVertexAndLeadingZeros) {
  ASSERT_TRUE(read_text("4294967294 000000000000000000000000000007\n"));
  EXPECT_EQ(sink_.edges(), (std::vector<Edge>{{kListVertexMax, 7}}));
}

TEST_F(EdgeListTest, ReadsWeightsIfAsked) {
  ASSERT_TRUE(read_text("1 2 0.5\n3\t4\t-1e3\n", true));
  const WeightedEdge expected[] = {{1, 2, 0.5f}, {3, 4, -1000.0f}};
  EXPECT_EQ(sink_.records, std::string(reinterpret_cast<const char*>(expected), sizeof expected));
}

TEST_F(EdgeListTest, ReadsGzipWhateverTheName) {
  ASSERT_TRUE(read_text(gzipped("0 1\n2 3\n") + gzipped("4 5\n")));
  EXPECT_EQ(sink_.edges(), (std::vector<Edge>{{0, 1}, {2, 3}, {4, 5}}));
}

TEST_F(EdgeListTest, AnotherLineEndAtTheEndChangesNothing) {
  ASSERT_TRUE(read_text("0 1\n2 3"));
  Collect with_line_end;
  ASSERT_TRUE(read_edges({.path = write("b", "0 1\n2 3\n")}, with_line_end));
  EXPECT_EQ(sink_.records, with_line_end.records);
}

TEST_F(EdgeListTest, NamesTheFileThatIsMissing) {
  auto summary = read_edges({.path = path("absent")}, sink_);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().text, path("absent") + ": cannot open: No such file or directory");
  EXPECT_EQ(summary.error().code, ENOENT);
}

TEST_F(EdgeListTest, RefusesADirectory) {
  for (const EdgeFormat format : {EdgeFormat::kSnap, EdgeFormat::kBin}) {
    EXPECT_EQ(read_edges({.path = dir_, .format = format}, sink_).error().code, EISDIR);
  }
}

// Long enough for many pieces (64 KiB at least). Some pieces end within a line.
std::string long_text(size_t lines, std::vector<Edge>& edges, unsigned seed) {
  std::mt19937 random(seed);
  std::string text;
  for (size_t i = 0; i < lines; ++i) {
    if (random() % 50 == 0) {
      text += "# comment\n";
      continue;
    }
    const Edge edge{static_cast<uint32_t>(random() % 1'000'000),
                    static_cast<uint32_t>(random() % 10)};
    text += fmt::format("{}\t{}\n", edge.source, edge.target);
    edges.push_back(edge);
  }
  return text;
}

TEST_F(EdgeListTest, KeepsTheOrderOfTheFileWithAnyNumberOfThreads) {
  std::vector<Edge> edges;
  const std::string text = long_text(100'000, edges, 1);
  write("plain", text);
  write("gz", gzipped(text));
  for (const char* name : {"plain", "gz"}) {
    for (const unsigned threads : {1u, 2u, 7u}) {
      Collect sink;
      auto summary = read_edges(
          {.path = path(name), .memory_budget_bytes = 1 << 20, .threads = threads}, sink);
      ASSERT_TRUE(summary) << summary.error().text;
      EXPECT_TRUE(sink.edges() == edges) << name << ", " << threads << " threads";
    }
  }
}

TEST_F(EdgeListTest, NamesTheFirstBadLineWithAnyNumberOfThreads) {
  std::vector<Edge> edges;
  std::mt19937 random(2);
  for (int round = 0; round < 5; ++round) {
    std::string text = long_text(30'000, edges, 2);
    const size_t good_lines = 30'000 + static_cast<size_t>(round);
    text += std::string(static_cast<size_t>(round), '\n');
    std::string after = long_text(1 + random() % 40'000, edges, 3);
    const std::string file = write("in", text + "bad line\n" + after + "worse\n" + after);
    for (const unsigned threads : {1u, 3u, 8u}) {
      auto summary =
          read_edges({.path = file, .memory_budget_bytes = 1 << 20, .threads = threads}, sink_);
      ASSERT_FALSE(summary);
      EXPECT_EQ(summary.error().text,
                fmt::format("{}: line {}: 'bad' is not a vertex number", file, good_lines + 1));
    }
  }
}

TEST_F(EdgeListTest, ATruncatedGzipFileIsAnErrorAndNotAShortGraph) {
  std::vector<Edge> edges;
  const std::string whole = gzipped(long_text(50'000, edges, 4));
  for (const size_t kept : {whole.size() - 1, whole.size() - 8, whole.size() / 2, size_t{20}}) {
    auto summary = read_text(whole.substr(0, kept));
    ASSERT_FALSE(summary) << kept << " bytes kept";
    EXPECT_NE(summary.error().text.find("truncated gzip data"), std::string::npos)
        << summary.error().text;
  }
}

TEST_F(EdgeListTest, ACorruptGzipFileIsAnError) {
  std::vector<Edge> edges;
  std::string bad = gzipped(long_text(50'000, edges, 5));
  bad[bad.size() - 6] = static_cast<char>(bad[bad.size() - 6] ^ 1);  // in the checksum
  auto summary = read_text(bad);
  ASSERT_FALSE(summary);
  EXPECT_NE(summary.error().text.find("corrupt gzip data"), std::string::npos)
      << summary.error().text;
}

TEST_F(EdgeListTest, ConvertsBetweenAllFormats) {
  std::vector<Edge> edges;
  const std::string text = write("a.txt", long_text(50'000, edges, 6));
  ASSERT_TRUE(convert_edges({.path = text}, {.path = path("b.bin"), .format = EdgeFormat::kBin}));
  EXPECT_EQ(read(path("b.bin")), bytes_of(edges));
  ASSERT_TRUE(
      convert_edges({.path = path("b.bin"), .format = EdgeFormat::kBin},
                    {.path = path("c.txt"), .format = EdgeFormat::kSnap, .comment = "two\nlines"}));
  EXPECT_EQ(read(path("c.txt")).substr(0, 14), "# two\n# lines\n");
  ASSERT_TRUE(
      convert_edges({.path = path("c.txt")}, {.path = path("d.u32"), .format = EdgeFormat::kU32}));
  EXPECT_EQ(read(path("d.u32")), bytes_of(edges));
}

TEST_F(EdgeListTest, ConvertsWeightsWithoutLosingABit) {
  std::vector<float> numbers;
  std::mt19937 random(7);
  std::string records;
  for (int i = 0; i < 10'000; ++i) {
    float weight;
    do {
      const uint32_t bits = static_cast<uint32_t>(random());
      std::memcpy(&weight, &bits, sizeof weight);
    } while (!std::isfinite(weight));
    const WeightedEdge edge{static_cast<uint32_t>(i), 1, weight};
    records.append(reinterpret_cast<const char*>(&edge), sizeof edge);
  }
  write("a.bin", records);
  ASSERT_TRUE(convert_edges({.path = path("a.bin"), .format = EdgeFormat::kBin, .weighted = true},
                            {.path = path("b.txt"), .format = EdgeFormat::kSnap}));
  auto back = convert_edges({.path = path("b.txt"), .weighted = true},
                            {.path = path("c.bin"), .format = EdgeFormat::kBin});
  ASSERT_TRUE(back) << back.error().text;
  EXPECT_TRUE(read(path("c.bin")) == records);
}

TEST_F(EdgeListTest, AFailedConversionLeavesNothing) {
  write("a.txt", "0 1\n2\n");
  EXPECT_FALSE(convert_edges({.path = path("a.txt")}, {.path = path("b.bin")}));
  EXPECT_EQ(names_in_dir(), std::vector<std::string>{"a.txt"});
}

TEST_F(EdgeListTest, OverwritesOnlyIfAsked) {
  write("a.txt", "0 1\n");
  write("b.bin", "precious");
  EdgeListOutput output{.path = path("b.bin")};
  EXPECT_EQ(convert_edges({.path = path("a.txt")}, output).error().code, EEXIST);
  EXPECT_EQ(read(path("b.bin")), "precious");
  output.overwrite = true;
  ASSERT_TRUE(convert_edges({.path = path("a.txt")}, output));
  EXPECT_EQ(read(path("b.bin")), bytes_of<uint32_t>({0, 1}));
  EXPECT_EQ(names_in_dir(), (std::vector<std::string>{"a.txt", "b.bin"}));
}

TEST_F(EdgeListTest, AFullDiskIsNamed) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full here";
  write("a.txt", "0 1\n");
  auto done = convert_edges({.path = path("a.txt")}, {.path = "/dev/full"});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().text, "/dev/full: cannot write: No space left on device");
}

struct BadList {
  const char* name;
  EdgeFormat format;
  std::string content;
  std::string reason;  // behind the path
  bool weighted = false;
  uint64_t vertices = 0;
};

class BadListTest : public TempDirTest, public testing::WithParamInterface<BadList> {};

TEST_P(BadListTest, IsRefusedInOneLineThatSaysWhereAndWhy) {
  const BadList& bad = GetParam();
  Collect sink;
  const std::string file = write("in", bad.content);
  auto summary = read_edges(
      {.path = file, .format = bad.format, .weighted = bad.weighted, .vertices = bad.vertices},
      sink);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().text, file + ": " + bad.reason);
  EXPECT_EQ(summary.error().code, EINVAL);
}

const BadList kBadLists[] = {
    {"Empty", EdgeFormat::kSnap, "", "no edges in it"},
    {"OnlyComments", EdgeFormat::kSnap, "# a\n\n", "no edges in it"},
    {"Word", EdgeFormat::kSnap, "0 1\n# c\nabc 1\n", "line 3: 'abc' is not a vertex number"},
    {"SecondWord", EdgeFormat::kSnap, "0 1x\n",
     "line 1: '1x' is not a vertex number: digits alone are (--renumber MAP takes any words)"},
    {"Fraction", EdgeFormat::kSnap, "0 1.0\n",
     "line 1: '1.0' is not a vertex number: digits alone are (--renumber MAP takes any words)"},
    {"Negative", EdgeFormat::kSnap, "\n0 -5\n",
     "line 2: '-5' is negative, and vertices count from 0"},
    {"TooLarge", EdgeFormat::kSnap, "4294967295 0\n",
     "line 1: '4294967295' is above 4294967294, the largest vertex number (--renumber MAP numbers "
     "vertices 0 to n-1)"},
    {"FarTooLarge", EdgeFormat::kSnap, "0 18446744073709551617\n",
     "line 1: '18446744073709551617' is above 4294967294, the largest vertex number (--renumber "
     "MAP numbers vertices "
     "0 to n-1)"},
    {"NotBelowCount", EdgeFormat::kSnap, "0 4\n0 5\n",
     "line 2: '5' is not below the vertex count, 5", false, 5},
    {"OneColumn", EdgeFormat::kSnap, "0 1\n2", "line 2: 1 column where 2 are expected: '2'"},
    {"ThreeColumns", EdgeFormat::kSnap, "0\t1\t0.5\n",
     "line 1: 3 columns where 2 are expected: '0 1 0.5' (-w reads the third as weights, --columns "
     "1,2 leaves it out)"},
    {"FourColumns", EdgeFormat::kSnap, "0 1 1 1082008561\n",
     "line 1: 4 columns where 2 are expected: '0 1 1 1082008561' (--columns 1,2 takes the first "
     "two)"},
    {"NoWeight", EdgeFormat::kSnap, "0 1\n",
     "line 1: 2 columns where 3 are expected: '0 1' (without -w, edges have no weights)", true},
    {"BadWeight", EdgeFormat::kSnap, "0 1 heavy\n", "line 1: 'heavy' is not a weight", true},
    {"InfiniteWeight", EdgeFormat::kSnap, "0 1 inf\n", "line 1: 'inf' is not a weight", true},
    {"LongToken", EdgeFormat::kSnap, std::string(1000, 'x') + " 1\n",
     "line 1: 'xxxxxxxxxxxxxxxxxxxxxxxx…' is not a vertex number (--header skips a first line of "
     "names, --renumber MAP "
     "takes words for vertices)"},
    {"Unprintable", EdgeFormat::kSnap, std::string("\x01\xffz 1\n"),
     "line 1: '\\x01\\xffz' is not a vertex number"},
    {"EmptyBinary", EdgeFormat::kBin, "", "no edges in it"},
    {"TruncatedRecord", EdgeFormat::kBin, bytes_of<int32_t>({0, 1}) + "abc",
     "byte 8: truncated record: 3 of 8 bytes"},
    {"ShorterThanARecord", EdgeFormat::kBin, bytes_of<int32_t>({1}),
     "byte 0: truncated record: 4 of 8 bytes"},
    {"TruncatedWeighted", EdgeFormat::kBin, bytes_of<int32_t>({0, 1, 0, 2}),
     "byte 12: truncated record: 4 of 12 bytes", true},
    {"NegativeSource", EdgeFormat::kBin, bytes_of<int32_t>({0, 1, -7, 1}),
     "byte 8: '-7' is negative, and vertices count from 0"},
    {"NegativeBeforeTruncation", EdgeFormat::kBin, bytes_of<int32_t>({0, -1}) + "abc",
     "byte 4: '-1' is negative, and vertices count from 0"},

    {"UnsignedTooLarge", EdgeFormat::kU32, bytes_of<uint32_t>({0, 4294967295}),
     "byte 4: '4294967295' is above 4294967294, the largest vertex number (--renumber MAP numbers "
     "vertices 0 to n-1)"},
    {"BinaryNotBelowCount", EdgeFormat::kBin, bytes_of<int32_t>({0, 3}),
     "byte 4: '3' is not below the vertex count, 3", false, 3},
    {"NanWeight", EdgeFormat::kBin, bytes_of<int32_t>({0, 1, 0x7fc00000}),
     "byte 8: the weight is not a finite number", true},
};
INSTANTIATE_TEST_SUITE_P(Table, BadListTest, testing::ValuesIn(kBadLists),
                         [](const auto& row) { return std::string(row.param.name); });

TEST_F(EdgeListTest, RefusesALineThatNeverEnds) {
  auto summary = read_edges({.path = write("in", "0 1\n" + std::string(300'000, '7')),
                             .memory_budget_bytes = 1,
                             .threads = 1},
                            sink_);
  ASSERT_FALSE(summary);
  EXPECT_NE(summary.error().text.find("line 2: no line end in 65536 bytes"), std::string::npos)
      << summary.error().text;
}

TEST_F(EdgeListTest, RefusesABadVertexBeyondTheFirstPiece) {
  std::vector<int32_t> numbers(2'000'000, 1);
  numbers[1'234'567] = -1;
  numbers[1'999'999] = -2;
  const std::string file = write("in", bytes_of(numbers));
  for (const unsigned threads : {1u, 5u}) {
    auto summary =
        read_edges({.path = file, .format = EdgeFormat::kBin, .threads = threads}, sink_);
    ASSERT_FALSE(summary);
    EXPECT_EQ(summary.error().text,
              file + ": byte 4938268: '-1' is negative, and vertices count from 0");
  }
}

// A grid is limited to 2^31 vertices, as int32 is; an edge list to 2^32.
TEST_F(EdgeListTest, ALimitIsTheOutputs) {
  const std::string file = write("in", "2147483647 0\n");
  ASSERT_TRUE(read_edges({.path = file}, sink_));
  auto summary = read_edges({.path = file, .vertex_count_max = kVertexCountMax}, sink_);
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().text,
            file +
                ": line 1: '2147483647' is above 2147483646, the largest vertex number of this "
                "output (--renumber MAP numbers vertices 0 to n-1)");
}

TEST(EdgeFormatTest, NamesAreReadBack) {
  for (const EdgeFormat format :
       {EdgeFormat::kSnap, EdgeFormat::kBin, EdgeFormat::kU32, EdgeFormat::kU64, EdgeFormat::kCsv,
        EdgeFormat::kTsv, EdgeFormat::kMtx, EdgeFormat::kKonect, EdgeFormat::kDimacs,
        EdgeFormat::kMetis, EdgeFormat::kGrid, EdgeFormat::kCsr, EdgeFormat::kShards}) {
    EXPECT_EQ(*parse_edge_format(name_of(format)), format);
  }
  EXPECT_EQ(parse_edge_format("elf").error().text,
            "'elf': not an edge list format (choose snap, csv, tsv, mtx, konect, dimacs, metis, "
            "bin, u32, u64, grid, csr, shards, lists, dual or pages)");
}

}  // namespace
}  // namespace graphlane::graphfmt
