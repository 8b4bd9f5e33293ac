#include "adapters/hybrid/device_model.h"

#include <chrono>
#include <optional>
#include <random>

#include "adapters/hybrid/dual_graph.h"
#include "iomgr/base/files/atomic_file.h"
#include "iomgr/io/calibration.h"
#include "iomgr/read/page_reader.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::hybrid {
namespace {

constexpr double kArcsPerSecond = 60e6;  // of a thread
// Measuring would take longer than reading a smaller file.
constexpr uint64_t kProbedBytesMin = 1 << 20;
constexpr unsigned kProbeReads = 8;
// Large reads of each device: so many bytes, and at most a 64th of the file in all.
constexpr uint64_t kProbeBytesMax = 1 << 20;
constexpr uint64_t kProbeBytesMin = 128 << 10;
// Devices that answer more random reads are no disks, whatever they say (virtual ones say so).
constexpr double kDiskReadsMax = 1000;

constexpr DeviceModel kUsualDisk{.bytes_per_second = 150e6, .reads_per_second = 120};
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

Outcome<double> seconds_of_reads(const DualGraph& graph, const OpenPagedFile& file,
                                 std::span<const ByteRange> ranges) {
  ProbeTask task;
  PageQueue queue(graph.pages());
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

// Bytes per second of large reads from all devices at the same time, without the seek to the first
// byte. Nothing: the file is too small to tell.
Outcome<std::optional<double>> probed_bytes_per_second(const DualGraph& graph,
                                                       const OpenPagedFile& file) {
  const uint64_t depth = file.paged().map.geometry().stripe_depth_bytes;
  const uint64_t devices = device_count(file.paged()), size = file.size_bytes();
  const uint64_t bytes =
      std::min({kProbeBytesMax, depth / 2, size / 64 / devices}) / kBlockSize * kBlockSize;
  if (bytes < kProbeBytesMin) return std::optional<double>();
  const uint64_t unit = depth <= size / 2 ? depth : kBlockSize;
  const uint64_t first = size / 2 / unit * unit;
  std::vector<ByteRange> before, large;
  for (uint64_t device = 0; device < devices && first + device * depth + kBlockSize + bytes <= size;
       ++device) {
    before.push_back({first + device * depth, kBlockSize});
    large.push_back({before.back().end(), bytes});
  }
  if (const auto moved = seconds_of_reads(graph, file, before); !moved) return moved.error();
  const auto seconds = seconds_of_reads(graph, file, large);
  if (!seconds) return seconds.error();
  return std::optional(static_cast<double>(large.size() * bytes) / *seconds);
}

Outcome<DeviceModel> probed(const DualGraph& graph, const OpenPagedFile& file) {
  std::mt19937_64 random(file.size_bytes());
  std::vector<ByteRange> pages;
  for (unsigned i = 0; i < kProbeReads; ++i) {
    pages.push_back({random() % (file.size_bytes() / kBlockSize) * kBlockSize, kBlockSize});
  }
  const auto small = seconds_of_reads(graph, file, pages);
  if (!small) return small.error();
  DeviceModel model{.reads_per_second = kProbeReads / *small};
  const auto large = probed_bytes_per_second(graph, file);
  if (!large) return large.error();
  model.bytes_per_second = large->value_or(
      model.reads_per_second > kDiskReadsMax
          ? kUsualSsd.bytes_per_second
          : kUsualDisk.bytes_per_second * static_cast<double>(device_count(file.paged())));
  return model;
}

}  // namespace

Outcome<DeviceModel> measure_devices(DualGraph& graph, unsigned threads) {
  const OpenPagedFile& file = graph.blocks(DualSide::kOut);
  const Outcome<std::string> root = find_volume_root(file.path());
  std::optional<DeviceModel> model;
  if (root) {
    const auto known = calibrated(*root);
    if (!known) return known.error();
    model = *known;
  }
  if (!model && file.size_bytes() >= kProbedBytesMin) {
    const auto measured = probed(graph, file);
    if (!measured) return measured.error();
    model = *measured;
  }
  if (!model) model = kUsualSsd;
  model->arcs_per_second = kArcsPerSecond * threads;
  return *model;
}

}  // namespace graphlane::hybrid
