#include "iomgr/volume/parts/live_file.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "iomgr/base/files/file_attributes.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/volume/lost_and_found.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/stub/stub_lock.h"

namespace graphlane {
namespace {

constexpr auto kOutsidePatience = std::chrono::seconds(5);
// How long sync and close wait to note their promise. A write that extends the file holds the lock, and
// so does a truncation; after a longer one, its own sync or close promises.
constexpr auto kPromisePatience = std::chrono::milliseconds(100);
// The pause between two looks whether the client has ended its write, which takes microseconds.
constexpr auto kRecallPause = std::chrono::microseconds(50);

// Gives the part the stub's owner and mode, if they differ.
Result<void> share_with(int stub_fd, const struct stat& stub, int part_fd, const PartOf& record) {
  struct stat part;
  if (::fstat(part_fd, &part) != 0) return last_errno();
  const bool is_its_owners = part.st_uid == stub.st_uid && part.st_gid == stub.st_gid;
  if (is_its_owners && (part.st_mode & 0777) == (stub.st_mode & 0777)) return {};
  copy_access(stub_fd, part_fd);
  if (::fstat(part_fd, &part) != 0) return last_errno();
  // With another owner, the mode would admit other users.
  if (part.st_uid != stub.st_uid || part.st_gid != stub.st_gid) return Errno{EPERM};
  const int error = share_part_access(part_fd, record);
  if (error != 0) return Errno{error};
  return {};
}

bool operator==(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// Restores the mtime. Waits for a new ctime, because caches of stubs compare it, and it changes
// only with the kernel's tick.
void restore_times(int stub_fd, const struct stat& before) {
  constexpr int kTicksMax = 100;  // a limit for filesystems that never change it
  struct stat st;
  if (::fstat(stub_fd, &st) != 0) return;
  const timespec written = st.st_ctim;
  for (int i = 0; i < kTicksMax && st.st_ctim == written; ++i) {
    if (i > 0) ::usleep(1000);
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, before.st_mtim};
    if (::futimens(stub_fd, times) != 0 || ::fstat(stub_fd, &st) != 0) return;
  }
}

}  // namespace

Outcome<std::shared_ptr<LiveFile>> LiveFile::open(const Volume& volume, const Layout& layout,
                                                  Fd stub, std::string_view name,
                                                  std::shared_ptr<StripedFile> shared) {
  if (Outcome<void> noted = volume.note_change(); !noted) return noted.error();
  if (Result<void> mine = lock_to_change(stub.get(), F_WRLCK); !mine) {
    return os_error(mine.error().code, name, "cannot be written here");
  }
  // Reads the stub again: from now on no other process can change it.
  Layout now;
  const Result<StubVerdict> verdict = read_stub(stub.get(), kStubSize, &now);
  if (!verdict) return os_error(verdict.error().code, std::string(name), "cannot read the stub");
  if (*verdict != StubVerdict::kStub || now.file_id != layout.file_id) {
    if (*verdict == StubVerdict::kBadChecksum) {
      return make_error(EIO, "{}: {}", name, describe(*verdict));
    }
    return make_error(ESTALE, "{}: has become another file", name);
  }
  if (is_lost_and_found(volume.root_fd(), stub.get(), now.file_id)) {
    return make_error(
        EROFS, "{}: is in lost+found, to be read only: its parts are of a stub that is elsewhere",
        name);
  }
  std::shared_ptr<LiveFile> live(new LiveFile(volume, std::move(stub), now));
  const Layout said = now;
  now = current_layout(volume, now);
  live->file_ = std::move(shared);
  if (!live->file_ || !live->file_->parts().writable()) {
    // With a separate lock, because readers may hold the parts for longer than this object.
    Fd held = reopen(live->stub_fd(), O_RDWR);
    if (!held) return os_error(errno, name, "cannot open the stub");
    hold_parts(held.get());
    auto opened = StripedFile::open(volume, live->stub_fd(), now, name, O_RDWR);
    if (!opened) return opened.error();
    (*opened)->hold(std::move(held));
    live->writable_ = std::move(*opened);
    if (!live->file_) live->file_ = live->writable_;
  } else {
    live->writable_ = live->file_;
  }
  if (now.state == FileState::kOpen) {  // a dead writer may have left gaps
    // Uses the open parts: a part that could not be looked up would seem to be empty, and the
    // others would be cut to that.
    const OpenSize open = live->writable_->look_at_open(said);
    if (open.is_damaged()) return damaged_error(volume, said, name, open);
    now.logical_size = open.bytes;
  }
  live->file_->set_size(now.logical_size);
  live->sums_ = std::make_unique<LiveSums>(volume, *live->writable_, now.logical_size,
                                           said.state == FileState::kClosed);
  if (now.state == FileState::kOpen) {
    MutexLock held(live->mu_);
    int error = live->sums_->forget_small(/*durably=*/false);
    if (error == 0) error = live->sums_->cut(now.logical_size);
    if (error != 0) {
      return os_error(error, std::string(name), "cannot be taken over from a dead writer");
    }
    if (Result<void> lowered = live->lower_to(now.logical_size, /*durably=*/true); !lowered) {
      return os_error(lowered.error().code, std::string(name),
                      "cannot be taken over from a dead writer");
    }
    if (Result<void> even = live->set_part_sizes(now.logical_size); !even) {
      return os_error(even.error().code, std::string(name),
                      "cannot be taken over from a dead writer");
    }
    live->closed_noted_ = now.logical_size;
    promise_closed(live->writable_->parts_of(), now.logical_size);
  }
  return live;
}

// Writes the stub in place: one block.
Result<void> LiveFile::say(const Layout& layout, bool keeps_mtime) {
  const Result<void> written =
      keeps_mtime ? rewrite_stub(stub_.get(), layout) : write_stub(stub_.get(), layout);
  if (!written) return written;
  layout_ = layout;
  // Release: a thread that sees `open` also sees the count that goes with it.
  is_open_.store(layout.state == FileState::kOpen, std::memory_order_release);
  is_new_.store(layout.is_new, std::memory_order_relaxed);  // a concurrent sync may see either
  return {};
}

Result<void> LiveFile::say(FileState state, uint64_t size) {
  Layout layout = layout_;
  layout.state = state;
  layout.logical_size = size;
  return say(layout);
}

// Durable, unless it only lifts a bound. Otherwise a power failure could keep the new parts with a
// stub that says `closed`, or leave parts cut in part, without a bound. So the cut is made durable
// before its bound is lifted.
Result<void> LiveFile::prepare_change(uint64_t bound) {
  change_count_.fetch_add(1, std::memory_order_acq_rel);
  const bool is_said = layout_.state == FileState::kOpen && layout_.logical_size == bound;
  if (is_said && is_durable_) return {};
  const bool lifts = !is_said && layout_.state == FileState::kOpen && bound == kNoBound;
  // Not fdatasync(): it could bring an older promise back.
  for (uint32_t d = 0; lifts && d < writable_->parts().count(); ++d) {
    if (::fsync(part_fd(d)) != 0) return last_errno();
  }
  if (const int error = lifts ? sums_->sync() : 0; error != 0) return Errno{error};
  if (layout_.state == FileState::kClosed) {
    if (const int error = promise_all_of_closed(writable_->parts_of(), file_->size()); error != 0) {
      return Errno{error};
    }
    closed_noted_ = synced_noted_ = file_->size();
  }
  if (!is_said && (layout_.state == FileState::kClosed || bound != kNoBound)) is_durable_ = false;
  if (Result<void> said = say(FileState::kOpen, bound); !said) return said;
  if (!is_durable_ && ::fdatasync(stub_.get()) != 0) return last_errno();
  is_durable_ = true;
  return {};
}

Result<void> LiveFile::set_part_sizes(uint64_t size) {
  const StripeMap& map = file_->map();
  for (uint32_t d = 0; d < map.geometry().device_count; ++d) {
    if (::ftruncate(part_fd(d), static_cast<off_t>(map.part_size(d, size))) != 0) {
      return last_errno();
    }
  }
  return {};
}

void LiveFile::set_size(uint64_t size) {
  // Voids a sync that began since prepare_change(): it has not synced all that was written.
  change_count_.fetch_add(1, std::memory_order_acq_rel);
  file_->set_size(size);
  writable_->set_size(size);
}

bool LiveFile::begin_in_place(ByteRange range) {
  MutexLock held(in_place_mu_);
  if (range.end() > size()) return false;
  in_place_count_ += 1;
  return true;
}

void LiveFile::end_in_place() {
  MutexLock held(in_place_mu_);
  in_place_count_ -= 1;
  in_place_ended_.notify_all();
}

// From now on no write in place begins beyond it, and those in flight have ended.
void LiveFile::set_smaller_size(uint64_t size) {
  MutexLock held(in_place_mu_);
  set_size(size);
  while (in_place_count_ > 0) in_place_ended_.wait(in_place_mu_);
}

Result<void> LiveFile::forget_small_sums() {
  const int error = sums_->any_small_summed() ? sums_->forget_small(/*durably=*/!is_open()) : 0;
  return error == 0 ? Result<void>() : Errno{error};
}

// Notes the range first, so that no sum is computed of bytes that are about to change.
Result<void> LiveFile::begin_sums(ByteRange range) {
  if (const int error = sums_->begin(range); error != 0) return Errno{error};
  if (!sums_->any_small_summed()) return {};
  MutexLock held(mu_);
  Result<void> done = forget_small_sums();
  if (!done) sums_->end(range);
  return done;
}

Result<void> LiveFile::Write::begin() {
  if (Result<void> marked = file_.begin_sums(range_); !marked) return marked;
  is_noted_ = true;
  in_place_ = file_.begin_in_place(range_);
  if (in_place_) return {};
  extends_.lock();
  file_.wait_for_outside();
  const uint64_t size = file_.size();
  if (range_.end() <= size) return {};
  Result<void> ready = file_.prepare_change(kNoBound);
  // A gap before the range becomes a hole. Without a gap the parts have the right size.
  if (ready && range_.offset > size) ready = file_.set_part_sizes(range_.offset);
  return ready;
}

Result<void> LiveFile::Write::begin_at_end() {
  for (;;) {
    file_.recall();
    range_.offset = file_.size();
    Result<void> begun = begin();
    if (!begun || file_.size() == range_.offset) return begun;
    end(range_.offset);  // another process has extended the file meanwhile
  }
}

void LiveFile::Write::end(uint64_t written_end) {
  if (std::exchange(is_noted_, false)) file_.sums_->end(range_);
  if (std::exchange(in_place_, false)) file_.end_in_place();
  if (!extends_.owns_lock()) return;
  const uint64_t size = file_.size();
  const uint64_t grown = written_end > range_.offset ? std::max(size, written_end) : size;
  if (written_end < range_.end() && range_.end() > size) {
    (void)file_.set_part_sizes(grown);  // best effort: reads end at the size anyway
  }
  if (grown > size) file_.set_size(grown);
  extends_.unlock();
}

void LiveFile::wait_for_outside() {
  const auto deadline = std::chrono::steady_clock::now() + kOutsidePatience;
  recall_append();
  while (outside_count_ > 0 && std::chrono::steady_clock::now() < deadline) {
    outside_ended_.wait_until(mu_, deadline);
    recall_append();  // one may have begun during the wait
  }
}

Result<void> LiveFile::OutsideWrite::begin() {
  if (Result<void> marked = file_.begin_sums(range_); !marked) return marked;
  Result<void> begun = begin_noted();
  if (!begun) file_.sums_->end(range_);
  return begun;
}

Result<void> LiveFile::OutsideWrite::begin_noted() {
  MutexLock held(file_.mu_);
  const uint64_t size = file_.size();
  if (range_.end() > size) {
    if (file_.outside_extends_) return Errno{EAGAIN};
    Result<void> ready = file_.prepare_change(kNoBound);
    if (ready && range_.offset > size) ready = file_.set_part_sizes(range_.offset);
    if (!ready) return ready;
    file_.outside_extends_ = extends_ = true;
  }
  file_.outside_count_ += 1;
  under_way_ = true;
  return {};
}

void LiveFile::OutsideWrite::end(uint64_t written_end) {
  if (!under_way_) return;
  under_way_ = false;
  file_.sums_->end(range_);
  MutexLock held(file_.mu_);
  const uint64_t size = file_.size();
  uint64_t grown = written_end > range_.offset ? std::max(size, written_end) : size;
  // Once more: a resize() that no longer waits for this write may have set its bound.
  if (grown > size && !file_.prepare_change(kNoBound)) grown = size;
  // Cuts what a failed write has left, or what that resize() has cut before.
  if (range_.end() > grown || range_.offset > size) {
    (void)file_.set_part_sizes(grown);  // best effort, as above
  }
  if (grown > size) file_.set_size(grown);
  if (extends_) file_.outside_extends_ = false;
  file_.outside_count_ -= 1;
  file_.outside_ended_.notify_all();
}

Result<uint64_t> LiveFile::Append::begin(uint64_t length_bytes) {
  if (!file_.end_idle_append()) return Errno{EAGAIN};
  range_ = {.offset = file_.size(), .length_bytes = length_bytes};
  if (range_.end() > AppendProgress::kEndMax) return Errno{EFBIG};
  if (Result<void> marked = file_.begin_sums(range_); !marked) return marked.error();
  MutexLock held(file_.mu_);
  Result<void> ready =
      file_.outside_extends_ || file_.size() != range_.offset ? Errno{EAGAIN} : Result<void>();
  if (ready) ready = file_.prepare_change(kNoBound);
  if (!ready) {
    file_.sums_->end(range_);
    return ready.error();
  }
  file_.outside_extends_ = true;
  file_.outside_count_ += 1;
  file_.append_ = this;
  // Must precede the grant: a reader that does not see it has nothing to settle.
  file_.is_appended_.store(true);
  progress_.grant(range_.offset);
  return range_.offset;
}

void LiveFile::Append::end() {
  MutexLock held(file_.mu_);
  if (file_.append_ == this) file_.end_append();
}

// `end` is the client's word, which may say anything.
bool LiveFile::grow_to(uint64_t end) {
  end = std::min(end, append_->range_.end());
  if (end <= size()) return false;
  set_size(end);
  touch_as_parts();
  return true;
}

void LiveFile::end_append() {
  (void)grow_to(append_->progress_.revoke());
  sums_->end(append_->range_);
  correct_part_sizes();
  append_ = nullptr;
  is_appended_.store(false);
  outside_extends_ = false;
  outside_count_ -= 1;
  outside_ended_.notify_all();
}

// Cuts what a write has left that did not end, and extends what a client has counted but not
// written; best effort, as above. Only such parts: ftruncate() makes ext4 log the size before the
// blocks of earlier writes, even where the size stays. After a power failure that would be a hole,
// which readers take for the program's. So the blocks go first.
void LiveFile::correct_part_sizes() {
  for (uint32_t d = 0; d < file_->map().geometry().device_count; ++d) {
    const auto wanted = static_cast<off_t>(file_->map().part_size(d, size()));
    struct stat part;
    if (::fstat(part_fd(d), &part) != 0 || part.st_size == wanted) continue;
    if (::fdatasync(part_fd(d)) == 0) (void)::ftruncate(part_fd(d), wanted);
  }
}

void LiveFile::recall_append() {
  const auto deadline = std::chrono::steady_clock::now() + kOutsidePatience;
  while (append_ != nullptr) {
    append_->progress_.recall();  // another one may have begun during the wait
    const auto now = std::chrono::steady_clock::now();
    if (!append_->progress_.is_taken() || now > deadline) return end_append();
    outside_ended_.wait_until(mu_, now + kRecallPause);
  }
}

// False: a write is in flight.
bool LiveFile::end_idle_append() {
  MutexLock held(mu_);
  if (append_ == nullptr) return true;
  append_->progress_.recall();
  if (append_->progress_.is_taken()) return false;
  end_append();
  return true;
}

bool LiveFile::settle() {
  if (!is_appended_.load()) return false;
  MutexLock held(mu_);
  return append_ != nullptr && grow_to(append_->progress_.end());
}

void LiveFile::recall() {
  if (!is_appended_.load()) return;
  MutexLock held(mu_);
  recall_append();
}

Result<void> LiveFile::resize(uint64_t size) {
  MutexLock held(mu_);
  wait_for_outside();
  const uint64_t before = file_->size();
  if (size == before) return {};
  // The bound makes the cut atomic, although the parts are cut one by one.
  Result<void> ready = prepare_change(size < before ? size : kNoBound);
  if (ready) ready = forget_small_sums();
  if (!ready) return ready;
  // Readers see the smaller size first, so that none meets a part's new end.
  if (size < before) {
    if (Result<void> lowered = lower_to(size, /*durably=*/false); !lowered) return lowered;
    set_smaller_size(size);
    if (const int error = sums_->cut(size); error != 0) return Errno{error};
  }
  if (Result<void> done = set_part_sizes(size); !done) {
    if (size > before) (void)set_part_sizes(before);
    return done;
  }
  set_size(size);
  return {};
}

Result<void> LiveFile::lower_to(uint64_t size, bool durably) {
  cut_count_.fetch_add(1, std::memory_order_release);
  synced_noted_ = std::min(synced_noted_, size);
  closed_noted_ = std::min(closed_noted_, size);
  const int error = lower_promises(writable_->parts_of(), size, durably);
  return error == 0 ? Result<void>() : Errno{error};
}

Result<void> LiveFile::sync(bool data_only) {
  (void)settle();
  const uint64_t cuts = cut_count_.load(std::memory_order_acquire);
  const uint64_t synced = size();
  Result<void> done = settle_new();
  if (done) done = file_->sync(data_only);
  if (!done || !mu_.try_lock_for(kPromisePatience)) return done;
  MutexLock held(mu_, std::adopt_lock);
  // After a cut and a write the file may be as long again, with bytes that are not synced.
  if (!is_open() || cuts != cut_count_.load(std::memory_order_relaxed)) return done;
  if (synced <= synced_noted_) return done;
  promise_synced(writable_->parts_of(), synced);
  synced_noted_ = synced;
  return done;
}

void LiveFile::note_closed() {
  (void)settle();
  if (!mu_.try_lock_for(kPromisePatience)) return;
  MutexLock held(mu_, std::adopt_lock);
  if (!is_open() || size() == closed_noted_) return;
  closed_noted_ = size();
  promise_closed(writable_->parts_of(), closed_noted_);
}

Result<void> LiveFile::allocate(int mode, ByteRange range) {
  constexpr int kPossible = FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE;
  if ((mode & ~kPossible) != 0) return Errno{EOPNOTSUPP};
  if (Result<void> marked = begin_sums(range); !marked) return marked;
  Result<void> done = allocate_noted(mode, range);
  sums_->end(range);
  return done;
}

Result<void> LiveFile::allocate_noted(int mode, ByteRange range) {
  MutexLock held(mu_);
  wait_for_outside();
  const StripeMap& map = file_->map();
  const uint64_t before = file_->size();
  const bool extends = (mode & FALLOC_FL_KEEP_SIZE) == 0 && range.end() > before;
  if (extends) {
    if (Result<void> ready = prepare_change(kNoBound); !ready) return ready;
  }
  Result<void> done;
  if ((mode & FALLOC_FL_PUNCH_HOLE) == 0) {
    if (const int error = note_allocated(writable_->parts_of()); error != 0) done = Errno{error};
  }
  for (uint32_t d = 0; d < map.geometry().device_count && done; ++d) {
    const ByteRange run = map.run(d, range);
    if (run.length_bytes == 0) continue;
    // Each part keeps its size: an error on a later device leaves only blocks behind the end.
    if (::fallocate(part_fd(d), mode | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(run.offset),
                    static_cast<off_t>(run.length_bytes)) != 0) {
      done = last_errno();
    }
  }
  if (!extends) return done;
  if (done) done = set_part_sizes(range.end());
  if (!done) {
    (void)set_part_sizes(before);
    return done;
  }
  set_size(range.end());
  return {};
}

void LiveFile::touch() {
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT},
                             {.tv_sec = 0, .tv_nsec = UTIME_NOW}};
  if (::futimens(stub_.get(), times) == 0) return;
  // Only the owner may set times, but any writer changes them.
  MutexLock held(mu_);
  (void)write_stub(stub_.get(), layout_);
}

// The client has written when its last part was.
void LiveFile::touch_as_parts() {
  timespec latest = {};
  for (uint32_t d = 0; d < writable_->parts().count(); ++d) {
    struct stat st;
    if (::fstat(part_fd(d), &st) != 0) continue;
    const timespec& at = st.st_mtim;
    if (std::tie(at.tv_sec, at.tv_nsec) > std::tie(latest.tv_sec, latest.tv_nsec)) latest = at;
  }
  const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, latest};
  if (::futimens(stub_.get(), times) != 0) (void)write_stub(stub_.get(), layout_);  // as in touch()
}

Result<void> LiveFile::want_all_sums(SumWork work) {
  if (const int error = sums_->want_all(size(), std::move(work)); error != 0) return Errno{error};
  if (!sums_->is_dirty()) return {};
  {
    MutexLock held(mu_);
    const Result<void> noted = change_records(volume_, layout_, writable_->parts().all_buffered(),
                                              [&](PartRecord& record) { sums_->note_in(record); });
    if (!noted) return noted;
  }
  return sync_records();
}

void LiveFile::give_way() {
  (void)lock_stub(stub_.get(), StubLock::kClosing, F_WRLCK);
  sums_->give_way_if([fd = stub_.get()] { return is_stub_locked(fd, StubLock::kWanted, F_WRLCK); });
}

Result<void> LiveFile::update_sums(uint64_t synced_change_count) {
  uint32_t generation = 0;
  uint64_t size_bytes = 0;
  {
    MutexLock held(mu_);
    if (outside_count_ > 0 || change_count() != synced_change_count) return Errno{EAGAIN};
    generation = layout_.generation + 1;
    size_bytes = size();
    has_new_sums_ = true;
  }
  // Writes in place go on meanwhile, and their regions stay dirty.
  const int error = sums_->update(size_bytes, generation);
  return error == 0 ? Result<void>() : Errno{error};
}

// Records each part's durable bytes, after these were synced. So the next open detects a part of an
// older copy, and one that has lost bytes.
Result<void> LiveFile::record_close(uint64_t synced_change_count) {
  MutexLock held(mu_);
  if (outside_count_ > 0 || change_count() != synced_change_count) return Errno{EAGAIN};
  if (layout_.state == FileState::kClosed && !has_new_sums_) return {};
  const uint32_t boot_tag = boot_tag_now();
  const uint64_t generation = layout_.generation + 1;
  return change_records(
      volume_, layout_, writable_->parts().all_buffered(), [&](PartRecord& record) {
        record.flags &=
            static_cast<uint8_t>(~(PartRecord::kNew | PartRecord::kMaking | PartRecord::kRemoved));
        record.generation = generation;
        record.synced_bytes = file_->size();
        record.closed_bytes = boot_tag != 0 ? file_->size() : 0;
        record.boot_tag = boot_tag;
        sums_->note_in(record);
      });
}

Result<void> LiveFile::sync_records() {
  return graphlane::sync_records(volume_, file_->layout(), writable_->parts().all_buffered());
}

Result<void> LiveFile::close(uint64_t synced_change_count) {
  if (!needs_close()) return {};
  Result<void> done = update_sums(synced_change_count);
  if (done) done = record_close(synced_change_count);
  if (done) done = sync_records();
  return done ? say_closed(synced_change_count) : done;
}

// Takes no lock for a file that is not new, because a write that extends it may hold the lock.
Result<void> LiveFile::settle_new() {
  if (!is_new_.load(std::memory_order_relaxed)) return {};
  if (Result<void> bound = sync_records(); !bound) {
    file_->count_sync_error(bound.error().code);
    return bound;
  }
  MutexLock held(mu_);
  Layout layout = layout_;
  layout.is_new = false;
  return say(layout, /*keeps_mtime=*/true);
}

Result<void> LiveFile::say_closed(uint64_t synced_change_count) {
  MutexLock held(mu_);
  if (outside_count_ > 0 || change_count() != synced_change_count) return Errno{EAGAIN};
  if (layout_.state == FileState::kClosed && !has_new_sums_) return {};
  Layout layout = layout_;
  layout.state = FileState::kClosed;
  layout.logical_size = file_->size();
  layout.generation += 1;
  layout.is_new = false;
  if (Result<void> said = say(layout, /*keeps_mtime=*/true); !said) return said;
  has_new_sums_ = false;
  return {};
}

Result<void> LiveFile::move_to(const StripedFile& to) {
  MutexLock held(mu_);
  const int lock_fd = file_->held_stub();
  if (Result<void> alone = lock_stub(lock_fd, StubLock::kParts, F_WRLCK); !alone) return alone;
  struct stat now;
  Result<void> moved = ::fstat(lock_fd, &now) == 0 ? Result<void>() : last_errno();
  for (uint32_t d = 0; d < to.parts().count() && moved; ++d) {
    moved = share_with(lock_fd, now, to.parts().buffered(d),
                       part_of(volume_.devices()[d].root_fd.get(), to.layout()));
  }
  if (moved) moved = say(to.layout());
  if (moved) restore_times(lock_fd, now);
  (void)lock_stub(lock_fd, StubLock::kParts, F_RDLCK);
  return moved;
}

bool is_being_changed(int stub_fd) {
  // conflicts with both kinds of writers
  return is_stub_locked(stub_fd, StubLock::kChange, F_WRLCK);
}

}  // namespace graphlane
