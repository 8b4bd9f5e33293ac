// Filesystem: what all operations of one mount share.
//
// Threads: constant once init() has run, but for `inodes`, `live` and `handles`,
// which are safe from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "fuse/coherence/invalidation.h"
#include "fuse/coherence/live_files.h"
#include "fuse/coherence/ticket_book.h"
#include "fuse/inode/inode_table.h"
#include "fuse/inode/open_handles.h"
#include "fuse/mount/init_extension.h"
#include "fuse/mount/mount.h"
#include "fuse/ops/drop_behind.h"
#include "fuse/ops/fuse_api.h"
#include "fuse/ops/request_buffer.h"
#include "fuse/ops/sweeps.h"
#include "iomgr/io/lanes.h"
#include "iomgr/read/cache_keeper.h"
#include "iomgr/server/client_counts.h"
#include "iomgr/server/shared_cache.h"
#include "iomgr/volume/volume.h"

namespace graphlane {

// No request of the kernel's is larger: libfuse before 3.17 takes 1 MiB (a mount that
// asks for more dies), and 16 MiB a worker is enough to set aside.
inline constexpr uint64_t kOldLibfuseRequestMax = 1u << 20;
inline constexpr uint64_t kRequestMax = 16u << 20;

struct Filesystem {
  // Starts the lanes, as options.lanes says. The cache waits for the first striped file (prepare_to_read()).
  static Outcome<std::unique_ptr<Filesystem>> start(std::shared_ptr<const Volume> volume,
                                                    const MountOptions& options);

  Filesystem(std::shared_ptr<const Volume> served, const MountOptions& asked);

  const std::shared_ptr<const Volume> volume;
  const MountOptions options;
  const bool privileged;          // root: new files are given to the caller
  const uint64_t read_bytes_max;  // the largest request that the kernel shall make
  const uint64_t memory_at_start_bytes;  // that was left
  RequestBuffers request_buffers{read_bytes_max};
  InodeTable inodes;
  TicketBook tickets{inodes};
  ClientCounts client_counts;  // of preloaded programs
  fuse_session* session = nullptr;  // set before it serves
  LiveFiles live;
  ExtentCache extents;  // of what is read past the page cache
  std::unique_ptr<Lanes> lanes;  // after it: they end what it has begun
  std::optional<CacheKeeper> cache_keeper;
  std::optional<SharedCache> shared;  // of what several processes read; none without a cache
  DropBehind drop_behind;
  Invalidation invalidation;
  Sweeps sweeps;
  OpenHandles handles;
  LastReadSizes last_read;  // of the files that do not fit in memory
  std::atomic<uint32_t> page_sweepers{0};  // handles that read what does not fit through the page cache

  // The value of kServerXattr; set before the first request.
  std::string server_name;

  // Before a handle of a striped file reads. Looks at the memory there is, and starts the cache's thread: once.
  void prepare_to_read();

  // The device that the next new file begins on: short files spread out.
  uint32_t next_first_device();

  int connection_fd = -1;  // /dev/fuse; set before the first request
  InitExtension init_extension;

  // What this libfuse and kernel offer; set by init().
  bool direct_reads = false;         // FOPEN_DIRECT_IO and yet coherent with others' pages
  bool direct_writes = false;        // the same, for those who write
  bool applies_umask = false;        // POSIX ACLs: a directory's default ACL stands in for the umask
  bool passthrough = false;          // plain files without us
  bool kernel_checks_flags = false;  // whether the caller may set those of chattr(1)

 private:
  std::once_flag prepared_;
  std::atomic<uint32_t> files_made_;
};

// noatime and ro are the mount's, and times are the host's: reading moves none then.
// (The host allows it to root and a file's owner only.)
inline int access_time_flag(const Filesystem& fs) {
  const bool moves_none = fs.options.no_access_times || fs.options.read_only;
  return moves_none && fs.privileged ? O_NOATIME : 0;
}

// umask() is the process's, but for threads that have left the others. False:
// this thread may not.
bool leave_common_umask();

// What an operation does for itself, it does on the host with the caller's
// filesystem IDs, so that new files are the caller's, and with his umask where
// the kernel leaves that to us. Ours keep their
// capabilities (prepare_identities()); the kernel has checked permissions.
class AsCaller {
 public:
  AsCaller(const Filesystem& fs, fuse_req_t req);
  ~AsCaller();
  AsCaller(const AsCaller&) = delete;
  AsCaller& operator=(const AsCaller&) = delete;

 private:
  const bool active_;
};

// Before the first worker starts: no umask of ours, and capabilities that
// survive AsCaller. Of the process; there is no way back.
void prepare_identities();

// Whether `name` in `parent` is not to be made, replaced or removed: .graphlane
// and all below it. EROFS, else 0.
int refuse_change(const Filesystem& fs, const Inode& parent, const char* name);

// Whether the caller's process has this group, as supplementary one too.
bool is_in_group(fuse_req_t req, gid_t group);

// As the caller's own write would: the host sees root write, and keeps them. The
// kernel does it where HANDLE_KILLPRIV_V2 is not agreed on, and never at O_TRUNC.
void drop_set_id_bits(Filesystem& fs, fuse_req_t req, int fd);

// They have changed by a way on which the kernel does not expect it.
void drop_cached_attributes(Filesystem& fs, const Inode& inode);

// How long the kernel may take what it is told of the inode for true.
double attr_timeout_seconds(const Filesystem& fs, const Inode& inode);

// What the host says of a file; its pages go if somebody else has changed it. 0 or an errno.
int look_at(Filesystem& fs, Inode& inode, struct stat* st, StubView* view = nullptr);

// The attributes of a file as the mount shows them. 0 or an errno.
int show_attributes(Filesystem& fs, Inode& inode, struct stat* st);

// The largest request, bytes, of a mount with these options made by this process.
uint64_t largest_request(const MountOptions& options);

// Looks `name` up and counts the look-up. 0 or an errno.
int look_up(Filesystem& fs, Inode& parent, const char* name, fuse_entry_param* entry);

// Fills in the entry of an inode that was just acquired; gives it back on failure.
int describe_entry(Filesystem& fs, Inode& inode, fuse_entry_param* entry);

// Answers with the entry of a name that the operation has just made.
int answer_entry(Filesystem& fs, fuse_req_t req, Inode& parent, const char* name);

}  // namespace graphlane
