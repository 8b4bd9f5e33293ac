// `convert` to the format `lists` (graphfmt/lists/lists.h), and `check` and `info` on any stored
// graph.
#pragma once

#include <string>

#include "cli/command.h"
#include "graphfmt/lists/lists_build.h"

namespace graphlane::cli {

// The options that conversions to all stored formats share.
struct ToStored {
  graphfmt::EdgeListOptions input;
  std::string codec;
  bool overwrite = false;
  std::string path;
  std::string shown;  // the output's name, as the user gave it
};
// Prints the result; returns notes for the user, one a line.
Outcome<std::vector<std::string>> convert_to_lists(const ToStored& options);
// Checks that --overwrite may replace the present directory.
Outcome<void> may_become_lists(const std::string& path);

// The type of a stored graph's weights; empty: it has none, or cannot be opened.
std::optional<graphfmt::WeightType> stored_weights(const std::string& path);

Outcome<int> check_stored_graph(const std::string& path);
Outcome<int> show_stored_graph(const std::string& path, bool as_json);

// "directed", "undirected".
std::string_view direction_of(bool is_directed);

// For `info`: prints one line; prints the lines from the path to the edges; and the header as JSON.
void print_fact(std::string_view key, const std::string& text);
// The type of the weights, and how many bits one takes.
void print_weights(const graphfmt::GraphHeader& header);
void print_graph(const std::string& path, const graphfmt::GraphHeader& header,
                 const std::string& more_of_vertices = "");
Json graph_json(const std::string& path, const graphfmt::GraphHeader& header);
// The bytes of all files, the header included.
uint64_t stored_bytes(const graphfmt::GraphHeader& header);

}  // namespace graphlane::cli
