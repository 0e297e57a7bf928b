// Two of four elements are written.
// launch: x=float32[64] out=float32[64] threads=16 threadgroup=16

#include <metal_stdlib>
using namespace metal;

kernel void spread(device const float* x, device float4* out, uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  tile[4 * t] = x[t];
  tile[4 * t + 1] = x[t];
  out[t] = *(threadgroup float4*)(tile + 4 * t); // finds: uninitialised read
}
