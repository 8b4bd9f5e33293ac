/*
 * graphlane_share.h: concurrent graph jobs share one loaded copy of every partition.
 *
 * This is GraphM (Zhao et al., SC '19) for jobs that are processes of their own, of one user
 * or of several, that start and end at any time. A graph is cut into partitions. A job goes
 * through the partitions that it needs, in an order that the library chooses. All jobs read
 * one copy of each partition, in shared read-only memory.
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
 * Sizes are bytes, times milliseconds or nanoseconds, as the names say. A set has one bit per
 * member: bit n % 64 of word n / 64, words in host order.
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

/* A piece of a partition: bytes of files[file]. Pieces stand in the order of partitions. A
 * partition is the concatenation of its pieces; one without pieces is empty. */
typedef struct graphlane_share_range {
  uint32_t partition;
  uint32_t file;
  uint64_t offset;
  uint64_t length_bytes;
} graphlane_share_range;

/*
 * Load() of GraphM: makes a partition in memory. Called with memory NULL it returns the
 * partition's size in bytes. Called with memory of that size it fills it and returns the size
 * again. It returns −errno on failure. It must make the same bytes in every job, because one
 * job loads for all. Only jobs of one user share these bytes, because no other user can verify
 * them. Called within graphlane_share_sharing().
 */
typedef int64_t (*graphlane_share_load)(void* context, uint32_t partition, void* memory,
                                        uint64_t size_bytes);

/* Leave unused fields 0. */
typedef struct graphlane_share_options {
  /* The graph's files, 1 to 64, regular and readable. The first one names the graph. Jobs
   * share if this structure says the same of files, partitions and edges.
   * With a loader the files only name the graph and its state. */
  const char* const* files;
  uint32_t file_count;

  /* 1 to 1048576 partitions: byte ranges that the library reads itself, or a loader. */
  uint32_t partition_count;
  const graphlane_share_range* ranges;
  uint64_t range_count;
  graphlane_share_load load;
  void* load_context;

  /* The size of an edge, and the offset in it of the source vertex, a uint32. The library then
   * cuts partitions into chunks (formula 1) and knows which are active (algorithm 1).
   * 0: a partition is one chunk. */
  uint32_t record_bytes;
  uint32_t source_offset_bytes;
  uint64_t vertex_count;

  uint32_t thread_count;     /* that process a chunk; 0: 1 */
  uint32_t thread_count_min; /* with so few it can do when many jobs want the cores; how many
                                a chunk is to have is said with it. 0: as thread_count */
  uint32_t vertex_bytes;     /* of the job's data for a vertex, U_v of formula 1; 0: 8. The
                            first job's decides; 4096 at most if the coordinator is
                            another user's. */

  /* These two apply if this job starts the coordinator. budget_bytes: the most that partitions
   * in memory may take (0: $GRAPHLANE_SHARE_BUDGET, or half of the available memory).
   * idle_ms: the coordinator ends after this long without jobs (0: two seconds).
   * Several graphs (for example two layouts of a file) share one budget. A graph with less than
   * its largest partition gets that partition's size beyond the budget. */
  uint64_t budget_bytes;
  uint64_t idle_ms;
} graphlane_share_options;

/*
 * Init(). Connects to the graph's coordinator, or starts it. Returns 0 and sets *job.
 *   -ENOENT, -EACCES    a file, or the coordinator's program
 *   -ENOENT, -EACCES    a file, or the coordinator's program
 *   -EINVAL             inconsistent options
 *   -EFBIG              a partition of unknown record format is larger than the budget
 *   -ENOMEM             no memory; or another user runs the coordinator, and its other graphs
 *                       leave too little of its budget
 *   -EDQUOT             another user runs the coordinator, and this user has eight graphs there
 *   -ECHILD, -ETIMEDOUT, -ECONNRESET   the coordinator does not start, does not answer, or is full
 *   -EPROTO             the coordinator has another version of the protocol
 */
int graphlane_share_init(const graphlane_share_options* options, graphlane_share** job);

/* Init() for a GridGraph grid in the directory `grid`. Its P × P blocks are the partitions, in
 * the order of `column`. Partition p has sources of vertex partition p mod P and targets of
 * p / P. `options` may be NULL; its files, partitions and edges are ignored. Edges are uint32
 * source, uint32 target, and, if weighted, float weight. */
typedef struct graphlane_share_grid {
  uint64_t vertex_count;
  uint64_t edge_count;
  uint32_t partitions; /* P */
  uint32_t weighted;   /* 0 or 1 */
} graphlane_share_grid;
int graphlane_share_init_grid(const char* grid, const graphlane_share_options* options,
                              graphlane_share** job, graphlane_share_grid* info);

/*
 * GetActiveVertices(). Begins an iteration that needs the edges of these vertices only. The
 * set has vertex_count bits and must not change before the iteration ends. Chunks without
 * active edges may come, until the library has read the whole graph once or found its labels
 * beside it: a partition without labels counts as active.
 */
int graphlane_share_get_active_vertices(graphlane_share* job, const uint64_t* active,
                                        uint64_t vertex_count);
/* GetActiveVertices() by partition, with partition_count bits; the set is copied. */
int graphlane_share_get_active_partitions(graphlane_share* job, const uint64_t* active);

/*
 * Sharing(), algorithm 2. Returns 1 and the next partition of this iteration, in the order of
 * formula 5; or 0 when the iteration is over. Without a begun iteration, one over all
 * partitions begins. Waits for other jobs' turns and for the load. Gives the partition before
 * it back.
 *   -EIO, …   the partition cannot be read, or its loader failed: it leaves this iteration, and
 *             the next call goes on with the others
 *   -ESTALE   a file has changed
 *   -ENOMEM, -EMSGSIZE   this process has no memory, mappings or descriptors left: the next
 *             call asks for the partition again
 * If the coordinator died, this call connects to another one or starts it, with the errors of
 * Init().
 */
int graphlane_share_sharing(graphlane_share* job, uint32_t* partition);

typedef struct graphlane_share_chunk {
  const void* data; /* 8-byte aligned, unless it was changed or its pieces are not */
  uint64_t size_bytes;
  uint32_t partition;
  uint32_t chunk;
  uint64_t edge_count;        /* 0: edges are unknown */
  uint64_t active_edge_count; /* as far as known; chunks without any are passed over */
  uint32_t thread_count;      /* that are to process it */
} graphlane_share_chunk;

/*
 * Start(), §3.4. Returns 1 and the partition's next chunk; or 0 after the last one. Jobs that
 * share a partition on a busy machine go through its chunks together. This call waits for the
 * job's turn, which lasts as long as the job's share of the work (formulas 2 to 4). A graph
 * larger than the budget comes into memory piece by piece, and start waits for each piece:
 *   -EIO, -ESTALE   the rest of the partition cannot be read: it leaves this iteration, and the
 *                   next call returns 0
 *   -ENOMEM, -EMSGSIZE   as of sharing: the next call asks again
 * Barrier() ends this job's turn at the chunk and returns 0. Start and sharing do so too.
 */
int graphlane_share_start(graphlane_share* job, graphlane_share_chunk* chunk);
int graphlane_share_barrier(graphlane_share* job);

/*
 * Snapshots, §3.3.2. A mutation: only this job finds `data` in place of the chunk, from its
 * next start on, or from the next iteration on where this one skips the chunk. An update: jobs
 * that attach later find `data`; running jobs do not. To update, the user must be allowed to
 * write the graph's files. A chunk may become longer, shorter or empty, and one after the last
 * may be added. Where a loader makes the partition, or updates have added chunks, a job learns
 * their number only with the last one.
 *   -EINVAL   no such chunk, or not whole edges
 *   -EACCES, -ENOSPC, -ENOMEM   of an update: a file is not writable, or the coordinator's
 *             budget is used up
 *   -EPIPE, -ECONNRESET, -ENOTCONN   of an update and of statistics: the coordinator died; the
 *             next sharing connects to another
 * The coordinator holds updates in memory and stays for them: to keep them, write the files.
 * After a coordinator's death the next one may number chunks differently (see chunk_bytes). A
 * job that has mutated chunks, or sees updates, then gets -ESTALE from its next sharing.
 */
int graphlane_share_mutate(graphlane_share* job, uint32_t partition, uint32_t chunk,
                           const void* data, uint64_t size_bytes);
int graphlane_share_update(graphlane_share* job, uint32_t partition, uint32_t chunk,
                           const void* data, uint64_t size_bytes);

/* Totals of the graph, over all jobs since the first. Pieces of a partition count one each. */
typedef struct graphlane_share_statistics {
  uint64_t jobs;              /* now */
  uint64_t loaded_partitions; /* brought into memory */
  uint64_t loaded_bytes;
  uint64_t shared_partitions; /* given to jobs */
  uint64_t shared_bytes;
  uint64_t buffer_bytes; /* of partitions in memory now */
  uint64_t buffer_bytes_max;
  uint64_t changed_bytes;       /* of updated chunks */
  uint64_t turns;               /* taken together with others */
  uint64_t late;                /* times that the others went on without a job */
  uint64_t labelled_partitions; /* by this coordinator; labels that were found: 0 */
  uint64_t chunk_bytes;         /* S_c; UINT64_MAX: edges are unknown */
  uint64_t edge_process_ps;     /* of this job: T(F_j), picoseconds; 0: not known yet */
  uint64_t edge_access_ps;      /* T(E) */
} graphlane_share_statistics;
int graphlane_share_get_statistics(graphlane_share* job, graphlane_share_statistics* statistics);

/* Ends the job. NULL is allowed. */
void graphlane_share_end(graphlane_share* job);

/* One line about the calling thread's last failure, until its next one. Never NULL. */
const char* graphlane_share_error(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
