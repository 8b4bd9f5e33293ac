#include "iomgr/server/shared_cache.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "iomgr/base/files/reopen.h"
#include "iomgr/base/memory_order.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/base/sys.h"
#include "iomgr/read/pattern/read_stream.h"

namespace graphlane {
namespace {

constexpr uint64_t kNeverWanted = UINT64_MAX;
// A scan that has not moved for so long is not waited for.
constexpr auto kMoving = std::chrono::seconds(1);
constexpr auto kProcessRemembered = std::chrono::seconds(2);
constexpr uint32_t kSweepReads = 3;      // forward reads that make a sweep
constexpr uint64_t kUnseen = 256 << 10;  // stays in the processor's cache
constexpr uint64_t kBudgetStep = 16 << 20;
// 64 TiB of all files together. A sparse file can have any size, and each frame takes a byte here.
constexpr uint64_t kFramesMax = uint64_t{1} << 26;

uint64_t first_frame_of(ByteRange range) { return range.offset / kExtentFrameBytes; }
uint64_t end_frame_of(ByteRange range) {
  return (range.end() + kExtentFrameBytes - 1) / kExtentFrameBytes;
}

}  // namespace

// The reads of one process in one file, by all its threads.
struct SharedScan::ProcessReads {
  // Threads come in any order, each with its block, which may be several reads.
  void add(ByteRange range) {
    longest_bytes = std::max(longest_bytes, range.length_bytes);
    const uint64_t slack_bytes = 2 * longest_bytes * std::max(link_count, 1u);
    if (stream.is_near_end(range, slack_bytes)) return stream.extend(range);
    stream.restart(range);
    longest_bytes = range.length_bytes;
  }
  // False for random reads, and for repeated reads of one place.
  bool sweeps() const { return stream.is_dense(kSweepReads); }

  ReadStream stream;
  uint64_t longest_bytes = 0;  // since it began
  uint32_t link_count = 0;     // about one for each thread
};

// The place of a scan, kept for a while after the scan.
struct SharedScan::Place {
  // The range of the last fetch, until the reader has it. Then it is empty, at its end.
  uint64_t frame = 0;
  uint64_t end_frame = 0;
  SharingProcess process;
  std::shared_ptr<ProcessReads> reads;
  bool fetching = false;
  bool held = false;  // the fetch waits for another scan
  bool ended = false;
  std::chrono::steady_clock::time_point moved;

  // It sweeps, and has neither ended nor stopped.
  bool is_active(std::chrono::steady_clock::time_point now) const {
    return reads->sweeps() && (fetching || (!ended && now - moved < kMoving));
  }
  // False for a scan that is held, so that two scans do not wait for each other for long.
  bool is_moving(std::chrono::steady_clock::time_point now) const {
    return (fetching && !held) || (!ended && now - moved < kMoving);
  }
};

// A file in one generation.
struct SharedScan::File {
  enum class State : uint8_t { kAbsent, kFilling, kThere };

  ~File() {
    if (memory != nullptr) ::munmap(memory, layout.total_bytes);
  }
  SharedHeader& header() const { return *reinterpret_cast<SharedHeader*>(memory); }
  SharedFlag& flag(uint64_t frame) const {
    return reinterpret_cast<SharedFlag*>(memory + sizeof(SharedHeader))[frame];
  }
  ByteRange range_of(uint64_t frame) const {
    const uint64_t offset = frame * kExtentFrameBytes;
    return {.offset = offset, .length_bytes = std::min(kExtentFrameBytes, size_bytes - offset)};
  }

  // Whether the kernel has reclaimed pages of it. The oldest pages go first, so two samples tell.
  bool has_lost(uint64_t frame) const {
    const ByteRange range = range_of(frame);
    const auto is_gone = [&](uint64_t offset) {
      const PartLocation at = file->map().locate(offset);
      return sys::would_wait(file->parts().buffered(at.device_index), at.part_offset);
    };
    return is_gone(range.offset) || is_gone(range.end() - 1);
  }

  std::shared_ptr<const StripedFile> file;
  SharedCache::Content content;
  uint64_t size_bytes = 0;
  SharedLayout layout{0};
  Fd memfd;
  Fd frames;  // the memfd, read-only
  std::byte* memory = nullptr;
  std::vector<State> states;
  uint32_t fill_count = 0;  // in flight
  uint64_t fills_begun = 0;
  std::vector<std::shared_ptr<Place>> places;
};

// ---- scans

SharedScan::SharedScan(SharedCache& cache, std::shared_ptr<File> file, std::shared_ptr<Place> place)
    : cache_(cache), file_(std::move(file)), place_(std::move(place)) {}

SharedScan::~SharedScan() {
  MutexLock lock(cache_.mu_);
  // One ended scan is enough for a process that opens and closes the file all the time.
  std::erase_if(file_->places, [this](const auto& other) {
    return other->ended && other->process == place_->process;
  });
  place_->ended = true;
  place_->reads->link_count -= 1;
  place_->moved = SharedCache::Clock::now();
  cache_.stats_.scan_count -= 1;
  cache_.changed_.notify_all();
}

int SharedScan::frames_fd() const { return file_->frames.get(); }
uint64_t SharedScan::size_bytes() const { return file_->size_bytes; }
const StripedFile& SharedScan::file() const { return *file_->file; }

int SharedScan::fetch(ByteRange range) { return cache_.fetch(*file_, *place_, range); }

void SharedScan::fetch_ahead() {
  ByteRange range;
  {
    MutexLock lock(cache_.mu_);
    const uint64_t most = scan_budget_of(cache_.budget_bytes_);
    range = place_->reads->stream.take_ahead(most);
  }
  if (range.length_bytes > 0) (void)cache_.load(*file_, *place_, range, true);
}

void SharedScan::passed(ByteRange range) {
  MutexLock lock(cache_.mu_);
  // A fetch has counted the range already.
  const bool fetched = place_->frame < place_->end_frame;
  if (!fetched) place_->reads->add(range);
  cache_.move_to(*place_, range);
  place_->frame = place_->end_frame;
  if (!fetched) cache_.stats_.hit_bytes += range.length_bytes;
}

// ---- files

SharedCache::SharedCache(const SharedCacheOptions& options, Move move, IsCurrent is_current)
    : options_(options),
      move_(std::move(move)),
      is_current_(std::move(is_current)),
      unseen_(kUnseen) {
  update_budget();
}

SharedCache::~SharedCache() = default;

Result<std::unique_ptr<SharedScan>> SharedCache::begin(std::shared_ptr<const StripedFile> file,
                                                       Content content,
                                                       const SharingProcess& process) {
  MutexLock lock(mu_);
  const auto make = [&]() REQUIRES(mu_) -> Result<std::shared_ptr<File>> {
    auto made = std::make_shared<File>();
    const uint64_t size = file->size();
    made->file = file;
    made->size_bytes = size;
    made->content = content;
    made->layout = SharedLayout(size);
    uint64_t frame_count = made->layout.frame_count;
    for (const auto& other : files_) frame_count += other->layout.frame_count;
    if (frame_count > kFramesMax) return Errno{EFBIG};
    made->memfd.reset(::memfd_create("graphlane-shared", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    // Mode 0400: only the owner may reopen it for writing, by /proc. The seals keep its size,
    // because a reader's load from a shorter file would fault.
    if (!made->memfd || ::fchmod(made->memfd.get(), 0400) != 0 ||
        ::ftruncate(made->memfd.get(), static_cast<off_t>(made->layout.total_bytes)) != 0 ||
        ::fcntl(made->memfd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      return last_errno();
    }
    made->frames = reopen(made->memfd.get(), O_RDONLY);
    if (!made->frames) return last_errno();
    void* const memory = ::mmap(nullptr, made->layout.total_bytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED, made->memfd.get(), 0);
    if (memory == MAP_FAILED) return last_errno();
    (void)::madvise(memory, made->layout.total_bytes, MADV_DONTDUMP);
    made->memory = static_cast<std::byte*>(memory);
    auto& header = *new (memory) SharedHeader();
    header.size_bytes = size;
    header.content_time_ns = content.time_ns;
    made->states.resize(made->layout.frame_count);
    return made;
  };
  const Uuid& id = file->layout().file_id;
  auto found = std::find_if(files_.begin(), files_.end(), [&](const auto& one) {
    return one->file->layout().file_id == id && one->content == content &&
           one->size_bytes == file->size();
  });
  if (found == files_.end()) {
    Result<std::shared_ptr<File>> made = make();
    if (!made) return made.error();
    files_.push_back(std::move(*made));
    found = files_.end() - 1;
  }
  auto place = std::make_shared<Place>();
  place->process = process;
  for (const auto& other : (*found)->places) {
    if (other->process == process) place->reads = other->reads;
  }
  if (!place->reads) place->reads = std::make_shared<SharedScan::ProcessReads>();
  place->reads->link_count += 1;
  place->moved = Clock::now();
  (*found)->places.push_back(place);
  stats_.scan_count += 1;
  count_processes(**found);
  return std::unique_ptr<SharedScan>(new SharedScan(*this, *found, std::move(place)));
}

bool SharedCache::is_current(const File& file) const {
  return is_current_(*file.file, file.content);
}

void SharedCache::tidy() {
  MutexLock lock(mu_);
  const auto now = Clock::now();
  for (const auto& file : files_) {
    std::erase_if(file->places, [&](const auto& place) {
      return place->ended && now - place->moved > options_.remembered;
    });
    // The connection may survive its process, in a forked child that does not use it.
    for (const auto& place : file->places) {
      if (!place->ended && ::kill(place->process.pid, 0) != 0 && errno == ESRCH) {
        place->ended = true;
      }
    }
    count_processes(*file);
    if (file->places.empty() || !is_current(*file)) drop_file(*file);
  }
  // A scan may outlive its place, in a thread that waits for devices when its client is killed.
  // Its frames are dropped at the next call.
  std::erase_if(files_,
                [](const auto& file) { return file->places.empty() && file.use_count() == 1; });
  update_budget();
}

SharedStats SharedCache::stats() const {
  MutexLock lock(mu_);
  SharedStats stats = stats_;
  stats.resident_bytes = resident_.size() * kExtentFrameBytes;
  stats.budget_bytes = budget_bytes_;
  return stats;
}

// A process counts for a while after it closed the file: engines reopen a file between sweeps.
void SharedCache::count_processes(File& file) {
  const auto now = Clock::now();
  std::vector<SharingProcess> processes;
  for (const auto& place : file.places) {
    if (!place->ended || now - place->moved < kProcessRemembered) {
      processes.push_back(place->process);
    }
  }
  std::sort(processes.begin(), processes.end());
  const auto end = std::unique(processes.begin(), processes.end());
  // Relaxed: orders nothing.
  file.header().process_count.store(static_cast<uint32_t>(end - processes.begin()),
                                    std::memory_order_relaxed);
}

void SharedCache::detect_crowding(uint64_t available_bytes) {
  uint64_t all_bytes = 0;
  for (const auto& file : files_) {
    const SharedHeader& header = file->header();
    if (header.process_count.load(relaxed) > 0) all_bytes += header.size_bytes;
  }
  const bool crowded = fit_in_memory(IoMode::kAuto, all_bytes, available_bytes) == MemoryFit::kNot;
  for (const auto& file : files_) file->header().crowded.store(crowded ? 1 : 0, relaxed);
}

void SharedCache::update_budget() {
  const uint64_t available_bytes = memory_available_bytes();
  detect_crowding(available_bytes);
  budget_bytes_ = options_.budget_bytes;
  if (options_.budget_bytes == kAutoBudget) {
    budget_bytes_ = budget_of(MemoryUse::kSharedPages, available_bytes);
  }
  unchecked_bytes_ = 0;
  const size_t keep = budget_bytes_ / kExtentFrameBytes;
  if (resident_.size() <= keep) return;
  const size_t excess = resident_.size() - keep;
  select_victims(excess, Clock::now());
  for (size_t i = excess; i-- > 0;) {
    if (resident_[i].distance > 0) drop(i);
  }
}

// ---- room

void SharedCache::forget(size_t resident_index) {
  const Frame frame = resident_[resident_index];
  resident_[resident_index] = resident_.back();
  resident_.pop_back();
  frame.file->states[frame.index] = File::State::kAbsent;
  frame.file->flag(frame.index).store(0, std::memory_order_relaxed);
}

void SharedCache::drop(size_t resident_index) {
  const Frame frame = resident_[resident_index];
  forget(resident_index);
  const File& file = *frame.file;
  const PartFiles& parts = file.file->parts();
  for (uint32_t d = 0; d < parts.count(); ++d) {
    const ByteRange run = file.file->map().run(d, file.range_of(frame.index));
    if (run.length_bytes == 0) continue;  // for the kernel 0 means up to the end
    (void)sys::fadvise(parts.buffered(d), run.offset, run.length_bytes, POSIX_FADV_DONTNEED);
  }
  stats_.evictions += 1;
}

// Forgets the frames of the range that the kernel has reclaimed.
void SharedCache::forget_lost(File& file, ByteRange range) {
  for (uint64_t i = first_frame_of(range); i < end_frame_of(range); ++i) {
    if (file.states[i] != File::State::kThere || !file.has_lost(i)) continue;
    const auto found = std::find_if(resident_.begin(), resident_.end(), [&](const Frame& frame) {
      return frame.file == &file && frame.index == i;
    });
    forget(static_cast<size_t>(found - resident_.begin()));
    stats_.reclaimed_bytes += kExtentFrameBytes;
  }
}

// Drops the file's frames. Those that are being filled are dropped once they are there.
void SharedCache::drop_file(File& file) {
  for (size_t i = resident_.size(); i-- > 0;) {
    const Frame& frame = resident_[i];
    if (frame.file == &file && file.states[frame.index] == File::State::kThere) drop(i);
  }
}

// Computes each frame's distance from the scan that wants it first; 0: it is in use.
void SharedCache::measure(Clock::time_point now) {
  for (Frame& frame : resident_) {
    const File& file = *frame.file;
    const uint64_t count = file.layout.frame_count;
    frame.distance = file.states[frame.index] == File::State::kFilling ? 0 : kNeverWanted;
    for (const auto& place : file.places) {
      if (now - place->moved > options_.remembered) continue;
      const bool in_use =
          place->is_moving(now) && place->frame <= frame.index && frame.index < place->end_frame;
      const uint64_t distance = in_use ? 1 : (frame.index + count - place->end_frame) % count + 2;
      frame.distance = std::min(frame.distance, distance);
    }
  }
}

// Moves `count` frames (at least one) to the front: the farthest, with the nearest of them last.
void SharedCache::select_victims(size_t count, Clock::time_point now) {
  measure(now);
  std::nth_element(resident_.begin(), resident_.begin() + static_cast<ptrdiff_t>(count) - 1,
                   resident_.end(),
                   [](const Frame& a, const Frame& b) { return a.distance > b.distance; });
}

// Whether another moving scan wants the frame within half of the file.
bool SharedCache::wanted_by_others(const Frame& frame, const Place& place, Clock::time_point now) {
  const File& file = *frame.file;
  const uint64_t count = file.layout.frame_count;
  return std::any_of(file.places.begin(), file.places.end(), [&](const auto& other) {
    return other->process != place.process && other->is_active(now) &&
           (frame.index + count - other->end_frame) % count < count / 2;
  });
}

// Whether a scan of the process is the last one of the file. Scans go in a circle, which is cut at
// its widest gap. So there is one scan that all others come nearer to while they wait.
bool SharedCache::is_last(const File& file, const SharingProcess& process, Clock::time_point now) {
  std::vector<uint64_t> frames;
  for (const auto& place : file.places) {
    if (place->is_active(now)) frames.push_back(place->frame);
  }
  if (frames.empty()) return true;
  std::sort(frames.begin(), frames.end());
  uint64_t last = frames.front();
  uint64_t widest = last + file.layout.frame_count - frames.back();
  for (size_t i = 1; i < frames.size(); ++i) {
    const uint64_t gap = frames[i] - frames[i - 1];
    if (gap <= widest) continue;
    widest = gap;
    last = frames[i];
  }
  return std::any_of(file.places.begin(), file.places.end(), [&](const auto& place) {
    return place->process == process && place->frame == last && place->is_active(now);
  });
}

// kChanged: it has waited, so the caller must look again.
SharedCache::Room SharedCache::make_room(size_t count, const File& file, Place& place, bool ahead,
                                         Hold& hold) {
  if ((resident_.size() + count) * kExtentFrameBytes <= budget_bytes_) return Room::kMade;
  const size_t keep = budget_bytes_ / kExtentFrameBytes;
  if (keep < count) return Room::kNone;
  const auto now = Clock::now();
  const size_t victim_count = resident_.size() + count - keep;
  select_victims(victim_count, now);
  const Frame& nearest = resident_[victim_count - 1];
  if (ahead && nearest.distance <= 4 * count) return Room::kNone;
  const bool in_use = nearest.distance <= 1;
  if (in_use || (place.reads->sweeps() && wanted_by_others(nearest, place, now) &&
                 !is_last(file, place.process, now))) {
    if (ahead) return Room::kNone;
    if (now < hold.end && hold.idle < options_.idle_hold_max) {
      const bool works = file.fill_count > 0;
      const uint64_t begun_before = file.fills_begun;
      place.held = true;
      changed_.wait_until(mu_, now + std::chrono::milliseconds(50));
      place.held = false;
      const auto waited = Clock::now() - now;
      if (!works && file.fills_begun == begun_before) hold.idle += waited;
      stats_.stalled_ns += static_cast<uint64_t>(waited.count());
      return Room::kChanged;
    }
    if (nearest.distance == 0) return Room::kNone;
  }
  // From the back, because drop() fills a victim's place from behind it.
  for (size_t i = victim_count; i-- > 0;) drop(i);
  return Room::kMade;
}

// ---- fetching

void SharedCache::move_to(Place& place, ByteRange range) {
  place.frame = first_frame_of(range);
  place.end_frame = end_frame_of(range);
  place.moved = Clock::now();
  changed_.notify_all();
}

int SharedCache::fetch(File& file, Place& place, ByteRange range) {
  {
    MutexLock lock(mu_);
    place.reads->add(range);
    move_to(place, range);
    place.fetching = true;
  }
  const int error = load(file, place, range, false);
  MutexLock lock(mu_);
  if (error != 0) place.frame = place.end_frame;  // nothing to copy
  place.fetching = false;
  place.moved = Clock::now();
  return error;
}

int SharedCache::load(File& file, Place& place, ByteRange range, bool ahead) {
  try {
    return load_frames(file, place, range, ahead);
  } catch (const std::bad_alloc&) {  // before any frame was marked
    return ENOMEM;
  }
}

int SharedCache::load_frames(File& file, Place& place, ByteRange range, bool ahead) {
  const uint64_t size = file.size_bytes;
  if (range.offset >= size) return 0;
  range.length_bytes = std::min(range.length_bytes, size - range.offset);
  std::vector<uint64_t> frames;
  const auto is = [&file](uint64_t frame, File::State state) {
    return file.states[frame] == state;
  };

  MutexLock lock(mu_);
  if (!ahead) forget_lost(file, range);
  Hold hold{.end = Clock::now() +
                   std::min<Clock::duration>(options_.hold_max, SharedCacheOptions::kHoldMost)};
  for (Room room = Room::kChanged; room == Room::kChanged;) {
    if (!is_current(file)) return ESTALE;
    frames.clear();
    for (uint64_t i = first_frame_of(range); i < end_frame_of(range); ++i) {
      if (is(i, File::State::kAbsent)) frames.push_back(i);
    }
    room = frames.empty() ? Room::kMade : make_room(frames.size(), file, place, ahead, hold);
    if (room == Room::kNone) {
      if (!ahead) stats_.rejected_bytes += range.length_bytes;
      return EAGAIN;
    }
  }
  // Must not allocate until the fill ends, because other scans wait for these frames.
  const std::vector<Piece> pieces = pieces_of(file, frames);
  resident_.reserve(resident_.size() + frames.size());
  for (const uint64_t frame : frames) {
    file.states[frame] = File::State::kFilling;
    resident_.push_back({.file = &file, .index = frame, .distance = 0});
  }
  int error = frames.empty() ? 0 : fill(file, pieces);
  if (error == 0 && !is_current(file)) error = ESTALE;
  for (const uint64_t frame : frames) {
    file.states[frame] = File::State::kThere;
    if (error == 0) file.flag(frame).store(1, std::memory_order_relaxed);
  }
  if (error != 0) {
    for (size_t i = resident_.size(); i-- > 0;) {
      const Frame& frame = resident_[i];
      if (frame.file == &file && std::binary_search(frames.begin(), frames.end(), frame.index)) {
        drop(i);
      }
    }
  }
  changed_.notify_all();
  if (error == 0) {
    const uint64_t fetched = frames.size() * kExtentFrameBytes;
    stats_.fetched_bytes += fetched;
    if (!ahead) stats_.hit_bytes += range.length_bytes - std::min(range.length_bytes, fetched);
    if ((unchecked_bytes_ += fetched) >= kBudgetStep) update_budget();
  }
  if (error != 0 || ahead) return error;
  const auto under_way = [&] {
    for (uint64_t i = first_frame_of(range); i < end_frame_of(range); ++i) {
      if (is(i, File::State::kFilling)) return true;
    }
    return false;
  };
  while (under_way()) changed_.wait(mu_);
  return 0;
}

// This read only populates the page cache: the copied bytes are discarded in one small buffer.
std::vector<Piece> SharedCache::pieces_of(const File& file, const std::vector<uint64_t>& frames) {
  std::vector<Piece> pieces;
  for (const uint64_t frame : frames) {
    const ByteRange range = file.range_of(frame);
    for (uint64_t at = range.offset; at < range.end(); at += kUnseen) {
      const uint64_t length = std::min(kUnseen, range.end() - at);
      pieces.push_back({.range = {.offset = at, .length_bytes = length}, .buffer = unseen_.data()});
    }
  }
  return pieces;
}

// Reads the pieces into the page cache. 0 or an errno.
int SharedCache::fill(File& file, const std::vector<Piece>& pieces) {
  file.fill_count += 1;
  file.fills_begun += 1;
  mu_.unlock();
  const int error = move_({.map = file.file->map(),
                           .parts = file.file->parts(),
                           .size_bytes = file.size_bytes,
                           .op = IoOp::kRead,
                           .direct = false,
                           .pieces = pieces});
  mu_.lock();
  file.fill_count -= 1;
  return error;
}

}  // namespace graphlane
