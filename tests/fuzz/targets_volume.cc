// Stubs, records of parts, volume.json and device.json.
#include <cstring>
#include <string>
#include <vector>

#include "iomgr/base/crc32c.h"
#include "iomgr/volume/stub/part_record.h"
#include "iomgr/volume/stub/stub.h"
#include "iomgr/volume/volume_json.h"
#include "tests/fuzz/target.h"

namespace graphlane::fuzz {
namespace {

// The input itself, and with a right checksum, which a fuzzer cannot guess.
void run_stub(Bytes input) {
  std::vector<uint8_t> bytes(input.begin(), input.end());
  for (const bool mends : {false, true}) {
    if (mends && bytes.size() == kStubSize) {
      const uint32_t sum = crc32c(bytes.data(), kStubSize - sizeof(uint32_t));
      std::memcpy(&bytes[kStubSize - sizeof sum], &sum, sizeof sum);
    }
    Layout layout, again;
    if (decode_stub(bytes, &layout) != StubVerdict::kStub) continue;
    require(layout.geometry.valid());
    const StubBytes encoded = encode_stub(layout);
    require(decode_stub(encoded, &again) == StubVerdict::kStub && again.file_id == layout.file_id &&
            again.logical_size == layout.logical_size && again.state == layout.state);
  }
}

void run_part_record(Bytes input) {
  const Uuid volume{.bytes = {1}}, file_id{.bytes = {2}};
  PartRecord record, again;
  if (decode_part_record(input, volume, file_id, &record) == RecordVerdict::kRecord) {
    const PartRecordBytes encoded = encode_part_record(record, volume, file_id);
    require(decode_part_record(encoded, volume, file_id, &again) == RecordVerdict::kRecord &&
            again == record);
  }
  // A whole stub, in which the input's bytes are the fields.
  if (input.size() < 40) return;
  uint64_t words[5];
  std::memcpy(words, input.data(), sizeof words);
  const PartRecord made{.flags = static_cast<uint8_t>(words[0]),
                        .ordinal = static_cast<uint32_t>(words[0] >> 8),
                        .geometry = {.stripe_depth_bytes = words[1],
                                     .device_count = static_cast<uint32_t>(words[2]),
                                     .first_device = static_cast<uint32_t>(words[2] >> 32)},
                        .generation = static_cast<uint32_t>(words[0] >> 32),
                        .synced_bytes = words[3],
                        .closed_bytes = words[4]};
  const PartRecordBytes encoded = encode_part_record(made, volume, file_id);
  if (decode_part_record(encoded, volume, file_id, &again) == RecordVerdict::kRecord) {
    require(again.geometry.valid());
  }
}

void run_volume_json(Bytes input) {
  const std::string text(input.begin(), input.end());
  const Outcome<VolumeRecord> record = parse_volume_json(text, "volume.json");
  if (!record) {
    require(record.error().code != 0 && record.error().text.find('\n') == std::string::npos);
    return;
  }
  require(record->devices.size() >= kDeviceCountMin && record->devices.size() <= kDeviceCountMax);
  if (const Outcome<std::string> again = to_json(*record)) {
    require(static_cast<bool>(parse_volume_json(*again, "volume.json")));
  }
}

void run_device_json(Bytes input) {
  const std::string text(input.begin(), input.end());
  const Outcome<DeviceRecord> record = parse_device_json(text, "device.json");
  if (record) require(static_cast<bool>(parse_device_json(to_json(*record), "device.json")));
}

constexpr FuzzTarget kVolumeTargets[] = {{"stub", run_stub},
                                         {"part_record", run_part_record},
                                         {"volume_json", run_volume_json},
                                         {"device_json", run_device_json}};

}  // namespace

std::span<const FuzzTarget> volume_targets() { return kVolumeTargets; }

}  // namespace graphlane::fuzz
