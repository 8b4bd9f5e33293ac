// The codec `simd`: differences from the previous neighbour (the first from 0), little endian in 1
// to 4 bytes. Two bits for each, four to a byte, the lowest first, say how many bytes less one;
// these come first. It is the layout of streamvbyte ("1234"). Its own decoders read past their
// input and check nothing.
//
//   {2, 5, 300}    00·01·00·00   02   03   27 01
//                     300  5  2
//
// Unused bits of the last control byte are 0.
#pragma once

#include "graphfmt/codec/codec.h"

namespace graphlane::graphfmt {

const ListCodec& simd_codec();

}  // namespace graphlane::graphfmt
