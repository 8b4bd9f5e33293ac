#include "fuse/coherence/write_link.h"

#include <sys/socket.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace graphlane {

std::unique_ptr<WriteLink> WriteLink::open(Filesystem& fs, Inode& inode, const Layout& layout,
                                           const struct stat& stub, std::vector<Fd>* parts) {
  // The client's writable descriptor keeps the file live here. If it was opened on a plain file
  // that has become a copied stub since, there is no such live file.
  LiveFiles::Writer live = fs.live.join(layout.file_id, stub);
  if (!live) return nullptr;
  for (const int part : live->writable().parts().all_buffered()) {
    parts->push_back(reopen(part, O_WRONLY));
    if (!parts->back()) return nullptr;
  }
  return std::unique_ptr<WriteLink>(new WriteLink(fs, inode, std::move(live)));
}

WriteLink::~WriteLink() {
  if (write_) {
    write_.reset();
    drop_pages(range_);
  }
  fs_.inodes.forget(inode_.nodeid, 1);
}

bool WriteLink::serve(int connection) {
  alignas(WriteBegin) std::byte message[sizeof(WriteBegin)];
  const ssize_t received = ::recv(connection, message, sizeof message, MSG_DONTWAIT);
  WriteReply reply;
  WriteBegin asked;
  WriteEnd told;
  if (received == sizeof asked) {
    std::memcpy(&asked, message, sizeof asked);
    if (asked.magic != WriteBegin::kMagic) return false;
    reply = begin(asked);
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
  if (inode_.handle_count.load(std::memory_order_acquire) != 1 || has_set_id_bits()) {
    return reply(EAGAIN);
  }
  drop_pages(range);
  range_ = range;
  write_.emplace(*live_, range);
  const Result<void> ready = write_->begin();
  if (!ready) write_.reset();
  return reply(ready ? 0 : ready.error().code);
}

WriteReply WriteLink::end(const WriteEnd& told) {
  if (!write_) return reply(EINVAL);
  write_->end(std::clamp(told.written_end, range_.offset, range_.end()));
  write_.reset();
  live_->touch();
  drop_pages(range_);
  return reply(0);
}

// A user's write drops set-id bits, and only the kernel knows the user and its groups.
bool WriteLink::has_set_id_bits() const {
  struct stat st;
  return ::fstat(live_->stub_fd(), &st) != 0 || (st.st_mode & (S_ISUID | S_ISGID)) != 0;
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

}  // namespace graphlane
