// ListLoader: the lists that one worker's vertices ask for, brought into memory and decoded.
//
//   ask_own(v)                 v's own list joins the run of those before (list_runs.h)
//   ask(list) …                gathered
//   begin()                    put in the order of the files; lists on the same page or on adjacent ones
//                              are one range. A range, or a run, is one task of the page reader
//   wait()                     tasks run on the pages where they lie: each list is decoded and given
//                              to on_list()
//
// A graph in memory has no ranges: begin() gives each list out at once, those of runs decoded
// together.
//
// Merging here spares the page reader the work for each list (FlashGraph §3.6).
//
// Memory: at most `in_flight_bytes_max` of begun ranges and of lists that wait for another part, 4
// bytes a list of a run, 100 bytes any other list that was asked for, and the largest list.
// Threads: one loader is one thread's.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "adapters/graph/graph.h"
#include "adapters/semiext/list_runs.h"

namespace graphlane {

inline constexpr uint64_t kWholeList = ~uint64_t{0};

// A vertex's neighbours, ascending. The spans are valid until on_list() returns.
struct ListView {
  VertexId owner = kNoVertex;
  EdgeSide side = EdgeSide::kOut;  // as asked for
  uint64_t first = 0;              // the place of neighbours[0] in the list; not 0 of a part
  std::span<const VertexId> neighbours = {};     // kBoth: of out-arcs
  std::span<const VertexId> in_neighbours = {};  // kBoth of a directed graph
  std::span<const double> weights = {};          // of neighbours, if asked for; empty: each is 1
};

class ListLoader {
 public:
  class Sink {
   public:
    // `running`: the vertex that asked.
    virtual void on_list(VertexId running, const ListView& list) = 0;

   protected:
    ~Sink() = default;
  };

  struct Ask {
    VertexId running = 0;
    VertexId owner = 0;
    EdgeSide side = EdgeSide::kOut;
    bool weights = false;  // not of kBoth
    // of a part: the neighbours [first, first + count), as far as there are any
    uint64_t first = 0;
    uint64_t count = kWholeList;
  };

  // The sink outlives the loader, as does the graph.
  ListLoader(const Graph& graph, Sink& sink, uint64_t in_flight_bytes_max);
  ~ListLoader();  // waits for what was begun, and drops it

  void ask(const Ask& ask) {
    asks_while_giving_ |= is_giving_;
    if (is_in_memory()) {
      empty_.push_back(ask);
    } else {
      ask_device(ask);
    }
  }
  // As ask(), for all of the list of the vertex that asks, without weights. Cheapest in the order
  // of the file, or backwards.
  void ask_own(VertexId owner, EdgeSide side) {
    if (makes_runs_ && (side != EdgeSide::kBoth || !is_directed_)) {
      asks_while_giving_ |= is_giving_;
      const size_t place = side == EdgeSide::kIn && is_directed_ ? 1 : 0;
      if (asked_runs_[place].add(*graph_.side(side).index, owner, variant_.page_bytes)) return;
    }
    ask({.running = owner, .owner = owner, .side = side});
  }
  bool is_in_memory() const { return queue_ == nullptr; }
  // Whether give_from_memory() would give lists of a graph in memory.
  bool has_in_memory() const { return is_in_memory() && !empty_.empty(); }
  // Whether a list was asked for in on_list(): the program may keep something of each vertex that
  // waits.
  bool asks_while_giving() const { return asks_while_giving_; }
  // Calls give(running, list) for every list that needs no device and is in no run: of a graph in
  // memory, and empty ones; also for those that give() asks for. A part of begin(), without a
  // virtual call.
  template <class Give>
  void give_from_memory(const Give& give);
  // Lists that were requested and not begun.
  bool has_asked() const {
    return !empty_.empty() || !asked_.empty() ||
           asked_runs_[0].count() + asked_runs_[1].count() > 0;
  }
  size_t asked_count() const {
    return asked_.size() + empty_.size() + asked_runs_[0].list_count() +
           asked_runs_[1].list_count();
  }
  // Whether so much was asked for that begin() should be called.
  bool should_begin() const {
    return asked_.size() + empty_.size() + asked_runs_[0].count() + asked_runs_[1].count() >=
               kBeginCount ||
           asked_bytes() >= begin_bytes_ ||
           asked_runs_[0].list_count() + asked_runs_[1].list_count() >=
               (asks_while_giving_ ? kBeginCount : kBeginListsMax);
  }
  // Lists that were begun and not given; those of them that are in no run.
  size_t begun_count() const { return begun_count_; }
  size_t begun_single_count() const { return begun_count_ - begun_run_lists_; }
  bool has_room() const {
    return asked_bytes() + begun_bytes_ + joined_bytes_ < in_flight_bytes_max_;
  }

  // Must not be called from within on_list().
  void begin();
  // Gives at least one list. False: none has been begun.
  bool wait();

  // The first list that could not be read, or was damaged: one line that names the file. No list is
  // given from then on.
  const std::optional<Error>& error() const { return error_; }

  uint64_t list_count() const { return list_count_; }    // given so far
  uint64_t range_count() const { return range_count_; }  // that they were read by

 private:
  // This many requests are begun at a time, and this many lists of runs. The first also for lists
  // of runs where a program asks for more lists in on_list().
  static constexpr size_t kBeginCount = 1024;
  static constexpr size_t kBeginListsMax = 64 << 10;
  static constexpr uint64_t kBeginBytesMax = 1 << 20;

  // A list with parts from several files.
  struct Join {
    Ask ask;
    uint32_t pending = 0;
    uint64_t bytes = 0;  // of what has come
    std::vector<VertexId> lists[2];
    std::vector<double> weights;
  };
  // The bytes of one file that one list needs.
  struct Piece {
    uint64_t offset = 0;
    uint64_t length_bytes = 0;
    const OpenPagedFile* file = nullptr;
    Ask ask;  // side: which of the two, never kBoth
    bool is_weights = false;
    Join* join = nullptr;  // nullptr: this is all of it
  };
  struct Batch;
  // One range: pieces [first, end) of a batch, or a run of its lists.
  struct Task final : PageTask {
    void run(const PageBytes& bytes) noexcept override;
    void failed(int error) noexcept override;
    void ended();
    ListLoader* loader = nullptr;
    Batch* batch = nullptr;
    const OpenPagedFile* file = nullptr;
    size_t first = 0;
    size_t end = 0;
    uint64_t list_bytes = 0;
    ByteRange range;
    const semiext::ListRuns::Run* lists = nullptr;  // nullptr: pieces
    EdgeSide side = EdgeSide::kOut;                 // of the run
  };
  struct Batch {
    std::vector<Piece> pieces;
    semiext::ListRuns runs[2];
    std::vector<Task> tasks;
    size_t pending = 0;
  };
  // Where the list behind the last one of a file begins: lists are mostly asked for in order.
  struct Cursor {
    uint64_t vertex = ~uint64_t{0};
    uint64_t offset = 0;
  };

  void ask_device(const Ask& asked);
  void add_piece(const Ask& ask, bool is_weights, Join* join);
  graphfmt::ListPlace place(const Graph::Side& side, EdgeSide which, VertexId owner);
  ListView view_in_memory(const Ask& ask);
  std::span<const VertexId> from_memory(const Ask& ask, EdgeSide side,
                                        std::vector<VertexId>& scratch);
  std::span<const VertexId> raw_from_memory(const Graph::Side& side, VertexId owner);
  uint64_t asked_bytes() const {
    return asked_bytes_ + asked_runs_[0].bytes() + asked_runs_[1].bytes();
  }
  void make_tasks(Batch& batch);
  void make_run_tasks(Batch& batch);
  void widen_to_blocks(Batch& batch) const;
  void finish(Batch& batch);
  void take(const PageBytes& bytes, const Task& task);
  void take_run(const PageBytes& bytes, const Task& task);
  void read_run(EdgeSide side, std::span<const VertexId> owners, uint64_t begin,
                std::span<const PageBytes::Piece> pages);
  void take_runs_from_memory(Batch& batch);
  std::span<const std::byte> contiguous(const PageBytes& bytes, const Task& task,
                                        const Piece& piece, size_t* slack_bytes);
  bool take_piece(const Piece& piece, std::span<const std::byte> bytes, size_t slack_bytes);
  bool take_weights(const Piece& piece, std::span<const std::byte> bytes, size_t slack_bytes);
  bool decode_weights(const Ask& ask, std::span<double> weights, const std::byte* codes,
                      size_t slack_bytes);
  bool decode(const Piece& piece, std::span<const std::byte> bytes, size_t slack_bytes,
              std::vector<VertexId>& scratch, std::span<const VertexId>* list);
  void give(const Ask& ask, const ListView& list);
  void hold(Join& join, uint64_t bytes);
  void give_joined(Join& join);
  void fail(Error error);
  void fail_damaged(const std::string& path, uint64_t offset, VertexId owner);

  const Graph& graph_;
  const bool is_directed_;
  const bool is_raw_;
  const ReadVariant variant_;
  Sink& sink_;
  const uint64_t in_flight_bytes_max_;
  const uint64_t begin_bytes_;
  const bool makes_runs_;             // of vertices' own lists
  std::unique_ptr<PageQueue> queue_;  // none: the graph is in memory

  std::vector<Piece> asked_;
  uint64_t asked_bytes_ = 0;  // of them
  std::vector<Ask> empty_;    // no list, or the graph is in memory: nothing to read
  semiext::ListRuns asked_runs_[2];
  semiext::RunReader run_reader_;
  bool is_giving_ = false;
  bool asks_while_giving_ = false;
  uint64_t begun_bytes_ = 0;
  uint64_t joined_bytes_ = 0;  // decoded, of joins that wait for another part
  size_t begun_count_ = 0;
  size_t begun_run_lists_ = 0;
  Cursor cursors_[2];
  std::vector<std::unique_ptr<Batch>> batches_;
  std::vector<Batch*> free_batches_;
  std::deque<Join> joins_;
  std::vector<Join*> free_joins_;
  std::vector<VertexId> scratch_[2];
  std::vector<std::byte> bytes_;
  std::vector<double> weights_;
  uint64_t list_count_ = 0;
  uint64_t range_count_ = 0;
  std::optional<Error> error_;
  // Made in advance: where there is no memory, there is none for the line that says so.
  Error no_memory_;
};

// The whole list of a raw file in memory: where it lies.
inline std::span<const VertexId> ListLoader::raw_from_memory(const Graph::Side& side,
                                                             VertexId owner) {
  const uint64_t degree = side.index->degree(owner);
  Cursor& cursor = cursors_[&side == &graph_.side(EdgeSide::kOut) ? 0 : 1];
  const uint64_t offset = cursor.vertex == owner ? cursor.offset : side.index->offset(owner);
  cursor = {.vertex = uint64_t{owner} + 1, .offset = offset + degree * sizeof(VertexId)};
  return {reinterpret_cast<const VertexId*>(side.lists_memory + offset), degree};
}

template <class Give>
void ListLoader::give_from_memory(const Give& give) {
  is_giving_ = true;
  for (size_t i = 0; i < empty_.size() && !error_; ++i) {
    const Ask ask = empty_[i];
    if (is_raw_ && ask.side != EdgeSide::kBoth && !ask.weights && ask.first == 0 &&
        ask.count == kWholeList) {
      ++list_count_;
      give(ask.running, ListView{.owner = ask.owner,
                                 .side = ask.side,
                                 .neighbours = raw_from_memory(graph_.side(ask.side), ask.owner)});
      continue;
    }
    const ListView list = view_in_memory(ask);
    if (error_) break;
    ++list_count_;
    give(ask.running, list);
  }
  is_giving_ = false;
  empty_.clear();
}

}  // namespace graphlane
