#include "graphfmt/pages/pages_build.h"

#include <cstring>

#include "graphfmt/arc_sort.h"
#include "graphfmt/lists/lists_build.h"
#include "graphfmt/output/out_file.h"
#include "graphfmt/pages/page_packer.h"
#include "graphfmt/sort/line.h"
#include "graphfmt/staging.h"

namespace graphlane {
namespace {

// A number that tells stores apart, and is the same for the same graph.
uint64_t store_id_of(const GraphHeader& header, uint64_t edge_count, Direction direction) {
  const uint64_t fields[] = {header.vertex_count, edge_count, static_cast<uint64_t>(header.codec),
                             static_cast<uint64_t>(header.weight), header.is_directed ? 1u : 0u,
                             static_cast<uint64_t>(direction)};
  const uint32_t low = crc32c_extend(0, fields, sizeof fields);
  return uint64_t{crc32c_extend(low, fields, sizeof fields)} << 32 | low;
}

// The store of one direction.
class StoreSink : public ListSink {
 public:
  StoreSink(std::string path, CodecKind codec, size_t weight_bytes, uint32_t page_bytes, uint64_t store_id)
      : path_(std::move(path)),
        codec_(ListCodec::of(codec)),
        weight_bytes_(weight_bytes),
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
    const size_t bytes_max =
        codec_.bytes_max(batch.neighbours.size()) + lists + batch.weights.size() + lists * sizeof(uint32_t);
    if (auto grown = batch.encoded.reserve(bytes_max); !grown) return grown;
    batch.lengths.resize(lists);
    uint8_t* to = batch.encoded.as<uint8_t>();
    batch.tally = 0;
    for (size_t i = 0; i < lists; ++i) {
      for (const uint32_t neighbour : batch.list(i)) batch.tally += neighbour >= batch.vertices[i];
      uint8_t* const begin = to;
      if (weight_bytes_ > 0) to += sizeof(uint32_t);
      const size_t length = codec_.encode(batch.list(i), to);
      to += length;
      if (weight_bytes_ > 0) {
        if (length > UINT32_MAX) return make_error(EFBIG, "{}: the list of vertex {} is too long", path_, batch.vertices[i]);
        const auto short_length = static_cast<uint32_t>(length);
        std::memcpy(begin, &short_length, sizeof short_length);
        const size_t weights = batch.list(i).size() * weight_bytes_;
        std::memcpy(to, batch.weights.data() + batch.starts[i] * weight_bytes_, weights);
        to += weights;
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
    arc_count_ += batch.neighbours.size();
    single_count_ += batch.tally;
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
    if (auto done = file_.write(pages.data(), pages.size(), head_.page_offset(written_pages_)); !done) return done;
    const PageIndex& index = packer_.index();
    head_.is_finished = true;
    head_.sequence = 1;
    head_.page_count = index.size();
    uint64_t at = head_.page_offset(index.size());
    const auto write = [&](const void* data, size_t bytes) {
      head_.index_checksum = crc32c_extend(head_.index_checksum, data, bytes);
      return file_.write(data, bytes, std::exchange(at, at + bytes));
    };
    if (auto done = write(index.first_keys.data(), index.size() * sizeof(uint64_t)); !done) return done;
    if (auto done = write(index.checksums.data(), index.size() * sizeof(uint32_t)); !done) return done;
    const StoreSlot empty{}, slot = encode_slot(head_);
    if (auto done = file_.write(empty.data(), empty.size(), 0); !done) return done;
    if (auto done = file_.write(slot.data(), slot.size(), kStoreSlotBytes); !done) return done;
    about.size_bytes = head_.file_bytes();
    about.checksum = head_.index_checksum;
    return file_.close();
  }

  const StoreHead& head() const { return head_; }
  uint64_t arc_count() const { return arc_count_; }
  // Arcs with a neighbour that is not below the vertex: the edges, where each stands in both ends' lists.
  uint64_t single_count() const { return single_count_; }

 private:
  const std::string path_;
  const ListCodec& codec_;
  const size_t weight_bytes_;
  OutFile file_;
  // take() only: one thread at a time.
  StoreHead head_;
  PagePacker packer_;
  uint64_t written_pages_ = 0;
  uint64_t arc_count_ = 0;
  uint64_t single_count_ = 0;
};

class PagesBuilder {
 public:
  PagesBuilder(const PagesOptions& options, Staging staging) : options_(options), staging_(std::move(staging)) {}

  Outcome<PagesSummary> run() {
    auto sorter = ArcSorter::create({.spill_path = staging_.path() + "/spill",
                                     .label = "write " + options_.output,
                                     .is_weighted = options_.input.weighted,
                                     .weight_type = options_.input.weight_type,
                                     .by_target = !options_.input.undirected,
                                     .is_simple = options_.input.simple,
                                     .memory_budget_bytes = options_.input.memory_budget_bytes,
                                     .threads = options_.input.threads,
                                     .run_edges = options_.run_edges});
    if (!sorter) return sorter.error();
    EdgeListOptions input = options_.input;
    input.memory_budget_bytes = (*sorter)->reader_bytes();
    input.threads = (*sorter)->threads();
    input.simple = false;  // the sorter sees to it
    auto read = read_edges(input, **sorter);
    if (!read) return read.error();
    if (auto finished = (*sorter)->finish(); !finished) return finished.error();
    header_ = {.kind = GraphKind::kPages,
               .is_directed = !options_.input.undirected,
               .codec = options_.codec,
               .weight = weight_kind(input.weighted, input.weight_type),
               .checksum_piece_bytes = options_.page_bytes,
               .vertex_count = read->vertex_count,
               .files = {}};
    if (auto done = write_side(**sorter, Direction::kOut, read->edge_count); !done) return done.error();
    if (header_.is_directed) {
      if (auto done = write_side(**sorter, Direction::kIn, read->edge_count); !done) return done.error();
    }
    summary_.notes = std::move(read->notes);
    summary_.vertex_count = header_.vertex_count;
    summary_.arc_count = header_.arc_count;
    summary_.edge_count = header_.edge_count;
    summary_.spilled_bytes = (*sorter)->spilled_bytes();
    sorter->reset();  // with its spill file
    return commit();
  }

 private:
  Outcome<void> write_side(ArcSorter& sorter, Direction direction, uint64_t edge_count) {
    const std::string name = pages_file_name(direction);
    StoreSink sink(staging_.path() + "/" + name, options_.codec, weight_bytes(header_.weight), options_.page_bytes,
                   store_id_of(header_, edge_count, direction));
    if (auto opened = sink.open(); !opened) return opened;
    const ArcOrder order = direction == Direction::kOut ? ArcOrder::kBySource : ArcOrder::kByTarget;
    if (auto merged = sorter.merge(order, sink); !merged) return merged;
    GraphHeader::File file{.name = name};
    if (auto finished = sink.finish(file); !finished) return finished;
    header_.files.push_back(file);
    header_.arc_count = sink.arc_count();
    header_.edge_count = header_.is_directed ? sink.arc_count() : sink.single_count();
    summary_.value_bytes += sink.head().value_bytes;
    summary_.page_count += sink.head().page_count;
    return {};
  }

  Outcome<PagesSummary> commit() {
    auto file = OutFile::create(staging_.path() + "/" + kGraphHeaderFile);
    if (!file) return file.error();
    const auto bytes = encode_header(header_);
    if (auto done = file->write(bytes.data(), bytes.size(), 0); !done) return done.error();
    if (auto closed = file->close(); !closed) return closed.error();
    summary_.output_bytes = bytes.size();
    for (const GraphHeader::File& one : header_.files) summary_.output_bytes += one.size_bytes;
    if (options_.overwrite) {  // what has come meanwhile, too
      if (auto may = may_become_stored_graph(options_.output); !may) return may.error();
    }
    if (auto committed = staging_.commit(); !committed) return committed.error();
    return summary_;
  }

  const PagesOptions& options_;
  Staging staging_;
  GraphHeader header_;
  PagesSummary summary_;
};

}  // namespace

Outcome<PagesSummary> build_pages(const PagesOptions& options) {
  return or_no_memory([&]() -> Outcome<PagesSummary> {
    if (!is_page_size(options.page_bytes)) {
      return make_error(EINVAL, "a page of {} bytes: a multiple of {} up to {} is expected", options.page_bytes,
                        kPageBytesMin, kPageBytesMax);
    }
    if (options.overwrite) {
      if (auto may = may_become_stored_graph(options.output); !may) return may.error();
    }
    auto staging = Staging::create(options.output, Staging::Kind::kDirectory, options.overwrite);
    if (!staging) return staging.error();
    return PagesBuilder(options, std::move(*staging)).run();
  });
}

}  // namespace graphlane
