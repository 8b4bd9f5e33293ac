#include "adapters/share/client/overlay.h"

#include <cstring>

namespace graphlane::share {

std::string make_overlay(const ChangedChunks& chunks) {
  const OverlayHeader header{.chunk_count = static_cast<uint32_t>(chunks.size())};
  std::string overlay(reinterpret_cast<const char*>(&header), sizeof header);
  uint64_t offset = sizeof header + chunks.size() * sizeof(OverlayChunk);
  for (const auto& [number, data] : chunks) {
    const OverlayChunk entry{.chunk = number, .offset = offset, .length_bytes = data.size()};
    overlay.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    offset += data.size();
  }
  for (const auto& [number, data] : chunks) overlay.append(data.data(), data.size());
  return overlay;
}

Outcome<ChangedChunks> parse_overlay(std::span<const char> overlay) {
  const Error bad = make_error(EPROTO, "the graph's updates are damaged");
  OverlayHeader header;
  if (overlay.size() < sizeof header) return bad;
  std::memcpy(&header, overlay.data(), sizeof header);
  if (header.magic != OverlayHeader::kMagic ||
      header.chunk_count > (overlay.size() - sizeof header) / sizeof(OverlayChunk)) {
    return bad;
  }
  ChangedChunks chunks;
  for (uint32_t i = 0; i < header.chunk_count; ++i) {
    OverlayChunk chunk;
    std::memcpy(&chunk, overlay.data() + sizeof header + i * sizeof chunk, sizeof chunk);
    if (chunk.offset > overlay.size() || chunk.length_bytes > overlay.size() - chunk.offset) {
      return bad;
    }
    chunks[chunk.chunk] = overlay.subspan(chunk.offset, chunk.length_bytes);
  }
  return chunks;
}

}  // namespace graphlane::share
