// Opens and creates files, and ends handles.
//
// How the kernel treats the pages of an open file (docs/internals/reads.md):
//   plain, passed through        no pages of the mount: the kernel reads, writes and maps the
//                                host's file itself (passthrough.h)
//   plain                        the mount's page cache, kept between opens: mappings and
//                                O_DIRECT calls stay coherent. The host's file is opened without
//                                O_DIRECT, because write-back comes from unaligned buffers.
//   striped, fits in memory      as plain; the parts lie in the page cache too
//   striped, O_DIRECT            as plain: the kernel passes O_DIRECT calls on
//   striped, larger than memory  as plain; pages behind a sweep are dropped
//   … and read-only, in large    FOPEN_DIRECT_IO: a reader's requests are serial, but the mount's
//   pieces (read_sizes.h)        cache prefetches, in the memory that the pages would take.
//   not passed through,          FOPEN_DIRECT_IO if the kernel then drops other handles' pages
//   write-only                   (a descriptor that cannot read maps nothing)
#include <sys/stat.h>

#include "fuse/coherence/write_link.h"
#include "fuse/inode/open_file.h"
#include "fuse/inode/striped.h"
#include "fuse/ops/operations.h"
#include "iomgr/base/process/log.h"

namespace graphlane::fuse {
namespace {

// Without O_APPEND: the kernel knows the end of the file and sends the offset. The host's
// descriptor would append even after the program has switched it off.
int host_flags(const Filesystem& fs, int flags) {
  const int kept = flags & ~(O_DIRECT | O_APPEND | O_NOFOLLOW | O_CREAT | O_EXCL);
  return kept | O_CLOEXEC | access_time_flag(fs);
}

bool writes(int flags) { return (flags & O_ACCMODE) != O_RDONLY; }
bool reads(int flags) { return (flags & O_ACCMODE) != O_WRONLY; }

// Whether calls by this descriptor come to the daemon although the file is passed through. The
// kernel opens the host's file for it, and never changes the flags of open(2):
//   O_APPEND   would append even after the program has switched it off;
//   O_DIRECT   would refuse the unaligned tail for which dd switches it off.
// Also, the passthrough drops set-id bits for no user or for all, and root's writes must keep them.
bool needs_daemon(int flags, mode_t mode) {
  if ((flags & O_ACCMODE) == O_RDONLY) return false;
  return (flags & (O_APPEND | O_DIRECT)) != 0 || (mode & (S_ISUID | S_ISGID)) != 0;
}

// A write through the page cache is copied page by page, and then once more.
bool writes_directly(const Filesystem& fs, int flags) {
  return fs.direct_writes && (flags & O_ACCMODE) == O_WRONLY;
}

// Decides before the reply whether the kernel passes the plain file through. ESTALE: the inode's
// file was replaced, and the kernel looks up again.
Result<void> choose_passthrough(Filesystem& fs, Inode& inode, OpenFile& file, fuse_file_info* fi) {
  struct statx flags;
  struct stat st;
  if (::statx(file.fd.get(), "", AT_EMPTY_PATH, 0, &flags) != 0 ||
      ::fstat(file.fd.get(), &st) != 0) {
    return last_errno();
  }
  if (InodeKey{.device = st.st_dev, .number = st.st_ino} != inode.key) return Errno{ESTALE};
  // chattr +a: the kernel forbids writable mappings of such a file, but does not know that the
  // mount's file is one.
  const bool may_pass = fs.passthrough && (flags.stx_attributes & STATX_ATTR_APPEND) == 0;
  file.passthrough.emplace(inode.passthrough, may_pass ? fs.connection_fd : -1, file.fd.get());
  const bool passed = file.passthrough->backing_id() != 0;
  if (passed) {
    drop_cached_attributes(fs, inode);  // they may change unnoticed from now on
  } else {
    fs.invalidation.see(inode, Uuid{}, st);
  }
  fi->direct_io = passed ? needs_daemon(fi->flags, st.st_mode) : writes_directly(fs, fi->flags);
  fi->keep_cache = !passed;  // the kernel rejects both together
  return {};
}

Result<std::unique_ptr<OpenFile>> open_plain(Filesystem& fs, Inode& inode, int path_fd,
                                             fuse_file_info* fi) {
  auto file = std::make_unique<OpenFile>();
  file->fd = reopen(path_fd, host_flags(fs, fi->flags));
  if (!file->fd && errno == EPERM && (fi->flags & O_APPEND) != 0) {  // chattr +a
    file->fd = reopen(path_fd, host_flags(fs, fi->flags) | O_APPEND);
    file->appends = true;
  }
  if (!file->fd) return last_errno();
  // The open may have waited until the file was replaced (FileLease).
  if (is_replaced(inode, path_fd)) return Errno{ESTALE};
  if (Result<void> chosen = choose_passthrough(fs, inode, *file, fi); !chosen) {
    return chosen.error();
  }
  return file;
}

// The file for a reader: the object that is open already, or a new one.
Result<std::shared_ptr<StripedFile>> open_to_read(Filesystem& fs, Inode& inode, int path_fd,
                                                  const Layout& layout, const struct stat& stub) {
  if (const auto live = fs.live.find(layout.file_id, stub)) return live->file();
  if (layout.state == FileState::kOpen) {
    // A file that a dead writer left is closed soon. If this process cannot close it, another one
    // is writing it, or writing is not permitted, and the parts give the size.
    constexpr std::chrono::milliseconds kAtOnce{0};
    if (const auto live = open_live(fs, inode, layout, stub, kAtOnce)) return (*live)->file();
  }
  const auto access_time = access_time_flag(fs) == 0 ? AccessTime::kMoves : AccessTime::kStays;
  auto file = open_shared(fs, inode, path_fd, layout, stub, access_time);
  // Another mount has changed the size; or a writer of this mount just did, which must not be
  // undone.
  if (file && (*file)->size() != current_layout(*fs.volume, layout).logical_size) {
    fs.live.follow_stub(**file);
  }
  return file;
}

// Whether the kernel keeps no pages of this handle's reads, because a later sweep would hit none.
// Not while the file has writers, because the kernel would have to write their pages out first.
bool reads_in_turn(const Filesystem& fs, const Inode& inode, const ReadState& state) {
  return fs.direct_reads && state.leaves_pages() &&
         inode.writer_count.load(std::memory_order_relaxed) == 0 &&
         inode.last_read.large(fs.last_read);
}

ReadState state_of(const Filesystem& fs, const Inode& inode, const StripedFile& file, int flags) {
  const IoMode mode = fs.options.io_mode;
  ReadState state{.reader = ReadState::Reader::kMounted,
                  .mode = mode,
                  .fit = fit_now(mode, file.size()),
                  .o_direct = (flags & O_DIRECT) != 0,
                  .on_disks = fs.sweeps.on_disks(),
                  .verifies = file.parts().sums().verifies()};
  state.in_turn = !writes(flags) && reads_in_turn(fs, inode, state);
  return state;
}

// The cache shares memory with the page cache, which holds pages of sweeps, and of O_DIRECT
// readers' own processes (the GraphM coordinator). The first in_turn read ends that (ops/read.cc).
void share_memory_with_page_cache(Filesystem& fs, const ReadState& state) {
  if (state.sweeps_page_cache()) fs.page_sweepers.fetch_add(1, std::memory_order_relaxed);
  if (state.sweeps_page_cache() || state.o_direct) fs.extents.set_beside_page_cache(true);
}

// Decides before the reply how a striped file is read (iomgr/read/plan.h).
void choose_caching(Filesystem& fs, Inode& inode, OpenFile& file, fuse_file_info* fi) {
  fs.prepare_to_read();
  inode.stub.remember(file.striped);
  file.member.emplace(fs.sweeps, file.striped);
  file.state = state_of(fs, inode, *file.striped, fi->flags);
  share_memory_with_page_cache(fs, file.state);
  fi->keep_cache = 1;
  fi->direct_io = file.state.in_turn || writes_directly(fs, fi->flags);
}

Result<std::unique_ptr<OpenFile>> open_parts(Filesystem& fs, Inode& inode, int path_fd,
                                             const Layout& layout, const struct stat& stub,
                                             fuse_file_info* fi) {
  if (const Outcome<void> accepted = fs.volume->accept(layout, ""); !accepted) {
    log_line("{}: inode {}{}", fs.volume->root(), stub.st_ino, accepted.error().text);
    return Errno{EIO};
  }
  auto file = std::make_unique<OpenFile>();
  if (writes(fi->flags)) {
    auto live = open_live(fs, inode, layout, stub);
    if (!live) return live.error();
    file->live = std::move(*live);
    file->striped = file->live->file();
  } else {
    auto opened = open_to_read(fs, inode, path_fd, layout, stub);
    if (!opened) return opened.error();
    file->striped = std::move(*opened);
  }
  choose_caching(fs, inode, *file, fi);
  fs.invalidation.see(inode, layout.file_id, stub);
  return file;
}

// Without O_TRUNC: the kernel truncates after this reply (ops/init.cc).
Result<std::unique_ptr<OpenFile>> open_inode(Filesystem& fs, Inode& inode, fuse_file_info* fi) {
  const Result<HostPath> path = fs.inodes.path(inode);
  if (!path) return path.error();
  if (inode.control) {
    if (writes(fi->flags)) return Errno{EROFS};
    return open_plain(fs, inode, path->get(), fi);
  }
  struct stat st;
  if (::fstat(path->get(), &st) != 0) return last_errno();
  if (is_replaced(inode, st)) return Errno{ESTALE};
  StubView view = inode.stub.look(path->get(), st);
  if (view.error != 0) return Errno{view.error};
  if (view.unreadable) return Errno{EACCES};  // even if its mode permits to write it
  if (view.plain()) {
    auto file = open_plain(fs, inode, path->get(), fi);
    if (!file || st.st_size <= static_cast<off_t>(kStubSize) || !reads(fi->flags) ||
        !claims_to_be_stub((*file)->fd.get(), static_cast<uint64_t>(st.st_size))) {
      return file;
    }
    view.verdict = StubVerdict::kCutShort;  // something was appended to it without a mount
  }
  if (view.striped()) return open_parts(fs, inode, path->get(), view.layout, st, fi);
  log_line("{}: inode {}: {}", fs.volume->root(), st.st_ino, describe(view.verdict));
  return Errno{EIO};
}

// Creates the name exclusively. ESTALE: the name appeared meanwhile. It may be a stub, which
// O_TRUNC would destroy, or a link, so the kernel must look it up and open it as any other.
Result<std::unique_ptr<OpenFile>> create_new(Filesystem& fs, fuse_req_t req, int directory_fd,
                                             const char* name, mode_t mode, fuse_file_info* fi) {
  auto file = std::make_unique<OpenFile>();
  if (fs.volume->policy().wants_new(name)) {
    auto live = create_striped(fs, req, directory_fd, name, mode);
    if (!live) return live.error();
    file->striped = (*live)->file();
    file->live = std::move(*live);
    return file;
  }
  const AsCaller caller(fs, req);
  file->fd.reset(::openat(directory_fd, name, host_flags(fs, fi->flags) | O_CREAT | O_EXCL, mode));
  if (!file->fd) return last_errno();
  return file;
}

// Ends an append past the kernel, which needs to know the size of the file from now on.
void end_append(Filesystem& fs, Inode& inode, const Uuid& file_id) {
  if (!inode.is_appended.load()) return;
  const auto live = fs.live.find(file_id);
  if (!live) return;
  live->recall();
  tell_kernel_size(fs, inode, *live);
}

bool is_write_only(const OpenFile& file) {
  return file.striped && (file.access & O_ACCMODE) == O_WRONLY;
}

// Gives the handle to the kernel, which may use it from now on.
void hand_over(Filesystem& fs, Inode& inode, std::unique_ptr<OpenFile> file, fuse_file_info* fi) {
  inode.handle_count.fetch_add(1);  // a program appends only while there is one handle
  if (file->striped) end_append(fs, inode, file->striped->layout().file_id);
  file->direct_io = fi->direct_io;
  file->access = fi->flags & (O_ACCMODE | O_APPEND);
  // st_blksize changes with it.
  if (is_write_only(*file) && inode.write_only_count.fetch_add(1) == 0) {
    drop_cached_attributes(fs, inode);
  }
  if (file->striped) file->sync_errors_told = file->striped->sync_errors().count;
  if (file->backing_id() == 0) file->kept.emplace(fs.invalidation, inode, fi->flags & O_ACCMODE);
  fs.handles.give(std::move(file), fi);
}

void take_back(Filesystem& fs, Inode& inode, fuse_file_info* fi) {
  if (OpenFile::of(fi).state.sweeps_page_cache()) {
    fs.page_sweepers.fetch_sub(1, std::memory_order_relaxed);
  }
  if (is_write_only(OpenFile::of(fi)) && inode.write_only_count.fetch_sub(1) == 1) {
    drop_cached_attributes(fs, inode);
  }
  inode.handle_count.fetch_sub(1, std::memory_order_acq_rel);
  fs.tickets.drop(OpenFile::of(fi));
  fs.handles.release(fi);  // may end the inode
}

}  // namespace

int op::open(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  if (fs.handles.full()) return EMFILE;
  Inode& inode = fs.inodes.of(ino);
  Result<std::unique_ptr<OpenFile>> file = open_inode(fs, inode, fi);
  if (!file) return file.error().code;
  const NamedBacking backing(fi, (*file)->backing_id());
  hand_over(fs, inode, std::move(*file), fi);
  // An interrupted request gets no reply, so the kernel will not release the handle.
  if (reply::open(req, fi) == -ENOENT) take_back(fs, inode, fi);
  return 0;
}

int op::create(Filesystem& fs, fuse_req_t req, fuse_ino_t parent_ino, const char* name, mode_t mode,
               fuse_file_info* fi) {
  if (fs.handles.full()) return EMFILE;
  Inode& parent = fs.inodes.of(parent_ino);
  if (const int error = refuse_change(fs, parent, name); error != 0) return error;
  const Result<HostPath> directory = fs.inodes.path(parent);
  if (!directory) return directory.error().code;
  Result<std::unique_ptr<OpenFile>> file = create_new(fs, req, directory->get(), name, mode, fi);
  if (!file) {
    const bool may_exist = (fi->flags & O_EXCL) == 0;
    return may_exist && file.error().code == EEXIST ? ESTALE : file.error().code;
  }
  fuse_entry_param entry;
  if (const int error = look_up(fs, parent, name, &entry); error != 0) return error;
  Inode& inode = fs.inodes.of(entry.ino);
  if ((*file)->striped) {
    choose_caching(fs, inode, **file, fi);
  } else {
    if (Result<void> chosen = choose_passthrough(fs, inode, **file, fi); !chosen) {
      fs.inodes.forget(entry.ino, 1);
      return chosen.error().code;
    }
  }
  entry.attr_timeout = attr_timeout_seconds(fs, inode);
  const NamedBacking backing(fi, (*file)->backing_id());
  hand_over(fs, inode, std::move(*file), fi);
  if (OpenFile::of(fi).striped) entry.attr.st_blksize = preferred_io_bytes(inode);
  if (reply::create(req, &entry, fi) == -ENOENT) {
    take_back(fs, inode, fi);
    fs.inodes.forget(entry.ino, 1);
  }
  return 0;
}

// close() reports the host's errors of delayed writes (NFS, quota).
int op::flush(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  const OpenFile& file = OpenFile::of(fi);
  if (file.state.in_turn && file.read_sizes.were_small()) {  // must precede the next open
    fs.inodes.of(ino).last_read.set(/*large=*/false);
    fs.last_read.set(/*large=*/false);
  }
  if (file.live) {
    // The preload library relies on it: the descriptor's number may be another file's from now on.
    end_append(fs, fs.inodes.of(ino), file.live->file()->layout().file_id);
    file.live->note_closed();
  }
  if (file.striped) return answer_result(req, 0);
  const int copy = ::fcntl(file.fd.get(), F_DUPFD_CLOEXEC, 0);
  return copy < 0 ? errno : answer_result(req, ::close(copy));
}

int op::fsync(Filesystem&, fuse_req_t req, fuse_ino_t, int data_only, fuse_file_info* fi) {
  const int error = OpenFile::of(fi).sync(data_only != 0);
  return error != 0 ? error : answer_result(req, 0);
}

int op::release(Filesystem& fs, fuse_req_t req, fuse_ino_t ino, fuse_file_info* fi) {
  const OpenFile* file = &OpenFile::of(fi);
  struct stat st;
  if (file->kept && writes(fi->flags) && ::fstat(file->host_fd(), &st) == 0) {
    // The kernel's pages now hold this mount's own writes.
    const Uuid& file_id = file->striped ? file->striped->layout().file_id : Uuid{};
    (void)fs.inodes.of(ino).stub.same_content(file_id, st, /*ours=*/true);
  }
  if (file->state.leaves_pages() && fs.inodes.of(ino).open_once()) {
    fs.drop_behind.ended(ino);
  }
  if (!file->striped) fs.kinds.closed(file->fd.get());
  take_back(fs, fs.inodes.of(ino), fi);
  return answer_result(req, 0);
}

}  // namespace graphlane::fuse
