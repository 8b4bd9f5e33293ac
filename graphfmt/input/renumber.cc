#include "graphfmt/input/renumber.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>

#include "graphfmt/input/edge_sort.h"
#include "graphfmt/input/weights.h"
#include "graphfmt/sort/line.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/process/interrupt.h"

namespace graphlane::graphfmt {
namespace {

constexpr uint64_t kRenumberMemoryMin = uint64_t{1} << 20;
constexpr size_t kNameHead = sizeof(uint32_t);
constexpr size_t kKeyOfNumber = 9;  // a byte of kind and eight of the number
constexpr size_t kRenumberBatchEdges = size_t{64} << 10;
constexpr size_t kMapBytes = size_t{1} << 20;

// Kinds come first in a key, so that keys compare as bytes.
constexpr char kNegative = 1, kNumber = 2, kWord = 3;

uint32_t length_at(const char* name) {
  uint32_t length;
  std::memcpy(&length, name, sizeof length);
  return length;
}

std::optional<uint64_t> canonical_number(std::string_view word, bool& negative) {
  negative = word.starts_with('-');
  const std::string_view digits = word.substr(negative ? 1 : 0);
  if (digits.empty() || digits.size() > 20 || digits[0] < '0' || digits[0] > '9') {
    return std::nullopt;
  }
  if (digits[0] == '0' && (digits.size() > 1 || negative)) return std::nullopt;
  uint64_t number = 0;
  const auto [behind, status] =
      std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (status != std::errc{} || behind != digits.data() + digits.size()) return std::nullopt;
  if (negative && number > uint64_t{1} << 63) return std::nullopt;
  return negative ? 0 - number : number;
}

// `key` has room for a kind and the word. Its length.
size_t make_key(std::string_view word, char* key) {
  bool negative = false;
  if (const auto number = canonical_number(word, negative)) {
    key[0] = negative ? kNegative : kNumber;
    for (int byte = 0; byte < 8; ++byte) {
      key[1 + byte] = static_cast<char>(*number >> (56 - 8 * byte));
    }
    return kKeyOfNumber;
  }
  key[0] = kWord;
  std::memcpy(key + 1, word.data(), word.size());
  return 1 + word.size();
}

void append_name(std::string_view key, std::string& text) {
  if (key[0] == kWord) {
    text.append(key.substr(1));
    return;
  }
  uint64_t number = 0;
  for (const char byte : key.substr(1)) number = number << 8 | static_cast<unsigned char>(byte);
  if (key[0] == kNegative) {
    text.append(std::to_string(static_cast<int64_t>(number)));
  } else {
    text.append(std::to_string(number));
  }
}

uint64_t hash_of(std::string_view key) { return std::hash<std::string_view>()(key); }

}  // namespace

// A run's names, read one after the other, and its table, written so.
struct Renumberer::Cursor {
  Run* run = nullptr;
  Buffer names;
  size_t at = 0, end = 0;
  uint64_t names_read = 0;
  Buffer table;
  size_t table_bytes = 0;
  uint64_t table_written = 0;
  std::string_view key;
};

struct Renumberer::Item {
  std::shared_ptr<Buffer> table;
  EdgeBatch batch;
};

Outcome<std::unique_ptr<Renumberer>> Renumberer::create(const EdgeListOptions& options) {
  auto map = Staging::create(options.renumber_map, Staging::Kind::kFile, options.overwrite_map);
  if (!map) return map.error();
  const std::string beside = std::filesystem::path(map->final_path()).parent_path().string();
  auto spill = open_spill_file(options.spill_directory.empty() ? beside : options.spill_directory);
  if (!spill) return spill.error();
  std::unique_ptr<Renumberer> renumberer(
      new Renumberer(options, std::move(*map), std::move(*spill)));
  if (auto reserved = renumberer->reserve(); !reserved) return reserved.error();
  return renumberer;
}

Renumberer::Renumberer(const EdgeListOptions& options, Staging map, Fd spill)
    : options_(options),
      weight_bytes_(options.weighted ? weight_size_bytes(options.weight_type) : 0),
      edge_bytes_(sizeof(Edge) + weight_bytes_),
      map_(std::move(map)),
      spill_(std::move(spill)) {}

// A quarter for names, a quarter for what finds them, half for edges.
Outcome<void> Renumberer::reserve() {
  const uint64_t memory = std::max(options_.memory_budget_bytes, kRenumberMemoryMin);
  // Offsets are uint32.
  const size_t names_bytes = std::min<uint64_t>(memory / 4, uint64_t{4} << 30);
  size_t slot_count = 1024;
  // 4 bytes a slot, 4 an offset for every second
  while (slot_count * 2 * 6 <= memory / 4) slot_count *= 2;
  slot_mask_ = slot_count - 1;
  const std::pair<Buffer*, size_t> wanted[] = {{&names_, names_bytes},
                                               {&slots_, slot_count * sizeof(uint32_t)},
                                               {&offsets_, slot_count / 2 * sizeof(uint32_t)},
                                               {&edges_, memory / 2 / edge_bytes_ * edge_bytes_}};
  for (const auto& [buffer, bytes] : wanted) {
    if (auto grown = buffer->reserve(bytes); !grown) return grown;
  }
  return {};
}

std::string_view Renumberer::key_at(uint32_t place) const {
  const char* const name = names_.data() + offsets_.as<uint32_t>()[place];
  return {name + kNameHead, length_at(name)};
}

// There is room for the name.
uint32_t Renumberer::place_of(std::string_view key) {
  auto* const slots = slots_.as<uint32_t>();
  size_t slot = hash_of(key) & slot_mask_;
  for (; slots[slot] != 0; slot = (slot + 1) & slot_mask_) {
    if (key_at(slots[slot] - 1) == key) return slots[slot] - 1;
  }
  const auto length = static_cast<uint32_t>(key.size());
  offsets_.as<uint32_t>()[name_count_] = static_cast<uint32_t>(names_bytes_);
  std::memcpy(names_.data() + names_bytes_, &length, sizeof length);
  std::memcpy(names_.data() + names_bytes_ + kNameHead, key.data(), key.size());
  names_bytes_ += kNameHead + key.size();
  slots[slot] = ++name_count_;
  return name_count_ - 1;
}

Outcome<void> Renumberer::take_names(const char* names, size_t names_bytes, size_t) {
  std::string keys[2];
  const char* const end = names + names_bytes;
  for (const char* at = names; at < end;) {
    for (std::string& key : keys) {
      const uint32_t length = length_at(at);
      key.resize(std::max<size_t>(1 + length, kKeyOfNumber));
      key.resize(make_key({at + kNameHead, length}, key.data()));
      at += kNameHead + length;
    }
    const size_t needed = 2 * kNameHead + keys[0].size() + keys[1].size();
    if (needed > names_.size()) {
      return make_error(EINVAL, "{}: a name of {} bytes: too long for this --memory", options_.path,
                        needed);
    }
    const bool full = names_.size() - names_bytes_ < needed ||
                      name_count_ + 2 > offsets_.size() / sizeof(uint32_t) ||
                      edges_.size() - edges_bytes_ < edge_bytes_;
    if (full) {
      if (auto closed = close_run(); !closed) return closed;
    }
    const uint32_t places[2] = {place_of(keys[0]), place_of(keys[1])};
    std::memcpy(edges_.data() + edges_bytes_, places, sizeof places);
    std::memcpy(edges_.data() + edges_bytes_ + sizeof places, at, weight_bytes_);
    edges_bytes_ += edge_bytes_;
    at += weight_bytes_;
  }
  return {};
}

Outcome<void> Renumberer::spill(const char* data, size_t bytes) {
  auto written = pwrite_full(spill_.get(), data, bytes, spill_bytes_);
  if (!written) return os_error(written.error().code, "a temporary file", "cannot write");
  spill_bytes_ += bytes;
  return {};
}

// Names in order; the edges' places become ranks in that order.
Outcome<void> Renumberer::close_run() {
  if (edges_bytes_ == 0) return {};
  // The slots are not needed any more: their first half holds the order, the other the ranks.
  auto* const order = slots_.as<uint32_t>();
  uint32_t* const ranks = order + slots_.size() / sizeof(uint32_t) / 2;
  for (uint32_t place = 0; place < name_count_; ++place) order[place] = place;
  std::sort(order, order + name_count_,
            [this](uint32_t a, uint32_t b) { return key_at(a) < key_at(b); });
  Run run{.names_offset = spill_bytes_,
          .names_bytes = names_bytes_,
          .edge_count = edges_bytes_ / edge_bytes_,
          .name_count = name_count_};
  std::string sorted;
  for (uint32_t rank = 0; rank < name_count_; ++rank) {
    ranks[order[rank]] = rank;
    const std::string_view key = key_at(order[rank]);
    sorted.append(key.data() - kNameHead, kNameHead + key.size());
    if (sorted.size() < kMapBytes && rank + 1 < name_count_) continue;
    if (auto spilled = spill(sorted.data(), sorted.size()); !spilled) return spilled;
    sorted.clear();
  }
  for (size_t at = 0; at < edges_bytes_; at += edge_bytes_) {
    uint32_t places[2];
    std::memcpy(places, edges_.data() + at, sizeof places);
    for (uint32_t& place : places) place = ranks[place];
    std::memcpy(edges_.data() + at, places, sizeof places);
  }
  run.edges_offset = spill_bytes_;
  if (auto spilled = spill(edges_.data(), edges_bytes_); !spilled) return spilled;
  run.table_offset = spill_bytes_;
  spill_bytes_ += uint64_t{name_count_} * sizeof(uint32_t);
  runs_.push_back(run);
  std::memset(slots_.data(), 0, slots_.size());
  names_bytes_ = edges_bytes_ = 0;
  name_count_ = 0;
  return {};
}

// Merges all runs' names, each once, in order. Writes MAP and every run's table.
Outcome<uint64_t> Renumberer::merge_names() {
  const uint64_t memory = std::max(options_.memory_budget_bytes, kRenumberMemoryMin);
  const uint64_t share = std::clamp<uint64_t>(memory / 2 / runs_.size(), 16 << 10, 4 << 20);
  std::vector<Cursor> cursors(runs_.size());
  const auto flush_table = [this](Cursor& cursor) -> Outcome<void> {
    auto written = pwrite_full(spill_.get(), cursor.table.data(), cursor.table_bytes,
                               cursor.run->table_offset + cursor.table_written);
    if (!written) return os_error(written.error().code, "a temporary file", "cannot write");
    cursor.table_written += std::exchange(cursor.table_bytes, 0);
    return {};
  };
  // The next name to cursor.key; false: there is none.
  const auto advance = [this](Cursor& cursor) -> Outcome<bool> {
    while (true) {
      const size_t there = cursor.end - cursor.at;
      const char* const name = cursor.names.data() + cursor.at;
      if (there >= kNameHead && there >= kNameHead + length_at(name)) {
        cursor.key = {name + kNameHead, length_at(name)};
        cursor.at += kNameHead + cursor.key.size();
        return true;
      }
      if (cursor.names_read == cursor.run->names_bytes) return false;
      size_t needed = cursor.names.size();
      if (there >= kNameHead) needed = std::max<size_t>(needed, kNameHead + length_at(name));
      if (needed > cursor.names.size()) {  // a name longer than the buffer
        Buffer larger;
        if (auto grown = larger.reserve(needed); !grown) return grown.error();
        std::memcpy(larger.data(), name, there);
        cursor.names = std::move(larger);
      } else {
        std::memmove(cursor.names.data(), name, there);
      }
      const size_t length = std::min<uint64_t>(cursor.names.size() - there,
                                               cursor.run->names_bytes - cursor.names_read);
      auto count = pread_full(spill_.get(), cursor.names.data() + there, length,
                              cursor.run->names_offset + cursor.names_read);
      if (!count) return os_error(count.error().code, "a temporary file", "cannot read");
      if (*count != length) {
        return make_error(EIO, "a temporary file is shorter than what was written");
      }
      cursor.names_read += length;
      cursor.at = 0;
      cursor.end = there + length;
    }
  };
  const auto later = [&](size_t a, size_t b) { return cursors[a].key > cursors[b].key; };
  std::vector<size_t> heap;
  for (size_t i = 0; i < runs_.size(); ++i) {
    cursors[i].run = &runs_[i];
    if (auto grown = cursors[i].names.reserve(share); !grown) return grown.error();
    if (auto grown = cursors[i].table.reserve(share / 4 * 4); !grown) return grown.error();
    auto first = advance(cursors[i]);
    if (!first) return first.error();
    heap.push_back(i);
  }
  std::make_heap(heap.begin(), heap.end(), later);
  std::string text, last;
  uint64_t count = 0;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    Cursor& cursor = cursors[heap.back()];
    if (count == 0 || cursor.key != last) {
      if (count == options_.vertex_count_max) {
        return make_error(EINVAL, "{}: more than {} different vertices: this output has no more",
                          options_.path, count);
      }
      last = cursor.key;
      text += std::to_string(count);
      text += '\t';
      append_name(cursor.key, text);
      text += '\n';
      ++count;
      if (text.size() >= kMapBytes) {
        if (auto go_on = check_interrupt(); !go_on) return go_on.error();
        if (auto written = write_full(map_.fd(), text.data(), text.size()); !written) {
          return os_error(written.error().code, options_.renumber_map, "cannot write");
        }
        text.clear();
      }
    }
    const auto number = static_cast<uint32_t>(count - 1);
    std::memcpy(cursor.table.data() + cursor.table_bytes, &number, sizeof number);
    cursor.table_bytes += sizeof number;
    if (cursor.table_bytes == cursor.table.size()) {
      if (auto flushed = flush_table(cursor); !flushed) return flushed.error();
    }
    auto more = advance(cursor);
    if (!more) return more.error();
    if (*more) {
      std::push_heap(heap.begin(), heap.end(), later);
    } else {
      if (auto flushed = flush_table(cursor); !flushed) return flushed.error();
      heap.pop_back();
    }
  }
  if (auto written = write_full(map_.fd(), text.data(), text.size()); !written) {
    return os_error(written.error().code, options_.renumber_map, "cannot write");
  }
  return count;
}

Outcome<bool> Renumberer::load(Item& item) {
  if (run_ < runs_.size() && run_edge_ == runs_[run_].edge_count) {
    ++run_;
    run_edge_ = 0;
    table_.reset();
  }
  if (run_ == runs_.size()) return false;
  const Run& run = runs_[run_];
  if (!table_) {
    table_ = std::make_shared<Buffer>();
    const size_t bytes = run.name_count * sizeof(uint32_t);
    if (auto grown = table_->reserve(bytes); !grown) return grown.error();
    auto count = pread_full(spill_.get(), table_->data(), bytes, run.table_offset);
    if (!count || *count != bytes) {
      return os_error(count ? EIO : count.error().code, "a temporary file", "cannot read");
    }
  }
  const size_t edge_count = std::min<uint64_t>(kRenumberBatchEdges, run.edge_count - run_edge_);
  EdgeBatch& batch = item.batch;
  batch.weighted = options_.weighted;
  batch.weight_type = options_.weight_type;
  batch.edge_count = edge_count;
  if (auto grown = batch.records.reserve(kRenumberBatchEdges * batch.edge_bytes()); !grown) {
    return grown.error();
  }
  const size_t bytes = edge_count * edge_bytes_;
  auto count = pread_full(spill_.get(), batch.records.data(), bytes,
                          run.edges_offset + run_edge_ * edge_bytes_);
  if (!count || *count != bytes) {
    return os_error(count ? EIO : count.error().code, "a temporary file", "cannot read");
  }
  run_edge_ += edge_count;
  item.table = table_;
  return true;
}

// Replaces the ranks in a run's edges by numbers; their records need no other change.
Outcome<void> Renumberer::translate(Item& item) const {
  const auto* const numbers = item.table->as<uint32_t>();
  char* record = item.batch.records.data();
  for (size_t i = 0; i < item.batch.edge_count; ++i, record += edge_bytes_) {
    uint32_t ends[2];
    std::memcpy(ends, record, sizeof ends);
    for (uint32_t& end : ends) end = numbers[end];
    std::memcpy(record, ends, sizeof ends);
  }
  return {};
}

Outcome<uint64_t> Renumberer::hand_on(EdgeSink& sink, unsigned threads) {
  if (auto closed = close_run(); !closed) return closed.error();
  for (Buffer* buffer : {&names_, &offsets_, &slots_, &edges_}) *buffer = Buffer();
  auto vertex_count = merge_names();
  if (!vertex_count) return vertex_count.error();
  if (options_.vertices != 0 && *vertex_count > options_.vertices) {
    return make_error(EINVAL, "{}: {} different vertices are more than --vertices {}",
                      options_.path, *vertex_count, options_.vertices);
  }
  Line<Item> line;
  line.load = [this](Item& item) { return load(item); };
  line.work = [&](Item& item) -> Outcome<void> {
    if (auto done = translate(item); !done) return done;
    return sink.prepare(item.batch);
  };
  line.unload = [&](Item& item) { return sink.take(item.batch); };
  line.settle = [&](Item&) { return sink.settle(); };
  if (auto done = line.run(usable_threads(threads)); !done) return done.error();
  if (auto committed = map_.commit(); !committed) return committed.error();
  return *vertex_count;
}

}  // namespace graphlane::graphfmt
