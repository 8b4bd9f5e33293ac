#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>
#include <vector>

#include "cli/command.h"
#include "iomgr/base/size.h"
#include "iomgr/read/extent_cache.h"
#include "iomgr/read/file_sweeps.h"
#include "iomgr/server/shared_cache.h"
#include "iomgr/server/volume_server.h"
#include "iomgr/volume/mount_table.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::cli {
namespace {

constexpr char kStatsXattr[] = "user.graphlane.stats";

struct StatOptions {
  std::string path;
  bool as_json = false;
  bool as_prometheus = false;
  bool watch = false;
  double interval_seconds = 1;
};

// The counters of one device; rates are differences of two of them.
struct DeviceStats {
  std::string path;
  uint64_t io_count = 0;
  uint64_t merged_count = 0;
  uint64_t bytes_read = 0;
  uint64_t bytes_written = 0;
  uint64_t segment_count = 0;
  std::vector<uint64_t> wait;  // histogram by powers of two of a microsecond (iomgr/base/latency.h)
  std::vector<uint64_t> service;
  // Counted by preloaded programs themselves (iomgr/server/client_counts.h).
  uint64_t preloaded_ios = 0;
  uint64_t preloaded_read = 0;
  uint64_t preloaded_written = 0;
};

// The source of statistics: a mount, or a volume's server.
struct Source {
  std::string place;
  bool is_mount = true;
};

Outcome<std::string> ask(const Source& source) {
  if (!source.is_mount) return ask_for_stats(source.place);
  std::string text(1 << 16, '\0');  // an attribute's maximum
  const ssize_t length = ::getxattr(source.place.c_str(), kStatsXattr, text.data(), text.size());
  if (length < 0) return os_error(errno, source.place, "cannot read the statistics");
  text.resize(static_cast<size_t>(length));
  return text;
}

// The mount at `path`; or the server of the volume at `path`, with or without a mount.
Outcome<Source> find_source(const std::string& path) {
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();
  if (error) return os_error(error.value(), path, "cannot open");
  if (const auto mount = find_volume_mount(real)) return Source{.place = mount->point};
  const Source served{.place = real, .is_mount = false};
  if (const Outcome<std::string> answer = ask(served); answer || answer.error().code != ENOENT) {
    return served;
  }
  for (const VolumeMount& mount : list_volume_mounts()) {
    if (mount.volume_root == real) return Source{.place = mount.point};
  }
  const Outcome<std::string> root = find_volume_root(real);
  if (!root) return make_error(ENOENT, "{}: not a Graphlane volume, nor in one", path);
  if (*root != real) {
    return make_error(EINVAL, "{}: not the volume itself, which is {}", path, *root);
  }
  return make_error(ENODEV,
                    "{0}: neither mounted nor served (graphlane mount {0}, or graphlane serve {0})",
                    path);
}

Outcome<Json> read_stats(const Source& source) {
  const Outcome<std::string> text = ask(source);
  if (!text) return text.error();
  std::optional<Json> stats = Json::parse(*text);
  if (stats && stats->is_object()) return std::move(*stats);
  return make_error(EPROTO, "{}: statistics that this program does not understand", source.place);
}

// The member's value; 0 if it is missing or not a number.
uint64_t number(const Json& object, const char* key) {
  return object.at_or_null(key).as_unsigned().value_or(0);
}

std::string text(const Json& object, const char* key) {
  const std::string* value = object.at_or_null(key).as_string();
  return value != nullptr ? *value : "?";
}

std::vector<uint64_t> numbers(const Json& object, const char* key) {
  std::vector<uint64_t> all;
  for (const Json& one : object.at_or_null(key).elements()) {
    all.push_back(one.as_unsigned().value_or(0));
  }
  return all;
}

std::vector<DeviceStats> devices_of(const Json& stats) {
  std::vector<DeviceStats> devices;
  for (const Json& device : stats.at_or_null("devices").elements()) {
    const Json& preloaded = device.at_or_null("preloaded");
    devices.push_back({.path = text(device, "path"),
                       .io_count = number(device, "ios"),
                       .merged_count = number(device, "merged"),
                       .bytes_read = number(device, "bytes_read"),
                       .bytes_written = number(device, "bytes_written"),
                       .segment_count = number(device, "segments"),
                       .wait = numbers(device, "wait"),
                       .service = numbers(device, "service"),
                       .preloaded_ios = number(preloaded, "ios"),
                       .preloaded_read = number(preloaded, "bytes_read"),
                       .preloaded_written = number(preloaded, "bytes_written")});
  }
  return devices;
}

// The growth of a counter. One that has fallen belongs to a new server, which began at 0.
uint64_t growth(uint64_t now, uint64_t before) { return now >= before ? now - before : now; }

std::vector<uint64_t> growth(std::vector<uint64_t> now, const std::vector<uint64_t>& before) {
  for (size_t i = 0; i < now.size() && i < before.size(); ++i) now[i] = growth(now[i], before[i]);
  return now;
}

// The work between two readings, per second.
DeviceStats rate(const DeviceStats& now, const DeviceStats& before, double seconds) {
  const auto per_second = [&](uint64_t a, uint64_t b) {
    return static_cast<uint64_t>(static_cast<double>(growth(a, b)) / seconds);
  };
  return {.path = now.path,
          .io_count = per_second(now.io_count, before.io_count),
          .merged_count = per_second(now.merged_count, before.merged_count),
          .bytes_read = per_second(now.bytes_read, before.bytes_read),
          .bytes_written = per_second(now.bytes_written, before.bytes_written),
          .segment_count = per_second(now.segment_count, before.segment_count),
          .wait = growth(now.wait, before.wait),
          .service = growth(now.service, before.service),
          .preloaded_ios = per_second(now.preloaded_ios, before.preloaded_ios),
          .preloaded_read = per_second(now.preloaded_read, before.preloaded_read),
          .preloaded_written = per_second(now.preloaded_written, before.preloaded_written)};
}

std::string format_time(uint64_t us) {
  if (us < 1000) return fmt::format("{}us", us);
  return us < 1'000'000 ? fmt::format("{}ms", us / 1000) : fmt::format("{}s", us / 1'000'000);
}

// The percentile of a histogram, rounded up to a power of two.
std::string percentile(const std::vector<uint64_t>& counts, double share) {
  uint64_t all = 0;
  for (const uint64_t count : counts) all += count;
  uint64_t below = 0;
  for (size_t i = 0; i < counts.size() && all > 0; ++i) {
    below += counts[i];
    if (static_cast<double>(below) >= share * static_cast<double>(all)) {
      return format_time(uint64_t{1} << i);
    }
  }
  return "-";
}

// Prints the cache's counters, and the MiB that were prefetched (iomgr/read/extent_cache.h).
void print_cache(const Json& stats) {
  const Json& cache = stats.at_or_null("cache");
  const uint64_t budget = number(cache, "budget_bytes");
  if (budget == 0) return;
  const auto size = [&](const char* key) { return format_size(number(cache, key)); };
  const auto frames = [&](const char* key) { return format_size(number(cache, key) << 20); };
  fmt::print(
      "cache: {} of {} in use\n"
      "       {} hit, {} fetched, {} bypassed\n"
      "       prefetched: {}, {} used, {} unused\n",
      size("resident_bytes"), format_size(budget), size("hit_bytes"), size("fetched_bytes"),
      size("bypassed_bytes"), frames("prefetched_frames"), frames("prefetched_used_frames"),
      frames("prefetched_unused_frames"));
}

// Prints prefetches into the page cache for files that are swept in turn
// (iomgr/read/file_sweeps.h).
void print_sweeps(const Json& stats) {
  const Json& sweeps = stats.at_or_null("sweeps");
  if (number(sweeps, "prefetched_bytes") == 0) return;
  const auto size = [&](const char* key) { return format_size(number(sweeps, key)); };
  fmt::print("page cache: {} prefetched: {} used, {} unused\n", size("prefetched_bytes"),
             size("used_bytes"), size("unused_bytes"));
}

// Prints the number of blocks that reads have verified (iomgr/volume/sum/part_sums.h).
void print_checksums(const Json& stats) {
  const Json& blocks = stats.at_or_null("checksums");
  if (number(blocks, "verified") + number(blocks, "unverified") + number(blocks, "failed") == 0) {
    return;
  }
  fmt::print("checksums: {} blocks verified, {} failed, {} unchecked\n", number(blocks, "verified"),
             number(blocks, "failed"), number(blocks, "unverified"));
}

// Prints the counters of reads that processes share (iomgr/server/shared_cache.h).
void print_shared(const Json& stats) {
  const Json& shared = stats.at_or_null("shared");
  if (number(shared, "fetched_bytes") == 0) return;
  const auto size = [&](const char* key) { return format_size(number(shared, key)); };
  fmt::print("shared: {} of {} in use\n        {} hit, {} fetched, {} rejected\n",
             size("resident_bytes"), size("budget_bytes"), size("hit_bytes"), size("fetched_bytes"),
             size("rejected_bytes"));
}

constexpr size_t kStatColumns = 60;
constexpr size_t kDeviceColumns = 12;

// Truncates a long text at its begin, because its end tells more.
std::string tail_of(const std::string& path, size_t columns) {
  return path.size() <= columns ? path : ".." + path.substr(path.size() - columns + 2);
}

// The milliseconds that a directory's block device has been busy since boot, for all processes;
// none: it is not on a block device.
std::optional<uint64_t> busy_ms(const std::string& directory) {
  struct stat st;
  if (::stat(directory.c_str(), &st) != 0) return std::nullopt;
  std::ifstream file(fmt::format("/sys/dev/block/{}:{}/stat", major(st.st_dev), minor(st.st_dev)));
  constexpr int kTicks = 9;  // the tenth field (Documentation/block/stat.rst)
  uint64_t value = 0;
  for (int field = 0; field <= kTicks; ++field) {
    if (!(file >> value)) return std::nullopt;
  }
  return value;
}

DeviceStats sum_of(const std::vector<DeviceStats>& devices) {
  DeviceStats all;
  all.path = "total";
  const auto add = [](std::vector<uint64_t>* to, const std::vector<uint64_t>& counts) {
    if (to->size() < counts.size()) to->resize(counts.size());
    for (size_t i = 0; i < counts.size(); ++i) (*to)[i] += counts[i];
  };
  for (const DeviceStats& d : devices) {
    all.io_count += d.io_count;
    all.bytes_read += d.bytes_read;
    all.bytes_written += d.bytes_written;
    all.preloaded_ios += d.preloaded_ios;
    all.preloaded_read += d.preloaded_read;
    all.preloaded_written += d.preloaded_written;
    add(&all.wait, d.wait);
    add(&all.service, d.service);
  }
  return all;
}

// `busy`: percent for each device, where known and asked for. A device's line includes I/Os of
// preloaded programs, but not their latencies, which only the programs know.
void print_table(const std::string& title, const std::vector<DeviceStats>& devices,
                 const std::vector<std::string>& busy) {
  fmt::print("{}\n{:>8} {:>8} {:>8} {:>5} {:>6} {:>6}  {}\n", title, "I/Os", "read", "written",
             "busy", "wait", "took", "device");
  const auto print = [&](const DeviceStats& d, const std::string& share) {
    fmt::print("{:>8} {:>8} {:>8} {:>5} {:>6} {:>6}  {}\n", d.io_count + d.preloaded_ios,
               format_size(d.bytes_read + d.preloaded_read),
               format_size(d.bytes_written + d.preloaded_written), share, percentile(d.wait, 0.9),
               percentile(d.service, 0.9), tail_of(d.path, kDeviceColumns));
  };
  for (size_t i = 0; i < devices.size(); ++i) print(devices[i], i < busy.size() ? busy[i] : "");
  const DeviceStats all = sum_of(devices);
  print(all, "");
  if (all.preloaded_ios == 0) return;
  fmt::print("of which preloaded programs, as they say:\n{:>8} {:>8} {:>8}\n", all.preloaded_ios,
             format_size(all.preloaded_read), format_size(all.preloaded_written));
}

// "/mnt/graphs, io_uring, per second         21:14:05, q ends it"
std::string title_of(const std::string& place, const std::string& what, const std::string& right) {
  const size_t room = kStatColumns - right.size() - what.size() - 4;
  return fmt::format("{:<{}}  {}", tail_of(place, room) + ": " + what,
                     kStatColumns - right.size() - 2, right);
}

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  ::localtime_r(&now, &parts);
  return fmt::format("{:02}:{:02}:{:02}", parts.tm_hour, parts.tm_min, parts.tm_sec);
}

// Quotes a label: https://prometheus.io/docs/instrumenting/exposition_formats
std::string prometheus_label(std::string_view value) {
  std::string quoted;
  for (const char c : value) {
    if (c == '\\' || c == '"') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else {
      quoted += c;
    }
  }
  return quoted;
}

void print_counter(const std::vector<DeviceStats>& devices, std::string_view labels,
                   std::string_view name, std::string_view help, uint64_t DeviceStats::* member) {
  fmt::print("# HELP graphlane_device_{0} {1}\n# TYPE graphlane_device_{0} counter\n", name, help);
  for (const DeviceStats& d : devices) {
    fmt::print("graphlane_device_{}{{{},device=\"{}\"}} {}\n", name, labels,
               prometheus_label(d.path), d.*member);
  }
}

// Prints buckets and count; the lanes keep no sum.
void print_histogram(const std::vector<DeviceStats>& devices, std::string_view labels,
                     std::string_view name, std::string_view help,
                     std::vector<uint64_t> DeviceStats::* member) {
  fmt::print("# HELP graphlane_device_{0} {1}\n# TYPE graphlane_device_{0} histogram\n", name,
             help);
  for (const DeviceStats& d : devices) {
    const std::string device = fmt::format("{},device=\"{}\"", labels, prometheus_label(d.path));
    const std::vector<uint64_t>& counts = d.*member;
    uint64_t below = 0;
    for (size_t i = 0; i + 1 < counts.size(); ++i) {  // the last bucket has no bound
      below += counts[i];
      fmt::print("graphlane_device_{}_bucket{{{},le=\"{:g}\"}} {}\n", name, device,
                 static_cast<double>(uint64_t{1} << i) / 1e6, below);
    }
    if (!counts.empty()) below += counts.back();
    fmt::print("graphlane_device_{}_bucket{{{},le=\"+Inf\"}} {}\n", name, device, below);
    fmt::print("graphlane_device_{}_count{{{}}} {}\n", name, device, below);
  }
}

// The counters of a section of the statistics, which has the keys of `Stats`.
template <class Stats>
void print_section(const Json& stats, std::string_view section, std::string_view labels) {
  for_each_counter(Stats(), [&](const CounterName& counter, uint64_t) {
    const std::string name =
        fmt::format("graphlane_{}_{}{}", section, counter.key, counter.is_gauge ? "" : "_total");
    fmt::print("# HELP {0} {1}\n# TYPE {0} {2}\n{0}{{{3}}} {4}\n", name, counter.help,
               counter.is_gauge ? "gauge" : "counter", labels,
               number(stats.at_or_null(section), counter.key));
  });
}

void print_prometheus(const std::string& mount, const Json& stats) {
  const std::vector<DeviceStats> devices = devices_of(stats);
  const std::string labels = fmt::format("mount=\"{}\"", prometheus_label(mount));
  const auto counter = [&](const char* name, const char* help, uint64_t DeviceStats::* member) {
    print_counter(devices, labels, name, help, member);
  };
  counter("ios_total", "Calls to the device.", &DeviceStats::io_count);
  counter("merged_ios_total", "I/Os merged into the call of another one.",
          &DeviceStats::merged_count);
  counter("read_bytes_total", "Bytes read.", &DeviceStats::bytes_read);
  counter("written_bytes_total", "Bytes written.", &DeviceStats::bytes_written);
  counter("segments_total", "Stripe units touched.", &DeviceStats::segment_count);
  counter("preloaded_ios_total", "Calls that preloaded programs report.",
          &DeviceStats::preloaded_ios);
  counter("preloaded_read_bytes_total", "Bytes read that preloaded programs report.",
          &DeviceStats::preloaded_read);
  counter("preloaded_written_bytes_total", "Bytes written that preloaded programs report.",
          &DeviceStats::preloaded_written);
  print_histogram(devices, labels, "wait_seconds", "Time of an I/O in the queue.",
                  &DeviceStats::wait);
  print_histogram(devices, labels, "service_seconds", "Time of a call on the device.",
                  &DeviceStats::service);
  print_section<ExtentCacheStats>(stats, "cache", labels);
  print_section<PrefetchStats>(stats, "sweeps", labels);
  print_section<SharedStats>(stats, "shared", labels);
}

// Repeats until an interrupt or the server's end. On a terminal it redraws in place.
Outcome<int> watch(const Source& source, Json stats, const StatOptions& options) {
  const bool in_place = ::isatty(STDOUT_FILENO) == 1;
  auto then = std::chrono::steady_clock::now();
  std::vector<std::optional<uint64_t>> busy_then;
  for (const DeviceStats& device : devices_of(stats)) busy_then.push_back(busy_ms(device.path));
  if (in_place) fmt::print("\033[2J");
  for (;;) {
    std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_seconds));
    Outcome<Json> next = read_stats(source);
    if (!next) return next.error();
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - then).count();
    if (options.as_json) {
      print_json(*next, -1);
    } else {
      const std::vector<DeviceStats> before = devices_of(stats);
      std::vector<DeviceStats> rates = devices_of(*next);
      for (size_t d = 0; d < rates.size(); ++d) {
        rates[d] = rate(rates[d], d < before.size() ? before[d] : DeviceStats{}, seconds);
      }
      std::vector<std::string> busy(rates.size(), "-");
      busy_then.resize(rates.size());
      for (size_t d = 0; d < rates.size(); ++d) {
        const std::optional<uint64_t> now_ms = busy_ms(rates[d].path);
        if (now_ms && busy_then[d]) {
          busy[d] = fmt::format(
              "{:.0f}%",
              std::min(100.0, static_cast<double>(growth(*now_ms, *busy_then[d])) / seconds / 10));
        }
        busy_then[d] = now_ms;
      }
      if (in_place) fmt::print("\033[H\033[J");
      print_table(title_of(source.place, text(*next, "backend") + ", per second",
                           time_of_day() + (in_place ? ", ^C ends" : "")),
                  rates, busy);
      print_cache(*next);
    }
    std::fflush(stdout);
    if (std::ferror(stdout) != 0) return kFailed;  // the reader has gone
    stats = std::move(*next);
    then = now;
  }
}

Outcome<int> stat(const StatOptions& options) {
  const Outcome<Source> source = find_source(options.path);
  if (!source) return source.error();
  const Outcome<Json> stats = read_stats(*source);
  if (!stats) return stats.error();
  if (options.watch) return watch(*source, *stats, options);
  if (options.as_json) {
    print_json(*stats);
  } else if (options.as_prometheus) {
    print_prometheus(source->place, *stats);
  } else {
    print_table(title_of(source->place, text(*stats, "backend"), time_of_day()), devices_of(*stats),
                {});
    print_cache(*stats);
    print_sweeps(*stats);
    print_shared(*stats);
    print_checksums(*stats);
  }
  return kOk;
}

}  // namespace

void add_stat(Parser& parser) {
  const auto options = std::make_shared<StatOptions>();
  Command* command = parser.add(
      "stat", "show what a mounted or served volume's devices have done",
      "graphlane stat --watch graphs\n\n"
      "I/Os and bytes of each device since then, and how long nine tenths of the I/Os\n"
      "waited in its queue and took on it, to a power of two. With --watch per second, and\n"
      "how busy the device is, for all programs. Preloaded programs count what they do past the\n"
      "server themselves, those of run --no-mount while graphlane serve runs; any of them\n"
      "can count wrong. --json has more.");
  command->add_option("PATH", options->path, "VOL, or where it is mounted")->required();
  Option* as_json = command->add_flag("--json", options->as_json, "as JSON, sizes in bytes");
  Option* as_prometheus =
      command->add_flag("--prometheus", options->as_prometheus, "as Prometheus reads it");
  Option* watch = command->add_flag("-w,--watch", options->watch,
                                    "again and again, per second; JSON: a line each time");
  command->add_option("-i,--interval", options->interval_seconds, "with --watch (default: 1)")
      ->help_text("SECONDS")
      ->in_range(0.01, 86400.0)
      ->needs(watch);
  as_prometheus->excludes(as_json)->excludes(watch);
  parser.on_chosen(command, options, stat);
}

}  // namespace graphlane::cli
