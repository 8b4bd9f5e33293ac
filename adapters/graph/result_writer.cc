#include "adapters/graph/result_writer.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>

#include "graphfmt/staging.h"
#include "iomgr/base/files/file_io.h"
#include "iomgr/base/process/interrupt.h"

namespace graphlane {
namespace {

constexpr size_t kWriteBytes = 1 << 20;

template <class T>
constexpr const char* numpy_type() {
  if constexpr (std::is_same_v<T, int32_t>) return "<i4";
  if constexpr (std::is_same_v<T, int64_t>) return "<i8";
  if constexpr (std::is_same_v<T, uint32_t>) return "<u4";
  if constexpr (std::is_same_v<T, uint64_t>) return "<u8";
  if constexpr (std::is_same_v<T, double>) return "<f8";
}

// Gathers bytes and writes them to the file that is being built.
class ResultFile {
 public:
  explicit ResultFile(const graphfmt::Staging& staging) : staging_(staging) {}

  std::string& text() { return text_; }
  Outcome<void> flush(bool last) {
    if (text_.size() < kWriteBytes && !last) return {};
    if (Outcome<void> go_on = check_interrupt(); !go_on) return go_on.error();
    const Result<void> written = write_full(staging_.fd(), text_.data(), text_.size());
    if (!written) return os_error(written.error().code, staging_.final_path(), "cannot write");
    text_.clear();
    return {};
  }

 private:
  const graphfmt::Staging& staging_;
  std::string text_;
};

size_t result_rows(const AlgorithmResult& result) {
  if (result.columns.empty()) return 0;
  return std::visit([](const auto& values) { return values.size(); }, result.columns[0].values);
}

// The shortest text that reads back as the same number.
template <class T>
void append_number(std::string& text, T value, const std::string& unreached) {
  if constexpr (std::is_same_v<T, double>) {
    if (!unreached.empty() && std::isinf(value)) {
      text += unreached;
      return;
    }
  } else if constexpr (std::is_signed_v<T>) {
    if (!unreached.empty() && value < 0) {
      text += unreached;
      return;
    }
  }
  fmt::format_to(std::back_inserter(text), "{}", value);
}

Outcome<void> write_text_rows(const AlgorithmResult& result, ResultFile& file, bool csv) {
  const size_t columns = csv ? result.columns.size() : std::min<size_t>(1, result.columns.size());
  const std::string none;
  if (csv) {
    file.text() += "vertex";
    for (const ResultColumn& column : result.columns) file.text() += "," + column.name;
    file.text() += '\n';
  }
  for (size_t row = 0; row < result_rows(result); ++row) {
    fmt::format_to(std::back_inserter(file.text()), "{}", row);
    for (size_t c = 0; c < columns; ++c) {
      file.text() += csv ? ',' : ' ';
      std::visit(
          [&](const auto& values) {
            append_number(file.text(), values[row], csv ? none : result.unreached);
          },
          result.columns[c].values);
    }
    file.text() += '\n';
    if (Outcome<void> written = file.flush(false); !written) return written;
  }
  return file.flush(true);
}

// Numpy's format 1.0: magic, length of the header, a Python literal, padded to 64 bytes.
std::string numpy_header(const AlgorithmResult& result) {
  std::string type;
  for (const ResultColumn& column : result.columns) {
    const char* const name = std::visit(
        [](const auto& values) {
          return numpy_type<typename std::decay_t<decltype(values)>::value_type>();
        },
        column.values);
    type += result.columns.size() == 1 ? fmt::format("'{}'", name)
                                       : fmt::format("('{}', '{}'), ", column.name, name);
  }
  if (result.columns.size() != 1) type = "[" + type + "]";
  std::string text = fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': ({},), }}", type,
                                 result_rows(result));
  constexpr size_t kBefore = 10;
  while ((kBefore + text.size() + 1) % 64 != 0) text += ' ';
  text += '\n';
  std::string header("\x93NUMPY\x01\x00", 8);
  header += static_cast<char>(text.size() & 0xff);
  header += static_cast<char>(text.size() >> 8);
  return header + text;
}

Outcome<void> write_numpy(const AlgorithmResult& result, ResultFile& file) {
  file.text() += numpy_header(result);
  for (size_t row = 0; row < result_rows(result); ++row) {
    for (const ResultColumn& column : result.columns) {
      std::visit(
          [&](const auto& values) {
            file.text().append(reinterpret_cast<const char*>(&values[row]), sizeof values[row]);
          },
          column.values);
    }
    if (Outcome<void> written = file.flush(false); !written) return written;
  }
  return file.flush(true);
}

}  // namespace

Outcome<void> check_result_name(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (extension == ".npy" || extension == ".csv" || extension == ".txt") return {};
  return make_error(EINVAL, "{}: ends neither in .npy nor in .csv nor in .txt", path);
}

Outcome<void> write_result(const AlgorithmResult& result, const std::string& path) {
  if (Outcome<void> named = check_result_name(path); !named) return named;
  auto staging =
      graphfmt::Staging::create(path, graphfmt::Staging::Kind::kFile, /*overwrite=*/true);
  if (!staging) return staging.error();
  const std::string extension = std::filesystem::path(path).extension().string();
  ResultFile file(*staging);
  const Outcome<void> written = extension == ".npy"
                                    ? write_numpy(result, file)
                                    : write_text_rows(result, file, extension == ".csv");
  if (!written) return written;
  return staging->commit();
}

}  // namespace graphlane
