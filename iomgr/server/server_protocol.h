// The messages between the preload library and a server. A connection carries one question:
//
//
//   client ──ioctl(kTicketIoctl) by its descriptor of the file──►  a mount's daemon
//          ◄──the socket's name, a ticket, a secret──────────────
//   client ──Request with the ticket──►  the listener on that socket
//          ◄──Proof: the secret────────  its server
//          ◄──Reply + generations + the N parts──
//
// A ticket is given for one descriptor. A ticket of a descriptor that is open for reading gets the
// file's parts for reading, however its directories are protected.
//
// **Authentication.** The socket's name is abstract: any process in another network namespace may
// take it. So the client trusts no listener until it proves itself, and shows it no descriptor.
// The kernel delivers the ioctl only to the server of the file's filesystem. So a listener that
// knows the ticket's secret is that server. A ticket is good once, for the user it was given to.
// A process that takes the name, and carries tickets to the real server as another user, learns no
// secret. A mount does not look at a descriptor that comes with a question.
//
// A volume's server without a mount (`graphlane serve`, volume_server.h) listens at
// VOL/.graphlane/run/server. Clients show it descriptors of stubs, for reading only. It answers
// ShareRequests, for which the file's generation is its stub's ctime. It answers StatsRequests,
// with a descriptor of VOL itself. No daemon stands behind a stub to give a ticket, but the
// socket is a file, and the kernel vouches for it as well. A connection by that inode ends at the
// process that made it, and no other process can interfere. The inode's owner is the user of that
// process. The client opens the inode and checks that its owner, and the owner of the directory,
// may be believed (share_client.h). It connects by that very inode before it shows anything.
//
// **Generations** are counters in a page that the server writes and clients map.
// A file's counter moves when its first writer comes and when its last one has
// gone, before either's open() or close() is answered. So a client that finds the
// counter as it was when it asked may read the parts; any other asks again.
//
// The same page counts the reads that the kernel has asked the server for. If the count did not
// move during a read through the kernel, the kernel's page cache served that read.
//
// **Writing.** A WriteRequest with a ticket of a descriptor that is open for writing gets the parts
// for writing only. The client keeps the connection. Before each write it asks, and after it says
// how far it got:
//
//   client ──WriteBegin──► ◄──WriteReply──   (writes to the parts)   ──WriteEnd──► ◄──WriteReply──
//
// The server says no while another process has the file open. It drops the kernel's pages of the
// range before and after. So ranges are whole pages: else a mapped page would come back over what
// was written. A connection that ends is a write that ended where it began.
//
// **Appending.** For small writes at the end, two questions each are too many. With the parts the
// client gets a page of memory (iomgr/volume/parts/append_progress.h). It asks once, then appends up
// to so many bytes, and counts them there. Before each write it looks whether the server is alive,
// because the server keeps other writers away:
//
//   client ──AppendBegin──► ◄──WriteReply: the end──   (writes to the parts, counts)*
//
// The server reads the count when it needs the file's size, and ends the append before anything else
// changes. It refuses while the file has another handle. The client does not ask for a descriptor
// that is open for reading: the kernel does not know the size, and a map would end too early.
//
// **Sharing.** A ShareRequest with a ticket of a descriptor that is open for reading is told which
// of the file's frames the server has in memory (shared_frames.h). The client keeps the
// connection. It asks for a range that is missing. As it goes on, it reports each range that it
// has copied from the parts' page cache, asked for or not:
//
//   client ──ShareFetch──► ◄──ShareReply──  (copies)  ──SharePassed──► (no answer)
//
// **Showing.** A MapRequest with a ticket of a descriptor that is open for reading gets a
// descriptor of the stub with StubLock::kMapped. While the client keeps it, no process changes the
// file, and the client may map the file's pages. EBUSY: a writer changes it now.
//
// **Counting.** With the parts a client gets a page of its user's, in which it counts what it reads
// and writes of each device (server/client_counts.h). For `graphlane stat`, and nothing else.
//
// **Closing.** A program that changes a file without a mount sends the volume's server a ChangeNotice
// with a descriptor of the stub, and waits for no answer. The server closes the file when no program
// writes it any more (late_closer.h). Programs of `graphlane run` tell its closer instead.
//
// Where the volume of a mount is served, the mount passes such a request on, and the connection
// back:
//
//   client ──ShareRequest──► mount ──PassedShareRequest──► server
//          ◄──Reply + frames + connection──  ◄──Reply + frames──
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/ioctl.h>
#include <sys/time.h>

#include <atomic>
#include <cstdint>
#include <cstring>

#include "iomgr/volume/stub/stripe.h"
#include "iomgr/volume/stub/stub.h"

namespace graphlane {

inline constexpr char kServerXattr[] = "user.graphlane.server";
inline constexpr uint32_t kServerNameSize = 42;  // "graphlane-" and 32 digits, no NUL

// Files share counters: a writer of another file at worst makes a client ask once more.
inline constexpr uint32_t kGenerationCount = 8192;
using Generation = std::atomic<uint64_t>;
// Behind them is the word of a robust futex. A client may append while the server holds it.
inline constexpr size_t kLifeOffset = 2 * kGenerationCount * sizeof(Generation);
inline constexpr size_t kLifeBytes = 64;
inline constexpr size_t kGenerationsBytes = kLifeOffset + kLifeBytes;
static_assert(Generation::is_always_lock_free);

// The count of reads that the server has served, of the same file.
template <class Counter>
constexpr Counter* served_counter(Counter* generation) {
  return generation + kGenerationCount;
}

// The bytes that programs of one user have moved, for one device of the volume.
struct DeviceCounts {
  std::atomic<uint64_t> io_count{0};
  std::atomic<uint64_t> bytes_read{0};
  std::atomic<uint64_t> bytes_written{0};
  uint64_t padding = 0;
};
inline constexpr size_t kClientCountsBytes = kDeviceCountMax * sizeof(DeviceCounts);

inline uint32_t generation_index(const Uuid& file_id) {
  uint32_t bits;  // random already
  std::memcpy(&bits, file_id.bytes.data(), sizeof bits);
  return bits % kGenerationCount;
}

// The answer to kTicketIoctl on an open striped file of a mount. Good once, for the user that
// asked.
struct TicketGrant {
  char server[kServerNameSize];
  uint8_t padding[6];
  Uuid ticket;
  Uuid secret;
};
static_assert(sizeof(TicketGrant) == 80);
inline constexpr unsigned kTicketIoctl = _IOR(0xb7, 0x47, TicketGrant);

// A question, with its kind as the magic: ServerRequest::kMagic, WriteRequest::kMagic, … A mount
// gets a ticket and no descriptor; a volume's server gets a descriptor and zeros.
struct ServerRequest {
  static constexpr uint32_t kMagic = 0x32514c47;  // "GLQ2"
  uint32_t magic = kMagic;
  uint32_t client = 0;  // PassedShareRequest only
  Uuid ticket = {};
};

// Answers a question with a ticket, at once and before the reply.
struct ServerProof {
  static constexpr uint32_t kMagic = 0x314f4c47;  // "GLO1"
  uint32_t magic = kMagic;
  uint32_t padding = 0;
  Uuid secret;
};

struct ServerReply {
  static constexpr uint32_t kMagic = 0x32524c47;  // "GLR2"
  uint32_t magic = kMagic;
  int32_t error = 0;        // 0; EAGAIN: a writer has it open; or another errno
  uint64_t generation = 0;  // for 0 and EAGAIN
  uint32_t generation_index = 0;
  uint32_t device_count = 0;
  StubBytes stub = {};  // the layout, state closed; for 0

  // Then device_count directories, each with its NUL. Descriptors go along in this order:
  //   - the generations (error 0 and EAGAIN)
  //   - the parts (error 0)
  //   - where the mount verifies reads: for each part its `.sum`, or the part itself without one
  //   - perhaps the user's page of DeviceCounts
  // A ShareRequest gets the frames instead, and perhaps another connection to share by (error 0).
};

struct WriteRequest {
  // "GLW2"; the reply is a ServerReply. Behind the parts comes the page of an AppendProgress.
  static constexpr uint32_t kMagic = 0x32574c47;
};

struct WriteBegin {
  static constexpr uint32_t kMagic = 0x31424c47;  // "GLB1"
  uint32_t magic = kMagic;
  uint32_t padding = 0;
  uint64_t offset = 0;  // of whole pages
  uint64_t length_bytes = 0;
};

struct WriteEnd {
  static constexpr uint32_t kMagic = 0x31454c47;  // "GLE1"
  uint32_t magic = kMagic;
  uint32_t padding = 0;
  uint64_t written_end = 0;  // offset behind the last byte written
};

// The most bytes of one AppendBegin.
inline constexpr uint64_t kAppendMax = 16u << 20;

// The end of what goes before, too.
struct AppendBegin {
  static constexpr uint32_t kMagic = 0x31414c47;  // "GLA1"
  uint32_t magic = kMagic;
  uint32_t padding = 0;
  uint64_t length_bytes = 0;
  uint64_t padding_2 = 0;  // as large as a WriteBegin
};

struct WriteReply {
  static constexpr uint32_t kMagic = 0x31594c47;  // "GLY1"
  uint32_t magic = kMagic;
  int32_t error = 0;        // 0; EAGAIN: through the mount; or another errno
  uint64_t size_bytes = 0;  // of the file
};

struct ShareRequest {
  static constexpr uint32_t kMagic = 0x31534c47;  // "GLS1"; the reply is a ServerReply
};

// A ShareRequest that a mount's daemon passes to the server of its volume, with a descriptor of the
// stub. The daemon's client gets the connection. `client` tells the daemon's clients apart; not 0.
struct PassedShareRequest {
  static constexpr uint32_t kMagic = 0x31564c47;  // "GLV1"; the reply is a ServerReply
};

struct MapRequest {
  static constexpr uint32_t kMagic = 0x314d4c47;  // "GLM1"; the reply is a ServerReply
};

struct StatsRequest {
  static constexpr uint32_t kMagic = 0x31544c47;  // "GLT1"; the reply is a ServerReply, then JSON
};

// From the daemon of a private mount to the server of its volume, with a descriptor of VOL. The
// reply carries the page of the daemon's user.
struct CountsRequest {
  static constexpr uint32_t kMagic = 0x31434c47;  // "GLC1"; the reply is a ServerReply
};

// To the server of a volume: the shown stub's file is being changed.
struct ChangeNotice {
  static constexpr uint32_t kMagic = 0x314e4c47;  // "GLN1"; the reply is a ServerReply
};

struct ShareMessage {
  static constexpr uint32_t kFetch = 0x31464c47;   // "GLF1"
  static constexpr uint32_t kPassed = 0x31504c47;  // "GLP1"
  uint32_t magic = kFetch;
  uint32_t padding = 0;
  uint64_t offset = 0;
  uint64_t length_bytes = 0;
};

struct ShareReply {
  static constexpr uint32_t kMagic = 0x31484c47;  // "GLH1"
  uint32_t magic = kMagic;
  int32_t error = 0;  // 0: it was in memory a moment ago; EAGAIN: no room; ESTALE: the file
                      // has changed; or a device's errno
};

// How long a client waits for the proof, which the server sends at once.
inline constexpr timeval kProofPatience = {.tv_sec = 1, .tv_usec = 0};
// How long a client waits for an answer. A dead server fails at once, and a stopped one stops the
// mount as well. But slow devices may have the requests of sixteen jobs before this one.
inline constexpr timeval kServerPatience = {.tv_sec = 30, .tv_usec = 0};
// For the first answer of a volume's server. The client can do without it, and the answer waits
// for no device.
inline constexpr timeval kVolumeServerPatience = {.tv_sec = 2, .tv_usec = 0};

inline constexpr uint32_t kServerDescriptorsMax =
    2 + 2 * kDeviceCountMax;  // those of a writer: 3 + kDeviceCountMax
inline constexpr size_t kServerReplyMax = sizeof(ServerReply) + kDeviceCountMax * 4096;

}  // namespace graphlane
