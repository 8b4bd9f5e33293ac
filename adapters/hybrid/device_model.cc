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
// of large reads, where they are at most a 64th of the file
constexpr uint64_t kProbeBytes = 1 << 20;
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

Outcome<DeviceModel> probed(const DualGraph& graph, const OpenPagedFile& file) {
  std::mt19937_64 random(file.size_bytes());
  std::vector<ByteRange> pages;
  for (unsigned i = 0; i < kProbeReads; ++i) {
    pages.push_back({random() % (file.size_bytes() / kBlockSize) * kBlockSize, kBlockSize});
  }
  const auto small = seconds_of_reads(graph, file, pages);
  if (!small) return small.error();
  const double reads_per_second = kProbeReads / *small;
  if (file.size_bytes() < 64 * kProbeBytes) {
    DeviceModel usual = reads_per_second <= kDiskReadsMax ? kUsualDisk : kUsualSsd;
    usual.reads_per_second = reads_per_second;
    return usual;
  }
  std::vector<ByteRange> large;
  const uint64_t first = file.size_bytes() / 2 / kProbeBytes * kProbeBytes;
  for (uint64_t at = 0; at < kProbeBytes; at += kProbeBytes / 4) {
    large.push_back({first + at, kProbeBytes / 4});
  }
  const auto whole = seconds_of_reads(graph, file, large);
  if (!whole) return whole.error();
  return DeviceModel{.bytes_per_second = kProbeBytes / *whole,
                     .reads_per_second = reads_per_second};
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
