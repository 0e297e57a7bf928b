// A mask of 32 bits, made as for fewer.
// launch: x=uint32[32] bits=32 out=uint32[32] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void low_bits(device const uint* x, constant uint& bits, device uint* out, uint i [[thread_position_in_grid]]) {
  uint mask = (1u << bits) - 1; // finds: undefined shift
  out[i] = x[i] & mask;
}
