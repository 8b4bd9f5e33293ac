// plan(): how a read goes, for each state of the file, pattern and memory.
#include "iomgr/read/plan.h"

#include <gtest/gtest.h>

#include <ostream>

#include "tests/sizes.h"

namespace graphlane {

void PrintTo(const ReadPlan& plan, std::ostream* out) {
  static constexpr const char* kSources[] = {"page cache", "devices", "cache"};
  static constexpr const char* kDrops[] = {"", ", drops behind", ", drops unless kept"};
  *out << kSources[static_cast<int>(plan.source)] << (plan.bypass ? ", bypasses" : "")
       << (plan.peeks ? ", peeks" : "") << (plan.shares ? ", shares" : "")
       << (plan.prefetch == ReadPlan::Prefetch::kSweep ? ", sweeps" : "")
       << kDrops[static_cast<int>(plan.drop)];
}

namespace {

constexpr auto kPreloaded = ReadState::Reader::kPreloaded;
constexpr auto kMounted = ReadState::Reader::kMounted;

struct Case {
  const char* name;
  ReadState file;
  AccessPattern read;
  FreeMemory memory;
  ReadPlan expected;
};

class PlanTest : public ::testing::TestWithParam<Case> {};

TEST_P(PlanTest, IsAsExpected) {
  const Case& one = GetParam();
  EXPECT_EQ(plan(one.file, one.read, one.memory), one.expected);
}

constexpr AccessPattern kBlock{.length_bytes = 24 * kMiB};
constexpr AccessPattern kPiece{.length_bytes = kMiB};
constexpr AccessPattern kSmall{.length_bytes = 4096};

const Case kCases[] = {
    // ---- preloaded
    {"FitsGoesThroughThePageCache", {.fit = MemoryFit::kOnce}, kBlock, {}, {}},
    {"TooLargeBypassesThePageCache",
     {.fit = MemoryFit::kNot},
     kBlock,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"ODirectBypassesThePageCache",
     {.o_direct = true},
     kSmall,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"BufferedOverridesODirect", {.mode = IoMode::kBuffered, .o_direct = true}, kBlock, {}, {}},
    {"SweepsOnDisks",
     {.fit = MemoryFit::kOnce, .on_disks = true},
     kBlock,
     {},
     {.prefetch = ReadPlan::Prefetch::kSweep, .drop = ReadPlan::Drop::kUnlessKept}},
    {"SmallReadsAreNoSweep", {.fit = MemoryFit::kOnce, .on_disks = true}, kSmall, {}, {}},
    {"TooLargeDoesNotSweepThePageCache",
     {.fit = MemoryFit::kNot, .on_disks = true},
     kBlock,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"TooLargeIsShared",
     {.fit = MemoryFit::kNot, .may_share = true},
     kBlock,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true, .shares = true}},
    {"SmallReadsAreNotShared",
     {.fit = MemoryFit::kNot, .may_share = true},
     kSmall,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"FitsIsNotShared", {.fit = MemoryFit::kOnce, .may_share = true}, kBlock, {}, {}},
    {"FitsButNotBesideOthersIsShared",
     {.fit = MemoryFit::kOnce, .may_share = true},
     kBlock,
     {.together = MemoryFit::kNot},
     {.shares = true}},
    {"MappedIsShared",
     {.fit = MemoryFit::kOnce, .may_share = true, .maps = true},
     kBlock,
     {},
     {.shares = true}},
    // ---- mounted
    {"MountedFitsTwice", {.reader = kMounted}, kPiece, {}, {.peeks = true}},
    {"MountedVerifiesDoesNotSplice", {.reader = kMounted, .verifies = true}, kPiece, {}, {}},
    {"MountedFitsOnceKeepsTheMountsPages",
     {.reader = kMounted, .fit = MemoryFit::kOnce},
     kPiece,
     {},
     {.source = ReadPlan::Source::kDevices, .bypass = true, .peeks = true}},
    {"MountedFitsOnceTogether",
     {.reader = kMounted},
     kPiece,
     {.together = MemoryFit::kOnce},
     {.source = ReadPlan::Source::kDevices, .bypass = true, .peeks = true}},
    {"MountedDoesNotFitTogether",
     {.reader = kMounted},
     kPiece,
     {.together = MemoryFit::kNot},
     {.source = ReadPlan::Source::kCache,
      .bypass = true,
      .peeks = true,
      .drop = ReadPlan::Drop::kBehindSweep}},
    {"MountedDoesNotFitTogetherBesideAWriter",
     {.reader = kMounted},
     {.length_bytes = kMiB, .has_writer = true},
     {.together = MemoryFit::kNot},
     {.source = ReadPlan::Source::kCache, .bypass = true, .peeks = true}},
    {"MountedTooLargeDropsBehind",
     {.reader = kMounted, .fit = MemoryFit::kNot},
     kPiece,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true, .drop = ReadPlan::Drop::kBehindSweep}},
    {"MountedTooLargeBesideAnotherHandleKeepsItsPages",
     {.reader = kMounted, .fit = MemoryFit::kNot},
     {.length_bytes = kMiB, .one_handle = false},
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"MountedInTurnLeavesNoPages",
     {.reader = kMounted, .fit = MemoryFit::kNot, .in_turn = true},
     kPiece,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"MountedSmallPiecesInTurnStayInThePartsPageCache",
     {.reader = kMounted, .fit = MemoryFit::kNot, .in_turn = true},
     kSmall,
     {},
     {.source = ReadPlan::Source::kCache}},
    {"MountedODirect",
     {.reader = kMounted, .o_direct = true, .on_disks = true},
     kPiece,
     {.together = MemoryFit::kNot},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"MountedBufferedOverridesODirect",
     {.reader = kMounted, .mode = IoMode::kBuffered, .o_direct = true},
     kPiece,
     {},
     {.peeks = true}},
    {"MountedSweepsOverSeveralFilesOnDisks",
     {.reader = kMounted, .on_disks = true},
     kPiece,
     {},
     {.peeks = true, .prefetch = ReadPlan::Prefetch::kSweep}},
    {"MountedSweepsToTheEndOfAFile",
     {.reader = kMounted, .on_disks = true},
     {.length_bytes = 4096, .to_end = true},
     {},
     {.peeks = true, .prefetch = ReadPlan::Prefetch::kSweep}},
    {"MountedLeavesOneFileToTheKernel",
     {.reader = kMounted, .on_disks = true},
     {.length_bytes = kMiB, .alone = true},
     {},
     {.peeks = true}},
};

INSTANTIATE_TEST_SUITE_P(All, PlanTest, ::testing::ValuesIn(kCases),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(ArrivalTest, LongRequestsAreInFlightTogether) {
  EXPECT_EQ(arrival_of({.in_turn = true}, kMiB, kMiB), Arrival::kInTurn);
  EXPECT_EQ(arrival_of({}, kMiB / 2, kMiB), Arrival::kParts);
  EXPECT_EQ(arrival_of({}, kMiB / 2 - 1, kMiB), Arrival::kWhole);
}

}  // namespace
}  // namespace graphlane
