#include "graphfmt/pages/pages.h"

#include <cstring>

#include "graphfmt/stored_files.h"

namespace graphlane::graphfmt {

std::string pages_file_name(Direction direction) {
  return direction == Direction::kOut ? "out.pages" : "in.pages";
}

Outcome<std::unique_ptr<Pages>> Pages::open(const std::string& path) {
  auto directory = GraphDirectory::open(path);
  if (!directory) return directory.error();
  std::unique_ptr<Pages> pages(new Pages(std::move(*directory)));
  auto header = read_header_of(pages->directory_, GraphKind::kPages);
  if (!header) return header.error();
  pages->header_ = std::move(*header);
  const size_t file_count = pages->header_.is_directed ? 2 : 1;
  if (pages->header_.files.size() != file_count || pages->header_.partitions != 0) {
    return make_error(EIO, "{}: byte 36: {} files, expected {}",
                      pages->directory_.path_of(kGraphHeaderFile), pages->header_.files.size(),
                      file_count);
  }
  if (auto opened = pages->open_side(Direction::kOut); !opened) return opened.error();
  if (pages->header_.is_directed) {
    if (auto opened = pages->open_side(Direction::kIn); !opened) return opened.error();
  }
  return pages;
}

Outcome<void> Pages::open_side(Direction direction) {
  const std::string name = pages_file_name(direction);
  const std::string header_path = directory_.path_of(kGraphHeaderFile);
  const auto file = find_stored_file(directory_, header_, name);
  if (!file) return file.error();
  auto opened = directory_.open_file(name);
  if (!opened) return opened.error();
  auto store = PageStore::open(std::move(*opened));
  if (!store) return store.error();
  const StoreHead& head = store->head();
  if (!head.is_finished || head.index_checksum != file->checksum ||
      head.page_bytes != header_.checksum_piece_bytes) {
    return make_error(EIO, "{}: byte 0: not the store that {} names: it is another graph's",
                      store->path(), header_path);
  }
  if (head.key_count > header_.vertex_count ||
      (head.key_count > 0 && head.last_key >= header_.vertex_count)) {
    return make_error(EIO, "{}: byte 0: its last key is {}, of {} vertices", store->path(),
                      head.last_key, header_.vertex_count);
  }
  stores_[direction == Direction::kOut ? 0 : 1] = std::make_unique<PageStore>(std::move(*store));
  return {};
}

Result<ListValue> Pages::parse_value(std::span<const uint8_t> value) const {
  ListValue parts{.list = value, .weights = {}};
  std::span<const uint8_t> weights;
  if (is_weighted()) {
    uint32_t length;
    if (value.size() < sizeof length) return Errno{EIO};
    std::memcpy(&length, value.data(), sizeof length);
    if (length > value.size() - sizeof length) return Errno{EIO};
    parts.list = value.subspan(sizeof length, length);
    weights = value.subspan(sizeof length + length);
  }
  const Result<size_t> count = codec().count(parts.list);
  if (!count) return count.error();
  parts.neighbour_count = *count;
  if (!is_weighted()) return parts;
  const auto parsed = header_.encodes_weights()
                          ? parse_value_weights(header_.weight, weights, *count)
                          : unencoded_value_weights(header_.weight, weights, *count);
  if (!parsed) return parsed.error();
  parts.weights = *parsed;
  return parts;
}

}  // namespace graphlane::graphfmt
