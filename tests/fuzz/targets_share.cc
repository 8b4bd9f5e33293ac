// The share kit: messages of jobs, label files, overlays.
#include <cstddef>
#include <cstring>
#include <string_view>
#include <vector>

#include "adapters/share/client/overlay.h"
#include "adapters/share/schedule/labels.h"
#include "adapters/share/wire/layout.h"
#include "iomgr/base/crc32c.h"
#include "tests/fuzz/target.h"

namespace graphlane::fuzz {
namespace {

std::string_view text_of(Bytes input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

void run_kit_layout(Bytes input) {
  const Outcome<share::Layout> layout = share::Layout::from_bytes(text_of(input));
  if (!layout) return;
  const Outcome<share::Layout> again = share::Layout::from_bytes(layout->to_bytes());
  require(again && *again == *layout);
}

void run_labels(Bytes input) {
  constexpr uint64_t kHash = 1, kChunkBytes = 4096;
  const std::vector<uint64_t> partition_bytes = {10'000, 0, 4096, 81'920};
  std::vector<char> bytes(input.begin(), input.end());
  share::LabelHeader header;
  for (const bool mends : {false, true}) {
    if (mends && bytes.size() >= sizeof header) {  // a fuzzer cannot guess it
      std::memcpy(&header, bytes.data(), sizeof header);
      header.magic = share::LabelHeader::kMagic;
      header.version = share::LabelHeader::kVersion;
      header.graph_hash = kHash;
      header.chunk_bytes = kChunkBytes;
      header.partition_count = static_cast<uint32_t>(partition_bytes.size());
      header.payload_crc = crc32c(reinterpret_cast<const uint8_t*>(bytes.data()) + sizeof header,
                                  bytes.size() - sizeof header);
      header.header_crc = crc32c(reinterpret_cast<const uint8_t*>(&header),
                                 offsetof(share::LabelHeader, header_crc));
      std::memcpy(bytes.data(), &header, sizeof header);
    }
    (void)share::parse_label_header(bytes, bytes.size(), kHash, kChunkBytes, partition_bytes);
    const auto labels = share::Labels::parse(bytes, kHash, kChunkBytes, partition_bytes);
    if (!labels) continue;
    for (uint32_t partition = 0; partition < partition_bytes.size(); ++partition) {
      for (uint32_t chunk = 0; chunk < labels->chunk_count(partition); ++chunk) {
        const auto table = labels->table(partition, chunk);
        require(table.empty() || table.front().vertex <= table.back().vertex);
      }
    }
  }
}

void run_overlay(Bytes input) {
  const std::string_view text = text_of(input);
  const Outcome<share::ChangedChunks> chunks = share::parse_overlay({text.data(), text.size()});
  if (!chunks) return;
  uint64_t sum = 0;  // each byte is there
  for (const auto& [number, bytes] : *chunks) {
    for (const char byte : bytes) sum += static_cast<uint8_t>(byte);
  }
  require(sum < UINT64_MAX &&
          static_cast<bool>(share::parse_overlay(share::make_overlay(*chunks))));
}

constexpr FuzzTarget kShareTargets[] = {
    {"kit_layout", run_kit_layout}, {"labels", run_labels}, {"overlay", run_overlay}};

}  // namespace

std::span<const FuzzTarget> share_targets() { return kShareTargets; }

}  // namespace graphlane::fuzz
