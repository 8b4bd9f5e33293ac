#pragma once

#include <cstdint>

namespace graphchi {
using vid_t = uint32_t;
}
