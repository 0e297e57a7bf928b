// Blocks of 32 with a stride of 24: the last eight columns of each are also the first of the next.
// launch: x=float32[80] out=float32[80] threadgroups=3 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void copy_blocks(device const float* x, device float* out, uint block [[threadgroup_position_in_grid]],
                        uint t [[thread_index_in_threadgroup]]) {
  out[block * 24 + t] = x[block * 24 + t] + block; // finds: data race A
}
