/*
 * share_times: the time that a job of adapters/share spends in each of its calls, and the memory of its
 * graph. It is preloaded into a program that is linked with libgraphlane-share.so. At the job's end it
 * writes `share-times` into the program's working directory, as JSON:
 *
 *   sharing_ns            graphlane_share_sharing: until a partition is there
 *   turns_ns              graphlane_share_start and _barrier: until it is this job's turn
 *   buffer_bytes_max      the most that partitions took, of all jobs on the graph
 *
 * Threads: of a program with one job, which is used by one thread at a time.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "adapters/share/client/graphlane_share.h"

static uint64_t sharing_ns;
static uint64_t turns_ns;

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Defines a function that calls the library's, and adds to `sum` how long that took. */
#define TIMED(sum, name, parameters, arguments)      \
  int name parameters {                              \
    static int(*library) parameters;                 \
    if (!library) library = dlsym(RTLD_NEXT, #name); \
    const uint64_t begin_ns = now_ns();              \
    const int result = library arguments;            \
    sum += now_ns() - begin_ns;                      \
    return result;                                   \
  }

TIMED(sharing_ns, graphlane_share_sharing, (graphlane_share * job, uint32_t *partition),
      (job, partition))
TIMED(turns_ns, graphlane_share_start, (graphlane_share * job, graphlane_share_chunk *chunk),
      (job, chunk))
TIMED(turns_ns, graphlane_share_barrier, (graphlane_share * job), (job))

static void write_times(graphlane_share *job) {
  int (*get)(graphlane_share *, graphlane_share_statistics *) =
      dlsym(RTLD_NEXT, "graphlane_share_get_statistics");
  graphlane_share_statistics statistics;
  if (get(job, &statistics) < 0) return;
  FILE *out = fopen("share-times", "w");
  if (!out) return;
  fprintf(out, "{\"sharing_ns\": %" PRIu64 ", \"turns_ns\": %" PRIu64, sharing_ns, turns_ns);
  fprintf(out, ", \"buffer_bytes_max\": %" PRIu64 "}\n", statistics.buffer_bytes_max);
  fclose(out);
}

void graphlane_share_end(graphlane_share *job) {
  void (*library)(graphlane_share *) = dlsym(RTLD_NEXT, "graphlane_share_end");
  if (job) write_times(job);
  library(job);
}
