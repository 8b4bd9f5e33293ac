#include "graphfmt/input/sniff.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <vector>

#include "graphfmt/input/columns_text.h"
#include "graphfmt/input/weights.h"
#include "iomgr/base/utf8.h"

namespace graphlane::graphfmt {
namespace {

using namespace std::string_view_literals;

// `remedy` has {} for the path.
struct ForeignMagic {
  size_t offset;
  std::string_view magic;
  std::string_view kind;
  std::string_view remedy;
};

// Four bytes and more, of which some are no digits, blanks or line ends.
constexpr ForeignMagic kForeignBinary[] = {
    {0, "PAR1"sv, "a Parquet file",
     "`duckdb -c \"COPY (SELECT * FROM '{}') TO 'list.csv'\"` makes CSV of it"},
    {0, "PK\x03\x04"sv, "a zip archive",
     "`unzip -p {} MEMBER | graphlane convert - OUT` reads a file of it"},
    {0, "PK\x05\x06"sv, "an empty zip archive", "name the edge list"},
    {0, "!<arch>\n"sv, "an ar archive", "extract the edge list from it"},
    {257, "ustar"sv, "a tar archive",
     "`tar -xOf {} MEMBER | graphlane convert - OUT` reads a file of it"},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7z archive",
     "`7z x -so {} | graphlane convert - OUT` reads what is in it"},
    {0, "Rar!\x1a\x07"sv, "a RAR archive",
     "`unrar p -inul {} | graphlane convert - OUT` reads what is in it"},
    {0, "LZIP"sv, "lzip data", "`lzip -dc {} | graphlane convert - OUT` reads it"},
    {0, "\x89LZO"sv, "lzop data", "`lzop -dc {} | graphlane convert - OUT` reads it"},
    {0, "\x02\x21\x4c\x18"sv, "lz4 data of the legacy format",
     "`lz4 -dc {} | graphlane convert - OUT` reads it"},
    {0, "\xff\x06\0\0sNaPpY"sv, "snappy data", "`snzip -dc {} | graphlane convert - OUT` reads it"},
    {0, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file", "write its columns as CSV with h5py or pandas"},
    {0, "\x93NUMPY"sv, "an array of numpy",
     "`python3 -c \"import numpy; numpy.load('{}').astype('<u8').tofile('list.u64')\"` makes pairs "
     "of it"},
    {0, "ARROW1"sv, "an Arrow file", "write it as CSV with pyarrow or polars"},
    {0, "Obj\x01"sv, "an Avro file", "write its columns as CSV"},
    {0, "SQLite format 3\0"sv, "an SQLite database",
     "`sqlite3 -csv {} 'SELECT …' | graphlane convert --from csv - OUT` reads a table of it"},
    {0,
     "\x7f"
     "ELF"sv,
     "a program", "name the edge list"},
    {512, "\x89HDF\r\n\x1a\n"sv, "an HDF5 file", "write its columns as CSV with h5py or pandas"},
    {0, "FEA1"sv, "a Feather file", "write it as CSV with pyarrow or pandas"},
    {0, "MATLAB "sv, "a MATLAB file", "write it as Matrix Market with scipy.io.mmwrite"},
    {0, "RZIP"sv, "rzip data", "`rzip -dk {}` unpacks it"},
    {0, "LRZI"sv, "lrzip data", "`lrzip -d {}` unpacks it"},
    {0, "7kSt"sv, "a ZPAQ archive", "`zpaq x {}` extracts what is in it"},
    {0, "MSCF"sv, "a cabinet archive", "`cabextract {}` extracts what is in it"},
    {0, "xar!"sv, "an xar archive", "extract the edge list from it"},
    {0, "MSWIM\0\0\0"sv, "a WIM archive", "extract the edge list from it"},
    {7, "**ACE**"sv, "an ACE archive", "extract the edge list from it"},
    {0, "hsqs"sv, "a SquashFS image", "mount it, and name the edge list in it"},
    {32769, "CD001"sv, "a disk image", "mount it, and name the edge list in it"},
    {0, "\xed\xab\xee\xdb"sv, "an RPM package", "`rpm2cpio {} | cpio -i` extracts what is in it"},
    {0, "070701"sv, "a cpio archive", "`cpio -i < {}` extracts what is in it"},
    {0, "070702"sv, "a cpio archive", "`cpio -i < {}` extracts what is in it"},
    {0, "070707"sv, "a cpio archive", "`cpio -i < {}` extracts what is in it"},
    {0, "Salted__"sv, "data encrypted by OpenSSL", "decrypt it first"},
    {0, "-----BEGIN PGP"sv, "a PGP message", "`gpg -d {} | graphlane convert - OUT` reads it"},
    {0, "age-encryption.org/"sv, "data encrypted by age",
     "`age -d {} | graphlane convert - OUT` reads it"},
    {0, "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, "an Office document of the old format",
     "write the sheet as CSV"},
    {0, "CDF\x01"sv, "a netCDF file", "write its columns as CSV"},
    {0, "CDF\x02"sv, "a netCDF file", "write its columns as CSV"},
    {0, "RDX2\n"sv, "data of R", "write them with R's write.csv"},
    {0, "RDX3\n"sv, "data of R", "write them with R's write.csv"},
    {0, "X\n\0\0\0"sv, "data of R", "write them with R's write.csv"},
    {8, "DUCK"sv, "a DuckDB database",
     "`duckdb {} -c \"COPY (SELECT …) TO 'list.csv'\"` makes CSV of a table"},
    {16, "\xde\xc0\xef\xbe"sv, "an LMDB database", "write its edges as CSV"},
    {0, "\x89PNG\r\n\x1a\n"sv, "a picture", "name the edge list"},
    {0, "GIF8"sv, "a picture", "name the edge list"},
    {0, "\xff\xd8\xff"sv, "a picture", "name the edge list"},
    {0, "\xca\xfe\xba\xbe"sv, "a program", "name the edge list"},
    {0, "\0asm"sv, "a program", "name the edge list"},
};

constexpr std::string_view kPickle = "a pickle of Python";
constexpr std::string_view kPickleRemedy =
    "load it with the program that wrote it, and write its edges as CSV";

constexpr std::string_view kZlib = "zlib data";
constexpr std::string_view kZlibRemedy =
    "`python3 -c \"import sys, zlib; sys.stdout.buffer.write(zlib.decompress(open('{}', "
    "'rb').read()))\" | graphlane convert - OUT` reads it";

// Magics of three bytes or fewer: where text is expected.
constexpr ForeignMagic kForeignText[] = {
    {0, "\x78\x01"sv, kZlib, kZlibRemedy},
    {0, "\x78\x5e"sv, kZlib, kZlibRemedy},
    {0, "\x78\x9c"sv, kZlib, kZlibRemedy},
    {0, "\x78\xda"sv, kZlib, kZlibRemedy},
    {0, "\x1f\x1e"sv, "pack data", "`pcat {} | graphlane convert - OUT` reads it"},
    {0, "\x1f\xa0"sv, "compress data of the LZH kind",
     "`zcat {} | graphlane convert - OUT` reads it"},
    {0, "\x60\xea"sv, "an ARJ archive", "extract the edge list from it"},
    {0, "\xc7\x71"sv, "a cpio archive", "`cpio -i < {}` extracts what is in it"},
    {0, "#!/"sv, "a script", "name the edge list"},
    {0, "\x1f\x9d"sv, "compress data", "`zcat {} | graphlane convert - OUT` reads it"},
    {0, "ORC"sv, "an ORC file", "write its columns as CSV"},
    {0, "%PDF-"sv, "a PDF document", "name the edge list"},
    {0, "\x80\x02"sv, kPickle, kPickleRemedy},
    {0, "\x80\x03"sv, kPickle, kPickleRemedy},
    {0, "\x80\x04\x95"sv, kPickle, kPickleRemedy},
    {0, "\x80\x05\x95"sv, kPickle, kPickleRemedy},
    {0, "\xff\xfe\0\0"sv, "UTF-32 text",
     "`iconv -f UTF-32 -t UTF-8 {} | graphlane convert - OUT` reads it"},
    {0, "\0\0\xfe\xff"sv, "UTF-32 text",
     "`iconv -f UTF-32 -t UTF-8 {} | graphlane convert - OUT` reads it"},
    {0, "\xff\xfe"sv, "UTF-16 text",
     "`iconv -f UTF-16 -t UTF-8 {} | graphlane convert - OUT` reads it"},
    {0, "\xfe\xff"sv, "UTF-16 text",
     "`iconv -f UTF-16 -t UTF-8 {} | graphlane convert - OUT` reads it"},
};

// The text's first words in lower case, behind comments.
constexpr size_t kForeignWordsSeen = 256;
constexpr ForeignMagic kForeignWords[] = {
    {0, "version https://git-lfs"sv, "a pointer of Git LFS, not the file itself",
     "`git lfs pull` fetches it"},
    {0, "#bvgraph properties"sv, "the properties of a WebGraph",
     "`java it.unimi.dsi.webgraph.ArcListASCIIGraph BASENAME list.txt` makes an edge list of the "
     "graph"},
    {0, "adjacencygraph"sv, "an adjacency graph of Ligra or PBBS", "write it as an edge list"},
    {0, "weightedadjacencygraph"sv, "an adjacency graph of Ligra or PBBS",
     "write it as an edge list"},
    {0, "edgearray"sv, "an edge array of PBBS", "without its first line it is an edge list"},
    {0, "weightededgearray"sv, "an edge array of PBBS",
     "without its first line it is an edge list"},
    {0, "dl n"sv, "a UCINET file", "write it as an edge list with networkx or igraph"},
    {0, "[graph]"sv, "X-Stream's description of a graph",
     "name the binary list beside it, which --from bin -w reads"},
    {0, "_:"sv, "RDF", "write subject and object as CSV, and convert it with --renumber MAP"},
    {0, "@prefix"sv, "RDF", "write subject and object as CSV, and convert it with --renumber MAP"},
    {0, "*vertices"sv, "a Pajek file", "write it as an edge list with networkx or igraph"},
    {0, "*network"sv, "a Pajek file", "write it as an edge list with networkx or igraph"},
    {0, "*nodes"sv, "an NWB file", "write it as an edge list with networkx or igraph"},
    {0, "<!doctype html"sv, "a web page, perhaps of a download that failed",
     "fetch the file itself"},
    {0, "<html"sv, "a web page, perhaps of a download that failed", "fetch the file itself"},
    {0, "<gexf"sv, "a GEXF file", "write it as an edge list with networkx"},
    {0, "<graphml"sv, "a GraphML file", "write it as an edge list with networkx or igraph"},
    {0, "<http"sv, "RDF", "write subject and object as CSV, and convert it with --renumber MAP"},
    {0, "<"sv, "XML or a web page", "write its edges as an edge list"},
    {0, "{"sv, "JSON", "write its edges as CSV, with jq -r '… | @csv'"},
    {0, "["sv, "JSON", "write its edges as CSV, with jq -r '… | @csv'"},
    {0, "creator \""sv, "a GML file", "write it as an edge list with networkx or igraph"},
    {0, "nodedef>"sv, "a GDF file", "write it as an edge list with igraph or Gephi"},
    {0, "@nodes"sv, "a LEMON graph", "write it as an edge list"},
    {0, ">>graph6<<"sv, "a graph6 file", "write it as an edge list with networkx"},
    {0, ">>sparse6<<"sv, "a sparse6 file", "write it as an edge list with networkx"},
    {0, "*node data"sv, "a VNA file", "write it as an edge list"},
    {0, "*edges"sv, "a Pajek file", "write it as an edge list with networkx or igraph"},
    {0, "*arcs"sv, "a Pajek file", "write it as an edge list with networkx or igraph"},
    {0, "@relation"sv, "an ARFF file", "write its columns as CSV"},
    {0, "insert into"sv, "SQL", "load it into a database, and write the table as CSV"},
    {0, "create table"sv, "SQL", "load it into a database, and write the table as CSV"},
    {0, "begin 644 "sv, "uuencoded data", "`uudecode -o - {} | graphlane convert - OUT` reads it"},
    {0, "mime-version:"sv, "a mail message", "save the edge list that is in it"},
    {0, "diff --git"sv, "a patch", "name the edge list"},
    {0, "digraph"sv, "a graph of Graphviz", "write it as an edge list with networkx"},
    {0, "strict "sv, "a graph of Graphviz", "write it as an edge list with networkx"},
};

std::string with_path(std::string_view remedy, const std::string& path) {
  std::string text(remedy);
  if (const size_t at = text.find("{}"); at != std::string::npos) {
    text.replace(at, 2, path == "-" ? "FILE" : path);
  }
  return text;
}

template <size_t N>
std::optional<std::string> find_magic(const ForeignMagic (&magics)[N], const std::string& path,
                                      std::string_view head) {
  for (const ForeignMagic& magic : magics) {
    if (head.size() < magic.offset || !head.substr(magic.offset).starts_with(magic.magic)) continue;
    return fmt::format("is {}, which is not read: {}", magic.kind, with_path(magic.remedy, path));
  }
  return std::nullopt;
}

// Behind blank lines and comments of any style.
std::string_view first_words(std::string_view head) {
  while (true) {
    head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
    std::string_view end;
    if (head.starts_with("/*")) end = "*/";
    if (head.starts_with("<!--")) end = "-->";
    const bool is_bvgraph = head.starts_with("#BVGraph");
    for (const std::string_view begin : {"#", "%", "//"}) {
      if (head.starts_with(begin) && !is_bvgraph) end = "\n";
    }
    if (end.empty()) return head;
    const size_t at = head.find(end);
    if (at == std::string_view::npos) return {};
    head.remove_prefix(at + end.size());
  }
}

std::string in_lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return lower;
}

// "graph [" of GML, or "graph NAME {" of Graphviz, where `words` begin with "graph".
std::optional<std::string> graph_language(std::string_view words) {
  const size_t bracket = words.find_first_of("[{");
  const size_t behind_graph = std::string_view("graph").size();
  if (!words.starts_with("graph") || bracket == std::string_view::npos) return std::nullopt;
  if (words.substr(behind_graph, bracket - behind_graph).find_first_of(",;|:") != words.npos) {
    return std::nullopt;
  }
  return fmt::format("is {}, which is not read: write it as an edge list with networkx",
                     words[bracket] == '[' ? "a GML file" : "a graph of Graphviz");
}

// The head of tar's oldest format has no magic but the sum of its own bytes.
bool is_tar(std::string_view head) {
  constexpr size_t kTarHeadBytes = 512, kSumAt = 148, kSumBytes = 8;
  if (head.size() < kTarHeadBytes || head[0] == '\0') return false;
  unsigned sum = 0, stored = 0;
  for (size_t i = 0; i < kTarHeadBytes; ++i) {
    const bool in_sum = i >= kSumAt && i < kSumAt + kSumBytes;
    sum += in_sum ? unsigned{' '} : static_cast<unsigned char>(head[i]);
    if (in_sum && head[i] >= '0' && head[i] <= '7') {
      stored = stored * 8 + static_cast<unsigned>(head[i] - '0');
    }
  }
  return sum == stored;
}

bool is_ascii_text(char c) {
  return (c >= 0x20 && c < 0x7f) || c == '\t' || c == '\n' || c == '\r';
}

// UTF-16 and UTF-32 without a byte order mark: the other bytes of an ASCII character are zero.
std::optional<std::string> utf16_kind(const std::string& path, std::string_view head) {
  constexpr size_t kBytesToJudge = 6;
  if (head.size() < kBytesToJudge) return std::nullopt;
  for (const size_t at : {0, 3}) {
    const size_t count = std::min(head.size(), size_t{64}) / 4;
    bool fits = count > 1;
    for (size_t i = 0; fits && i < 4 * count; ++i) fits = (i % 4 == at) == is_ascii_text(head[i]);
    if (!fits) continue;
    return fmt::format(
        "is UTF-32 text, which is not read: {}",
        with_path(at == 0 ? "`iconv -f UTF-32LE -t UTF-8 {} | graphlane convert - OUT` reads it"
                          : "`iconv -f UTF-32BE -t UTF-8 {} | graphlane convert - OUT` reads it",
                  path));
  }
  for (const size_t zero : {0, 1}) {
    bool fits = true;
    for (size_t i = 0; fits && i + 1 < std::min(head.size(), size_t{64}); i += 2) {
      const char text = head[i + 1 - zero];
      fits = head[i + zero] == '\0' &&
             ((text >= 0x20 && text < 0x7f) || text == '\t' || text == '\n' || text == '\r');
    }
    if (!fits) continue;
    return fmt::format("is UTF-16 text, which is not read: {}",
                       with_path(zero == 1 ? "`iconv -f UTF-16LE -t UTF-8 {} | graphlane convert - "
                                             "OUT` reads it"
                                           : "`iconv -f UTF-16BE -t UTF-8 {} | graphlane convert - "
                                             "OUT` reads it",
                                 path));
  }
  return std::nullopt;
}

// Old Macintosh programs ended lines so.
std::optional<std::string> bare_returns(const std::string& path, std::string_view head) {
  for (size_t at = head.find('\r'); at != head.npos && at + 1 < head.size();
       at = head.find('\r', at + 1)) {
    if (head[at + 1] == '\n') continue;
    return with_path(
        "has lines that end in a carriage return alone: `tr '\\r' '\\n' < {} | graphlane convert - "
        "OUT` reads it",
        path);
  }
  return std::nullopt;
}

// A bit stream without magic, beside its properties.
bool is_webgraph(const std::string& path) {
  if (!path.ends_with(".graph")) return false;
  struct stat st;
  return ::stat((path.substr(0, path.size() - 6) + ".properties").c_str(), &st) == 0;
}

template <class T>
T number_at(const char* at) {
  T number;
  std::memcpy(&number, at, sizeof number);
  return number;
}

// A weight that a user would plausibly give an edge.
bool is_likely_weight(const char* at, WeightType type) {
  if (type == WeightType::kInt64) return std::abs(number_at<int64_t>(at) / 2) < int64_t{1} << 60;
  const double value =
      type == WeightType::kFloat32 ? double{number_at<float>(at)} : number_at<double>(at);
  return value == 0 || (std::isfinite(value) && std::abs(value) > 1e-10 && std::abs(value) < 1e15);
}

struct RecordsLook {
  size_t count = 0;
  bool vertices_fit = true;  // below 2^32
  bool weights_fit = true;   // all of them likely
  bool any_weight = false;   // not zero
  bool any_likely_weight = false;
  size_t weightlike_words = 0;  // of the vertices' words, those that a float's bits look like
  bool all_small = true;        // all of the vertices' words, below 2^28
};

RecordsLook look_at_records(std::string_view head, const BinaryLayout& layout) {
  RecordsLook look;
  const size_t record_bytes = layout.record_bytes();
  for (; head.size() >= record_bytes; head.remove_prefix(record_bytes), ++look.count) {
    for (unsigned end = 0; end < 2; ++end) {
      const char* const at = head.data() + end * layout.vertex_bytes;
      if (layout.vertex_bytes == 8 && number_at<uint32_t>(at + 4) != 0) look.vertices_fit = false;
      const auto low = number_at<uint32_t>(at);
      look.weightlike_words += low >= 0x2f000000 && low < 0x58000000;
      look.all_small &= low < 0x10000000;
    }
    if (!layout.weight) continue;
    const char* const weight = head.data() + 2 * layout.vertex_bytes;
    const size_t weight_bytes = weight_size_bytes(*layout.weight);
    const bool is_zero = std::all_of(weight, weight + weight_bytes, [](char c) { return c == 0; });
    const bool likely = is_likely_weight(weight, *layout.weight);
    look.weights_fit &= likely;
    look.any_weight |= !is_zero;
    look.any_likely_weight |= likely && !is_zero;
  }
  return look;
}

constexpr size_t kRecordsToJudge = 2;
// Fewer may be so by chance, where vertices are large numbers.
constexpr size_t kRecordsToJudgeLarge = 16;

// Whether the bytes can hardly be anything else: what a narrower layout would make of them is
// absurd.
bool is_surely(std::string_view head, uint64_t size_bytes, const BinaryLayout& layout) {
  if (size_bytes % layout.record_bytes() != 0) return false;
  const RecordsLook look = look_at_records(head, layout);
  if (look.count < kRecordsToJudge || !look.vertices_fit || !look.weights_fit) return false;
  if (layout.weight == WeightType::kInt64 && layout.vertex_bytes == 4) {
    // Small weights leave every fourth word zero. Every second one is pairs of 64 bits.
    return false;
  }
  if (look.count < kRecordsToJudgeLarge && !look.all_small) return false;
  if (layout.weight) return look.any_weight && look.weightlike_words <= look.count;
  return layout.vertex_bytes == 8 && head.find_first_not_of('\0') != std::string_view::npos;
}

constexpr BinaryLayout kTellingLayouts[] = {
    {8, std::nullopt},
    {4, WeightType::kFloat32},
    {4, WeightType::kFloat64},
    {8, WeightType::kFloat64},
};

bool is_same(const BinaryLayout& a, const BinaryLayout& b) {
  return a.vertex_bytes == b.vertex_bytes && a.weight == b.weight;
}

// Whether every number is a multiple of 256, as small numbers of the other byte order are.
bool looks_big_endian(std::string_view head) {
  constexpr size_t kNumbersToJudge = 8;
  size_t count = 0;
  bool any = false;
  for (; head.size() >= 4; head.remove_prefix(4), ++count) {
    const auto number = number_at<uint32_t>(head.data());
    if ((number & 0xff) != 0) return false;
    any |= number != 0;
  }
  return any && count >= kNumbersToJudge;
}

// Whether every number, read as a T, is a whole one, as vertices are that were floats.
template <class T>
bool looks_like_floats(std::string_view head) {
  constexpr size_t kNumbersToJudge = 8;
  constexpr T kWholeMax = sizeof(T) == 4 ? T{0x1p24} : T{0x1p53};
  size_t count = 0;
  bool any = false;
  for (; head.size() >= sizeof(T); head.remove_prefix(sizeof(T)), ++count) {
    const T number = number_at<T>(head.data());
    if (!(number >= 0 && number < kWholeMax) || number != std::floor(number)) return false;
    any |= number >= 1;
  }
  return any && count >= kNumbersToJudge;
}

// Pairs of 64-bit numbers of the other byte order, below 2^32.
bool looks_big_endian_64(std::string_view head) {
  constexpr size_t kNumbersToJudge = 4;
  size_t count = 0;
  bool any = false;
  for (; head.size() >= 8; head.remove_prefix(8), ++count) {
    if (number_at<uint32_t>(head.data()) != 0) return false;
    any |= number_at<uint32_t>(head.data() + 4) != 0;
  }
  return any && count >= kNumbersToJudge;
}

// Whether every second edge ends at vertex 0, as the upper halves of small int64 weights do.
bool looks_int64_weighted(std::string_view head) {
  constexpr size_t kRecordBytes = 16, kJudged = 3;
  size_t count = 0;
  bool other_target = false;
  for (; head.size() >= kRecordBytes; head.remove_prefix(kRecordBytes), ++count) {
    if (number_at<uint32_t>(head.data() + 12) != 0) return false;
    other_target |= number_at<uint32_t>(head.data() + 4) != 0;
  }
  return other_target && count >= kJudged;
}

// Whether every third number is small, or the same one, as int32 weights are behind two vertices.
bool looks_int32_weighted(std::string_view head) {
  constexpr size_t kRecordBytes = 12, kJudged = 32, kJudgedEqual = 8;
  size_t count = 0, larger = 0;
  uint32_t weight_min = UINT32_MAX, weight_max = 0;
  for (std::string_view rest = head; rest.size() >= kRecordBytes;
       rest.remove_prefix(kRecordBytes)) {
    const auto weight = number_at<uint32_t>(rest.data() + 8);
    weight_min = std::min(weight_min, weight);
    weight_max = std::max(weight_max, weight);
    ++count;
  }
  std::array<uint32_t, 3> different = {};
  size_t different_count = 0;
  for (std::string_view rest = head; rest.size() >= kRecordBytes;
       rest.remove_prefix(kRecordBytes)) {
    for (const size_t at : {0, 4}) {
      const auto vertex = number_at<uint32_t>(rest.data() + at);
      larger += vertex > weight_max;
      const auto end = different.begin() + static_cast<ptrdiff_t>(different_count);
      if (different_count < different.size() && std::find(different.begin(), end, vertex) == end) {
        different[different_count++] = vertex;
      }
    }
  }
  const bool vary = different_count == different.size();
  return vary && ((count >= kJudgedEqual && weight_min == weight_max) ||
                  (count >= kJudged && larger > count));
}

// Whether both halves of the numbers are small, as two numbers of 16 bits are. The lower halves of
// large numbers are of any size.
bool looks_16_bit(std::string_view head) {
  constexpr size_t kNumbersToJudge = 64;
  constexpr uint32_t kHalfMax = 0x4000;
  size_t count = 0, two_halves = 0;
  for (; head.size() >= 4; head.remove_prefix(4), ++count) {
    const auto number = number_at<uint32_t>(head.data());
    if ((number & 0xffff) >= kHalfMax || number >> 16 >= kHalfMax) return false;
    two_halves += (number & 0xffff) != 0 && number >> 16 != 0;
  }
  return count >= kNumbersToJudge && two_halves > count / 2;
}

std::string name_of(const BinaryLayout& layout) {
  return fmt::format(
      "pairs of {}-bit numbers{}", 8 * layout.vertex_bytes,
      layout.weight ? fmt::format(" with {} weights", graphfmt::name_of(*layout.weight)) : "");
}

std::string_view first_data_line(std::string_view head) {
  while (!head.empty()) {
    const size_t end = std::min(head.find('\n'), head.size());
    std::string_view line = head.substr(0, end);
    head.remove_prefix(std::min(end + 1, head.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const size_t begin = line.find_first_not_of(" \t");
    if (begin != std::string_view::npos && line[begin] != '#' && line[begin] != '%') {
      return line.substr(begin);
    }
  }
  return {};
}

// The extension behind which that of a compression stands.
std::string plain_extension(const std::string& path) {
  std::filesystem::path name = std::filesystem::path(path).filename();
  for (const std::string_view packed : {".gz", ".xz", ".lzma", ".zst", ".bz2", ".lz4"}) {
    if (name.extension() == packed) return name.stem().extension().string();
  }
  return name.extension().string();
}

}  // namespace

size_t BinaryLayout::record_bytes() const {
  return 2 * vertex_bytes + (weight ? weight_size_bytes(*weight) : 0);
}

std::string BinaryLayout::options() const {
  std::string text = vertex_bytes == 8 ? "--from u64" : "--from u32";
  if (!weight) return text;
  const bool usual = *weight == (vertex_bytes == 8 ? WeightType::kFloat64 : WeightType::kFloat32);
  return text + (usual ? " -w" : fmt::format(" -w --weights {}", graphfmt::name_of(*weight)));
}

BinaryLayout layout_of(const EdgeListOptions& options) {
  BinaryLayout layout{.vertex_bytes = options.format == EdgeFormat::kU64 ? 8u : 4u};
  const WeightType usual = layout.vertex_bytes == 8 ? WeightType::kFloat64 : WeightType::kFloat32;
  if (options.weighted) layout.weight = options.stored_weights.value_or(usual);
  return layout;
}

std::optional<std::string> foreign_kind(const std::string& path, std::string_view head,
                                        bool binary_expected) {
  if (is_webgraph(path)) {
    const std::string base = path.substr(0, path.size() - 6);
    return fmt::format(
        "is a WebGraph, which is not read: `java it.unimi.dsi.webgraph.ArcListASCIIGraph {} "
        "list.txt` makes an edge list of it",
        base);
  }
  if (auto kind = find_magic(kForeignBinary, path, head)) return kind;
  if (binary_expected) return std::nullopt;
  if (auto kind = find_magic(kForeignText, path, head)) return kind;
  if (is_tar(head)) return "is a tar archive, which is not read: extract the edge list from it";
  if (auto kind = utf16_kind(path, head)) return kind;
  while (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  if (is_binary(head)) return std::nullopt;
  const std::string words = in_lower_case(first_words(head).substr(0, kForeignWordsSeen));
  if (auto kind = find_magic(kForeignWords, path, words)) return kind;
  if (auto kind = graph_language(words)) return kind;
  return bare_returns(path, head);
}

// Text in UTF-8, or in another encoding if at most an eighth of the bytes is not ASCII.
bool is_text(std::string_view head) {
  while (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  size_t other = 0;
  for (std::string_view rest = head; !rest.empty();) {
    const bool is_ascii = static_cast<unsigned char>(rest.front()) < 0x80;
    if (!is_ascii && take_utf8(&rest)) continue;
    other += !is_ascii;
    rest.remove_prefix(1);
  }
  const bool no_controls = std::none_of(head.begin(), head.end(), [](char c) {
    return !is_ascii_text(c) && static_cast<unsigned char>(c) < 0x80;
  });
  return !head.empty() && no_controls && other <= head.size() / 8;
}

bool is_binary(std::string_view head) { return head.find('\0') != std::string_view::npos; }

std::optional<std::string> why_incomplete(std::string_view head, bool binary_expected) {
  constexpr size_t kBytesToJudge = 24, kTextToJudge = 4;
  const size_t zero = head.find('\0');
  if (zero == std::string_view::npos) return std::nullopt;
  if (head.find_first_not_of('\0') == std::string_view::npos) {
    if (head.size() < kBytesToJudge) return std::nullopt;
    return "holds zeros alone, as far as it was looked at: is it complete? (--as-given reads it)";
  }
  const std::string_view before = head.substr(0, zero);
  if (binary_expected || before.size() < kTextToJudge ||
      before.find('\n') == std::string_view::npos || !is_text(before)) {
    return std::nullopt;
  }
  return fmt::format("byte {}: a zero byte in text: is it complete?", zero);
}

std::optional<std::string> why_not_layout(std::string_view head, uint64_t size_bytes,
                                          const BinaryLayout& layout) {
  const auto believed = [&] {
    return fmt::format("(--as-given believes that it is {})", name_of(layout));
  };
  const auto looks_like = [&](const BinaryLayout& other) {
    const bool other_weight = layout.vertex_bytes == other.vertex_bytes &&
                              layout.weight.has_value() != other.weight.has_value();
    if (other_weight && !other.weight) {
      return fmt::format("looks like {}, without weights: leave -w out {}", name_of(other),
                         believed());
    }
    if (other_weight && other.options().ends_with(" -w")) {
      return fmt::format("looks like {}: -w reads it {}", name_of(other), believed());
    }
    return fmt::format("looks like {}: {} reads it {}", name_of(other), other.options(),
                       believed());
  };
  const auto as_floats = [&](std::string_view type) {
    return fmt::format(
        "looks like floating-point numbers: numpy.fromfile(…, '{}').astype('<u8').tofile(…) makes "
        "whole ones {}",
        type, believed());
  };
  const RecordsLook look = look_at_records(head, layout);
  const bool judged = look.count >= kRecordsToJudge;
  if (!layout.weight && layout.vertex_bytes == 4) {
    for (const BinaryLayout& other : kTellingLayouts) {
      if (is_surely(head, size_bytes, other)) return looks_like(other);
    }
    if (size_bytes % 16 == 0 && looks_int64_weighted(head)) {
      return looks_like({4, WeightType::kInt64});
    }
    if (looks_like_floats<float>(head)) return as_floats("f4");
    if (looks_16_bit(head)) {
      return fmt::format(
          "looks like numbers of 16 bits: numpy.fromfile(…, '<u2').astype('<u4').tofile(…) makes "
          "numbers of 32 bits {}",
          believed());
    }
    if (size_bytes % 12 == 0 && looks_int32_weighted(head)) {
      return fmt::format(
          "looks like pairs of 32-bit numbers with int32 weights: numpy.fromfile(…, 'u4,u4,i4')"
          ".astype('u4,u4,i8').tofile(…) makes int64 weights of them {}",
          believed());
    }
    if (looks_like_floats<double>(head)) return as_floats("f8");
    if (looks_big_endian(head)) {
      return fmt::format(
          "looks like big-endian numbers: numpy.fromfile(…, '>u4').astype('<u4').tofile(…) turns "
          "them {}",
          believed());
    }
    return std::nullopt;
  }
  if (!judged) return std::nullopt;
  if (!layout.weight && looks_like_floats<double>(head)) return as_floats("f8");
  if (!layout.weight && looks_big_endian_64(head) && !look.vertices_fit) {
    return fmt::format(
        "looks like big-endian numbers: numpy.fromfile(…, '>u8').astype('<u8').tofile(…) turns "
        "them {}",
        believed());
  }
  for (const BinaryLayout& other : kTellingLayouts) {
    // Vertices of 64 bits, and weights, are seldom there by chance.
    const bool contradicts =
        !look.vertices_fit || !look.weights_fit || other.vertex_bytes > layout.vertex_bytes;
    if (contradicts && !is_same(other, layout) && is_surely(head, size_bytes, other)) {
      return looks_like(other);
    }
  }
  const BinaryLayout pairs{};
  const bool may_be_pairs = size_bytes % pairs.record_bytes() == 0;
  // Large ones may be meant: --renumber takes them, and the reader says so.
  if (!look.vertices_fit && may_be_pairs && look_at_records(head, pairs).all_small) {
    return looks_like(pairs);
  }
  // No weight is likely: they are almost zero, as vertices that are taken for weights.
  if (layout.weight && look.any_weight && !look.any_likely_weight && may_be_pairs) {
    return looks_like(pairs);
  }
  if (layout.weight && look.any_weight && !look.any_likely_weight) {
    return fmt::format(
        "its weights are no likely {} numbers: are they whole numbers, or of another byte order, "
        "or "
        "before the vertices? {}",
        graphfmt::name_of(*layout.weight), believed());
  }
  return std::nullopt;
}

std::string guess_layout(std::string_view head, uint64_t size_bytes) {
  for (const BinaryLayout& layout : kTellingLayouts) {
    if (is_surely(head, size_bytes, layout)) {
      return fmt::format("{} fits its first bytes", layout.options());
    }
  }
  return "--from bin, u32 or u64 says what it is";
}

bool is_mtx_banner(std::string_view text) {
  const std::string begin =
      in_lower_case(text.substr(0, std::string_view("%%matrixmarket").size()));
  return begin.starts_with("%%matrixmarket") || begin.starts_with("%matrixmarket");
}

std::optional<EdgeFormat> banner_of(std::string_view head) {
  while (head.starts_with(kByteOrderMark)) head.remove_prefix(kByteOrderMark.size());
  head.remove_prefix(std::min(head.find_first_not_of("\r\n"), head.size()));
  if (is_mtx_banner(head)) return EdgeFormat::kMtx;
  if (head.starts_with("%")) {
    const auto words = columns_of(head.substr(1, std::min(head.find('\n'), head.size()) - 1), ' ');
    if (words[0] == "sym" || words[0] == "asym" || words[0] == "bip") return EdgeFormat::kKonect;
  }
  const std::string_view line = first_data_line(head);
  for (std::string_view rest = head; !rest.empty();) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view at = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (at.starts_with("c ") || at == "c" || at == "c\r" || at.empty()) continue;
    if (at.starts_with("p ")) return EdgeFormat::kDimacs;
    break;
  }
  if (line.starts_with("a ") && columns_of(line, ' ').size() == 4) return EdgeFormat::kDimacs;
  return std::nullopt;
}

EdgeFormat resolve_format(const EdgeListOptions& options, std::string_view head) {
  if (options.format != EdgeFormat::kAuto) return options.format;
  const std::string extension = plain_extension(options.path);
  if (extension == ".bin") return EdgeFormat::kBin;
  if (extension == ".u32") return EdgeFormat::kU32;
  if (extension == ".u64") return EdgeFormat::kU64;
  // Columns that are named are taken as they stand.
  const bool plain_columns = options.columns.source != 0 || options.columns.delimiter != 0;
  if (const auto banner = banner_of(head);
      banner && !(plain_columns && *banner == EdgeFormat::kKonect)) {
    return *banner;
  }
  if (options.columns.delimiter != 0) return EdgeFormat::kCsv;
  if (extension == ".metis" || extension == ".graph") return EdgeFormat::kMetis;
  const std::string_view line = first_data_line(head);
  if (extension == ".csv" || line.find(',') != std::string_view::npos ||
      line.find(';') != std::string_view::npos) {
    return EdgeFormat::kCsv;
  }
  if (extension == ".tsv" && line.find('\t') != std::string_view::npos) return EdgeFormat::kTsv;
  return EdgeFormat::kSnap;
}

}  // namespace graphlane::graphfmt
