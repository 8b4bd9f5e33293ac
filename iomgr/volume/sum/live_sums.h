// LiveSums: keeps the checksums of a striped file valid while only this process changes it
// (LiveFile).
//
//   begin(range)   the regions say dirty, durably     the blocks of the range are noted
//
//   ... the parts change ...
//
//   end(range)
//
//   ... the parts are synced ...
//
//   update()       the noted blocks get new sums, and regions without a write say clean
//
// So an unwritten block never gets a new checksum. A block that is written in part is verified
// first: if it was damaged already, it keeps a failing sum. In regions left dirty by a killed
// writer, update() computes all sums anew, because the changed blocks are unknown.
//
// A long update() writes the header every few seconds. What holds then, a killed or interrupted one
// need not do again.
//
// Memory: 512 bytes for each 16 MiB changed since the last update(), and 1 MiB during it.
//
// Threads: everything is safe from any; one update() at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "iomgr/base/mutex.h"
#include "iomgr/volume/parts/striped_file.h"
#include "iomgr/volume/sum/sum_file.h"
#include "iomgr/volume/sum/verify.h"

namespace graphlane {

// How sums are made for old files.
struct SumWork {
  uint64_t bytes_per_second = 0;  // read of each part; 0: no limit
  // Optional: is told the bytes that have been summed, from any thread.
  std::function<void(uint64_t bytes)> summed = {};
};

class LiveSums {
 public:
  // `file`: the parts, open for writing; it and the volume must outlive this. `is_closed`: the stub
  // says so; otherwise the sums of small parts are not valid.
  LiveSums(const Volume& volume, const StripedFile& file, uint64_t size_bytes, bool is_closed);
  LiveSums(const LiveSums&) = delete;
  LiveSums& operator=(const LiveSums&) = delete;

  // Call them around each change of bytes, also of holes. After an errno nothing may change.
  int begin(ByteRange range);
  void end(ByteRange range);

  // Call it before the file is cut to that size. 0 or an errno.
  int cut(uint64_t size_bytes);

  // Call it before cut bytes may come back: makes all cuts durable. 0 or an errno.
  int sync();

  // Whether small parts have a sum in their records. It must be removed before they change, by
  // forget_small(), by the only writer of records. Ask after begin(). 0 or an errno.
  bool any_small_summed();
  int forget_small(bool durably);

  // The next update() computes missing checksums. Lost ones stay lost, because the bytes may be
  // damaged, too. Makes the files for them, durably: they cover nothing yet. Then note_in() the
  // records, durably, before update(): a killed update() is continued only by what they say. 0 or an
  // errno.
  int want_all(uint64_t size_bytes, SumWork work);

  // Lets update() end with EAGAIN as soon as this is true.
  void give_way_if(std::function<bool()> is_asked_to);

  // Whether something has changed since the last update().
  bool is_dirty();

  // Computes the sums of changed blocks, durably. The file has this size, and its parts are synced.
  // The headers get this generation. 0 or an errno: the rest stays dirty.
  int update(uint64_t size_bytes, uint32_t generation);
  // Sets the fields of the part's record. Call it as the only writer of records.
  void note_in(PartRecord& record);

 private:
  struct Region {
    std::vector<uint64_t> changed;  // one bit per block; empty: none
    bool all = false;               // any block may have changed, by another writer
    bool is_marked = false;         // says dirty, durably
    uint32_t writes = 0;            // in flight
    bool has_changed() const { return all || !changed.empty(); }
  };
  struct Part {
    enum class Kind : uint8_t {
      kFresh,   // no checksums, and no byte that needs one; or a small part
      kBlocks,  // in the `.sum`
      kLeft,    // its bytes have none, or an unusable `.sum`, which stays unchanged
    };
    Kind kind = Kind::kFresh;
    // The record has the sum of a small part, of small_bytes.
    bool is_small_summed = false;
    // small_sum is known.
    bool has_small_sum = false;
    uint32_t small_sum = 0;
    uint64_t small_bytes = 0;
    // It did not match before the part was written to.
    bool is_small_damaged = false;
    // kLeft: the `.sum` is unusable, or missing.
    bool is_lost = false;
    // kLeft: why its `.sum` cannot be opened; then its bytes must not change.
    int error = 0;
    bool is_updating = false;
    uint32_t cuts = 0;
    SumFile file;
    // For kBlocks; otherwise it covers nothing.
    SumHeader header;
    // Behind the last mark.
    uint64_t next_region = 0;
    // Regions that are marked together.
    uint64_t ahead = 1;
    std::unordered_map<uint64_t, Region> regions;
    // Blocks that were damaged before a part of them was written.
    std::unordered_set<uint64_t> damaged;
  };
  class Update;

  void open_part(uint32_t d, uint64_t part_bytes, bool is_closed) REQUIRES(mu_);
  int forget_small_of(uint32_t d, bool durably) REQUIRES(mu_);
  int make_file(uint32_t d, uint64_t part_bytes) REQUIRES(mu_);
  static void regroup(Part& part);
  PartOf which(uint32_t d) const;
  int part_fd(uint32_t d) const { return file_.parts().buffered(d); }
  // Regions [first, end) to be marked dirty.
  struct Mark {
    uint64_t first = 0;
    uint64_t end = 0;
  };
  void note(Part& part, ByteRange run) REQUIRES(mu_);
  Mark marks_of(Part& part, ByteRange run) REQUIRES(mu_);
  int mark(uint32_t count, const std::array<Mark, kDeviceCountMax>& marks) REQUIRES(mu_);
  void verify_edges(uint32_t d, ByteRange run) REQUIRES(mu_);
  void verify_block(uint32_t d, uint64_t block) REQUIRES(mu_);

  const Volume& volume_;
  const StripedFile& file_;
  Mutex mu_;
  bool is_dirty_ GUARDED_BY(mu_) = false;
  bool wants_all_ GUARDED_BY(mu_) = false;
  SumWork work_;                          // constant during update()
  std::function<bool()> is_asked_to_go_;  // the same
  std::array<Part, kDeviceCountMax> parts_ GUARDED_BY(mu_);
};

}  // namespace graphlane
