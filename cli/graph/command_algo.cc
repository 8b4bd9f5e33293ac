// algo: computes an algorithm on a stored graph, by the engine of the graph's format.
#include <algorithm>
#include <bit>
#include <charconv>

#include "adapters/graph/result_writer.h"
#include "adapters/hybrid/hybrid.h"
#include "adapters/kv/cache/eviction.h"
#include "adapters/kv/maiter/maiter.h"
#include "adapters/semiext/semiext.h"
#include "cli/command.h"
#include "graphfmt/graph_directory.h"
#include "iomgr/base/size.h"

namespace graphlane::cli {
namespace {

constexpr const AlgorithmEngine* kAlgorithmEngines[] = {&semiext::kEngine, &hybrid::kEngine,
                                                        &maiter::kEngine};
constexpr char kAnyEngine[] = "auto";

struct AlgoCommand {
  std::string algorithm, graph;
  std::string engine = kAnyEngine;
  std::vector<std::string> sources;
  std::optional<uint64_t> iterations;
  std::optional<double> tolerance;
  double damping = 0.85;
  std::string dangling = "uniform";
  uint32_t threads = 0;
  std::optional<uint64_t> cache_bytes;
  std::optional<uint64_t> value_memory;
  std::optional<uint64_t> gap_bytes;
  std::string updates;
  bool in_memory = false;
  std::string model;
  KvRunOptions kv;
  std::vector<std::string> kv_given;  // options of the engine kv only
  std::string out;
  bool as_json = false;
  bool explains = false;
  std::string merge = "lists";
  std::string order = "id";
  std::optional<uint64_t> page_bytes;
};

const AlgorithmEngine* engine_named(std::string_view name) {
  for (const AlgorithmEngine* engine : kAlgorithmEngines) {
    if (engine->name == name) return engine;
  }
  return nullptr;
}

bool has_algorithm(const AlgorithmEngine& engine, std::string_view algorithm) {
  return std::ranges::any_of(engine.algorithms,
                             [&](const AlgorithmInfo& info) { return info.name == algorithm; });
}

std::vector<std::string> engine_words() {
  std::vector<std::string> words = {kAnyEngine};
  for (const AlgorithmEngine* engine : kAlgorithmEngines) words.emplace_back(engine->name);
  return words;
}

// The algorithms of all engines, each once.
std::vector<AlgorithmInfo> all_algorithms() {
  std::vector<AlgorithmInfo> all;
  for (const AlgorithmEngine* engine : kAlgorithmEngines) {
    for (const AlgorithmInfo& info : engine->algorithms) {
      if (std::ranges::none_of(
              all, [&](const AlgorithmInfo& known) { return known.name == info.name; })) {
        all.push_back(info);
      }
    }
  }
  return all;
}

std::string names_of(std::span<const AlgorithmInfo> algorithms) {
  std::string names;
  for (const AlgorithmInfo& info : algorithms) {
    names += (names.empty() ? "" : ", ") + std::string(info.name);
  }
  return names;
}

struct EngineOption {
  std::string option;
  std::string engine;
};

// An option that the chosen engine would ignore; empty: there is none.
EngineOption option_of_another_engine(const AlgoCommand& options, const AlgorithmEngine& chosen) {
  const bool is_kv = &chosen == &maiter::kEngine, is_semiext = &chosen == &semiext::kEngine;
  if (!options.kv_given.empty() && !is_kv) return {options.kv_given.front(), "kv"};
  if (!options.model.empty() && (is_kv || is_semiext)) return {"--model", "hybrid"};
  if (!options.updates.empty() && (is_kv || is_semiext)) return {"--updates", "hybrid"};
  if (options.value_memory && (is_kv || is_semiext)) return {"--value-memory", "hybrid"};
  if (options.gap_bytes && is_kv) return {"--gap", "semiext or hybrid"};
  if (options.explains && is_semiext) return {"--explain", "hybrid or kv"};
  if (is_semiext) return {};
  if (options.merge != "lists") return {"--merge", "semiext"};
  if (options.order != "id") return {"--order", "semiext"};
  return options.page_bytes ? EngineOption{"--page-size", "semiext"} : EngineOption{};
}

// The engine of --engine, or the one of the graph's format.
Outcome<const AlgorithmEngine*> choose_engine(const AlgoCommand& options) {
  const AlgorithmEngine* chosen = engine_named(options.engine);
  if (chosen == nullptr) {
    const Outcome<graphfmt::GraphHeader> header = graphfmt::read_graph_header(options.graph);
    if (!header) return header.error();
    for (const AlgorithmEngine* engine : kAlgorithmEngines) {
      if (engine->format == header->kind) chosen = engine;
    }
    if (chosen == nullptr) {
      return make_error(ENOTSUP, "{}: no engine computes on the format {}", options.graph,
                        name_of(header->kind));
    }
  }
  if (!has_algorithm(*chosen, options.algorithm)) {
    return make_error(EINVAL, "{}: the engine {} does not have this algorithm; it has {}",
                      options.algorithm, chosen->name, names_of(chosen->algorithms));
  }
  if (const auto [option, engine] = option_of_another_engine(options, *chosen); !option.empty()) {
    return make_error(EINVAL, "{} is for the engine {}, and this is {}", option, engine,
                      chosen->name);
  }
  return chosen;
}

Outcome<std::vector<uint64_t>> parse_sources(const std::vector<std::string>& words) {
  std::vector<uint64_t> sources;
  for (const std::string& word : words) {
    uint64_t source = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), source);
    if (error != std::errc() || end != word.data() + word.size()) {
      return make_error(EINVAL, "--source: {}: not a vertex number", word);
    }
    sources.push_back(source);
  }
  return sources;
}

Outcome<ReadVariant> parse_variant(const AlgoCommand& options) {
  constexpr uint64_t kPageBytesMin = 4096, kPageBytesMax = 1 << 20;
  const uint64_t page_bytes = options.page_bytes.value_or(kPageBytesMin);
  if (!std::has_single_bit(page_bytes) || page_bytes < kPageBytesMin ||
      page_bytes > kPageBytesMax) {
    return make_error(EINVAL, "--page-size: not a power of 2 from 4K to 1M");
  }
  return ReadVariant{.merge = options.merge == "none"    ? Merge::kNone
                              : options.merge == "pages" ? Merge::kPages
                                                         : Merge::kLists,
                     .page_bytes = static_cast<uint32_t>(page_bytes),
                     .random_order = options.order == "random"};
}

Json stats_json(const RunStats& stats) {
  return {{"iterations", stats.iterations},
          {"vertices_run", stats.vertices_run},
          {"lists", stats.lists_given},
          {"ranges", stats.ranges_read},
          {"messages", stats.messages},
          {"device_reads", stats.device_reads},
          {"device_bytes", stats.device_bytes},
          {"value_bytes_read", stats.value_bytes_read},
          {"value_bytes_written", stats.value_bytes_written},
          {"open_seconds", stats.open_seconds},
          {"run_seconds", stats.run_seconds}};
}

std::string number_text(const Json& value) {
  if (const auto whole = value.as_unsigned()) return fmt::format("{}", *whole);
  if (const auto number = value.as_double()) return fmt::format("{:.6g}", *number);
  return value.as_string() != nullptr ? *value.as_string() : "";
}

void print_summary(const Json& summary) {
  for (const Json::Member& member : summary.members()) {
    if (!member.value.is_array()) {
      fmt::print("{:<14}{}\n", member.key, number_text(member.value));
      continue;
    }
    for (const Json& element : member.value.elements()) {
      std::string line;
      for (const Json::Member& part : element.members()) {
        line += (line.empty() ? "" : "  ") + part.key + " " + number_text(part.value);
      }
      fmt::print("{:<14}{}\n", member.key, line);
    }
  }
}

// Prints a table; the members of the first element are its columns.
void print_iterations(const Json& iterations) {
  std::string head = "iteration";
  uint64_t number = 0;
  for (const Json& one : iterations.elements()) {
    std::string line = fmt::format("{:>9}", ++number);
    for (const Json::Member& member : one.members()) {
      const size_t width = std::max<size_t>(member.key.size(), 10) + 2;
      if (number == 1) head += fmt::format("{:>{}}", member.key, width);
      line += fmt::format("{:>{}}", number_text(member.value), width);
    }
    if (number == 1) fmt::print("{}\n", head);
    fmt::print("{}\n", line);
  }
}

Outcome<int> compute(const AlgoCommand& options) {
  catch_interrupts();
  if (!options.out.empty()) {
    if (Outcome<void> named = check_result_name(options.out); !named) return named.error();
  }
  const auto engine = choose_engine(options);
  if (!engine) return engine.error();
  RunRequest request{
      .graph = options.graph,
      .options = {.iterations = options.iterations,
                  .tolerance = options.tolerance,
                  .damping = options.damping,
                  .dangling = options.dangling == "none" ? Dangling::kNone : Dangling::kUniform},
      .threads = options.threads,
      .in_memory = options.in_memory,
      .gap_bytes = options.gap_bytes,
      .value_memory_bytes = options.value_memory,
      .accumulates = options.updates == "accumulated",
      .model = options.model,
      .wants_values = !options.out.empty(),
      .kv = options.kv};
  if (options.cache_bytes) request.cache_bytes = *options.cache_bytes;
  const auto variant = parse_variant(options);
  if (!variant) return variant.error();
  request.variant = *variant;
  const auto sources = parse_sources(options.sources);
  if (!sources) return sources.error();
  request.options.sources = *sources;
  const Outcome<AlgorithmResult> result = (*engine)->run(options.algorithm, request);
  if (!result) return result.error();
  if (!options.out.empty()) {
    if (Outcome<void> written = write_result(*result, options.out); !written) {
      return written.error();
    }
  }
  if (options.as_json) {
    print_json({{"algorithm", options.algorithm},
                {"engine", (*engine)->name},
                {"graph", options.graph},
                {"summary", result->summary},
                {"stats", stats_json(result->stats)},
                {"iterations", options.explains ? result->iterations : Json::array()}});
    return kOk;
  }
  if (options.explains) print_iterations(result->iterations);
  print_summary(result->summary);
  if (!quiet) {
    fmt::print("{} in {:.3g} s, {} read in {}\n", counted(result->stats.iterations, "iteration"),
               result->stats.run_seconds, format_size(result->stats.device_bytes),
               counted(result->stats.device_reads, "read"));
    if (result->stats.value_bytes_written > 0) {
      fmt::print("vertices' values beyond --value-memory: {} read, {} written\n",
                 format_size(result->stats.value_bytes_read),
                 format_size(result->stats.value_bytes_written));
    }
  }
  return kOk;
}

// A number for the engine kv; `at_least` and `at_most` are permitted.
Outcome<double> parse_kv_number(const std::shared_ptr<AlgoCommand>& options,
                                const std::string& name, const std::string& text, double at_least,
                                double at_most) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= at_least) ||
      !(value <= at_most)) {
    return make_error(EINVAL, "{}: not a number from {:g} to {:g}", text, at_least, at_most);
  }
  options->kv_given.push_back(name);
  return value;
}

void add_kv_options(Command* command, const std::shared_ptr<AlgoCommand>& options) {
  const auto add = [&](const std::string& name, double at_least, double at_most,
                       const std::string& description, const char* type, auto assign) {
    command
        ->add_option(
            name,
            [=](const std::string& text) -> Outcome<void> {
              const Outcome<double> value = parse_kv_number(options, name, text, at_least, at_most);
              if (!value) return value.error();
              assign(options->kv, *value);
              return {};
            },
            description)
        ->type_name(type);
  };
  add("--portion", 1e-9, 1, "of kv: the share of the vertices that a round takes, the hottest (1)",
      "P", [](KvRunOptions& kv, double value) { kv.portion = value; });
  add("--workers", 1, 256, "of kv: so many processes, each with a part of the vertices (1)", "N",
      [](KvRunOptions& kv, double value) { kv.workers = static_cast<unsigned>(value); });
  add("--alpha", 0, 1e9, "Katz's α (1 / (1 + the longest list))", "A",
      [](KvRunOptions& kv, double value) { kv.alpha = value; });
  add("--buffer", 2, 1 << 20, "of kv: pages that a thread buffers (64)", "N",
      [](KvRunOptions& kv, double value) { kv.buffer_pages = static_cast<uint32_t>(value); });
  add("--prefetch", 0, 63, "of kv: pages that are fetched ahead (0)", "N",
      [](KvRunOptions& kv, double value) { kv.prefetch_pages = static_cast<uint32_t>(value); });
  command
      ->add_option(
          "--init",
          [options](const std::string& text) -> Outcome<void> {
            options->kv.init = text;
            options->kv_given.push_back("--init");
            return {};
          },
          "of kv: begin with the ranks in FILE.npy, as --out wrote them")
      ->type_name("FILE");
  command
      ->add_option(
          "--cache-policy",
          [options](const std::string& text) -> Outcome<void> {
            options->kv.cache_policy = text;
            options->kv_given.push_back("--cache-policy");
            const auto known = kv::parse_policy(text);
            return known || text == "hot-last" ? Outcome<void>() : known.error();
          },
          "of kv: hot (unless given), hot-last (the paper's), lru, fifo, sieve or s3fifo")
      ->type_name("NAME");
}

}  // namespace

void add_algo(Parser& parser) {
  const auto options = std::make_shared<AlgoCommand>();
  std::string list = "Algorithms:\n";
  std::vector<std::string> names;
  for (const AlgorithmInfo& info : all_algorithms()) {
    list += fmt::format("  {:<16}{}\n", info.name, info.description);
    names.emplace_back(info.name);
  }
  Command* command =
      parser.add("algo", "compute an algorithm on a stored graph",
                 "graphlane algo bfs --source 5 --out levels.npy graphs/livejournal\n\n" + list +
                     "\nGRAPH is what `graphlane convert --to lists`, `--to dual` or `--to pages` "
                     "made, in a volume or not.");
  command->add_option("ALGORITHM", options->algorithm, "one of those below")
      ->required()
      ->one_of(names)
      ->help_text("REQUIRED");
  command->add_option("GRAPH", options->graph, "directory of the graph")->required();
  command->add_option("--engine", options->engine, "by which; auto: the one of the graph's format")
      ->one_of(engine_words());
  command
      ->add_option("--source", options->sources, "vertex to begin with (0); again for more of them")
      ->type_name("V")
      ->one_value_each();
  command->add_option("--iterations", options->iterations, "so many")->type_name("N");
  command
      ->add_option(
          "--tolerance",
          [options](const std::string& text) -> Outcome<void> {
            double value = 0;
            const auto [end, error] =
                std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc() || end != text.data() + text.size() || !(value >= 0)) {
              return make_error(EINVAL, "{}: not a number from 0 on", text);
            }
            options->tolerance = value;
            return {};
          },
          "iterate until all ranks together move by no more")
      ->type_name("T");
  command->add_option("--damping", options->damping, "PageRank's d (0.85)")
      ->in_range(0.0, 1.0)
      ->type_name("D");
  command
      ->add_option("--dangling", options->dangling,
                   "rank of vertices without out-arcs goes nowhere, or to all (uniform)")
      ->one_of({"none", "uniform"});
  command->add_option("--threads", options->threads, "use so many (all cores)")->type_name("N");
  add_size(command, "--cache", &options->cache_bytes, "keep so much of the lists in memory (64M)");
  command->add_flag("--in-memory", options->in_memory, "read all lists before, and keep them");
  add_kv_options(command, options);
  add_size(command, "--value-memory", &options->value_memory,
           "of dual: keep so much of vertices' values in memory, the rest in a file beside GRAPH "
           "(half of what is available)");
  add_size(
      command, "--gap", &options->gap_bytes,
      "of lists and dual: also read gaps up to this between lists (measured: 0 unless on disks)");
  command
      ->add_option("--model", options->model,
                   "of dual: hybrid (as devices make cheaper), push, pull or random")
      ->one_of({"hybrid", "push", "pull", "random"});
  command
      ->add_option("--updates", options->updates,
                   "for experiments, of dual: values pass on at once (immediate), or in the next "
                   "iteration (accumulated)")
      ->one_of({"immediate", "accumulated"});
  command->add_option("--out", options->out, "each vertex's value: FILE.npy, .csv or .txt")
      ->type_name("FILE");
  command->add_flag(
      "--explain", options->explains,
      "of dual and pages: print for each iteration what was chosen or read, and its cost");
  command->add_flag("--json", options->as_json, "print JSON");
  command
      ->add_option("--merge", options->merge,
                   "for experiments: where neighbouring reads become one (lists)")
      ->one_of({"lists", "pages", "none"});
  command->add_option("--order", options->order, "for experiments: run vertices in this order (id)")
      ->one_of({"id", "random"});
  add_size(command, "--page-size", &options->page_bytes,
           "for experiments: read blocks of this size (4K)");
  parser.on_chosen(command, options, compute);
}

}  // namespace graphlane::cli
