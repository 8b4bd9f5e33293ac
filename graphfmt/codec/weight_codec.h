// The weights of arcs, encoded without loss, so that those of any list can be read alone.
//
//   arcs of a file      0 … 4095 | 4096 … 8191 | …     each a frame; the last one may have fewer
//   codes of a frame    `width` bits for each weight, the lowest bit first, to a whole byte; frame after frame
//   table, in memory    of each frame its method, width and base; one dictionary for all
//
//   decimal       (base + code) / 10^places: whole numbers, and fractions of few digits
//   dictionary    dictionary[code]: any numbers, if there are few
//   raw           the number as it is in memory
//
// The encoder takes the smallest that gives each weight back bit for bit. FORMAT.md has the bytes.
//
//   lists, dual   WeightWriter writes the codes to a file, and a table; WeightTable reads them
//   pages         each value has one frame, with its head in front: append_weights(), parse_weights()
//
// Damaged bytes: decoding never reads outside of its arguments. It returns EIO for codes that no encoder writes.
//
// Threads: a writer is one thread's; a table does not change.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graphfmt/graph_header.h"
#include "iomgr/base/error.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane::graphfmt {

inline constexpr uint64_t kWeightFrameArcs = 4096;
// More distinct numbers than these are not put into a dictionary.
inline constexpr size_t kWeightDictionaryMax = 4096;

// Methods up to this are decimal places.
inline constexpr uint8_t kWeightPlacesMax = 15;
inline constexpr uint8_t kWeightDictionary = 254;
inline constexpr uint8_t kWeightRaw = 255;

struct WeightFrame {
  int64_t base = 0;  // decimal
  uint8_t method = kWeightRaw;
  uint8_t width = 0;  // bits of a code
  uint64_t bytes(uint64_t count) const { return (count * width + 7) / 8; }
  friend bool operator==(const WeightFrame&, const WeightFrame&) = default;
};

// The numbers of a dictionary, each in the low bytes of a word, and their codes.
class WeightDictionary {
 public:
  WeightDictionary() : slots_(4 * kWeightDictionaryMax) {}

  std::span<const uint64_t> numbers() const { return numbers_; }
  // The codes of all `weights`. False: there would be too many numbers; none was added.
  bool find_or_add(std::span<const uint64_t> weights, std::span<uint64_t> codes);
  // Forgets the numbers from the code `count` on.
  void cut(size_t count);

 private:
  size_t slot_of(uint64_t number) const;

  std::vector<uint64_t> numbers_;
  std::vector<uint32_t> slots_;  // code + 1, by a hash of the number; 0: free
};

// Encodes frames.
class WeightEncoder {
 public:
  // `dictionary`: for frames to share; nullptr: none.
  WeightEncoder(WeightKind kind, WeightDictionary* dictionary)
      : kind_(kind), dictionary_(dictionary) {}

  // Appends the codes of these weights, which are as in memory, to `codes`.
  WeightFrame encode(std::span<const uint8_t> weights, std::vector<uint8_t>& codes);

 private:
  template <class T>
  WeightFrame encode_as(std::span<const uint8_t> weights, std::vector<uint8_t>& codes);
  template <class T>
  bool find_decimals(WeightFrame& frame);
  template <class T>
  bool find_in_dictionary(WeightFrame& frame);

  const WeightKind kind_;
  WeightDictionary* const dictionary_;
  std::vector<uint64_t> numbers_;  // the weights, each in a word
  std::vector<uint64_t> codes_;
  std::vector<uint64_t> dictionary_codes_;
};

// A file's weights, one behind the other, to frames.
class WeightWriter {
 public:
  explicit WeightWriter(WeightKind kind) : kind_(kind), encoder_(kind, &dictionary_) {}

  // Adds weights as in memory; appends the codes of the frames that are full then.
  void append(std::span<const uint8_t> weights, std::vector<uint8_t>& codes);
  // After the last: appends the codes of a frame that is not full.
  void finish(std::vector<uint8_t>& codes);
  // The size of all codes so far.
  uint64_t bytes() const { return bytes_; }
  // After finish(): the table, a multiple of 8 bytes.
  std::vector<uint8_t> table() const;

 private:
  void end_frame(std::span<const uint8_t> weights, std::vector<uint8_t>& codes);

  const WeightKind kind_;
  WeightDictionary dictionary_;
  WeightEncoder encoder_;
  std::vector<uint8_t> waiting_;  // weights of a frame that is not full
  std::vector<WeightFrame> frames_;
  uint64_t bytes_ = 0;
};

class WeightTable {
 public:
  WeightTable() = default;
  // Weights as in memory, without a table.
  static WeightTable unencoded(WeightKind kind, uint64_t arc_count);
  // From the front of `rest`, which is the end of the file `path` of `file_bytes`. EIO: damaged.
  static Outcome<WeightTable> parse(std::span<const uint8_t>& rest, WeightKind kind,
                                    uint64_t arc_count, const std::string& path,
                                    uint64_t file_bytes);
  // The table of one direction: parse(), or unencoded() for a format without a table.
  static Outcome<WeightTable> take(std::span<const uint8_t>& rest, const GraphHeader& header,
                                   const std::string& path, uint64_t file_bytes) {
    if (!header.encodes_weights()) return unencoded(header.weight, header.arc_count);
    return parse(rest, header.weight, header.arc_count, path, file_bytes);
  }

  // The size of the file: of all codes.
  uint64_t bytes() const { return bytes_; }
  // Where the codes of these arcs are in the file.
  ByteRange range(uint64_t first_arc, uint64_t count) const {
    if (count == 0) return {};
    const uint64_t begin = offset(first_arc);
    return {begin, offset_behind(first_arc + count - 1) - begin};
  }
  // Decodes weights of the arcs from `first_arc` on, from the bytes of their range(). As many
  // `slack_bytes` behind may be read too, which is faster from 8 on. EIO: damaged.
  Result<void> decode(uint64_t first_arc, std::span<double> weights, const uint8_t* bytes,
                      size_t slack_bytes = 0) const;
  // As decode(), but gives the weights in their own type.
  Result<void> decode_stored(uint64_t first_arc, uint64_t count, uint8_t* weights,
                             const uint8_t* bytes, size_t slack_bytes = 0) const;

 private:
  struct Frame {
    uint64_t offset;
    WeightFrame about;
  };
  // The byte in which the arc's code begins; of arc_count(), the end of all.
  uint64_t offset(uint64_t arc) const {
    if (arc == arc_count_) return bytes_;
    const Frame& frame = frames_[arc / kWeightFrameArcs];
    return frame.offset + arc % kWeightFrameArcs * frame.about.width / 8;
  }
  // The end of the byte in which it ends.
  uint64_t offset_behind(uint64_t arc) const {
    const Frame& frame = frames_[arc / kWeightFrameArcs];
    return frame.offset + frame.about.bytes(arc % kWeightFrameArcs + 1);
  }
  void add_frame(const WeightFrame& frame);
  template <class T, class Out>
  Result<void> decode_frames(uint64_t first_arc, uint64_t count, const uint8_t* bytes,
                             size_t slack_bytes, Out* weights) const;

  WeightKind kind_ = WeightKind::kNone;
  uint64_t arc_count_ = 0;
  uint64_t bytes_ = 0;
  std::vector<Frame> frames_;
  std::vector<uint64_t> dictionary_;
};

// The weights of a value of `pages`.
struct ValueWeights {
  WeightFrame frame;
  std::span<const uint8_t> codes;
};
inline constexpr size_t kValueWeightsHeadMax = 12;
// Appends a frame with its head: at most kValueWeightsHeadMax bytes more than the weights have.
void append_value_weights(WeightEncoder& encoder, std::span<const uint8_t> weights,
                          std::vector<uint8_t>& to);
// The weights of `count` arcs, which are exactly these bytes. EIO: they are not.
Result<ValueWeights> parse_value_weights(WeightKind kind, std::span<const uint8_t> bytes,
                                         uint64_t count);
// The same for a graph of format version 1.
Result<ValueWeights> unencoded_value_weights(WeightKind kind, std::span<const uint8_t> bytes,
                                             uint64_t count);
double value_weight(WeightKind kind, const ValueWeights& weights, uint64_t i);
void decode_value_weights(WeightKind kind, const ValueWeights& weights, uint64_t count,
                          uint8_t* stored);

}  // namespace graphlane::graphfmt
