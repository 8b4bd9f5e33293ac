#include "adapters/share/coordinator/snapshots.h"

#include <gtest/gtest.h>

#include <random>

#include "adapters/share/client/overlay.h"
#include "adapters/share/memory/sealed_memory.h"

namespace graphlane::share {
namespace {

using Chunks = std::map<uint32_t, std::string>;

// The changed chunks that a job of `version` sees in the partition.
Chunks seen(const Snapshots& snapshots, uint32_t partition, uint64_t version) {
  Chunks chunks;
  const Fd* overlay = snapshots.overlay(partition, version);
  if (overlay == nullptr) return chunks;
  const auto size = sealed_size(overlay->get());
  EXPECT_TRUE(size);
  const auto mapping = Mapping::of_sealed(overlay->get(), *size);
  EXPECT_TRUE(mapping);
  const auto parsed = parse_overlay(mapping->bytes());
  EXPECT_TRUE(parsed);
  for (const auto& [chunk, bytes] : *parsed) {
    chunks[chunk] = std::string(bytes.begin(), bytes.end());
  }
  return chunks;
}

TEST(SnapshotsTest, AJobSeesTheVersionAtItsStart) {
  // Figure 7: job 1, an update of chunk 3, job 2.
  Snapshots snapshots;
  const uint64_t job1 = snapshots.newest_version();
  ASSERT_TRUE(snapshots.update(0, 3, std::string("new")));
  const uint64_t job2 = snapshots.newest_version();
  EXPECT_EQ(seen(snapshots, 0, job1), Chunks{});
  EXPECT_EQ(seen(snapshots, 0, job2), (Chunks{{3, "new"}}));
}

TEST(SnapshotsTest, DropsCopiesAfterTheirLastReader) {
  Snapshots snapshots;
  ASSERT_TRUE(snapshots.update(0, 3, std::string(1000, 'a')));
  const uint64_t reader = snapshots.newest_version();
  ASSERT_TRUE(snapshots.update(0, 3, std::string(1000, 'b')));
  snapshots.keep_for({reader});
  EXPECT_EQ(seen(snapshots, 0, reader), (Chunks{{3, std::string(1000, 'a')}}));
  EXPECT_GT(snapshots.bytes(), 2000u);
  snapshots.keep_for({});
  EXPECT_LT(snapshots.bytes(), 1100u);
  EXPECT_EQ(seen(snapshots, 0, snapshots.newest_version()), (Chunks{{3, std::string(1000, 'b')}}));
}

TEST(SnapshotsTest, AgreesWithCopiesOfTheWholeGraph) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    Snapshots snapshots;
    std::map<uint32_t, Chunks> newest;                            // by partition
    std::multimap<uint64_t, std::map<uint32_t, Chunks>> of_jobs;  // by version
    for (int step = 0; step < 60; ++step) {
      if (random() % 3 != 0) {
        const uint32_t partition = random() % 3;
        const uint32_t chunk = random() % 4;
        const std::string bytes(random() % 50, static_cast<char>('a' + step % 26));
        ASSERT_TRUE(snapshots.update(partition, chunk, bytes));
        newest[partition][chunk] = bytes;
      } else if (random() % 2 != 0 || of_jobs.empty()) {
        of_jobs.emplace(snapshots.newest_version(), newest);
      } else {
        of_jobs.erase(std::next(of_jobs.begin(), random() % of_jobs.size()));
      }
      std::multiset<uint64_t> versions;
      for (const auto& [version, graph] : of_jobs) versions.insert(version);
      snapshots.keep_for(versions);
      for (const auto& [version, graph] : of_jobs) {
        for (uint32_t p = 0; p < 3; ++p) {
          const auto expected = graph.contains(p) ? graph.at(p) : Chunks{};
          ASSERT_EQ(seen(snapshots, p, version), expected) << "seed " << seed << " step " << step;
        }
      }
    }
  }
}

TEST(OverlayTest, RejectsDamage) {
  ChangedChunks chunks;
  const std::string bytes = "0123456789";
  chunks[2] = bytes;
  chunks[7] = std::span(bytes).subspan(0, 3);
  const std::string overlay = make_overlay(chunks);
  EXPECT_EQ(parse_overlay(overlay)->size(), 2u);
  for (size_t length = 0; length < overlay.size(); ++length) {
    EXPECT_FALSE(parse_overlay(std::string_view(overlay).substr(0, length))) << length;
  }
}

}  // namespace
}  // namespace graphlane::share
