// The codec `varint`: differences from the previous neighbour (the first from 0) in big-endian
// groups of 7 bits. The top bit of a number's bytes is 0 for the first, 1 for the second, 0 for the
// third … number.
//
//   {2, 5, 300}    0·0000010  1·0000011  0·0000010 0·0100111
//
// A number ends where the top bit changes, the last one where the list ends.
#pragma once

#include "graphfmt/codec/codec.h"

namespace graphlane::graphfmt {

const ListCodec& varint_codec();

}  // namespace graphlane::graphfmt
