// kv_replay: a trace of delta-PageRank's gets, recorded once, and given to caches and stores. It
// prints one JSON object.
//
//   kv_replay record GRAPH TRACE PORTION [ROUNDS]              GRAPH: of the format pages
//   kv_replay caches GRAPH TRACE SHARE                         hits of each policy, and of Belady, in a share of the bytes
//   kv_replay pages GRAPH TRACE SHARE DEPTH FRAMES             requests to the devices per get
//   kv_replay hits GRAPH                                       nanoseconds of a get from the cache
//   kv_replay store KIND DIR TRACE CACHE_BYTES THREADS         seconds; KIND: none, pages, csr; lmdb, rocksdb if built with them
//   kv_replay load KIND GRAPH DIR raw|encoded                  the same lists as another store
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <thread>

#include "adapters/kv/kv_graph.h"
#include "adapters/kv/maiter/run.h"
#include "experiments/costs/kv/belady.h"
#include "experiments/costs/kv/stores.h"
#include "graphfmt/pages/store_writer.h"

namespace graphlane::replay {
using graphfmt::Direction;
namespace {

using kv::CacheOptions;
using kv::HotnessKind;
using kv::KvGraph;
using kv::KvReader;
using kv::PinnedValue;
using kv::PolicyKind;

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class Recorder final : public maiter::GetTrace {
 public:
  void get(maiter::VertexId v, float priority, float accumulated) override {
    gets.push_back({v, priority, accumulated});
  }
  std::vector<Get> gets;
};

Outcome<void> record(const std::string& path, const std::string& to, double portion,
                     uint64_t rounds) {
  auto graph = KvGraph::open(path, {.in_memory = true}, false);
  if (!graph) return graph.error();
  const uint64_t n = (*graph)->vertex_count();
  const maiter::PageRank op{.vertex_count = n};
  std::vector<double> values(n), deltas(n);
  maiter::StateTable table(values, deltas, true);
  maiter::begin_state(op, table);
  WorkerPool pool(1);
  Recorder recorder;
  constexpr double kTolerance = 1e-6;
  maiter::Engine<maiter::PageRank> engine(**graph, op, table, 0, n, pool,
                                          {.portion = portion, .trace = &recorder});
  uint64_t round = 0;
  for (; round < rounds; ++round) {
    const auto went_on = engine.run_round();
    if (!went_on) return went_on.error();
    if (!*went_on || engine.left() <= kTolerance) break;
  }
  // Vertices without a list are no gets of a store.
  std::vector<bool> has_list(n);
  KvReader reader((*graph)->store(Direction::kOut), {});
  (void)reader.for_each(0, [&](uint64_t key, std::span<const uint8_t>) {
    has_list[key] = true;
    return Outcome<void>();
  });
  std::erase_if(recorder.gets, [&](const Get& get) { return !has_list[get.vertex]; });
  fmt::print("{{\"gets\": {}, \"rounds\": {}, \"left\": {:.3g}}}\n", recorder.gets.size(), round,
             engine.left());
  return write_trace(recorder.gets, to);
}

// The bytes of each value.
Outcome<std::vector<uint32_t>> value_sizes(KvGraph& graph) {
  std::vector<uint32_t> sizes(graph.vertex_count());
  KvReader reader(graph.store(Direction::kOut), {.depth = 32});
  const auto done = reader.for_each(0, [&](uint64_t key, std::span<const uint8_t> value) {
    sizes[key] = static_cast<uint32_t>(value.size());
    return Outcome<void>();
  });
  if (!done) return done.error();
  return sizes;
}

Outcome<void> caches(const std::string& path, const std::string& trace_path, double share) {
  auto graph = KvGraph::open(path, {}, false);
  if (!graph) return graph.error();
  const auto trace = read_trace(trace_path);
  if (!trace) return trace.error();
  const auto sizes = value_sizes(**graph);
  if (!sizes) return sizes.error();
  uint64_t bytes = 0;
  for (const uint32_t size : *sizes) bytes += size;
  const auto budget = static_cast<uint64_t>(share * static_cast<double>(bytes));
  std::vector<uint8_t> content(*std::max_element(sizes->begin(), sizes->end()));
  fmt::print("{{\"gets\": {}, \"budget\": {}", trace->size(), budget);
  const std::vector<float> counts = gets_so_far(*trace);
  enum From { kPriority, kAccumulated, kGets };
  const auto run = [&](const char* name, CacheOptions options, From from) {
    options.budget_bytes = budget;
    kv::ValueCache cache(options);
    uint64_t hits = 0;
    for (size_t i = 0; i < trace->size(); ++i) {
      const Get& get = (*trace)[i];
      PinnedValue value;
      const float hotness = from == kGets          ? counts[i]
                            : from == kAccumulated ? get.accumulated
                                                   : get.priority;
      if (cache.find(get.vertex, hotness, value)) {
        ++hits;
      } else {
        cache.insert(get.vertex, hotness, {content.data(), (*sizes)[get.vertex]}, value);
      }
    }
    fmt::print(", \"{}\": {:.4f}", name,
               static_cast<double>(hits) / static_cast<double>(trace->size()));
  };
  run("hot", {.hotness = HotnessKind::kLast, .per_byte = true}, kGets);
  run("hot_last", {.hotness = HotnessKind::kLast}, kPriority);
  run("hot_cached", {.hotness = HotnessKind::kAccumulated}, kPriority);
  run("hot_accumulated", {.hotness = HotnessKind::kLast}, kAccumulated);
  run("lru", {.policy = PolicyKind::kLru}, kPriority);
  run("fifo", {.policy = PolicyKind::kFifo}, kPriority);
  // The threshold is the median priority of the trace.
  std::vector<float> priorities;
  for (const Get& get : *trace) priorities.push_back(get.priority);
  std::nth_element(priorities.begin(),
                   priorities.begin() + static_cast<long>(priorities.size() / 2), priorities.end());
  const float threshold = priorities[priorities.size() / 2];
  run("lru_threshold", {.policy = PolicyKind::kLru, .threshold = threshold}, kPriority);
  run("fifo_threshold", {.policy = PolicyKind::kFifo, .threshold = threshold}, kPriority);
  run("sieve", {.policy = PolicyKind::kSieve}, kPriority);
  run("s3fifo", {.policy = PolicyKind::kS3Fifo}, kPriority);
  // Costs as much as in ValueCache.
  const auto cost = [&](uint32_t v) -> uint64_t { return kv::cache_cost((*sizes)[v]); };
  const uint64_t hits = belady_hits(*trace, static_cast<uint32_t>(sizes->size()), budget, cost);
  fmt::print(", \"belady\": {:.4f}}}\n",
             static_cast<double>(hits) / static_cast<double>(trace->size()));
  return {};
}

Outcome<void> pages(const std::string& path, const std::string& trace_path, double share,
                    uint32_t depth, uint32_t frames) {
  auto sized = KvGraph::open(path, {}, false);
  if (!sized) return sized.error();
  const uint64_t bytes = (*sized)->store(Direction::kOut).pages().head().value_bytes;
  const auto budget = static_cast<uint64_t>(share * static_cast<double>(bytes));
  auto graph = KvGraph::open(
      path, {.cache = {.budget_bytes = budget, .hotness = HotnessKind::kLast, .per_byte = true}},
      false);
  if (!graph) return graph.error();
  const auto trace = read_trace(trace_path);
  if (!trace) return trace.error();
  KvReader reader((*graph)->store(Direction::kOut), {.frames = frames, .depth = depth});
  const std::vector<float> hotness = gets_so_far(*trace);
  const auto begin = std::chrono::steady_clock::now();
  for (size_t i = 0; i < trace->size(); ++i) {
    const auto value = reader.get((*trace)[i].vertex, hotness[i]);
    if (!value) return value.error();
  }
  const kv::KvCounts counts = reader.counts();
  const auto part = [&](uint64_t count) {
    return static_cast<double>(count) / static_cast<double>(trace->size());
  };
  fmt::print(
      "{{\"gets\": {}, \"hits\": {:.4f}, \"requests\": {:.6f}, \"pages\": {:.6f}, \"seconds\": "
      "{:.3f}}}\n",
      trace->size(), part(counts.cache_hits), part(counts.buffer.requests),
      part(counts.buffer.pages), seconds_since(begin));
  return {};
}

Outcome<void> hits(const std::string& path) {
  auto graph = KvGraph::open(
      path, {.cache = {.budget_bytes = uint64_t{4} << 30, .hotness = HotnessKind::kLast}}, false);
  if (!graph) return graph.error();
  KvReader reader((*graph)->store(Direction::kOut), {.depth = 16});
  std::vector<uint32_t> keys;
  (void)reader.for_each(0, [&](uint64_t key, std::span<const uint8_t>) {
    keys.push_back(static_cast<uint32_t>(key));
    return Outcome<void>();
  });
  for (const uint32_t key : keys) (void)reader.get(key, 1);
  uint64_t random = 88172645463325252ull, found = 0, many = 0;
  constexpr int kGets = 5'000'000;
  // A set that fits into the processor's caches, and all keys at random.
  for (const size_t set : {std::min<size_t>(1000, keys.size()), keys.size()}) {
    const std::clock_t begin = std::clock();  // of the processor: others may use it too
    for (int i = 0; i < kGets; ++i) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      found += (*reader.get(keys[random % set], 1)).bytes().size() > 0;
    }
    const std::clock_t one_by_one = std::clock();
    std::vector<uint64_t> next(1 << 12);
    for (int i = 0; i < kGets; i += 1 << 12) {
      for (uint64_t& key : next) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        key = keys[random % set];
      }
      (void)reader.multi_get(next, {}, [&](size_t, PinnedValue value) -> Outcome<void> {
        many += value.bytes().size() > 0;
        return {};
      });
    }
    const auto nanoseconds = [](std::clock_t clocks) {
      return static_cast<double>(clocks) / CLOCKS_PER_SEC / kGets * 1e9;
    };
    fmt::print("{{\"keys\": {}, \"nanoseconds\": {:.1f}, \"many_at_once\": {:.1f}}}\n", set,
               nanoseconds(one_by_one - begin), nanoseconds(std::clock() - one_by_one));
  }
  return found == 2 * uint64_t{kGets} && many >= found
             ? Outcome<void>()
             : make_error(EIO, "{}: a list is empty", path);
}

Outcome<void> load(const std::string& kind, const std::string& path, const std::string& dir,
                   bool raw) {
  auto graph = KvGraph::open(path, {}, false);
  if (!graph) return graph.error();
  auto store = StoreBuilder::create(kind, dir, (*graph)->vertex_count());
  if (!store) return store.error();
  KvReader reader((*graph)->store(Direction::kOut), {.depth = 32});
  std::vector<uint32_t> scratch;
  const auto begin = std::chrono::steady_clock::now();
  const auto done =
      reader.for_each(0, [&](uint64_t key, std::span<const uint8_t> value) -> Outcome<void> {
        if (!raw) return (*store)->put(key, value);
        const auto list = (*graph)->decode(key, value, scratch);
        if (!list) return list.error();
        return (*store)->put(key, {reinterpret_cast<const uint8_t*>(list->neighbours.data()),
                                   list->neighbours.size_bytes()});
      });
  if (!done) return done;
  if (auto finished = (*store)->finish(); !finished) return finished;
  fmt::print("{{\"seconds\": {:.2f}}}\n", seconds_since(begin));
  return {};
}

// Each thread takes every n-th block of 1024 gets, and adds up the first and last byte of each
// value.
Outcome<void> replay(const std::string& kind, const std::string& dir, const std::string& trace_path,
                     uint64_t cache_bytes, unsigned threads) {
  const auto trace = read_trace(trace_path);
  if (!trace) return trace.error();
  const std::vector<float> hotness = gets_so_far(*trace);
  std::vector<uint64_t> keys;
  for (const Get& get : *trace) keys.push_back(get.vertex);
  auto store = OpenStore::open(kind, dir, cache_bytes, threads);
  if (!store) return store.error();
  std::vector<uint64_t> sums(threads * 16);
  std::vector<std::optional<Error>> errors(threads);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> all;
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      auto session = (*store)->session();
      for (size_t block = t; block * 1024 < trace->size(); block += threads) {
        const size_t first = block * 1024, count = std::min<size_t>(1024, keys.size() - first);
        const auto done = session->gets(
            std::span(keys).subspan(first, count), std::span(hotness).subspan(first, count),
            [&](std::span<const uint8_t> value) {
              sums[t * 16] += value.empty() ? 0 : value.front() + value.back() + value.size();
            });
        if (!done) {
          errors[t] = done.error();
          return;
        }
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  const double seconds = seconds_since(begin);
  uint64_t sum = 0;
  for (unsigned t = 0; t < threads; ++t) {
    if (errors[t]) return *errors[t];
    sum += sums[t * 16];
  }
  fmt::print(
      "{{\"store\": \"{}\", \"gets\": {}, \"seconds\": {:.3f}, \"gets_a_second\": {:.0f}, \"sum\": "
      "{}}}\n",
      kind, trace->size(), seconds, static_cast<double>(trace->size()) / seconds, sum);
  return {};
}

Outcome<void> run(const std::vector<std::string>& words) {
  const auto number = [&](size_t at) { return std::strtod(words[at].c_str(), nullptr); };
  const auto is = [&](const char* name, size_t count) {
    return !words.empty() && words[0] == name && words.size() == count;
  };
  if (is("record", 4)) return record(words[1], words[2], number(3), ~uint64_t{0});
  if (is("record", 5)) {
    return record(words[1], words[2], number(3), static_cast<uint64_t>(number(4)));
  }
  if (is("caches", 4)) return caches(words[1], words[2], number(3));
  if (is("pages", 6)) {
    return pages(words[1], words[2], number(3), static_cast<uint32_t>(number(4)),
                 static_cast<uint32_t>(number(5)));
  }
  if (is("hits", 2)) return hits(words[1]);
  if (is("load", 5)) return load(words[1], words[2], words[3], words[4] == "raw");
  if (is("store", 6)) {
    return replay(words[1], words[2], words[3], static_cast<uint64_t>(number(4)),
                  static_cast<unsigned>(number(5)));
  }
  return make_error(EINVAL, "usage: see the head of kv_replay.cc");
}

}  // namespace
}  // namespace graphlane::replay

int main(int argc, char** argv) {
  const auto done = graphlane::replay::run({argv + 1, argv + argc});
  if (done) return 0;
  fmt::print(stderr, "kv_replay: {}\n", done.error().text);
  return 1;
}
