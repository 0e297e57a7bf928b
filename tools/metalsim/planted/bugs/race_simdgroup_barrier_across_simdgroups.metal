// A SIMD-group's barrier holds back no other SIMD-group.
// launch: x=float32[64] out=float32[64] threads=64 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void reverse_row(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = x[t]; // finds: data race A
  simdgroup_barrier(mem_flags::mem_threadgroup);
  out[t] = tile[63 - t]; // finds: data race A; may find: uninitialised read
}
