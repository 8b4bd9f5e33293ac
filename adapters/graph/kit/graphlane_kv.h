/* libgraphlane-graph, keys and values: a write-once store of pages for graph engines, with a
 * prefetching buffer and a hot-aware cache (MaiterStore). A graph of `graphlane convert --to pages`
 * has one in out.pages and one in in.pages; with --codec raw the value of a vertex is its
 * neighbours, as uint32.
 *
 *   graphlane_kv *store;                                     graphlane_kv_writer *writer;
 *   graphlane_kv_open("web/out.pages", NULL, &store);        graphlane_kv_create("my.pages", 8192, &writer);
 *   graphlane_kv_reader *reader;                             graphlane_kv_put(writer, 7, bytes, size);
 *   graphlane_kv_reader_open(store, &reader);                graphlane_kv_sync(writer);
 *   graphlane_kv_value value;                                graphlane_kv_finish(writer);
 *   if (graphlane_kv_get(reader, 7, hotness, &value) == 0)   graphlane_kv_writer_close(writer);
 *     use(value.data, value.size), graphlane_kv_release(&value);
 *
 * Functions that return an int return 0, or an errno; graphlane_kv_error() then has one line that
 * names the file, and the page. ENOENT: the store does not have the key (a key with an empty value
 * is 0). EIO: damaged, or a device has failed: other gets go on.
 *
 * Threads: a store is any thread's; a reader or a writer is one thread's. Many processes may read a
 * store while one writes it. A reader of a store that grows has what was synced when it was opened.
 * Not across fork(). */
#ifndef GRAPHLANE_KV_H
#define GRAPHLANE_KV_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct graphlane_kv graphlane_kv;
typedef struct graphlane_kv_reader graphlane_kv_reader;
typedef struct graphlane_kv_writer graphlane_kv_writer;

/* Zeros are the defaults. */
struct graphlane_kv_options {
  uint64_t cache_bytes;     /* of cached values with their overhead; 0: none */
  const char* cache_policy; /* "hot" (NULL), "lru", "fifo", "sieve", "s3fifo" */
  /* of "hot": hotness adds up over the gets of a cached value; else the latest counts */
  int accumulates;
  float threshold;         /* of "lru", "fifo": colder values are not cached */
  unsigned threads;        /* that will read at once; 1 */
  int in_memory;           /* not 0: all pages are read and checked now */
  uint32_t buffer_pages;   /* of each reader's prefetching buffer; 64 */
  uint32_t prefetch_pages; /* fetched ahead, at most 63; 0 */
  uint64_t reserved[4];    /* zeros */
};

/* The message of the last function that failed in this thread; until the next one fails. */
const char* graphlane_kv_error(void);

/* `options` may be NULL. EINVAL: not a store. */
int graphlane_kv_open(const char* path, const struct graphlane_kv_options* options,
                      graphlane_kv** store);
/* After its readers. NULL is allowed. */
void graphlane_kv_close(graphlane_kv* store);
uint64_t graphlane_kv_key_count(const graphlane_kv* store);
uint64_t graphlane_kv_page_count(const graphlane_kv* store);

int graphlane_kv_reader_open(graphlane_kv* store, graphlane_kv_reader** reader);
/* After its values were released. Gets that were submitted are dropped. */
void graphlane_kv_reader_close(graphlane_kv_reader* reader);

/* A value where it lies, not copied: the bytes stay until it is released. */
typedef struct graphlane_kv_value {
  const void* data;
  size_t size;
  void* pin;
} graphlane_kv_value;
void graphlane_kv_release(graphlane_kv_value* value);

/* `hotness`: how hot the key is now, for the cache. */
int graphlane_kv_get(graphlane_kv_reader* reader, uint64_t key, float hotness,
                     graphlane_kv_value* value);

/* Called with a value that lives until it returns. `error`: 0, ENOENT, or another errno; then
 * graphlane_kv_error() has a line. */
typedef void (*graphlane_kv_done)(void* context, uint64_t key, int error, const void* data,
                                  size_t size);

/* Gets all keys, and reads ahead as far as the buffer allows, so that every device is busy. Calls
 * done() in the order of the keys; an error is one key's. `hotness` may be NULL. */
int graphlane_kv_multi_get(graphlane_kv_reader* reader, const uint64_t* keys, const float* hotness,
                           size_t count, graphlane_kv_done done, void* context);
/* Begins a get. graphlane_kv_wait() completes the oldest, and calls its done(); it returns 0 when
 * none is left, else 1. */
int graphlane_kv_submit(graphlane_kv_reader* reader, uint64_t key, float hotness,
                        graphlane_kv_done done, void* context);
int graphlane_kv_wait(graphlane_kv_reader* reader);
/* All keys from `first` on, ascending; visit() returns 0 to go on. Its other results end the walk
 * and are returned. */
typedef int (*graphlane_kv_visit)(void* context, uint64_t key, const void* data, size_t size);
int graphlane_kv_each(graphlane_kv_reader* reader, uint64_t first, graphlane_kv_visit visit,
                      void* context);

struct graphlane_kv_counts {
  uint64_t gets;
  uint64_t cache_hits;
  uint64_t buffer_hits;
  uint64_t requests; /* to the devices */
  uint64_t pages;    /* that were read */
  uint64_t missing;
};
void graphlane_kv_reader_counts(const graphlane_kv_reader* reader,
                                struct graphlane_kv_counts* counts);

/* A new store. `page_bytes`: a multiple of 4096 up to 1 MiB; 0: 8192. EEXIST: there is a file. */
int graphlane_kv_create(const char* path, uint32_t page_bytes, graphlane_kv_writer** writer);
/* Goes on with a store; what a crash has torn is cut off. EBUSY: another process writes it. */
int graphlane_kv_append(const char* path, graphlane_kv_writer** writer);
/* EINVAL: not above the keys before; EEXIST: the last key again. The store is as before then. */
int graphlane_kv_put(graphlane_kv_writer* writer, uint64_t key, const void* data, size_t size);
/* When it has returned 0, all that was put is there after any crash. It ends a page. */
int graphlane_kv_sync(graphlane_kv_writer* writer);
/* Syncs, and writes the index, so that opening needs no scan. No put follows. */
int graphlane_kv_finish(graphlane_kv_writer* writer);
/* Values that were not synced may be lost. NULL is allowed. */
void graphlane_kv_writer_close(graphlane_kv_writer* writer);
uint64_t graphlane_kv_writer_key_count(const graphlane_kv_writer* writer); /* that are synced */

#ifdef __cplusplus
}
#endif

#endif
