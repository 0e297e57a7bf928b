// The shift of the last code of a word is counted one too far.
// launch: x=uint32[8] out=uint32[72] threads=72 threadgroup=72

#include <metal_stdlib>
using namespace metal;

kernel void unpack(device const uint* x, device uint* out, uint i [[thread_position_in_grid]]) {
  int shift = 28 - 4 * int(i % 9);
  out[i] = (x[i / 9] >> shift) & 15u; // finds: undefined shift
}
