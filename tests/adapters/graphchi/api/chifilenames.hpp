#pragma once

#include <cstdlib>
#include <fstream>
#include <string>

#include "graphchi_types.hpp"

namespace graphchi {

template <class V>
static std::string filename_vertex_data(std::string base) {
  return base + "." + std::to_string(sizeof(V)) + "B.vout";
}
template <class E>
static std::string filename_shard_edata(std::string base, int p, int count) {
  return base + ".edata..Z.e" + std::to_string(sizeof(E)) + "B." + std::to_string(p) + "_" + std::to_string(count);
}
static inline std::string filename_shard_edata_block(std::string edata, int i, size_t block_bytes) {
  return edata + "_blockdir_" + std::to_string(block_bytes) + "/" + std::to_string(i);
}
static inline std::string filename_shard_adj(std::string base, int p, int count) {
  return base + ".edata_azv." + std::to_string(p) + "_" + std::to_string(count) + ".adj";
}
template <class E>
static size_t get_shard_edata_filesize(std::string edata) {
  std::ifstream file(edata + ".size");
  size_t size_bytes = 0;
  file >> size_bytes;
  return size_bytes;
}

}  // namespace graphchi
