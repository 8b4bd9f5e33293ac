// Structure: the edges without their values, which all jobs on a graph share.
//
//   BASE.edata_azv.0_2.adj     | piece 0 | piece 1 | piece 2 |      a shard, by source
//   BASE.edata_azv.1_2.adj     | piece 3 | piece 4 |
//
// GraphChi's sparse index (.adjidx, an entry every 2^20 edges) cuts a shard into pieces. A piece has
// whole vertices, so it can be read without the one before. The pieces of all shards are the
// partitions of one graph of adapters/share. A job that goes through a shard asks for all of its
// pieces, gets them in the order that serves all jobs, and reads them in shared memory.
//
// A record is one vertex with edges, or a run of vertices without:
//   count (1 byte; 255: the count follows as uint32)  targets (uint32 each)
//   0, and one byte with the number of further vertices without edges
//
// Threads: any, but only one at a time visits pieces. A visitor may use further threads within a piece.
#ifndef GRAPHLANE_GRAPHCHI_STRUCTURE_HPP
#define GRAPHLANE_GRAPHCHI_STRUCTURE_HPP

#include <graphlane_share.h>
#include <stdint.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "graphlane/files.hpp"

namespace graphlane_graphchi {

// A position in a shard: the next record is that of vertex `vid`, and `edge` edges precede it.
struct Place {
  uint32_t vid = 0;
  size_t offset = 0;
  size_t edge = 0;
};

// Iterates over records, and checks that they lie within [begin, end).
class Records {
 public:
  // `at` is the position of `begin`; `path` names the file in errors.
  Records(const std::string& path, const Place& at, const uint8_t* begin, const uint8_t* end)
      : path_(path), next_(at), begin_(begin), end_(end), ptr_(begin), base_(at.offset) {}

  // The next vertex with edges; false: there is none.
  bool next() {
    while (ptr_ != end_) {
      at_ = next_;
      const size_t left = static_cast<size_t>(end_ - ptr_);
      if (*ptr_ == 0) {
        if (left < 2) damaged();
        next_.vid += 1u + ptr_[1];
        ptr_ += 2;
        next_.offset += 2;
        continue;
      }
      size_t header = 1;
      count_ = *ptr_;
      if (count_ == 255) {
        if (left < 5) damaged();
        memcpy(&count_, ptr_ + 1, 4);
        header = 5;
      }
      if ((left - header) / 4 < count_) damaged();
      targets_ = ptr_ + header;
      const size_t size_bytes = header + size_t{4} * count_;
      ptr_ += size_bytes;
      next_.vid += 1;
      next_.offset += size_bytes;
      next_.edge += count_;
      return true;
    }
    at_ = next_;
    return false;
  }

  // The position of the record, or of the end.
  const Place& at() const { return at_; }
  // The number of edges up to the end of this record.
  size_t next_edge() const { return next_.edge; }
  uint32_t count() const { return count_; }
  uint32_t target(uint32_t i) const {
    uint32_t target;
    memcpy(&target, targets_ + size_t{4} * i, 4);
    return target;
  }
  const uint8_t* record() const { return begin_ + (at_.offset - base_); }

 private:
  [[noreturn]] void damaged() const {
    fail_at(path_, at_.offset, "damaged: a vertex has more edges than there are");
  }

  const std::string& path_;
  Place at_;
  Place next_;
  uint32_t count_ = 0;
  const uint8_t* targets_ = nullptr;
  const uint8_t* begin_;
  const uint8_t* end_;
  const uint8_t* ptr_;
  size_t base_;
};

// The pieces of one shard's file: the begin of each, and the end of the last.
inline std::vector<Place> pieces_of(const std::string& path, size_t size_bytes) {
  // As GraphChi writes it: struct shard_index of graphchi_types.hpp.
  struct Entry {
    uint32_t vid;
    uint32_t padding;
    uint64_t offset;
    uint64_t edge;
  };
  const std::string index = path + "idx";
  const std::vector<char> bytes = bytes_of(index);
  std::vector<Place> pieces(1);
  for (size_t i = 0; i + sizeof(Entry) <= bytes.size(); i += sizeof(Entry)) {
    Entry entry;
    memcpy(&entry, bytes.data() + i, sizeof entry);
    const Place& last = pieces.back();
    if (entry.offset < last.offset || entry.offset > size_bytes || entry.vid < last.vid || entry.edge < last.edge) {
      fail_at(index, i, "damaged: does not go with the shard");
    }
    if (entry.offset == last.offset) continue;
    Place piece;
    piece.vid = entry.vid;
    piece.offset = entry.offset;
    piece.edge = entry.edge;
    pieces.push_back(piece);
  }
  if (bytes.size() % sizeof(Entry) != 0) fail_at(index, bytes.size(), "damaged: cut short");
  Place end;
  end.vid = UINT32_MAX;
  end.offset = size_bytes;
  if (pieces.size() > 1 && pieces.back().offset == size_bytes) pieces.pop_back();
  pieces.push_back(end);
  return pieces;
}

// A graph's shards, as one job of adapters/share.
class Structure {
 public:
  // The graph of the file BASE.edata_azv.P_S.adj; null: not such a file.
  static std::shared_ptr<Structure> of(const std::string& adjacency) {
    if (!ends_with(adjacency, ".adj")) return nullptr;
    const ShardName name = shard_name(adjacency.substr(0, adjacency.size() - 4));
    if (!name.valid || !ends_with(name.prefix, ".edata_azv")) return nullptr;
    static std::mutex mu;
    static std::map<std::string, std::shared_ptr<Structure>> known;
    std::lock_guard<std::mutex> lock(mu);
    std::shared_ptr<Structure>& structure = known[name.of(0)];
    // A new run of the sharder makes another graph.
    if (!structure || !structure->is_current()) {
      structure.reset();
      structure = std::make_shared<Structure>(name);
    }
    return structure;
  }

  explicit Structure(const ShardName& name) : shards_(name.shard_count) {
    for (uint32_t p = 0; p < name.shard_count; ++p) {
      Shard& shard = shards_[p];
      shard.path = name.of(p) + ".adj";
      shard.fd = ::open(shard.path.c_str(), O_RDONLY | O_CLOEXEC);
      if (shard.fd < 0) fail(shard.path, "cannot open", errno);
      shard.state = stat_of(shard.fd, shard.path);
      shard.pieces = pieces_of(shard.path, static_cast<size_t>(shard.state.st_size));
      shard.first_partition = partition_count_;
      partition_count_ += static_cast<uint32_t>(shard.pieces.size()) - 1;
    }
    cuts_.resize(partition_count_);
    join();
  }
  Structure(const Structure&) = delete;
  Structure& operator=(const Structure&) = delete;
  ~Structure() {
    graphlane_share_end(job_);
    for (const Shard& shard : shards_) {
      if (shard.fd >= 0) ::close(shard.fd);
    }
  }

  const std::vector<Place>& pieces(unsigned shard) const { return shards_[shard].pieces; }

  // Calls visit(piece, data, size_bytes) for pieces [first, end) of a shard, in their order or in the one
  // that serves all jobs. Other threads wait until it returns.
  template <class Visit>
  void visit(unsigned shard, size_t first, size_t end, bool in_order, const Visit& visit) {
    std::lock_guard<std::mutex> lock(mu_);
    for (size_t from = first; from < end; from = in_order ? from + 1 : end) {
      std::vector<uint64_t> wanted((partition_count_ + 63) / 64);
      for (size_t piece = from; piece < (in_order ? from + 1 : end); ++piece) {
        const size_t partition = shards_[shard].first_partition + piece;
        wanted[partition / 64] |= uint64_t{1} << partition % 64;
      }
      check(graphlane_share_get_active_partitions(job_, wanted.data()));
      uint32_t partition;
      graphlane_share_chunk chunk;
      while (check(graphlane_share_sharing(job_, &partition)) == 1) {
        while (check(graphlane_share_start(job_, &chunk)) == 1) {
          visit(partition - shards_[shard].first_partition, static_cast<const uint8_t*>(chunk.data),
                static_cast<size_t>(chunk.size_bytes));
          check(graphlane_share_barrier(job_));
        }
      }
    }
    // The job computes now. An empty sweep tells the others not to wait for its next one.
    const std::vector<uint64_t> none((partition_count_ + 63) / 64);
    check(graphlane_share_get_active_partitions(job_, none.data()));
  }

  // Positions in a piece at which threads can begin, and its end; empty: not computed yet. For its
  // visitor.
  std::vector<Place>& cuts(unsigned shard, size_t piece) { return cuts_[shards_[shard].first_partition + piece]; }

  // False: there is no coordinator now; the next visit connects to one.
  bool get_statistics(graphlane_share_statistics& statistics) {
    std::lock_guard<std::mutex> lock(mu_);
    return graphlane_share_get_statistics(job_, &statistics) == 0;
  }

 private:
  struct Shard {
    std::string path;
    int fd = -1;
    struct stat state;
    std::vector<Place> pieces;
    uint32_t first_partition = 0;
  };

  bool is_current() const {
    for (const Shard& shard : shards_) {
      struct stat now;
      if (::stat(shard.path.c_str(), &now) != 0 || now.st_dev != shard.state.st_dev ||
          now.st_ino != shard.state.st_ino || now.st_size != shard.state.st_size ||
          now.st_mtim.tv_sec != shard.state.st_mtim.tv_sec ||
          now.st_mtim.tv_nsec != shard.state.st_mtim.tv_nsec) {
        return false;
      }
    }
    return true;
  }

  // With more shards than a job can show files, the job loads the pieces itself.
  void join() {
    const size_t file_count = std::min<size_t>(shards_.size(), GRAPHLANE_SHARE_FILES_MAX);
    std::vector<const char*> files;
    for (size_t p = 0; p < file_count; ++p) files.push_back(shards_[p].path.c_str());
    std::vector<graphlane_share_range> ranges;
    for (uint32_t p = 0; p < file_count; ++p) {
      const std::vector<Place>& pieces = shards_[p].pieces;
      for (uint32_t piece = 0; piece + 1 < pieces.size(); ++piece) {
        graphlane_share_range range = graphlane_share_range();
        range.partition = shards_[p].first_partition + piece;
        range.file = p;
        range.offset = pieces[piece].offset;
        range.length_bytes = pieces[piece + 1].offset - pieces[piece].offset;
        ranges.push_back(range);
      }
    }
    graphlane_share_options options = graphlane_share_options();
    options.files = files.data();
    options.file_count = static_cast<uint32_t>(files.size());
    options.partition_count = partition_count_;
    if (file_count == shards_.size()) {
      options.ranges = ranges.data();
      options.range_count = ranges.size();
    } else {
      options.load = load_piece;
      options.load_context = this;
    }
    check(graphlane_share_init(&options, &job_));
  }

  static int64_t load_piece(void* context, uint32_t partition, void* memory, uint64_t size_bytes) {
    const Structure& structure = *static_cast<const Structure*>(context);
    size_t p = structure.shards_.size() - 1;
    while (structure.shards_[p].first_partition > partition) --p;
    const Shard& shard = structure.shards_[p];
    const size_t piece = partition - shard.first_partition;
    const size_t offset = shard.pieces[piece].offset;
    const size_t length_bytes = shard.pieces[piece + 1].offset - offset;
    if (memory != nullptr) read_at(shard.fd, shard.path, memory, size_bytes, offset);
    return static_cast<int64_t>(length_bytes);
  }

  static int check(int result) {
    if (result < 0) fail(graphlane_share_error());
    return result;
  }

  std::mutex mu_;
  graphlane_share* job_ = nullptr;
  std::vector<Shard> shards_;
  uint32_t partition_count_ = 0;
  std::vector<std::vector<Place>> cuts_;
};

// One shard's file. It belongs to a shared graph, or to one that the job itself makes and changes (a
// dynamic graph's) and therefore reads alone.
class Adjacency {
 public:
  explicit Adjacency(const std::string& path) : path_(path), structure_(Structure::of(path)) {
    if (structure_) {
      shard_ = shard_name(path.substr(0, path.size() - 4)).shard;
      pieces_ = structure_->pieces(shard_);
      return;
    }
    fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd_ < 0) fail(path, "cannot open", errno);
    pieces_ = pieces_of(path, size_of(fd_, path));
  }
  Adjacency(const Adjacency&) = delete;
  Adjacency& operator=(const Adjacency&) = delete;
  ~Adjacency() {
    if (fd_ >= 0) ::close(fd_);
  }

  const std::string& path() const { return path_; }
  size_t size_bytes() const { return pieces_.back().offset; }
  size_t piece_count() const { return pieces_.size() - 1; }
  const Place& piece(size_t i) const { return pieces_[i]; }
  // The last piece that begins at or before `offset`.
  size_t piece_at(size_t offset) const {
    size_t i = piece_count() - 1;
    while (pieces_[i].offset > offset) --i;
    return i;
  }
  // The last piece that begins at or before vertex `vid`.
  size_t piece_of(uint32_t vid) const {
    size_t i = piece_count() - 1;
    while (i > 0 && pieces_[i].vid > vid) --i;
    return i;
  }
  const std::shared_ptr<Structure>& structure() const { return structure_; }

  // As Structure::visit().
  template <class Visit>
  void visit(size_t first, size_t end, bool in_order, const Visit& call) {
    if (structure_) {
      structure_->visit(shard_, first, end, in_order, call);
      return;
    }
    std::vector<uint8_t> bytes;
    for (size_t i = first; i < end; ++i) {
      bytes.resize(pieces_[i + 1].offset - pieces_[i].offset);
      read_at(fd_, path_, bytes.data(), bytes.size(), pieces_[i].offset);
      call(i, bytes.data(), bytes.size());
    }
  }

  // Positions in a piece at which threads can begin, and its end. For its visitor, during the visit.
  const std::vector<Place>& cuts(size_t piece, const uint8_t* data, size_t size_bytes) {
    std::vector<Place>& cuts = structure_ ? structure_->cuts(shard_, piece) : cuts_;
    if (structure_ && !cuts.empty()) return cuts;
    cuts.assign(1, pieces_[piece]);
    Records records(path_, pieces_[piece], data, data + size_bytes);
    while (records.next()) {
      if (records.at().edge - cuts.back().edge >= kCutEdges) cuts.push_back(records.at());
    }
    cuts.push_back(pieces_[piece + 1]);
    return cuts;
  }

  // Copies bytes of the file.
  void copy(void* to, size_t size_bytes, size_t offset) {
    if (size_bytes == 0) return;
    const size_t end = offset + size_bytes;
    if (end > this->size_bytes()) fail_at(path_, this->size_bytes(), "the file ends here, more was expected");
    visit(piece_at(offset), piece_at(end - 1) + 1, false, [&](size_t i, const uint8_t* data, size_t) {
      const size_t from = std::max(offset, pieces_[i].offset);
      const size_t upto = std::min(end, pieces_[i + 1].offset);
      memcpy(static_cast<char*>(to) + (from - offset), data + (from - pieces_[i].offset), upto - from);
    });
  }

 private:
  static const size_t kCutEdges = 1 << 16;

  std::string path_;
  std::shared_ptr<Structure> structure_;
  unsigned shard_ = 0;
  int fd_ = -1;
  std::vector<Place> pieces_;
  std::vector<Place> cuts_;  // if it is not shared
};

}  // namespace graphlane_graphchi

#endif
