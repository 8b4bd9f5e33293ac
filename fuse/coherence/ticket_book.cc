#include "fuse/coherence/ticket_book.h"

#include <algorithm>

#include "fuse/inode/open_file.h"

namespace graphlane {

void TicketBook::issue(OpenFile& handle, Inode& inode, uid_t user, TicketGrant* grant) {
  grant->ticket = Uuid::random();
  grant->secret = Uuid::random();
  const int access = handle.access & O_ACCMODE;
  // Gives no right to write with O_APPEND: the kernel picks the place, and we could not tell it of
  // our writes in time.
  const Shown shown{.inode = &inode,
                    .secret = grant->secret,
                    .may_read = access != O_WRONLY,
                    .may_write = access != O_RDONLY && (handle.access & O_APPEND) == 0};
  const MutexLock lock(mu_);
  if (of_users_.size() >= kUsersMax && !of_users_.contains(user)) drop_oldest_user();
  std::deque<Entry>& entries = of_users_[user];
  if (entries.size() == kOfUserMax) erase(entries, entries.begin());
  entries.push_back({grant->ticket, &handle, shown, Clock::now()});
  handle.ticket_count += 1;
}

std::optional<TicketBook::Shown> TicketBook::take(const Uuid& ticket, uid_t user) {
  const MutexLock lock(mu_);
  const auto of_user = of_users_.find(user);
  if (of_user == of_users_.end()) return std::nullopt;
  std::deque<Entry>& entries = of_user->second;
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.ticket == ticket; });
  if (found == entries.end()) return std::nullopt;
  const Shown shown = found->shown;
  const bool is_late = Clock::now() - found->issued > kLifetime;
  erase(entries, found);
  if (entries.empty()) of_users_.erase(of_user);
  if (is_late) return std::nullopt;
  inodes_.hold(*shown.inode);  // the handle is open, and so the inode is there
  return shown;
}

void TicketBook::drop(OpenFile& handle) {
  const MutexLock lock(mu_);
  if (handle.ticket_count == 0) return;
  for (auto& [user, entries] : of_users_) {
    std::erase_if(entries, [&](const Entry& entry) { return entry.handle == &handle; });
  }
  std::erase_if(of_users_, [](const auto& of_user) { return of_user.second.empty(); });
}

void TicketBook::drop_oldest_user() {
  const auto oldest = std::min_element(of_users_.begin(), of_users_.end(), [](const auto& a, const auto& b) {
    return a.second.front().issued < b.second.front().issued;
  });
  for (const Entry& entry : oldest->second) entry.handle->ticket_count -= 1;
  of_users_.erase(oldest);
}

void TicketBook::erase(std::deque<Entry>& entries, std::deque<Entry>::iterator entry) {
  entry->handle->ticket_count -= 1;
  entries.erase(entry);
}

}  // namespace graphlane
