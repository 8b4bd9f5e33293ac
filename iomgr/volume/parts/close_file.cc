#include "iomgr/volume/parts/close_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <optional>

#include "iomgr/base/files/regular_file.h"
#include "iomgr/volume/parts/live_file.h"
#include "iomgr/volume/parts/part_files.h"
#include "iomgr/volume/volume.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {
namespace {

// None: it is no stub.
Outcome<std::optional<Layout>> layout_in(int stub_fd, const std::string& name) {
  Layout layout;
  const Result<StubVerdict> verdict = inspect_stub(stub_fd, &layout);
  if (!verdict) return os_error(verdict.error().code, name, "cannot read");
  if (*verdict != StubVerdict::kStub) return std::optional<Layout>();
  return std::optional(layout);
}

Outcome<bool> close_stub(const Volume& volume, const Layout& layout, Fd stub,
                         const std::string& name) {
  if (Outcome<void> accepted = volume.accept(layout, name); !accepted) return accepted.error();
  if (is_being_changed(stub.get())) return make_error(EBUSY, "{}: is being written", name);
  // Before it has the file: devices may take long, and others would wait for it.
  for (const Device& device : volume.devices()) {
    const Fd part = open_part(device.root_fd.get(), layout.file_id);
    if (part) (void)::fdatasync(part.get());
  }
  const auto live = LiveFile::open(volume, layout, std::move(stub), name);
  if (!live) return live.error();
  (*live)->give_way();
  if (!(*live)->needs_close()) return false;
  const uint64_t change_count = (*live)->change_count();
  Result<void> done = (*live)->sync(/*data_only=*/true);
  if (done) done = (*live)->close(change_count);
  if (done) return true;
  const int code = done.error().code;
  return os_error(code == EAGAIN ? EBUSY : code, name, "cannot close it");
}

}  // namespace

Outcome<bool> close_file(const std::string& path) {
  Fd stub = open_regular(AT_FDCWD, path.c_str(), O_RDWR);
  if (!stub) return os_error(errno, path, "cannot open");
  const Outcome<std::optional<Layout>> layout = layout_in(stub.get(), path);
  if (!layout) return layout.error();
  if (!*layout) return false;
  const Outcome<std::string> root = find_volume_root(path);
  if (!root) return root.error();
  const auto volume = Volume::open(*root);
  if (!volume) return volume.error();
  return close_stub(**volume, **layout, std::move(stub), path);
}

Outcome<bool> close_file(const Volume& volume, Fd stub, const std::string& name) {
  const Outcome<std::optional<Layout>> layout = layout_in(stub.get(), name);
  if (!layout) return layout.error();
  if (!*layout) return false;
  return close_stub(volume, **layout, std::move(stub), name);
}

}  // namespace graphlane
