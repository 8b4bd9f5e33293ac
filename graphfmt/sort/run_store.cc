#include "graphfmt/sort/run_store.h"

#include <fcntl.h>

#include "iomgr/base/files/file_io.h"

namespace graphlane::graphfmt {

RunStore::RunStore(std::string spill_path, size_t run_bytes, size_t table_bytes,
                   uint64_t memory_bytes)
    : spill_path_(std::move(spill_path)),
      run_bytes_(run_bytes),
      table_bytes_(table_bytes),
      memory_bytes_(memory_bytes) {}

RunStore::~RunStore() { remove_spill(); }

Outcome<void> RunStore::put(size_t run, size_t edges_bytes, RunBuffers& buffers) {
  Run& kept = slot(run);
  kept.edges_bytes = edges_bytes;
  if (claim_memory(edges_bytes + buffers.table.size())) {
    kept.resident = std::move(buffers);
    return {};
  }
  if (auto opened = open_spill(); !opened) return opened;
  if (auto done = spill(spill_offset(run), buffers.edges.data(), edges_bytes); !done) return done;
  if (!buffers.table) return {};
  return spill(spill_offset(run) + run_bytes_, buffers.table.data(), buffers.table.size());
}

Outcome<size_t> RunStore::take(size_t run, Buffer& edges) {
  Run& kept = slot(run);
  if (kept.resident.edges) {
    edges = std::exchange(kept.resident.edges, Buffer());
    MutexLock lock(mu_);
    memory_used_bytes_ -= kept.edges_bytes;
    return kept.edges_bytes;
  }
  if (auto grown = edges.reserve(run_bytes_); !grown) return grown.error();
  if (auto done = read(spill_offset(run), edges.data(), kept.edges_bytes); !done) {
    return done.error();
  }
  return kept.edges_bytes;
}

Outcome<const char*> RunStore::view_edges(size_t run, size_t first, size_t length,
                                          Buffer& scratch) const {
  const Run& kept = slot(run);
  if (kept.resident.edges) return kept.resident.edges.data() + first;
  if (auto done = read(spill_offset(run) + first, scratch.data(), length); !done) {
    return done.error();
  }
  return static_cast<const char*>(scratch.data());
}

Outcome<const uint32_t*> RunStore::view_table(size_t run, size_t first, size_t count,
                                              Buffer& scratch) const {
  const Run& kept = slot(run);
  if (kept.resident.edges) return kept.resident.table.as<uint32_t>() + first;
  const uint64_t offset = spill_offset(run) + run_bytes_ + first * sizeof(uint32_t);
  if (auto done = read(offset, scratch.data(), count * sizeof(uint32_t)); !done) {
    return done.error();
  }
  return static_cast<const uint32_t*>(scratch.as<uint32_t>());
}

size_t RunStore::run_count() const {
  MutexLock lock(mu_);
  return runs_.size();
}

uint64_t RunStore::memory_used_bytes() const {
  MutexLock lock(mu_);
  return memory_used_bytes_;
}

uint64_t RunStore::spilled_bytes() const {
  MutexLock lock(mu_);
  return spilled_bytes_;
}

void RunStore::remove_spill() {
  MutexLock lock(mu_);
  if (spill_fd_) ::unlink(spill_path_.c_str());
  spill_fd_.reset();
}

bool RunStore::claim_memory(uint64_t bytes) {
  MutexLock lock(mu_);
  if (memory_used_bytes_ + bytes > memory_bytes_) return false;
  memory_used_bytes_ += bytes;
  return true;
}

RunStore::Run& RunStore::slot(size_t run) {
  MutexLock lock(mu_);
  while (runs_.size() <= run) runs_.push_back(std::make_unique<Run>());
  return *runs_[run];
}

const RunStore::Run& RunStore::slot(size_t run) const {
  MutexLock lock(mu_);
  return *runs_[run];
}

Outcome<void> RunStore::open_spill() {
  MutexLock lock(mu_);
  if (spill_fd_) return {};
  spill_fd_ = Fd(::open(spill_path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!spill_fd_) return os_error(errno, spill_path_, "cannot create");
  return {};
}

Outcome<void> RunStore::spill(uint64_t offset, const char* data, size_t length) {
  int fd;
  {
    MutexLock lock(mu_);
    fd = spill_fd_.get();
    spilled_bytes_ += length;
  }
  auto done = pwrite_full(fd, data, length, offset);
  if (!done) return os_error(done.error().code, spill_path_, "cannot write");
  return {};
}

Outcome<void> RunStore::read(uint64_t offset, char* data, size_t length) const {
  int fd;
  {
    MutexLock lock(mu_);
    fd = spill_fd_.get();
  }
  auto done = pread_full(fd, data, length, offset);
  if (!done) return os_error(done.error().code, spill_path_, "cannot read");
  if (*done < length) {
    return make_error(EIO, "{}: byte {}: shorter than what was written", spill_path_,
                      offset + *done);
  }
  return {};
}

}  // namespace graphlane::graphfmt
