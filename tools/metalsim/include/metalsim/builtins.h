// Names with which MLX's headers (bf16_math.h) reach into Apple's metal_stdlib to give bfloat its math.
#pragma once
#include "pack.h"
#include "simdgroup.h"

#define MSL_BUILTIN_1(name) inline float __metal_##name(float x, int /*fast*/) { return metal::name(x); }
#define MSL_BUILTIN_2(name) inline float __metal_##name(float x, float y, int /*fast*/) { return metal::name(x, y); }
#define MSL_BUILTIN_3(name) inline float __metal_##name(float x, float y, float z, int /*fast*/) { return metal::name(x, y, z); }
MSL_BUILTIN_1(acos)
MSL_BUILTIN_1(acosh)
MSL_BUILTIN_1(asin)
MSL_BUILTIN_1(asinh)
MSL_BUILTIN_1(atan)
MSL_BUILTIN_1(atanh)
MSL_BUILTIN_1(ceil)
MSL_BUILTIN_1(cos)
MSL_BUILTIN_1(cosh)
MSL_BUILTIN_1(cospi)
MSL_BUILTIN_1(exp)
MSL_BUILTIN_1(exp10)
MSL_BUILTIN_1(exp2)
MSL_BUILTIN_1(fabs)
MSL_BUILTIN_1(floor)
MSL_BUILTIN_1(fract)
MSL_BUILTIN_1(log)
MSL_BUILTIN_1(log10)
MSL_BUILTIN_1(log2)
MSL_BUILTIN_1(rint)
MSL_BUILTIN_1(round)
MSL_BUILTIN_1(rsqrt)
MSL_BUILTIN_1(sin)
MSL_BUILTIN_1(sinh)
MSL_BUILTIN_1(sinpi)
MSL_BUILTIN_1(sqrt)
MSL_BUILTIN_1(tan)
MSL_BUILTIN_1(tanh)
MSL_BUILTIN_1(tanpi)
MSL_BUILTIN_1(trunc)
MSL_BUILTIN_2(atan2)
MSL_BUILTIN_2(divide)
MSL_BUILTIN_2(fmax)
MSL_BUILTIN_2(fmin)
MSL_BUILTIN_2(fmod)
MSL_BUILTIN_2(pow)
MSL_BUILTIN_2(powr)
MSL_BUILTIN_3(fmax3)
MSL_BUILTIN_3(fmedian3)
MSL_BUILTIN_3(fmin3)
#undef MSL_BUILTIN_1
#undef MSL_BUILTIN_2
#undef MSL_BUILTIN_3
inline float __metal_fma(float x, float y, float z) { return metal::fma(x, y, z); }
inline float __metal_nextafter(float x, float y) { return metal::nextafter(x, y); }
inline float __metal_ldexp(float x, int k, int /*fast*/) { return metal::ldexp(x, k); }
inline float __metal_frexp(float x, int* exponent) { return metal::frexp(x, *exponent); }

inline ushort __metal_get_simdgroup_size(ushort) { return 32; }
inline ushort __metal_get_thread_index_in_simdgroup(ushort) { return ushort(msl::own_lane()); }

#define MSL_BUILTIN_SIMD(name) \
  template <class T> inline T __metal_##name(T x, MSL_SITE) { return metal::name(x, file, line); }
MSL_BUILTIN_SIMD(simd_sum)
MSL_BUILTIN_SIMD(simd_product)
MSL_BUILTIN_SIMD(simd_max)
MSL_BUILTIN_SIMD(simd_min)
MSL_BUILTIN_SIMD(simd_prefix_inclusive_sum)
MSL_BUILTIN_SIMD(simd_prefix_exclusive_sum)
MSL_BUILTIN_SIMD(simd_prefix_inclusive_product)
MSL_BUILTIN_SIMD(simd_prefix_exclusive_product)
#undef MSL_BUILTIN_SIMD
#define MSL_BUILTIN_SHUFFLE(name) \
  template <class T> inline T __metal_##name(T x, ushort lane, MSL_SITE) { return metal::name(x, lane, file, line); }
MSL_BUILTIN_SHUFFLE(simd_broadcast)
MSL_BUILTIN_SHUFFLE(simd_shuffle)
MSL_BUILTIN_SHUFFLE(simd_shuffle_down)
MSL_BUILTIN_SHUFFLE(simd_shuffle_up)
MSL_BUILTIN_SHUFFLE(simd_shuffle_xor)
MSL_BUILTIN_SHUFFLE(simd_shuffle_rotate_down)
MSL_BUILTIN_SHUFFLE(simd_shuffle_rotate_up)
#undef MSL_BUILTIN_SHUFFLE
template <class T>
inline T __metal_simd_shuffle_and_fill_down(T x, T filling, ushort delta, ushort modulo, MSL_SITE) {
  return metal::simd_shuffle_and_fill_down(x, filling, delta, modulo, file, line);
}
template <class T>
inline T __metal_simd_shuffle_and_fill_up(T x, T filling, ushort delta, ushort modulo, MSL_SITE) {
  return metal::simd_shuffle_and_fill_up(x, filling, delta, modulo, file, line);
}
// MLX's simd_xor of a bfloat asks for that of a float: of its bits.
template <class T>
inline T __metal_simd_xor(T x, MSL_SITE) {
  return as_type<T>(metal::simd_xor(as_type<msl::unsigned_t<T>>(x), file, line));
}
