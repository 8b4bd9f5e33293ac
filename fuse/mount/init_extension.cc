#include "fuse/mount/init_extension.h"

#include "fuse/ops/filesystem.h"

#ifdef FUSE_CAP_PASSTHROUGH

namespace graphlane::fuse {
namespace {

bool want_of_libfuse(fuse_conn_info* conn, unsigned capability) {
  if ((conn->capable & capability) == 0) return false;
  conn->want |= capability;
  return true;
}

}  // namespace

void InitExtension::watch(fuse_session*) {}

bool InitExtension::want_killpriv_v2(fuse_conn_info* conn) {
  return want_of_libfuse(conn, FUSE_CAP_HANDLE_KILLPRIV_V2);
}

bool InitExtension::want_passthrough(fuse_conn_info* conn) {
  return want_of_libfuse(conn, FUSE_CAP_PASSTHROUGH);
}

bool InitExtension::want_direct_io_with_maps(fuse_conn_info* conn) {
  return want_of_libfuse(conn, FUSE_CAP_DIRECT_IO_ALLOW_MMAP);
}

NamedBacking::NamedBacking(fuse_file_info* fi, int backing_id) { fi->backing_id = backing_id; }
NamedBacking::~NamedBacking() = default;

}  // namespace graphlane::fuse

#else

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstring>

namespace graphlane::fuse {
namespace {

// Since version 7.40 of the protocol (Linux 6.9). Older kernel headers lack the names.
constexpr uint64_t kKillprivV2 = uint64_t{1} << 28;
constexpr uint64_t kInitExt = uint64_t{1} << 30;  // the message has flags2
constexpr uint64_t kDirectIoWithMaps = uint64_t{1} << 36;
constexpr uint64_t kPassthrough = uint64_t{1} << 37;
constexpr uint32_t kOpenPassthrough = 1u << 7;
constexpr uint32_t kStackDepth = 1;  // the host is not a stacked filesystem

struct InitRequest {
  fuse_in_header header;
  uint32_t major, minor, max_readahead, flags, flags2;
};
struct InitAnswer {
  uint32_t major, minor, max_readahead, flags, limits[4], flags2, max_stack_depth, unused[6];
};
static_assert(sizeof(InitAnswer) == sizeof(fuse_init_out));

// The end of the replies to OPEN and CREATE.
struct OpenAnswer {
  uint64_t handle;
  uint32_t open_flags;
  uint32_t backing_id;
};
static_assert(sizeof(OpenAnswer) == sizeof(fuse_open_out));

thread_local int named_backing = 0;

InitExtension& extension_of(void* filesystem) {
  return static_cast<Filesystem*>(filesystem)->init_extension;
}

ssize_t splice(int from, off_t* from_offset, int to, off_t* to_offset, size_t size, unsigned flags,
               void*) {
  return ::splice(from, from_offset, to, to_offset, size, flags);
}

// Changes the last piece of a successful reply.
template <class Answer, class Change>
void change(const iovec* pieces, int count, const Change& change) {
  if (count != 2 || pieces[1].iov_len < sizeof(Answer)) return;
  char* const place = static_cast<char*>(pieces[1].iov_base) + pieces[1].iov_len - sizeof(Answer);
  Answer answer;
  std::memcpy(&answer, place, sizeof answer);
  change(answer);
  std::memcpy(place, &answer, sizeof answer);
}

void name_backing(OpenAnswer& answer) {
  answer.open_flags |= kOpenPassthrough;
  answer.backing_id = static_cast<uint32_t>(named_backing);
}

}  // namespace

// libfuse offers custom I/O functions for other transports; here they watch its messages.
void InitExtension::watch(fuse_session* session) {
  const fuse_custom_io io = {
      .writev = &write, .read = &read, .splice_receive = &splice, .splice_send = &splice};
  (void)::fuse_session_custom_io(session, &io, ::fuse_session_fd(session));
}

bool InitExtension::want_killpriv_v2(fuse_conn_info*) { return want(kKillprivV2); }
bool InitExtension::want_passthrough(fuse_conn_info*) { return want(kPassthrough); }
bool InitExtension::want_direct_io_with_maps(fuse_conn_info*) { return want(kDirectIoWithMaps); }

bool InitExtension::want(uint64_t flag) {
  wanted_ |= offered_ & flag;
  return (offered_ & flag) != 0;
}

ssize_t InitExtension::read(int fd, void* bytes, size_t size, void* filesystem) {
  const ssize_t count = ::read(fd, bytes, size);
  InitExtension& extension = extension_of(filesystem);
  if (count > 0 && !extension.agreed_.load(std::memory_order_relaxed)) {
    extension.see_request(bytes, static_cast<size_t>(count));
  }
  return count;
}

// INIT is the kernel's first request, and the only one until its reply.
void InitExtension::see_request(const void* bytes, size_t size) {
  InitRequest request;
  if (size < sizeof request) return;
  std::memcpy(&request, bytes, sizeof request);
  if (request.header.opcode != FUSE_INIT || (request.flags & kInitExt) == 0) return;
  offered_ = request.flags | uint64_t{request.flags2} << 32;
}

ssize_t InitExtension::write(int fd, iovec* pieces, int count, void* filesystem) {
  InitExtension& extension = extension_of(filesystem);
  if (!extension.agreed_.load(std::memory_order_relaxed)) extension.complete_answer(pieces, count);
  if (named_backing > 0) change<OpenAnswer>(pieces, count, name_backing);
  return ::writev(fd, pieces, count);
}

void InitExtension::complete_answer(const iovec* pieces, int count) {
  agreed_.store(true, std::memory_order_relaxed);
  if (wanted_ == 0) return;
  change<InitAnswer>(pieces, count, [&](InitAnswer& answer) {
    answer.flags |= static_cast<uint32_t>(wanted_ | kInitExt);
    answer.flags2 |= static_cast<uint32_t>(wanted_ >> 32);
    if ((wanted_ & kPassthrough) != 0) answer.max_stack_depth = kStackDepth;
  });
}

NamedBacking::NamedBacking(fuse_file_info*, int backing_id) { named_backing = backing_id; }
NamedBacking::~NamedBacking() { named_backing = 0; }

}  // namespace graphlane::fuse

#endif
