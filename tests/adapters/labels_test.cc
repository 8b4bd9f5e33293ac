#include "adapters/share/schedule/labels.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "adapters/share/coordinator/label_file.h"
#include "adapters/share/memory/sealed_memory.h"
#include "iomgr/base/crc32c.h"

namespace graphlane::share {
namespace {

constexpr uint64_t kHash = 0x1234;
constexpr uint64_t kChunkBytes = 192;

// Edges of `record` bytes. Their sources are drawn below `width`; the other bytes are random.
std::string random_edges(std::mt19937& random, RecordFormat record, size_t count, uint32_t width) {
  std::string bytes(count * record.size_bytes, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  for (size_t i = 0; i < count; ++i) {
    const uint32_t source = random() % width;
    std::memcpy(bytes.data() + i * record.size_bytes + record.source_offset_bytes, &source, 4);
  }
  return bytes;
}

// Algorithm 1, edge by edge: a chunk ends when it has chunk_bytes, or the partition ends.
std::vector<std::map<uint32_t, uint32_t>> label_by_hand(const std::string& bytes,
                                                        RecordFormat record, uint64_t chunk_bytes) {
  std::vector<std::map<uint32_t, uint32_t>> chunks;
  std::map<uint32_t, uint32_t> table;
  uint64_t edge_count = 0;
  for (size_t at = 0; at < bytes.size(); at += record.size_bytes) {
    uint32_t source;
    std::memcpy(&source, bytes.data() + at + record.source_offset_bytes, 4);
    ++table[source];
    ++edge_count;
    if (edge_count * record.size_bytes >= chunk_bytes || at + record.size_bytes == bytes.size()) {
      chunks.push_back(std::exchange(table, {}));
      edge_count = 0;
    }
  }
  return chunks;
}

struct Graph {
  std::vector<std::string> partitions;
  std::vector<uint64_t> sizes;
  std::string labels;
};

Graph random_graph(uint32_t seed, RecordFormat record, uint32_t width) {
  std::mt19937 random(seed);
  Graph graph;
  const uint32_t partition_count = random() % 7 + 1;
  for (uint32_t p = 0; p < partition_count; ++p) {
    graph.partitions.push_back(random_edges(random, record, random() % 120, width));
    graph.sizes.push_back(graph.partitions.back().size());
  }
  const Units units(graph.sizes, seed % 5 == 0 ? kUncut : (random() % 3 + 1) * kChunkBytes);
  LabelBuilder builder(units, record, kChunkBytes);
  for (uint32_t unit = units.count(); unit-- > 0;) {  // any order
    const std::string& partition = graph.partitions[units.partition_of(unit)];
    const std::span bytes(partition.data() + units.offset_of(unit), units.bytes_of(unit));
    builder.add(unit, label_chunks(bytes, record, kChunkBytes));
  }
  graph.labels = builder.to_bytes(kHash);
  return graph;
}

TEST(LabelsTest, FollowAlgorithmOne) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    const RecordFormat record = seed % 2 ? RecordFormat{8, 0} : RecordFormat{12, 4};
    const uint32_t width = seed % 3 ? 40 : UINT32_MAX;  // counted in place, or sorted
    const Graph graph = random_graph(seed, record, width);
    const auto labels = Labels::parse(graph.labels, kHash, kChunkBytes, graph.sizes);
    ASSERT_TRUE(labels) << labels.error().text;
    for (uint32_t p = 0; p < graph.partitions.size(); ++p) {
      const auto chunks = label_by_hand(graph.partitions[p], record, kChunkBytes);
      ASSERT_EQ(labels->chunk_count(p), chunks.size()) << "seed " << seed;
      for (uint32_t k = 0; k < chunks.size(); ++k) {
        std::map<uint32_t, uint32_t> table;
        for (const ChunkEntry& entry : labels->table(p, k)) table[entry.vertex] = entry.edge_count;
        ASSERT_EQ(table, chunks[k]) << "seed " << seed << " partition " << p << " chunk " << k;
      }
    }
  }
}

TEST(LabelsTest, ActiveEdgeCountsEqualADirectCount) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const RecordFormat record{8, 0};
    const std::string edges = random_edges(random, record, random() % 100, 300);
    std::vector<uint64_t> active(4);  // 256 vertices: sources beyond are not active
    for (uint64_t& word : active) word = random() % 2 ? 0 : uint64_t{random()} << 20;
    std::vector<ChunkEntry> table;
    label_chunk(edges, record, table);
    uint64_t expected = 0;
    for (size_t at = 0; at < edges.size(); at += 8) {
      uint32_t source;
      std::memcpy(&source, edges.data() + at, 4);
      expected += source < 256 && (active[source / 64] >> source % 64 & 1);
    }
    ASSERT_EQ(count_active_edges(table, active), expected);
    ASSERT_EQ(any_active_edge(table, active), expected > 0);
  }
}

TEST(LabelsTest, FindsAnyDamagedByte) {
  const Graph graph = random_graph(5, {8, 0}, 40);
  for (size_t at = 0; at < graph.labels.size(); ++at) {
    std::string damaged = graph.labels;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x10);
    ASSERT_FALSE(Labels::parse(damaged, kHash, kChunkBytes, graph.sizes)) << "byte " << at;
  }
  for (size_t length = 0; length < graph.labels.size(); length += 7) {
    ASSERT_FALSE(Labels::parse(std::string_view(graph.labels).substr(0, length), kHash, kChunkBytes,
                               graph.sizes));
  }
}

TEST(LabelsTest, RejectsAnotherGraph) {
  const Graph graph = random_graph(6, {8, 0}, 40);
  EXPECT_FALSE(Labels::parse(graph.labels, kHash + 1, kChunkBytes, graph.sizes));
  auto sizes = graph.sizes;
  sizes[0] += 8 * kChunkBytes;
  EXPECT_FALSE(Labels::parse(graph.labels, kHash, kChunkBytes, sizes));
}

// Any user can compute the checksums. The code once divided by chunks of no bytes, and believed in
// tables of 2^64 bytes.
TEST(LabelsTest, RejectsImpossibleCounts) {
  const Graph graph = random_graph(5, {8, 0}, 40);
  LabelHeader good;
  std::memcpy(&good, graph.labels.data(), sizeof good);
  const auto reason = [&](const auto& spoil) {
    std::string bytes = graph.labels;
    LabelHeader header = good;
    spoil(header);
    // The end of the chunks and of the entries, as the header says.
    const auto put = [&](uint64_t word, uint64_t value) {
      std::memcpy(bytes.data() + sizeof header + 8 * word, &value, 8);
    };
    put(good.partition_count, header.chunk_count);
    put(good.partition_count + 1 + good.chunk_count, header.entry_count);
    const auto crc = [](const void* data, size_t length) {
      return crc32c(static_cast<const uint8_t*>(data), length);
    };
    header.payload_crc = crc(bytes.data() + sizeof header, bytes.size() - sizeof header);
    header.header_crc = crc(&header, offsetof(LabelHeader, header_crc));
    std::memcpy(bytes.data(), &header, sizeof header);
    const auto labels = Labels::parse(bytes, kHash, kChunkBytes, graph.sizes);
    return labels ? std::string("good") : labels.error().text;
  };
  constexpr uint64_t kMany = uint64_t{1} << 61;  // 2^64 bytes
  EXPECT_EQ(reason([](LabelHeader&) {}), "good");
  EXPECT_EQ(reason([](LabelHeader& it) { it.chunk_bytes = 0; }),
            "byte 16: for chunks of 0 bytes, not 192");
  EXPECT_EQ(reason([](LabelHeader& it) { it.chunk_count += kMany; }).substr(0, 8), "byte 24:");
  EXPECT_EQ(reason([](LabelHeader& it) { it.entry_count += kMany; }).substr(0, 8), "byte 24:");
}

TEST(GraphHashTest, ChangesWithTheFilesAndTheLayout) {
  Layout layout{
      .partition_count = 1, .record = {8, 0}, .vertex_count = 4, .ranges = {{0, 0, 0, 8}}};
  const FileIdentity file{.device = 1, .inode = 2, .size_bytes = 8, .modified_ns = 5};
  const uint64_t hash = graph_hash(layout, {&file, 1});
  FileIdentity copy = file;
  copy.inode = 3;  // a copy with its time, as of cp -a
  EXPECT_EQ(graph_hash(layout, {&copy, 1}), hash);
  copy.modified_ns = 6;
  EXPECT_NE(graph_hash(layout, {&copy, 1}), hash);
  layout.ranges[0].length_bytes = 0;
  EXPECT_NE(graph_hash(layout, {&file, 1}), hash);
}

class LabelFileTest : public testing::Test {
 protected:
  LabelFileTest() {
    std::string name = (std::filesystem::temp_directory_path() / "share-labels-XXXXXX").string();
    dir_ = ::mkdtemp(name.data());
    fd_ = Fd(::open(dir_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    graph_ = random_graph(7, {8, 0}, 40);
  }
  ~LabelFileTest() override { std::filesystem::remove_all(dir_); }

  std::string path() const { return dir_ + "/" + label_file_name("column"); }

  std::string dir_;
  Fd fd_;
  Graph graph_;
};

TEST_F(LabelFileTest, ReadsBackWhatItWrote) {
  ASSERT_TRUE(write_label_file(fd_.get(), "column", graph_.labels));
  const auto read_within = [&](uint64_t bytes_max) {
    return read_label_file(fd_.get(), "column", ::geteuid(), bytes_max, kHash, kChunkBytes,
                           graph_.sizes);
  };
  const auto read = read_within(graph_.labels.size());
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_FALSE(read_within(graph_.labels.size() - 1));
  const auto mapping = Mapping::of_sealed(read->get(), sealed_size(read->get()).value_or(0));
  ASSERT_TRUE(mapping);
  EXPECT_EQ(std::string_view(mapping->data(), mapping->size()), graph_.labels);
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(dir_)) ++count;
  EXPECT_EQ(count, 1);  // no temporary is left
}

TEST_F(LabelFileTest, ReportsErrorsInOneLine) {
  const auto reason = [&](uint64_t hash, uint64_t chunk_bytes) {
    const auto read = read_label_file(fd_.get(), "column", ::geteuid(), UINT64_MAX, hash,
                                      chunk_bytes, graph_.sizes);
    return read ? std::string("good") : read.error().text;
  };
  EXPECT_NE(reason(kHash, kChunkBytes).find("No such file"), std::string::npos);
  ASSERT_TRUE(write_label_file(fd_.get(), "column", graph_.labels));
  EXPECT_EQ(reason(kHash, 2 * kChunkBytes),
            ".graphlane-chunks-column: byte 16: for chunks of 192 bytes, not 384");
  EXPECT_EQ(reason(kHash + 1, kChunkBytes), ".graphlane-chunks-column: byte 8: of another graph");
  ASSERT_EQ(::truncate(path().c_str(), 100), 0);
  EXPECT_NE(reason(kHash, kChunkBytes).find("bytes expected in all"), std::string::npos);
  std::filesystem::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(reason(kHash, kChunkBytes), ".graphlane-chunks-column: not a regular file");
}

TEST_F(LabelFileTest, IsTrustedFromRootTheOwnerAndOurUserUnlessOthersMayWriteIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uid_t kOwner = 65533;
  constexpr uid_t kStranger = 65534;
  const auto believed = [&](uid_t writer, mode_t mode) {
    EXPECT_TRUE(write_label_file(fd_.get(), "column", graph_.labels));
    EXPECT_EQ(::chown(path().c_str(), writer, writer), 0);
    EXPECT_EQ(::chmod(path().c_str(), mode), 0);
    const auto read =
        read_label_file(fd_.get(), "column", kOwner, UINT64_MAX, kHash, kChunkBytes, graph_.sizes);
    EXPECT_TRUE(read || read.error().code == EPERM);
    return static_cast<bool>(read);
  };
  EXPECT_TRUE(believed(0, 0644));
  EXPECT_TRUE(believed(kOwner, 0644));
  EXPECT_FALSE(believed(kStranger, 0644));
  EXPECT_FALSE(believed(kOwner, 0664));
  EXPECT_FALSE(believed(0, 0646));
}

TEST_F(LabelFileTest, IsWrittenOnlyInTheGraphsDirectory) {
  std::ofstream(dir_ + "/column") << "edges";
  std::ofstream(dir_ + "/other") << "edges";
  struct stat st;
  ASSERT_EQ(::stat((dir_ + "/column").c_str(), &st), 0);
  const FileIdentity column{
      .device = st.st_dev, .inode = st.st_ino, .size_bytes = 5, .modified_ns = 0};
  EXPECT_TRUE(is_beside(fd_.get(), "column", column));
  EXPECT_FALSE(is_beside(fd_.get(), "other", column));
  const std::string around = "../" + std::filesystem::path(dir_).filename().string() + "/column";
  EXPECT_FALSE(is_beside(fd_.get(), around, column));
  ASSERT_EQ(::symlink("column", (dir_ + "/link").c_str()), 0);
  EXPECT_FALSE(is_beside(fd_.get(), "link", column));
}

}  // namespace
}  // namespace graphlane::share
