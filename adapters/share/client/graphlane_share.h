/*
 * graphlane_share.h: concurrent graph jobs share one loaded copy of every partition.
 *
 * This is GraphM (Zhao et al., SC '19) for jobs that are processes of their own, of the
 * same or of different users, that come and go as they like. A graph is cut into
 * partitions; a job goes through those that it needs, in an order that the kit chooses,
 * and finds each of them in memory that it shares, read-only, with all other jobs.
 *
 *   graphlane_share *job;
 *   graphlane_share_chunk chunk;
 *   uint32_t partition;
 *   if (graphlane_share_init(&options, &job) < 0) fail(graphlane_share_error());
 *   for (each iteration) {
 *     graphlane_share_get_active_vertices(job, active, vertex_count);   (if not all are)
 *     while (graphlane_share_sharing(job, &partition) == 1)
 *       while (graphlane_share_start(job, &chunk) == 1) {
 *         process(chunk.data, chunk.size_bytes);
 *         graphlane_share_barrier(job);
 *       }
 *   }
 *   graphlane_share_end(job);
 *
 * (Check the loops' last result: 0 is the end, below 0 an error.)
 *
 * Results. 0 or 1 as each call says, or a negative errno; graphlane_share_error() then has
 * one line of text about the calling thread's last failure. No exception leaves the library.
 *
 * Threads. A job is used by one thread at a time; several jobs in one process by several
 * threads. Between start and barrier any thread may read the chunk. After fork() the child
 * must not use its parent's jobs.
 *
 * Sizes are bytes, times milliseconds or nanoseconds, as the names say. What a set is: one
 * bit each, bit n of word n / 64, words in host order.
 */
#ifndef GRAPHLANE_SHARE_H
#define GRAPHLANE_SHARE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

#define GRAPHLANE_SHARE_PARTITIONS_MAX 1048576
#define GRAPHLANE_SHARE_FILES_MAX 64

typedef struct graphlane_share graphlane_share;

/* A piece of a partition: bytes of files[file]. Pieces stand in the order of partitions; a
 * partition is its pieces one behind the other, or empty without any. */
typedef struct graphlane_share_range {
  uint32_t partition;
  uint32_t file;
  uint64_t offset;
  uint64_t length_bytes;
} graphlane_share_range;

/*
 * Load() of GraphM: makes a partition in memory. Called with memory NULL it returns the
 * partition's size in bytes; then, with memory of that size, it fills it and returns the
 * size again; −errno if it cannot. It must make the same bytes in every job: whichever
 * job's turn it is loads for all of them. They are shared among jobs of one user only, as
 * nobody else can know what they are. Called within graphlane_share_sharing().
 */
typedef int64_t (*graphlane_share_load)(void *context, uint32_t partition, void *memory,
                                        uint64_t size_bytes);

/* All fields that are not wanted are 0. */
typedef struct graphlane_share_options {
  /* The graph's files, 1 to 64, regular and readable. The first one names the graph: jobs
   * share if all that this structure says of files, partitions and edges is the same.
   * With a loader the files only name the graph and its state. */
  const char *const *files;
  uint32_t file_count;

  /* 1 to 1048576 partitions: byte ranges that the kit reads itself, or a loader. */
  uint32_t partition_count;
  const graphlane_share_range *ranges;
  uint64_t range_count;
  graphlane_share_load load;
  void *load_context;

  /* Edges of a fixed size, with the source vertex as a uint32 at source_offset_bytes in
   * them: the kit then cuts partitions into chunks (formula 1) and knows which are active
   * (algorithm 1). 0: a partition is one chunk. */
  uint32_t record_bytes;
  uint32_t source_offset_bytes;
  uint64_t vertex_count;

  uint32_t thread_count; /* that process a chunk; 0: 1 */
  uint32_t thread_count_min; /* with so few it can do when many jobs want the cores; how many
                                a chunk is to have is said with it. 0: as thread_count */
  uint32_t vertex_bytes; /* of the job's data for a vertex, U_v of formula 1; 0: 8. The
                            first job's decides; 4096 at most if the coordinator is
                            another user's. */

  /* For a coordinator that this job has to start: the most that partitions in memory may
   * take (0: $GRAPHLANE_SHARE_BUDGET, or half of the memory available), and after how long
   * without jobs it ends (0: two seconds). Several graphs (two layouts of a file) have it
   * together; one that finds less than its largest partition has that beyond it. */
  uint64_t budget_bytes;
  uint64_t idle_ms;
} graphlane_share_options;

/*
 * Init(). Finds the graph's coordinator, or starts it. 0, and *job.
 *   -ENOENT, -EACCES    a file, or the coordinator's program
 *   -EINVAL             options that make no sense
 *   -EFBIG              a partition larger than the coordinator's budget, of edges that are not known
 *   -ENOMEM             memory; or the coordinator is another user's, and other graphs that jobs
 *                       have there (another layout of the file) leave too little of its budget
 *   -EDQUOT             the same, and this user has eight graphs there already
 *   -ECHILD, -ETIMEDOUT, -ECONNRESET   the coordinator does not start, answer, or has no place left
 *   -EPROTO             it is of another version of the kit
 */
int graphlane_share_init(const graphlane_share_options *options, graphlane_share **job);

/* The same for a grid of GridGraph in the directory `grid`: its P × P blocks are the
 * partitions, in the order of `column`: partition p has sources of vertex partition p mod P
 * and targets of p / P. Of `options`, which may be NULL, files, partitions and edges are not
 * looked at. Edges are uint32 source, uint32 target, and, if weighted, float weight. */
typedef struct graphlane_share_grid {
  uint64_t vertex_count;
  uint64_t edge_count;
  uint32_t partitions; /* P */
  uint32_t weighted;   /* 0 or 1 */
} graphlane_share_grid;
int graphlane_share_init_grid(const char *grid, const graphlane_share_options *options,
                              graphlane_share **job, graphlane_share_grid *info);

/*
 * GetActiveVertices(). Begins an iteration that needs the edges of these vertices only (the
 * set has vertex_count bits, and must not change before the iteration's end). Until the
 * kit has seen the whole graph once, or found its labels beside it, it takes a partition
 * that it does not know for active: so chunks may come that have no active edge.
 */
int graphlane_share_get_active_vertices(graphlane_share *job, const uint64_t *active,
                                        uint64_t vertex_count);
/* The same by partition, partition_count bits, for who knows them better; copied. */
int graphlane_share_get_active_partitions(graphlane_share *job, const uint64_t *active);

/*
 * Sharing(), algorithm 2. The next partition of this iteration, in the order of formula 5,
 * 1; or 0: it is over. Without one that was begun, one over all partitions begins. Waits
 * while other jobs have their turn, or the partition is loaded. The partition before is
 * given back.
 *   -EIO, …   the partition cannot be read, or the loader's: it is not part of this iteration any
 *             more, and the next call goes on with the others
 *   -ESTALE   a file has changed
 *   -ENOMEM, -EMSGSIZE   this process has no memory, mappings or descriptors left for it: the next
 *             call asks for it again
 * Where the coordinator has died, what is said of Init() too: another one is found, or started.
 */
int graphlane_share_sharing(graphlane_share *job, uint32_t *partition);

typedef struct graphlane_share_chunk {
  const void *data; /* 8-byte aligned, unless it was changed or its pieces are not */
  uint64_t size_bytes;
  uint32_t partition;
  uint32_t chunk;
  uint64_t edge_count;        /* 0: edges are unknown */
  uint64_t active_edge_count; /* as far as known; chunks without any are passed over */
  uint32_t thread_count;      /* that are to process it */
} graphlane_share_chunk;

/*
 * Start(), §3.4. The partition's next chunk, 1; or 0: that was the last. Jobs that share a
 * partition on a busy machine go through its chunks together: waits for this job's turn,
 * which lasts as long as its share of the work (formulas 2 to 4). Where the graph does not fit the
 * budget, a partition comes into memory piece by piece, and start waits for them as sharing does:
 *   -EIO, -ESTALE   the rest of the partition cannot be read: it is not part of this iteration any
 *                   more, and the next call says 0
 *   -ENOMEM, -EMSGSIZE   as of sharing: the next call asks for it again
 * Barrier(). This job is through with the chunk. 0. Also done by start and sharing.
 */
int graphlane_share_start(graphlane_share *job, graphlane_share_chunk *chunk);
int graphlane_share_barrier(graphlane_share *job);

/*
 * Snapshots, §3.3.2. A mutation: this job, and nobody else, finds `data` in place of the
 * chunk, from its next start on (of what the iteration passes over, from the next one on). An update: jobs that come later find it; this one and the
 * others that run do not. To update, the graph's files must be writable for the user. A
 * chunk may become longer, shorter or empty, and one behind the last may be added. (Of a partition
 * that a loader makes, or that has had chunks added by updates, a job knows the last chunk once it
 * has had it.)
 *   -EINVAL   no such chunk, or not whole edges
 *   -EACCES, -ENOSPC, -ENOMEM   of an update: a file may not be written; the coordinator's budget is
 *             used up
 *   -EPIPE, -ECONNRESET, -ENOTCONN   the same, and of statistics: the coordinator has died; the next
 *             sharing finds another
 * Updates live in the coordinator, which then stays: to keep them, write the files. Should the
 * coordinator die, another one may number chunks otherwise (chunk_bytes says so); for a job that
 * has mutated chunks, or sees updates, -ESTALE is then its next sharing's result.
 */
int graphlane_share_mutate(graphlane_share *job, uint32_t partition, uint32_t chunk,
                           const void *data, uint64_t size_bytes);
int graphlane_share_update(graphlane_share *job, uint32_t partition, uint32_t chunk,
                           const void *data, uint64_t size_bytes);

/* Of the graph, over all jobs since its first one came. Where a partition comes in pieces, each counts. */
typedef struct graphlane_share_statistics {
  uint64_t jobs;                /* now */
  uint64_t loaded_partitions;   /* brought into memory */
  uint64_t loaded_bytes;
  uint64_t shared_partitions;   /* given to jobs */
  uint64_t shared_bytes;
  uint64_t buffer_bytes;        /* of partitions in memory now */
  uint64_t buffer_bytes_max;
  uint64_t changed_bytes;       /* of updated chunks */
  uint64_t turns;               /* taken together with others */
  uint64_t late;                /* times that the others went on without a job */
  uint64_t labelled_partitions; /* by this coordinator; labels that were found: 0 */
  uint64_t chunk_bytes;         /* S_c; UINT64_MAX: edges are unknown */
  uint64_t edge_process_ps;     /* of this job: T(F_j), picoseconds; 0: not known yet */
  uint64_t edge_access_ps;      /* T(E) */
} graphlane_share_statistics;
int graphlane_share_get_statistics(graphlane_share *job, graphlane_share_statistics *statistics);

/* The job's end. NULL is fine. */
void graphlane_share_end(graphlane_share *job);

/* One line about the calling thread's last failure, until its next one. Never NULL. */
const char *graphlane_share_error(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
