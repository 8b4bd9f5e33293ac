#include "adapters/semiext/list_loader.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <functional>
#include <type_traits>
#include <utility>

namespace graphlane {
namespace {

constexpr uint64_t kListPageBytes = PageReader::kPageBytes;
// Bytes behind the decoded list that decoders may read.
constexpr size_t kDecodeSlack = 32;
// Memory of each part of a join that is kept for the next one.
constexpr size_t kJoinBytesKept = 512;

uint64_t page_index_of(uint64_t offset) { return offset / kListPageBytes; }

template <class T>
void resize_for_overwrite(std::vector<T>& vector, size_t size) {
  if (vector.size() < size) vector.resize(std::max(size, vector.size() * 2));
}

// Where one of two things, one of each direction, stands.
size_t place_of(EdgeSide side) { return side == EdgeSide::kIn ? 1 : 0; }

}  // namespace

ListLoader::ListLoader(const Graph& graph, Sink& sink, uint64_t in_flight_bytes_max)
    : graph_(graph),
      is_directed_(graph.is_directed()),
      is_raw_(graph.codec().kind() == graphfmt::CodecKind::kRaw),
      variant_(graph.variant()),
      sink_(sink),
      in_flight_bytes_max_(in_flight_bytes_max),
      // Several batches are in flight, so that the devices work meanwhile.
      begin_bytes_(std::min(kBeginBytesMax, in_flight_bytes_max / 4)),
      makes_runs_(graph.is_in_memory() ? !is_raw_ : graph.variant().merge == Merge::kLists),
      run_reader_(graph.codec(), graph.vertex_count()),
      no_memory_(make_error(ENOMEM, "{}: no memory for its lists", graph.path())) {
  if (!graph.is_in_memory()) queue_ = std::make_unique<PageQueue>(graph.pages());
}

ListLoader::~ListLoader() {
  if (!error_) error_ = Error{ECANCELED, {}};
  queue_.reset();
}

void ListLoader::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

void ListLoader::fail_damaged(const std::string& path, uint64_t offset, VertexId owner) {
  fail(make_error(EIO, "{}: damaged from byte {} on: the list of vertex {}", path, offset, owner));
}

graphfmt::ListPlace ListLoader::place(const Graph::Side& side, EdgeSide which, VertexId owner) {
  Cursor& cursor = cursors_[place_of(which)];
  graphfmt::ListPlace place;
  if (cursor.vertex == owner) {
    place = {.offset = cursor.offset, .length_bytes = side.index->bytes(owner)};
  } else {
    place = side.index->place(owner);
  }
  cursor = {.vertex = uint64_t{owner} + 1, .offset = place.offset + place.length_bytes};
  return place;
}

void ListLoader::ask_device(const Ask& asked) {
  Ask ask = asked;
  if (!is_directed_) ask.side = EdgeSide::kOut;
  if (ask.count == 0 || graph_.degree(ask.owner, ask.side) <= ask.first) {
    empty_.push_back(ask);
    return;
  }
  const bool weights = ask.weights && graph_.side(ask.side).weights != nullptr;
  if (ask.side != EdgeSide::kBoth && !weights) return add_piece(ask, false, nullptr);
  if (free_joins_.empty()) free_joins_.push_back(&joins_.emplace_back());
  Join* const join = free_joins_.back();
  free_joins_.pop_back();
  join->ask = ask;
  join->pending = 2;
  for (std::vector<VertexId>& list : join->lists) list.clear();
  join->weights.clear();
  if (weights) {
    add_piece(ask, false, join);
    add_piece(ask, true, join);
    return;
  }
  for (const EdgeSide side : {EdgeSide::kOut, EdgeSide::kIn}) {
    Ask one = ask;
    one.side = side;
    if (graph_.degree(ask.owner, side) == 0) {
      --join->pending;  // the other one has some
    } else {
      add_piece(one, false, join);
    }
  }
}

void ListLoader::add_piece(const Ask& ask, bool is_weights, Join* join) {
  const Graph::Side& side = graph_.side(ask.side);
  Piece piece{.file = side.lists, .ask = ask, .is_weights = is_weights, .join = join};
  const uint64_t degree = side.index->degree(ask.owner);
  const uint64_t first = std::min(ask.first, degree);
  const uint64_t count = std::min(ask.count, degree - first);
  piece.ask.first = first;
  piece.ask.count = count;
  if (is_weights) {
    piece.file = side.weights;
    const ByteRange codes =
        side.weight_table->range(side.index->first_arc(ask.owner) + first, count);
    piece.offset = codes.offset;
    piece.length_bytes = codes.length_bytes;
    if (codes.length_bytes == 0) {
      // All are the same, so they have no codes. The list is still to come.
      take_weights(piece, {}, 0);
      --join->pending;
      return;
    }
  } else {
    const graphfmt::ListPlace list = place(side, ask.side, ask.owner);
    piece.offset = list.offset;
    piece.length_bytes = list.length_bytes;
    if (is_raw_) {
      piece.offset += first * sizeof(VertexId);
      piece.length_bytes = count * sizeof(VertexId);
    }
  }
  asked_bytes_ += piece.length_bytes;
  asked_.push_back(piece);
}

void ListLoader::begin() {
  // Lists that on_list() asks for are appended.
  give_from_memory(
      [this](VertexId running, const ListView& list) { sink_.on_list(running, list); });
  if (!has_asked() || error_) return;
  if (free_batches_.empty()) {
    batches_.push_back(std::make_unique<Batch>());
    // Room for all of them: they come back in functions that must not throw.
    free_batches_.reserve(batches_.capacity());
    free_batches_.push_back(batches_.back().get());
  }
  Batch& batch = *free_batches_.back();
  free_batches_.pop_back();
  begun_count_ += asked_count();
  begun_run_lists_ += asked_runs_[0].list_count() + asked_runs_[1].list_count();
  begun_bytes_ += asked_bytes();
  batch.pieces.clear();
  batch.pieces.swap(asked_);
  asked_bytes_ = 0;
  for (size_t place = 0; place < 2; ++place) {
    batch.runs[place].clear();
    std::swap(batch.runs[place], asked_runs_[place]);
  }
  if (is_in_memory()) return take_runs_from_memory(batch);
  make_tasks(batch);
  make_run_tasks(batch);
  widen_to_blocks(batch);
  range_count_ += batch.tasks.size();
  batch.pending = batch.tasks.size() + 1;  // this function
  for (size_t i = 0; i < batch.tasks.size(); ++i) {
    Task& task = batch.tasks[i];
    queue_->submit(task.file->paged(), task.range, task);
  }
  finish(batch);
  queue_->flush();
}

void ListLoader::make_run_tasks(Batch& batch) {
  for (const EdgeSide side : {EdgeSide::kOut, EdgeSide::kIn}) {
    semiext::ListRuns& runs = batch.runs[place_of(side)];
    runs.close();
    for (const semiext::ListRuns::Run& run : runs.runs()) {
      Task& task = batch.tasks.emplace_back();
      task.loader = this;
      task.batch = &batch;
      task.file = graph_.side(side).lists;
      task.first = run.first;
      task.end = run.end;
      task.list_bytes = run.list_bytes;
      task.range = {.offset = run.begin, .length_bytes = run.behind - run.begin};
      task.lists = &run;
      task.side = side;
    }
  }
}

// Where blocks larger than a page are read, for experiments.
void ListLoader::widen_to_blocks(Batch& batch) const {
  const uint64_t block_bytes = variant_.page_bytes;
  if (block_bytes == kListPageBytes) return;
  for (Task& task : batch.tasks) {
    const uint64_t begin = task.range.offset / block_bytes * block_bytes;
    const uint64_t end = round_up(task.range.end(), block_bytes);
    task.range = {.offset = begin, .length_bytes = std::min(end, task.file->size_bytes()) - begin};
  }
}

void ListLoader::finish(Batch& batch) {
  if (--batch.pending > 0) return;
  free_batches_.push_back(&batch);
}

void ListLoader::make_tasks(Batch& batch) {
  const auto before = [](const Piece& a, const Piece& b) {
    return a.file != b.file ? std::less<>()(a.file, b.file) : a.offset < b.offset;
  };
  std::vector<Piece>& pieces = batch.pieces;
  if (!std::is_sorted(pieces.begin(), pieces.end(), before)) {
    if (std::is_sorted(pieces.rbegin(), pieces.rend(), before)) {
      std::reverse(pieces.begin(), pieces.end());
    } else {
      std::sort(pieces.begin(), pieces.end(), before);
    }
  }
  batch.tasks.clear();
  const uint64_t page_bytes = variant_.page_bytes;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const uint64_t piece_end = piece.offset + piece.length_bytes;
    if (!batch.tasks.empty()) {
      Task& last = batch.tasks.back();
      const bool adjoins = variant_.merge == Merge::kLists &&
                           pieces[last.first].file == piece.file &&
                           piece.offset / page_bytes <= (last.range.end() - 1) / page_bytes + 1;
      const uint64_t end = std::max(last.range.end(), piece_end);
      if (adjoins && end - last.range.offset <= semiext::ListRuns::kBytesMax) {
        last.end = i + 1;
        last.range.length_bytes = end - last.range.offset;
        last.list_bytes += piece.length_bytes;
        continue;
      }
    }
    Task& task = batch.tasks.emplace_back();
    task.loader = this;
    task.batch = &batch;
    task.file = piece.file;
    task.first = i;
    task.end = i + 1;
    task.list_bytes = piece.length_bytes;
    task.range = {.offset = piece.offset, .length_bytes = piece.length_bytes};
  }
}

bool ListLoader::wait() { return queue_ != nullptr && queue_->wait(); }

// ---- in the page reader's tasks

void ListLoader::Task::run(const PageBytes& bytes) noexcept {
  loader->is_giving_ = true;
  try {
    if (!loader->error_) loader->take(bytes, *this);
  } catch (const std::bad_alloc&) {
    loader->fail(std::move(loader->no_memory_));
  }
  loader->is_giving_ = false;
  ended();
}

void ListLoader::Task::failed(int error) noexcept {
  try {
    loader->fail(
        error == EBADMSG
            ? make_error(EIO, "{}: damaged between byte {} and byte {}: its checksum is wrong",
                         file->path(), range.offset, range.end())
            : os_error(error, file->path(), fmt::format("cannot read byte {}", range.offset)));
  } catch (const std::bad_alloc&) {
    loader->fail(std::move(loader->no_memory_));
  }
  ended();
}

void ListLoader::Task::ended() {
  loader->begun_bytes_ -= list_bytes;
  loader->begun_count_ -= end - first;
  if (lists != nullptr) loader->begun_run_lists_ -= end - first;
  loader->finish(*batch);
}

void ListLoader::take(const PageBytes& bytes, const Task& task) {
  if (bytes.size_bytes() < task.range.length_bytes) {
    fail(make_error(EIO, "{}: ends at byte {}", task.file->path(),
                    task.range.offset + bytes.size_bytes()));
    return;
  }
  if (task.lists != nullptr) return take_run(bytes, task);
  for (size_t i = task.first; i < task.end; ++i) {
    const Piece& piece = task.batch->pieces[i];
    size_t slack_bytes = 0;
    const auto here = contiguous(bytes, task, piece, &slack_bytes);
    if (!take_piece(piece, here, slack_bytes)) return;
  }
}

void ListLoader::take_run(const PageBytes& bytes, const Task& task) {
  const semiext::ListRuns& runs = task.batch->runs[place_of(task.side)];
  read_run(task.side, runs.owners_of(*task.lists), task.range.offset, bytes.pieces());
}

void ListLoader::read_run(EdgeSide side, std::span<const VertexId> owners, uint64_t begin,
                          std::span<const PageBytes::Piece> pages) {
  const auto give = [&](VertexId owner, std::span<const VertexId> neighbours) {
    ++list_count_;
    sink_.on_list(owner, ListView{.owner = owner, .side = side, .neighbours = neighbours});
  };
  const Graph::Side& from = graph_.side(side);
  if (run_reader_.read(*from.index, owners, begin, pages, give)) return;
  fail_damaged(from.lists->path(), run_reader_.damaged_offset(), run_reader_.damaged_owner());
}

void ListLoader::take_runs_from_memory(Batch& batch) {
  is_giving_ = true;
  for (const EdgeSide side : {EdgeSide::kOut, EdgeSide::kIn}) {
    semiext::ListRuns& runs = batch.runs[place_of(side)];
    runs.close();
    for (const semiext::ListRuns::Run& run : runs.runs()) {
      if (error_) break;
      const Graph::Side& from = graph_.side(side);
      const PageBytes::Piece bytes(from.lists_memory + run.begin,
                                   from.lists->size_bytes() - run.begin);
      read_run(side, runs.owners_of(run), run.begin, {&bytes, 1});
    }
  }
  is_giving_ = false;
  begun_count_ = 0;
  begun_run_lists_ = 0;
  begun_bytes_ = 0;
  free_batches_.push_back(&batch);
}

// The piece's bytes: in place if they are on one page, else copied.
std::span<const std::byte> ListLoader::contiguous(const PageBytes& bytes, const Task& task,
                                                  const Piece& piece, size_t* slack_bytes) {
  const std::span<const PageBytes::Piece> pages = bytes.pieces();
  const uint64_t at = piece.offset - task.range.offset;
  if (pages.size() == 1) {
    *slack_bytes = pages[0].size() - at - piece.length_bytes;
    return pages[0].subspan(at, piece.length_bytes);
  }
  const uint64_t page = page_index_of(piece.offset) - page_index_of(task.range.offset);
  const uint64_t in_page = page == 0 ? at : piece.offset % kListPageBytes;
  if (in_page + piece.length_bytes <= pages[page].size()) {
    *slack_bytes = pages[page].size() - in_page - piece.length_bytes;
    return pages[page].subspan(in_page, piece.length_bytes);
  }
  resize_for_overwrite(bytes_, piece.length_bytes + kDecodeSlack);
  uint64_t done = 0;
  for (uint64_t p = page, begin = in_page; done < piece.length_bytes; ++p, begin = 0) {
    const uint64_t count = std::min<uint64_t>(piece.length_bytes - done, pages[p].size() - begin);
    std::memcpy(bytes_.data() + done, pages[p].data() + begin, count);
    done += count;
  }
  *slack_bytes = kDecodeSlack;
  return {bytes_.data(), piece.length_bytes};
}

// False: the list is damaged.
bool ListLoader::take_piece(const Piece& piece, std::span<const std::byte> bytes,
                            size_t slack_bytes) {
  Join* const join = piece.join;
  if (join != nullptr && piece.is_weights) {
    if (!take_weights(piece, bytes, slack_bytes)) return false;
  } else {
    std::span<const VertexId> list;
    if (!decode(piece, bytes, slack_bytes, scratch_[0], &list)) {
      fail_damaged(piece.file->path(), piece.offset, piece.ask.owner);
      return false;
    }
    if (join == nullptr) {
      give(piece.ask, {.neighbours = list});
      return true;
    }
    join->lists[join->ask.side == EdgeSide::kBoth && piece.ask.side == EdgeSide::kIn ? 1 : 0]
        .assign(list.begin(), list.end());
    hold(*join, list.size_bytes());
  }
  if (--join->pending == 0) give_joined(*join);
  return true;
}

// False: they are damaged.
bool ListLoader::take_weights(const Piece& piece, std::span<const std::byte> bytes,
                              size_t slack_bytes) {
  Join& join = *piece.join;
  join.weights.resize(piece.ask.count);
  hold(join, join.weights.size() * sizeof(double));
  return decode_weights(piece.ask, join.weights, bytes.data(), slack_bytes);
}

bool ListLoader::decode_weights(const Ask& ask, std::span<double> weights, const std::byte* codes,
                                size_t slack_bytes) {
  const Graph::Side& side = graph_.side(ask.side);
  const uint64_t first = side.index->first_arc(ask.owner) + ask.first;
  if (side.weight_table->decode(first, weights, reinterpret_cast<const uint8_t*>(codes),
                                slack_bytes)) {
    return true;
  }
  fail_damaged(side.weights->path(), side.weight_table->range(first, weights.size()).offset,
               ask.owner);
  return false;
}

bool ListLoader::decode(const Piece& piece, std::span<const std::byte> bytes, size_t slack_bytes,
                        std::vector<VertexId>& scratch, std::span<const VertexId>* list) {
  const auto* const data = reinterpret_cast<const uint8_t*>(bytes.data());
  const Ask& ask = piece.ask;
  const uint64_t limit = graph_.vertex_count();
  if (is_raw_ && reinterpret_cast<uintptr_t>(data) % 4 == 0) {
    *list = {reinterpret_cast<const VertexId*>(data), ask.count};
    VertexId largest = 0;
    for (const VertexId v : *list) largest = std::max(largest, v);
    return largest < limit;
  }
  const uint64_t count = is_raw_ ? ask.count : graph_.side(ask.side).index->degree(ask.owner);
  resize_for_overwrite(scratch, count);
  if (!graph_.codec().decode({data, bytes.size()}, {scratch.data(), count}, limit, slack_bytes)) {
    return false;
  }
  *list =
      std::span<const VertexId>(scratch.data(), count).subspan(is_raw_ ? 0 : ask.first, ask.count);
  return true;
}

// ---- giving

void ListLoader::give(const Ask& ask, const ListView& view) {
  ListView list = view;
  list.owner = ask.owner;
  list.side = ask.side;
  list.first = ask.first;
  ++list_count_;
  sink_.on_list(ask.running, list);
}

// A part has come, and stays until the others have.
void ListLoader::hold(Join& join, uint64_t bytes) {
  join.bytes += bytes;
  joined_bytes_ += bytes;
}

void ListLoader::give_joined(Join& join) {
  joined_bytes_ -= std::exchange(join.bytes, 0);
  Ask ask = join.ask;
  if (ask.side != EdgeSide::kBoth) {
    ask.first = std::min(ask.first, graph_.degree(ask.owner, ask.side));
  }
  give(ask, {.neighbours = join.lists[0], .in_neighbours = join.lists[1], .weights = join.weights});
  // Thousands of joins wait at once; each would come to be as large as the longest list.
  const auto drop_long = [](auto& values) {
    // `values = {}` would keep the memory.
    if (values.capacity() * sizeof(values[0]) > kJoinBytesKept) {
      values = std::remove_reference_t<decltype(values)>();
    }
  };
  for (std::vector<VertexId>& list : join.lists) drop_long(list);
  drop_long(join.weights);
  free_joins_.push_back(&join);
}

// A list of a graph in memory, or an empty list. After fail() it is not to be given.
ListView ListLoader::view_in_memory(const Ask& asked) {
  Ask ask = asked;
  ListView list{.owner = ask.owner, .side = ask.side};
  if (ask.side == EdgeSide::kBoth) {
    list.neighbours = from_memory(ask, EdgeSide::kOut, scratch_[0]);
    list.in_neighbours = from_memory(ask, EdgeSide::kIn, scratch_[1]);
  } else {
    const Graph::Side& side = graph_.side(ask.side);
    if (ask.first > 0) ask.first = std::min(ask.first, side.index->degree(ask.owner));
    list.neighbours = from_memory(ask, ask.side, scratch_[0]);
    if (ask.weights && side.weights_memory != nullptr && !list.neighbours.empty()) {
      weights_.resize(list.neighbours.size());
      const uint64_t first = side.index->first_arc(ask.owner) + ask.first;
      decode_weights(ask, weights_,
                     side.weights_memory + side.weight_table->range(first, weights_.size()).offset,
                     kDecodeSlack);
      list.weights = weights_;
    }
  }
  list.first = ask.first;
  return list;
}

std::span<const VertexId> ListLoader::from_memory(const Ask& ask, EdgeSide which,
                                                  std::vector<VertexId>& scratch) {
  const Graph::Side& side = graph_.side(which);
  const uint64_t degree = side.index->degree(ask.owner);
  if (degree == 0) return {};
  const uint64_t first = std::min(ask.first, degree);
  const uint64_t count = std::min(ask.count, degree - first);
  if (count == 0) return {};
  if (is_raw_) {
    return raw_from_memory(side, ask.owner).subspan(first, count);
  }
  const graphfmt::ListPlace list = place(side, which, ask.owner);
  resize_for_overwrite(scratch, degree);
  const auto* const data = reinterpret_cast<const uint8_t*>(side.lists_memory + list.offset);
  if (!graph_.codec().decode({data, list.length_bytes}, {scratch.data(), degree},
                             graph_.vertex_count(), kDecodeSlack)) {
    fail_damaged(side.lists->path(), list.offset, ask.owner);
    return {};
  }
  return std::span<const VertexId>(scratch.data(), degree).subspan(first, count);
}

}  // namespace graphlane
