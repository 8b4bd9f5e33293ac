// Text in columns, in memory: any two columns as vertices, a third as weight, the
// delimiter as in CSV or TSV, or blanks. Pure functions; snap_text.h is the quick way
// for SOURCE TARGET [WEIGHT] between blanks.
//
//   id,"from","to",weight      --delimiter , --columns 2,3,4 --header
//   1,"0","7",0.5              quoted: "" is a quote; a quoted column ends on its line
#pragma once

#include <string_view>

#include "graphfmt/buffer.h"
#include "graphfmt/edge_list.h"
#include "graphfmt/output/snap_text.h"

namespace graphlane::graphfmt {

struct ColumnsDialect {
  SnapDialect numbers;   // what a vertex and a weight are; `columns` and `prefix` do not count
  char delimiter = ' ';  // ' ': any number of blanks and tabs
  bool quoted = false;
  unsigned source = 1;  // columns, from 1
  unsigned target = 2;
  unsigned weight = 3;        // if weighted
  unsigned column_count = 0;  // every line has so many; 0: at least those that are read
  char prefix = 0;            // lines begin with it as a column of its own, which does not count
};

// `records` as for parse_snap().
SnapParsed parse_columns(std::string_view text, const ColumnsDialect& dialect, char* records);

// As above, with vertices that may be any words. An edge is, in `names`:
//
//   uint32 length, source | uint32 length, target | weight, if weighted: its type's bytes
//
// `names` has room for names_bytes_max(text.size()).
constexpr size_t names_bytes_max(size_t text_bytes) { return 4 * text_bytes + 64; }
struct NamesParsed {
  SnapParsed lines;
  size_t names_bytes = 0;
};
NamesParsed parse_names(std::string_view text, const ColumnsDialect& dialect, char* names);

// The columns of one line, for a look at it. Quotes are left on.
std::vector<std::string_view> columns_of(std::string_view line, char delimiter);

}  // namespace graphlane::graphfmt
