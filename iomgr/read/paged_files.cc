#include "iomgr/read/paged_files.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "iomgr/volume/stub/stub_lock.h"
#include "iomgr/volume/volume_files.h"

namespace graphlane {
namespace {

// The size of a unit that holds any plain file whole.
constexpr StripeGeometry kPlainGeometry{
    .stripe_depth_bytes = kStripeDepthMax, .device_count = 2, .first_device = 0};

// Reads in flight on the device of plain files, which is never calibrated. More than one, as on a
// volume's disks: page reads are small and sorted, so a queue helps even a disk. Many devices
// say that they are disks and are none.
constexpr uint32_t kPlainDepth = 16;

class StripedPagedFile final : public OpenPagedFile {
 public:
  StripedPagedFile(std::string path, std::shared_ptr<StripedFile> file, Lanes& lanes)
      : file_(file), engine_(lanes, file) {
    path_ = std::move(path);
    paged_ = std::make_unique<PagedFile>(PagedFile{.file_id = file->layout().file_id,
                                                   .size_bytes = file->size(),
                                                   .map = file->map(),
                                                   .parts = file->parts(),
                                                   .engine = engine_});
  }

 private:
  std::shared_ptr<StripedFile> file_;
  LaneEngine engine_;
};

class PlainPagedFile final : public OpenPagedFile, private IoEngine {
 public:
  PlainPagedFile(std::string path, Fd file, Fd other, uint64_t size_bytes, Lanes& lanes)
      : map_(kPlainGeometry), lanes_(lanes) {
    const int parts[] = {file.release(), other.release()};
    parts_.adopt(parts, O_RDONLY);
    path_ = std::move(path);
    paged_ = std::make_unique<PagedFile>(PagedFile{.file_id = Uuid::random(),
                                                   .size_bytes = size_bytes,
                                                   .map = map_,
                                                   .parts = parts_,
                                                   .engine = *this});
  }

 private:
  int run(const PartRequest& request) override { return lanes_.run(request); }
  bool submit(const PartRequest& request, Completion* end) override {
    return lanes_.submit(request, nullptr, end);
  }

  const StripeMap map_;
  PartFiles parts_;
  Lanes& lanes_;
};

}  // namespace

Outcome<void> OpenPagedFile::read(ByteRange range, void* buffer) const {
  if (range.end() > size_bytes()) {
    return make_error(EIO, "{}: ends at byte {}, and should have {} at least", path_, size_bytes(),
                      range.end());
  }
  if (range.length_bytes == 0) return {};
  Piece piece{.range = {range.offset, round_up(range.length_bytes, kBlockSize)}, .buffer = buffer};
  PartRequest request{.map = paged_->map,
                      .parts = paged_->parts,
                      .size_bytes = paged_->size_bytes,
                      .op = IoOp::kRead,
                      .direct = range.offset % kBlockSize == 0,
                      .pieces = {&piece, 1}};
  if (!request.direct) piece.range.length_bytes = range.length_bytes;
  prepare_read(&request, &piece);
  const int error = paged_->engine.run(request);
  if (error != 0) return os_error(error, path_, "cannot read");
  return {};
}

Outcome<OpenPagedFile*> PagedFiles::open(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  struct stat info;
  if (!file || ::fstat(file.get(), &info) != 0) return os_error(errno, path, "cannot open");
  if (!S_ISREG(info.st_mode)) return make_error(EINVAL, "{}: not a regular file", path);
  Layout layout;
  const Result<StubVerdict> verdict = inspect_stub(file.get(), &layout);
  if (!verdict) return os_error(verdict.error().code, path, "cannot read");
  if (*verdict != StubVerdict::kStub && *verdict != StubVerdict::kNotAStub) {
    return make_error(EIO, "{}: {}", path, describe(*verdict));
  }
  auto opened = *verdict == StubVerdict::kStub ? open_striped(path, std::move(file))
                                               : open_plain(path, std::move(file));
  if (!opened) return opened.error();
  files_.push_back(std::move(*opened));
  return files_.back().get();
}

Outcome<std::unique_ptr<OpenPagedFile>> PagedFiles::open_striped(const std::string& path, Fd stub) {
  const Outcome<std::string> root = find_volume_root(path);
  if (!root) return root.error();
  OpenVolume& own = volumes_[*root];
  if (own.lanes == nullptr) {
    auto volume = Volume::open(*root);
    if (!volume) return volume.error();
    auto lanes = Lanes::start(**volume, {});
    if (!lanes) return lanes.error();
    own = {.volume = std::move(*volume), .lanes = std::move(*lanes)};
  }
  // Must hold the parts before reading the stub, or restripe may change them in between.
  hold_parts(stub.get());
  Layout layout;
  const Result<StubVerdict> verdict = inspect_stub(stub.get(), &layout);
  if (!verdict || *verdict != StubVerdict::kStub) return make_error(EIO, "{}: has changed", path);
  if (Outcome<void> accepted = own.volume->accept(layout, path); !accepted) return accepted.error();
  auto file = StripedFile::open(*own.volume, stub.get(), current_layout(*own.volume, layout), path);
  if (!file) return file.error();
  (*file)->hold(std::move(stub));
  return std::unique_ptr<OpenPagedFile>(
      std::make_unique<StripedPagedFile>(path, std::move(*file), *own.lanes));
}

Outcome<std::unique_ptr<OpenPagedFile>> PagedFiles::open_plain(const std::string& path, Fd file) {
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return os_error(errno, path, "cannot open");
  if (static_cast<uint64_t>(info.st_size) > kPlainGeometry.stripe_depth_bytes) {
    return make_error(EFBIG, "{}: larger than 1 TiB: put it into a volume", path);
  }
  Fd other(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
  if (!other) return os_error(errno, path, "cannot open");
  std::unique_ptr<Lanes>& lanes = plain_lanes_[info.st_dev];
  if (lanes == nullptr) {
    auto started = Lanes::start_plain(path, kPlainDepth);
    if (!started) return started.error();
    lanes = std::move(*started);
  }
  return std::unique_ptr<OpenPagedFile>(std::make_unique<PlainPagedFile>(
      path, std::move(file), std::move(other), static_cast<uint64_t>(info.st_size), *lanes));
}

PagedFiles::Moved PagedFiles::moved() const {
  Moved moved;
  const auto add = [&](const Lanes& lanes) {
    for (const LaneStats& lane : lanes.stats()) {
      moved.io_count += lane.io_count;
      moved.bytes += lane.bytes_read;
    }
  };
  for (const auto& [root, own] : volumes_) add(*own.lanes);
  for (const auto& [device, lanes] : plain_lanes_) add(*lanes);
  return moved;
}

}  // namespace graphlane
