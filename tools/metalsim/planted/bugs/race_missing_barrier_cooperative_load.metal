// A tile is loaded by all threads and read at once.
// launch: x=float32[8,32] weight=float32[32,32] out=float32[8,32] threadgroups=8 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void project(device const float* x, device const float* weight, device float* out,
                    uint row [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[32];
  if (t < 32) {
    tile[t] = x[row * 32 + t]; // finds: data race A
  }
  if (t >= 32) {
    float sum = 0;
    for (int c = 0; c < 32; c++) {
      sum += weight[(t - 32) * 32 + c] * tile[c]; // finds: data race A; may find: uninitialised read
    }
    out[row * 32 + t - 32] = sum;
  }
}
