// DiskModel: the completion times of a disk with one head, or of an SSD.
//
//   disk   service = seek(tracks apart) + wait until the sector comes round + bytes / bandwidth
//   SSD    service = bytes / bandwidth, or 1 / (I/Os a second) if that is longer
//
// Seeks follow Lee and Katz (An analytic performance model of disk arrays, SIGMETRICS 1993). A seek
// over x tracks takes a*sqrt(x-1) + b*(x-1) + c, with a, b, c such that the shortest, the average and
// the longest seek are those of the data sheet.
//
// The platter never stops. Its angle is a function of time, so nothing is drawn by lot. The wait for
// a sector of the same track is the time to read up to it. Tracks are skewed: a sequential stream
// crosses them without waiting.
//
// An idle device saves nothing up: the next I/O takes as long as any. (blkio.throttle lets a device
// serve at once what it may serve in the next tenth of a second. One thread that reads from many
// such devices in turn would get the bandwidth of all.)
//
// Time is the caller's: seconds since any fixed moment. One I/O at a time, in order of arrival.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace disk_model {

struct Parameters {
  // Those of a SAS disk of 10 000 rpm.
  double bandwidth_bytes_per_second = 210e6;
  double seek_seconds_min = 0.0004;
  double seek_seconds_avg = 0.004;
  double seek_seconds_max = 0.0075;
  double rpm = 10000;
  double stroke_bytes = 100e9;  // between the outermost and the innermost track
  double buffer_bytes = 16e6;   // how far an idle disk reads ahead
  // false: an SSD, for which the members from seek to here do not apply
  bool has_head = true;
  double ios_per_second = std::numeric_limits<double>::infinity();
  double gap_seconds = 100e-6;  // an SSD's: an I/O that is late by less counts as queued
  double dilation = 1;          // all of it slower by this factor
};

struct Io {
  double arrival_seconds;
  uint64_t offset_bytes;
  uint64_t length_bytes;
};

struct Service {
  double seek_seconds;
  double rotation_seconds;
  double transfer_seconds;
  double end_seconds;
};

class DiskModel {
 public:
  explicit DiskModel(const Parameters& p)
      : bandwidth_(p.bandwidth_bytes_per_second / p.dilation),
        revolution_seconds_(60 / p.rpm * p.dilation),
        track_bytes_(bandwidth_ * revolution_seconds_),
        has_head_(p.has_head),
        late_seconds_(p.has_head ? p.buffer_bytes / bandwidth_ : p.gap_seconds * p.dilation),
        io_seconds_min_(p.dilation / p.ios_per_second) {
    const double tracks = std::max(1.0, p.stroke_bytes / track_bytes_);
    const double low = p.seek_seconds_min, mean = p.seek_seconds_avg, high = p.seek_seconds_max;
    root_ = p.dilation * (-10 * low + 15 * mean - 5 * high) / (3 * std::sqrt(tracks));
    linear_ = p.dilation * (7 * low - 15 * mean + 8 * high) / (3 * tracks);
    constant_ = p.dilation * low;
  }

  // The seek between tracks, 0 on the same.
  double seek_seconds(double from_bytes, double to_bytes) const {
    const double apart = std::abs(track(from_bytes) - track(to_bytes));
    if (apart == 0) return 0;
    return root_ * std::sqrt(apart - 1) + linear_ * (apart - 1) + constant_;
  }

  Service serve(const Io& io) {
    const double transfer =
        std::max(static_cast<double>(io.length_bytes) / bandwidth_, io_seconds_min_);
    const double offset = static_cast<double>(io.offset_bytes);
    Service service{
        .seek_seconds = 0, .rotation_seconds = 0, .transfer_seconds = transfer, .end_seconds = 0};
    if (free_seconds_ < 0) free_seconds_ = io.arrival_seconds;  // the first I/O
    double start = 0;
    if (!has_head_) {
      const bool was_queued = io.arrival_seconds - free_seconds_ <= late_seconds_;
      start = was_queued ? free_seconds_ : io.arrival_seconds;
    } else if (io.offset_bytes == position_) {
      // The disk has read ahead into its buffer, so a slightly late I/O loses no time.
      start = std::max(free_seconds_, io.arrival_seconds - late_seconds_);
    } else {
      start = std::max(free_seconds_, io.arrival_seconds);
      service.seek_seconds = seek_seconds(static_cast<double>(position_), offset);
      start += service.seek_seconds;
      service.rotation_seconds = rotation_seconds(start, offset);
      start += service.rotation_seconds;
    }
    free_seconds_ = start + transfer;
    position_ = io.offset_bytes + io.length_bytes;
    service.end_seconds = std::max(free_seconds_, io.arrival_seconds);
    return service;
  }

 private:
  double track(double bytes) const { return std::floor(bytes / track_bytes_); }

  // Until the sector at offset is under the head.
  double rotation_seconds(double now_seconds, double offset) const {
    const double ahead = offset / track_bytes_ - now_seconds / revolution_seconds_;
    return (ahead - std::floor(ahead)) * revolution_seconds_;
  }

  // Constant after construction.
  const double bandwidth_;
  const double revolution_seconds_;
  const double track_bytes_;
  const bool has_head_;
  const double late_seconds_;
  const double io_seconds_min_;
  double root_;
  double linear_;
  double constant_;

  double free_seconds_ = -1;  // when the head is done with what came before
  uint64_t position_ = 0;     // the byte that it reads next
};

}  // namespace disk_model
