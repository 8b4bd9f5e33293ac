#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include "cli/command.h"
#include "cli/measure/fio.h"
#include "cli/measure/test_file.h"
#include "iomgr/base/files/atomic_file.h"
#include "iomgr/base/process/interrupt.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/base/size.h"
#include "iomgr/io/calibration.h"
#include "iomgr/io/io_queue.h"
#include "iomgr/volume/volume_files.h"
#include "iomgr/volume/volume_json.h"

namespace graphlane::cli {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kLargeBytes = 4u << 20;
constexpr uint64_t kSmallBytes = 4096;
constexpr uint32_t kDepths[] = {1, 2, 4, 8, 16, 32};
constexpr uint32_t kStreamCounts[] = {2, 4};  // one stream is measured by the depths
static_assert(std::end(kDepths)[-1] <= kQueueDepthMax);
constexpr uint64_t kFileBytesDefault = uint64_t{1} << 30;
constexpr uint64_t kFileBytesMin = 16 * kLargeBytes;  // four blocks for each of four streams
// Of depths within this factor of the fastest, the least is chosen: it takes less memory, and
// delays others less.
constexpr double kAsGood = 0.97;
// A second stream costs a disk more than this, but costs other devices nothing.
constexpr double kSeeks = 0.9;
// Each measurement counts as the better of two, because other work may have disturbed one.
constexpr int kRounds = 2;

struct CalibrateOptions {
  std::vector<std::string> directories;
  double seconds = 1;
  std::optional<uint64_t> file_bytes;
  bool dry_run = false;
  bool as_json = false;
};

// A device's directory, with the devices of all volumes in it.
struct Place {
  std::string directory;
  std::vector<std::string> roots;
};

struct Speeds {
  std::map<uint32_t, FioSpeed> large;    // by depth, one stream
  std::map<uint32_t, FioSpeed> streams;  // by their number, at `depth`, large reads
  std::map<uint32_t, FioSpeed> small;    // by depth
};

// The least key with a value of at least kAsGood times the best.
template <class Value>
uint32_t least_as_good(const std::map<uint32_t, FioSpeed>& speeds, const Value& value) {
  double best = 0;
  for (const auto& [key, speed] : speeds) best = std::max(best, value(speed));
  for (const auto& [key, speed] : speeds) {
    if (value(speed) >= kAsGood * best) return key;
  }
  return speeds.rbegin()->first;
}

double bytes_of(const FioSpeed& speed) { return speed.bytes_per_second; }
double ios_of(const FioSpeed& speed) { return speed.ios_per_second; }

class Measurement {
 public:
  Measurement(const TestFile& file, const Place& place, std::chrono::milliseconds duration)
      : file_(file),
        duration_(duration),
        progress_("calibrate " + place.directory,
                  kRounds * (2 * std::size(kDepths) + std::size(kStreamCounts)),
                  /*unit_is_bytes=*/false) {}

  Outcome<Calibration> run() {
    for (int round = 0; round < kRounds; ++round) {
      for (const uint32_t depth : kDepths) {
        if (Outcome<void> done = measure(large(depth, 1), &speeds_.large[depth]); !done) {
          return done.error();
        }
        if (Outcome<void> done = measure(small(depth), &speeds_.small[depth]); !done) {
          return done.error();
        }
      }
    }
    const uint32_t large_depth = least_as_good(speeds_.large, bytes_of);
    speeds_.streams[1] = speeds_.large[large_depth];
    for (int round = 0; round < kRounds; ++round) {
      for (const uint32_t count : kStreamCounts) {
        const FioReads reads = large(std::max(large_depth, count), count);
        if (Outcome<void> done = measure(reads, &speeds_.streams[count]); !done) {
          return done.error();
        }
      }
    }
    const uint32_t depth = choose_depth(large_depth);
    return Calibration{
        .depth = depth,
        .stream_count = least_as_good(speeds_.streams, bytes_of),
        .bytes_per_second = static_cast<uint64_t>(speeds_.large[depth].bytes_per_second),
        .small_ios_per_second = static_cast<uint64_t>(speeds_.small[depth].ios_per_second)};
  }

  const Speeds& speeds() const { return speeds_; }

 private:
  FioReads large(uint32_t depth, uint32_t stream_count) const {
    return {.file = file_.path(),
            .file_bytes = file_.size_bytes(),
            .block_bytes = kLargeBytes,
            .depth = depth,
            .stream_count = stream_count,
            .duration = duration_};
  }
  FioReads small(uint32_t depth) const {
    return {.file = file_.path(),
            .file_bytes = file_.size_bytes(),
            .block_bytes = kSmallBytes,
            .at_random = true,
            .depth = depth,
            .duration = duration_};
  }

  Outcome<void> measure(const FioReads& reads, FioSpeed* best) {
    if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on;
    const Outcome<FioSpeed> speed = run_fio(reads);
    if (!speed) return speed.error();
    if (speed->bytes_per_second > best->bytes_per_second) *best = *speed;
    progress_.add(1);
    return {};
  }

  // Large reads decide. A device that does not seek gets a larger depth if small reads gain and
  // large ones do not lose; on a device that seeks it would only cost more seeks.
  uint32_t choose_depth(uint32_t large_depth) const {
    const double one_stream = speeds_.streams.at(1).bytes_per_second;
    for (const uint32_t count : kStreamCounts) {
      if (speeds_.streams.at(count).bytes_per_second < kSeeks * one_stream) return large_depth;
    }
    std::map<uint32_t, FioSpeed> small;
    for (const auto& [depth, speed] : speeds_.small) {
      const bool is_large_as_good =
          speeds_.large.at(depth).bytes_per_second >= kAsGood * one_stream;
      if (depth >= large_depth && is_large_as_good) small[depth] = speed;
    }
    return least_as_good(small, ios_of);
  }

  const TestFile& file_;
  const std::chrono::milliseconds duration_;
  Speeds speeds_;
  Progress progress_;
};

// The volumes' devices in the directory, which this user may change.
Outcome<Place> find_devices(const std::string& directory) {
  Place place{.directory = directory, .roots = {}};
  std::error_code error;
  const fs::directory_iterator entries(directory, error);
  if (error) return os_error(error.value(), directory, "cannot open");
  std::optional<Error> not_ours;  // of another user's volume, which is left alone
  for (const fs::directory_entry& entry : entries) {
    const std::string root = entry.path().string();
    if (!entry.path().filename().string().starts_with("graphlane-")) continue;
    const std::string path = root + "/" + kDeviceJson;
    const Outcome<std::string> text = read_whole_file(AT_FDCWD, path.c_str(), path);
    if (!text && text.error().code == ENOENT) continue;  // left by a `create` that died
    if (!text) return text.error();
    if (Outcome<DeviceRecord> record = parse_device_json(*text, path); !record) {
      return record.error();
    }
    if (::access(root.c_str(), W_OK) == 0) {
      place.roots.push_back(root);
    } else {
      not_ours = os_error(errno, root, "cannot write");
    }
  }
  std::sort(place.roots.begin(), place.roots.end());
  if (!place.roots.empty()) return place;
  if (not_ours) return *not_ours;
  if (fs::exists(fs::path(directory) / kVolumeJson, error)) {
    return make_error(EINVAL, "{}: is a volume; name its devices (graphlane info {})", directory,
                      directory);
  }
  return make_error(ENODEV, "{}: holds no device of any volume (graphlane create makes them)",
                    directory);
}

Outcome<void> keep(const std::string& root, const Calibration& calibration) {
  const std::string path = root + "/" + kDeviceJson;
  const Outcome<std::string> old_text = read_whole_file(AT_FDCWD, path.c_str(), path);
  if (!old_text) return old_text.error();
  struct stat before;
  if (::stat(path.c_str(), &before) != 0) return os_error(errno, path, "cannot open");
  const Outcome<std::string> text = with_calibration(*old_text, path, calibration);
  if (!text) return text.error();
  const Outcome<void> written =
      write_file_atomically(AT_FDCWD, path, path, *text, before.st_mode & 07777);
  if (!written) return written;
  // A user's file keeps its owner, even if root has rewritten it.
  (void)!::lchown(path.c_str(), before.st_uid, before.st_gid);
  return {};
}

Json speeds_json(const std::map<uint32_t, FioSpeed>& speeds, const char* key) {
  Json all = Json::array();
  for (const auto& [number, speed] : speeds) {
    all.push_back({{key, number},
                   {"bytes_per_second", static_cast<uint64_t>(speed.bytes_per_second)},
                   {"ios_per_second", static_cast<uint64_t>(speed.ios_per_second)}});
  }
  return all;
}

Json place_json(const Place& place, const Calibration& calibration, const Speeds& speeds,
                bool is_kept) {
  return {{"path", place.directory},
          {"depth", calibration.depth},
          {"streams", calibration.stream_count},
          {"bytes_per_second", calibration.bytes_per_second},
          {"small_ios_per_second", calibration.small_ios_per_second},
          {"kept_in", is_kept ? Json(place.roots) : Json::array()},
          {"measured",
           {{"large", speeds_json(speeds.large, "depth")},
            {"streams", speeds_json(speeds.streams, "streams")},
            {"small", speeds_json(speeds.small, "depth")}}}};
}

void print_text(const Place& place, const Calibration& calibration, const Speeds& speeds,
                bool is_kept) {
  const auto speed_text = [](const FioSpeed& speed) {
    return format_size(static_cast<uint64_t>(speed.bytes_per_second)) + "/s";
  };
  const auto line = [](const char* label, const std::map<uint32_t, FioSpeed>& all,
                       const auto& text) {
    fmt::print("  {:<30}", label);
    for (const auto& [number, speed] : all) fmt::print("  {}: {}", number, text(speed));
    fmt::print("\n");
  };
  fmt::print("{}: depth {}, best in {} stream{}{}\n", place.directory, calibration.depth,
             calibration.stream_count, calibration.stream_count == 1 ? "" : "s",
             is_kept ? "" : " (not kept)");
  line("reads of 4 MiB, by depth", speeds.large, speed_text);
  line("reads of 4 MiB, by streams", speeds.streams, speed_text);
  line("random reads of 4 KiB, by depth", speeds.small,
       [](const FioSpeed& speed) { return fmt::format("{:.0f}/s", speed.ios_per_second); });
}

Outcome<Json> calibrate(const Place& place, const CalibrateOptions& options) {
  const uint64_t file_bytes =
      options.file_bytes.value_or(kFileBytesDefault) / kLargeBytes * kLargeBytes;
  const Outcome<TestFile> file = TestFile::make(place.roots.front(), file_bytes);
  if (!file) return file.error();
  const std::chrono::milliseconds duration(static_cast<int64_t>(options.seconds * 1000));
  std::optional<Calibration> calibration;
  Speeds speeds;
  {  // its progress ends before the result is printed
    Measurement measurement(*file, place, duration);
    const Outcome<Calibration> measured = measurement.run();
    if (!measured) {
      // fio's own message would name a temporary file.
      if (measured.error().code == EINTR) return measured.error();
      return make_error(measured.error().code, "{}: {}", place.directory, measured.error().text);
    }
    calibration = *measured;
    speeds = measurement.speeds();
  }
  if (!options.dry_run) {
    for (const std::string& root : place.roots) {
      if (Outcome<void> kept = keep(root, *calibration); !kept) return kept.error();
    }
  }
  if (!options.as_json) print_text(place, *calibration, speeds, !options.dry_run);
  return place_json(place, *calibration, speeds, !options.dry_run);
}

Outcome<int> calibrate_all(const CalibrateOptions& options) {
  if (options.file_bytes && *options.file_bytes < kFileBytesMin) {
    return make_error(EINVAL, "--size {}: at least {}", format_size(*options.file_bytes),
                      format_size(kFileBytesMin));
  }
  catch_interrupts();
  // Checks everything that can be checked before the first measurement.
  std::vector<Place> places;
  for (const std::string& directory : options.directories) {
    Outcome<Place> place = find_devices(directory);
    if (!place) return place.error();
    places.push_back(std::move(*place));
  }
  if (Outcome<void> there = check_fio(); !there) return there.error();
  Json all = Json::array();
  for (const Place& place : places) {
    const Outcome<Json> about = calibrate(place, options);
    if (!about) return about.error();
    all.push_back(*about);
  }
  if (options.as_json) print_json(all);
  return kOk;
}

}  // namespace

void add_calibrate(Parser& parser) {
  const auto options = std::make_shared<CalibrateOptions>();
  Command* command = parser.add(
      "calibrate", "measure how many reads in flight serve a device best",
      "graphlane calibrate /mnt/d0 /mnt/d1 /mnt/d2 /mnt/d3\n\n"
      "Takes what --device of `graphlane create` took. fio reads a test file on each device\n"
      "28 times, large and small, and the depth that is chosen is kept in device.json,\n"
      "for all volumes on the device, from their next mount on. Nobody else should use\n"
      "the device meanwhile. `graphlane info` shows what is kept.");
  command->add_option("DEVICE", options->directories, "directory of a device")->required();
  command->add_option("--runtime", options->seconds, "of each measurement (1)")
      ->in_range(0.05, 3600.0)
      ->type_name("SECONDS");
  add_size(command, "--size", &options->file_bytes, "of the test file, at least 64M (1G)");
  command->add_flag("-n,--dry-run", options->dry_run, "only tell, keep nothing");
  command->add_flag("--json", options->as_json, "as JSON, with all that was measured");
  parser.on_chosen(command, options, calibrate_all);
}

}  // namespace graphlane::cli
