#include "adapters/share/coordinator/graph_files.h"

#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "adapters/share/memory/sealed_memory.h"
#include "iomgr/base/cachestat.h"
#include "iomgr/base/files/file_io.h"

namespace graphlane::share {
namespace {

// Large enough to keep all devices of a striped file busy and to amortize seeks.
constexpr uint64_t kPieceBytes = uint64_t{16} << 20;
// O_DIRECT needs offsets, lengths and memory in multiples of the device's block, at most this.
constexpr uint64_t kBlockBytes = 4096;

// Whether most of the range is in the page cache. False if the kernel does not say.
bool is_cached(int file, uint64_t offset, uint64_t length_bytes) {
  const auto pages = pages_cached(file, offset, length_bytes);
  return pages && pages->cached * 2 > pages->all;
}

// Appends the bytes of [offset, offset + length) that exist, and returns their number. sendfile()
// copies from the page cache without a mapping, in half the time of pread().
Result<uint64_t> append_cached(int memory, int file, uint64_t offset, uint64_t length_bytes) {
  auto at = static_cast<off_t>(offset);
  uint64_t done = 0;
  while (done < length_bytes) {
    const ssize_t count = ::sendfile(memory, file, &at, length_bytes - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return last_errno();
    if (count == 0) break;
    done += static_cast<uint64_t>(count);
  }
  return done;
}

constexpr uint64_t block_floor(uint64_t value) { return value / kBlockBytes * kBlockBytes; }
constexpr uint64_t block_ceiling(uint64_t value) { return block_floor(value + kBlockBytes - 1); }

}  // namespace

bool GraphFiles::can_be_found() const {
  for (size_t i = 0; i < files.size(); ++i) {
    struct stat st;
    const Result<FileIdentity> now = identify(files[i].get());
    if (!now || *now != identities[i] || ::fstat(files[i].get(), &st) != 0 || st.st_nlink == 0) {
      return false;
    }
  }
  return true;
}

// Reads adjacent ranges by O_DIRECT, through a buffer of whole blocks: neither ranges nor the
// sealed memory are aligned to blocks.
class DirectReader {
 public:
  // `ranges`: all ranges that will be read, so that one read also fetches what follows in the file.
  explicit DirectReader(std::vector<FileRange> ranges) : ranges_(std::move(ranges)) {
    std::ranges::sort(ranges_, {},
                      [](const FileRange& it) { return std::pair(it.file, it.offset); });
  }

  // As append_cached(), for file number `index`.
  Result<uint64_t> append(int memory, int file, uint32_t index, uint64_t offset,
                          uint64_t length_bytes) {
    for (uint64_t done = 0; done < length_bytes;) {
      const uint64_t at = offset + done;
      const bool held = index == index_ && begin_ <= at && at < begin_ + held_bytes_;
      if (!held) {
        if (Result<void> filled = fill(file, index, at); !filled) return filled.error();
        if (at >= begin_ + held_bytes_) return done;  // end of file
      }
      const uint64_t count = std::min(length_bytes - done, begin_ + held_bytes_ - at);
      if (Result<void> written = write_full(memory, buffer_.data() + (at - begin_), count);
          !written) {
        return written.error();
      }
      done += count;
    }
    return length_bytes;
  }

 private:
  Result<void> fill(int file, uint32_t index, uint64_t at) {
    held_bytes_ = 0;
    if (buffer_.size() == 0) {
      auto memory = Mapping::private_memory(kPieceBytes);
      if (!memory) return Errno{ENOMEM};
      buffer_ = std::move(*memory);
    }
    index_ = index;
    begin_ = block_floor(at);
    const uint64_t length_bytes =
        std::min(kPieceBytes, block_ceiling(end_of_run(index, at) - begin_));
    const Result<size_t> got = pread_full(file, buffer_.data(), length_bytes, begin_);
    if (!got) return got.error();
    held_bytes_ = *got;
    return {};
  }

  // The end of the adjacent ranges that contain `at`.
  uint64_t end_of_run(uint32_t index, uint64_t at) const {
    uint64_t end = at;
    for (const FileRange& it : ranges_) {
      if (it.file == index && it.offset <= end) end = std::max(end, it.offset + it.length_bytes);
    }
    return end;
  }

  std::vector<FileRange> ranges_;  // by file and offset
  Mapping buffer_;
  uint32_t index_ = 0;
  uint64_t begin_ = 0;
  uint64_t held_bytes_ = 0;
};

// The file ranges of the unit.
std::vector<FileRange> GraphFiles::pieces(uint32_t unit) const {
  const uint32_t partition = units.partition_of(unit);
  const uint64_t begin = units.offset_of(unit);
  const uint64_t end = begin + units.bytes_of(unit);
  std::vector<FileRange> pieces;
  uint64_t at = 0;  // in the partition
  for (const FileRange& range :
       std::ranges::equal_range(layout.ranges, partition, {}, &FileRange::partition)) {
    const uint64_t from = std::max(begin, at);
    const uint64_t to = std::min(end, at + range.length_bytes);
    if (from < to) {
      pieces.push_back({.partition = partition,
                        .file = range.file,
                        .offset = range.offset + (from - at),
                        .length_bytes = to - from});
    }
    at += range.length_bytes;
  }
  return pieces;
}

std::vector<std::vector<uint32_t>> GraphFiles::runs(std::span<const uint32_t> batch) const {
  std::vector<std::vector<uint32_t>> runs;
  std::optional<FileRange> last;  // of the run
  for (const uint32_t unit : batch) {
    const std::vector<FileRange> here = pieces(unit);
    const bool follows = last && !here.empty() && here[0].file == last->file &&
                         here[0].offset == last->offset + last->length_bytes;
    if (!follows) runs.emplace_back();
    runs.back().push_back(unit);
    last = here.empty() ? std::nullopt : std::optional(here.back());
  }
  return runs;
}

std::vector<Outcome<Fd>> GraphFiles::load(std::span<const uint32_t> batch) const {
  std::vector<FileRange> wanted;
  for (const uint32_t unit : batch) {
    const std::vector<FileRange> here = pieces(unit);
    wanted.insert(wanted.end(), here.begin(), here.end());
  }
  DirectReader reader(std::move(wanted));
  std::vector<Outcome<Fd>> loaded;
  for (const uint32_t unit : batch) loaded.push_back(load(unit, reader));
  return loaded;
}

Outcome<Fd> GraphFiles::load(uint32_t unit, DirectReader& reader) const {
  auto memory = make_memory(0);
  if (!memory) return memory.error();
  for (const FileRange& range : pieces(unit)) {
    const int file = files[range.file].get();
    const int past_cache = direct[range.file].get();
    const bool cached = past_cache < 0 || is_cached(file, range.offset, range.length_bytes);
    const Result<uint64_t> got =
        cached ? append_cached(memory->get(), file, range.offset, range.length_bytes)
               : reader.append(memory->get(), past_cache, range.file, range.offset,
                               range.length_bytes);
    if (!got) {
      return os_error(got.error().code, name, fmt::format("cannot read at {}", range.offset));
    }
    if (*got < range.length_bytes) {
      return make_error(ESTALE, "{}: byte {}: cut short while jobs use it", name,
                        range.offset + *got);
    }
    // Checked after the read, so that a change before or during it is noticed.
    const Result<FileIdentity> now = identify(file);
    if (!now) return os_error(now.error().code, name, "cannot stat");
    if (*now != identities[range.file]) {
      return make_error(ESTALE, "{}: changed while jobs use it", name);
    }
  }
  if (Outcome<void> sealed = seal(memory->get()); !sealed) return sealed.error();
  return memory;
}

}  // namespace graphlane::share
