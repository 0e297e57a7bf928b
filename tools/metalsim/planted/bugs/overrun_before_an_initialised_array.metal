// One before the first.
// launch: out=int32[16] threads=16 threadgroup=16

#include <metal_stdlib>
using namespace metal;

inline int left_of(thread const int* place) {
  return place[-1]; // finds: private array overrun
}

kernel void neighbours(device int* out, uint i [[thread_position_in_grid]]) {
  int places[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
  out[i] = left_of(&places[0][i % 4]) + left_of(&places[1][i % 4]);
}
