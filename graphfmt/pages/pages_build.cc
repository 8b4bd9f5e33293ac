#include "graphfmt/pages/pages_build.h"

#include <cstring>

#include "graphfmt/codec/weight_codec.h"
#include "graphfmt/output/out_file.h"
#include "graphfmt/pages/page_packer.h"

namespace graphlane::graphfmt {
namespace {

// A number that tells stores apart, and is the same for the same graph.
uint64_t store_id_of(const GraphHeader& header, uint64_t edge_count, Direction direction) {
  const uint64_t fields[] = {header.vertex_count,
                             edge_count,
                             static_cast<uint64_t>(header.codec),
                             static_cast<uint64_t>(header.weight),
                             header.is_directed ? 1u : 0u,
                             static_cast<uint64_t>(direction)};
  const uint32_t low = crc32c_extend(0, fields, sizeof fields);
  return uint64_t{crc32c_extend(low, fields, sizeof fields)} << 32 | low;
}

// The store of one direction.
class StoreSink : public ListSink {
 public:
  StoreSink(std::string path, CodecKind codec, WeightKind weight, uint32_t page_bytes,
            uint64_t store_id)
      : path_(std::move(path)),
        codec_(ListCodec::of(codec)),
        weight_(weight),
        weight_bytes_(weight_bytes(weight)),
        head_{.page_bytes = page_bytes, .store_id = store_id},
        packer_(page_bytes, store_id) {}

  Outcome<void> open() {
    auto file = OutFile::create(path_);
    if (!file) return file.error();
    file_ = std::move(*file);
    return {};
  }

  // Encodes the values one behind the other.
  Outcome<void> prepare(ListBatch& batch) override {
    const size_t lists = batch.vertices.size();
    const size_t bytes_max = codec_.bytes_max(batch.neighbours.size()) + lists +
                             batch.weights.size() +
                             lists * (sizeof(uint32_t) + kValueWeightsHeadMax);
    if (auto grown = batch.encoded.reserve(bytes_max); !grown) return grown;
    batch.lengths.resize(lists);
    uint8_t* to = batch.encoded.as<uint8_t>();
    batch.tally = 0;
    batch.weights_bytes = 0;
    WeightEncoder encoder(weight_, nullptr);
    std::vector<uint8_t> weights;
    for (size_t i = 0; i < lists; ++i) {
      for (const uint32_t neighbour : batch.list(i)) batch.tally += neighbour >= batch.vertices[i];
      uint8_t* const begin = to;
      if (weight_bytes_ > 0) to += sizeof(uint32_t);
      const size_t length = codec_.encode(batch.list(i), to);
      to += length;
      if (weight_bytes_ > 0) {
        if (length > UINT32_MAX) {
          return make_error(EFBIG, "{}: the list of vertex {} is too long", path_,
                            batch.vertices[i]);
        }
        const auto short_length = static_cast<uint32_t>(length);
        std::memcpy(begin, &short_length, sizeof short_length);
        weights.clear();
        append_value_weights(
            encoder,
            std::span(batch.weights)
                .subspan(batch.starts[i] * weight_bytes_, batch.list(i).size() * weight_bytes_),
            weights);
        std::memcpy(to, weights.data(), weights.size());
        to += weights.size();
        batch.weights_bytes += weights.size();
      }
      batch.lengths[i] = static_cast<uint64_t>(to - begin);
    }
    return {};
  }

  // Packs them; `encoded` holds the pages that became full then.
  Outcome<void> take(ListBatch& batch) override {
    const uint8_t* value = batch.encoded.as<uint8_t>();
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      packer_.add(batch.vertices[i], {value, batch.lengths[i]});
      value += batch.lengths[i];
      head_.value_bytes += batch.lengths[i];
    }
    if (!batch.vertices.empty()) head_.last_key = batch.vertices.back();
    head_.key_count += batch.vertices.size();
    arcs_.all += batch.neighbours.size();
    arcs_.single += batch.tally;
    weights_bytes_ += batch.weights_bytes;
    std::vector<uint8_t>& pages = packer_.pages();
    batch.offset = head_.page_offset(written_pages_);
    written_pages_ = packer_.index().size();
    batch.encoded_bytes = pages.size();
    if (auto grown = batch.encoded.reserve(pages.size()); !grown) return grown;
    if (!pages.empty()) std::memcpy(batch.encoded.data(), pages.data(), pages.size());
    pages.clear();
    return {};
  }

  Outcome<void> settle(ListBatch& batch) override {
    return file_.write(batch.encoded.data(), batch.encoded_bytes, batch.offset);
  }

  // After the last batch: the last page, the index and the head.
  Outcome<void> finish(GraphHeader::File& about) {
    packer_.end_page();
    const std::vector<uint8_t>& pages = packer_.pages();
    if (auto done = file_.write(pages.data(), pages.size(), head_.page_offset(written_pages_));
        !done) {
      return done;
    }
    const PageIndex& index = packer_.index();
    head_.is_finished = true;
    head_.sequence = 1;
    head_.page_count = index.size();
    uint64_t at = head_.page_offset(index.size());
    const auto write = [&](const void* data, size_t bytes) {
      head_.index_checksum = crc32c_extend(head_.index_checksum, data, bytes);
      return file_.write(data, bytes, std::exchange(at, at + bytes));
    };
    if (auto done = write(index.first_keys.data(), index.size() * sizeof(uint64_t)); !done) {
      return done;
    }
    if (auto done = write(index.checksums.data(), index.size() * sizeof(uint32_t)); !done) {
      return done;
    }
    const StoreSlot empty{}, slot = encode_slot(head_);
    if (auto done = file_.write(empty.data(), empty.size(), 0); !done) return done;
    if (auto done = file_.write(slot.data(), slot.size(), kStoreSlotBytes); !done) return done;
    about.size_bytes = head_.file_bytes();
    about.checksum = head_.index_checksum;
    return file_.close();
  }

  const StoreHead& head() const { return head_; }
  const SideArcs& arcs() const { return arcs_; }
  uint64_t weights_bytes() const { return weights_bytes_; }

 private:
  const std::string path_;
  const ListCodec& codec_;
  const WeightKind weight_;
  const size_t weight_bytes_;
  OutFile file_;
  // take() only: one thread at a time.
  StoreHead head_;
  PagePacker packer_;
  uint64_t written_pages_ = 0;
  SideArcs arcs_;
  uint64_t weights_bytes_ = 0;
};

class PagesFormat final : public StoredGraphFormat {
 public:
  PagesFormat(CodecKind codec, uint32_t page_bytes) : codec_(codec), page_bytes_(page_bytes) {}

  void begin(uint64_t input_edge_count, GraphHeader& header) override {
    header.kind = GraphKind::kPages;
    header.checksum_piece_bytes = page_bytes_;
    input_edge_count_ = input_edge_count;
  }

  Outcome<SideArcs> write_side(Direction direction, const Merge& merge, const std::string& dir,
                               GraphHeader& header) override {
    GraphHeader::File file{.name = pages_file_name(direction)};
    StoreSink sink(dir + "/" + file.name, codec_, header.weight, page_bytes_,
                   store_id_of(header, input_edge_count_, direction));
    if (auto opened = sink.open(); !opened) return opened.error();
    if (auto merged = merge(sink); !merged) return merged.error();
    if (auto finished = sink.finish(file); !finished) return finished.error();
    header.files.push_back(file);
    header.weights_bytes += sink.weights_bytes();
    value_bytes_ += sink.head().value_bytes;
    page_count_ += sink.head().page_count;
    return sink.arcs();
  }

  uint64_t value_bytes() const { return value_bytes_; }
  uint64_t page_count() const { return page_count_; }

 private:
  const CodecKind codec_;
  const uint32_t page_bytes_;
  uint64_t input_edge_count_ = 0;
  uint64_t value_bytes_ = 0;
  uint64_t page_count_ = 0;
};

}  // namespace

Outcome<PagesSummary> build_pages(const PagesOptions& options) {
  if (!is_page_size(options.page_bytes)) {
    return make_error(EINVAL, "a page of {} bytes: a multiple of {} up to {} is expected",
                      options.page_bytes, kPageBytesMin, kPageBytesMax);
  }
  if (auto known = check_codec_of_lists(options.codec, "pages"); !known) return known.error();
  PagesFormat format(options.codec, options.page_bytes);
  auto built = build_stored_graph(
      {options.input, options.output, options.codec, options.overwrite, options.run_edges}, format);
  if (!built) return built.error();
  return PagesSummary{std::move(*built), format.value_bytes(), format.page_count()};
}

}  // namespace graphlane::graphfmt
