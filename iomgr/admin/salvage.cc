#include "iomgr/admin/salvage.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/file_kind.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/base/printable.h"
#include "iomgr/base/process/log.h"
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
      part.reason = error_text(errno);
    } else if (!S_ISREG(st.st_mode)) {
      part.fd.reset();
      part.reason = kind_text(st.st_mode);
    } else {
      part.size_bytes = static_cast<uint64_t>(st.st_size);
      part.uid = st.st_uid;
      open_sums(layout, root_fd, d);
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

void SalvageReader::open_sums(const Layout& layout, int root_fd, uint32_t d) {
  const auto same = [](int fd, int) { return fd; };
  sums_.open(d, part_of(root_fd, layout), parts_[d].fd.get(), Fd(), O_RDONLY, same, 0);
  if (!sums_.is_lost(d)) return;
  log_line("part {} cannot be verified, and is copied as it is: its checksums {}", parts_[d].path,
           describe(sums_.verdict(d)));
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
  if (whole) verify_segment(segment, buffer, *whole);
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
    if (read > 0) {
      verify_segment({.device_index = segment.device_index,
                      .part_offset = segment.part_offset + at,
                      .logical_offset = segment.logical_offset + at,
                      .length_bytes = read},
                     buffer + at, read);
    }
    if (read == length) continue;
    std::memset(buffer + at + read, 0, length - read);
    note({segment.logical_offset + at + read, length - read},
         part.path + ": " + (got ? part.reason : error_text(got.error().code)));
  }
}

// Puts zeros in place of blocks that do not match their checksums.
void SalvageReader::verify_segment(const Segment& segment, char* buffer, uint64_t length) {
  const uint32_t d = segment.device_index;
  const Part& part = parts_[d];
  const auto is_right = [&](uint64_t at, uint64_t bytes) {
    const iovec memory{.iov_base = buffer + at, .iov_len = bytes};
    return sums_.verify(d, part.fd.get(), segment.part_offset + at, {&memory, 1}, bytes) != EIO;
  };
  if (sums_.is_lost(d) || length == 0 || is_right(0, length)) return;
  for (uint64_t at = 0, bytes = 0; at < length; at += bytes) {
    bytes = std::min(kBlockSize - (segment.part_offset + at) % kBlockSize, length - at);
    if (is_right(at, bytes)) continue;
    std::memset(buffer + at, 0, bytes);
    note({segment.logical_offset + at, bytes}, part.path + ": does not match its checksum");
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
