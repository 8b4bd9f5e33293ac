// LiveFiles: the striped files that this mount changes.
//
//   acquire() ──► writers > 0 ──last closed──► idle ──5 s later──► synced, closed, dropped
//                     ▲───────── acquire() ──────┘
//
// (A file without a name is dropped with its last writer.)
//
// A file stays open after its last writer, because a file that is rewritten all the time
// (GraphChi's blocks) would otherwise be synced each time. An open in that time reuses it. Idle
// files may hold an eighth of all descriptors. Beyond that the older half is closed, and all are
// when descriptors run out (close_idle()).
//
// Threads: everything is safe from any thread; one thread of its own closes files.
#pragma once

#include <chrono>
#include <memory>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "fuse/coherence/generations.h"
#include "iomgr/base/mutex.h"
#include "iomgr/volume/parts/live_file.h"

namespace graphlane::fuse {

// Whether no name leads to the open stub any more.
bool has_no_name(int stub_fd);

class LiveFiles {
 public:
  // One writer of a file.
  class Writer {
   public:
    Writer() = default;  // none
    Writer(Writer&&) = default;
    Writer& operator=(Writer other) noexcept {
      std::swap(files_, other.files_);
      std::swap(file_, other.file_);
      std::swap(is_first_, other.is_first_);
      return *this;
    }
    ~Writer() {
      if (file_) files_->release(*file_);
    }

    explicit operator bool() const { return static_cast<bool>(file_); }
    // The file was not live before, so another mount may have changed it until now.
    bool is_first() const { return is_first_; }
    LiveFile& operator*() const { return *file_; }
    LiveFile* operator->() const { return file_.get(); }

   private:
    friend class LiveFiles;
    Writer(LiveFiles& files, std::shared_ptr<LiveFile> file)
        : files_(&files), file_(std::move(file)) {}
    LiveFiles* files_ = nullptr;
    std::shared_ptr<LiveFile> file_;
    bool is_first_ = false;
  };

  explicit LiveFiles(const Volume& volume);
  ~LiveFiles();  // closes all files; there must be no writer
  LiveFiles(const LiveFiles&) = delete;
  LiveFiles& operator=(const LiveFiles&) = delete;

  // The live file with this id and stub, if any. Another stub may name the same parts.
  std::shared_ptr<LiveFile> find(const Uuid& file_id, const struct stat& stub);
  // As find(), whatever the file's stub is.
  std::shared_ptr<LiveFile> find(const Uuid& file_id);
  // Whether a file with this id is live.
  bool has(const Uuid& file_id);
  bool has_writers(const Uuid& file_id);
  // Adds a writer to a file that has writers and this stub. None: there is no such file.
  Writer join(const Uuid& file_id, const struct stat& stub);

  // Adds a writer, and opens the file as LiveFile::open() if it is not live. `stub` is unused if it
  // is.
  Outcome<Writer> acquire(const Layout& layout, Fd stub, std::string_view name,
                          std::shared_ptr<StripedFile> shared);

  // Sets the size of a file that readers have open to the stub's size. Does nothing for a live
  // file, because its writers set the size.
  void follow_stub(StripedFile& file);

  // A file's counter advances with its first writer, and after its last.
  const Generations& generations() const { return generations_; }

  // Counts a read of the file by the kernel.
  void count_served(const Uuid& file_id) { generations_.count_served(file_id); }

  // Closes all files without a writer now, to free descriptors. False: there are none.
  bool close_idle();

  // The file has lost its last name. Without writers it is dropped at once, which frees its blocks.
  void drop(const Uuid& file_id);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::shared_ptr<LiveFile> file;
    dev_t device = 0;  // of the stub, as its inode
    ino_t inode = 0;
    uint32_t writer_count = 0;
    Clock::time_point idle_since = {};

    bool is_of(const struct stat& stub) const {
      return stub.st_dev == device && stub.st_ino == inode;
    }
  };
  struct IdHash {
    size_t operator()(const Uuid& id) const;
  };

  Writer add_writer(Entry& entry) REQUIRES(mu_);
  void release(const LiveFile& file);
  void run();
  std::vector<std::shared_ptr<LiveFile>> take_idle(Clock::time_point since) REQUIRES(mu_);
  void make_room();
  void close_now(const std::vector<std::shared_ptr<LiveFile>>& files);
  bool sync_devices() const;
  void close(const std::vector<std::shared_ptr<LiveFile>>& files);
  void drop_closed(const std::vector<std::shared_ptr<LiveFile>>& files) REQUIRES(mu_);

  const Volume& volume_;
  const size_t idle_max_;  // number of files
  Generations generations_;
  // Held while a file is being opened, because readers take mu_ meanwhile. Taken before mu_.
  Mutex opening_;
  Mutex mu_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mu_) = false;
  std::unordered_map<Uuid, Entry, IdHash> entries_ GUARDED_BY(mu_);
  std::thread closer_;
};

}  // namespace graphlane::fuse
