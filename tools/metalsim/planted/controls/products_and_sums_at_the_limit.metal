// The largest product, products in 64 bits and of unsigned numbers; sums that wrap around, as hashes and counters do.
// launch: out=int32[64] near=46340 far=70000 most=2147483647 threads=32 threadgroup=32

#include <metal_stdlib>
using namespace metal;

kernel void limits(device int* out, constant int& near, constant int& far, constant int& most, uint i [[thread_position_in_grid]]) {
  int largest = near * near;
  long wide = long(far) * far;
  uint wrapped = uint(far) * uint(far);
  int sum = most + int(i);
  out[2 * i] = largest + int(wide >> 32) + int(wrapped & 1u);
  out[2 * i + 1] = mad24(int(i), 3, sum) - mul24(int(i), 3) + as_type<int>(uint(sum) * 31u);
}
