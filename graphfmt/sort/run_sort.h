// sort_run: sorts the edges of a run by block, stably: a counting sort in two
// passes. `table` gets block_count + 1 offsets, in edges: block b of the sorted run
// is [table[b], table[b + 1]).
#pragma once

#include <cstdint>
#include <cstring>

#include "graphfmt/grid/grid_layout.h"

namespace graphlane::graphfmt {

template <class E>
void sort_run(const E* edges, uint32_t count, const GridLayout& layout, E* sorted,
              uint32_t* table) {
  const size_t block_count = layout.block_count();
  std::memset(table, 0, (block_count + 1) * sizeof *table);
  for (uint32_t e = 0; e < count; ++e) ++table[layout.block_of(edges[e]) + 1];
  for (size_t b = 0; b < block_count; ++b) table[b + 1] += table[b];
  // Placing moves every start to its end, which is the start of the next block…
  for (uint32_t e = 0; e < count; ++e) sorted[table[layout.block_of(edges[e])]++] = edges[e];
  // … so shifting by one entry restores the table.
  std::memmove(table + 1, table, block_count * sizeof *table);
  table[0] = 0;
}

}  // namespace graphlane::graphfmt
