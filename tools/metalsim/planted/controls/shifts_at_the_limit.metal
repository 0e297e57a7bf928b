// launch: x=uint32[32] out=uint32[32] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void low_bits(device const uint* x, device uint* out, uint i [[thread_position_in_grid]]) {
  uint mask = 0xffffffffu >> (31 - i);
  out[i] = (x[i] & mask) + uint((ulong(1) << 32) - 1ul) + (int(i) - 40 >> 31) + (x[i] << 31);
}
