#include "iomgr/volume/stub/ownership.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace graphlane {
namespace {

// A sound file on three devices.
struct OwnedFile {
  Layout stub{.volume = *Uuid::parse("5b65bcb6b8b04876ae010d1a8f1de632"),
              .file_id = *Uuid::parse("34b9f69a10a74cc69a4732badcc81114"),
              .geometry = {.stripe_depth_bytes = 65536, .device_count = 3, .first_device = 1},
              .logical_size = 1'000'000,
              .format = kStubFormat,
              .identity = {.inode = 17, .born = 1'796'000'000'000'000'001},
              .generation = 5};
  StubSeen seen{.identity = stub.identity, .uid = 1000};
  std::vector<PartSeen> parts;
  uint32_t volume_format = 2;

  OwnedFile() {
    for (uint32_t d = 0; d < 3; ++d) {
      parts.push_back(
          {.is_there = true,
           .uid = 1000,
           .verdict = RecordVerdict::kRecord,
           .record = {
               .ordinal = d, .geometry = stub.geometry, .generation = 5, .stub = stub.identity}});
    }
  }
  OwnershipVerdict verify() const { return verify_ownership(stub, seen, parts, volume_format); }
};

struct OwnershipCase {
  const char* name;
  std::function<void(OwnedFile&)> change;
  Ownership expected;
  uint32_t device_index = 0;
};

void make_format_1(OwnedFile& f) {
  f.stub.format = kStubFormatUnbound;
  f.stub.identity = {};
  f.volume_format = 1;
  for (PartSeen& part : f.parts) part.verdict = RecordVerdict::kNone;
}

const OwnershipCase kOwnershipCases[] = {
    {"as_it_should_be", [](OwnedFile&) {}, Ownership::kOwned},
    {"roots_as_it_should_be",
     [](OwnedFile& f) {
       f.seen.uid = 0;
       for (PartSeen& part : f.parts) part.uid = 0;
     },
     Ownership::kOwned},
    {"another_inode", [](OwnedFile& f) { f.seen.identity.inode = 18; }, Ownership::kCopy},
    {"the_inode_used_again", [](OwnedFile& f) { f.seen.identity.born += 1; }, Ownership::kCopy},
    {"made_without_birth_times",
     [](OwnedFile& f) {
       f.stub.identity.born = 0;
       for (PartSeen& part : f.parts) part.record.stub.born = 0;
     },
     Ownership::kOwned},
    {"forged_without_a_birth_time", [](OwnedFile& f) { f.stub.identity.born = 0; },
     Ownership::kPartOfAnother},
    {"no_inode_named",
     [](OwnedFile& f) {
       f.stub.identity = f.seen.identity = {};
       for (PartSeen& part : f.parts) part.record.stub = {};
     },
     Ownership::kCopy},
    {"forged_for_its_own_inode",
     [](OwnedFile& f) { f.stub.identity = f.seen.identity = {.inode = 99, .born = 3}; },
     Ownership::kPartOfAnother},
    {"roots_stub_over_a_users_parts", [](OwnedFile& f) { f.seen.uid = 0; },
     Ownership::kOwnerDiffers},
    {"one_part_of_another_owner", [](OwnedFile& f) { f.parts[1].uid = 0; },
     Ownership::kOwnerDiffers, 1},
    {"a_part_missing", [](OwnedFile& f) { f.parts[2] = {}; }, Ownership::kPartMissing, 2},
    {"a_part_without_a_record", [](OwnedFile& f) { f.parts[1].verdict = RecordVerdict::kNone; },
     Ownership::kPartUnbound, 1},
    {"a_damaged_record", [](OwnedFile& f) { f.parts[1].verdict = RecordVerdict::kBadChecksum; },
     Ownership::kPartUnbound, 1},
    {"a_part_bound_to_nobody", [](OwnedFile& f) { f.parts[0].record.stub = {}; },
     Ownership::kPartUnbound},
    {"two_parts_swapped", [](OwnedFile& f) { std::swap(f.parts[0], f.parts[1]); },
     Ownership::kMisplaced},
    {"striped_otherwise", [](OwnedFile& f) { f.stub.geometry.first_device = 2; },
     Ownership::kMisplaced},
    {"another_depth", [](OwnedFile& f) { f.stub.geometry.stripe_depth_bytes = 4096; },
     Ownership::kMisplaced},
    {"a_part_of_an_older_copy", [](OwnedFile& f) { f.parts[2].record.generation = 4; },
     Ownership::kStale, 2},
    {"parts_one_ahead",
     [](OwnedFile& f) {
       for (PartSeen& part : f.parts) part.record.generation = 6;
     },
     Ownership::kOwned},
    {"one_part_ahead", [](OwnedFile& f) { f.parts[1].record.generation = 6; }, Ownership::kOwned},
    {"a_stub_of_an_older_copy", [](OwnedFile& f) { f.parts[1].record.generation = 7; },
     Ownership::kStubStale, 1},
    {"the_generation_goes_round",
     [](OwnedFile& f) {
       f.stub.generation = UINT32_MAX;
       for (PartSeen& part : f.parts) part.record.generation = 0;
     },
     Ownership::kOwned},
    {"being_made",
     [](OwnedFile& f) {
       for (PartSeen& part : f.parts) part.record.flags = PartRecord::kMaking;
     },
     Ownership::kOwned},
    {"a_removal_that_did_not_happen",
     [](OwnedFile& f) {
       for (PartSeen& part : f.parts) part.record.flags = PartRecord::kRemoved;
     },
     Ownership::kOwned},
    {"new_and_a_part_missing",
     [](OwnedFile& f) {
       f.stub.is_new = true;
       f.parts[1] = {};
     },
     Ownership::kNeverSynced, 1},
    {"new_and_a_part_unbound",
     [](OwnedFile& f) {
       f.stub.is_new = true;
       f.parts[1].record.stub = {};
     },
     Ownership::kNeverSynced, 1},
    {"new_and_a_part_of_another",
     [](OwnedFile& f) {
       f.stub.is_new = true;
       f.parts[1].record.stub.inode = 5;
     },
     Ownership::kPartOfAnother, 1},
    {"new_and_anothers_unbound_part",
     [](OwnedFile& f) {
       f.stub.is_new = true;
       f.parts[1].record.stub = {};
       f.parts[1].uid = 7;
     },
     Ownership::kOwnerDiffers, 1},
    {"new_and_a_part_in_the_making_without_its_owner",
     [](OwnedFile& f) {
       f.stub.is_new = true;
       f.parts[1].record.stub = {};
       f.parts[1].record.flags = PartRecord::kMaking;
       f.parts[1].uid = 0;
     },
     Ownership::kNeverSynced, 1},
    {"new_and_its_own_part_without_its_owner",
     [](OwnedFile& f) {
       f.stub.is_new = true;
       f.parts[1].uid = 0;
     },
     Ownership::kNeverSynced, 1},
    {"new_and_anothers_part_without_a_record",
     [](OwnedFile& f) {
       f.stub.is_new = true;
       f.parts[1].verdict = RecordVerdict::kNone;
       f.parts[1].uid = 0;
     },
     Ownership::kOwnerDiffers, 1},
    {"new_and_a_part_missing_and_one_of_another",
     [](OwnedFile& f) {
       f.stub.is_new = true;
       f.parts[0] = {};
       f.parts[2].record.stub.inode = 5;
     },
     Ownership::kPartOfAnother, 2},
    {"format_1", make_format_1, Ownership::kOwned},
    {"format_1_of_another_owner",
     [](OwnedFile& f) {
       make_format_1(f);
       f.seen.uid = 0;
     },
     Ownership::kOwnerDiffers},
    {"format_1_in_a_volume_of_format_2",
     [](OwnedFile& f) {
       make_format_1(f);
       f.volume_format = 2;
     },
     Ownership::kOldFormat},
    {"format_2_in_a_volume_being_upgraded", [](OwnedFile& f) { f.volume_format = 1; },
     Ownership::kOwned},
    {"a_copy_in_a_volume_being_upgraded",
     [](OwnedFile& f) {
       f.volume_format = 1;
       f.seen.identity.inode = 18;
     },
     Ownership::kCopy},
};

class OwnershipTest : public ::testing::TestWithParam<OwnershipCase> {};

TEST_P(OwnershipTest, Says) {
  OwnedFile file;
  GetParam().change(file);
  EXPECT_EQ(file.verify(), (OwnershipVerdict{.ownership = GetParam().expected,
                                             .device_index = GetParam().device_index}))
      << describe(file.verify().ownership);
}

INSTANTIATE_TEST_SUITE_P(Cases, OwnershipTest, ::testing::ValuesIn(kOwnershipCases),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace graphlane
