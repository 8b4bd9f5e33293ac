#include "adapters/share/coordinator/snapshots.h"

#include "adapters/share/client/overlay.h"
#include "adapters/share/memory/sealed_memory.h"

namespace graphlane::share {

Outcome<void> Snapshots::update(uint32_t partition, uint32_t chunk, std::span<const char> bytes) {
  ChangedChunks chunks;
  Mapping before;
  std::vector<Overlay>& overlays = partitions_[partition];
  if (!overlays.empty()) {
    auto mapped = Mapping::of_sealed(overlays.back().memory.get(), overlays.back().size_bytes);
    if (!mapped) return mapped.error();
    before = std::move(*mapped);
    auto parsed = parse_overlay(before.bytes());
    if (!parsed) return parsed.error();
    chunks = std::move(*parsed);
  }
  chunks[chunk] = bytes;

  const std::string overlay = make_overlay(chunks);
  auto memory = make_sealed(overlay);
  if (!memory) return memory.error();
  overlays.push_back({.version = ++newest_,
                      .memory = std::move(*memory),
                      .size_bytes = overlay.size(),
                      .chunk_end = chunks.rbegin()->first + uint64_t{1}});
  return {};
}

const Fd* Snapshots::overlay(uint32_t partition, uint64_t version) const {
  const auto found = partitions_.find(partition);
  if (found == partitions_.end()) return nullptr;
  const Fd* seen = nullptr;
  for (const Overlay& overlay : found->second) {
    if (overlay.version <= version) seen = &overlay.memory;
  }
  return seen;
}

std::vector<uint32_t> Snapshots::updated_partitions(uint64_t version) const {
  std::vector<uint32_t> updated;
  for (const auto& [partition, overlays] : partitions_) {
    if (overlay(partition, version) != nullptr) updated.push_back(partition);
  }
  return updated;
}

uint64_t Snapshots::chunk_end(uint32_t partition) const {
  const auto found = partitions_.find(partition);
  return found == partitions_.end() || found->second.empty() ? 0 : found->second.back().chunk_end;
}

void Snapshots::keep_for(const std::multiset<uint64_t>& versions_of_jobs) {
  for (auto& [partition, overlays] : partitions_) {
    // Jobs read an overlay from its version up to the next one's.
    for (size_t i = 0; i + 1 < overlays.size();) {
      const auto reader = versions_of_jobs.lower_bound(overlays[i].version);
      if (reader != versions_of_jobs.end() && *reader < overlays[i + 1].version) {
        ++i;
      } else {
        overlays.erase(overlays.begin() + static_cast<ptrdiff_t>(i));
      }
    }
  }
}

uint64_t Snapshots::bytes() const {
  uint64_t bytes = 0;
  for (const auto& [partition, overlays] : partitions_) {
    for (const Overlay& overlay : overlays) bytes += overlay.size_bytes;
  }
  return bytes;
}

}  // namespace graphlane::share
