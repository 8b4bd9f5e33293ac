#include "adapters/hybrid/vertex_values.h"

#include <fcntl.h>

#include <algorithm>

#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/unnamed_file.h"
#include "iomgr/base/process/memory_limit.h"
#include "iomgr/cache/memory_budget.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane::hybrid {

Outcome<void> ValueSpace::begin(uint64_t bytes_a_vertex) {
  bytes_a_vertex *= copies_;
  const uint64_t all = geometry_.vertex_count() * bytes_a_vertex;
  const uint64_t budget =
      memory_bytes_.value_or(budget_of(MemoryUse::kBuffers, memory_available_bytes()));
  is_in_memory_ = all <= budget;
  const uint64_t of_interval = std::max<uint64_t>(geometry_.width() * bytes_a_vertex, 1);
  held_max_ =
      static_cast<uint32_t>(std::min<uint64_t>(budget / of_interval, geometry_.partitions()));
  if (is_in_memory_ || held_max_ >= 2) return {};
  return make_error(EINVAL,
                    "--value-memory: the values of a block's two intervals take {} bytes, and it "
                    "is {}: convert with a larger -p",
                    2 * of_interval, budget);
}

Outcome<std::unique_ptr<ValueFile>> ValueFile::create(ValueSpace& space, size_t value_bytes) {
  std::unique_ptr<ValueFile> file(
      new ValueFile(space, round_up(space.geometry().width() * value_bytes, 4096)));
  if (auto opened = file->open(); !opened) return opened.error();
  return file;
}

Outcome<void> ValueFile::open() {
  Result<Fd> fd = make_unnamed_file(space_.directory(), O_DIRECT);
  if (!fd) {
    return os_error(fd.error().code, space_.directory(), "cannot make a file of vertices' values");
  }
  fd_ = std::move(*fd);
  places_.resize(space_.held_max());
  for (Place& place : places_) {
    auto bytes = graphfmt::Buffer::allocate(interval_bytes_);
    if (!bytes) return bytes.error();
    place.bytes = std::move(*bytes);
  }
  return {};
}

Outcome<char*> ValueFile::hold(uint32_t interval, bool reads) {
  if (where_[interval] == kNowhere) {
    Place* oldest = nullptr;
    for (Place& place : places_) {
      if (place.holds == 0 && (oldest == nullptr || place.used_at < oldest->used_at)) {
        oldest = &place;
      }
    }
    if (auto cleared = clear(*oldest); !cleared) return cleared.error();
    if (reads && is_written_[interval]) {
      const auto got =
          pread_full(fd_.get(), oldest->bytes.data(), interval_bytes_, interval * interval_bytes_);
      if (!got) {
        return os_error(got.error().code, space_.directory(), "cannot read vertices' values");
      }
      if (*got < interval_bytes_) {
        return make_error(EIO, "{}: the file of vertices' values has become shorter",
                          space_.directory());
      }
      space_.read_bytes += interval_bytes_;
    }
    oldest->interval = interval;
    where_[interval] = static_cast<uint32_t>(oldest - places_.data());
  }
  Place& place = places_[where_[interval]];
  ++place.holds;
  place.used_at = ++uses_;
  return place.bytes.data();
}

void ValueFile::release(uint32_t interval, bool changed) {
  Place& place = places_[where_[interval]];
  --place.holds;
  place.changed |= changed;
}

// Its values go to the file, if they have changed.
Outcome<void> ValueFile::clear(Place& place) {
  if (place.interval == kNowhere) return {};
  if (place.changed) {
    const auto put = pwrite_full(fd_.get(), place.bytes.data(), interval_bytes_,
                                 place.interval * interval_bytes_);
    if (!put) {
      return os_error(put.error().code, space_.directory(), "cannot write vertices' values");
    }
    space_.written_bytes += interval_bytes_;
    is_written_[place.interval] = true;
    place.changed = false;
  }
  where_[place.interval] = kNowhere;
  place.interval = kNowhere;
  return {};
}

}  // namespace graphlane::hybrid
