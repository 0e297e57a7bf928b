// Three of four are set; a helper reads them all.
// launch: x=float32[64] out=float32[16] threads=16 threadgroup=16

#include <metal_stdlib>
using namespace metal;

template <typename T, int N>
inline T total(thread const T* part) {
  T all = 0;
  for (int n = 0; n < N; n++) {
    all += part[n]; // finds: uninitialised read
  }
  return all;
}

kernel void sums(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
  thread float part[4];
  for (int n = 0; n < 3; n++) {
    part[n] = x[4 * i + n];
  }
  out[i] = total<float, 4>(part);
}
