#include "adapters/share/coordinator/graph_plan.h"

#include <gtest/gtest.h>

#include "tests/sizes.h"

namespace graphlane::share {
namespace {

constexpr uint64_t kPartitionBytes = 100 * kMiB;

// Four partitions of 100 MiB, with edges of 8 bytes.
struct PlanCase {
  const char* name;
  uint64_t part_mib;
  bool is_resident;
  uint64_t chunk_bytes_max;
  uint32_t unit_count;
  uint32_t record_bytes = 8;
  bool by_loader = false;
  size_t buffer_count_max = 1000;
};

class GraphPlanTest : public testing::TestWithParam<PlanCase> {
 protected:
  GraphPlan plan() const {
    const PlanCase& given = GetParam();
    const Layout layout{.by_loader = given.by_loader,
                        .partition_count = 4,
                        .record = {given.record_bytes, 0},
                        .vertex_count = 1'000'000,
                        .ranges = {}};
    const std::vector<uint64_t> sizes(4, given.by_loader ? 0 : kPartitionBytes);
    return plan_graph(layout, sizes, /*vertex_bytes=*/8,
                      {.part_bytes = given.part_mib * kMiB,
                       .buffer_count_max = given.buffer_count_max,
                       .cache = {.size_bytes = 64 * kMiB, .core_count = 2},
                       .order = LoadOrder::kPriority});
  }
};

TEST_P(GraphPlanTest, ChunksUnitsAndBatchesFitThePart) {
  const PlanCase& expected = GetParam();
  const GraphPlan plan = this->plan();
  const uint64_t part_bytes = expected.part_mib * kMiB;
  EXPECT_EQ(plan.is_resident, expected.is_resident);
  EXPECT_EQ(plan.units.count(), expected.unit_count);
  EXPECT_LE(plan.chunk_bytes, expected.chunk_bytes_max);
  EXPECT_EQ(plan.has_edges, expected.record_bytes != 0 && !expected.by_loader);
  EXPECT_LE(plan.batching.batch_bytes, part_bytes / (plan.is_resident ? 8 : 24));
  EXPECT_EQ(plan.batching.ahead_bytes, part_bytes / 8);
  EXPECT_EQ(plan.batching.unit_bytes, plan.units.bytes());
}

// An eighth of a part of 400 MiB stays free. A 32nd of it is 12.5 MiB, of which 8 MiB is the next
// power of two.
INSTANTIATE_TEST_SUITE_P(
    Graphs, GraphPlanTest,
    testing::Values(PlanCase{"Fits", 458, true, 64 * kMiB, 4},
                    PlanCase{"FitsBarelyNot", 457, false, 8 * kMiB, 4 * 13},
                    PlanCase{"IsLarge", 400, false, 8 * kMiB, 4 * 13},
                    PlanCase{"IsVeryLarge", 16, false, kMiB, 4 * 100},
                    PlanCase{"HasUnknownRecords", 400, false, UINT64_MAX, 4, 0},
                    PlanCase{"IsALoaders", 4000, false, UINT64_MAX, 4, 8, true},
                    PlanCase{"HasMoreUnitsThanDescriptors", 4000, false, 64 * kMiB, 16, 8, false,
                             3}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace graphlane::share
