// SumFile: the open file with a part's checksums (sum_format.h).
//
// It has the part's owner and mode. A process that may write the part may also write its checksums,
// and so make any data seem right. They detect damage, and protect against no user.
//
// Each read and write is one system call at an offset that follows from the part. So the length of
// the file costs nothing. A FIFO, a link, or a file of another owner is not opened.
//
// Threads: everything is safe from any; one process at a time writes the header (FORMAT.md,
// "Locks"). No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <span>
#include <utility>

#include "iomgr/base/fd.h"
#include "iomgr/base/result.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/sum/sum_format.h"

namespace graphlane {

class SumFile {
 public:
  SumFile() = default;
  // Takes an open file.
  SumFile(Fd file, const PartOf& part, uint32_t ordinal)
      : file_(std::move(file)), part_(part), ordinal_(ordinal) {}

  // `flags`: O_RDONLY or O_RDWR. ENOENT: none; EINVAL: another owner's; kNotRegular, ELOOP.
  static Result<SumFile> open(const PartOf& part, int part_fd, uint32_t ordinal, int flags);
  // Makes one with the part's owner and mode, or empties an existing one. It covers nothing yet.
  static Result<SumFile> create(const PartOf& part, int part_fd, uint32_t ordinal,
                                uint64_t part_bytes);

  // Makes or empties one, without a header: write_image() must follow.
  static Result<SumFile> create_empty(const PartOf& part, int part_fd, uint32_t ordinal);
  // Writes the file's bytes from kSumHeaderAt on at once, with the header in both slots. `image` has
  // zeros before the sums. 0 or an errno. Not durable yet.
  int write_image(std::span<uint8_t> image, SumHeader* header) const;

  explicit operator bool() const { return static_cast<bool>(file_); }
  int fd() const { return file_.get(); }
  uint32_t ordinal() const { return ordinal_; }
  const PartOf& part() const { return part_; }

  // The newer header of the two slots. `header` is set for kGood. An errno: it cannot be read.
  Result<SumVerdict> read_header(SumHeader* header) const;
  // Writes the header with the next sequence number, into the other slot. 0 or an errno. Not
  // durable yet.
  int write_header(SumHeader* header) const;

  // Call it before the part is cut to that size: covers less. `header` is the file's present one,
  // and is updated. Durable if a block is cut in part, because its sum must be gone before. 0 or an
  // errno.
  int lower_cover(SumHeader* header, uint64_t part_bytes) const;

  // Whether the region is dirty. An errno.
  Result<bool> is_dirty(uint64_t region) const;
  // 0 or an errno. Not durable yet.
  int set_regions(uint64_t first, uint64_t count, uint8_t value) const;

  // The sums of blocks from `first` on. Sums behind the end of the file are 0. 0 or an errno.
  int read_sums(uint64_t first, std::span<uint32_t> sums) const;
  int write_sums(uint64_t first, std::span<const uint32_t> sums) const;

  // As fdatasync(2). 0 or an errno.
  int sync() const;

 private:
  Fd file_;
  PartOf part_;
  uint32_t ordinal_ = 0;
};

// Translates a failure of SumFile::open(). kGood: a transient error (EACCES, EMFILE, …).
SumVerdict verdict_of_error(int error);

// Whether sums of this generation are valid for a part with that generation in its record. A close
// writes the sums first, then the record.
constexpr bool fits_generation(uint32_t of_sums, uint32_t of_record) {
  return of_sums == of_record || of_sums == of_record + 1;
}

}  // namespace graphlane
