#include "fuse/coherence/write_link.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace graphlane::fuse {

// Stores the last byte of the file: the kernel takes a larger size only with data.
void tell_kernel_size(Filesystem& fs, const Inode& inode, const LiveFile& live) {
  const uint64_t size = live.size();
  if (size == 0) return;
  const ByteRange last_byte{.offset = size - 1, .length_bytes = 1};
  char last = 0;
  if (fs.lanes->read(*live.file(), last_byte, &last, /*direct=*/false) != 1) return;
  fuse_bufvec byte = FUSE_BUFVEC_INIT(1);
  byte.buf[0].mem = &last;
  (void)::fuse_lowlevel_notify_store(fs.session, inode.nodeid, static_cast<off_t>(size - 1), &byte,
                                     static_cast<fuse_buf_copy_flags>(0));
}

std::unique_ptr<WriteLink> WriteLink::open(Filesystem& fs, Inode& inode, const Layout& layout,
                                           const struct stat& stub, std::vector<Fd>* parts,
                                           Fd* page) {
  // The client's writable descriptor keeps the file live here. If it was opened on a plain file
  // that has become a copied stub since, there is no such live file.
  LiveFiles::Writer live = fs.live.join(layout.file_id, stub);
  if (!live) return nullptr;
  for (const int part : live->writable().parts().all_buffered()) {
    parts->push_back(reopen(part, O_WRONLY));
    if (!parts->back()) return nullptr;
  }
  AppendPage memory;
  if (memory) page->reset(::fcntl(memory.fd(), F_DUPFD_CLOEXEC, 0));
  if (!*page) return nullptr;
  return std::unique_ptr<WriteLink>(new WriteLink(fs, inode, std::move(live), std::move(memory)));
}

WriteLink::~WriteLink() {
  if (write_) {
    write_.reset();
    drop_pages(range_);
  }
  append_.end();
  if (was_granted_) tell_kernel_size(fs_, inode_, *live_);
  // Another process may append by the same handle.
  if (!live_->is_appended()) inode_.is_appended.store(false);
  fs_.inodes.forget(inode_.nodeid, 1);
}

bool WriteLink::serve(int connection) {
  alignas(WriteBegin) std::byte message[sizeof(WriteBegin)];
  const ssize_t received = ::recv(connection, message, sizeof message, MSG_DONTWAIT);
  WriteReply reply;
  WriteBegin asked;
  WriteEnd told;
  AppendBegin append;
  static_assert(sizeof append == sizeof asked && sizeof append != sizeof told);
  if (received == sizeof asked) {
    std::memcpy(&asked, message, sizeof asked);
    std::memcpy(&append, message, sizeof append);
    const bool appends = append.magic == AppendBegin::kMagic;
    if (!appends && asked.magic != WriteBegin::kMagic) return false;
    reply = appends ? begin_append(append) : begin(asked);
  } else if (received == sizeof told) {
    std::memcpy(&told, message, sizeof told);
    if (told.magic != WriteEnd::kMagic) return false;
    reply = end(told);
  } else {
    return received < 0 && (errno == EAGAIN || errno == EINTR);
  }
  return ::send(connection, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof reply;
}

WriteReply WriteLink::begin(const WriteBegin& asked) {
  const ByteRange range{.offset = asked.offset, .length_bytes = asked.length_bytes};
  const bool possible = asked.length_bytes > 0 && asked.offset <= INT64_MAX &&
                        asked.length_bytes <= INT64_MAX - asked.offset &&
                        (asked.offset | asked.length_bytes) % kBlockSize == 0;
  if (!possible || write_) return reply(EINVAL);
  append_.end();
  if (!is_alone()) return reply(EAGAIN);
  drop_pages(range);
  range_ = range;
  write_.emplace(*live_, range);
  const Result<void> ready = write_->begin();
  if (!ready) write_.reset();
  return reply(ready ? 0 : ready.error().code);
}

// Sets the flags first. So an open() that does not see is_appended has counted its handle before
// the second look, and a change that does not see was_appended has counted itself before it.
WriteReply WriteLink::begin_append(const AppendBegin& asked) {
  if (asked.length_bytes == 0 || write_) return reply(EINVAL);
  append_.end();
  const bool was_appended = inode_.is_appended.exchange(true);
  inode_.was_appended.store(true);
  Result<uint64_t> from = Errno{EAGAIN};
  if (may_append()) {
    from = append_.begin(std::min(asked.length_bytes, kAppendMax));
    if (from) drop_pages({.offset = *from, .length_bytes = 1});  // and the attributes
    if (from && !may_append()) {
      append_.end();
      from = Errno{EAGAIN};
    }
  }
  if (from)
    was_granted_ = true;
  else if (!was_appended)
    inode_.is_appended.store(false);
  return reply(from ? 0 : from.error().code);
}

bool WriteLink::may_append() const { return is_alone() && inode_.changes_under_way.load() == 0; }

WriteReply WriteLink::end(const WriteEnd& told) {
  if (!write_) return reply(EINVAL);
  write_->end(std::clamp(told.written_end, range_.offset, range_.end()));
  write_.reset();
  live_->touch();
  drop_pages(range_);
  return reply(0);
}

// A user's write drops set-id bits, and only the kernel knows the user and its groups.
bool WriteLink::is_alone() const {
  struct stat st;
  return inode_.handle_count.load() == 1 && ::fstat(live_->stub_fd(), &st) == 0 &&
         (st.st_mode & (S_ISUID | S_ISGID)) == 0;
}

// After the write: the kernel makes the drop wait for threads that hold the pages.
void WriteLink::drop_pages(ByteRange range) const {
  (void)::fuse_lowlevel_notify_inval_inode(fs_.session, inode_.nodeid,
                                           static_cast<off_t>(range.offset),
                                           static_cast<off_t>(range.length_bytes));
}

WriteReply WriteLink::reply(int error) const {
  return {.error = error, .size_bytes = live_->size()};
}

}  // namespace graphlane::fuse
