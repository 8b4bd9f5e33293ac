#include "adapters/share/coordinator/graph_table.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "adapters/share/coordinator/connections.h"
#include "adapters/share/coordinator/graph_plan.h"
#include "adapters/share/coordinator/label_file.h"
#include "iomgr/base/futex.h"

namespace graphlane::share {
namespace {

// Graphs of one foreign user: layouts of a file, or states of it. Each has a part of the budget.
constexpr size_t kGraphsOfOthersMax = 8;

// Raises the descriptor limit, without which jobs would be turned away. Returns it.
size_t raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1024;
  const rlim_t before = std::exchange(limit.rlim_cur, limit.rlim_max);
  return ::setrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_max : before;
}

// None: the files have several owners.
std::optional<uid_t> owner_of(std::span<const Fd> files) {
  std::optional<uid_t> owner;
  for (const Fd& file : files) {
    struct stat st;
    if (::fstat(file.get(), &st) != 0 || owner.value_or(st.st_uid) != st.st_uid ||
        !is_mapped_user(st.st_uid)) {
      return std::nullopt;
    }
    owner = st.st_uid;
  }
  return owner;
}

}  // namespace

// A quarter of the descriptors are for buffers; the rest is for jobs and their files.
GraphTable::GraphTable(const CoordinatorOptions& options, Worker& worker)
    : options_(options), worker_(worker), buffer_count_max_(raise_descriptor_limit() / 4) {}

std::string GraphTable::key_of(std::string_view layout, std::span<const FileIdentity> files,
                               std::optional<uid_t> user) {
  const uint64_t hash = std::hash<std::string_view>()(layout);
  std::string key(reinterpret_cast<const char*>(&hash), sizeof hash);
  key.append(reinterpret_cast<const char*>(files.data()), files.size_bytes());
  if (user) key.append(reinterpret_cast<const char*>(&*user), sizeof *user);
  return key;
}

std::shared_ptr<SharedGraph> GraphTable::find(const std::string& key, const Layout& layout) const {
  const auto [begin, end] = graphs_.equal_range(key);
  const auto found = std::find_if(
      begin, end, [&](const auto& entry) { return entry.second->files().layout == layout; });
  return found == end ? nullptr : found->second;
}

void GraphTable::add(const std::string& key, std::shared_ptr<SharedGraph> graph) {
  graphs_.emplace(key, std::move(graph));
}

void GraphTable::forget_idle() {
  std::erase_if(graphs_, [](const auto& entry) { return entry.second->idle(); });
}

// --- the budget ---------------------------------------------------------------

GraphTable::Rest GraphTable::rest() const {
  Rest rest{.bytes = options_.budget_bytes};
  for (const auto& [key, graph] : graphs_) {
    rest.bytes -= std::min(rest.bytes, graph->table_bytes());
    if (!graph->has_jobs()) continue;
    rest.bytes -= std::min(rest.bytes, graph->least_bytes());
    rest.graph_count += !graph->resident();
  }
  return rest;
}

void GraphTable::divide_budget() {
  const Rest left = rest();
  const uint64_t part_bytes = left.bytes / std::max<size_t>(left.graph_count, 1);
  for (const auto& [key, graph] : graphs_) graph->set_budget(graph->least_bytes() + part_bytes);
}

Outcome<void> GraphTable::check_room(uid_t user, const std::string& name,
                                     uint64_t wanted_bytes) const {
  const uint64_t left_bytes = rest_bytes();
  if (is_ours(user) || wanted_bytes <= left_bytes) return {};
  return make_error(ENOMEM, "{}: wants {} bytes of the buffers' budget, other graphs leave {}",
                    name, wanted_bytes, left_bytes);
}

Outcome<void> GraphTable::may_make(uid_t user, const std::string& name,
                                   const Layout& layout) const {
  if (is_ours(user)) return {};
  const auto count = std::ranges::count_if(
      graphs_, [user](const auto& entry) { return entry.second->charged_to() == user; });
  if (static_cast<size_t>(count) >= kGraphsOfOthersMax) {
    return make_error(EDQUOT, "{}: this user has {} graphs here already", name, count);
  }
  return check_room(user, name, SharedGraph::table_bytes_of(layout, layout.partition_count));
}

uint64_t GraphTable::part_of_new_graph(const Layout& layout,
                                       std::optional<uid_t> charged_to) const {
  Rest left = rest();
  if (charged_to) {
    left.bytes -= std::min(left.bytes, SharedGraph::table_bytes_of(layout, layout.partition_count));
  }
  return left.bytes / (left.graph_count + 1);
}

// --- a new graph --------------------------------------------------------------

Outcome<std::shared_ptr<SharedGraph>> GraphTable::make(uid_t user, GraphFiles files, Fd directory,
                                                       uint32_t vertex_bytes) {
  forget_idle();  // drops graphs of the file's earlier states
  const Layout& layout = files.layout;
  if (Outcome<void> may = may_make(user, files.name, layout); !may) return may.error();
  const std::vector<uint64_t> sizes = partition_sizes(layout);
  const LastLevelCache cache = read_last_level_cache();
  const std::optional<uid_t> charged_to = is_ours(user) ? std::nullopt : std::optional(user);
  const uint64_t part_bytes = part_of_new_graph(layout, charged_to);
  GraphPlan plan = plan_graph(layout, sizes, vertex_bytes,
                              {.part_bytes = part_bytes,
                               .buffer_count_max = buffer_count_max_,
                               .cache = cache,
                               .order = options_.order});
  files.units = std::move(plan.units);
  for (uint32_t unit = 0; unit < files.units.count(); ++unit) {
    if (files.units.bytes_of(unit) <= options_.budget_bytes) continue;
    const uint32_t partition = files.units.partition_of(unit);
    return make_error(EFBIG, "{}: partition {} has {} bytes, the buffers' budget is {}", files.name,
                      partition, sizes[partition], options_.budget_bytes);
  }
  std::shared_ptr<LabelKeeper> labels;
  if (plan.has_edges) {
    LabelKeeper::Place place{.directory = Fd(), .name = files.name};
    if (charged_to) place.bytes_max = part_bytes / 2;
    const std::optional<uid_t> owner = owner_of(files.files);
    if (owner && is_beside(directory.get(), files.name, files.identities[0])) {
      place.directory = std::move(directory);
      place.owner = *owner;
    }
    labels = std::make_shared<LabelKeeper>(std::move(place), graph_hash(layout, files.identities),
                                           layout.record, plan.chunk_bytes, sizes, files.units);
  }
  const SharedGraph::Options options{.charged_to = charged_to,
                                     .budget_bytes = options_.budget_bytes,
                                     .part_bytes = part_bytes,
                                     .is_budget_given = options_.is_budget_given,
                                     .buffer_count_max = buffer_count_max_,
                                     .core_count = cache.core_count,
                                     .chunk_bytes = plan.chunk_bytes,
                                     .is_resident = plan.is_resident,
                                     .batching = std::move(plan.batching)};
  return std::make_shared<SharedGraph>(std::move(files), std::move(labels), worker_, options);
}

// --- the loop -----------------------------------------------------------------

uint64_t GraphTable::pump(const std::function<void(JobId)>& cut_off) {
  for (;;) {
    uint64_t deadline_ns = UINT64_MAX;
    std::vector<JobId> unresponsive;
    for (const auto& [key, graph] : graphs_) {
      deadline_ns = std::min(deadline_ns, graph->pump(monotonic_ns()));
      for (const JobId id : graph->take_unresponsive()) unresponsive.push_back(id);
    }
    if (unresponsive.empty()) return deadline_ns;
    for (const JobId id : unresponsive) cut_off(id);
  }
}

}  // namespace graphlane::share
