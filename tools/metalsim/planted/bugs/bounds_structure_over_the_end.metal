// Seven structures of 20 bytes, and eight threads.
// launch: x=float32[35] out=float32[40] threads=8 threadgroup=8

#include <metal_stdlib>
using namespace metal;

struct Five {
  float a[5];
};
kernel void copy(device const Five* x, device Five* out, uint i [[thread_position_in_grid]]) {
  out[i] = x[i]; // finds: out of bounds
}
