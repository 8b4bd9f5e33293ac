#include "fuse/coherence/ticket_book.h"

#include <algorithm>

#include "fuse/inode/open_file.h"

namespace graphlane::fuse {

void TicketBook::issue(OpenFile& handle, Inode& inode, uid_t user, TicketGrant* grant) {
  grant->ticket = Uuid::random();
  grant->secret = Uuid::random();
  const int access = handle.access & O_ACCMODE;
  const Shown shown{.inode = &inode,
                    .secret = grant->secret,
                    .may_read = access != O_WRONLY,
                    .may_write = access != O_RDONLY,
                    .appends = (handle.access & O_APPEND) != 0};
  const MutexLock lock(mu_);
  if (by_user_.size() >= kUsersMax && !by_user_.contains(user)) drop_oldest_user();
  std::deque<Entry>& entries = by_user_[user];
  if (entries.size() == kPerUserMax) erase(entries, entries.begin());
  entries.push_back({grant->ticket, &handle, shown, Clock::now()});
  handle.ticket_count += 1;
}

std::optional<TicketBook::Shown> TicketBook::take(const Uuid& ticket, uid_t user) {
  const MutexLock lock(mu_);
  const auto of_user = by_user_.find(user);
  if (of_user == by_user_.end()) return std::nullopt;
  std::deque<Entry>& entries = of_user->second;
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const Entry& entry) { return entry.ticket == ticket; });
  if (found == entries.end()) return std::nullopt;
  const Shown shown = found->shown;
  const bool is_late = Clock::now() - found->issued > kLifetime;
  erase(entries, found);
  if (entries.empty()) by_user_.erase(of_user);
  if (is_late) return std::nullopt;
  inodes_.hold(*shown.inode);  // the handle is open, so the inode exists
  return shown;
}

void TicketBook::drop(OpenFile& handle) {
  const MutexLock lock(mu_);
  if (handle.ticket_count == 0) return;
  for (auto& [user, entries] : by_user_) {
    std::erase_if(entries, [&](const Entry& entry) { return entry.handle == &handle; });
  }
  std::erase_if(by_user_, [](const auto& of_user) { return of_user.second.empty(); });
}

void TicketBook::drop_oldest_user() {
  const auto oldest =
      std::min_element(by_user_.begin(), by_user_.end(), [](const auto& a, const auto& b) {
        return a.second.front().issued < b.second.front().issued;
      });
  for (const Entry& entry : oldest->second) entry.handle->ticket_count -= 1;
  by_user_.erase(oldest);
}

void TicketBook::erase(std::deque<Entry>& entries, std::deque<Entry>::iterator entry) {
  entry->handle->ticket_count -= 1;
  entries.erase(entry);
}

}  // namespace graphlane::fuse
