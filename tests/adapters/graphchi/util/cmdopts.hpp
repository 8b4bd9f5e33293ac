#pragma once

namespace graphchi {
inline int get_option_int(const char*, int otherwise) { return otherwise; }
}  // namespace graphchi
