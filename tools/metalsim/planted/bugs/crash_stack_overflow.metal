// Metal has no stack to speak of, and this recursion has no end.
// launch: x=int32[1](1) out=int32[1] threads=1 threadgroup=1
// clang-format off

#include <metal_stdlib>
using namespace metal;

int depth(int n, thread int* trace) { int here[64]; here[n & 63] = n; return depth(n + 1, here) + here[trace[0] & 63]; } // finds: crash
// clang-format on
kernel void deep(device const int* x, device int* out) {
  int trace[1] = {x[0]};
  out[0] = depth(x[0], trace);
}
