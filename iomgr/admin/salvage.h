// Salvage: the remaining bytes of a striped file that can no longer be read as a file.
//
//   part 0  | 0 | 3 | 6 |            short: unit 6 is missing
//   part 1  cannot be opened         all its units are missing
//   part 2  | 2 | 5 | 8 |
//   copy    | 0 | . | 2 | 3 | . | 5 | . | . | 8 |     zeros where bytes are missing
//
// A block that does not match its checksum is missing, too. If a part's checksums are lost, its bytes
// are copied, and a line tells that.
//
// The list of missing ranges is a text file. Each line that does not begin with '#' is one range.
// The ranges are in ascending order, and none touches another:
//
//   # graphlane salvage 1
//   # offset length reason
//   65536 65536 /mnt/d1/graphlane-…/parts/34/34b9…: No such file or directory
//
// `offset` and `length` are bytes of the file, in decimal; the reason is the rest of the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "iomgr/base/mutex.h"
#include "iomgr/volume/sum/part_sums.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

struct MissingRange {
  ByteRange range;
  std::string reason;
};

// "# graphlane salvage 1\n…"
std::string format_missing(const std::vector<MissingRange>& missing);

// The layout in a stub, also with a wrong checksum or cut short, if its fields are possible. Empty:
// not a stub, or too damaged.
std::optional<Layout> salvage_layout(int stub_fd);

// The parts of one file, as far as they can be opened.
//
// Threads: read() from any, the rest from one.
class SalvageReader {
 public:
  // Reads a file in state `open` as far as its parts reach or have promised. Never fails.
  SalvageReader(const Volume& volume, const Layout& layout);

  uint64_t size_bytes() const { return size_bytes_; }
  // Whether a part has another owner than `uid`: then its bytes must not be given away.
  bool is_of_another(uid_t uid) const;
  // Fills the buffer, with zeros where bytes are missing, and records those ranges.
  void read(ByteRange range, char* buffer);
  // The missing ranges so far.
  std::vector<MissingRange> missing() const;

 private:
  struct Part {
    Fd fd;
    std::string path;
    std::string reason;  // why it cannot be read; if it is open, why it ends
    uint64_t size_bytes = 0;
    uid_t uid = 0;
  };
  void open_sums(const Layout& layout, int root_fd, uint32_t d);
  void read_segment(const Segment& segment, char* buffer);
  void verify_segment(const Segment& segment, char* buffer, uint64_t length);
  void note(ByteRange range, const std::string& reason);

  // Constant after construction.
  const StripeMap map_;
  std::vector<Part> parts_;
  PartSums sums_;
  uint64_t size_bytes_ = 0;

  mutable Mutex mu_;
  std::vector<MissingRange> missing_ GUARDED_BY(mu_);
};

}  // namespace graphlane
