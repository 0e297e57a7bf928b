// As often as the data says, but for all threads of a threadgroup alike.
// launch: x=float32[2,64] steps=int32[2](1,3) out=float32[2,64] threadgroups=2 threadgroup=64

#include <metal_stdlib>
using namespace metal;

kernel void rotate_rows(device const float* x, device const int* steps, device float* out,
                        uint row [[threadgroup_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
  threadgroup float tile[64];
  float value = x[row * 64 + t];
  for (int step = 0; step < steps[row]; step++) {
    tile[t] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    value = tile[(t + 1) % 64];
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  out[row * 64 + t] = value;
}
