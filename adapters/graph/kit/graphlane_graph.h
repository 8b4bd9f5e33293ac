/* libgraphlane-graph: lists of a stored graph (`graphlane convert --to lists`), for samplers and
 * the like. Only the index is in memory; lists are read from the devices as they are asked for,
 * past a cache.
 *
 *   graphlane_graph *graph;
 *   if (graphlane_graph_open("livejournal", NULL, &graph) != 0) die(graphlane_graph_error());
 *   uint64_t degree = graphlane_graph_degree(graph, GRAPHLANE_OUT, 7);
 *   graphlane_graph_neighbors(graph, GRAPHLANE_OUT, 7, list, degree, &count);
 *   graphlane_graph_close(graph);
 *
 * Functions that return an int return 0, or an errno; graphlane_graph_error() then has one line
 * that names the file. EIO: a file is damaged, or a device has failed; ERANGE: there is no such
 * vertex; ENOSPC: the caller's array is too small.
 *
 * Threads: any thread may use a graph at any time, several at once, but for close. Not across
 * fork(). */
#ifndef GRAPHLANE_GRAPH_H
#define GRAPHLANE_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphlane_graph graphlane_graph;

/* Both are the same in an undirected graph. */
enum graphlane_side { GRAPHLANE_OUT = 0, GRAPHLANE_IN = 1 };

/* Zeros are the defaults. */
struct graphlane_graph_options {
  uint64_t cache_bytes; /* of lists that were read; 64 MiB, at least 4 MiB */
  int in_memory;        /* not 0: all lists are read and checked now */
  uint64_t reserved[6]; /* zeros */
};

/* `options` may be NULL. EINVAL: not a stored graph. */
int graphlane_graph_open(const char* path, const struct graphlane_graph_options* options,
                         graphlane_graph** graph);
/* No other thread uses it any more. NULL is allowed. */
void graphlane_graph_close(graphlane_graph* graph);
/* The message of the last function that failed in this thread; until the next one fails. */
const char* graphlane_graph_error(void);

uint64_t graphlane_graph_vertex_count(const graphlane_graph* graph);
/* Arcs in one side's lists. */
uint64_t graphlane_graph_arc_count(const graphlane_graph* graph);
int graphlane_graph_is_directed(const graphlane_graph* graph);

/* Neighbours of the vertex, from memory. 0 for what is no vertex. */
uint64_t graphlane_graph_degree(const graphlane_graph* graph, enum graphlane_side side,
                                uint64_t vertex);

/* The neighbours, ascending, into `list`, which has room for `capacity` of them; `*count` is how
 * many there are, also with ENOSPC. */
int graphlane_graph_neighbors(graphlane_graph* graph, enum graphlane_side side, uint64_t vertex,
                              uint32_t* list, uint64_t capacity, uint64_t* count);

/* Those of vertices[i] in list[offsets[i]] … list[offsets[i + 1] - 1]; `offsets` has room for count
 * + 1. The offsets are there with ENOSPC, too, and with `list` NULL and `capacity` 0 they are all
 * that is asked for. Vertices may come in any order, and again. The lists are read in the order of
 * the file, neighbours together: thousands at a time are faster than one by one. */
int graphlane_graph_multi_neighbors(graphlane_graph* graph, enum graphlane_side side,
                                    const uint64_t* vertices, size_t count, uint64_t* offsets,
                                    uint32_t* list, uint64_t capacity);

#ifdef __cplusplus
}
#endif

#endif
