// GraphChi's own, with our names of files: its includes would find those beside it first.
#ifndef GRAPHLANE_GRAPHCHI_BASIC_INCLUDES_HPP
#define GRAPHLANE_GRAPHCHI_BASIC_INCLUDES_HPP

// By the search path: found as a neighbour, its #include_next would find itself.
#include <api/chifilenames.hpp>

#include_next "graphchi_basic_includes.hpp"

#endif
