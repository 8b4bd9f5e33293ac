// StoreWriter: a store of pages that grows: keys ascending, write once, read many (MaiterStore
// §3.2).
//
//   put(key, value) ─▶ PagePacker ─▶ pages, appended to the file ─▶ sync(): fdatasync, then the head
//
// What sync() has acknowledged is there after any crash. What was put later is there up to the last
// whole page, or less. A sync ends the page that is filling.
//
// One writer: it holds a lock (flock) on the file, EBUSY while another has it. Readers take none:
// they see the pages that are there when they open the store.
//
// Threads: one at a time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "graphfmt/pages/page_packer.h"
#include "graphfmt/pages/store_head.h"
#include "iomgr/base/fd.h"

namespace graphlane::graphfmt {

struct StoreOptions {
  uint32_t page_bytes = kPageBytesUsual;
  uint64_t store_id = 0;  // 0: a random one
};

class StoreWriter {
 public:
  // A new file. EEXIST: there is one; EINVAL: page_bytes.
  static Outcome<std::unique_ptr<StoreWriter>> create(const std::string& path,
                                                      const StoreOptions& options);
  // Goes on with a store. A torn tail is cut. EBUSY: another process writes it.
  static Outcome<std::unique_ptr<StoreWriter>> open(const std::string& path);
  // Values that were not synced may be lost.
  ~StoreWriter() = default;

  // EINVAL: the key is not above all keys so far; EEXIST: it is the last one. Nothing changes then.
  // After an error of the device every call fails with it.
  Outcome<void> put(uint64_t key, std::span<const uint8_t> value);
  Outcome<void> sync();
  // Syncs and writes the index. No put follows.
  Outcome<void> finish();

  const StoreHead& head() const { return head_; }
  const std::string& path() const { return path_; }

 private:
  StoreWriter(std::string path, Fd file, const StoreHead& head)
      : path_(std::move(path)),
        file_(std::move(file)),
        head_(head),
        packer_(head.page_bytes, head.store_id) {}
  static Outcome<Fd> locked(Fd file, const std::string& path);
  Outcome<void> write(const void* data, size_t bytes, uint64_t offset);
  Outcome<void> write_pages();
  Outcome<void> write_head(StoreHead head);
  Outcome<void> sync_file();
  Outcome<void> fail(Error error);

  const std::string path_;
  Fd file_;
  StoreHead head_;  // as it stands in the file
  StoreHead next_;  // with what was put since
  PagePacker packer_;
  uint64_t written_pages_ = 0;
  std::optional<Error> failed_;
};

}  // namespace graphlane::graphfmt
