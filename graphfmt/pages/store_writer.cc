#include "graphfmt/pages/store_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <filesystem>
#include <random>

#include "graphfmt/pages/page_store.h"
#include "iomgr/base/files/file_io.h"

namespace graphlane::graphfmt {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;

uint64_t random_store_id() {
  std::random_device source;
  return (uint64_t{source()} << 32 | source()) | 1;
}

// The name becomes durable: what is synced can be found after a power cut.
Outcome<void> sync_name(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const std::string directory = parent.empty() ? "." : parent.string();
  const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return os_error(errno, directory, "cannot sync");
  return {};
}

}  // namespace

Outcome<Fd> StoreWriter::locked(Fd file, const std::string& path) {
  if (!file) return os_error(errno, path, "cannot open");
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  if (errno == EWOULDBLOCK) return make_error(EBUSY, "{}: another process is writing it", path);
  return os_error(errno, path, "cannot lock");
}

Outcome<std::unique_ptr<StoreWriter>> StoreWriter::create(const std::string& path,
                                                          const StoreOptions& options) {
  if (!is_page_size(options.page_bytes)) {
    return make_error(EINVAL, "{}: a page of {} bytes: a multiple of {} up to {} is expected", path,
                      options.page_bytes, kPageBytesMin, kPageBytesMax);
  }
  auto file = locked(Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644)), path);
  if (!file) return file.error();
  const StoreHead head{.page_bytes = options.page_bytes,
                       .store_id = options.store_id != 0 ? options.store_id : random_store_id()};
  std::unique_ptr<StoreWriter> writer(new StoreWriter(path, std::move(*file), head));
  if (auto done = writer->write_head(head); !done) return done.error();
  if (auto done = writer->sync_file(); !done) return done.error();
  if (auto done = sync_name(path); !done) return done.error();
  writer->next_ = writer->head_;
  return writer;
}

Outcome<std::unique_ptr<StoreWriter>> StoreWriter::open(const std::string& path) {
  auto file = locked(Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC)), path);
  if (!file) return file.error();
  auto store = PageStore::open(path);
  if (!store) return store.error();
  if (store->file().striped() != nullptr) {
    return make_error(ENOTSUP, "{}: a striped file: write it in a mount", path);
  }
  std::unique_ptr<StoreWriter> writer(new StoreWriter(path, std::move(*file), store->head()));
  StoreHead head = store->head();
  head.is_finished = false;
  // The pages that were found may not be on the device yet, and no head may name them before. An
  // index is given up by the head before it is cut off.
  if (auto done = writer->sync_file(); !done) return done.error();
  if (auto done = writer->write_head(head); !done) return done.error();
  if (auto done = writer->sync_file(); !done) return done.error();
  if (::ftruncate(writer->file_.get(), static_cast<off_t>(head.page_offset(head.page_count))) !=
      0) {
    return os_error(errno, path, "cannot cut");
  }
  writer->packer_.resume(store->index());
  writer->written_pages_ = head.page_count;
  writer->next_ = writer->head_;
  return writer;
}

Outcome<void> StoreWriter::fail(Error error) {
  failed_ = error;
  return error;
}

Outcome<void> StoreWriter::write(const void* data, size_t bytes, uint64_t offset) {
  const auto done = pwrite_full(file_.get(), data, bytes, offset);
  return done ? Outcome<void>() : fail(os_error(done.error().code, path_, "cannot write"));
}

Outcome<void> StoreWriter::sync_file() {
  return ::fdatasync(file_.get()) == 0 ? Outcome<void>()
                                       : fail(os_error(errno, path_, "cannot sync"));
}

Outcome<void> StoreWriter::write_head(StoreHead head) {
  head.sequence = head_.sequence + 1;
  const StoreSlot slot = encode_slot(head);
  if (auto done = write(slot.data(), slot.size(), head.sequence % 2 * kStoreSlotBytes); !done) {
    return done;
  }
  // A file is as long as both slots from the first head on.
  if (head.sequence == 1) {
    const StoreSlot empty{};
    if (auto done = write(empty.data(), empty.size(), 0); !done) return done;
  }
  head_ = head;
  return {};
}

Outcome<void> StoreWriter::write_pages() {
  std::vector<uint8_t>& pages = packer_.pages();
  if (pages.empty()) return {};
  if (auto done = write(pages.data(), pages.size(), head_.page_offset(written_pages_)); !done) {
    return done;
  }
  written_pages_ = packer_.index().size();
  pages.clear();
  return {};
}

Outcome<void> StoreWriter::put(uint64_t key, std::span<const uint8_t> value) {
  if (failed_) return *failed_;
  if (head_.is_finished) return make_error(EINVAL, "{}: is finished: no key follows", path_);
  if (next_.key_count > 0 && key <= next_.last_key) {
    if (key == next_.last_key) {
      return make_error(EEXIST, "{}: has the key {} already: it is written once", path_, key);
    }
    return make_error(EINVAL, "{}: the key {} comes after {}: keys ascend", path_, key,
                      next_.last_key);
  }
  packer_.add(key, value);
  ++next_.key_count;
  next_.last_key = key;
  next_.value_bytes += value.size();
  return packer_.pages().size() >= kWriteBytes ? write_pages() : Outcome<void>();
}

Outcome<void> StoreWriter::sync() {
  if (failed_) return *failed_;
  packer_.end_page();
  if (auto done = write_pages(); !done) return done;
  if (auto done = sync_file(); !done) return done;
  next_.page_count = packer_.index().size();
  if (auto done = write_head(next_); !done) return done;
  return sync_file();
}

Outcome<void> StoreWriter::finish() {
  if (failed_) return *failed_;
  if (head_.is_finished) return {};
  packer_.end_page();
  if (auto done = write_pages(); !done) return done;
  const PageIndex& index = packer_.index();
  next_.page_count = index.size();
  next_.is_finished = true;
  const size_t key_bytes = index.size() * sizeof(uint64_t);
  const size_t checksum_bytes = index.size() * sizeof(uint32_t);
  const uint64_t begin = next_.page_offset(index.size());
  next_.index_checksum = crc32c_extend(crc32c_extend(0, index.first_keys.data(), key_bytes),
                                       index.checksums.data(), checksum_bytes);
  if (auto done = write(index.first_keys.data(), key_bytes, begin); !done) return done;
  if (auto done = write(index.checksums.data(), checksum_bytes, begin + key_bytes); !done) {
    return done;
  }
  if (auto done = sync_file(); !done) return done;
  if (auto done = write_head(next_); !done) return done;
  return sync_file();
}

}  // namespace graphlane::graphfmt
