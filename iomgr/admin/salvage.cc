#include "iomgr/admin/salvage.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/base/printable.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/parts/promises.h"

namespace graphlane {

std::string format_missing(const std::vector<MissingRange>& missing) {
  std::string text = "# graphlane salvage 1\n# offset length reason\n";
  for (const MissingRange& one : missing) {
    text +=
        fmt::format("{} {} {}\n", one.range.offset, one.range.length_bytes, printable(one.reason));
  }
  return text;
}

std::optional<Layout> salvage_layout(int stub_fd) {
  StubBytes bytes;
  bytes.fill(0xff);
  const Result<size_t> got = pread_full(stub_fd, bytes.data(), bytes.size(), 0);
  Layout layout;
  // An ordinary file gives no layout, even one of 4096 bytes.
  if (!got || decode_stub({bytes.data(), *got}, &layout) == StubVerdict::kNotAStub) {
    return std::nullopt;
  }
  if (decode_fields(bytes, &layout) != StubVerdict::kStub) return std::nullopt;
  return layout;
}

SalvageReader::SalvageReader(const Volume& volume, const Layout& layout) : map_(layout.map()) {
  uint64_t reached = 0;
  for (uint32_t d = 0; d < volume.device_count(); ++d) {
    Part& part = parts_.emplace_back();
    part.path = volume.part_path(d, layout.file_id);
    const int root_fd = volume.devices()[d].root_fd.get();
    if (root_fd < 0) {
      part.reason = "the device is missing";
      continue;
    }
    const Fd place = find_part(root_fd, layout.file_id);
    if (place) part.fd = reopen(place.get(), O_RDONLY | O_NONBLOCK);  // it may be a FIFO
    struct stat st;
    if (!part.fd || ::fstat(part.fd.get(), &st) != 0) {
      part.reason = std::strerror(errno);
    } else if (!S_ISREG(st.st_mode)) {
      part.fd.reset();
      part.reason = "is not a regular file";
    } else {
      part.size_bytes = static_cast<uint64_t>(st.st_size);
      part.uid = st.st_uid;
      part.reason = fmt::format("the part ends at its byte {}", part.size_bytes);
      if (part.size_bytes > 0) {
        reached = std::max(
            reached,
            map_.logical_offset({.device_index = d, .part_offset = part.size_bytes - 1}) + 1);
      }
    }
  }
  if (layout.state == FileState::kOpen) {
    std::vector<int> parts, roots;
    for (const Part& part : parts_) parts.push_back(part.fd.get());
    for (const Device& device : volume.devices()) roots.push_back(device.root_fd.get());
    const OpenSize open = look_at_open(layout, {.parts = parts,
                                                .roots = roots,
                                                .volume = layout.volume,
                                                .file_id = layout.file_id,
                                                .geometry = layout.geometry});
    reached = std::max(reached, open.promised_bytes);
  }
  size_bytes_ = layout.state == FileState::kClosed ? layout.logical_size
                                                   : std::min(layout.logical_size, reached);
}

bool SalvageReader::is_of_another(uid_t uid) const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [&](const Part& part) { return part.fd && part.uid != uid; });
}

void SalvageReader::read(ByteRange range, char* buffer) {
  while (range.length_bytes > 0) {
    const Segment segment = map_.first_segment(range);
    read_segment(segment, buffer);
    buffer += segment.length_bytes;
    range = {.offset = segment.logical_offset + segment.length_bytes,
             .length_bytes = range.length_bytes - segment.length_bytes};
  }
}

// After a failed read, reads block by block: the neighbours of a bad block may be readable.
void SalvageReader::read_segment(const Segment& segment, char* buffer) {
  const Part& part = parts_[segment.device_index];
  std::memset(buffer, 0, segment.length_bytes);
  if (!part.fd) {
    return note({segment.logical_offset, segment.length_bytes}, part.path + ": " + part.reason);
  }
  const Result<size_t> whole =
      pread_full(part.fd.get(), buffer, segment.length_bytes, segment.part_offset);
  if (whole && *whole == segment.length_bytes) return;
  if (whole) {
    return note({segment.logical_offset + *whole, segment.length_bytes - *whole},
                part.path + ": " + part.reason);
  }
  for (uint64_t at = 0; at < segment.length_bytes; at += kBlockSize) {
    const uint64_t length = std::min(kBlockSize, segment.length_bytes - at);
    const Result<size_t> got =
        pread_full(part.fd.get(), buffer + at, length, segment.part_offset + at);
    const uint64_t read = got ? *got : 0;
    if (read == length) continue;
    std::memset(buffer + at + read, 0, length - read);
    note({segment.logical_offset + at + read, length - read},
         part.path + ": " + (got ? part.reason : std::strerror(got.error().code)));
  }
}

void SalvageReader::note(ByteRange range, const std::string& reason) {
  MutexLock held(mu_);
  missing_.push_back({range, reason});
}

std::vector<MissingRange> SalvageReader::missing() const {
  MutexLock held(mu_);
  std::vector<MissingRange> sorted = missing_;
  std::sort(sorted.begin(), sorted.end(), [](const MissingRange& a, const MissingRange& b) {
    return a.range.offset < b.range.offset;
  });
  std::vector<MissingRange> merged;
  for (MissingRange& one : sorted) {
    if (!merged.empty() && merged.back().range.end() == one.range.offset) {
      if (merged.back().reason.find(one.reason) == std::string::npos) {
        merged.back().reason += "; " + one.reason;
      }
      merged.back().range.length_bytes += one.range.length_bytes;
    } else {
      merged.push_back(std::move(one));
    }
  }
  return merged;
}

}  // namespace graphlane
