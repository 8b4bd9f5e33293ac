// The codec `reference`: lists that refer to earlier lists, intervals, and gaps in instantaneous
// codes, as WebGraph's BVGraph has them (Boldi and Vigna, WWW 2004). Lists of 32 vertices are a
// group: a list refers only within its group, so that a group is decoded by itself.
//
//   header     base (1 bit), repeats (1), k of first numbers less one (3), k of gaps less one (3)
//   a list     degree - 1; reference, and which runs of that list are copied; intervals; gaps
//
// FORMAT.md has the codes and an example. It is for `dual`: a list alone, which is a group of one,
// has nothing to refer to.
#pragma once

#include "graphfmt/codec/codec.h"

namespace graphlane::graphfmt {

inline constexpr uint32_t kReferenceGroupVertices = 32;

const ListCodec& reference_codec();

}  // namespace graphlane::graphfmt
