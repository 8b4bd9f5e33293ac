// ServerSocket: the sockets of server_protocol.h for both ends: a server's address, and messages
// with descriptors.
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
  // An abstract address, of kServerNameSize bytes. It lies in no directory, because a mount may
  // cover every directory of its volume.
  static ServerAddress of_mount(const char* name);
  // VOL/.graphlane/run/server, relative to the open directory, because a path can be longer than
  // an address. A process without write permission there cannot replace the socket. The
  // descriptor must stay open.
  static ServerAddress of_volume(int run_directory);
  // The socket as an open file (O_PATH), whatever has its name now.
  static ServerAddress of_file(int socket_file);

  // Empty: errno. EADDRINUSE: a server listens there, or (of_volume) an ended one did.
  Fd listen() const;
  // Empty: no server answers there (errno).
  Fd connect(timeval patience) const;
  // Sends one byte as a datagram to the process that has bound the address; false: none has.
  bool send_byte() const;

 private:
  sockaddr_un address_ = {.sun_family = AF_UNIX, .sun_path = {}};
  socklen_t length_ = 0;
};

// Limits every wait for the other end. A timeout is EAGAIN.
void set_patience(int socket, timeval patience);

// Sends all of it, with up to kServerDescriptorsMax descriptors. False: the other end is gone, or
// (on a non-blocking socket) does not read.
bool send_message(int socket, std::span<const iovec> pieces, std::span<const int> fds);

// Sends a client's question: with a descriptor, or (to a mount) with a ticket instead.
bool send_question(int socket, const ServerRequest& request, int fd = -1);

// Whether the other end proves that it knows the secret. Accepts no descriptor from it, because
// closing a foreign one could block for ever.
bool receive_proof(int socket, const Uuid& secret);

// A message with its descriptors. The receiver may take them; the destructor closes the others.
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

// The reply in the message; null: it is none.
const ServerReply* reply_in(const ServerMessage& message, const char* buffer);

// The process at the other end; false: unknown. A server's is that which called listen().
bool find_peer(int socket, ucred* peer);

}  // namespace graphlane
