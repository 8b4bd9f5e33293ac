// LiveFiles: the striped files that this mount changes.
//
//   acquire() ──► writers > 0 ──last gone──► idle ──5 s later──► synced, closed, dropped
//                     ▲───────── acquire() ────┘
//
// (A file without a name is dropped when its last writer goes.)
//
// A file stays after its last writer has gone: one that is rewritten all the time
// (GraphChi's blocks) would be synced each time otherwise. Whoever opens it
// meanwhile shares it. Such files keep descriptors: an eighth of what we may have is theirs, the
// older half is closed when they need more, and all are when descriptors are short (give_back()).
//
// Threads: everything is safe from any thread; one thread of its own closes.
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

namespace graphlane {

// Of a stub that is open: no name is left that leads to it.
bool has_no_name(int stub_fd);

class LiveFiles {
 public:
  // One of a file's writers.
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
    // The file was not here before: somebody else may have changed it until now.
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
  ~LiveFiles();  // closes what is left; nobody may be writing
  LiveFiles(const LiveFiles&) = delete;
  LiveFiles& operator=(const LiveFiles&) = delete;

  // The file if it is here and its stub is `stub`; another stub may name the same parts.
  std::shared_ptr<LiveFile> find(const Uuid& file_id, const struct stat& stub);
  // Whether any file of that id is here.
  bool has(const Uuid& file_id);
  bool has_writers(const Uuid& file_id);
  // One more writer of a file that has writers, and whose stub is `stub`. None: there is no such
  // file.
  Writer join(const Uuid& file_id, const struct stat& stub);

  // One more writer of the file. As LiveFile::open(); `stub` is not used if the
  // file is here already.
  Outcome<Writer> acquire(const Layout& layout, Fd stub, std::string_view name,
                          std::shared_ptr<StripedFile> shared);

  // The size of a file that readers have open becomes what its stub says, unless the file is
  // here, or being opened: then its size is its writers' to set.
  void follow_stub(StripedFile& file);

  // Moved when a file's first writer comes and when its last one has gone.
  const Generations& generations() const { return generations_; }

  // The kernel asks for a part of the file.
  void count_served(const Uuid& file_id) { generations_.count_served(file_id); }

  // Closes the files without a writer, now, for their descriptors. False: there are none.
  bool give_back();

  // The file has no name any more: without writers it goes at once, and its
  // blocks with it.
  void drop(const Uuid& file_id);

 private:
  using Clock = std::chrono::steady_clock;
  struct Entry {
    std::shared_ptr<LiveFile> file;
    dev_t device = 0;  // of the stub, with its inode
    ino_t inode = 0;
    uint32_t writer_count = 0;
    Clock::time_point idle_since = {};

    bool is_of(const struct stat& stub) const { return stub.st_dev == device && stub.st_ino == inode; }
  };
  struct IdHash {
    size_t operator()(const Uuid& id) const;
  };

  Writer one_more(Entry& entry) REQUIRES(mu_);
  void release(const LiveFile& file);
  void run();
  std::vector<std::shared_ptr<LiveFile>> take_idle(Clock::time_point since) REQUIRES(mu_);
  void make_room();
  void close_now(const std::vector<std::shared_ptr<LiveFile>>& files);
  bool sync_devices() const;
  void close(const std::vector<std::shared_ptr<LiveFile>>& files);
  void drop_closed(const std::vector<std::shared_ptr<LiveFile>>& files) REQUIRES(mu_);

  const Volume& volume_;
  const size_t idle_max_;  // files
  Generations generations_;
  // Held while a file is opened that is not here, as readers ask under mu_. Taken before it.
  Mutex opening_;
  Mutex mu_;
  CondVar changed_;
  bool stopping_ GUARDED_BY(mu_) = false;
  std::unordered_map<Uuid, Entry, IdHash> entries_ GUARDED_BY(mu_);
  std::thread closer_;
};

}  // namespace graphlane
