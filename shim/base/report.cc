#include "shim/base/report.h"

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/server/server_socket.h"
#include "shim/base/settings.h"
#include "shim/fd/fd_table.h"
#include "shim/fd/open_file.h"
#include "shim/read/queues.h"
#include "shim/read/read_cache.h"
#include "shim/read/sweep_step.h"
#include "shim/share/mapped_pages.h"
#include "shim/share/shared_reader.h"

namespace graphlane::shim {
namespace {

// Several volumes may be open at once. Beyond that, devices share the last entry.
constexpr uint32_t kDeviceEntries = 128;
constexpr uint32_t kFileEntries = 256;

DeviceCounters device_table[kDeviceEntries];
std::atomic<uint32_t> device_entries{0};
FileCounters file_table[kFileEntries];
std::atomic<uint32_t> file_entries{0};

// The entry with this name, or a new one, filled by `fill` before it counts.
template <class Entry, uint32_t kEntries, class Name, class Fill>
Entry* find_or_add(Entry (&table)[kEntries], std::atomic<uint32_t>& used, Name name,
                   std::string_view wanted, Fill fill) {
  const uint32_t count = used.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < count; ++i) {
    if (name(table[i]) == wanted) return &table[i];
  }
  if (count == kEntries) return &table[kEntries - 1];
  fill(table[count]);
  used.store(count + 1, std::memory_order_release);
  return &table[count];
}

const char* way_of(const FileCounters& file) {
  switch (file.origin) {
    case Origin::kMount: return "devices, over the mount";
    case Origin::kStub: return "devices, without a mount";
    case Origin::kLinked: return "devices, over the mount";
    case Origin::kWritten: return "the mount: a writer has it open";
    case Origin::kDamaged: return "refused: damaged";
    case Origin::kForeign: break;
  }
  return "libc";
}

using ReportText = Text<65536>;

void append_json_string(ReportText& out, std::string_view text) {
  out << "\"";
  for (const char& c : text) {
    if (c == '"' || c == '\\') out << "\\";
    if (static_cast<unsigned char>(c) >= 0x20) out << std::string_view(&c, 1);
  }
  out << "\"";
}

template <class Stats>
void append_json_counters(ReportText& out, const Stats& stats) {
  const char* between = "";
  for_each_counter(stats, [&](const CounterName& name, uint64_t count) {
    out << between << "\"" << name.key << "\":" << count;
    between = ",";
  });
}

template <class Stats>
void write_counters(ReportText& out, const char* of, const Stats& stats) {
  out << "graphlane:   " << of;
  const char* between = " ";
  for_each_counter(stats, [&](const CounterName& name, uint64_t count) {
    out << between << count << " " << name.phrase;
    between = ", ";
  });
  out << "\n";
}

uint64_t value(const std::atomic<uint64_t>& counter) {
  return counter.load(std::memory_order_relaxed);
}

// The calls on the file that FUSE served, by reason.
template <class Visit>
void for_each_left(const FileCounters& file, Visit visit) {
  if (const uint64_t count = value(file.failed_count); count > 0) {
    visit(count, "could not be read from the devices");
  }
  if (const uint64_t count = value(file.written_count); count > 0) {
    visit(count, "a writer had the file open");
  }
  if (const uint64_t count = value(file.small_count); count > 0) {
    visit(count, "small, and the kernel had it in memory of late");
  }
  for (size_t i = 0; i < kGroupCount; ++i) {
    if (const uint64_t count = value(file.left_count[i]); count > 0) {
      visit(count, kGroups[i].phrase);
    }
  }
}

std::string_view program_path() {
  static PathText path;
  path.assign([](char* room, size_t size) {
    return ::syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", room, size);
  });
  return path.view();
}

void write_json(ReportText& out) {
  out << "{\"pid\":" << static_cast<uint64_t>(::syscall(SYS_getpid)) << ",\"program\":";
  append_json_string(out, program_path());
  out << ",\"backend\":\"" << queues.backend_in_use() << "\",\"devices\":[";
  for (uint32_t i = 0; i < device_entries.load(std::memory_order_acquire); ++i) {
    const DeviceCounters& device = device_table[i];
    out << (i > 0 ? "," : "") << "{\"path\":";
    append_json_string(out, device.directory.view());
    out << ",\"depth\":" << uint64_t{device.depth.load(std::memory_order_relaxed)}
        << ",\"ios\":" << value(device.io_count) << ",\"bytes_read\":" << value(device.bytes_read)
        << ",\"bytes_written\":" << value(device.bytes_written) << "}";
  }
  out << "],\"cache\":{";
  append_json_counters(out, read_cache_stats());
  out << "},\"sweeps\":{";
  append_json_counters(out, sweep_stats());
  out << "},\"shared_bytes\":" << shared_bytes() << ",\"mapped_bytes\":" << mapped_bytes()
      << ",\"files\":[";
  for (uint32_t i = 0; i < file_entries.load(std::memory_order_acquire); ++i) {
    const FileCounters& file = file_table[i];
    out << (i > 0 ? "," : "") << "{\"path\":";
    append_json_string(out, file.path.view());
    out << ",\"way\":\"" << way_of(file) << "\",\"reads\":" << value(file.read_count)
        << ",\"bytes_read\":" << value(file.bytes_read) << ",\"writes\":" << value(file.write_count)
        << ",\"bytes_written\":" << value(file.bytes_written) << ",\"left_to_fuse\":[";
    const char* comma = "";
    for_each_left(file, [&](uint64_t count, const char* why) {
      out << comma << "{\"calls\":" << count << ",\"why\":\"" << why << "\"}";
      comma = ",";
    });
    out << "]}";
  }
  out << "]}\n";
}

void write_table(ReportText& out) {
  out << "graphlane: report of " << program_path() << " (pid "
      << static_cast<uint64_t>(::syscall(SYS_getpid)) << ", " << queues.backend_in_use() << ")\n";
  for (uint32_t i = 0; i < file_entries.load(std::memory_order_acquire); ++i) {
    const FileCounters& file = file_table[i];
    out << "graphlane:   file   " << file.path.view() << ": " << value(file.read_count)
        << " reads, " << value(file.bytes_read) << " bytes from the " << way_of(file);
    if (const uint64_t writes = value(file.write_count); writes > 0) {
      out << "; " << writes << " writes, " << value(file.bytes_written) << " bytes to them";
    }
    out << "\n";
    for_each_left(file, [&](uint64_t count, const char* why) {
      out << "graphlane:     left to FUSE, " << count << (count == 1 ? " call: " : " calls: ")
          << why << "\n";
    });
  }
  for (uint32_t i = 0; i < device_entries.load(std::memory_order_acquire); ++i) {
    const DeviceCounters& device = device_table[i];
    out << "graphlane:   device " << device.directory.view() << ": " << value(device.io_count)
        << " I/Os, " << value(device.bytes_read) << " bytes read, " << value(device.bytes_written)
        << " written\n";
  }
  if (const uint64_t bytes = shared_bytes(); bytes > 0) {
    out << "graphlane:   shared with other processes: " << bytes << " bytes read, "
        << mapped_bytes() << " of them not copied\n";
  }
  const ExtentCacheStats cache = read_cache_stats();
  if (cache.budget_bytes > 0) write_counters(out, "cache", cache);
  const PrefetchStats sweeps = sweep_stats();
  if (sweeps.prefetched_bytes > 0) write_counters(out, "page cache, prefetch", sweeps);
}

ReportText report_text;

// Duplicated at the start, because many programs close stderr before the library's destructors run
// (coreutils do, to notice a full disk).
int report_fd = -1;

__attribute__((constructor)) void keep_stderr() {
  const char* target = settings().report;
  if (target == nullptr || std::string_view(target) != "1") return;
  report_fd = sys::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, internal_fd_floor());
  if (FdTable::covers(report_fd)) fd_table.exchange(report_fd, FdEntry::internal());
}

// Tells `graphlane run`, which waits for that, so that it can say why there is no report.
void tell_reported() {
  const char* const name = settings().reported;
  if (name == nullptr || std::strlen(name) != kServerNameSize) return;
  (void)ServerAddress::of_mount(name).send_byte();
}

// Prints nothing for a process that read no striped file, like most of a shell's children.
__attribute__((destructor)) void print_report() {
  const char* target = settings().report;
  if (target == nullptr || file_entries.load(std::memory_order_acquire) == 0) return;
  if (std::string_view(target) == "1") {
    write_table(report_text);
    (void)!sys::write(report_fd, report_text.c_str(), report_text.view().size());
    tell_reported();
    return;
  }
  write_json(report_text);
  const Fd fd(sys::openat(AT_FDCWD, target, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd || !write_full(fd.get(), report_text.c_str(), report_text.view().size())) {
    complain(target, "cannot write the report");
  }
  tell_reported();
}

}  // namespace

DeviceCounters* counters_of_device(const char* root) {
  std::string_view directory(root);
  directory = directory.substr(0, directory.rfind('/'));
  return find_or_add(
      device_table, device_entries, [](const auto& d) { return d.directory.view(); }, directory,
      [&](DeviceCounters& device) { device.directory << directory; });
}

FileCounters* counters_of_file(int fd, Origin origin) {
  static PathText path;  // under the SlowLock
  find_path(fd, &path);
  return find_or_add(
      file_table, file_entries, [](const auto& f) { return f.path.view(); }, path.view(),
      [&](FileCounters& file) {
        file.path << path.view();
        file.origin = origin;
      });
}

}  // namespace graphlane::shim
