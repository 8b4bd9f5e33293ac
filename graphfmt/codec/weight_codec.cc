#include "graphfmt/codec/weight_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <type_traits>

namespace graphlane::graphfmt {
namespace {

// A code is within a word that begins at its first byte.
constexpr unsigned kCodeBitsMax = 56;
// Numbers that a frame may add to the dictionary: fewer than would pay for raw codes.
constexpr size_t kNewNumbersMax = 512;
// Codes of so few bits are not worth a dictionary.
constexpr unsigned kDecimalBitsSmall = 4;
// Whole numbers up to this have no gaps between them in a float64.
constexpr double kWholeMax = 9007199254740992.0;

constexpr double kTens[kWeightPlacesMax + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

// The head of a frame in a table.
struct StoredFrame {
  int64_t base;
  uint8_t method;
  uint8_t width;
  uint8_t zero[6];
};
static_assert(sizeof(StoredFrame) == 16);

template <class T>
uint64_t word_of(T number) {
  uint64_t word = 0;
  std::memcpy(&word, &number, sizeof number);
  return word;
}
template <class T>
T number_of(uint64_t word) {
  T number;
  std::memcpy(&number, &word, sizeof number);
  return number;
}

// The weight of a decimal code. float32 numbers are rounded once more, as the encoder does.
template <class T>
T from_decimal(int64_t decimal, double tens) {
  if constexpr (std::is_integral_v<T>) {
    (void)tens;
    return decimal;
  } else {
    return static_cast<T>(static_cast<double>(decimal) / tens);
  }
}

// Whether the number is a decimal of so many places, bit for bit.
template <class T>
bool to_decimal(T number, unsigned places, int64_t& decimal) {
  if constexpr (std::is_integral_v<T>) {
    decimal = number;
    return places == 0;
  } else {
    double scaled = static_cast<double>(number);
    if (places > 0) scaled = scaled * kTens[places] + std::copysign(0.5, scaled);
    if (!(std::abs(scaled) < kWholeMax)) return false;
    decimal = static_cast<int64_t>(scaled);
    const T back = places > 0 ? from_decimal<T>(decimal, kTens[places]) : static_cast<T>(decimal);
    return word_of(back) == word_of(number);
  }
}

void pack(std::span<const uint64_t> codes, unsigned width, std::vector<uint8_t>& to) {
  const size_t at = to.size();
  to.resize(at + (codes.size() * width + 7) / 8);
  uint8_t* next = to.data() + at;
  uint64_t waiting = 0;
  unsigned bits = 0;
  for (const uint64_t code : codes) {
    waiting |= code << bits;
    for (bits += width; bits >= 8; bits -= 8, waiting >>= 8)
      *next++ = static_cast<uint8_t>(waiting);
  }
  if (bits > 0) *next = static_cast<uint8_t>(waiting);
}

// give(i, code) for codes 0 … count - 1, from the bit `first` of `bytes` on. `readable`: of bytes, at least up to the end
// of the last code.
template <class Give>
void unpack(const uint8_t* bytes, size_t readable, uint64_t first, unsigned width, uint64_t count,
            const Give& give) {
  if (width == 0) {
    for (uint64_t i = 0; i < count; ++i) give(i, uint64_t{0});
    return;
  }
  const uint64_t mask = ~uint64_t{0} >> (64 - width);
  const auto code_at = [mask](const uint8_t* from, uint64_t bit) {
    uint64_t word;
    std::memcpy(&word, from + bit / 8, sizeof word);
    return word >> bit % 8 & mask;
  };
  // How many codes lie in words that can be read.
  uint64_t whole = 0;
  if (readable >= 8 && first < (readable - 7) * 8) {
    whole = std::min(count, ((readable - 7) * 8 - 1 - first) / width + 1);
  }
  uint64_t bit = first;
  for (uint64_t i = 0; i < whole; ++i, bit += width) give(i, code_at(bytes, bit));
  if (whole == count) return;
  uint8_t rest[16] = {};
  const uint64_t skipped = bit / 8;
  std::memcpy(rest, bytes + skipped, std::min<size_t>(readable - skipped, 8));
  bit -= skipped * 8;
  for (uint64_t i = whole; i < count; ++i, bit += width) give(i, code_at(rest, bit));
}

// Whether a frame of these weights can be like this.
bool is_sound_frame(const WeightFrame& frame, WeightKind kind, size_t dictionary_size) {
  if (frame.method == kWeightRaw) return frame.width == 8 * weight_bytes(kind) && frame.base == 0;
  if (frame.method == kWeightDictionary) {
    return dictionary_size > 0 && frame.base == 0 &&
           frame.width <= static_cast<unsigned>(std::bit_width(dictionary_size - 1));
  }
  const size_t bits_max = std::min<size_t>(kCodeBitsMax, 8 * weight_bytes(kind) - 1);
  return frame.method <= (kind == WeightKind::kInt64 ? 0 : kWeightPlacesMax) &&
         frame.width <= bits_max;
}

// Codes of one frame, of which `readable` bytes may be read from `bytes` on, to weights.
template <class T, class Out>
Result<void> decode_codes(const WeightFrame& frame, std::span<const uint64_t> dictionary,
                          const uint8_t* bytes, size_t readable, uint64_t first_bit, uint64_t count,
                          Out* weights) {
  if (frame.method == kWeightRaw) {
    for (uint64_t i = 0; i < count; ++i) {
      T number;
      std::memcpy(&number, bytes + i * sizeof number, sizeof number);
      weights[i] = static_cast<Out>(number);
    }
    return {};
  }
  if (frame.method == kWeightDictionary) {
    uint64_t largest = 0;
    unpack(bytes, readable, first_bit, frame.width, count, [&](uint64_t i, uint64_t code) {
      largest = std::max(largest, code);
      weights[i] =
          static_cast<Out>(number_of<T>(dictionary[std::min<size_t>(code, dictionary.size() - 1)]));
    });
    return largest < dictionary.size() ? Result<void>() : Errno{EIO};
  }
  const auto base = static_cast<uint64_t>(frame.base);
  if (frame.method == 0) {
    unpack(bytes, readable, first_bit, frame.width, count, [&](uint64_t i, uint64_t code) {
      weights[i] = static_cast<Out>(static_cast<T>(static_cast<int64_t>(base + code)));
    });
  } else {
    const double tens = kTens[frame.method];
    unpack(bytes, readable, first_bit, frame.width, count, [&](uint64_t i, uint64_t code) {
      weights[i] = static_cast<Out>(from_decimal<T>(static_cast<int64_t>(base + code), tens));
    });
  }
  return {};
}

// Calls visit(T()) with the type of the weights.
template <class Visit>
auto with_type(WeightKind kind, const Visit& visit) {
  if (kind == WeightKind::kFloat64) return visit(double());
  if (kind == WeightKind::kInt64) return visit(int64_t());
  return visit(float());
}

}  // namespace

// ---- dictionary

size_t WeightDictionary::slot_of(uint64_t number) const {
  size_t slot = (number * 0x9e3779b97f4a7c15) >> 40;
  for (;; ++slot) {
    slot %= slots_.size();
    if (slots_[slot] == 0 || numbers_[slots_[slot] - 1] == number) return slot;
  }
}

bool WeightDictionary::find_or_add(std::span<const uint64_t> weights, std::span<uint64_t> codes) {
  const size_t before = numbers_.size();
  const size_t most = std::min(before + kNewNumbersMax, kWeightDictionaryMax);
  for (size_t i = 0; i < weights.size(); ++i) {
    const size_t slot = slot_of(weights[i]);
    if (slots_[slot] == 0) {
      if (numbers_.size() == most) {
        cut(before);
        return false;
      }
      numbers_.push_back(weights[i]);
      slots_[slot] = static_cast<uint32_t>(numbers_.size());
    }
    codes[i] = slots_[slot] - 1;
  }
  return true;
}

// The last ones first: none that stays was put behind one of them.
void WeightDictionary::cut(size_t count) {
  while (numbers_.size() > count) {
    slots_[slot_of(numbers_.back())] = 0;
    numbers_.pop_back();
  }
}

// ---- encoding

template <class T>
bool WeightEncoder::find_decimals(WeightFrame& frame) {
  unsigned places = 0;
  int64_t least = INT64_MAX, most = INT64_MIN;
  for (size_t i = 0; i < numbers_.size();) {
    int64_t decimal = 0;
    if (to_decimal(number_of<T>(numbers_[i]), places, decimal)) {
      least = std::min(least, decimal);
      most = std::max(most, decimal);
      codes_[i++] = static_cast<uint64_t>(decimal);
      continue;
    }
    if (std::is_integral_v<T> || ++places > kWeightPlacesMax) return false;
    // Those before have more places now, too.
    if (i > 0) {
      i = 0;
      least = INT64_MAX;
      most = INT64_MIN;
    }
  }
  const auto base = static_cast<uint64_t>(least);
  for (uint64_t& code : codes_) code -= base;
  frame = {.base = least,
           .method = static_cast<uint8_t>(places),
           .width = static_cast<uint8_t>(std::bit_width(static_cast<uint64_t>(most) - base))};
  return frame.width <= kCodeBitsMax && frame.width < 8 * sizeof(T);
}

template <class T>
bool WeightEncoder::find_in_dictionary(WeightFrame& frame) {
  if (dictionary_ == nullptr || frame.width <= kDecimalBitsSmall) return false;
  const size_t before = dictionary_->numbers().size();
  dictionary_codes_.resize(numbers_.size());
  // A few of them mostly show that the codes would be no shorter.
  uint8_t width = 0;
  for (const size_t count : {std::min<size_t>(numbers_.size(), 256), numbers_.size()}) {
    if (!dictionary_->find_or_add(std::span(numbers_).first(count), dictionary_codes_)) {
      dictionary_->cut(before);
      return false;
    }
    const auto end = dictionary_codes_.begin() + static_cast<ptrdiff_t>(count);
    width = static_cast<uint8_t>(std::bit_width(*std::max_element(dictionary_codes_.begin(), end)));
    if (width >= frame.width) {
      dictionary_->cut(before);
      return false;
    }
  }
  const size_t added = dictionary_->numbers().size() - before;
  if (WeightFrame{.width = width}.bytes(numbers_.size()) + added * sizeof(T) >=
      frame.bytes(numbers_.size())) {
    dictionary_->cut(before);
    return false;
  }
  frame = {.base = 0, .method = kWeightDictionary, .width = width};
  codes_.swap(dictionary_codes_);
  return true;
}

template <class T>
WeightFrame WeightEncoder::encode_as(std::span<const uint8_t> weights,
                                     std::vector<uint8_t>& codes) {
  const size_t count = weights.size() / sizeof(T);
  numbers_.resize(count);
  codes_.resize(count);
  for (size_t i = 0; i < count; ++i) {
    T number;
    std::memcpy(&number, weights.data() + i * sizeof number, sizeof number);
    numbers_[i] = word_of(number);
  }
  WeightFrame frame;
  const bool is_decimal = find_decimals<T>(frame);
  if (!is_decimal) frame = {.base = 0, .method = kWeightRaw, .width = 8 * sizeof(T)};
  if (!find_in_dictionary<T>(frame) && !is_decimal) {
    codes.insert(codes.end(), weights.begin(), weights.end());
  } else {
    pack(codes_, frame.width, codes);
  }
  return frame;
}

WeightFrame WeightEncoder::encode(std::span<const uint8_t> weights, std::vector<uint8_t>& codes) {
  return with_type(kind_, [&](auto type) { return encode_as<decltype(type)>(weights, codes); });
}

void WeightWriter::end_frame(std::span<const uint8_t> weights, std::vector<uint8_t>& codes) {
  frames_.push_back(encoder_.encode(weights, codes));
  bytes_ += frames_.back().bytes(weights.size() / weight_bytes(kind_));
}

void WeightWriter::append(std::span<const uint8_t> weights, std::vector<uint8_t>& codes) {
  const size_t frame_bytes = kWeightFrameArcs * weight_bytes(kind_);
  while (!weights.empty()) {
    if (waiting_.empty() && weights.size() >= frame_bytes) {
      end_frame(weights.first(frame_bytes), codes);
      weights = weights.subspan(frame_bytes);
      continue;
    }
    const size_t count = std::min(weights.size(), frame_bytes - waiting_.size());
    waiting_.insert(waiting_.end(), weights.begin(),
                    weights.begin() + static_cast<ptrdiff_t>(count));
    weights = weights.subspan(count);
    if (waiting_.size() == frame_bytes) finish(codes);
  }
}

void WeightWriter::finish(std::vector<uint8_t>& codes) {
  if (waiting_.empty()) return;
  end_frame(waiting_, codes);
  waiting_.clear();
}

std::vector<uint8_t> WeightWriter::table() const {
  std::vector<uint8_t> bytes;
  const auto put = [&](const auto& value, size_t size) {
    const size_t at = bytes.size();
    bytes.resize(at + size);
    std::memcpy(bytes.data() + at, &value, size);
  };
  const std::span<const uint64_t> numbers = dictionary_.numbers();
  put(uint64_t{numbers.size()}, 8);
  for (const uint64_t number : numbers) put(number, weight_bytes(kind_));
  bytes.resize(round_up(bytes.size(), 8));
  for (const WeightFrame& frame : frames_)
    put(StoredFrame{frame.base, frame.method, frame.width, {}}, sizeof(StoredFrame));
  return bytes;
}

// ---- decoding

void WeightTable::add_frame(const WeightFrame& frame) {
  const uint64_t first = frames_.size() * kWeightFrameArcs;
  frames_.push_back({bytes_, frame});
  bytes_ += frame.bytes(std::min(kWeightFrameArcs, arc_count_ - first));
}

WeightTable WeightTable::unencoded(WeightKind kind, uint64_t arc_count) {
  WeightTable table;
  table.kind_ = kind;
  table.arc_count_ = arc_count;
  const WeightFrame raw{
      .base = 0, .method = kWeightRaw, .width = static_cast<uint8_t>(8 * weight_bytes(kind))};
  for (uint64_t first = 0; first < arc_count; first += kWeightFrameArcs) table.add_frame(raw);
  return table;
}

Outcome<WeightTable> WeightTable::parse(std::span<const uint8_t>& rest, WeightKind kind,
                                        uint64_t arc_count, const std::string& path,
                                        uint64_t file_bytes) {
  std::span<const uint8_t> bytes = rest;
  const auto at = [&] { return file_bytes - bytes.size(); };
  const size_t size = weight_bytes(kind);
  uint64_t count = 0;
  if (bytes.size() >= sizeof count) std::memcpy(&count, bytes.data(), sizeof count);
  const uint64_t frames =
      arc_count / kWeightFrameArcs + (arc_count % kWeightFrameArcs != 0 ? 1 : 0);
  if (count > kWeightDictionaryMax)
    return make_error(EIO, "{}: byte {}: a dictionary of {} weights", path, at(), count);
  const uint64_t dictionary_bytes = round_up(count * size, 8);
  if (bytes.size() < 8 + dictionary_bytes ||
      (bytes.size() - 8 - dictionary_bytes) / sizeof(StoredFrame) < frames) {
    return make_error(EIO, "{}: byte {}: ends here, in the table of weights", path, file_bytes);
  }
  WeightTable table;
  table.kind_ = kind;
  table.arc_count_ = arc_count;
  bytes = bytes.subspan(8);
  table.dictionary_.resize(count);
  for (uint64_t i = 0; i < count; ++i)
    std::memcpy(&table.dictionary_[i], bytes.data() + i * size, size);
  bytes = bytes.subspan(dictionary_bytes);
  table.frames_.reserve(frames);
  for (uint64_t i = 0; i < frames; ++i) {
    StoredFrame stored;
    std::memcpy(&stored, bytes.data(), sizeof stored);
    const WeightFrame frame{.base = stored.base, .method = stored.method, .width = stored.width};
    const bool is_zero = std::all_of(std::begin(stored.zero), std::end(stored.zero),
                                     [](uint8_t byte) { return byte == 0; });
    if (!is_zero || !is_sound_frame(frame, kind, count)) {
      return make_error(EIO, "{}: byte {}: not a frame of weights", path, at());
    }
    table.add_frame(frame);
    bytes = bytes.subspan(sizeof stored);
  }
  rest = bytes;
  return table;
}

template <class T, class Out>
Result<void> WeightTable::decode_frames(uint64_t first_arc, uint64_t count, const uint8_t* bytes,
                                        size_t slack_bytes, Out* weights) const {
  const ByteRange all = range(first_arc, count);
  const size_t readable = all.length_bytes + slack_bytes;
  for (uint64_t done = 0; done < count;) {
    const uint64_t arc = first_arc + done, in_frame = arc % kWeightFrameArcs;
    const WeightFrame& frame = frames_[arc / kWeightFrameArcs].about;
    const uint64_t here = std::min(count - done, kWeightFrameArcs - in_frame);
    const uint64_t skipped = offset(arc) - all.offset;
    const auto decoded = decode_codes<T>(frame, dictionary_, bytes + skipped, readable - skipped,
                                         in_frame * frame.width % 8, here, weights + done);
    if (!decoded) return decoded;
    done += here;
  }
  return {};
}

Result<void> WeightTable::decode(uint64_t first_arc, std::span<double> weights,
                                 const uint8_t* bytes, size_t slack_bytes) const {
  return with_type(kind_, [&](auto type) {
    return decode_frames<decltype(type)>(first_arc, weights.size(), bytes, slack_bytes,
                                         weights.data());
  });
}

Result<void> WeightTable::decode_stored(uint64_t first_arc, uint64_t count, uint8_t* weights,
                                        const uint8_t* bytes, size_t slack_bytes) const {
  return with_type(kind_, [&](auto type) {
    using T = decltype(type);
    return decode_frames<T>(first_arc, count, bytes, slack_bytes, reinterpret_cast<T*>(weights));
  });
}

// ---- weights of a value of `pages`

void append_value_weights(WeightEncoder& encoder, std::span<const uint8_t> weights,
                          std::vector<uint8_t>& to) {
  std::vector<uint8_t> codes;
  const WeightFrame frame = encoder.encode(weights, codes);
  to.insert(to.end(), {frame.method, frame.width});
  if (frame.method != kWeightRaw) {
    // Zigzag, then groups of 7 bits, the lowest first.
    uint64_t base =
        static_cast<uint64_t>(frame.base) << 1 ^ static_cast<uint64_t>(frame.base >> 63);
    for (; base >= 0x80; base >>= 7) to.push_back(static_cast<uint8_t>(base | 0x80));
    to.push_back(static_cast<uint8_t>(base));
  }
  to.insert(to.end(), codes.begin(), codes.end());
}

Result<ValueWeights> parse_value_weights(WeightKind kind, std::span<const uint8_t> bytes,
                                         uint64_t count) {
  if (bytes.size() < 2) return Errno{EIO};
  ValueWeights weights{.frame = {.base = 0, .method = bytes[0], .width = bytes[1]},
                       .codes = bytes.subspan(2)};
  if (weights.frame.method <= kWeightPlacesMax) {
    uint64_t base = 0;
    for (unsigned shift = 0;; shift += 7) {
      if (weights.codes.empty() || shift > 63) return Errno{EIO};
      const uint8_t byte = weights.codes[0];
      weights.codes = weights.codes.subspan(1);
      base |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    weights.frame.base = static_cast<int64_t>(base >> 1 ^ (0 - (base & 1)));
  }
  if (!is_sound_frame(weights.frame, kind, 0) || weights.codes.size() != weights.frame.bytes(count))
    return Errno{EIO};
  return weights;
}

Result<ValueWeights> unencoded_value_weights(WeightKind kind, std::span<const uint8_t> bytes,
                                             uint64_t count) {
  const ValueWeights weights{.frame = {.width = static_cast<uint8_t>(8 * weight_bytes(kind))},
                             .codes = bytes};
  return bytes.size() == weights.frame.bytes(count) ? Result<ValueWeights>(weights) : Errno{EIO};
}

double value_weight(WeightKind kind, const ValueWeights& weights, uint64_t i) {
  const uint64_t bit = i * weights.frame.width;
  double weight = 0;
  // No dictionary, so no code is too large.
  (void)with_type(kind, [&](auto type) {
    return decode_codes<decltype(type)>(weights.frame, {}, weights.codes.data() + bit / 8,
                                        weights.codes.size() - bit / 8, bit % 8, 1, &weight);
  });
  return weight;
}

void decode_value_weights(WeightKind kind, const ValueWeights& weights, uint64_t count,
                          uint8_t* stored) {
  (void)with_type(kind, [&](auto type) {
    using T = decltype(type);
    return decode_codes<T>(weights.frame, {}, weights.codes.data(), weights.codes.size(), 0, count,
                           reinterpret_cast<T*>(stored));
  });
}

}  // namespace graphlane::graphfmt
