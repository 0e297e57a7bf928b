// launch: rows<half,4> x=float16[32,4] out=float16[32,4] threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

template <typename T, int N>
kernel void rows(device const T* x, device T* out, uint row [[thread_position_in_grid]]) {
  float values[N];
  for (int n = 0; n < N; n++) {
    values[n] = float(x[row * N + n]);
  }
  for (int n = 0; n < N; n++) {
    out[row * N + n] = T(values[N - 1 - n]);
  }
}
