#include "cli/help.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "iomgr/base/process/terminal.h"

namespace graphlane::cli {
namespace {

constexpr size_t kWidthMin = 40;
constexpr size_t kWidthMax = 100;
constexpr size_t kTextColumnMax = 26;
constexpr size_t kCommandIndent = 2;
constexpr size_t kContinuedIndent = 6;
constexpr std::string_view kContinued = " \\";

size_t text_column(size_t width) { return std::min(kTextColumnMax, width * 3 / 8); }

std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    text.remove_prefix(std::min(text.find_first_not_of(" \n"), text.size()));
    if (text.empty()) return words;
    words.push_back(text.substr(0, text.find_first_of(" \n")));
    text.remove_prefix(words.back().size());
  }
}

// Appends words to a text whose last line is `column` columns long. Continuation lines begin with
// `indent` blanks.
class Folder {
 public:
  Folder(std::string* out, size_t width, size_t column, size_t indent)
      : out_(*out), width_(width), column_(column), indent_(indent) {}

  // Every line but the last ends with `mark`.
  void add(const std::vector<std::string_view>& words, std::string_view mark = {}) {
    for (size_t i = 0; i < words.size(); ++i) {
      const size_t length = columns_in(words[i]);
      const size_t behind = i + 1 < words.size() ? mark.size() : 0;
      if (i > 0 && column_ + 1 + length + behind > width_) {
        out_.append(mark).append("\n").append(indent_, ' ');
        column_ = indent_;
      } else if (i > 0) {
        out_ += ' ';
        ++column_;
      }
      out_ += words[i];
      column_ += length;
    }
  }
  void end_line() { out_ += '\n'; }

 private:
  std::string& out_;
  const size_t width_;
  size_t column_;
  const size_t indent_;
};

void add_paragraph(std::string_view text, size_t width, size_t indent, std::string* out) {
  Folder folder(out, width, 0, indent);
  folder.add(words_in(text));
  folder.end_line();
}

void add_entry(const HelpEntry& entry, size_t width, std::string* out) {
  const size_t column = text_column(width);
  out->append(kCommandIndent, ' ');
  size_t name_columns = kCommandIndent + columns_in(entry.name);
  if (name_columns <= width) {
    *out += entry.name;
  } else {
    Folder name(out, width, kCommandIndent, kContinuedIndent);
    name.add(words_in(entry.name));
    name_columns = column;
  }
  if (entry.text.empty()) return out->push_back('\n');
  if (name_columns + 1 < column) {
    out->append(column - name_columns, ' ');
  } else {
    out->append("\n").append(column, ' ');
  }
  Folder folder(out, width, column, column);
  folder.add(words_in(entry.text));
  folder.end_line();
}

void add_command(std::string_view line, size_t width, std::string* out) {
  out->append(kCommandIndent, ' ');
  Folder folder(out, width, kCommandIndent, kContinuedIndent);
  folder.add(words_in(line), kContinued);
  folder.end_line();
}

// "  NAME  text"; no name: it is none.
HelpEntry entry_of(std::string_view line) {
  const size_t name_end = line.find("  ", kCommandIndent);
  if (name_end == std::string_view::npos) return {};
  return {.name = std::string(line.substr(kCommandIndent, name_end - kCommandIndent)),
          .text = std::string(line.substr(name_end))};
}

void add_more(std::string_view text, size_t width, std::string* out) {
  std::string prose;
  const auto end_paragraph = [&] {
    if (!prose.empty()) add_paragraph(prose, width, 0, out);
    prose.clear();
  };
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.empty()) {
      end_paragraph();
      *out += '\n';
    } else if (line.starts_with("  ")) {
      end_paragraph();
      const HelpEntry entry = entry_of(line);
      entry.name.empty() ? add_command(line, width, out) : add_entry(entry, width, out);
    } else {
      prose.append(line).append("\n");
      if (line.ends_with(':')) end_paragraph();
    }
  }
  end_paragraph();
}

}  // namespace

std::string fold(const Help& help, size_t width) {
  std::string out;
  add_paragraph(help.about, width, 0, &out);
  add_paragraph(help.usage, width, kContinuedIndent, &out);
  for (const HelpSection& section : help.sections) {
    if (section.entries.empty()) continue;
    out += "\n" + section.title + ":\n";
    for (const HelpEntry& entry : section.entries) add_entry(entry, width, &out);
  }
  if (!help.more.empty()) {
    out += '\n';
    add_more(help.more, width, &out);
  }
  return out;
}

size_t help_width() {
  size_t width = 0;
  if (const char* const given = std::getenv("COLUMNS")) {
    const std::string_view text(given);
    const auto [end, error] = std::from_chars(text.begin(), text.end(), width);
    if (error != std::errc() || end != text.end()) width = 0;
  }
  if (width == 0) width = terminal_columns(STDOUT_FILENO);
  return width == 0 ? kWidthMax : std::clamp(width, kWidthMin, kWidthMax);
}

}  // namespace graphlane::cli
