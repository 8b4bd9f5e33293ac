// GraphChi's own file names, except for a job's vertex values: see graphlane/values.hpp.
#ifndef GRAPHLANE_GRAPHCHI_CHIFILENAMES_HPP
#define GRAPHLANE_GRAPHCHI_CHIFILENAMES_HPP

#define filename_vertex_data filename_vertex_data_beside_graph
#include_next "api/chifilenames.hpp"
#undef filename_vertex_data

#include "graphlane/values.hpp"

namespace graphchi {

template <typename VertexDataType>
static std::string filename_vertex_data(std::string basefilename) {
  const std::string path = filename_vertex_data_beside_graph<VertexDataType>(basefilename);
  return graphlane_graphchi::Values::of_program().vertex_file(basefilename, path.substr(basefilename.size()));
}

}  // namespace graphchi

#endif
