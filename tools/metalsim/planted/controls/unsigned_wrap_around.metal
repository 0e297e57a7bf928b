// launch: x=uint32[32] out=uint32[32] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void hash(device const uint* x, device uint* out, uint i [[thread_position_in_grid]]) {
  out[i] = (x[i] ^ 61u) * 2654435761u - i * 0x9E3779B9u;
}
