// How wide a terminal and a text are, in columns.
#pragma once

#include <cstddef>
#include <string_view>

namespace graphlane {

// 0: the descriptor is no terminal, or the terminal does not say.
size_t terminal_columns(int fd);

// The text is UTF-8. Each character counts as one column.
size_t columns_in(std::string_view text);
// The longest beginning of at most `columns` columns.
std::string_view first_columns(std::string_view text, size_t columns);

}  // namespace graphlane
