// shard_program: GraphChi's parallel sliding windows in short, over adapters/graphchi. It stands in
// for GraphChi's programs where GRAPHCHI_SOURCE is not set. graphchi/ has the parts of GraphChi's
// other headers that it needs.
//
//   shard_program components|degrees BASE SHARDS THREADS [SUBINTERVALS [WAIT_FILE]]
//
// components: each vertex gets the lowest label of its weak component; labels pass through the
// edges' values. degrees: in- and out-degree of each vertex, from the structure alone. The results
// are BASE.4B.vout and the line "VERTICES loaded BYTES shared BYTES". With WAIT_FILE it waits after
// the first iteration until the file exists.
#include <omp.h>
#include <poll.h>

#include <cstdio>
#include <fstream>
#include <memory>

#include "api/chifilenames.hpp"
#include "shards/memoryshard.hpp"
#include "shards/slidingshard.hpp"

namespace {

using namespace graphchi;
using Vertex = graphchi_vertex<uint32_t, uint32_t>;
using MemoryShard = memory_shard<uint32_t, uint32_t>;
using SlidingShard = sliding_shard<uint32_t, uint32_t>;

constexpr size_t kBlockBytes = 1 << 20;

class Windows {
 public:
  Windows(const std::string& base, int shard_count, int subinterval_count, bool values)
      : base_(base),
        shard_count_(shard_count),
        subinterval_count_(subinterval_count),
        values_(values),
        io_(metrics_) {
    std::ifstream intervals(base + "." + std::to_string(shard_count) + ".intervals");
    for (vid_t last = 0; intervals >> last;) last_.push_back(last);
    vertex_values.resize(last_.back() + size_t{1});
    save();
    for (int p = 0; p < shard_count; ++p) {
      sliding_.push_back(std::make_unique<SlidingShard>(
          &io_, edata(p), adjacency(p), begin(p), last_[p], kBlockBytes, metrics_, false, !values));
    }
  }

  template <class Update>
  void sweep(const Update& update) {
    for (int i = 0; i < shard_count_; ++i) {
      sliding_[i]->flush();
      io_.wait_for_writes();
      MemoryShard memory(&io_, edata(i), adjacency(i), begin(i), last_[i], kBlockBytes, metrics_);
      memory.only_adjacency = !values_;
      memory.load();
      const vid_t step = (last_[i] - begin(i)) / static_cast<vid_t>(subinterval_count_) + 1;
      for (vid_t start = begin(i); start <= last_[i]; start += step) {
        const vid_t end = std::min(start + step - 1, last_[i]);
        std::vector<Vertex> vertices(end - start + 1);
#pragma omp parallel for schedule(dynamic, 1)
        for (int p = -1; p < shard_count_; ++p) {
          if (p == -1) {
            memory.load_vertices(start, end, vertices);
          } else if (p != i) {
            sliding_[p]->read_next_vertices(static_cast<int>(vertices.size()), start, vertices);
          }
        }
        io_.wait_for_reads();
        for (vid_t v = start; v <= end; ++v) update(v, vertices[v - start]);
      }
      memory.commit(true, true);
      sliding_[i]->set_offset(memory.offset_for_stream_cont(), memory.offset_vid_for_stream_cont(),
                              memory.edata_ptr_for_stream_cont());
    }
    for (auto& shard : sliding_) {
      shard->flush();
      shard->set_offset(0, 0, 0);
    }
    io_.wait_for_writes();
    io_.first_pass_finished();
  }

  void finish() {
    save();
    std::printf("%zu loaded %zu shared %zu\n", vertex_values.size(),
                metrics_.values["graphlane.loaded_bytes"],
                metrics_.values["graphlane.shared_bytes"]);
  }

  std::vector<uint32_t> vertex_values;

 private:
  void save() const {
    std::ofstream file(filename_vertex_data<uint32_t>(base_), std::ios::binary);
    file.write(reinterpret_cast<const char*>(vertex_values.data()),
               static_cast<std::streamsize>(vertex_values.size() * sizeof(uint32_t)));
  }
  std::string edata(int p) const { return filename_shard_edata<uint32_t>(base_, p, shard_count_); }
  std::string adjacency(int p) const { return filename_shard_adj(base_, p, shard_count_); }
  vid_t begin(int p) const { return p == 0 ? 0 : last_[p - 1] + 1; }

  const std::string base_;
  const int shard_count_;
  const int subinterval_count_;
  const bool values_;
  metrics metrics_;
  stripedio io_;
  std::vector<vid_t> last_;  // of each interval
  std::vector<std::unique_ptr<SlidingShard>> sliding_;
};

void components(Windows& windows, const char* wait_file) {
  windows.sweep([&](vid_t v, Vertex& vertex) {
    windows.vertex_values[v] = v;
    for (auto& [other, value] : vertex.out) *value = v;
  });
  while (wait_file != nullptr && access(wait_file, F_OK) != 0) poll(nullptr, 0, 5);
  for (bool changed = true; changed;) {
    changed = false;
    windows.sweep([&](vid_t v, Vertex& vertex) {
      uint32_t label = windows.vertex_values[v];
      for (const auto* edges : {&vertex.in, &vertex.out}) {
        for (const auto& [other, value] : *edges) label = std::min(label, *value);
      }
      for (const auto* edges : {&vertex.in, &vertex.out}) {
        for (const auto& [other, value] : *edges) *value = label;
      }
      changed |= std::exchange(windows.vertex_values[v], label) != label;
    });
  }
}

void degrees(Windows& windows) {
  windows.sweep([&](vid_t v, Vertex& vertex) {
    windows.vertex_values[v] = static_cast<uint32_t>(vertex.in.size() << 16 | vertex.out.size());
  });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  const std::string what = argv[1];
  omp_set_max_active_levels(2);
  omp_set_num_threads(std::atoi(argv[4]));
  Windows windows(argv[2], std::atoi(argv[3]), argc > 5 ? std::atoi(argv[5]) : 1,
                  what == "components");
  if (what == "components") {
    components(windows, argc > 6 ? argv[6] : nullptr);
  } else {
    degrees(windows);
  }
  windows.finish();
}
