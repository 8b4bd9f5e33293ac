// PagedFiles: opens files for PageReader, through lanes, wherever they lie.
//
//   a stub of a volume     its parts, by the lanes of the volume
//
//   any other file         itself, by a lane of its device
//
// A plain file is treated as the first part of a striped file with one unlimited unit. So the
// rest of the read path needs no second case.
//
// Threads: one open() at a time; its result is safe from any thread.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "iomgr/base/error.h"
#include "iomgr/io/lanes.h"
#include "iomgr/read/page_reader.h"

namespace graphlane {

// A file that is open for reading. It does not change while it is open.
class OpenPagedFile {
 public:
  virtual ~OpenPagedFile() = default;

  const std::string& path() const { return path_; }
  uint64_t size_bytes() const { return paged_->size_bytes; }
  const PagedFile& paged() const { return *paged_; }
  // Call it before the first read; the checker outlives the file.
  void check_pages_by(const PageChecker& checker) { paged_->checker = &checker; }

  // Reads all of [offset, offset + length) into `buffer`; blocks. `buffer` has room up to the next
  // multiple of kBlockSize. The error names the file; EIO: the file ends before.
  Outcome<void> read(ByteRange range, void* buffer) const;

 protected:
  std::string path_;
  std::unique_ptr<PagedFile> paged_;
};

class PagedFiles {
 public:
  PagedFiles() = default;
  PagedFiles(const PagedFiles&) = delete;
  PagedFiles& operator=(const PagedFiles&) = delete;

  // Lives as long as this. The error names the file, or the part and its device.
  Outcome<OpenPagedFile*> open(const std::string& path);

  // The I/O that all files have caused.
  struct Moved {
    uint64_t io_count = 0;
    uint64_t bytes = 0;
  };
  Moved moved() const;

 private:
  Outcome<std::unique_ptr<OpenPagedFile>> open_striped(const std::string& path, Fd stub);
  Outcome<std::unique_ptr<OpenPagedFile>> open_plain(const std::string& path, Fd file);

  struct OpenVolume {
    std::shared_ptr<const Volume> volume;
    std::unique_ptr<Lanes> lanes;
  };
  std::map<std::string, OpenVolume> volumes_;            // by root
  std::map<dev_t, std::unique_ptr<Lanes>> plain_lanes_;  // by filesystem
  std::vector<std::unique_ptr<OpenPagedFile>> files_;    // destroyed before their lanes
};

}  // namespace graphlane
