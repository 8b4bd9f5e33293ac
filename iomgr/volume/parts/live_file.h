// LiveFile: a striped file that may change.
//
//   stub says   closed ──size changes──► open ──parts synced──► closed
//   size is     the stub's               the parts', within     the stub's
//                                        the stub's bound
//
// A write that leaves the size as it is leaves the stub's content alone, as on
// any filesystem; what changes the size says `open` first, durably. So whenever
// we are killed, the size follows from whichever tells the truth, and no byte
// that was synced is out of reach (FORMAT.md, "Crash rule").
//
// While it lives, nobody else changes the file: it holds StubLock::kChange, which
// the kernel releases when we die. So an `open` stub without that lock is a dead
// writer's, and open() takes the file over.
//
// Threads: everything is safe from any thread. A resize() waits for writes that are
// under way: one in place would make a part long again that was cut. (The kernel holds
// them back while it truncates, but asynchronous ones of O_DIRECT it does not.)
// Invariant: each part has the size that it has in a closed file of size() bytes;
// only while a Write extends the file may it be larger.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "iomgr/base/fd.h"
#include "iomgr/base/mutex.h"
#include "iomgr/volume/parts/striped_file.h"
#include "iomgr/volume/sum/live_sums.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

class LiveFile {
 public:
  // `stub` is open for reading and writing, and says `layout`, or did a moment ago.
  // `name` is what messages call it. `shared`, if not null, is the file as readers
  // have it open, and holds the stub: they see the size change. EBUSY: somebody else
  // changes the file; ESTALE: it is another file now.
  static Outcome<std::shared_ptr<LiveFile>> open(const Volume& volume, const Layout& layout,
                                                 Fd stub, std::string_view name,
                                                 std::shared_ptr<StripedFile> shared = nullptr);
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  // For readers; its size is ours.
  const std::shared_ptr<StripedFile>& file() const { return file_; }
  // The parts, open for writing. Only within a Write.
  const StripedFile& writable() const { return *writable_; }
  int stub_fd() const { return stub_.get(); }
  uint64_t size() const { return file_->size(); }  // bytes

  // A write to the parts, from before its first byte to after its last. Those
  // that extend the file go one after the other.
  class Write {
   public:
    Write(LiveFile& file, ByteRange range)
        : file_(file), range_(range), extends_(file.mu_, std::defer_lock) {}
    ~Write() { end(range_.offset); }
    Write(const Write&) = delete;
    Write& operator=(const Write&) = delete;

    // An error leaves the file as it was.
    Result<void> begin();
    // The bytes before `written_end` are there; what a failed write has left
    // behind it is cut off again.
    void end(uint64_t written_end);

   private:
    LiveFile& file_;
    const ByteRange range_;
    std::unique_lock<Mutex> extends_;
    bool in_place_ = false;
    bool is_noted_ = false;  // by the checksums
  };

  // The same for a write that another process makes to the parts, which it has open.
  // What changes the size waits for such writes, five seconds at most: that process
  // may have been stopped. One of them at a time extends the file: else EAGAIN.
  class OutsideWrite {
   public:
    OutsideWrite(LiveFile& file, ByteRange range) : file_(file), range_(range) {}
    ~OutsideWrite() { end(range_.offset); }
    OutsideWrite(const OutsideWrite&) = delete;
    OutsideWrite& operator=(const OutsideWrite&) = delete;

    Result<void> begin();
    void end(uint64_t written_end);

   private:
    Result<void> begin_noted();
    LiveFile& file_;
    const ByteRange range_;
    bool under_way_ = false;
    bool extends_ = false;
  };

  // As ftruncate(2): shorter, or longer with a hole.
  Result<void> resize(uint64_t size);

  // As fallocate(2). EOPNOTSUPP: what moves data (collapse, insert), or what the
  // devices' filesystem cannot do.
  Result<void> allocate(int mode, ByteRange range);

  // As fsync(2). Other handles of the file see that it has failed (StripedFile::sync_errors()).
  // After the first success a power failure leaves no empty file.
  Result<void> sync(bool data_only);
  // Call it at each close(2) of a handle that may write: promises the present bytes for as long as
  // the machine runs.
  void note_closed();

  // The file was written to: now is its mtime.
  void touch();

  // Whether the stub says `open`.
  bool is_open() const { return is_open_.load(std::memory_order_acquire); }

  // The next update_sums() gives bytes checksums that have none; so many a second of each device, 0: no limit.
  void want_all_sums(uint64_t bytes_per_second) { sums_->want_all(bytes_per_second); }
  // Whether there is something to close: the stub says `open`, or checksums are to be computed.
  bool needs_close() { return is_open() || sums_->is_dirty(); }
  // To close: take change_count() and sync the parts. Then call update_sums(), record_close(), which gives their
  // records the next generation, sync_records(), and say_closed(), which gives it to the stub, and says `closed`.
  // close() is the last four.
  // EAGAIN: the size has changed since, or an OutsideWrite is under way. The stub keeps its mtime.
  uint64_t change_count() const { return change_count_.load(std::memory_order_acquire); }
  Result<void> close(uint64_t synced_change_count);
  Result<void> update_sums(uint64_t synced_change_count);
  Result<void> record_close(uint64_t synced_change_count);
  Result<void> sync_records();
  Result<void> say_closed(uint64_t synced_change_count);

  // The stub names the parts `to` from now on, which hold the same bytes, synced, and
  // get its owner and mode; it keeps its mtime. An error leaves it as it was; EBUSY:
  // somebody else has the file open. Before our parts go, the stub has to be synced.
  // All that we are good for then is that nobody else changes the file.
  Result<void> move_to(const StripedFile& to);

 private:
  LiveFile(const Volume& volume, Fd stub, const Layout& layout)
      : volume_(volume), stub_(std::move(stub)), layout_(layout), is_open_(layout.state == FileState::kOpen),
        is_new_(layout.is_new) {}
  Result<void> settle_new();
  Result<void> say(const Layout& layout) REQUIRES(mu_);
  Result<void> say(FileState state, uint64_t size) REQUIRES(mu_);
  // Says `open`; `bound`: what the parts may say at most from now on. After an error it is
  // said once more.
  Result<void> prepare_change(uint64_t bound) REQUIRES(mu_);
  Result<void> set_part_sizes(uint64_t size) REQUIRES(mu_);
  void set_size(uint64_t size) REQUIRES(mu_);
  bool begin_in_place(ByteRange range);
  void end_in_place();
  void set_smaller_size(uint64_t size) REQUIRES(mu_);
  // Call it before the file becomes shorter, and before an older promise could count against it.
  Result<void> lower_to(uint64_t size, bool durably) REQUIRES(mu_);
  void wait_for_outside() REQUIRES(mu_);
  // The sums of small parts go, before they change.
  Result<void> forget_small_sums() REQUIRES(mu_);
  Result<void> begin_sums(ByteRange range);
  Result<void> allocate_noted(int mode, ByteRange range);
  int part_fd(uint32_t device_index) const { return writable_->parts().buffered(device_index); }

  // Constant after open().
  const Volume& volume_;  // outlives us
  const Fd stub_;
  std::shared_ptr<StripedFile> file_;
  std::shared_ptr<StripedFile> writable_;  // file_, if its parts are open for writing

  Mutex mu_;                       // held while the size changes
  Layout layout_ GUARDED_BY(mu_);  // what the stub says
  uint64_t synced_noted_ GUARDED_BY(mu_) = 0;  // what the parts' records promise, as far as we have written it
  uint64_t closed_noted_ GUARDED_BY(mu_) = 0;
  bool is_durable_ GUARDED_BY(mu_) = false;  // as far as it has to be; not known of a dead writer's
  CondVar outside_ended_;
  uint32_t outside_count_ GUARDED_BY(mu_) = 0;      // writes from outside, under way
  bool outside_extends_ GUARDED_BY(mu_) = false;
  // Held while the size becomes smaller, and for an instant by who begins or ends to write
  // in place, who so does not wait for those that extend the file. Taken after mu_.
  Mutex in_place_mu_;
  CondVar in_place_ended_;
  uint32_t in_place_count_ GUARDED_BY(in_place_mu_) = 0;
  std::atomic<bool> is_open_;
  std::atomic<bool> is_new_;
  std::atomic<uint64_t> change_count_{0};
  std::unique_ptr<LiveSums> sums_;  // constant after open()
  bool has_new_sums_ GUARDED_BY(mu_) = false;  // that the stub's generation does not tell of yet
};

// Whether somebody holds a LiveFile of this stub. `stub_fd` is open for reading.
bool is_being_changed(int stub_fd);

}  // namespace graphlane
