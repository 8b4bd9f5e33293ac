#include "graphfmt/codec/codec_reference.h"

#include <algorithm>
#include <array>
#include <bit>
#include <new>
#include <utility>

#include "graphfmt/codec/bit_stream.h"

namespace graphlane::graphfmt {
namespace {

constexpr unsigned kZetaMax = 8;
constexpr uint64_t kIntervalLengthMin = 4;
// So many lists are tried as the one that a list refers to: those that seem to spare most.
constexpr size_t kReferencesTried = 4;

// zeta_bits() without its divisions.
constexpr auto kZetaBits = [] {
  std::array<std::array<uint8_t, kStreamNumberBitsMax + 1>, kZetaMax + 1> bits{};
  for (unsigned k = 1; k <= kZetaMax; ++k) {
    for (unsigned width = 1; width <= kStreamNumberBitsMax; ++width) {
      bits[k][width] = static_cast<uint8_t>(zeta_bits(width, k));
    }
  }
  return bits;
}();

// The first byte of a group.
struct GroupHead {
  // first numbers count from the first number of the list before, else from the vertex
  bool base_is_list_before = false;
  // a list has equal neighbours: gaps count from 0, and there are no intervals
  bool repeats = false;
  unsigned k_first = 4;
  unsigned k_gap = 3;
};

// A number that counts from another, below or above it.
constexpr uint64_t fold_sign(int64_t difference) {
  return difference < 0 ? static_cast<uint64_t>(-2 * difference - 1)
                        : static_cast<uint64_t>(2 * difference);
}
constexpr int64_t unfold_sign(uint64_t number) {
  return (number & 1) != 0 ? -static_cast<int64_t>(number / 2) - 1
                           : static_cast<int64_t>(number / 2);
}

struct Interval {
  uint32_t first;
  uint32_t length;
};

// A list as it is written.
struct ListForm {
  size_t reference = 0;  // to so many lists before; 0: none
  // of the list that is referred to: copied, skipped, copied …; the last one is not there
  std::vector<uint32_t> runs;
  bool has_rest = false;  // neighbours that are not copied
  std::vector<Interval> intervals;
  std::vector<uint32_t> residuals;
  uint64_t bits = 0;
};

// Bits of a list's first numbers and gaps, by their width.
struct WidthCounts {
  std::array<uint64_t, kStreamNumberBitsMax + 1> first_from[2] = {};  // by base_is_list_before
  std::array<uint64_t, kStreamNumberBitsMax + 1> gaps = {};

  static std::pair<uint64_t, unsigned> cheapest(
      const std::array<uint64_t, kStreamNumberBitsMax + 1>& counts) {
    std::pair<uint64_t, unsigned> best{~uint64_t{0}, 1};
    for (unsigned k = 1; k <= kZetaMax; ++k) {
      uint64_t bits = 0;
      for (unsigned width = 1; width < counts.size(); ++width) {
        bits += counts[width] * kZetaBits[k][width];
      }
      best = std::min(best, {bits, k});
    }
    return best;
  }
};

// Estimates how many bits each list of a group shares with each list before it.
//
// It goes through the lists in steps. A step is a range of numbers that has some hundred of each
// list, so that its table is small.
class CommonNumbers {
 public:
  explicit CommonNumbers(std::span<const VertexList> lists) : lists_(lists) {
    for (size_t i = 0; i < lists.size(); ++i) std::fill_n(bits_[i].begin(), i, 0);
    if (lists.size() < 2) return;
    std::array<size_t, kReferenceGroupVertices> at{};
    while (step(at)) {
    }
  }
  // About how many bits the numbers of list i take that list j < i has, too.
  uint64_t bits(size_t i, size_t j) const { return bits_[i][j]; }

 private:
  static constexpr size_t kStepNumbers = 512;  // of each list
  struct Slot {
    uint32_t number;
    uint32_t lists;  // a bit for each list that has it; 0: free
  };

  // From at[i] on of each list. False: nothing is left.
  bool step(std::array<size_t, kReferenceGroupVertices>& at) {
    uint32_t last = UINT32_MAX;
    for (size_t i = 0; i < lists_.size(); ++i) {
      if (lists_[i].list.size() - at[i] > kStepNumbers) {
        last = std::min(last, lists_[i].list[at[i] + kStepNumbers - 1]);
      }
    }
    std::array<size_t, kReferenceGroupVertices> end{};
    size_t count = 0, lists = 0;
    for (size_t i = 0; i < lists_.size(); ++i) {
      const auto from = lists_[i].list.begin() + static_cast<ptrdiff_t>(at[i]);
      end[i] =
          at[i] + static_cast<size_t>(std::upper_bound(from, lists_[i].list.end(), last) - from);
      count += end[i] - at[i];
      lists += end[i] > at[i];
    }
    if (count == 0) return false;
    if (lists > 1) {
      slots_.assign(std::bit_ceil(2 * count), {});
      for (size_t i = 0; i < lists_.size(); ++i) add(i, at[i], end[i]);
    }
    at = end;
    return true;
  }

  void add(size_t i, size_t begin, size_t end) {
    const std::span<const uint32_t> list = lists_[i].list;
    for (size_t at = begin; at < end; ++at) {
      Slot& slot = find(list[at]);
      slot.number = list[at];
      const uint32_t before = std::exchange(slot.lists, slot.lists | uint32_t{1} << i);
      const uint64_t gap = at == 0 ? 64 : list[at] - list[at - 1];
      const unsigned bits = kZetaBits[3][zeta_width(gap)];
      for (uint32_t left = before & ~(uint32_t{1} << i); left != 0; left &= left - 1) {
        bits_[i][static_cast<size_t>(std::countr_zero(left))] += bits;
      }
    }
  }
  Slot& find(uint32_t number) {
    const size_t mask = slots_.size() - 1;
    size_t place = (number * 0x9e3779b97f4a7c15u >> 32) & mask;
    while (slots_[place].lists != 0 && slots_[place].number != number) place = (place + 1) & mask;
    return slots_[place];
  }

  const std::span<const VertexList> lists_;
  std::array<std::array<uint64_t, kReferenceGroupVertices>, kReferenceGroupVertices> bits_;
  static thread_local std::vector<Slot> slots_;
};

thread_local std::vector<CommonNumbers::Slot> CommonNumbers::slots_;

class GroupEncoder {
 public:
  explicit GroupEncoder(std::span<const VertexList> lists) : lists_(lists), common_(lists) {
    for (const VertexList& one : lists) {
      head_.repeats |= std::adjacent_find(one.list.begin(), one.list.end()) != one.list.end();
    }
    best_.resize(lists.size());
  }

  size_t encode(uint8_t* bytes) {
    // The codes of numbers depend on the references, and the cheapest references on the codes.
    for (size_t i = 0; i < lists_.size(); ++i) choose_form(i);
    choose_codes();
    for (size_t i = 0; i < lists_.size(); ++i) choose_again(i);
    choose_codes();
    BitWriter out(bytes);
    out.bits(head_.base_is_list_before, 1);
    out.bits(head_.repeats, 1);
    out.bits(head_.k_first - 1, 3);
    out.bits(head_.k_gap - 1, 3);
    for (size_t i = 0; i < lists_.size(); ++i) write(i, out);
    return out.finish();
  }

 private:
  uint32_t base(size_t i, bool is_list_before) const {
    return is_list_before && i > 0 ? lists_[i - 1].list[0] : lists_[i].vertex;
  }

  // Chooses the cheapest form: without a reference, or with one of those that seem to spare most. It
  // stops when two of these are no cheaper.
  void choose_form(size_t i) {
    ListForm& best = best_[i];
    best.bits = ~uint64_t{0};
    (void)make_form(i, 0, best.bits);
    std::swap(best, form_);
    uint32_t tried = 0;  // a bit for each
    unsigned failures = 0;
    for (size_t n = 0; n < kReferencesTried; ++n) {
      size_t most = i;
      uint64_t spared = 0;
      for (size_t j = 0; j < i; ++j) {
        const uint64_t bits = common_.bits(i, j);
        // >=: the number of a near list takes fewer bits
        if (bits >= spared && (tried >> j & 1) == 0) most = j, spared = bits;
      }
      // A reference costs at least so much.
      if (most == i || spared <= gamma_bits(i - most) + 1) return;
      tried |= uint32_t{1} << most;
      if (make_form(i, i - most, best.bits)) {
        std::swap(best, form_);
      } else if (++failures == 2) {
        return;
      }
    }
  }
  // Keeps the reference, or drops it if the list is shorter without.
  void choose_again(size_t i) {
    const size_t reference = best_[i].reference;
    (void)make_form(i, reference, ~uint64_t{0});
    std::swap(best_[i], form_);
    if (reference > 0 && make_form(i, 0, best_[i].bits)) std::swap(best_[i], form_);
  }

  // Makes form_. False: it is not of fewer than so many bits.
  bool make_form(size_t i, size_t reference, uint64_t bits_max) {
    ListForm& form = form_;
    form.reference = reference;
    form.runs.clear();
    form.bits = i == 0 ? 0 : gamma_bits(reference);
    std::span<const uint32_t> rest = lists_[i].list;
    if (reference > 0) {
      if (!copy_from(lists_[i - reference].list, rest) || (form.bits += runs_bits()) >= bits_max) {
        return false;
      }
      rest = rest_;
    }
    form.intervals.clear();
    form.residuals.clear();
    form.has_rest = !rest.empty();
    if (form.has_rest) add_rest(rest, base(i, head_.base_is_list_before));
    return form.bits < bits_max;
  }

  // Which runs of the list are copied; rest_ is what is not. False: nothing is.
  bool copy_from(std::span<const uint32_t> from, std::span<const uint32_t> list) {
    rest_.clear();
    const uint32_t* const begin = from.data();
    const uint32_t* const end = begin + from.size();
    const uint32_t* at = begin;         // behind the last number that is copied
    const uint32_t* run_begin = begin;  // of the numbers that are copied together with it
    for (const uint32_t neighbour : list) {
      const uint32_t* const found = first_not_below(at, end, neighbour);
      if (found == end || *found != neighbour) {
        rest_.push_back(neighbour);
        continue;
      }
      if (found != at) {
        form_.runs.push_back(static_cast<uint32_t>(at - run_begin));
        form_.runs.push_back(static_cast<uint32_t>(found - at));
        run_begin = found;
      }
      at = found + 1;
    }
    if (at != end) form_.runs.push_back(static_cast<uint32_t>(at - run_begin));
    return rest_.size() < list.size();
  }
  // As lower_bound(), with steps that double: short lists refer to long ones, and the next is near.
  static const uint32_t* first_not_below(const uint32_t* at, const uint32_t* end, uint32_t number) {
    if (at == end || *at >= number) return at;
    size_t step = 1;
    while (step < static_cast<size_t>(end - at) && at[step] < number) {
      at += step;
      step *= 2;
    }
    return std::lower_bound(at + 1, at + std::min(step, static_cast<size_t>(end - at)), number);
  }
  uint64_t runs_bits() const {
    uint64_t bits = gamma_bits(form_.runs.size());
    for (size_t r = 0; r < form_.runs.size(); ++r) {
      bits += gamma_bits(form_.runs[r] - (r > 0 ? 1 : 0));
    }
    return bits;
  }

  void add_rest(std::span<const uint32_t> rest, uint32_t base) {
    ListForm& form = form_;
    const auto first_bits = [&](uint32_t number) {
      return kZetaBits[head_.k_first][zeta_width(fold_sign(int64_t{number} - int64_t{base}))];
    };
    if (!head_.repeats) {
      split_off_intervals(rest);
    } else {
      form.residuals.assign(rest.begin(), rest.end());
    }
    if (!head_.repeats) form.bits += gamma_bits(form.intervals.size());
    for (size_t j = 0; j < form.intervals.size(); ++j) {
      form.bits += j == 0 ? first_bits(form.intervals[0].first) : gamma_bits(gap_before(j));
      form.bits += gamma_bits(form.intervals[j].length - kIntervalLengthMin);
    }
    if (!form.residuals.empty()) form.bits += first_bits(form.residuals[0]);
    const auto& of_gaps = kZetaBits[head_.k_gap];
    for (size_t j = 1; j < form.residuals.size(); ++j) {
      form.bits += of_gaps[zeta_width(gap(form, j))];
    }
  }
  void split_off_intervals(std::span<const uint32_t> rest) {
    for (size_t at = 0, end = 0; at < rest.size(); at = end) {
      for (end = at + 1; end < rest.size() && rest[end] == rest[end - 1] + 1; ++end) {
      }
      if (end - at >= kIntervalLengthMin) {
        form_.intervals.push_back({rest[at], static_cast<uint32_t>(end - at)});
      } else {
        form_.residuals.insert(form_.residuals.end(), rest.begin() + static_cast<ptrdiff_t>(at),
                               rest.begin() + static_cast<ptrdiff_t>(end));
      }
    }
  }
  // Between an interval and the one before there is at least one number.
  uint64_t gap_before(size_t j) const { return gap_before(form_, j); }
  static uint64_t gap_before(const ListForm& form, size_t j) {
    return form.intervals[j].first - form.intervals[j - 1].first - form.intervals[j - 1].length - 1;
  }
  uint64_t gap(const ListForm& form, size_t j) const {
    return form.residuals[j] - form.residuals[j - 1] - (head_.repeats ? 0 : 1);
  }

  void choose_codes() {
    WidthCounts counts;
    for (size_t i = 0; i < lists_.size(); ++i) {
      const ListForm& form = best_[i];
      for (const bool before : {false, true}) {
        const auto add = [&](uint32_t number) {
          ++counts.first_from[before]
                             [zeta_width(fold_sign(int64_t{number} - int64_t{base(i, before)}))];
        };
        if (!form.intervals.empty()) add(form.intervals[0].first);
        if (!form.residuals.empty()) add(form.residuals[0]);
      }
      for (size_t j = 1; j < form.residuals.size(); ++j) ++counts.gaps[zeta_width(gap(form, j))];
    }
    const auto from_vertex = WidthCounts::cheapest(counts.first_from[false]);
    const auto from_list = WidthCounts::cheapest(counts.first_from[true]);
    head_.base_is_list_before = from_list < from_vertex;
    head_.k_first = std::min(from_list, from_vertex).second;
    head_.k_gap = WidthCounts::cheapest(counts.gaps).second;
  }

  void write(size_t i, BitWriter& out) const {
    const ListForm& form = best_[i];
    out.gamma(lists_[i].list.size() - 1);
    if (i > 0) out.gamma(form.reference);
    if (form.reference > 0) {
      out.gamma(form.runs.size());
      for (size_t r = 0; r < form.runs.size(); ++r) out.gamma(form.runs[r] - (r > 0 ? 1 : 0));
    }
    if (!form.has_rest) return;
    const auto write_first = [&](uint32_t number) {
      out.zeta(fold_sign(int64_t{number} - int64_t{base(i, head_.base_is_list_before)}),
               head_.k_first);
    };
    if (!head_.repeats) out.gamma(form.intervals.size());
    for (size_t j = 0; j < form.intervals.size(); ++j) {
      j == 0 ? write_first(form.intervals[0].first) : out.gamma(gap_before(form, j));
      out.gamma(form.intervals[j].length - kIntervalLengthMin);
    }
    if (!form.residuals.empty()) write_first(form.residuals[0]);
    for (size_t j = 1; j < form.residuals.size(); ++j) out.zeta(gap(form, j), head_.k_gap);
  }

  const std::span<const VertexList> lists_;
  const CommonNumbers common_;
  GroupHead head_;
  std::vector<ListForm> best_;
  ListForm form_;
  std::vector<uint32_t> rest_;
};

// Scratch of a thread.
struct DecodedRest {
  std::vector<uint32_t> copied;
  std::vector<Interval> intervals;
  std::vector<uint32_t> residuals;
};

class GroupDecoder {
 public:
  GroupDecoder(std::span<const uint8_t> bytes, uint64_t limit, uint64_t arcs_max,
               std::vector<uint32_t>& starts, std::vector<uint32_t>& neighbours)
      : in_(bytes),
        limit_(limit),
        arcs_left_(arcs_max),
        starts_(starts),
        neighbours_(neighbours),
        first_list_(starts.size() - 1) {
    head_.base_is_list_before = in_.bits(1) != 0;
    head_.repeats = in_.bits(1) != 0;
    head_.k_first = static_cast<unsigned>(in_.bits(3)) + 1;
    head_.k_gap = static_cast<unsigned>(in_.bits(3)) + 1;
  }

  // False: damaged.
  bool decode(std::span<const uint32_t> vertices) {
    for (size_t i = 0; i < vertices.size(); ++i) {
      if (!decode_list(i, vertices[i])) return false;
    }
    return in_.is_at_end();
  }

 private:
  bool decode_list(size_t i, uint32_t vertex) {
    const uint64_t degree = in_.gamma() + 1;
    const uint64_t reference = i == 0 ? 0 : in_.gamma();
    if (in_.is_bad() || degree > arcs_left_ || reference > i) return false;
    arcs_left_ -= degree;
    uint64_t base = vertex;
    if (head_.base_is_list_before && i > 0) base = neighbours_[starts_[starts_.size() - 2]];
    scratch_.copied.clear();
    scratch_.intervals.clear();
    if (reference > 0 && !copy(i - reference, degree)) return false;
    uint64_t rest = degree - scratch_.copied.size();
    if (rest > 0 && !head_.repeats && !read_intervals(base, rest)) return false;
    // A number has at least a bit, so that damage asks for no memory that nothing fills.
    if (rest > in_.bits_left()) return false;
    const uint64_t begin = starts_.back(), end = begin + degree;
    if (end > UINT32_MAX) throw std::bad_alloc();
    if (neighbours_.size() < end) neighbours_.resize(std::max<size_t>(end, neighbours_.size() * 2));
    uint32_t* const to = neighbours_.data() + begin;
    starts_.push_back(static_cast<uint32_t>(end));
    if (scratch_.copied.empty() && scratch_.intervals.empty()) {
      return read_residuals(base, {to, rest});
    }
    scratch_.residuals.resize(rest);
    if (!read_residuals(base, scratch_.residuals)) return false;
    merge(to);
    return true;
  }

  bool copy(size_t list, uint64_t degree) {
    const uint32_t* from = neighbours_.data() + starts_[first_list_ + list];
    const uint32_t* const end = neighbours_.data() + starts_[first_list_ + list + 1];
    const uint64_t runs = in_.gamma();
    bool copies = true;
    for (uint64_t r = 0; r < runs; ++r, copies = !copies) {
      const uint64_t length = in_.gamma() + (r > 0 ? 1 : 0);
      // The last run, which is not written, is not empty.
      if (in_.is_bad() || length >= static_cast<uint64_t>(end - from)) return false;
      if (copies) scratch_.copied.insert(scratch_.copied.end(), from, from + length);
      from += length;
    }
    if (copies) scratch_.copied.insert(scratch_.copied.end(), from, end);
    return !scratch_.copied.empty() && scratch_.copied.size() <= degree;
  }

  // Takes their numbers off `rest`.
  bool read_intervals(uint64_t base, uint64_t& rest) {
    const uint64_t count = in_.gamma();
    uint64_t end = 0;
    for (uint64_t j = 0; j < count; ++j) {
      int64_t first;
      if (j == 0) {
        first = static_cast<int64_t>(base) + unfold_sign(in_.zeta(head_.k_first));
      } else {
        first = static_cast<int64_t>(end + 1 + in_.gamma());
      }
      const uint64_t length = in_.gamma() + kIntervalLengthMin;
      if (in_.is_bad() || first < 0 || length > rest) return false;
      end = static_cast<uint64_t>(first) + length;
      if (end > limit_) return false;
      rest -= length;
      scratch_.intervals.push_back({static_cast<uint32_t>(first), static_cast<uint32_t>(length)});
    }
    return !in_.is_bad();
  }

  bool read_residuals(uint64_t base, std::span<uint32_t> to) {
    if (to.empty()) return !in_.is_bad();
    const int64_t first = static_cast<int64_t>(base) + unfold_sign(in_.zeta(head_.k_first));
    if (first < 0) return false;
    auto last = static_cast<uint64_t>(first);
    to[0] = static_cast<uint32_t>(last);
    const uint64_t step = head_.repeats ? 0 : 1;
    const unsigned k = head_.k_gap;
    for (size_t j = 1; j < to.size(); ++j) {
      last += in_.zeta(k) + step;
      to[j] = static_cast<uint32_t>(last);
      if (last >= limit_) return false;
    }
    return last < limit_ && !in_.is_bad();
  }

  // Copied numbers, intervals and residuals, each ascending, to one list.
  void merge(uint32_t* to) const {
    const uint32_t* copied = scratch_.copied.data();
    const uint32_t* const copied_end = copied + scratch_.copied.size();
    const uint32_t* residual = scratch_.residuals.data();
    const uint32_t* const residual_end = residual + scratch_.residuals.size();
    const auto both_below = [&](uint64_t limit) {
      while (copied != copied_end && residual != residual_end &&
             std::min(*copied, *residual) < limit) {
        *to++ = *copied < *residual ? *copied++ : *residual++;
      }
      while (copied != copied_end && *copied < limit) *to++ = *copied++;
      while (residual != residual_end && *residual < limit) *to++ = *residual++;
    };
    // No sound list has a number within an interval elsewhere, too; of a damaged one they are put
    // behind it.
    for (const Interval& interval : scratch_.intervals) {
      both_below(interval.first);
      for (uint32_t n = 0; n < interval.length; ++n) *to++ = interval.first + n;
    }
    both_below(~uint64_t{0});
  }

  BitReader in_;
  const uint64_t limit_;
  uint64_t arcs_left_;
  std::vector<uint32_t>& starts_;
  std::vector<uint32_t>& neighbours_;
  const size_t first_list_;
  GroupHead head_;
  static thread_local DecodedRest scratch_;
};

thread_local DecodedRest GroupDecoder::scratch_;

class ReferenceCodec final : public ListCodec {
 public:
  CodecKind kind() const override { return CodecKind::kReference; }
  uint32_t group_vertices() const override { return kReferenceGroupVertices; }
  // A number has at most 48 bits: of 34 bits, by the zeta code with k = 3. An interval has 132
  // instead of four numbers. A byte and three gamma codes of 67 bits stand before them.
  size_t bytes_max(size_t count) const override { return 27 + 6 * count; }

  size_t encode_group(std::span<const VertexList> lists, uint8_t* bytes) const override {
    return GroupEncoder(lists).encode(bytes);
  }
  Result<void> decode_group(std::span<const uint8_t> bytes, std::span<const uint32_t> vertices,
                            uint64_t limit, uint64_t arcs_max, std::vector<uint32_t>& starts,
                            std::vector<uint32_t>& neighbours) const override {
    if (!GroupDecoder(bytes, limit, arcs_max, starts, neighbours).decode(vertices)) {
      return Errno{EIO};
    }
    return {};
  }

  size_t encode(std::span<const uint32_t> list, uint8_t* bytes) const override {
    if (list.empty()) return 0;
    const VertexList one{0, list};
    return encode_group({&one, 1}, bytes);
  }
  Result<size_t> count(std::span<const uint8_t> bytes) const override {
    if (bytes.empty()) return size_t{0};
    BitReader in(bytes);
    in.bits(8);
    const uint64_t degree = in.gamma() + 1;
    if (in.is_bad()) return Errno{EIO};
    return static_cast<size_t>(degree);
  }
  Result<void> decode(std::span<const uint8_t> bytes, std::span<uint32_t> list, uint64_t limit,
                      size_t) const override {
    if (bytes.empty() != list.empty()) return Errno{EIO};
    if (list.empty()) return {};
    const uint32_t vertex = 0;
    std::vector<uint32_t> starts(1), neighbours;
    if (auto done = decode_group(bytes, {&vertex, 1}, limit, list.size(), starts, neighbours);
        !done) {
      return done;
    }
    if (starts.back() != list.size()) return Errno{EIO};
    std::copy_n(neighbours.begin(), list.size(), list.begin());
    return {};
  }
};

}  // namespace

const ListCodec& reference_codec() {
  static const ReferenceCodec codec;
  return codec;
}

}  // namespace graphlane::graphfmt
