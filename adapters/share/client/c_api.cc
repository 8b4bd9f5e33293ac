// The C interface: one translation from Outcome to errno and text.
#include <new>

#include "adapters/share/client/graphlane_share.h"
#include "adapters/share/client/grid_blocks.h"
#include "adapters/share/client/job.h"

struct graphlane_share {
  std::unique_ptr<graphlane::share::Job> job;
};

namespace graphlane::share {
namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

int fail(const Error& error) {
  last_error() = error.text;
  return -error.code;
}

// Runs `call` and turns exceptions into an errno, because none may cross the C interface.
template <class Call>
int guarded(const Call& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    last_error() = "no memory";
    return -ENOMEM;
  } catch (const std::exception& exception) {
    last_error() = exception.what();
    return -EIO;
  }
}

JobOptions common_options(const graphlane_share_options& options) {
  JobOptions common;
  common.thread_count = options.thread_count == 0 ? 1 : options.thread_count;
  common.thread_count_min =
      options.thread_count_min == 0 ? common.thread_count : options.thread_count_min;
  common.vertex_bytes = options.vertex_bytes == 0 ? 8 : options.vertex_bytes;
  common.budget_bytes = options.budget_bytes;
  common.idle_ms = options.idle_ms;
  return common;
}

Outcome<JobOptions> job_options(const graphlane_share_options& options) {
  JobOptions job = common_options(options);
  if (options.file_count > 0 && options.files == nullptr) return make_error(EINVAL, "no files");
  for (uint32_t i = 0; i < options.file_count; ++i) {
    if (options.files[i] == nullptr) return make_error(EINVAL, "file {} has no name", i);
    job.files.emplace_back(options.files[i]);
  }
  const bool has_ranges = options.range_count > 0;
  if (has_ranges == (options.load != nullptr)) {
    return make_error(EINVAL, "partitions are ranges of files or made by a loader, one of both");
  }
  if (has_ranges && options.ranges == nullptr) return make_error(EINVAL, "no ranges");
  Layout& layout = job.layout;
  layout.by_loader = options.load != nullptr;
  layout.partition_count = options.partition_count;
  layout.record = {.size_bytes = options.record_bytes,
                   .source_offset_bytes = options.source_offset_bytes};
  layout.vertex_count = options.vertex_count;
  for (uint64_t i = 0; i < options.range_count; ++i) {
    const graphlane_share_range& range = options.ranges[i];
    layout.ranges.push_back({.partition = range.partition,
                             .file = range.file,
                             .offset = range.offset,
                             .length_bytes = range.length_bytes});
  }
  if (options.load != nullptr) {
    job.loader = [load = options.load, context = options.load_context](
                     uint32_t partition, char* memory, uint64_t size_bytes) {
      return load(context, partition, memory, size_bytes);
    };
  }
  return job;
}

int open_job(JobOptions options, graphlane_share** job) {
  auto opened = Job::open(std::move(options));
  if (!opened) return fail(opened.error());
  *job = new graphlane_share{.job = std::move(*opened)};
  return 0;
}

std::span<const char> bytes_of(const void* data, uint64_t size_bytes) {
  return {static_cast<const char*>(data), size_bytes};
}

}  // namespace
}  // namespace graphlane::share

using namespace graphlane::share;

extern "C" {

int graphlane_share_init(const graphlane_share_options* options, graphlane_share** job) {
  return guarded([&] {
    auto translated = job_options(*options);
    return translated ? open_job(std::move(*translated), job) : fail(translated.error());
  });
}

int graphlane_share_init_grid(const char* grid, const graphlane_share_options* options,
                              graphlane_share** job, graphlane_share_grid* info) {
  return guarded([&] {
    auto blocks = read_grid_blocks(grid);
    if (!blocks) return fail(blocks.error());
    JobOptions translated =
        common_options(options == nullptr ? graphlane_share_options{} : *options);
    translated.files = {blocks->file};
    translated.layout = std::move(blocks->layout);
    const int failed = open_job(std::move(translated), job);
    if (failed == 0 && info != nullptr) {
      *info = {.vertex_count = blocks->info.vertex_count,
               .edge_count = blocks->info.edge_count,
               .partitions = blocks->info.partitions,
               .weighted = blocks->info.weighted};
    }
    return failed;
  });
}

int graphlane_share_get_active_vertices(graphlane_share* job, const uint64_t* active,
                                        uint64_t vertex_count) {
  return guarded([&] {
    const auto begun = job->job->begin_sweep(VertexBits(active, (vertex_count + 63) / 64));
    return begun ? 0 : fail(begun.error());
  });
}

int graphlane_share_get_active_partitions(graphlane_share* job, const uint64_t* active) {
  return guarded([&] {
    const uint32_t count = job->job->partition_count();
    const auto begun =
        job->job->begin_sweep(PartitionSet(count, std::span(active, (count + size_t{63}) / 64)));
    return begun ? 0 : fail(begun.error());
  });
}

int graphlane_share_sharing(graphlane_share* job, uint32_t* partition) {
  return guarded([&] {
    const auto next = job->job->next();
    if (!next) return fail(next.error());
    if (!*next) return 0;
    if (partition != nullptr) *partition = **next;
    return 1;
  });
}

int graphlane_share_start(graphlane_share* job, graphlane_share_chunk* chunk) {
  return guarded([&] {
    const auto started = job->job->start();
    if (!started) return fail(started.error());
    if (!*started) return 0;
    *chunk = {.data = (*started)->bytes.data(),
              .size_bytes = (*started)->bytes.size(),
              .partition = (*started)->partition,
              .chunk = (*started)->chunk,
              .edge_count = (*started)->edge_count,
              .active_edge_count = (*started)->active_edge_count,
              .thread_count = (*started)->thread_count};
    return 1;
  });
}

int graphlane_share_barrier(graphlane_share* job) {
  return guarded([&] {
    job->job->barrier();
    return 0;
  });
}

int graphlane_share_mutate(graphlane_share* job, uint32_t partition, uint32_t chunk,
                           const void* data, uint64_t size_bytes) {
  return guarded([&] {
    const auto mutated = job->job->mutate(partition, chunk, bytes_of(data, size_bytes));
    return mutated ? 0 : fail(mutated.error());
  });
}

int graphlane_share_update(graphlane_share* job, uint32_t partition, uint32_t chunk,
                           const void* data, uint64_t size_bytes) {
  return guarded([&] {
    const auto updated = job->job->update(partition, chunk, bytes_of(data, size_bytes));
    return updated ? 0 : fail(updated.error());
  });
}

int graphlane_share_get_statistics(graphlane_share* job, graphlane_share_statistics* statistics) {
  return guarded([&] {
    const auto counts = job->job->statistics();
    if (!counts) return fail(counts.error());
    *statistics = {.jobs = counts->job_count,
                   .loaded_partitions = counts->loaded_partitions,
                   .loaded_bytes = counts->loaded_bytes,
                   .shared_partitions = counts->given_partitions,
                   .shared_bytes = counts->given_bytes,
                   .buffer_bytes = counts->buffer_bytes,
                   .buffer_bytes_max = counts->buffer_bytes_max,
                   .changed_bytes = counts->overlay_bytes,
                   .turns = counts->turns,
                   .late = counts->late,
                   .labelled_partitions = counts->labelled_partitions,
                   .chunk_bytes = job->job->chunk_bytes(),
                   .edge_process_ps = job->job->edge_costs().process_ps,
                   .edge_access_ps = job->job->edge_costs().access_ps};
    return 0;
  });
}

void graphlane_share_end(graphlane_share* job) { delete job; }

const char* graphlane_share_error(void) { return last_error().c_str(); }

}  // extern "C"
