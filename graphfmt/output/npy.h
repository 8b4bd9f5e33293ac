// Arrays of numpy (.npy, version 1.0) of one dimension: written piece by piece, read piece by
// piece.
//
//   \x93NUMPY 1 0 | uint16 length | {'descr': '<i8', 'fortran_order': False, 'shape': (5,), } … \n | numbers
#pragma once

#include <memory>
#include <string>

#include "graphfmt/input/byte_source.h"
#include "iomgr/base/fd.h"

namespace graphlane::graphfmt {

class NpyWriter {
 public:
  // `descr`: "<i4". A new file. `count`: of numbers that will follow.
  static Outcome<NpyWriter> create(const std::string& path, const std::string& descr,
                                   uint64_t count);

  Outcome<void> append(const void* data, size_t bytes);
  Outcome<void> close();

 private:
  Outcome<void> flush();

  Fd fd_;
  std::string path_;
  std::string buffer_;
};

class NpyReader {
 public:
  // Opens an array of one dimension, in this machine's byte order and one of these types: '<i4',
  // '<u4', '<i8', '<u8', '<f4', '<f8'.
  static Outcome<NpyReader> open(const std::string& path);

  uint64_t count() const { return count_; }
  const std::string& descr() const { return descr_; }
  size_t number_bytes() const { return descr_[2] == '8' ? 8 : 4; }
  const std::string& path() const { return source_->name(); }

  // `count` numbers, as they stand in the file. EINVAL: it ends before.
  Outcome<void> read(char* to, size_t count);
  // Whole numbers of either size.
  Outcome<void> read_numbers(uint64_t* to, size_t count);

 private:
  std::unique_ptr<ByteSource> source_;
  std::string descr_;
  uint64_t count_ = 0;
  uint64_t taken_ = 0;
  Buffer raw_;
};

}  // namespace graphlane::graphfmt
