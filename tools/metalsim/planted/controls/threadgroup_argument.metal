// launch: x=float32[64] tile=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void reverse_row(device const float* x, threadgroup float* tile [[threadgroup(0)]], device float* out,
                        uint t [[thread_index_in_threadgroup]]) {
  tile[t] = x[t];
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[t] = tile[63 - t];
}
