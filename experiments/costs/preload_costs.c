/* preload_costs FILE: nanoseconds that calls take, as JSON. It knows nothing of
 * Graphlane; preload_costs.py runs it with and without the preload library. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kBatches = 300, kCalls = 1000 };

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static char buffer[1 << 16];
static int fd;
static int file;
static struct stat st;

static void read_foreign(void) { (void)!read(fd, buffer, 1); }
static void pread_foreign(void) { (void)!pread(fd, buffer, 1, 0); }
static void lseek_foreign(void) { lseek(fd, 0, SEEK_CUR); }
static void fstat_foreign(void) { fstat(fd, &st); }
static void dup_and_close(void) { close(dup(fd)); }
/* The library's system call at each read: is this still the same file? */
static void look(void) {
  struct statx now;
  syscall(SYS_statx, file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO | STATX_CTIME, &now);
}
static void pread_4k(void) { (void)!pread(file, buffer, 4096, 65536 * 3); }
static void pread_64k(void) { (void)!pread(file, buffer, 65536, 65536 * 5); }

/* The least of batches: whatever else the machine does can only add to it. */
static double cost(void (*call)(void)) {
  double least = 1e18;
  for (int b = 0; b < kBatches; ++b) {
    const double begin = now_ns();
    for (int i = 0; i < kCalls; ++i) call();
    const double took = (now_ns() - begin) / kCalls;
    if (took < least) least = took;
  }
  return least;
}

int main(int argc, char** argv) {
  if (argc == 1) return 0; /* what loading costs */
  double begin = now_ns();
  file = open(argv[1], O_RDONLY);
  if (pread(file, buffer, 4096, 0) != 4096) return 1;
  printf("{\"open and first read\": %.1f", now_ns() - begin);
  begin = now_ns();
  const int again = open(argv[1], O_RDONLY);
  (void)!pread(again, buffer, 4096, 0);
  printf(", \"open and read again\": %.1f", now_ns() - begin);
  if (argc > 2) { /* only what comes first */
    printf("}\n");
    return 0;
  }
  fd = open("/dev/null", O_RDONLY);
  const struct {
    const char* name;
    void (*call)(void);
  } calls[] = {{"read, foreign", read_foreign},   {"pread, foreign", pread_foreign},
               {"lseek, foreign", lseek_foreign}, {"fstat, foreign", fstat_foreign},
               {"dup and close, foreign", dup_and_close},
               {"look at the inode", look},
               {"pread 4 KiB", pread_4k},         {"pread 64 KiB", pread_64k}};
  for (size_t i = 0; i < sizeof calls / sizeof calls[0]; ++i) {
    printf(", \"%s\": %.1f", calls[i].name, cost(calls[i].call));
  }
  printf("}\n");
  return 0;
}
