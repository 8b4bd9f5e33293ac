#include "fuse/coherence/part_server.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

#include "fuse/coherence/write_link.h"
#include "fuse/inode/striped.h"
#include "iomgr/base/files/reopen.h"
#include "iomgr/server/server_protocol.h"
#include "iomgr/server/server_socket.h"
#include "iomgr/server/share_client.h"
#include "iomgr/server/volume_server.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::fuse {
Outcome<std::unique_ptr<PartServer>> PartServer::start(Filesystem& fs) {
  std::unique_ptr<PartServer> part_server(new PartServer(fs));
  part_server->name_ = fmt::format("graphlane-{}", UuidText(Uuid::random()).view());
  Fd listening = ServerAddress::of_mount(part_server->name_.c_str()).listen();
  if (!listening) return os_error(errno, part_server->name_, "cannot listen");
  SharedCache* const shared = fs.shared ? &*fs.shared : nullptr;
  auto server = FileServer::start(std::move(listening), *part_server, shared);
  if (!server) return server.error();
  part_server->server_ = std::move(*server);
  return part_server;
}

// The mount's cache and the shared one have one budget, so shared bytes reduce the mount's. With an
// automatic budget both follow the free memory by themselves.
void PartServer::tidy() {
  const uint64_t budget = fs_.options.cache.budget_bytes;
  if (budget == kAutoBudget) return;
  fs_.extents.set_budget(budget - std::min(budget, fs_.shared->stats().resident_bytes));
}

FileServer::Answer PartServer::answer(const Question& question) {
  const bool writes = question.kind == WriteRequest::kMagic;
  const std::optional<TicketBook::Shown> shown = fs_.tickets.take(question.ticket, question.user);
  if (!shown) return FileServer::refusal(EACCES);
  send_proof(question.connection, shown->secret);
  Inode& inode = *shown->inode;
  Answer answer;
  if (question.kind == StatsRequest::kMagic) {
    answer = FileServer::refusal(EOPNOTSUPP);
  } else if (!(writes ? shown->may_write : shown->may_read)) {
    answer = FileServer::refusal(EACCES);
  } else if (writes && shown->appends && !fs_.direct_writes) {
    // The kernel's next append would leave pages at the end of the file that the kernel knows.
    answer = FileServer::refusal(EINVAL);
  } else if (writes) {
    answer =
        question.room_for_link ? answer_writer(inode, question.user) : FileServer::refusal(EMFILE);
    if (answer.link) return answer;  // the link keeps the look-up
  } else {
    answer = question.kind == ShareRequest::kMagic ? answer_sharer(inode, question)
             : question.kind == MapRequest::kMagic ? answer_mapper(inode)
                                                   : answer_reader(inode, question.user);
  }
  fs_.inodes.forget(inode.nodeid, 1);
  return answer;
}

std::optional<Layout> PartServer::layout_of(Inode& inode, struct stat* st) const {
  const Result<HostPath> path = fs_.inodes.path(inode);
  if (!path || inode.control || ::fstat(path->get(), st) != 0) return std::nullopt;
  const StubView view = inode.stub.look(path->get(), *st);
  if (!view.striped() || !fs_.volume->accept(view.layout, "")) return std::nullopt;
  return view.layout;
}

void PartServer::add_directories(Answer* answer) const {
  for (const Device& device : fs_.volume->devices()) {
    answer->text += device.root;
    answer->text += '\0';
  }
}

void PartServer::add_counts(uid_t user, Answer* answer) const {
  if (fs_.options.of_one_command && !fs_.client_counts.has_page(user)) {
    const int root_fd = fs_.volume->root_fd();
    const Fd run(::openat(root_fd, kRunDirectory, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (Fd page = run ? ask_volume_for_counts(run.get(), root_fd) : Fd()) {
      fs_.client_counts.take_page(user, std::move(page));
    }
  }
  const int page = fs_.client_counts.page_of(user);
  if (page >= 0) answer->fds.push_back(page);
}

FileServer::Answer PartServer::answer_writer(Inode& inode, uid_t user) const {
  struct stat st;
  const std::optional<Layout> layout = layout_of(inode, &st);
  Answer answer;
  Fd page;
  if (layout) answer.link = WriteLink::open(fs_, inode, *layout, st, &answer.opened, &page);
  if (!answer.link) return FileServer::refusal(EINVAL);
  answer.reply.generation_index = generation_index(layout->file_id);
  answer.reply.device_count = layout->geometry.device_count;
  answer.reply.stub = encode_stub(*layout);
  answer.fds = {fs_.live.generations().fd()};
  answer.opened.push_back(std::move(page));
  for (const Fd& opened : answer.opened) answer.fds.push_back(opened.get());
  add_counts(user, &answer);
  add_directories(&answer);
  return answer;
}

FileServer::Answer PartServer::open_to_read(Inode& inode, struct stat* stub) const {
  std::optional<Layout> found = layout_of(inode, stub);
  if (!found) return FileServer::refusal(EIO);
  Layout& layout = *found;
  Answer answer;
  ServerReply& reply = answer.reply;
  // Read before the file is checked: any later change advances the generation.
  reply.generation = fs_.live.generations().of(layout.file_id);
  reply.generation_index = generation_index(layout.file_id);
  reply.error = EAGAIN;
  if (const auto live = fs_.live.find(layout.file_id, *stub)) {
    if (fs_.live.has_writers(layout.file_id)) return answer;
    layout.logical_size = live->size();
    // no writer has it open, and each open advances the generation
    layout.state = FileState::kClosed;
  }
  if (layout.state != FileState::kClosed) return answer;
  const Result<HostPath> path = fs_.inodes.path(inode);
  auto file = path ? open_parts_to_read(*fs_.volume, path->get(), layout, *stub)
                   : Result<std::shared_ptr<StripedFile>>(path.error());
  reply.error = file ? 0 : file.error().code;
  if (!file) return answer;
  reply.device_count = layout.geometry.device_count;
  reply.stub = encode_stub(layout);
  answer.file = std::move(*file);
  return answer;
}

FileServer::Answer PartServer::answer_reader(Inode& inode, uid_t user) const {
  struct stat stub = {};
  Answer answer = open_to_read(inode, &stub);
  const bool is_known = answer.reply.error == 0 || answer.reply.error == EAGAIN;
  if (is_known) answer.fds = {fs_.live.generations().fd()};
  if (!answer.file) return answer;
  const PartFiles& parts = answer.file->parts();
  for (const int part : parts.all_buffered()) answer.fds.push_back(part);
  for (uint32_t d = 0; d < parts.count() && parts.sums().verifies(); ++d) {
    // If a part's checksums are lost, its reads must fail, so only this process may read it.
    if (parts.sums().is_lost(d)) return FileServer::refusal(EIO);
    answer.fds.push_back(parts.sums().has_blocks(d) ? parts.sums().fd(d) : parts.buffered(d));
  }
  add_counts(user, &answer);
  add_directories(&answer);
  return answer;
}

// Where the volume is served, programs of this mount share with those of other mounts and of none.
FileServer::Answer PartServer::answer_sharer(Inode& inode, const Question& question) const {
  struct stat stub = {};
  Answer answer = open_to_read(inode, &stub);
  answer.content = {.generation = answer.reply.generation, .time_ns = ctime_ns_of(stub)};
  if (answer.reply.error == 0) answer.passed_on = ask_volume_server(inode, question);
  return answer;
}

FileServer::Answer PartServer::answer_mapper(Inode& inode) const {
  struct stat stub = {};
  const Result<HostPath> path = fs_.inodes.path(inode);
  Fd permit;
  if (path && layout_of(inode, &stub)) permit = reopen(path->get(), O_RDONLY | O_NONBLOCK);
  if (!permit) return FileServer::refusal(EIO);
  if (Result<void> mine = lock_to_map(permit.get()); !mine) {
    return FileServer::refusal(mine.error().code);
  }
  Answer answer;
  answer.fds = {permit.get()};
  answer.opened.push_back(std::move(permit));
  return answer;
}

ShareAnswer PartServer::ask_volume_server(Inode& inode, const Question& question) const {
  const Fd run_directory(
      ::openat(fs_.volume->root_fd(), kRunDirectory, O_PATH | O_DIRECTORY | O_CLOEXEC));
  const Result<HostPath> path = fs_.inodes.path(inode);
  if (!run_directory || !path || question.process.pid == 0) return {};
  const Fd stub = reopen(path->get(), O_RDONLY | O_NONBLOCK);
  if (!stub) return {};
  return ask_volume_to_share(run_directory.get(), stub.get(),
                             static_cast<uint32_t>(question.process.pid));
}

}  // namespace graphlane::fuse
