// What the kernels share. Arrays of fewer than 8 elements come in the constant address space and larger ones in the
// device's, so that pointers to them are `auto` in the kernels and template arguments here.

using namespace metal;

template <typename T>
inline float wide(T x) {
  return static_cast<float>(x);
}

// The sum of `value` over a threadgroup of whole SIMD-groups, the same in every thread. `partial` holds a number for
// each SIMD-group, 32 at most. One barrier, between writing and reading it; none before, so each call of a kernel needs
// memory of its own.
inline float threadgroup_sum(float value, threadgroup float* partial, uint lane, uint simdgroup, uint simdgroups) {
  value = simd_sum(value);
  if (simdgroups == 1) {
    return value;
  }
  if (lane == 0) {
    partial[simdgroup] = value;
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
  return simd_sum(lane < simdgroups ? partial[lane] : 0.0f);
}

// Which two elements of an 8x8 SIMD-group matrix a lane holds: those in row `y`, columns `x` and `x + 1`. Apple does not
// document it; MLX's matrix kernels rest on it too (steel/gemm/mma.h, get_coord). The lanes of a row differ in bits 0 and
// 3 of their index.
inline uint2 fragment_place(uint lane) {
  return uint2((lane & 1) * 2 + (lane & 8) / 2, ((lane & 6) + (lane & 16) / 2) / 2);
}
