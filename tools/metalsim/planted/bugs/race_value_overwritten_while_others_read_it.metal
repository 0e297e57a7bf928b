// One of many readers writes, in another SIMD-group than the first.
// launch: x=float32[96] out=float32[96] threads=96 threadgroup=96

#include <metal_stdlib>
using namespace metal;

kernel void readers(device const float* x, device float* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float shared;
  if (t == 0) {
    shared = x[0];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  out[t] = shared; // finds: data race A
  if (t == 40) {
    shared = 1.0f; // finds: data race A
  }
}
