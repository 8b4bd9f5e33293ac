#include "adapters/share/coordinator/attach_request.h"

#include <fcntl.h>

#include <climits>
#include <utility>

#include "adapters/share/memory/sealed_memory.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/reopen.h"

namespace graphlane::share {
namespace {

// The descriptors of an attach message: the layout, a directory, and then the files.
constexpr size_t kFirstFile = 2;

// A new open file description, so that the job cannot change our file's flags. If the coordinator
// may not open the file itself, it keeps the job's descriptor.
Fd reopen_or_keep(Fd file) {
  Fd reopened = reopen(file.get(), O_RDONLY | O_NONBLOCK);
  return reopened ? std::move(reopened) : std::move(file);
}

Outcome<std::string> read_layout(const Fd& memory, uint64_t bytes_max) {
  const Result<uint64_t> size_bytes = sealed_size(memory.get());
  if (!size_bytes || *size_bytes > bytes_max) {
    return make_error(EPROTO, "the graph's layout is not sealed, or larger than {} bytes",
                      bytes_max);
  }
  std::string bytes(*size_bytes, '\0');
  const Result<size_t> got = pread_full(memory.get(), bytes.data(), bytes.size(), 0);
  if (!got || *got != bytes.size()) return make_error(EPROTO, "the graph's layout cannot be read");
  return bytes;
}

Outcome<void> take_files(std::vector<Fd>& shown, GraphFiles* files) {
  for (size_t i = kFirstFile; i < shown.size(); ++i) {
    const Result<FileIdentity> identity = identify(shown[i].get());
    if (!identity) {
      return make_error(EACCES, "{}: file {} is not one that the job has open for reading",
                        files->name, i - kFirstFile);
    }
    files->identities.push_back(*identity);
    files->direct.push_back(reopen(shown[i].get(), O_RDONLY | O_NONBLOCK | O_DIRECT));
    files->files.push_back(reopen_or_keep(std::move(shown[i])));
  }
  return {};
}

}  // namespace

Outcome<AttachRequest> read_attach_request(Message& message, uint64_t layout_bytes_max) {
  AttachRequest request;
  const AttachMessage& attach = request.message;
  if (!message.read(request.message) || attach.kind != Kind::kAttach) {
    return make_error(EPROTO, "not a job");
  }
  if (attach.version != kProtocolVersion) {
    return make_error(EPROTO, "this job speaks version {}, its coordinator version {}",
                      attach.version, kProtocolVersion);
  }
  if (message.fds.size() <= kFirstFile) return make_error(EPROTO, "the job shows no files");
  GraphFiles& files = request.files;
  files.name = message.after(sizeof attach);
  if (files.name.size() > NAME_MAX) {
    return make_error(EPROTO, "the name of the graph's first file has more than {} bytes",
                      NAME_MAX);
  }
  auto layout_bytes = read_layout(message.fds[0], layout_bytes_max);
  if (!layout_bytes) return layout_bytes.error();
  auto layout = Layout::from_bytes(*layout_bytes);
  if (!layout) return layout.error();
  if (Outcome<void> taken = take_files(message.fds, &files); !taken) return taken.error();
  if (Outcome<void> good = check(*layout, files.identities); !good) {
    return make_error(good.error().code, "{}: {}", files.name, good.error().text);
  }
  files.layout = std::move(*layout);
  request.layout_bytes = std::move(*layout_bytes);
  request.directory = std::move(message.fds[1]);
  return request;
}

}  // namespace graphlane::share
