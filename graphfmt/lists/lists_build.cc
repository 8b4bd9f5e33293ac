#include "graphfmt/lists/lists_build.h"

#include "graphfmt/codec/weight_codec.h"
#include "graphfmt/output/out_file.h"
#include "graphfmt/piece_checksums.h"

namespace graphlane::graphfmt {
namespace {

// The files of one direction.
class ListsWriter : public ListSink {
 public:
  ListsWriter(std::string dir, Direction direction, CodecKind codec, WeightKind weight,
              bool is_sparse)
      : dir_(std::move(dir)),
        direction_(direction),
        codec_(ListCodec::of(codec)),
        is_weighted_(weight != WeightKind::kNone),
        index_(list_index_shape(codec, is_weighted_, is_sparse)),
        weight_writer_(weight),
        list_checksums_(kChecksumPieceBytes),
        weight_checksums_(kChecksumPieceBytes) {}

  Outcome<void> open() {
    for (const ListPart part : {ListPart::kLists, ListPart::kWeights}) {
      if (part == ListPart::kWeights && !is_weighted_) break;
      auto file = OutFile::create(dir_ + "/" + list_file_name(direction_, part));
      if (!file) return file.error();
      (part == ListPart::kLists ? lists_ : weights_) = std::move(*file);
    }
    return {};
  }

  Outcome<void> prepare(ListBatch& batch) override {
    if (auto grown = batch.encoded.reserve(bytes_max(batch)); !grown) return grown;
    batch.lengths.resize(batch.vertices.size());
    uint8_t* to = batch.encoded.as<uint8_t>();
    batch.tally = 0;
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      for (const uint32_t neighbour : batch.list(i)) batch.tally += neighbour >= batch.vertices[i];
      batch.lengths[i] = codec_.encode(batch.list(i), to);
      to += batch.lengths[i];
    }
    batch.encoded_bytes = static_cast<size_t>(to - batch.encoded.as<uint8_t>());
    return {};
  }

  Outcome<void> take(ListBatch& batch) override {
    batch.offset = index_.lists_bytes();
    for (size_t i = 0; i < batch.vertices.size(); ++i) {
      index_.append(batch.vertices[i], batch.list(i).size(), batch.lengths[i]);
    }
    single_count_ += batch.tally;
    list_checksums_.append(batch.encoded.data(), batch.encoded_bytes);
    if (is_weighted_) encode_weights(batch);
    return {};
  }

  Outcome<void> settle(ListBatch& batch) override {
    if (auto done = lists_.write(batch.encoded.data(), batch.encoded_bytes, batch.offset); !done) {
      return done;
    }
    if (!is_weighted_) return {};
    return weights_.write(batch.weights.data(), batch.weights.size(), batch.weights_offset);
  }

  // After the last batch: the index; and what the header says of all.
  Outcome<void> finish(uint64_t vertex_count, GraphHeader& header) {
    index_.finish(vertex_count);
    auto file = OutFile::create(dir_ + "/" + list_index_name(direction_));
    if (!file) return file.error();
    GraphHeader::File about{.name = list_index_name(direction_)};
    const auto write = [&](const void* data, size_t length) -> Outcome<void> {
      about.checksum = crc32c_extend(about.checksum, data, length);
      const uint64_t at = std::exchange(about.size_bytes, about.size_bytes + length);
      return file->write(data, length, at);
    };
    const auto write_checksums = [&](const PieceChecksums& checksums) -> Outcome<void> {
      std::vector<uint32_t> padded = checksums.all();
      padded.resize((padded.size() + 1) / 2 * 2);
      return write(padded.data(), padded.size() * sizeof(uint32_t));
    };
    if (auto done = index_.write(write); !done) return done;
    if (auto done = write_checksums(list_checksums_); !done) return done;
    header.files.push_back({list_file_name(direction_, ListPart::kLists), index_.lists_bytes(),
                            list_checksums_.checksum()});
    if (is_weighted_) {
      if (auto done = end_weights(); !done) return done;
      const std::vector<uint8_t> table = weight_writer_.table();
      if (auto done = write(table.data(), table.size()); !done) return done;
      if (auto done = write_checksums(weight_checksums_); !done) return done;
      header.files.push_back({list_file_name(direction_, ListPart::kWeights),
                              weight_writer_.bytes(), weight_checksums_.checksum()});
      header.weights_bytes += weight_writer_.bytes();
    }
    header.files.push_back(about);
    for (OutFile* written : {&*file, &lists_, &weights_}) {
      if (!written->fd) continue;
      if (auto closed = written->close(); !closed) return closed;
    }
    return {};
  }

  uint64_t lists_bytes() const { return index_.lists_bytes(); }
  SideArcs arcs() const { return {.all = index_.arc_count(), .single = single_count_}; }

 private:
  // The batch's weights become the codes that can be written now.
  void encode_weights(ListBatch& batch) {
    batch.weights_offset = weight_writer_.bytes();
    weight_codes_.clear();
    weight_writer_.append(batch.weights, weight_codes_);
    batch.weights.swap(weight_codes_);
    weight_checksums_.append(batch.weights.data(), batch.weights.size());
  }
  Outcome<void> end_weights() {
    const uint64_t offset = weight_writer_.bytes();
    weight_codes_.clear();
    weight_writer_.finish(weight_codes_);
    weight_checksums_.append(weight_codes_.data(), weight_codes_.size());
    return weights_.write(weight_codes_.data(), weight_codes_.size(), offset);
  }

  size_t bytes_max(const ListBatch& batch) const {
    // The bound of each list may be a byte more than that of all together.
    return codec_.bytes_max(batch.neighbours.size()) + batch.vertices.size();
  }

  const std::string dir_;
  const Direction direction_;
  const ListCodec& codec_;
  const bool is_weighted_;
  OutFile lists_;
  OutFile weights_;
  // take() only: one thread at a time.
  ListIndexBuilder index_;
  WeightWriter weight_writer_;
  std::vector<uint8_t> weight_codes_;
  PieceChecksums list_checksums_;
  PieceChecksums weight_checksums_;
  uint64_t single_count_ = 0;
};

class ListsFormat final : public StoredGraphFormat {
 public:
  explicit ListsFormat(CodecKind codec) : codec_(codec) {}

  void begin(uint64_t input_edge_count, GraphHeader& header) override {
    header.kind = GraphKind::kLists;
    is_sparse_ = input_edge_count < header.vertex_count / 4;
  }

  Outcome<SideArcs> write_side(Direction direction, const Merge& merge, const std::string& dir,
                               GraphHeader& header) override {
    ListsWriter writer(dir, direction, codec_, header.weight, is_sparse_);
    if (auto opened = writer.open(); !opened) return opened.error();
    if (auto merged = merge(writer); !merged) return merged.error();
    if (auto finished = writer.finish(header.vertex_count, header); !finished) {
      return finished.error();
    }
    lists_bytes_ += writer.lists_bytes();
    return writer.arcs();
  }

  uint64_t lists_bytes() const { return lists_bytes_; }

 private:
  const CodecKind codec_;
  bool is_sparse_ = false;
  uint64_t lists_bytes_ = 0;
};

}  // namespace

Outcome<ListsSummary> build_lists(const ListsOptions& options) {
  if (auto known = check_codec_of_lists(options.codec, "lists"); !known) return known.error();
  ListsFormat format(options.codec);
  auto built = build_stored_graph(
      {options.input, options.output, options.codec, options.overwrite, options.run_edges}, format);
  if (!built) return built.error();
  return ListsSummary{std::move(*built), format.lists_bytes()};
}

}  // namespace graphlane::graphfmt
