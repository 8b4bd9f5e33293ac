#include "iomgr/server/share_links.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "iomgr/server/server_protocol.h"

namespace graphlane {
namespace {

// A client cannot ask for more at once, because a program's requests are smaller.
constexpr uint64_t kFetchMax = uint64_t{256} << 20;

}  // namespace

ShareLinks::~ShareLinks() {
  // All at once, because a client that is still served would ask for more.
  for (Link& link : links_) (void)::shutdown(link.connection.get(), SHUT_RDWR);
  for (Link& link : links_) end(link);
}

void ShareLinks::end(Link& link) {
  (void)::shutdown(link.connection.get(), SHUT_RDWR);  // wakes its thread
  if (link.thread.joinable()) link.thread.join();
}

bool ShareLinks::has_room(uid_t user) const {
  const auto of_user = static_cast<size_t>(std::count_if(
      links_.begin(), links_.end(), [&](const Link& link) { return link.user == user; }));
  return links_.size() < kLinksMax && of_user < kLinksMax - links_.size();
}

void ShareLinks::add(Fd connection, std::unique_ptr<SharedScan> scan, uid_t user) {
  Link& link = links_.emplace_back();
  link.connection = std::move(connection);
  link.scan = std::move(scan);
  link.user = user;
  try {
    link.thread = std::thread([&link] { serve(link); });
  } catch (const std::system_error&) {
    links_.pop_back();
  }
}

void ShareLinks::tidy() {
  links_.remove_if([](Link& link) {
    if (!link.ended.load(std::memory_order_acquire)) return false;
    end(link);
    return true;
  });
}

void ShareLinks::serve(Link& link) {
  const int connection = link.connection.get();
  for (;;) {
    ShareMessage message{};
    ssize_t received;
    do received = ::recv(connection, &message, sizeof message, 0);
    while (received < 0 && errno == EINTR);
    const ByteRange range{.offset = message.offset,
                          .length_bytes = std::min(message.length_bytes, kFetchMax)};
    const bool sensible = received == sizeof message && message.length_bytes > 0 &&
                          message.offset <= INT64_MAX && message.length_bytes <= INT64_MAX;
    if (!sensible) break;  // the client is gone, or its message is invalid
    if (message.magic == ShareMessage::kPassed) {
      link.scan->passed(range);
    } else if (message.magic == ShareMessage::kFetch) {
      const ShareReply reply{.error = link.scan->fetch(range)};
      if (::send(connection, &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof reply) {
        break;
      }
    } else {
      break;
    }
    link.scan->fetch_ahead();
  }
  link.scan.reset();
  link.ended.store(true, std::memory_order_release);
}

}  // namespace graphlane
