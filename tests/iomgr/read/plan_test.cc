// plan(): how a read goes, for each state of the file, pattern and memory.
#include "iomgr/read/plan.h"

#include <gtest/gtest.h>

#include <ostream>

#include "tests/sizes.h"

namespace graphlane {

void PrintTo(const ReadPlan& plan, std::ostream* out) {
  static constexpr const char* kSources[] = {"page cache", "devices", "cache"};
  static constexpr const char* kDrops[] = {"", ", drops behind", ", drops unless kept"};
  static constexpr const char* kArrivals[] = {"", ", in parts", ", in turn"};
  *out << kSources[static_cast<int>(plan.source)] << (plan.bypass ? ", bypasses" : "")
       << (plan.peeks ? ", peeks" : "") << (plan.shares ? ", shares" : "")
       << (plan.prefetch == ReadPlan::Prefetch::kSweep ? ", sweeps" : "")
       << kDrops[static_cast<int>(plan.drop)] << kArrivals[static_cast<int>(plan.arrival)];
}

namespace {

constexpr auto kByMount = ReadState::Reader::kMounted;

struct PlanCase {
  const char* name;
  ReadState file;
  AccessPattern read;
  FreeMemory memory;
  ReadPlan expected;
};

class PlanTest : public ::testing::TestWithParam<PlanCase> {};

TEST_P(PlanTest, IsAsExpected) {
  const PlanCase& one = GetParam();
  EXPECT_EQ(plan(one.file, one.read, one.memory), one.expected);
  if (one.file.reader == ReadState::Reader::kPreloaded) {
    EXPECT_EQ(bypasses_page_cache(one.file), one.expected.bypass);
  }
}

constexpr AccessPattern kPlanBlock{.length_bytes = 24 * kMiB};
constexpr AccessPattern kPlanPiece{.length_bytes = kMiB};
constexpr AccessPattern kPlanSmall{.length_bytes = 4096};

const PlanCase kPlanCases[] = {
    // ---- preloaded
    {"FitsGoesThroughThePageCache", {.fit = MemoryFit::kOnce}, kPlanBlock, {}, {}},
    {"TooLargeBypassesThePageCache",
     {.fit = MemoryFit::kNot},
     kPlanBlock,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"ODirectBypassesThePageCache",
     {.o_direct = true},
     kPlanSmall,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"BufferedOverridesODirect", {.mode = IoMode::kBuffered, .o_direct = true}, kPlanBlock, {}, {}},
    {"SweepsOnDisks",
     {.fit = MemoryFit::kOnce, .on_disks = true},
     kPlanBlock,
     {},
     {.prefetch = ReadPlan::Prefetch::kSweep, .drop = ReadPlan::Drop::kUnlessKept}},
    {"SmallReadsAreNoSweep", {.fit = MemoryFit::kOnce, .on_disks = true}, kPlanSmall, {}, {}},
    {"TooLargeDoesNotSweepThePageCache",
     {.fit = MemoryFit::kNot, .on_disks = true},
     kPlanBlock,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"TooLargeIsShared",
     {.fit = MemoryFit::kNot, .may_share = true},
     kPlanBlock,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true, .shares = true}},
    {"SmallReadsAreNotShared",
     {.fit = MemoryFit::kNot, .may_share = true},
     kPlanSmall,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"FitsIsNotShared", {.fit = MemoryFit::kOnce, .may_share = true}, kPlanBlock, {}, {}},
    {"FitsButNotBesideOthersIsShared",
     {.fit = MemoryFit::kOnce, .may_share = true},
     kPlanBlock,
     {.together = MemoryFit::kNot},
     {.shares = true}},
    {"MappedIsShared",
     {.fit = MemoryFit::kOnce, .may_share = true, .maps = true},
     kPlanBlock,
     {},
     {.shares = true}},
    // ---- mounted
    {"MountedFitsTwice", {.reader = kByMount}, kPlanPiece, {}, {.peeks = true}},
    {"MountedVerifies", {.reader = kByMount, .verifies = true}, kPlanPiece, {}, {.peeks = true}},
    {"MountedFitsOnceKeepsTheMountsPages",
     {.reader = kByMount, .fit = MemoryFit::kOnce},
     kPlanPiece,
     {},
     {.source = ReadPlan::Source::kDevices, .bypass = true, .peeks = true}},
    {"MountedFitsOnceTogether",
     {.reader = kByMount},
     kPlanPiece,
     {.together = MemoryFit::kOnce},
     {.source = ReadPlan::Source::kDevices, .bypass = true, .peeks = true}},
    {"MountedDoesNotFitTogether",
     {.reader = kByMount},
     kPlanPiece,
     {.together = MemoryFit::kNot},
     {.source = ReadPlan::Source::kCache,
      .bypass = true,
      .peeks = true,
      .drop = ReadPlan::Drop::kBehindSweep}},
    {"MountedDoesNotFitTogetherBesideAWriter",
     {.reader = kByMount},
     {.length_bytes = kMiB, .has_writer = true},
     {.together = MemoryFit::kNot},
     {.source = ReadPlan::Source::kCache, .bypass = true, .peeks = true}},
    {"MountedTooLargeDropsBehind",
     {.reader = kByMount, .fit = MemoryFit::kNot},
     kPlanPiece,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true, .drop = ReadPlan::Drop::kBehindSweep}},
    {"MountedTooLargeBesideAnotherHandleKeepsItsPages",
     {.reader = kByMount, .fit = MemoryFit::kNot},
     {.length_bytes = kMiB, .one_handle = false},
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"MountedInTurnLeavesNoPages",
     {.reader = kByMount, .fit = MemoryFit::kNot, .in_turn = true},
     kPlanPiece,
     {},
     {.source = ReadPlan::Source::kCache, .bypass = true, .arrival = ReadPlan::Arrival::kInTurn}},
    {"MountedSmallPiecesInTurnStayInThePartsPageCache",
     {.reader = kByMount, .fit = MemoryFit::kNot, .in_turn = true},
     kPlanSmall,
     {},
     {.source = ReadPlan::Source::kCache, .arrival = ReadPlan::Arrival::kInTurn}},
    {"MountedLongRequestsAreInFlightTogether",
     {.reader = kByMount},
     {.length_bytes = kMiB / 2, .request_max_bytes = kMiB},
     {},
     {.peeks = true, .arrival = ReadPlan::Arrival::kParts}},
    {"MountedShorterRequestsAreWhole",
     {.reader = kByMount},
     {.length_bytes = kMiB / 2 - 1, .request_max_bytes = kMiB},
     {},
     {.peeks = true}},
    {"MountedODirect",
     {.reader = kByMount, .o_direct = true, .on_disks = true},
     kPlanPiece,
     {.together = MemoryFit::kNot},
     {.source = ReadPlan::Source::kCache, .bypass = true}},
    {"MountedBufferedOverridesODirect",
     {.reader = kByMount, .mode = IoMode::kBuffered, .o_direct = true},
     kPlanPiece,
     {},
     {.peeks = true}},
    {"MountedSweepsOverSeveralFilesOnDisks",
     {.reader = kByMount, .on_disks = true},
     kPlanPiece,
     {},
     {.peeks = true, .prefetch = ReadPlan::Prefetch::kSweep}},
    {"MountedSweepsToTheEndOfAFile",
     {.reader = kByMount, .on_disks = true},
     {.length_bytes = 4096, .to_end = true},
     {},
     {.peeks = true, .prefetch = ReadPlan::Prefetch::kSweep}},
    {"MountedLeavesOneFileToTheKernel",
     {.reader = kByMount, .on_disks = true},
     {.length_bytes = kMiB, .alone = true},
     {},
     {.peeks = true}},
};

INSTANTIATE_TEST_SUITE_P(All, PlanTest, ::testing::ValuesIn(kPlanCases),
                         [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace graphlane
