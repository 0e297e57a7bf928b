// A row of 6 bytes is read by words.
// launch: x=uint8[4,8] out=uint32[4] threads=4 threadgroup=4

#include <metal_stdlib>
using namespace metal;

kernel void first_words(device const uchar* x, device uint* out, uint row [[thread_position_in_grid]]) {
  out[row] = *(device const uint*)(x + 6 * row); // finds: misaligned access
}
