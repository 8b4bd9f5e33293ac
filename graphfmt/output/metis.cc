#include "graphfmt/output/metis.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <cstring>

#include "graphfmt/input/edge_sort.h"
#include "graphfmt/sort/line.h"
#include "graphfmt/staging.h"
#include "iomgr/base/files/file_io.h"

namespace graphlane::graphfmt {
namespace {

constexpr size_t kMetisWriteBatch = size_t{64} << 10;  // edges
constexpr size_t kMetisOutBytes = size_t{1} << 20;
constexpr size_t kMetisNumbersMax = 64;  // two numbers and what is between them

// Sorts every edge both ways.
class BothOrdersSink : public EdgeSink {
 public:
  BothOrdersSink(EdgeSorter& by_source, EdgeSorter& by_target)
      : by_source_(by_source), by_target_(by_target) {}
  Outcome<void> take(EdgeBatch& batch) override {
    if (auto done = by_source_.add(batch.records.data(), batch.edge_count); !done) return done;
    return by_target_.add(batch.records.data(), batch.edge_count);
  }

 private:
  EdgeSorter& by_source_;
  EdgeSorter& by_target_;
};

// The edges of a sorter, one by one.
class SortedEdges {
 public:
  SortedEdges(EdgeSorter& sorter, size_t edge_bytes) : sorter_(sorter), edge_bytes_(edge_bytes) {}

  // False: there are no more.
  Outcome<bool> next(Float64Edge* edge) {
    if (at_ == count_) {
      if (auto grown = records_.reserve(kMetisWriteBatch * edge_bytes_); !grown) {
        return grown.error();
      }
      auto count = sorter_.next(records_.data(), kMetisWriteBatch);
      if (!count) return count.error();
      count_ = *count;
      at_ = 0;
      if (count_ == 0) return false;
    }
    std::memcpy(edge, records_.data() + at_++ * edge_bytes_, edge_bytes_);
    return true;
  }

 private:
  EdgeSorter& sorter_;
  const size_t edge_bytes_;
  Buffer records_;
  size_t at_ = 0, count_ = 0;
};

class MetisWriter {
 public:
  MetisWriter(const EdgeListOptions& list, const std::string& shown, int fd)
      : list_(list), shown_(shown), fd_(fd) {}

  Outcome<void> run(uint64_t vertex_count, EdgeSorter& by_source, EdgeSorter& by_target) {
    text_ = fmt::format("{} {}{}\n", vertex_count, by_source.edge_count() / 2,
                        list_.weighted ? " 001" : "");
    const size_t edge_bytes = edge_size_bytes(list_.weighted, list_.weight_type);
    SortedEdges edges(by_source, edge_bytes), mirrored(by_target, edge_bytes);
    Float64Edge edge{}, other{}, before{};
    for (bool is_first = true;; is_first = false, before = edge) {
      auto more = edges.next(&edge), others = mirrored.next(&other);
      if (!more) return more.error();
      if (!others) return others.error();
      if (!*more) break;
      if (list_.round_weights) {
        edge.weight = std::nearbyint(edge.weight);
        other.weight = std::nearbyint(other.weight);
      }
      if (auto fits = check(edge, other, is_first ? nullptr : &before); !fits) return fits;
      for (; vertex_ < edge.source; ++vertex_) text_ += '\n';
      if (!is_first && before.source == edge.source) text_ += ' ';
      append(uint64_t{edge.target} + 1);
      if (list_.weighted) {
        text_ += ' ';
        append(static_cast<uint64_t>(edge.weight));
      }
      if (auto done = flush(kMetisOutBytes); !done) return done;
    }
    for (; vertex_ < vertex_count; ++vertex_) {
      text_ += '\n';
      if (auto done = flush(kMetisOutBytes); !done) return done;
    }
    return flush(0);
  }

 private:
  // `mirrored` stands at the same place of the other order.
  Outcome<void> check(const Float64Edge& edge, const Float64Edge& mirrored,
                      const Float64Edge* before) const {
    if (edge.source == edge.target) {
      return refuse(edge, "is a self-loop, which METIS does not hold (--simple leaves them out)");
    }
    if (before != nullptr && before->source == edge.source && before->target == edge.target) {
      return refuse(edge,
                    "is there twice, and METIS holds an edge once (--simple keeps the first)");
    }
    if (edge.source != mirrored.target || edge.target != mirrored.source) {
      // The smaller one of the two is alone.
      const bool is_edge_alone =
          std::pair(edge.source, edge.target) < std::pair(mirrored.target, mirrored.source);
      return refuse(is_edge_alone ? edge : mirrored,
                    "has no edge back, and METIS holds undirected graphs (--undirected adds them)");
    }
    if (!list_.weighted) return {};
    if (!(edge.weight >= 1 && edge.weight < 0x1p63) || edge.weight != std::floor(edge.weight)) {
      return refuse(edge,
                    fmt::format("weighs {}, and METIS holds whole numbers from 1", edge.weight));
    }
    if (edge.weight == mirrored.weight) return {};
    return refuse(edge, fmt::format("weighs {}, and {} the other way: METIS holds one weight",
                                    edge.weight, mirrored.weight));
  }

  Error refuse(const Float64Edge& edge, std::string_view what) const {
    return make_error(EINVAL, "{}: the edge {} {} {}", shown_, edge.source, edge.target, what);
  }

  void append(uint64_t number) {
    char digits[kMetisNumbersMax];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
  }

  // Writes the text once it is so long.
  Outcome<void> flush(size_t bytes_min) {
    if (text_.size() < bytes_min) return {};
    const auto done = write_full(fd_, text_.data(), text_.size());
    if (!done) return os_error(done.error().code, shown_, "cannot write");
    text_.clear();
    return {};
  }

  const EdgeListOptions& list_;
  const std::string& shown_;
  const int fd_;
  std::string text_;
  uint64_t vertex_ = 0;  // whose line is being written
};

}  // namespace

Outcome<EdgeListSummary> write_metis(const EdgeListOptions& list, const EdgeListOutput& output) {
  return or_no_memory([&]() -> Outcome<EdgeListSummary> {
    const bool to_pipe = output.path == "-";
    Staging staging;
    if (!to_pipe) {
      auto created = Staging::create(output.path, Staging::Kind::kFile, output.overwrite);
      if (!created) return created.error();
      staging = std::move(*created);
    }
    EdgeListOptions reading = list;
    reading.memory_budget_bytes = list.memory_budget_bytes / 4;
    const uint64_t of_each = (list.memory_budget_bytes - reading.memory_budget_bytes) / 2;
    const size_t edge_bytes = edge_size_bytes(list.weighted, list.weight_type);
    EdgeSorter by_source(EdgeOrder::kSourceTarget, edge_bytes, of_each, list.spill_directory);
    EdgeSorter by_target(EdgeOrder::kTargetSource, edge_bytes, of_each, list.spill_directory);
    BothOrdersSink sink(by_source, by_target);
    auto read = read_edges(reading, sink);
    if (!read) return read.error();
    if (auto finished = by_source.finish(); !finished) return finished.error();
    if (auto finished = by_target.finish(); !finished) return finished.error();
    MetisWriter writer(list, list.path, to_pipe ? STDOUT_FILENO : staging.fd());
    auto written = writer.run(read->vertex_count, by_source, by_target);
    if (!written)
      return to_pipe ? written.error() : staging.with_final_name(written.error(), output.path);
    if (!to_pipe) {
      if (auto committed = staging.commit(); !committed) return committed.error();
    }
    read->notes.push_back("METIS: vertices count from 1 in it");
    return read;
  });
}

}  // namespace graphlane::graphfmt
