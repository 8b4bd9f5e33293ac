// Messages with descriptors over a Unix socket (SOCK_SEQPACKET: each whole or not at all).
#pragma once

#include <sys/types.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "iomgr/base/fd.h"
#include "iomgr/base/result.h"

namespace graphlane::share {

inline constexpr size_t kMessageBytesMax = 160u << 10;  // a set of 2^20 partitions, and more
inline constexpr size_t kMessageFdsMax = 72;            // of files; below the kernel's 253

struct Message {
  std::string bytes;
  std::vector<Fd> fds;

  // Reads the message's head; false: it is too short for a T.
  template <class T>
  bool read(T& head) const {
    if (bytes.size() < sizeof head) return false;
    std::memcpy(&head, bytes.data(), sizeof head);
    return true;
  }
  std::string_view after(size_t head_bytes) const {
    return std::string_view(bytes).substr(std::min(head_bytes, bytes.size()));
  }
};

// Sends all or nothing. `flags`: MSG_DONTWAIT if a slow reader must not block the caller.
Result<void> send_message(int socket, std::string_view bytes, std::span<const int> fds = {},
                          int flags = 0);

template <class T>
Result<void> send_head(int socket, const T& head, std::string_view rest = {},
                       std::span<const int> fds = {}, int flags = 0) {
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  return send_message(socket, bytes.append(rest), fds, flags);
}

// ECONNRESET: the other end is closed. EMSGSIZE: longer than kMessageBytesMax, or too many
// descriptors.
Result<Message> receive_message(int socket, int flags = 0);

// Sets the send buffer for the largest message, whatever the machine's default is.
void enlarge_buffers(int socket);

// The user of the other end's process, from the kernel.
Result<uid_t> peer_user(int socket);

// Whether the number stands for one user. In a user namespace (`graphlane run`, rootless
// containers) the kernel shows all users that are not mapped there as one overflow number.
bool is_mapped_user(uid_t user);

}  // namespace graphlane::share
