#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>

#include "graphfmt/grid/grid_files.h"
#include "graphfmt/grid/grid_layout.h"
#include "graphfmt/grid/grid_write.h"
#include "graphfmt/sort/line.h"
#include "graphfmt/sort/run_sort.h"
#include "graphfmt/sort/run_store.h"
#include "graphfmt/staging.h"
#include "iomgr/base/process/progress.h"
#include "iomgr/base/size.h"

namespace graphlane::graphfmt {
namespace {

constexpr uint64_t kChunkVertices = uint64_t{1} << 20;  // GridGraph's CHUNKSIZE
constexpr uint64_t kPartitionsAnyway = 32;              // of a grid with few edges
constexpr uint64_t kBlockEdgesMin = 256;                // on average, beyond those
constexpr uint64_t kReaderBytesMax = uint64_t{64} << 20;
constexpr uint64_t kGroupBytesMin = uint64_t{1} << 20;
constexpr uint64_t kGroupBytesMax = uint64_t{256} << 20;

// How the memory budget is spent. While edges come in, every thread may hold a
// full run and its sorted copy, and one run is filling; later, a group and a piece
// of a run. At least half is for that; the rest keeps runs in memory.
struct MemoryPlan {
  unsigned threads = 1;
  uint64_t reader_bytes = 0;
  uint64_t working_bytes = 0;
  uint64_t store_bytes = 0;
};

uint64_t working_bytes(const MemoryPlan& plan, size_t run_bytes, size_t block_count) {
  const uint64_t table_bytes = (block_count + 1) * sizeof(uint32_t);
  return plan.reader_bytes + grid_write_overhead_bytes(block_count) + run_bytes +
         plan.threads * (2 * run_bytes + table_bytes);
}

Outcome<MemoryPlan> plan_memory(const GridOptions& options, size_t run_bytes, size_t block_count) {
  const uint64_t budget = options.memory_budget_bytes;
  MemoryPlan plan;
  // Input that is sorted while it is read takes more.
  const bool sorts = options.reading.simple || !options.reading.renumber_map.empty();
  plan.reader_bytes = sorts ? budget / 4 : std::min(kReaderBytesMax, budget / 8);
  for (const unsigned wanted = usable_threads(options.threads); plan.threads < wanted;
       ++plan.threads) {
    MemoryPlan more = plan;
    ++more.threads;
    if (working_bytes(more, run_bytes, block_count) > budget / 2) break;
  }
  plan.working_bytes = working_bytes(plan, run_bytes, block_count);
  if (plan.working_bytes > budget) {
    const uint64_t needed = (plan.working_bytes - plan.reader_bytes) * 8 / 7;
    return make_error(EINVAL, "a memory budget of {}: too small, a grid of {} blocks needs {}M",
                      format_size(budget), block_count, (needed >> 20) + 1);
  }
  plan.store_bytes = budget - std::max(plan.working_bytes, budget / 2);
  return plan;
}

// Checks that the output may be overwritten, if the options ask for it.
Outcome<void> may_overwrite(const GridOptions& options) {
  return options.overwrite ? may_become_grid(options.output) : Outcome<void>();
}

class GridBuilder : public EdgeSink {
 public:
  GridBuilder(const GridOptions& options, const MemoryPlan& plan, size_t run_bytes, Staging staging)
      : options_(options),
        edge_bytes_(edge_size_bytes(options.weighted)),
        run_bytes_(run_bytes),
        staging_(std::move(staging)),
        plan_(plan) {
    set_layout_if_known();
  }

  // Errors name the output, and not where it is built.
  Outcome<GridSummary> run() {
    Outcome<GridSummary> built = build();
    return built ? built : staging_.with_final_name(built.error(), options_.output);
  }

 private:
  Outcome<GridSummary> build() {
    store_.emplace(staging_.path() + "/spill", run_bytes_, table_bytes(), plan_.store_bytes);
    EdgeListOptions reading = options_.reading;
    reading.path = options_.input;
    reading.format = options_.format;
    reading.weighted = options_.weighted;
    reading.weight_type = WeightType::kFloat32;
    reading.vertices = options_.vertices;
    reading.vertex_count_max = kVertexCountMax;
    reading.memory_budget_bytes = plan_.reader_bytes;
    reading.threads = plan_.threads;
    auto read = read_edges(reading, *this);
    if (!read) return read.error();
    if (filling_bytes_ > 0) close_run();
    if (auto settled = settle(); !settled) return settled.error();
    if (!layout_) {
      set_layout(read->vertex_count, read->edge_count);
      auto plan = plan_memory(options_, run_bytes_, layout_->block_count());
      if (!plan) return plan.error();
      plan_.threads = plan->threads;
    }
    if (auto sorted = sort_stored_runs(); !sorted) return sorted.error();
    return finish(*read);
  }

 public:
  Outcome<void> take(EdgeBatch& batch) override {
    const char* from = batch.records.data();
    for (size_t left = batch.records_bytes(); left > 0;) {
      if (!filling_) {
        if (auto taken = take_spare(filling_); !taken) return taken;
      }
      const size_t count = std::min(left, run_bytes_ - filling_bytes_);
      std::memcpy(filling_.data() + filling_bytes_, from, count);
      filling_bytes_ += count;
      from += count;
      left -= count;
      if (filling_bytes_ == run_bytes_) close_run();
    }
    return {};
  }

  // Sorts and stores the runs that are full.
  Outcome<void> settle() override {
    while (std::optional<FullRun> full = next_full()) {
      RunBuffers buffers;
      if (full->is_to_be_sorted) {
        if (auto taken = take_spare(buffers.edges); !taken) return taken;
        if (auto sorted = sort(full->edges, full->bytes, buffers); !sorted) return sorted;
        give_spare(std::move(full->edges));
      } else {
        buffers.edges = std::move(full->edges);
      }
      if (auto stored = store_->put(full->index, full->bytes, buffers); !stored) return stored;
      give_spare(std::move(buffers.edges));
    }
    return {};
  }

 private:
  struct FullRun {
    size_t index = 0;
    size_t bytes = 0;
    Buffer edges;
    bool is_to_be_sorted = false;  // the layout is known
  };

  void set_layout(uint64_t vertex_count, uint64_t edge_count) {
    vertex_count_ = vertex_count;
    layout_.emplace(vertex_count, choose_partitions(vertex_count, edge_count, options_.partitions));
    MutexLock lock(mu_);
    block_edge_counts_.assign(layout_->block_count(), 0);
  }

  // Sets the layout as soon as more edges cannot change it.
  void set_layout_if_known() {
    if (layout_ || options_.vertices == 0) return;
    const uint64_t edge_count = run_count_ * (run_bytes_ / edge_bytes_);
    const auto choose = [&](uint64_t edges) {
      return choose_partitions(options_.vertices, edges, options_.partitions);
    };
    if (choose(edge_count) == choose(UINT64_MAX)) set_layout(options_.vertices, edge_count);
  }

  // Without a vertex count the number of blocks may be unknown; then the table's
  // place in a spilled run is for the most blocks that there can be. Holes in the
  // spill file cost nothing.
  size_t table_bytes() const {
    const uint32_t most = options_.partitions != 0 ? options_.partitions : kPartitionsMax;
    const size_t block_count = layout_ ? layout_->block_count() : size_t{most} * most;
    return (block_count + 1) * sizeof(uint32_t);
  }

  void close_run() {
    const size_t run = run_count_++;
    set_layout_if_known();
    if (!layout_) unsorted_.push_back(run);
    MutexLock lock(mu_);
    full_.push_back(
        {run, std::exchange(filling_bytes_, 0), std::move(filling_), layout_.has_value()});
  }

  std::optional<FullRun> next_full() {
    MutexLock lock(mu_);
    if (full_.empty()) return std::nullopt;
    FullRun full = std::move(full_.back());
    full_.pop_back();
    return full;
  }

  Outcome<void> take_spare(Buffer& buffer) {
    {
      MutexLock lock(mu_);
      if (!spare_.empty()) {
        buffer = std::move(spare_.back());
        spare_.pop_back();
        return {};
      }
    }
    return buffer.reserve(run_bytes_);
  }

  void give_spare(Buffer buffer) {
    if (!buffer) return;
    MutexLock lock(mu_);
    spare_.push_back(std::move(buffer));
  }

  Outcome<void> sort(const Buffer& edges, size_t bytes, RunBuffers& sorted) {
    if (auto grown = sorted.table.reserve((layout_->block_count() + 1) * sizeof(uint32_t));
        !grown) {
      return grown;
    }
    const uint32_t count = static_cast<uint32_t>(bytes / edge_bytes_);
    uint32_t* const table = sorted.table.as<uint32_t>();
    if (options_.weighted) {
      sort_run(edges.as<WeightedEdge>(), count, *layout_, sorted.edges.as<WeightedEdge>(), table);
    } else {
      sort_run(edges.as<Edge>(), count, *layout_, sorted.edges.as<Edge>(), table);
    }
    MutexLock lock(mu_);
    for (size_t b = 0; b < block_edge_counts_.size(); ++b) {
      block_edge_counts_[b] += table[b + 1] - table[b];
    }
    return {};
  }

  // Those that came before the layout was known.
  Outcome<void> sort_stored_runs() {
    if (unsorted_.empty()) return {};
    Progress progress("sort", unsorted_.size(), false);
    return for_each_index<RunBuffers>(plan_.threads, unsorted_.size(),
                                      [&](size_t index, RunBuffers& sorted) -> Outcome<void> {
                                        const size_t run = unsorted_[index];
                                        Buffer edges;
                                        if (auto taken = take_spare(edges); !taken) return taken;
                                        auto bytes = store_->take(run, edges);
                                        if (!bytes) return bytes.error();
                                        if (!sorted.edges) {
                                          if (auto taken = take_spare(sorted.edges); !taken) {
                                            return taken;
                                          }
                                        }
                                        if (auto done = sort(edges, *bytes, sorted); !done) {
                                          return done;
                                        }
                                        give_spare(std::move(edges));
                                        progress.add(1);
                                        return store_->put(run, *bytes, sorted);
                                      });
  }

  Outcome<GridSummary> finish(const EdgeListSummary& read) {
    GridWriteJob job{.dir = staging_.path(),
                     .label = "write " + options_.output,
                     .weighted = options_.weighted,
                     .blocks = options_.blocks,
                     .vertex_count = vertex_count_,
                     .layout = *layout_,
                     .run_bytes = run_bytes_,
                     .threads = plan_.threads,
                     .group_bytes = group_bytes(read.edge_count * edge_bytes_),
                     .block_edge_counts = {}};
    {
      MutexLock lock(mu_);
      spare_.clear();
      job.block_edge_counts = std::move(block_edge_counts_);
    }
    auto written = write_grid(job, *store_);
    if (!written) return written.error();
    GridSummary summary{.vertex_count = vertex_count_,
                        .edge_count = read.edge_count,
                        .partitions = layout_->partitions(),
                        .output_bytes = *written,
                        .spilled_bytes = store_->spilled_bytes(),
                        .notes = read.notes};
    store_->remove_spill();
    // what has come meanwhile, too
    if (auto may = may_overwrite(options_); !may) return may.error();
    if (auto committed = staging_.commit(); !committed) return committed.error();
    return summary;
  }

  // Large if runs are read back from disk, because every group reads a piece of every run. Else
  // just large enough to be written well, and small enough to keep all threads busy.
  uint64_t group_bytes(uint64_t total_bytes) const {
    const uint64_t in_use = store_->memory_used_bytes() +
                            grid_write_overhead_bytes(layout_->block_count()) +
                            plan_.threads * (run_bytes_ + (uint64_t{4} << 20));
    const uint64_t free_bytes =
        options_.memory_budget_bytes - std::min(in_use, options_.memory_budget_bytes);
    const uint64_t most = store_->spilled_bytes() > 0 ? kGroupBytesMax : run_bytes_;
    const uint64_t balanced = std::max(total_bytes / (4 * plan_.threads), kGroupBytesMin);
    return std::max<uint64_t>(std::min({free_bytes / plan_.threads, most, balanced}), edge_bytes_);
  }

  // Constant after construction.
  const GridOptions& options_;
  const size_t edge_bytes_;
  const size_t run_bytes_;
  Staging staging_;
  std::optional<RunStore> store_;  // thread-safe
  // Changed before the first edge, or after the last.
  MemoryPlan plan_;
  // Set once: before the first edge, after the last, or by take(). Another thread reads it after it
  // got a run that is to be sorted.
  uint64_t vertex_count_ = 0;
  std::optional<GridLayout> layout_;
  // take() only: one thread at a time.
  Buffer filling_;
  size_t filling_bytes_ = 0;
  size_t run_count_ = 0;
  std::vector<size_t> unsorted_;
  Mutex mu_;
  std::vector<FullRun> full_ GUARDED_BY(mu_);
  std::vector<Buffer> spare_ GUARDED_BY(mu_);
  std::vector<uint64_t> block_edge_counts_ GUARDED_BY(mu_);
};

Outcome<void> check(const GridOptions& options) {
  if (options.partitions > kPartitionsMax) {
    return make_error(EINVAL, "{} partitions: at most {}", options.partitions, kPartitionsMax);
  }
  if (options.vertices > kVertexCountMax) {
    return make_error(EINVAL, "{} vertices: engines count at most {}", options.vertices,
                      kVertexCountMax);
  }
  return may_overwrite(options);
}

}  // namespace

Outcome<void> may_become_grid(const std::string& dir) {
  std::error_code ignored;
  namespace fs = std::filesystem;
  if (!fs::is_directory(dir, ignored) || fs::is_empty(dir, ignored)) return {};
  if (fs::exists(dir + "/meta", ignored) && fs::exists(dir + "/column_offset", ignored)) return {};
  return make_error(EEXIST, "{}: not a grid, so it is not overwritten", dir);
}

uint32_t choose_partitions(uint64_t vertex_count, uint64_t edge_count, uint32_t partitions) {
  if (partitions != 0) return partitions;
  const uint64_t wanted = std::clamp<uint64_t>(vertex_count / kChunkVertices, 1, kPartitionsMax);
  const auto affordable = static_cast<uint64_t>(std::sqrt(edge_count / kBlockEdgesMin));
  return static_cast<uint32_t>(std::min(wanted, std::max(kPartitionsAnyway, affordable)));
}

Outcome<GridSummary> build_grid(const GridOptions& options) {
  return or_no_memory([&]() -> Outcome<GridSummary> {
    if (auto checked = check(options); !checked) return checked.error();
    const size_t run_bytes =
        options.run_edges == 0 ? kRunBytes : options.run_edges * edge_size_bytes(options.weighted);
    const size_t partitions = choose_partitions(options.vertices, UINT64_MAX, options.partitions);
    auto plan = plan_memory(options, run_bytes, partitions * partitions);
    if (!plan) return plan.error();
    auto staging = Staging::create(options.output, Staging::Kind::kDirectory, options.overwrite);
    if (!staging) return staging.error();
    return GridBuilder(options, *plan, run_bytes, std::move(*staging)).run();
  });
}

}  // namespace graphlane::graphfmt
