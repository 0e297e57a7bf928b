// A row is turned round through threadgroup memory, and nothing keeps a thread from reading what is not written yet.
// launch: x=float32[128] out=float32[128] threads=128 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void reverse_rows(device const float* x, device float* out, uint i [[thread_position_in_grid]],
                         uint t [[thread_index_in_threadgroup]], uint n [[threads_per_threadgroup]]) {
  threadgroup float tile[64];
  tile[t] = x[i];           // finds: data race A
  out[i] = tile[n - 1 - t]; // finds: data race A; may find: uninitialised read
}
