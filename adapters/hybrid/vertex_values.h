// VertexValues: a value for each vertex, by interval. All of them are in memory; or, where a budget
// is smaller, they are in a file beside the graph, and as many intervals as fit are in memory
// (HUS-Graph §3.4, §3.6).
//
//   hold(i) ─▶ the values of interval i, in memory until the hold ends; changed ones go back to the file when others
//              need their place
//
// ValueSpace decides for all values of a program. The file has no name: it goes with the process.
// Past the page cache where the filesystem can do that.
//
// Threads: one; what is held may be read and changed by all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "adapters/graph/vertex_array.h"
#include "graphfmt/buffer.h"
#include "graphfmt/dual/dual_geometry.h"
#include "iomgr/base/error.h"
#include "iomgr/base/fd.h"

namespace graphlane::hybrid {

class ValueSpace {
 public:
  // `directory`: where the file goes. `memory_bytes`: none: half of what is available. `copies`: of
  // all values that a program makes, one is its own.
  ValueSpace(const graphfmt::DualGeometry& geometry, std::string directory,
             std::optional<uint64_t> memory_bytes, uint32_t copies = 1)
      : geometry_(geometry),
        directory_(std::move(directory)),
        memory_bytes_(memory_bytes),
        copies_(copies) {}

  // Before the first values are made: how many bytes a vertex has in all of them together. EINVAL:
  // not even the two intervals of a block fit.
  Outcome<void> begin(uint64_t bytes_a_vertex);

  const graphfmt::DualGeometry& geometry() const { return geometry_; }
  const std::string& directory() const { return directory_; }
  bool is_in_memory() const { return is_in_memory_; }
  // Intervals of each array that are in memory at the same time.
  uint32_t held_max() const { return held_max_; }

  // Bytes of the file that were read and written.
  uint64_t read_bytes = 0;
  uint64_t written_bytes = 0;

 private:
  const graphfmt::DualGeometry geometry_;
  const std::string directory_;
  const std::optional<uint64_t> memory_bytes_;
  const uint32_t copies_;
  bool is_in_memory_ = true;
  uint32_t held_max_ = 0;
};

// The bytes of one array in a file.
class ValueFile {
 public:
  static Outcome<std::unique_ptr<ValueFile>> create(ValueSpace& space, size_t value_bytes);

  // Undefined if nothing was written, or unless it `reads`. At most held_max() are held.
  Outcome<char*> hold(uint32_t interval, bool reads);
  void release(uint32_t interval, bool changed);
  char* held(uint32_t interval) { return places_[where_[interval]].bytes.data(); }

 private:
  static constexpr uint32_t kNowhere = ~uint32_t{0};
  struct Place {
    graphfmt::Buffer bytes;
    uint32_t interval = kNowhere;
    uint32_t holds = 0;
    bool changed = false;
    uint64_t used_at = 0;
  };

  ValueFile(ValueSpace& space, uint64_t interval_bytes)
      : space_(space),
        interval_bytes_(interval_bytes),
        where_(space.geometry().partitions(), kNowhere),
        is_written_(space.geometry().partitions()) {}
  Outcome<void> open();
  Outcome<void> clear(Place& place);

  ValueSpace& space_;
  const uint64_t interval_bytes_;
  Fd fd_;
  std::vector<Place> places_;
  std::vector<uint32_t> where_;  // of each interval the place
  std::vector<bool> is_written_;
  uint64_t uses_ = 0;
};

// What a hold is for: the values stay as they are; some may change; all get new ones, whatever they
// were.
enum class ValueAccess { kRead, kChange, kReplace };

template <class T>
class VertexValues;

// The values of an interval while this lives.
template <class T>
class HeldValues {
 public:
  HeldValues(VertexValues<T>& of, uint32_t interval, bool changes, std::span<T> values)
      : of_(&of), interval_(interval), changes_(changes), values_(values) {}
  HeldValues(HeldValues&& other) noexcept
      : of_(std::exchange(other.of_, nullptr)),
        interval_(other.interval_),
        changes_(other.changes_),
        values_(other.values_) {}
  HeldValues& operator=(HeldValues&&) = delete;
  ~HeldValues() {
    if (of_ != nullptr) of_->release(interval_, changes_);
  }

  std::span<T> values() const { return values_; }
  T& operator[](size_t vertex) const { return values_[vertex]; }  // from the interval's begin on
  size_t size() const { return values_.size(); }

 private:
  VertexValues<T>* of_;
  uint32_t interval_;
  bool changes_;
  std::span<T> values_;
};

template <class T>
class VertexValues {
 public:
  // After ValueSpace::begin(). Throws bad_alloc.
  static Outcome<VertexValues> create(ValueSpace& space) {
    VertexValues values(space);
    if (space.is_in_memory()) {
      values.all_.resize(space.geometry().vertex_count());
      return values;
    }
    auto file = ValueFile::create(space, sizeof(T));
    if (!file) return file.error();
    values.file_ = std::move(*file);
    return values;
  }

  const graphfmt::DualGeometry& geometry() const { return space_->geometry(); }
  bool is_in_memory() const { return file_ == nullptr; }

  Outcome<HeldValues<T>> hold(uint32_t interval, ValueAccess access) {
    const size_t count = geometry().size(interval);
    const bool changes = access != ValueAccess::kRead;
    if (file_ == nullptr) {
      return HeldValues<T>(*this, interval, changes,
                           {all_.data() + geometry().first(interval), count});
    }
    const auto bytes = file_->hold(interval, access != ValueAccess::kReplace);
    if (!bytes) return bytes.error();
    return HeldValues<T>(*this, interval, changes, {reinterpret_cast<T*>(*bytes), count});
  }
  Outcome<HeldValues<T>> read(uint32_t interval) { return hold(interval, ValueAccess::kRead); }
  Outcome<HeldValues<T>> change(uint32_t interval) { return hold(interval, ValueAccess::kChange); }
  // The first value of an interval that is held; in memory, of any.
  T* held(uint32_t interval) {
    return file_ == nullptr ? all_.data() + geometry().first(interval)
                            : reinterpret_cast<T*>(file_->held(interval));
  }

  Outcome<void> set(uint64_t vertex, T value) {
    const uint32_t interval = geometry().interval_of(vertex);
    auto values = change(interval);
    if (!values) return values.error();
    (*values)[vertex - geometry().first(interval)] = value;
    return {};
  }

 private:
  friend class HeldValues<T>;
  explicit VertexValues(ValueSpace& space) : space_(&space) {}

  void release(uint32_t interval, bool changed) {
    if (file_ != nullptr) file_->release(interval, changed);
  }

  ValueSpace* space_;
  VertexArray<T> all_;
  std::unique_ptr<ValueFile> file_;
};

// Values of these types for one program, not set. EINVAL: their budget is too small.
template <class... T>
Outcome<std::tuple<VertexValues<T>...>> make_values(ValueSpace& space) {
  if (auto begun = space.begin((sizeof(T) + ...)); !begun) return begun.error();
  auto made = std::tuple(VertexValues<T>::create(space)...);
  return std::apply(
      [](auto&... each) -> Outcome<std::tuple<VertexValues<T>...>> {
        std::optional<Error> failed;
        ((failed = !failed && !each ? each.error() : failed), ...);
        if (failed) return *failed;
        return std::tuple(std::move(*each)...);
      },
      made);
}

template <class T>
struct ValueUse {
  VertexValues<T>& values;
  ValueAccess access;
};
template <class T>
ValueUse<T> reading(VertexValues<T>& values) {
  return {values, ValueAccess::kRead};
}
template <class T>
ValueUse<T> changing(VertexValues<T>& values) {
  return {values, ValueAccess::kChange};
}
template <class T>
ValueUse<T> replacing(VertexValues<T>& values) {
  return {values, ValueAccess::kReplace};
}

// each(first vertex, values of the interval…) for all intervals, ascending.
template <class Each, class... T>
Outcome<void> for_each_interval(const Each& each, ValueUse<T>... uses) {
  const graphfmt::DualGeometry& geometry = std::get<0>(std::tie(uses...)).values.geometry();
  for (uint32_t i = 0; i < geometry.partitions() && geometry.size(i) > 0; ++i) {
    std::tuple held(uses.values.hold(i, uses.access)...);
    const auto call = [&](auto&... one) -> Outcome<void> {
      std::optional<Error> failed;
      ((failed = !failed && !one ? one.error() : failed), ...);
      if (failed) return *failed;
      each(geometry.first(i), one->values()...);
      return {};
    };
    if (auto done = std::apply(call, held); !done) return done;
  }
  return {};
}

// Counts equal values, each a vertex's number: each(value, count) for those that there are,
// ascending. In memory at once, else in a pass over all values for each interval of numbers.
template <class Each>
Outcome<void> count_values(VertexValues<uint32_t>& values, const Each& each) {
  const graphfmt::DualGeometry& geometry = values.geometry();
  const uint64_t step = values.is_in_memory() ? geometry.vertex_count() : geometry.width();
  std::vector<uint32_t> counts;
  for (uint64_t first = 0; first < geometry.vertex_count(); first += step) {
    counts.assign(std::min(step, geometry.vertex_count() - first), 0);
    const auto counted = for_each_interval(
        [&](uint64_t, std::span<uint32_t> some) {
          for (const uint32_t value : some) {
            if (value - first < counts.size()) ++counts[value - first];
          }
        },
        reading(values));
    if (!counted) return counted;
    for (uint64_t i = 0; i < counts.size(); ++i) {
      if (counts[i] > 0) each(first + i, counts[i]);
    }
  }
  return {};
}

}  // namespace graphlane::hybrid
