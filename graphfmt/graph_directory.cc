#include "graphfmt/graph_directory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "iomgr/base/fd.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/files/tree.h"
#include "iomgr/volume/parts/parts.h"
#include "iomgr/volume/stub/stub_lock.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane::graphfmt {
namespace fs = std::filesystem;
namespace {

Outcome<Fd> open_regular(const std::string& path) {
  Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (!fd || ::fstat(fd.get(), &info) != 0) return os_error(errno, path, "cannot open");
  if (!S_ISREG(info.st_mode)) return make_error(EINVAL, "{}: not a regular file", path);
  return fd;
}

uint64_t size_of(const Fd& fd) {
  struct stat info = {};
  (void)::fstat(fd.get(), &info);
  return static_cast<uint64_t>(info.st_size);
}

Outcome<std::vector<std::string>> names_in(const std::string& directory, mode_t type) {
  const auto nodes =
      list_directory({.directory_fd = AT_FDCWD, .path = directory, .shown = directory});
  if (!nodes) return nodes.error();
  std::vector<std::string> names;
  for (const TreeNode& node : *nodes) {
    // The first is the directory itself.
    if (!node.path.empty() && (node.info.st_mode & S_IFMT) == type) names.push_back(node.path);
  }
  return names;
}

}  // namespace

Outcome<GraphDirectory> GraphDirectory::open(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return os_error(error.value(), path, "cannot open");
  if (!fs::is_directory(real, error)) return make_error(ENOTDIR, "{}: not a directory", path);
  return GraphDirectory(real.string());
}

Outcome<std::vector<std::string>> GraphDirectory::files(const std::string& directory) const {
  if (directory.empty()) return names_in(path_, S_IFREG);
  Outcome<std::vector<std::string>> names = names_in(path_of(directory), S_IFREG);
  if (names) {
    for (std::string& name : *names) name = directory + "/" + name;
  }
  return names;
}

Outcome<std::vector<std::string>> GraphDirectory::directories() const {
  return names_in(path_, S_IFDIR);
}

bool GraphDirectory::has(const std::string& name) const {
  std::error_code error;
  return fs::is_regular_file(path_of(name), error);
}

Outcome<std::shared_ptr<const Volume>> GraphDirectory::volume() const {
  if (volume_ == nullptr) {
    const Outcome<std::string> root = find_volume_root(path_);
    if (!root) return root.error();
    auto opened = Volume::open(*root);
    if (!opened) return opened.error();
    volume_ = std::move(*opened);
  }
  return volume_;
}

Outcome<std::optional<Layout>> GraphDirectory::layout_of(int fd, const std::string& path) const {
  Layout layout;
  const Result<StubVerdict> verdict = inspect_stub(fd, &layout);
  if (!verdict) return os_error(verdict.error().code, path, "cannot read");
  if (*verdict == StubVerdict::kNotAStub) return std::optional<Layout>();
  if (*verdict != StubVerdict::kStub) return make_error(EIO, "{}: {}", path, describe(*verdict));
  const auto own = volume();
  if (!own) return own.error();
  if (Outcome<void> accepted = (*own)->accept(layout, path); !accepted) return accepted.error();
  return std::optional<Layout>(current_layout(**own, layout));
}

Outcome<GraphFile> GraphDirectory::look(const std::string& name) const {
  const Outcome<Fd> fd = open_regular(path_of(name));
  if (!fd) return fd.error();
  const Outcome<std::optional<Layout>> layout = layout_of(fd->get(), path_of(name));
  if (!layout) return layout.error();
  if (!*layout) return GraphFile{.size_bytes = size_of(*fd), .stripe_depth_bytes = 0};
  return GraphFile{.size_bytes = (*layout)->logical_size,
                   .stripe_depth_bytes = (*layout)->geometry.stripe_depth_bytes};
}

Outcome<OpenGraphFile> GraphDirectory::open_file(const std::string& name) const {
  OpenGraphFile file;
  file.path_ = path_of(name);
  Outcome<Fd> fd = open_regular(file.path_);
  if (!fd) return fd.error();
  file.fd_ = std::move(*fd);
  Outcome<std::optional<Layout>> layout = layout_of(file.fd(), file.path_);
  if (layout && *layout) {
    hold_parts(file.fd());
    layout = layout_of(file.fd(), file.path_);
  }
  if (!layout) return layout.error();
  file.size_bytes_ = *layout ? (*layout)->logical_size : size_of(file.fd_);
  if (!*layout) return file;
  auto striped = StripedFile::open(*volume_, file.fd(), **layout, file.path_);
  if (!striped) return striped.error();
  file.striped_ = std::move(*striped);
  file.volume_ = volume_;
  return file;
}

Outcome<void> OpenGraphFile::read(ByteRange range, void* buffer) const {
  const auto ends = [&](uint64_t offset) {
    return make_error(EIO, "{}: byte {}: ends here, expected {} bytes", path_, offset, range.end());
  };
  if (range.end() > size_bytes_) return ends(size_bytes_);
  if (striped_ != nullptr) return transfer_striped(*volume_, *striped_, IoOp::kRead, range, buffer);
  const Result<size_t> got = pread_full(fd(), buffer, range.length_bytes, range.offset);
  if (!got) return os_error(got.error().code, path_, "cannot read");
  if (*got < range.length_bytes) return ends(range.offset + *got);
  return {};
}

Outcome<std::string> GraphDirectory::read(const std::string& name, uint64_t size_max) const {
  const Outcome<OpenGraphFile> file = open_file(name);
  if (!file) return file.error();
  const uint64_t size = file->size_bytes();
  if (size > size_max) {
    return make_error(EFBIG, "{}: byte {}: {} bytes, expected {} at most", file->path(), size_max,
                      size, size_max);
  }
  std::string content(size, '\0');
  if (Outcome<void> done = file->read({0, size}, content.data()); !done) return done.error();
  return content;
}

Outcome<GraphHeader> read_graph_header(const std::string& path) {
  constexpr std::string_view kRemedy = "graphlane convert --to lists makes one";
  const auto directory = GraphDirectory::open(path);
  if (!directory && directory.error().code == ENOTDIR) {
    return make_error(ENOTDIR, "{}: a file, not a stored graph ({})", path, kRemedy);
  }
  if (!directory) return directory.error();
  const auto bytes = directory->read(kGraphHeaderFile, kGraphHeaderBytes);
  if (!bytes && bytes.error().code == ENOENT && !directory->has(kGraphHeaderFile)) {
    return make_error(ENOENT, "{}: missing: {} is {}, not a stored graph ({})",
                      directory->path_of(kGraphHeaderFile), path,
                      directory->has("meta") ? "a grid" : "a directory", kRemedy);
  }
  if (!bytes) return bytes.error();
  return parse_header(*bytes, directory->path_of(kGraphHeaderFile));
}

}  // namespace graphlane::graphfmt
