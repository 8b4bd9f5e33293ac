// LiveSums: keeps the checksums of a striped file right while this process alone changes it (LiveFile).
//
//   begin(range)   the regions say dirty, durably     the blocks of the range are noted
//   ... the parts change ...
//   end(range)
//   ... the parts are synced ...
//   update()       the noted blocks get new sums, and the regions in which nothing is under way say clean
//
// So the checksum of a block that was not written to is never computed anew. A block of which a part was written was
// verified before that: if it was damaged already, it keeps a sum that fails. Of what a killed writer has left dirty,
// update() sums each block anew: which of them it had changed is not known.
//
// Memory: 512 bytes for each 16 MiB that were changed since the last update(), and 1 MiB while that runs.
//
// Threads: everything is safe from any; one update() at a time.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "iomgr/base/mutex.h"
#include "iomgr/volume/parts/striped_file.h"
#include "iomgr/volume/sum/sum_file.h"
#include "iomgr/volume/sum/verify.h"

namespace graphlane {

class LiveSums {
 public:
  // `file`: the parts, open for writing; it and the volume outlive us. `is_closed`: the stub says so; else the sums of
  // small parts do not hold.
  LiveSums(const Volume& volume, const StripedFile& file, uint64_t size_bytes, bool is_closed);
  LiveSums(const LiveSums&) = delete;
  LiveSums& operator=(const LiveSums&) = delete;

  // Around each change of bytes, those of holes too. 0, or an errno: nothing may change then.
  int begin(ByteRange range);
  void end(ByteRange range);

  // Before the file becomes so much shorter. 0 or an errno.
  int cut(uint64_t size_bytes);

  // Before bytes that were cut may come back: all that was cut is so durably. 0 or an errno.
  int sync();

  // Whether small parts have a sum in their records, which has to go before they change:
  // forget_small(), by the only writer of records. Ask after begin(). 0 or an errno.
  bool any_small_summed();
  int forget_small(bool durably);

  // The next update() sums parts that have no checksums, reading so many bytes a second of each; 0: no limit. Checksums
  // that are lost stay so, because the bytes may be damaged, too.
  void want_all(uint64_t bytes_per_second);

  // Whether something has changed since the last update().
  bool is_dirty();

  // Computes the sums of what has changed, durably. The file has that size, and its parts are synced. The headers get this
  // generation. 0 or an errno: the rest stays dirty.
  int update(uint64_t size_bytes, uint32_t generation);
  // Sets what the record says of its part's checksums. Call it as the only writer of records.
  void note_in(PartRecord& record);

 private:
  struct Region {
    std::vector<uint64_t> changed;  // a bit a block; empty: none
    bool all = false;               // left by another writer: any block may have changed
    bool is_marked = false;         // it says dirty, durably
    uint32_t writes = 0;            // under way
    bool has_changed() const { return all || !changed.empty(); }
  };
  struct Part {
    enum class Kind : uint8_t {
      kFresh,   // no checksums, and no byte that lacks one; or a small part
      kBlocks,  // in the `.sum`
      kLeft,    // its bytes have none, or a `.sum` that cannot be used: it stays as it is
    };
    Kind kind = Kind::kFresh;
    bool is_small_summed = false;  // the record has the sum of a small part, of small_bytes
    bool has_small_sum = false;    // it is known
    uint32_t small_sum = 0;
    uint64_t small_bytes = 0;
    bool is_small_damaged = false;  // it did not match before it was written to
    bool is_lost = false;  // kLeft: it has a `.sum` that cannot be used, or should have
    int error = 0;         // kLeft: why its `.sum` cannot be looked at; then its bytes cannot change
    bool is_updating = false;
    uint32_t cuts = 0;
    SumFile file;
    SumHeader header;         // of kBlocks; else it covers nothing
    uint64_t next_region = 0;  // behind what was marked last
    uint64_t ahead = 1;        // regions that are marked together
    std::unordered_map<uint64_t, Region> regions;
    std::unordered_set<uint64_t> damaged;  // blocks that were damaged before a part of them was written
  };
  class Update;

  void open_part(uint32_t d, uint64_t part_bytes, bool is_closed) REQUIRES(mu_);
  int forget_small_of(uint32_t d, bool durably) REQUIRES(mu_);
  PartOf which(uint32_t d) const;
  int part_fd(uint32_t d) const { return file_.parts().buffered(d); }
  // Regions [first, end) that are to say dirty.
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
  uint64_t rate_ GUARDED_BY(mu_) = 0;  // bytes a second; 0: no limit
  std::array<Part, kDeviceCountMax> parts_ GUARDED_BY(mu_);
};

}  // namespace graphlane
