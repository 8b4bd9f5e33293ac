// METIS: a line for each vertex with its neighbours, from 1.
//
//   % comment
//   4 3 001            VERTICES EDGES [FORMAT [WEIGHTS A VERTEX]]
//   2 7                vertex 1: neighbour 2, the edge's weight is 7
//   1 7 3 2            vertex 2
//   2 2                vertex 3
//                      vertex 4: none
//
// FORMAT's digits: sizes of vertices, weights of vertices, weights of edges. A line
// may be as long as a hub's list is, so the text is taken word by word, in order.
#include <algorithm>
#include <charconv>
#include <cstring>

#include "graphfmt/input/edge_source.h"
#include "graphfmt/input/weights.h"
#include "graphfmt/output/snap_text.h"
#include "graphfmt/sort/line.h"

namespace graphlane::graphfmt {
namespace {

constexpr size_t kMetisTextBytes = size_t{256} << 10;
constexpr size_t kMetisBatchEdges = size_t{64} << 10;
constexpr size_t kMetisWordMax = 64;

struct MetisItem {
  EdgeBatch batch;
  Buffer names;
  size_t names_bytes = 0;
};

uint64_t hash_of_edge(uint64_t lower, uint64_t upper) {
  uint64_t hash = (lower << 32 ^ upper) * 0x9e3779b97f4a7c15;
  hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
  return hash ^ hash >> 32;
}

class MetisReader {
 public:
  MetisReader(ByteSource& source, const EdgeListOptions& options, const EdgeTarget& target)
      : options_(options), target_(target), source_(source) {}

  ReadResult run() {
    if (auto grown = text_.reserve(kMetisTextBytes); !grown) return grown.error();
    if (source_.head().starts_with(kByteOrderMark)) source_.skip(kByteOrderMark.size());
    if (auto head = read_head(); !head) return head.error();
    Line<MetisItem> line;
    line.load = [this](MetisItem& item) { return load(item); };
    line.work = [this](MetisItem& item) {
      return target_.numbers != nullptr ? target_.numbers->prepare(item.batch) : Outcome<void>();
    };
    line.unload = [this](MetisItem& item) {
      return target_.numbers != nullptr
                 ? target_.numbers->take(item.batch)
                 : target_.names->take_names(item.names.data(), item.names_bytes,
                                             item.batch.edge_count);
    };
    line.settle = [this](MetisItem&) {
      return target_.numbers != nullptr ? target_.numbers->settle() : Outcome<void>();
    };
    if (auto done = line.run(usable_threads(options_.threads)); !done) return done.error();
    return finish();
  }

 private:
  enum class Next { kWord, kLineEnd, kEnd };

  Error metis_error(const std::string& reason) const {
    return make_error(EINVAL, "{}: line {}: {}", source_.name(), line_, reason);
  }

  Outcome<bool> fill() {
    at_ = 0;
    auto count = source_.read(text_.data(), kMetisTextBytes);
    if (!count) return count.error();
    end_ = *count;
    return end_ > 0;
  }

  // The next character without taking it; -1 at the end.
  Outcome<int> peek() {
    if (at_ == end_) {
      auto filled = fill();
      if (!filled) return filled.error();
      if (!*filled) return -1;
    }
    return static_cast<unsigned char>(text_.data()[at_]);
  }

  // The next word of the line, to word_. Comment lines are passed over where a line begins.
  Outcome<Next> next() {
    while (true) {
      auto c = peek();
      if (!c) return c.error();
      if (*c < 0) return Next::kEnd;
      if (line_begins_ && *c == '%') {
        if (auto skipped = skip_line(); !skipped) return skipped.error();
        continue;
      }
      if (*c == '\n') {
        ++at_;
        ++line_;
        line_begins_ = true;
        return Next::kLineEnd;
      }
      line_begins_ = false;
      if (*c != ' ' && *c != '\t' && *c != '\r') break;
      ++at_;
    }
    word_bytes_ = 0;
    while (true) {
      auto c = peek();
      if (!c) return c.error();
      if (*c < 0 || *c == ' ' || *c == '\t' || *c == '\r' || *c == '\n') return Next::kWord;
      if (word_bytes_ == kMetisWordMax) {
        return metis_error(quoted({word_, word_bytes_}) + " is not a number");
      }
      word_[word_bytes_++] = static_cast<char>(*c);
      ++at_;
    }
  }

  Outcome<void> skip_line() {
    while (true) {
      auto c = peek();
      if (!c) return c.error();
      if (*c < 0) return {};
      ++at_;
      if (*c != '\n') continue;
      ++line_;
      return {};
    }
  }

  std::string_view word() const { return {word_, word_bytes_}; }

  Outcome<uint64_t> number() const {
    uint64_t value = 0;
    const auto [behind, status] = std::from_chars(word_, word_ + word_bytes_, value);
    if (status == std::errc{} && behind == word_ + word_bytes_) return value;
    return metis_error(quoted(word()) + " is not a whole number");
  }

  Outcome<void> read_head() {
    std::vector<uint64_t> numbers;
    std::string format;
    while (true) {
      auto what = next();
      if (!what) return what.error();
      if (*what == Next::kEnd) return make_error(EINVAL, "{}: no edges in it", source_.name());
      if (*what == Next::kLineEnd) {
        if (numbers.empty()) continue;  // blank lines before the head
        break;
      }
      if (numbers.size() == 2) format = word();
      auto value = number();
      if (!value) return value.error();
      numbers.push_back(*value);
    }
    --line_;
    if (numbers.size() < 2 || numbers.size() > 4 || format.size() > 3 ||
        format.find_first_not_of("01") != std::string::npos) {
      return metis_error(
          "'VERTICES EDGES [FORMAT [WEIGHTS]]' is expected, as METIS has it (else --from says what "
          "it is)");
    }
    vertex_count_ = numbers[0];
    edge_count_ = numbers[1];
    format.insert(0, 3 - format.size(), '0');
    has_weights_ = format[2] == '1';
    skipped_words_ =
        (format[0] == '1' ? 1 : 0) + (format[1] == '1' ? (numbers.size() > 3 ? numbers[3] : 1) : 0);
    if (options_.weighted && !has_weights_) return metis_error("no weights of edges: leave -w out");
    if (vertex_count_ > options_.vertex_count_max && target_.numbers != nullptr) {
      return metis_error(fmt::format("{} vertices: this output has at most {}", vertex_count_,
                                     options_.vertex_count_max));
    }
    if (options_.vertices != 0 && options_.vertices < vertex_count_) {
      return metis_error(
          fmt::format("{} vertices are more than --vertices {}", vertex_count_, options_.vertices));
    }
    ++line_;
    return {};
  }

  Outcome<bool> load(MetisItem& item) {
    EdgeBatch& batch = item.batch;
    batch.weighted = options_.weighted;
    batch.weight_type = options_.weight_type;
    batch.edge_count = 0;
    item.names_bytes = 0;
    if (auto grown = batch.records.reserve(kMetisBatchEdges * batch.edge_bytes()); !grown) {
      return grown.error();
    }
    if (target_.names != nullptr) {
      if (auto grown = item.names.reserve(kMetisBatchEdges * (2 * kMetisWordMax + 16)); !grown) {
        return grown.error();
      }
    }
    while (batch.edge_count < kMetisBatchEdges && !ended_) {
      auto what = next();
      if (!what) return what.error();
      if (*what == Next::kWord) {
        if (auto taken = take_word(item); !taken) return taken.error();
        continue;
      }
      ended_ = *what == Next::kEnd;
      // A last line without its end is one all the same.
      if (ended_ && words_in_line_ == 0) break;
      if (wants_weight_) return metis_error("a neighbour without a weight");
      // Blank lines behind the last vertex say nothing.
      if (vertex_ < vertex_count_ || words_in_line_ > 0) ++vertex_;
      words_in_line_ = 0;
    }
    return batch.edge_count > 0;
  }

  Outcome<void> take_word(MetisItem& item) {
    if (vertex_ >= vertex_count_) {
      return metis_error(
          fmt::format("a line more than the {} vertices of the head", vertex_count_));
    }
    if (words_in_line_++ < skipped_words_) return {};
    if (wants_weight_) {
      wants_weight_ = false;
      return put_edge(item);
    }
    auto neighbour = number();
    if (!neighbour) return neighbour.error();
    if (*neighbour == 0 || *neighbour > vertex_count_) {
      return metis_error(
          fmt::format("{} is none of the vertices 1 to {}", quoted(word()), vertex_count_));
    }
    neighbour_ = *neighbour - 1;
    wants_weight_ = has_weights_;
    return has_weights_ ? Outcome<void>() : put_edge(item);
  }

  // word_ is the weight, if there are weights.
  Outcome<void> put_edge(MetisItem& item) {
    EdgeBatch& batch = item.batch;
    char weight[8] = {};
    if (options_.weighted) {
      const WeightFit fit = read_weight(word(), options_.weight_type, weight);
      if (fit == WeightFit::kNotNumber || (fit == WeightFit::kLost && !options_.round_weights)) {
        return metis_error(why_not_weight(word(), options_.weight_type));
      }
    }
    ++arc_count_;
    if (vertex_ < neighbour_) one_way_ += hash_of_edge(vertex_, neighbour_);
    if (vertex_ > neighbour_) one_way_ -= hash_of_edge(neighbour_, vertex_);
    const size_t weight_bytes = options_.weighted ? weight_size_bytes(options_.weight_type) : 0;
    if (target_.names != nullptr) {
      char* at = item.names.data() + item.names_bytes;
      for (const uint64_t vertex : {vertex_ + 1, neighbour_ + 1}) {
        char* const behind = std::to_chars(at + 4, at + 4 + kMetisWordMax, vertex).ptr;
        const auto length = static_cast<uint32_t>(behind - at - 4);
        std::memcpy(at, &length, sizeof length);
        at = behind;
      }
      std::memcpy(at, weight, weight_bytes);
      item.names_bytes = static_cast<size_t>(at + weight_bytes - item.names.data());
    } else {
      char* const at = batch.records.data() + batch.records_bytes();
      const Edge edge{static_cast<uint32_t>(vertex_), static_cast<uint32_t>(neighbour_)};
      std::memcpy(at, &edge, sizeof edge);
      std::memcpy(at + sizeof edge, weight, weight_bytes);
    }
    ++batch.edge_count;
    return {};
  }

  ReadResult finish() {
    if (vertex_ != vertex_count_) {
      return metis_error(fmt::format("lines of {} vertices, but the head says {}: is it complete?",
                                     vertex_, vertex_count_));
    }
    if (arc_count_ != 2 * edge_count_) {
      return metis_error(fmt::format(
          "{} neighbours, but the head says {} edges, each at both its ends: is it complete?",
          arc_count_, edge_count_));
    }
    if (arc_count_ == 0) return make_error(EINVAL, "{}: no edges in it", source_.name());
    if (one_way_ != 0 && !options_.as_given) {
      return make_error(EINVAL,
                        "{}: an edge is in the line of one of its ends only, and METIS has each in "
                        "both (--as-given reads the lines as they are)",
                        source_.name());
    }
    EdgeListSummary summary{.edge_count = arc_count_, .vertex_count = vertex_count_};
    if (has_weights_ && !options_.weighted) {
      summary.notes.push_back("METIS: the edges' weights are left out (-w keeps them)");
    }
    summary.notes.push_back(
        "METIS: every edge is there both ways; vertices count from 1 in it, and from 0 now");
    return summary;
  }

  const EdgeListOptions& options_;
  const EdgeTarget target_;
  // load() only, one thread at a time; before and behind it the caller.
  ByteSource& source_;
  Buffer text_;
  size_t at_ = 0, end_ = 0;
  uint64_t line_ = 1;
  bool line_begins_ = true;
  char word_[kMetisWordMax];
  size_t word_bytes_ = 0;
  uint64_t vertex_count_ = 0, edge_count_ = 0;
  bool has_weights_ = false;
  uint64_t skipped_words_ = 0;
  uint64_t vertex_ = 0;
  uint64_t words_in_line_ = 0;
  uint64_t neighbour_ = 0;
  bool wants_weight_ = false;
  bool ended_ = false;
  uint64_t arc_count_ = 0;
  uint64_t one_way_ = 0;  // hashes of edges at their lower end, less those at their upper end
};

}  // namespace

ReadResult read_metis(ByteSource& source, const EdgeListOptions& options,
                      const EdgeTarget& target) {
  return MetisReader(source, options, target).run();
}

}  // namespace graphlane::graphfmt
