// LiveFile: a striped file that may change.
//
//   stub says   closed ──size changes──► open ──parts synced──► closed
//   size is     the stub's               the parts', within     the stub's
//                                        the stub's bound
//
// A write that keeps the size does not change the stub. A change of the size first makes the stub
// say `open`, durably. So after a kill the size is known from the stub or from the parts, and no
// synced byte is out of reach (FORMAT.md, "Crash rule").
//
// While it lives, no other process changes the file: it holds StubLock::kChange, which the kernel
// releases at the process's death. So an `open` stub without that lock is left by a dead writer,
// and open() takes the file over.
//
// Threads: everything is safe from any thread. A resize() waits for writes in flight, because a
// write in place would extend a part again after the cut. (The kernel delays buffered writes
// during a truncation, but not asynchronous O_DIRECT ones.)
// Invariant: each part has the size that it has in a closed file of size() bytes. Only while a
// Write extends the file may it be larger.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "iomgr/base/fd.h"
#include "iomgr/base/mutex.h"
#include "iomgr/volume/parts/append_progress.h"
#include "iomgr/volume/parts/striped_file.h"
#include "iomgr/volume/sum/live_sums.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

class LiveFile {
 public:
  // `stub` is open for reading and writing, and says `layout`, or did a moment ago. `name` is its
  // name in messages. `shared`, if not null, is the readers' open file. It holds the stub, and sees
  // the size change. EBUSY: another process changes the file; ESTALE: it is another file now.
  static Outcome<std::shared_ptr<LiveFile>> open(const Volume& volume, const Layout& layout,
                                                 Fd stub, std::string_view name,
                                                 std::shared_ptr<StripedFile> shared = nullptr);
  LiveFile(const LiveFile&) = delete;
  LiveFile& operator=(const LiveFile&) = delete;

  // For readers; its size is updated by this object.
  const std::shared_ptr<StripedFile>& file() const { return file_; }
  // The parts, open for writing. Only within a Write.
  const StripedFile& writable() const { return *writable_; }
  int stub_fd() const { return stub_.get(); }
  uint64_t size() const { return file_->size(); }  // bytes

  // A write to the parts, from before its first byte to after its last. Writes that extend the
  // file go one after the other.
  class Write {
   public:
    Write(LiveFile& file, ByteRange range)
        : file_(file), range_(range), extends_(file.mu_, std::defer_lock) {}
    ~Write() { end(range_.offset); }
    Write(const Write&) = delete;
    Write& operator=(const Write&) = delete;

    // After an error the file is unchanged. A write that is not in place holds the file's mutex from
    // here to end(), by extends_.
    Result<void> begin() UNCHECKED_LOCKS;
    // Begins at the end of the file, whatever the range says. offset() is where that is.
    Result<void> begin_at_end() UNCHECKED_LOCKS;
    uint64_t offset() const { return range_.offset; }
    // The bytes before `written_end` were written. Cuts what a failed write has left behind that.
    void end(uint64_t written_end) UNCHECKED_LOCKS;

   private:
    LiveFile& file_;
    ByteRange range_;
    std::unique_lock<Mutex> extends_;
    bool in_place_ = false;
    bool is_noted_ = false;  // by the checksums
  };

  // A Write by another process, which has the parts open. A change of the size waits for such
  // writes, at most five seconds, because that process may be stopped. Only one of them at a time
  // may extend the file: EAGAIN for others.
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

  // Another process appends for a while, without a question for each write; `progress` says how far
  // it has come. A change of the file or of its attributes must be preceded by recall(), a look at
  // its size by settle().
  class Append {
   public:
    Append(LiveFile& file, AppendProgress& progress) : file_(file), progress_(progress) {}
    ~Append() { end(); }
    Append(const Append&) = delete;
    Append& operator=(const Append&) = delete;

    // Begins at the end of the file, and returns it. Ends another process's append first. EAGAIN:
    // another process is extending the file. Waits for no process.
    Result<uint64_t> begin(uint64_t length_bytes);
    void end();

   private:
    friend class LiveFile;
    LiveFile& file_;
    AppendProgress& progress_;
    ByteRange range_;
  };
  // size() is what has been written until now. Whether it has grown.
  bool settle();
  // Settles, and ends the append. Waits for a write in flight, five seconds at most.
  void recall();
  // Whether an append has begun that has not ended.
  bool is_appended() const { return is_appended_.load(); }

  // As ftruncate(2): shorter, or longer with a hole.
  Result<void> resize(uint64_t size);

  // As fallocate(2). EOPNOTSUPP: modes that move data (collapse, insert), and modes that the
  // devices' filesystem lacks.
  Result<void> allocate(int mode, ByteRange range);

  // As fsync(2). A failure is visible to other handles of the file (StripedFile::sync_errors()).
  // After the first success a power failure leaves no empty file.
  Result<void> sync(bool data_only);
  // Call it at each close(2) of a handle that may write. It promises the present bytes until the
  // machine stops.
  void note_closed();

  // The file was written to: sets its mtime to now.
  void touch();

  // Whether the stub says `open`.
  bool is_open() const { return is_open_.load(std::memory_order_acquire); }

  // The next update_sums() also computes missing checksums. If it is ended or killed, the next one
  // goes on where it was.
  Result<void> want_all_sums(SumWork work);
  // For a process that opened the file only to close it: others that want to change it wait, and
  // update_sums() ends with EAGAIN as soon as one does.
  void give_way();
  // Whether the stub says `open`, or checksums are to be computed.
  bool needs_close() { return is_open() || sums_->is_dirty(); }
  // To close the file:
  //   1. take change_count(), and sync the parts
  //   2. update_sums()
  //   3. record_close(): gives the parts' records the next generation
  //   4. sync_records()
  //   5. say_closed(): gives the stub the generation, and says `closed`
  // close() does steps 2 to 5. EAGAIN: the size has changed since, or an OutsideWrite is in flight.
  // The stub keeps its mtime.
  uint64_t change_count() const { return change_count_.load(std::memory_order_acquire); }
  Result<void> close(uint64_t synced_change_count);
  Result<void> update_sums(uint64_t synced_change_count);
  Result<void> record_close(uint64_t synced_change_count);
  Result<void> sync_records();
  Result<void> say_closed(uint64_t synced_change_count);

  // Makes the stub name the parts `to`, which hold the same bytes, synced. They get its owner and
  // mode; the stub keeps its mtime. After an error the stub is unchanged. EBUSY: another process
  // has the file open. The stub must be synced before the old parts are removed. Afterwards this
  // object only keeps other processes from changing the file.
  Result<void> move_to(const StripedFile& to);

 private:
  LiveFile(const Volume& volume, Fd stub, const Layout& layout)
      : volume_(volume),
        stub_(std::move(stub)),
        layout_(layout),
        is_open_(layout.state == FileState::kOpen),
        is_new_(layout.is_new) {}
  Result<void> settle_new();
  Result<void> say(const Layout& layout, bool keeps_mtime = false) REQUIRES(mu_);
  Result<void> say(FileState state, uint64_t size) REQUIRES(mu_);
  // Makes the stub say `open`, with `bound` as the largest size that the parts may imply. Repeats
  // that after an error.
  Result<void> prepare_change(uint64_t bound) REQUIRES(mu_);
  Result<void> set_part_sizes(uint64_t size) REQUIRES(mu_);
  void set_size(uint64_t size) REQUIRES(mu_);
  bool begin_in_place(ByteRange range);
  void end_in_place();
  void set_smaller_size(uint64_t size) REQUIRES(mu_);
  // Must precede a cut of the file, and precede an older promise that could count against it.
  Result<void> lower_to(uint64_t size, bool durably) REQUIRES(mu_);
  // Afterwards there is no append.
  void wait_for_outside() REQUIRES(mu_);
  bool grow_to(uint64_t end) REQUIRES(mu_);
  void end_append() REQUIRES(mu_);
  void correct_part_sizes() REQUIRES(mu_);
  void recall_append() REQUIRES(mu_);
  bool end_idle_append();
  void touch_as_parts() REQUIRES(mu_);
  // Removes the sums of small parts before these change.
  Result<void> forget_small_sums() REQUIRES(mu_);
  Result<void> begin_sums(ByteRange range);
  Result<void> allocate_noted(int mode, ByteRange range);
  int part_fd(uint32_t device_index) const { return writable_->parts().buffered(device_index); }

  // Constant after open().
  const Volume& volume_;  // must outlive this
  const Fd stub_;
  std::shared_ptr<StripedFile> file_;
  std::shared_ptr<StripedFile> writable_;  // file_, if its parts are open for writing

  Mutex mu_;                                   // held while the size changes
  Layout layout_ GUARDED_BY(mu_);              // the content of the stub
  uint64_t synced_noted_ GUARDED_BY(mu_) = 0;  // the promises that this object has written
  uint64_t closed_noted_ GUARDED_BY(mu_) = 0;
  std::atomic<uint64_t> cut_count_{0};  // changes under mu_
  // whether the stub is synced; false after a dead writer
  bool is_durable_ GUARDED_BY(mu_) = false;
  CondVar outside_ended_;
  uint32_t outside_count_ GUARDED_BY(mu_) = 0;  // outside writes in flight
  bool outside_extends_ GUARDED_BY(mu_) = false;
  Append* append_ GUARDED_BY(mu_) = nullptr;
  std::atomic<bool> is_appended_{false};  // changes under mu_
  // Held while the size becomes smaller, and briefly at both ends of a write in place. So such a
  // write does not wait for writes that extend the file. Taken after mu_.
  Mutex in_place_mu_;
  CondVar in_place_ended_;
  uint32_t in_place_count_ GUARDED_BY(in_place_mu_) = 0;
  std::atomic<bool> is_open_;
  std::atomic<bool> is_new_;
  std::atomic<uint64_t> change_count_{0};
  std::unique_ptr<LiveSums> sums_;             // constant after open()
  bool has_new_sums_ GUARDED_BY(mu_) = false;  // the stub's generation does not tell of them yet
};

// Whether a LiveFile of this stub exists in any process. `stub_fd` is open for reading.
bool is_being_changed(int stub_fd);

}  // namespace graphlane
