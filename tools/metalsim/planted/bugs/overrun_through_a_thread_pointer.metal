// A helper that takes five for four.
// launch: x=float32[64] out=float32[16] count=5 threads=16 threadgroup=16

#include <metal_stdlib>
using namespace metal;

inline void load(device const float* x, thread float* part, int count) {
  for (int n = 0; n < count; n++) {
    part[n] = x[n]; // finds: private array overrun
  }
}

kernel void sums(device const float* x, device float* out, constant int& count, uint i [[thread_position_in_grid]]) {
  float part[4];
  load(x, part, count);
  out[i] = part[0] + part[1] + part[2] + part[3];
}
