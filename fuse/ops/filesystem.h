// Filesystem: the state that all operations of one mount share.
//
// Threads: constant after init(), except for `inodes`, `live` and `handles`, which are safe from
// any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "fuse/coherence/invalidation.h"
#include "fuse/coherence/kind_settler.h"
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

namespace graphlane::fuse {

// Limits of a request. libfuse before 3.17 takes 1 MiB (a mount that asks for more dies). 16 MiB a
// worker is enough memory to set aside.
inline constexpr uint64_t kOldLibfuseRequestMax = 1u << 20;
inline constexpr uint64_t kRequestMax = 16u << 20;

struct Filesystem {
  // Starts the lanes, as options.lanes says. The cache starts with the first striped file
  // (prepare_to_read()).
  static Outcome<std::unique_ptr<Filesystem>> start(std::shared_ptr<const Volume> volume,
                                                    const MountOptions& options);

  Filesystem(std::shared_ptr<const Volume> served, const MountOptions& asked);

  const std::shared_ptr<const Volume> volume;
  const MountOptions options;
  const bool privileged;                 // root: new files are given to the caller
  const uint64_t read_bytes_max;         // the kernel's largest request
  const uint64_t memory_at_start_bytes;  // available at the start
  RequestBuffers request_buffers{read_bytes_max};
  InodeTable inodes;
  TicketBook tickets{inodes};
  ClientCounts client_counts;       // of preloaded programs
  fuse_session* session = nullptr;  // set before it serves
  LiveFiles live;
  ExtentCache extents;           // of bytes read past the page cache
  std::unique_ptr<Lanes> lanes;  // after it, because lanes end the cache's requests
  std::optional<CacheKeeper> cache_keeper;
  std::optional<SharedCache> shared;  // shared by several processes; none without a cache
  DropBehind drop_behind;
  Invalidation invalidation;
  KindSettler kinds;
  Sweeps sweeps;
  OpenHandles handles;
  LastReadSizes last_read;                 // of the files that do not fit in memory
  std::atomic<uint32_t> page_sweepers{0};  // handles for which ReadState::sweeps_page_cache() holds

  // The value of kServerXattr; set before the first request.
  std::string server_name;

  // Call it before a handle of a striped file reads. Once: sets limits by the available memory, and
  // starts the cache.
  void prepare_to_read();

  // The device on which the next new file begins, round-robin, so that short files spread out.
  uint32_t next_first_device();

  int connection_fd = -1;  // /dev/fuse; set before the first request
  InitExtension init_extension;

  // Features of this libfuse and kernel; set by init().
  // FOPEN_DIRECT_IO for reads, coherent with other handles' pages
  bool direct_reads = false;
  bool direct_writes = false;        // FOPEN_DIRECT_IO for writes, likewise
  bool applies_umask = false;        // POSIX ACLs: a directory's default ACL replaces the umask
  bool passthrough = false;          // the kernel can read and write plain files itself
  bool kernel_checks_flags = false;  // whether the caller may set chattr(1)'s flags

 private:
  std::once_flag prepared_;
  std::atomic<uint32_t> files_made_;
};

// With noatime and ro, reads must not change the host's access times. (The host permits this flag
// to root and a file's owner only.)
inline int access_time_flag(const Filesystem& fs) {
  const bool moves_none = fs.options.no_access_times || fs.options.read_only;
  return moves_none && fs.privileged ? O_NOATIME : 0;
}

// Gives this thread a umask of its own, which threads otherwise share. False: not permitted.
bool leave_common_umask();

// Acts on the host with the caller's filesystem IDs while it lives, so that new files are the
// caller's. Also sets the caller's umask where the kernel does not apply it. The daemon's
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

// Call it before the first worker starts. Clears the process's umask, and makes capabilities
// survive AsCaller, for good.
void prepare_identities();

// Forbids to create, replace or remove `name` in `parent` if it is .graphlane or below it: EROFS,
// else 0.
int refuse_change(const Filesystem& fs, const Inode& parent, const char* name);

// Whether the caller's process has this group, supplementary groups included.
bool is_in_group(fuse_req_t req, gid_t group);

// Drops set-id bits as the caller's own write would. The host sees root write, and keeps them. The
// kernel drops them without HANDLE_KILLPRIV_V2, but never for O_TRUNC.
void drop_set_id_bits(Filesystem& fs, fuse_req_t req, int fd);

// Invalidates attributes that changed behind the kernel's back.
void drop_cached_attributes(Filesystem& fs, const Inode& inode);

// How long the kernel may cache the inode's attributes.
double attr_timeout_seconds(const Filesystem& fs, const Inode& inode);

// Whether the kernel knows an inode that has lost its name, and that no program has open: the name leads
// to another one by now. ESTALE then makes the kernel look it up again. `st`, or the O_PATH descriptor,
// is of the host's file.
bool is_replaced(const Inode& inode, const struct stat& st);
bool is_replaced(const Inode& inode, int path_fd);

// The host's attributes of a file. Drops its pages if it was changed outside this mount. 0 or an
// errno.
int look_at(Filesystem& fs, Inode& inode, struct stat* st, StubView* view = nullptr);

// The attributes of a file as the mount shows them. 0 or an errno.
int show_attributes(Filesystem& fs, Inode& inode, struct stat* st);
// st_blksize of a striped file.
blksize_t preferred_io_bytes(const Inode& inode);

// The largest request in bytes of a mount with these options.
uint64_t largest_request(const MountOptions& options);

// Looks `name` up and counts the look-up. 0 or an errno.
int look_up(Filesystem& fs, Inode& parent, const char* name, fuse_entry_param* entry);

// Fills in the entry of an inode that was just acquired; gives it back on failure.
int describe_entry(Filesystem& fs, Inode& inode, fuse_entry_param* entry);

// Answers with the entry of a name that the operation has created.
int answer_entry(Filesystem& fs, fuse_req_t req, Inode& parent, const char* name);

}  // namespace graphlane::fuse
