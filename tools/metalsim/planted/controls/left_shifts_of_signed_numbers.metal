// Left shifts of negative numbers and into the sign: every GPU does them, and C++20 defines them.
// launch: x=int32[32](-5..6) out=int32[32] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void pack(device const int* x, device int* out, uint i [[thread_position_in_grid]]) {
  out[i] = (x[i] << 3) + (15 << 28) + (int(i) << 27);
}
