#include "iomgr/admin/transfer_staging.h"

#include <optional>

#include "iomgr/admin/bulk_copy.h"
#include "iomgr/admin/write_behind.h"
#include "iomgr/base/files/file_attributes.h"
#include "iomgr/volume/stub/part_record_io.h"
#include "iomgr/volume/sum/sum_builder.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {

Outcome<StagingDirectory> StagingDirectory::create(const Volume& volume) {
  const TreePlace tmp{.directory_fd = volume.root_fd(),
                      .path = kStagingDirectory,
                      .shown = volume.root() + "/" + kStagingDirectory};
  (void)::mkdirat(tmp.directory_fd, tmp.path.c_str(), 0700);
  TreePlace own = tmp.at(UuidText(Uuid::random()).c_str());
  if (::mkdirat(own.directory_fd, own.path.c_str(), 0700) != 0) {
    return control_error(volume.root(), own.shown, errno, "cannot write to the volume");
  }
  return StagingDirectory(volume, std::move(own));
}

StagingDirectory::~StagingDirectory() {
  if (volume_ != nullptr) (void)remove_volume_tree(*volume_, own_, /*force=*/true);
}

StripedCopies::StripedCopies(const Volume& volume, TransferState* state)
    : volume_(volume),
      state_(*state),
      next_first_device_(Uuid::random().bytes[0]),
      unsynced_(volume) {}

Outcome<void> StripedCopies::add(int fd, const TreePlace& from, const struct stat& info,
                                 const TreePlace& to, uint64_t stripe_depth_bytes) {
  Layout layout{.volume = volume_.uuid(),
                .file_id = Uuid::random(),
                .geometry = {.stripe_depth_bytes = stripe_depth_bytes,
                             .device_count = volume_.device_count(),
                             .first_device = next_first_device_++ % volume_.device_count()},
                .logical_size = static_cast<uint64_t>(info.st_size),
                .state = FileState::kClosed,
                .codec = Codec::kNone};
  // A sparse file stays sparse.
  const bool is_dense = info.st_blocks * 512 >= info.st_size;
  // The stub comes first, because the parts name its inode.
  const Outcome<Fd> stub = create_file(to, 0);
  if (!stub) return stub.error();
  const Result<StubSeen> seen = identify_stub(stub->get());
  if (!seen) return to.error(seen.error().code, "cannot look at");
  layout.identity = seen->identity;
  const Outcome<NewParts> made = create_parts(volume_, layout, from.shown, is_dense);
  Outcome<void> written = made ? write_parts(fd, from, info, layout, stub->get()) : made.error();
  if (written) written = write_stub(fd, to, layout, stub->get());
  if (const ShortPlace place(to); !written) ::unlinkat(place.directory_fd(), place.path(), 0);
  if (!written && made) (void)remove_parts(volume_, layout.file_id);
  return written;
}

Outcome<void> StripedCopies::write_parts(int fd, const TreePlace& from, const struct stat& info,
                                         const Layout& layout, int stub_fd) {
  const auto file = StripedFile::open_new(volume_, layout, from.shown);
  if (!file) return file.error();
  Outcome<SumBuilder> sums = SumBuilder::create(volume_, **file);
  if (!sums) return sums.error();
  std::optional<WriteBehind> write_behind;  // its threads cost more than they gain for one chunk
  if (layout.logical_size > kCopyChunk) write_behind.emplace(**file);
  const BulkCopy copy{
      .size_bytes = layout.logical_size,
      .thread_count = 2 * volume_.device_count(),
      .read_in_turn = true,
      .read =
          [&](ByteRange range, char* buffer) {
            const Outcome<void> go_on = state_.check_wanted();
            return go_on ? read_source(fd, from, range, buffer) : go_on;
          },
      .write =
          [&](ByteRange range, const char* buffer) {
            Outcome<void> written =
                transfer_striped(volume_, **file, IoOp::kWrite, range, const_cast<char*>(buffer));
            if (write_behind) write_behind->noticed(range);
            return written ? sums->add(range, buffer) : written;
          },
      .next_data =
          [&](uint64_t offset) { return next_data_offset(fd, offset, layout.logical_size); },
      .progress = state_.progress};
  if (Outcome<void> copied = graphlane::run(copy); !copied) return copied;
  if (Outcome<void> same = check_unchanged(fd, from, info); !same) return same;
  if (write_behind) write_behind->finish();
  if (Outcome<void> summed = sums->finish(); !summed) return summed;
  copy_attributes(fd, stub_fd);
  Outcome<void> bound =
      bind_parts(volume_, (*file)->parts().all_buffered(), layout, stub_fd, PartRecord::kMaking,
                 from.shown, [&](PartRecord& record) { sums->note_in(record); });
  if (!bound) return bound;
  return unsynced_.add(**file);
}

// Sets the times last, because writing changes them.
Outcome<void> StripedCopies::write_stub(int like_fd, const TreePlace& to, const Layout& layout,
                                        int stub_fd) {
  if (Result<void> written = graphlane::write_stub(stub_fd, layout); !written) {
    return to.error(written.error().code, "cannot write");
  }
  copy_attributes(like_fd, stub_fd);
  state_.summary.striped_count += 1;
  state_.summary.bytes += layout.logical_size;
  return {};
}

}  // namespace graphlane
