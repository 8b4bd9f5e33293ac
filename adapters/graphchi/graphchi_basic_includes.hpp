// GraphChi's own header, with this folder's file names: its includes would find its neighbours first.
#ifndef GRAPHLANE_GRAPHCHI_BASIC_INCLUDES_HPP
#define GRAPHLANE_GRAPHCHI_BASIC_INCLUDES_HPP

// Through the search path: included as a neighbour, its #include_next would find itself.
#include <api/chifilenames.hpp>

#include_next "graphchi_basic_includes.hpp"

#endif
