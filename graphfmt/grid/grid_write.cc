#include "graphfmt/grid/grid_write.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <utility>

#include "graphfmt/grid/grid_files.h"
#include "graphfmt/output/out_file.h"
#include "graphfmt/sort/line.h"
#include "iomgr/base/process/progress.h"

namespace graphlane::graphfmt {
namespace {

// Neighbouring blocks [first, end), row-major.
struct Group {
  size_t first = 0;
  size_t end = 0;
};

// Held edges are kHeldBytes a block: 3 MiB.
constexpr size_t kGroupBlocksMax = 4096;

class GridWriter {
 public:
  GridWriter(const GridWriteJob& job, const RunStore& runs)
      : job_(job),
        runs_(runs),
        run_count_(runs.run_count()),
        edge_bytes_(edge_size_bytes(job.weighted)) {}

  Outcome<uint64_t> run() {
    lay_out();
    if (auto opened = open(); !opened) return opened.error();
    const std::vector<Group> groups = divide();
    Progress progress(job_.label, copies() * row_start_.back());
    auto done = for_each_index<Scratch>(
        job_.threads, groups.size(), [&](size_t index, Scratch& scratch) -> Outcome<void> {
          const Group& group = groups[index];
          const uint64_t bytes = row_start_[group.end] - row_start_[group.first];
          const bool stream = bytes > job_.group_bytes;
          auto written = stream ? stream_block(group.first, scratch) : gather(group, scratch);
          if (written) progress.add(copies() * bytes);
          return written;
        });
    if (!done) return done.error();
    for (OutFile* file : {&row_, &column_}) {
      if (auto closed = file->close(); !closed) return closed.error();
    }
    return write_tables();
  }

 private:
  // In files.
  uint64_t copies() const { return job_.blocks ? 3 : 2; }

  // The buffers of one thread.
  struct Scratch {
    Buffer group;
    Buffer run;    // a piece of a spilled run
    Buffer table;  // a piece of its table
    Buffer held;   // kHeldBytes for each block of the group
  };

  // Where blocks start in `row` and `column`, in bytes.
  void lay_out() {
    const size_t p = job_.layout.partitions();
    row_start_.resize(p * p + 1);
    column_start_.resize(p * p + 1);
    for (size_t b = 0; b < p * p; ++b) {
      row_start_[b + 1] = row_start_[b] + job_.block_edge_counts[b] * edge_bytes_;
      const size_t transposed = b % p * p + b / p;
      column_start_[b + 1] = column_start_[b] + job_.block_edge_counts[transposed] * edge_bytes_;
    }
  }

  Outcome<void> open() {
    for (OutFile* file : {&row_, &column_}) {
      auto created = OutFile::create(job_.dir + (file == &row_ ? "/row" : "/column"));
      if (!created) return created.error();
      *file = std::move(*created);
      if (auto claimed = file->claim(row_start_.back()); !claimed) return claimed;
    }
    return {};
  }

  std::vector<Group> divide() const {
    std::vector<Group> groups;
    const size_t block_count = job_.layout.block_count();
    for (size_t b = 0; b < block_count;) {
      Group group{b, b + 1};
      while (group.end < block_count && group.end - b < kGroupBlocksMax &&
             row_start_[group.end + 1] - row_start_[b] <= job_.group_bytes) {
        ++group.end;
      }
      groups.push_back(group);
      b = group.end;
    }
    return groups;
  }

  Outcome<void> reserve(Scratch& scratch) const {
    const std::pair<Buffer*, size_t> wanted[] = {
        {&scratch.group, job_.group_bytes},
        {&scratch.run, job_.run_bytes},
        {&scratch.table, (kGroupBlocksMax + 1) * sizeof(uint32_t)},
        {&scratch.held, kGroupBlocksMax * kHeldBytes}};
    for (const auto& [buffer, bytes] : wanted) {
      if (auto grown = buffer->reserve(bytes); !grown) return grown;
    }
    return {};
  }

  // Calls use(block, edges, bytes) for the group's non-empty pieces, run by run.
  template <class Use>
  Outcome<void> for_each_piece(const Group& group, Scratch& scratch, const Use& use) const {
    if (auto reserved = reserve(scratch); !reserved) return reserved;
    const size_t block_count = group.end - group.first;
    for (size_t run = 0; run < run_count_; ++run) {
      auto table = runs_.view_table(run, group.first, block_count + 1, scratch.table);
      if (!table) return table.error();
      const uint32_t* const starts = *table;
      const uint32_t first = starts[0];
      const size_t bytes = (starts[block_count] - first) * edge_bytes_;
      if (bytes == 0) continue;
      auto edges = runs_.view_edges(run, first * edge_bytes_, bytes, scratch.run);
      if (!edges) return edges.error();
      for (size_t b = 0; b < block_count; ++b) {
        const size_t piece_bytes = (starts[b + 1] - starts[b]) * edge_bytes_;
        if (piece_bytes == 0) continue;
        auto used = use(b, *edges + (starts[b] - first) * edge_bytes_, piece_bytes);
        if (!used) return used;
      }
    }
    return {};
  }

  Outcome<void> gather(const Group& group, Scratch& scratch) const {
    const size_t block_count = group.end - group.first;
    const uint64_t base = row_start_[group.first];
    std::vector<char*> cursor(block_count);
    std::vector<size_t> held_bytes(block_count);
    if (auto reserved = reserve(scratch); !reserved) return reserved;
    for (size_t b = 0; b < block_count; ++b) {
      cursor[b] = scratch.group.data() + (row_start_[group.first + b] - base);
    }
    const auto append = [&](size_t b, const char* data, size_t bytes) {
      std::memcpy(cursor[b], data, bytes);
      cursor[b] += bytes;
    };
    const auto release = [&](size_t b) {
      append(b, scratch.held.data() + b * kHeldBytes, std::exchange(held_bytes[b], 0));
    };
    auto gathered = for_each_piece(group, scratch, [&](size_t b, const char* edges, size_t bytes) {
      if (bytes > edge_bytes_) {
        append(b, edges, bytes);
      } else {
        std::memcpy(scratch.held.data() + b * kHeldBytes + held_bytes[b], edges, bytes);
        held_bytes[b] += bytes;
        if (held_bytes[b] == kHeldBytes) release(b);
      }
      return Outcome<void>();
    });
    if (!gathered) return gathered;
    for (size_t b = 0; b < block_count; ++b) release(b);
    return write_group(group, scratch.group.data());
  }

  Outcome<void> write_group(const Group& group, const char* data) const {
    const uint64_t base = row_start_[group.first];
    if (auto done = row_.write(data, row_start_[group.end] - base, base); !done) return done;
    for (size_t b = group.first; b < group.end; ++b) {
      auto file = create_block(b);
      if (!file) return file.error();
      const size_t bytes = row_start_[b + 1] - row_start_[b];
      if (bytes == 0) continue;
      const char* const block = data + (row_start_[b] - base);
      if (auto done = write_block(*file, block, bytes, 0); !done) return done;
      if (auto done = column_.write(block, bytes, column_start_of(b)); !done) return done;
      if (auto closed = file->close(); !closed) return closed;
    }
    return {};
  }

  // One block of any size.
  Outcome<void> stream_block(size_t block, Scratch& scratch) const {
    auto file = create_block(block);
    if (!file) return file.error();
    uint64_t done_bytes = 0;
    size_t held_bytes = 0;
    const auto append = [&](const char* data, size_t bytes) -> Outcome<void> {
      const uint64_t at = std::exchange(done_bytes, done_bytes + bytes);
      if (auto done = write_block(*file, data, bytes, at); !done) return done;
      if (auto done = row_.write(data, bytes, row_start_[block] + at); !done) return done;
      return column_.write(data, bytes, column_start_of(block) + at);
    };
    const auto release = [&] { return append(scratch.held.data(), std::exchange(held_bytes, 0)); };
    auto streamed = for_each_piece({block, block + 1}, scratch,
                                   [&](size_t, const char* edges, size_t bytes) -> Outcome<void> {
                                     if (bytes > edge_bytes_) return append(edges, bytes);
                                     std::memcpy(scratch.held.data() + held_bytes, edges, bytes);
                                     held_bytes += bytes;
                                     return held_bytes == kHeldBytes ? release() : Outcome<void>();
                                   });
    if (streamed) streamed = release();
    return streamed ? file->close() : streamed;
  }

  // Or as much of a hole.
  Outcome<void> write_block(const OutFile& file, const char* data, size_t bytes,
                            uint64_t at) const {
    if (job_.blocks) return file.write(data, bytes, at);
    if (::ftruncate(file.fd.get(), static_cast<off_t>(at + bytes)) != 0) {
      return os_error(errno, file.path, "cannot write");
    }
    return {};
  }

  Outcome<OutFile> create_block(size_t block) const {
    const size_t p = job_.layout.partitions();
    return OutFile::create(
        block_path(job_.dir, static_cast<uint32_t>(block / p), static_cast<uint32_t>(block % p)));
  }

  uint64_t column_start_of(size_t block) const {
    const size_t p = job_.layout.partitions();
    return column_start_[block % p * p + block / p];
  }

  Outcome<uint64_t> write_tables() const {
    const std::string meta = fmt::format("{} {} {} {}", job_.weighted ? 1 : 0, job_.vertex_count,
                                         row_start_.back() / edge_bytes_, job_.layout.partitions());
    const size_t table_bytes = row_start_.size() * sizeof(uint64_t);
    const std::tuple<const char*, const void*, size_t> files[] = {
        {"/column_offset", column_start_.data(), table_bytes},
        {"/row_offset", row_start_.data(), table_bytes},
        {"/meta", meta.data(), meta.size()}};
    uint64_t written = copies() * row_start_.back();
    for (const auto& [name, data, bytes] : files) {
      auto file = OutFile::create(job_.dir + name);
      if (!file) return file.error();
      if (auto done = file->write(data, bytes, 0); !done) return done.error();
      if (auto closed = file->close(); !closed) return closed.error();
      written += bytes;
    }
    return written;
  }

  const GridWriteJob& job_;
  const RunStore& runs_;
  const size_t run_count_;
  const size_t edge_bytes_;
  // Constant after open().
  std::vector<uint64_t> row_start_;     // of block b = i·P + j
  std::vector<uint64_t> column_start_;  // of block b = j·P + i
  OutFile row_;
  OutFile column_;
};

}  // namespace

Outcome<uint64_t> write_grid(const GridWriteJob& job, const RunStore& runs) {
  return GridWriter(job, runs).run();
}

}  // namespace graphlane::graphfmt
