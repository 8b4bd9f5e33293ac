#include "adapters/graph/device_model.h"

#include <chrono>
#include <optional>
#include <random>

#include "iomgr/base/files/atomic_file.h"
#include "iomgr/io/calibration.h"
#include "iomgr/read/page_reader.h"
#include "iomgr/volume/device_kind.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {
namespace {

// Measuring would take longer than reading a smaller file.
constexpr uint64_t kProbedBytesMin = 1 << 20;
constexpr unsigned kProbeReads = 8;   // together
constexpr unsigned kSingleReads = 5;  // then one by one, if those took long
// Large reads of each device: so many bytes, and at most a 64th of the file in all.
constexpr uint64_t kProbeBytesMax = 1 << 20;
constexpr uint64_t kProbeBytesMin = 128 << 10;
// Devices that answer faster are no disks, whatever they say (virtual ones say so).
constexpr double kDiskReadSeconds = 0.5e-3;

// A smaller gap saves a disk little, and an SSD nothing.
constexpr double kGapBytesMin = 64 << 10;

constexpr double kUsualDiskBytesPerSecond = 150e6;
constexpr DeviceModel kUsualSsd{.bytes_per_second = 500e6, .reads_per_second = 50e3};

// All of a volume's devices together. Nothing: not all of them were calibrated.
Outcome<std::optional<DeviceModel>> calibrated(const std::string& root) {
  const auto volume = Volume::open(root);
  if (!volume) return volume.error();
  DeviceModel all{.bytes_per_second = 0, .reads_per_second = 0};
  for (const Device& device : (*volume)->devices()) {
    const std::string path = device.root + "/" + kDeviceJson;
    const Outcome<std::string> text = read_whole_file(device.root_fd.get(), kDeviceJson, path);
    if (!text) return text.error();
    const auto calibration = parse_calibration(*text, path);
    if (!calibration) return calibration.error();
    if (!*calibration || (*calibration)->bytes_per_second == 0 ||
        (*calibration)->small_ios_per_second == 0) {
      return std::optional<DeviceModel>();
    }
    all.bytes_per_second += static_cast<double>((*calibration)->bytes_per_second);
    all.reads_per_second += static_cast<double>((*calibration)->small_ios_per_second);
  }
  return std::optional(all);
}

// Discards what is read.
class ProbeTask final : public PageTask {
 public:
  void run(const PageBytes&) noexcept override {}
  void failed(int code) noexcept override { error = code; }
  int error = 0;
};

Outcome<double> seconds_of_reads(const OpenPagedFile& file, PageReader& pages,
                                 std::span<const ByteRange> ranges) {
  ProbeTask task;
  PageQueue queue(pages);
  const auto begin = std::chrono::steady_clock::now();
  for (const ByteRange& range : ranges) queue.submit(file.paged(), range, task);
  while (queue.wait()) {
  }
  if (task.error != 0) {
    return os_error(task.error == EBADMSG ? EIO : task.error, file.path(), "cannot read");
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return std::max(seconds, 1e-6);
}

// Devices that a sweep of the file reads from at the same time.
uint64_t device_count(const PagedFile& file) {
  const StripeGeometry& stripes = file.map.geometry();
  return std::clamp<uint64_t>(file.size_bytes / stripes.stripe_depth_bytes, 1,
                              stripes.device_count);
}

struct ProbedReads {
  double reads_per_second;
  bool is_disk;
};

// Single pages at random places. Precondition: kProbedBytesMin.
Outcome<ProbedReads> probed_reads(const OpenPagedFile& file, PageReader& pages) {
  std::mt19937_64 random(file.size_bytes());
  std::vector<ByteRange> places;
  for (unsigned i = 0; i < kProbeReads + kSingleReads; ++i) {
    places.push_back({random() % (file.size_bytes() / kBlockSize) * kBlockSize, kBlockSize});
  }
  const std::span all(places);
  const auto together = seconds_of_reads(file, pages, all.first(kProbeReads));
  if (!together) return together.error();
  if (*together < kDiskReadSeconds) return ProbedReads{kProbeReads / *together, false};
  // Slow, or others compute. Then some of these are fast. Of what says that it is a disk, two suffice.
  const unsigned single_reads = is_on_disk(file.paged().parts.buffered(0)) ? 2 : kSingleReads;
  std::vector<double> single;
  for (unsigned i = kProbeReads; i < kProbeReads + single_reads; ++i) {
    const auto seconds = seconds_of_reads(file, pages, all.subspan(i, 1));
    if (!seconds) return seconds.error();
    single.push_back(*seconds);
  }
  const auto middle = single.begin() + (single_reads - 1) / 2;
  std::nth_element(single.begin(), middle, single.end());
  const double usual = *middle;
  if (usual >= kDiskReadSeconds) return ProbedReads{kProbeReads / *together, true};
  return ProbedReads{kProbeReads / std::min(*together, usual), false};
}

// Large reads from all devices at the same time, without the seek to the first byte. Of a file that
// is too small to tell: as usual ones.
Outcome<double> probed_bytes_per_second(const OpenPagedFile& file, PageReader& pages,
                                        bool is_disk) {
  const uint64_t depth = file.paged().map.geometry().stripe_depth_bytes;
  const uint64_t devices = device_count(file.paged()), size = file.size_bytes();
  const uint64_t bytes =
      std::min({kProbeBytesMax, depth / 2, size / 64 / devices}) / kBlockSize * kBlockSize;
  if (bytes < kProbeBytesMin) {
    return is_disk ? kUsualDiskBytesPerSecond * static_cast<double>(devices)
                   : kUsualSsd.bytes_per_second;
  }
  const uint64_t unit = depth <= size / 2 ? depth : kBlockSize;
  const uint64_t first = size / 2 / unit * unit;
  std::vector<ByteRange> before, large;
  for (uint64_t device = 0; device < devices && first + device * depth + kBlockSize + bytes <= size;
       ++device) {
    before.push_back({first + device * depth, kBlockSize});
    large.push_back({before.back().end(), bytes});
  }
  if (const auto moved = seconds_of_reads(file, pages, before); !moved) return moved.error();
  const auto seconds = seconds_of_reads(file, pages, large);
  if (!seconds) return seconds.error();
  return static_cast<double>(large.size() * bytes) / *seconds;
}

Outcome<DeviceModel> probed(const OpenPagedFile& file, PageReader& pages, Measure what) {
  DeviceModel model = kUsualSsd;
  if (file.size_bytes() < kProbedBytesMin) return model;
  const auto reads = probed_reads(file, pages);
  if (!reads) return reads.error();
  model.reads_per_second = reads->reads_per_second;
  if (what == Measure::kGap && !reads->is_disk) return model;
  const auto bytes = probed_bytes_per_second(file, pages, reads->is_disk);
  if (!bytes) return bytes.error();
  model.bytes_per_second = *bytes;
  return model;
}

}  // namespace

Outcome<DeviceModel> measure_devices(const OpenPagedFile& file, PageReader& pages, Measure what) {
  std::optional<DeviceModel> model;
  if (const Outcome<std::string> root = find_volume_root(file.path()); root) {
    const auto known = calibrated(*root);
    if (!known) return known.error();
    model = *known;
  }
  if (!model) {
    const auto measured = probed(file, pages, what);
    if (!measured) return measured.error();
    model = *measured;
  }
  const double gap_bytes = model->bytes_per_second / model->reads_per_second;
  if (gap_bytes >= kGapBytesMin) {
    model->gap_bytes =
        static_cast<uint64_t>(std::min(gap_bytes, static_cast<double>(PageReader::kGapBytesMax)));
  }
  return *model;
}

}  // namespace graphlane
