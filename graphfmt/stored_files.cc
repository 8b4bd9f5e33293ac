#include "graphfmt/stored_files.h"

#include <algorithm>

#include "iomgr/base/crc32c_long.h"
#include "iomgr/volume/stub/stripe.h"

namespace graphlane::graphfmt {

Outcome<GraphHeader> read_header_of(const GraphDirectory& directory, GraphKind kind) {
  if (!directory.has(kGraphHeaderFile)) {
    return make_error(EINVAL, "{}: not a stored graph: it has no file `{}`", directory.path(),
                      kGraphHeaderFile);
  }
  const auto bytes = directory.read(kGraphHeaderFile, kGraphHeaderBytes);
  if (!bytes) return bytes.error();
  auto header = parse_header(*bytes, directory.path_of(kGraphHeaderFile));
  if (!header) return header.error();
  if (header->kind != kind) {
    return make_error(ENOTSUP, "{}: a graph of kind {}, expected {}", directory.path(),
                      name_of(header->kind), name_of(kind));
  }
  return header;
}

Outcome<GraphHeader::File> find_stored_file(const GraphDirectory& directory,
                                            const GraphHeader& header, const std::string& name) {
  const GraphHeader::File* const file = header.find(name);
  if (file == nullptr) {
    return make_error(EIO, "{}: names no file {}", directory.path_of(kGraphHeaderFile), name);
  }
  const auto there = directory.look(name);
  if (!there) return there.error();
  if (there->size_bytes != file->size_bytes) {
    return make_error(EIO, "{}: byte {}: {} bytes, expected {}", directory.path_of(name),
                      std::min(there->size_bytes, file->size_bytes), there->size_bytes,
                      file->size_bytes);
  }
  return *file;
}

Outcome<void> check_weights_bytes(const GraphDirectory& directory, const GraphHeader& header) {
  if (!header.encodes_weights()) return {};
  uint64_t bytes = 0;
  for (const GraphHeader::File& file : header.files) {
    if (file.name.ends_with(".weights")) bytes += file.size_bytes;
  }
  if (bytes == header.weights_bytes) return {};
  return make_error(EIO, "{}: byte 64: {} bytes of weights, but its files have {}",
                    directory.path_of(kGraphHeaderFile), header.weights_bytes, bytes);
}

Outcome<Buffer> read_pinned_file(const GraphDirectory& directory, const GraphHeader& header,
                                 const std::string& name) {
  const std::string path = directory.path_of(name);
  const auto file = find_stored_file(directory, header, name);
  if (!file) return file.error();
  const auto opened = directory.open_file(name);
  if (!opened) return opened.error();
  auto content = Buffer::allocate(file->size_bytes);
  if (!content) return make_error(ENOMEM, "{}: no memory for its {} bytes", path, file->size_bytes);
  if (auto done = opened->read({0, file->size_bytes}, content->data()); !done) return done.error();
  if (crc32c_extend(0, content->data(), file->size_bytes) != file->checksum) {
    return make_error(
        EIO, "{}: byte 0: its checksum is not the header's: it is damaged, or another graph's",
        path);
  }
  return std::move(*content);
}

Outcome<std::span<const uint32_t>> take_piece_checksums(const GraphDirectory& directory,
                                                        const GraphHeader& header,
                                                        const std::string& name,
                                                        uint64_t expected_bytes,
                                                        const ChecksumTable& table) {
  const auto file = find_stored_file(directory, header, name);
  if (!file) return file.error();
  if (file->size_bytes != expected_bytes) {
    return make_error(EIO, "{}: byte {}: {} bytes, but by its {} {}", directory.path_of(name),
                      std::min(file->size_bytes, expected_bytes), file->size_bytes, table.sizes_by,
                      expected_bytes);
  }
  const uint64_t piece_bytes = header.checksum_piece_bytes;
  const uint64_t count = (expected_bytes + piece_bytes - 1) / piece_bytes;
  const uint64_t size = round_up(count * sizeof(uint32_t), 8);
  const size_t at = table.size_bytes - table.rest.size();
  if (table.rest.size() < size) {
    return make_error(EIO, "{}: byte {}: ends in the checksums of {}", table.path, table.size_bytes,
                      name);
  }
  if (crc32c_extend(0, table.rest.data(), count * sizeof(uint32_t)) != file->checksum) {
    return make_error(EIO, "{}: byte {}: the checksums of {} are not the header's", table.path, at,
                      name);
  }
  const std::span<const uint32_t> checksums{reinterpret_cast<const uint32_t*>(table.rest.data()),
                                            count};
  table.rest = table.rest.subspan(size);
  return checksums;
}

}  // namespace graphlane::graphfmt
