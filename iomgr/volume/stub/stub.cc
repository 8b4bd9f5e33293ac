#include "iomgr/volume/stub/stub.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <bit>
#include <cstring>
#include <ctime>

#include "iomgr/base/crc32c.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/sys.h"

namespace graphlane {
namespace {

// The record is copied as it lies in memory (FORMAT.md: little-endian).
static_assert(std::endian::native == std::endian::little);

constexpr uint8_t kHeadMagic[8] = {0x89, 'G', 'L', 'S', 'T', 'U', 'B', '\n'};
constexpr uint8_t kTailMagic[8] = {'\n', 'B', 'U', 'T', 'S', 'L', 'G', 0x89};
constexpr char kBanner[] =
    "\nThis is a Graphlane stub: the data lies striped over the devices of the volume.\n"
    "Read it through a mount (graphlane mount) or the preload library (graphlane run).\n";

// Little-endian, naturally aligned, no padding.
struct Record {
  uint8_t magic[8];
  uint32_t version;
  uint32_t stub_size;
  Uuid volume;
  Uuid file_id;
  uint64_t stripe_depth_bytes;
  uint32_t device_count;
  uint32_t first_device;
  uint64_t logical_size;
  uint32_t state;
  uint32_t codec;
  // In format 2; `ff` in format 1.
  uint64_t inode;
  int64_t born;
  uint32_t generation;
  uint32_t flags;
};
static_assert(sizeof(Record) == 104);
constexpr size_t kRecordOfFormat1 = 80;

constexpr uint32_t kStubIsNew = 1;  // of `flags`

constexpr size_t kBannerAt = 128;
constexpr size_t kTailMagicAt = 4080;
constexpr size_t kChecksumAt = kStubSize - sizeof(uint32_t);
static_assert(sizeof(Record) <= kBannerAt && kBannerAt + sizeof(kBanner) <= kTailMagicAt);
static_assert(sizeof(Record) <= kStubSectorSize);

bool has_head_magic(std::span<const uint8_t> bytes) {
  return bytes.size() >= sizeof kHeadMagic &&
         std::memcmp(bytes.data(), kHeadMagic, sizeof kHeadMagic) == 0;
}

bool has_tail_magic(std::span<const uint8_t> bytes) {
  return bytes.size() == kStubSize &&
         std::memcmp(bytes.data() + kTailMagicAt, kTailMagic, sizeof kTailMagic) == 0;
}

void encode(const Layout& layout, uint8_t* bytes) {
  std::memset(bytes, 0xff, kStubSize);
  Record record{.magic = {},
                .version = layout.format,
                .stub_size = kStubSize,
                .volume = layout.volume,
                .file_id = layout.file_id,
                .stripe_depth_bytes = layout.geometry.stripe_depth_bytes,
                .device_count = layout.geometry.device_count,
                .first_device = layout.geometry.first_device,
                .logical_size = layout.logical_size,
                .state = static_cast<uint32_t>(layout.state),
                .codec = static_cast<uint32_t>(layout.codec),
                .inode = layout.identity.inode,
                .born = layout.identity.born,
                .generation = layout.generation,
                .flags = layout.is_new ? kStubIsNew : 0};
  std::memcpy(record.magic, kHeadMagic, sizeof kHeadMagic);
  std::memcpy(bytes, &record,
              layout.format == kStubFormatUnbound ? kRecordOfFormat1 : sizeof record);
  std::memcpy(bytes + kBannerAt, kBanner, sizeof kBanner - 1);
  std::memcpy(bytes + kTailMagicAt, kTailMagic, sizeof kTailMagic);
  const uint32_t checksum = crc32c(bytes, kChecksumAt);
  std::memcpy(bytes + kChecksumAt, &checksum, sizeof checksum);
}

// A page of memory: aligned, because a program may have opened the descriptor with O_DIRECT. Not on
// the stack, which may be only 16 KiB.
struct Page {
  Page() {
    const long page = ::syscall(SYS_mmap, nullptr, kStubSize, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page != -1) bytes = reinterpret_cast<uint8_t*>(page);
  }
  ~Page() {
    if (bytes != nullptr) ::syscall(SYS_munmap, bytes, kStubSize);
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;
  uint8_t* bytes = nullptr;  // kStubSize of them; null: no memory (errno)
};

}  // namespace

const char* describe(StubVerdict verdict) {
  switch (verdict) {
    case StubVerdict::kStub: return "valid stub";
    case StubVerdict::kNotAStub: return "not a stub";
    case StubVerdict::kCutShort: return "stub is not 4096 bytes long";
    case StubVerdict::kBadChecksum: return "stub checksum mismatch";
    case StubVerdict::kBadVersion: return "stub of an unknown format version";
    case StubVerdict::kBadField: return "stub with an impossible layout";
  }
  return "unknown verdict";
}

StubBytes encode_stub(const Layout& layout) {
  StubBytes bytes;
  encode(layout, bytes.data());
  return bytes;
}

StubVerdict decode_stub(std::span<const uint8_t> bytes, Layout* layout) {
  if (!has_head_magic(bytes) && !has_tail_magic(bytes)) return StubVerdict::kNotAStub;
  if (bytes.size() != kStubSize) return StubVerdict::kCutShort;
  uint32_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + kChecksumAt, sizeof checksum);
  if (checksum != crc32c(bytes.data(), kChecksumAt)) return StubVerdict::kBadChecksum;
  return decode_fields(bytes.first<kStubSize>(), layout);
}

StubVerdict decode_fields(std::span<const uint8_t, kStubSize> bytes, Layout* layout) {
  Record record;
  std::memcpy(&record, bytes.data(), sizeof record);
  const bool is_bound = record.version == kStubFormat;
  const bool is_known = is_bound || record.version == kStubFormatUnbound;
  if (!is_known || record.stub_size != kStubSize) return StubVerdict::kBadVersion;
  Layout decoded{.volume = record.volume,
                 .file_id = record.file_id,
                 .geometry = {.stripe_depth_bytes = record.stripe_depth_bytes,
                              .device_count = record.device_count,
                              .first_device = record.first_device},
                 .logical_size = record.logical_size,
                 .state = static_cast<FileState>(record.state),
                 .codec = static_cast<Codec>(record.codec),
                 .format = record.version,
                 .identity = {},
                 .generation = 0,
                 .is_new = false};
  if (is_bound) {
    decoded.identity = {.inode = record.inode, .born = record.born};
    decoded.generation = record.generation;
    decoded.is_new = (record.flags & kStubIsNew) != 0;
  }
  const bool state_known = decoded.state == FileState::kOpen || decoded.state == FileState::kClosed;
  const bool size_possible = decoded.logical_size <= INT64_MAX;
  if (!decoded.geometry.valid() || !state_known || !size_possible ||
      decoded.codec != Codec::kNone) {
    return StubVerdict::kBadField;
  }
  *layout = decoded;
  return StubVerdict::kStub;
}

// The writer may have been preempted in the middle. So the later reads have pauses, 40 ms in all.
// Not libc's nanosleep(), which is a cancellation point: in the preload library a thread could be
// cancelled with a lock held.
Result<StubVerdict> read_stub(int fd, std::span<uint8_t> buffer, Layout* layout) {
  constexpr int kReadsMax = 24;
  constexpr int kReadsAtOnce = 4;
  constexpr timespec kPause = {.tv_sec = 0, .tv_nsec = 2'000'000};
  for (int i = 1;; ++i) {
    const Result<size_t> got = pread_full(fd, buffer.data(), buffer.size(), 0);
    if (!got) return got.error();
    const StubVerdict verdict = decode_stub(buffer.first(*got), layout);
    if (verdict != StubVerdict::kBadChecksum || i == kReadsMax) return verdict;
    if (i >= kReadsAtOnce) ::syscall(SYS_nanosleep, &kPause, nullptr);
  }
}

Result<StubVerdict> read_stub(int fd, uint64_t file_size, Layout* layout) {
  if (file_size < sizeof kHeadMagic) return StubVerdict::kNotAStub;
  if (file_size != kStubSize) {
    uint8_t head[sizeof kHeadMagic];
    const Result<size_t> got = pread_full(fd, head, sizeof head, 0);
    if (got) return has_head_magic({head, *got}) ? StubVerdict::kCutShort : StubVerdict::kNotAStub;
    if (got.error().code != EINVAL) return got.error();  // EINVAL: opened with O_DIRECT
  }
  const Page page;
  if (page.bytes == nullptr) return last_errno();
  const Result<StubVerdict> verdict = read_stub(fd, {page.bytes, kStubSize}, layout);
  // The first page of a longer file is not all of it.
  const bool is_longer = file_size > kStubSize && verdict && *verdict != StubVerdict::kNotAStub;
  return is_longer ? StubVerdict::kCutShort : verdict;
}

bool claims_to_be_stub(int fd, uint64_t file_size) {
  Layout layout;
  return read_stub(fd, file_size, &layout).value_or(StubVerdict::kNotAStub) !=
         StubVerdict::kNotAStub;
}

bool has_changed(int fd, Layout* layout) {
  Layout now;
  const Result<StubVerdict> verdict = read_stub(fd, kStubSize, &now);
  if (!verdict || *verdict != StubVerdict::kStub || now.file_id != layout->file_id) return false;
  if (now == *layout) return false;
  *layout = now;
  return true;
}

Result<void> write_stub(int fd, const Layout& layout) {
  const Page page;
  if (page.bytes == nullptr) return last_errno();
  encode(layout, page.bytes);
  return pwrite_full(fd, page.bytes, kStubSize, 0);
}

Result<void> rewrite_stub(int fd, const Layout& layout) {
  struct stat before;
  if (sys::fstat(fd, &before) != 0) return last_errno();
  if (Result<void> written = write_stub(fd, layout); !written) return written;
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, before.st_mtim};
  (void)::syscall(SYS_utimensat, fd, nullptr, times, 0);
  return {};
}

// ext4 may commit the new size before the block is marked as written, but not a name that is made
// later.
Result<void> write_new_stub(int fd, const Layout& layout) {
  constexpr unsigned kWait =
      SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
  Result<void> written = write_stub(fd, layout);
  if (written) (void)::syscall(SYS_sync_file_range, fd, off_t{0}, off_t{0}, kWait);
  return written;
}

}  // namespace graphlane
