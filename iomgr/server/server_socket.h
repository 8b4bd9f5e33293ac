// ServerSocket: the sockets of server_protocol.h, as both ends need them: where a server is,
// and a question with the descriptor that it is about.
//
// No allocation, no exceptions: the preload library uses this too.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "iomgr/base/fd.h"
#include "iomgr/server/server_protocol.h"

namespace graphlane {

inline constexpr char kServerSocketName[] = "server";  // in the run directory

class ServerAddress {
 public:
  // An abstract one, of kServerNameSize bytes: it lies in no directory, and a mount may cover
  // every directory that is its volume's.
  static ServerAddress of_mount(const char* name);
  // VOL/.graphlane/run/server, by the open directory (a path can be longer than an address). A
  // process that may not make files there cannot take its place. The descriptor stays open
  // meanwhile.
  static ServerAddress of_volume(int run_directory);
  // As above, by the socket's own open file (O_PATH), whatever has its name by now.
  static ServerAddress of_file(int socket_file);

  // Empty: errno. EADDRINUSE: a server listens there, or (of_volume) did.
  Fd listen() const;
  // Empty: no server answers there (errno).
  Fd connect(timeval patience) const;
  // One byte, by a datagram, to the process that has bound it; false: there is none.
  bool send_byte() const;

 private:
  sockaddr_un address_ = {.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t length_ = 0;
};

// All that waits for the other end waits so long at most. A lapse is EAGAIN.
void set_patience(int socket, timeval patience);

// Sends all of it, with up to kServerDescriptorsMax descriptors. False: the other end has gone; or
// does not read, where the socket does not block.
bool send_message(int socket, std::span<const iovec> pieces, std::span<const int> fds);

// Sends a client's question: with a descriptor, or (to a mount) with a ticket and none.
bool send_question(int socket, const ServerRequest& request, int fd = -1);

// Whether the other end proves that it knows the secret. Takes no descriptor from it: to close a
// stranger's could take for ever.
bool receive_proof(int socket, const Uuid& secret);

// A message, with the descriptors that came along: the receiver's to take, closed otherwise.
struct ServerMessage {
  ssize_t length_bytes = -1;
  int fds[kServerDescriptorsMax];
  uint32_t fd_count = 0;

  ServerMessage() = default;
  ~ServerMessage() {
    for (uint32_t i = 0; i < fd_count; ++i) {
      if (fds[i] >= 0) sys::close(fds[i]);
    }
  }
  ServerMessage(const ServerMessage&) = delete;
  ServerMessage& operator=(const ServerMessage&) = delete;

  int take(uint32_t index) {
    const int fd = fds[index];
    fds[index] = -1;
    return fd;
  }
};
void receive_message(int socket, void* buffer, size_t size_bytes, ServerMessage* message);

// The reply that came, if it is one.
const ServerReply* reply_in(const ServerMessage& message, const char* buffer);

// The user at the other end; false: unknown. Of a server, its user when it began to listen.
bool find_peer(int socket, ucred* peer);

}  // namespace graphlane
