// The work of convert on a graph of the format `lists` (graphfmt/lists/lists.h), and of check and info on any stored graph.
#pragma once

#include <string>

#include "cli/command.h"
#include "graphfmt/lists/lists_build.h"

namespace graphlane::cli {

// What converts to all formats of stored graphs have in common.
struct ToStored {
  EdgeListOptions input;
  std::string codec;
  bool overwrite = false;
  std::string path;
  std::string shown;  // what the user called it
};
// Prints the result; notes for the user, a line each.
Outcome<std::vector<std::string>> convert_to_lists(const ToStored& options);
// Whether --overwrite may replace the present directory.
Outcome<void> may_become_lists(const std::string& path);

// The type of a stored graph's weights; empty: it has none, or cannot be opened.
std::optional<WeightType> stored_weights(const std::string& path);

Outcome<int> check_stored_graph(const std::string& path);
Outcome<int> show_stored_graph(const std::string& path, bool as_json);

// "directed", "undirected".
std::string_view direction_of(bool is_directed);

// For `info`: a line of it; the lines from the path to the edges; and what the header says, as JSON.
void print_fact(std::string_view key, const std::string& text);
void print_graph(const std::string& path, const GraphHeader& header, const std::string& more_of_vertices = "");
Json graph_json(const std::string& path, const GraphHeader& header);
// Of all files, the header included.
uint64_t stored_bytes(const GraphHeader& header);

}  // namespace graphlane::cli
