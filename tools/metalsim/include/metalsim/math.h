// <metal_math>. Every function is computed in float by the C library, which is at least as exact as MSL asks of precise::,
// and rounded once for half. fast:: and precise:: are the same functions.
#pragma once
#include "relational.h"

namespace msl {

constexpr double pi = __builtin_bit_cast(double, 0x400921fb54442d18ul);  // by its bits: a literal here is a float

// sin(pi x). The argument is reduced before pi comes in: exact at multiples of 1/2, right for large x.
MSL_NOSAN inline float sin_of_pi_times(float x) {
  if (__builtin_fabsf(x) >= 8388608.0f) return x - x == 0.0f ? __builtin_copysignf(0.0f, x) : x - x;  // an integer; NaN
  double r = double(x) - 2.0 * __builtin_rint(double(x) * 0.5);                                         // in [-1, 1]
  if (r > 0.5) r = 1.0 - r;
  if (r < -0.5) r = -1.0 - r;
  const float s = float(__builtin_sin(pi * r));
  return s == 0.0f ? __builtin_copysignf(0.0f, x) : s;
}
MSL_NOSAN inline float cos_of_pi_times(float x) {
  const float magnitude = __builtin_fabsf(x);
  if (magnitude >= 16777216.0f) return x - x == 0.0f ? 1.0f : x - x;  // an even integer; NaN
  const double r = double(magnitude) - 2.0 * __builtin_rint(double(magnitude) * 0.5);
  return float(__builtin_sin(pi * (0.5 - __builtin_fabs(r))));
}
MSL_NOSAN inline float tan_of_pi_times(float x) {
  if (__builtin_fabsf(x) >= 8388608.0f) return x - x == 0.0f ? __builtin_copysignf(0.0f, x) : x - x;
  const double r = double(x) - __builtin_rint(double(x));  // in [-1/2, 1/2]
  if (r == 0.5 || r == -0.5) return __builtin_copysignf(__builtin_inff(), float(r));
  return float(__builtin_tan(pi * r));
}

// x - floor(x), kept below 1 where rounding would make it 1.
MSL_NOSAN inline float fraction(float x, float largest) {
  if (x - x != 0.0f) return x != x ? x : 0.0f;
  if (x == 0.0f) return x;
  const float f = x - __builtin_floorf(x);
  return f < largest ? f : largest;
}

// The larger of two, NaN only where both are.
MSL_NOSAN inline float larger(float x, float y) { return x < y || x != x ? y : x; }
MSL_NOSAN inline float smaller(float x, float y) { return y < x || x != x ? y : x; }
MSL_NOSAN inline float middle(float x, float y, float z) {
  if (x != x || y != y || z != z) return smaller(smaller(x, y), z);
  return larger(smaller(x, y), smaller(larger(x, y), z));
}

// x y + z of 16-bit numbers, rounded once: the product is exact in double, and the sum is rounded to odd, which a second
// rounding to fewer bits does not notice.
MSL_NOSAN inline double fused(double x, double y, double z) {
  const double product = x * y, sum = product + z;
  const double back = sum - product, error = (product - (sum - back)) + (z - back);
  if (error == 0.0 || error != error) return sum;
  const ulong bits = __builtin_bit_cast(ulong, sum);
  if (bits & 1) return sum;
  return __builtin_bit_cast(double, (error > 0.0) == (sum > 0.0) ? bits + 1 : bits - 1);
}

MSL_NOSAN inline half next_half(half from, half to) {
  const float x(from), y(to);
  if (x != x || y != y) return half(x + y);
  if (x == y) return to;
  const ushort bits = as_type<ushort>(from);
  if (x == 0.0f) return as_type<half>(ushort(y < 0.0f ? 0x8001 : 1));
  return as_type<half>(ushort((x < y) == (x > 0.0f) ? bits + 1 : bits - 1));
}

}  // namespace msl

namespace metal {

MSL_FLOAT_1(acos, __builtin_acosf(x))
MSL_FLOAT_1(acosh, __builtin_acoshf(x))
MSL_FLOAT_1(asin, __builtin_asinf(x))
MSL_FLOAT_1(asinh, __builtin_asinhf(x))
MSL_FLOAT_1(atan, __builtin_atanf(x))
MSL_FLOAT_1(atanh, __builtin_atanhf(x))
MSL_FLOAT_1(ceil, __builtin_ceilf(x))
MSL_FLOAT_1(cos, __builtin_cosf(x))
MSL_FLOAT_1(cosh, __builtin_coshf(x))
MSL_FLOAT_1(cospi, msl::cos_of_pi_times(x))
MSL_FLOAT_1(exp, __builtin_expf(x))
MSL_FLOAT_1(exp10, __builtin_powf(10.0f, x))
MSL_FLOAT_1(exp2, __builtin_exp2f(x))
MSL_FLOAT_1(fabs, __builtin_fabsf(x))
MSL_FLOAT_1(floor, __builtin_floorf(x))
MSL_FLOAT_1(log, __builtin_logf(x))
MSL_FLOAT_1(log10, __builtin_log10f(x))
MSL_FLOAT_1(log2, __builtin_log2f(x))
MSL_FLOAT_1(rint, __builtin_rintf(x))
MSL_FLOAT_1(round, __builtin_roundf(x))
MSL_FLOAT_1(rsqrt, float(1.0 / __builtin_sqrt(double(x))))
MSL_FLOAT_1(sin, __builtin_sinf(x))
MSL_FLOAT_1(sinh, __builtin_sinhf(x))
MSL_FLOAT_1(sinpi, msl::sin_of_pi_times(x))
MSL_FLOAT_1(sqrt, __builtin_sqrtf(x))
MSL_FLOAT_1(tan, __builtin_tanf(x))
MSL_FLOAT_1(tanh, __builtin_tanhf(x))
MSL_FLOAT_1(tanpi, msl::tan_of_pi_times(x))
MSL_FLOAT_1(trunc, __builtin_truncf(x))

MSL_FLOAT_2(atan2, __builtin_atan2f(x, y))
MSL_FLOAT_2(copysign, __builtin_copysignf(x, y))
MSL_FLOAT_2(divide, x / y)
MSL_FLOAT_2(fdim, __builtin_fdimf(x, y))
MSL_FLOAT_2(fmax, msl::larger(x, y))
MSL_FLOAT_2(fmin, msl::smaller(x, y))
MSL_FLOAT_2(fmod, __builtin_fmodf(x, y))
MSL_FLOAT_2(pow, __builtin_powf(x, y))
MSL_FLOAT_2(powr, x < 0.0f ? __builtin_nanf("") : __builtin_powf(x, y))

MSL_FLOAT_3(fmax3, msl::larger(msl::larger(x, y), z))
MSL_FLOAT_3(fmin3, msl::smaller(msl::smaller(x, y), z))
MSL_FLOAT_3(fmedian3, msl::middle(x, y, z))

MSL_NOSAN inline float fract(float x) { return msl::fraction(x, 0x1.fffffep-1f); }
MSL_NOSAN inline half fract(half x) { return half(msl::fraction(float(x), 0x1.ffcp-1f)); }
MSL_VECTOR_1(fract)

MSL_NOSAN inline float nextafter(float x, float y) { return __builtin_nextafterf(x, y); }
MSL_NOSAN inline half nextafter(half x, half y) { return msl::next_half(x, y); }
MSL_VECTOR_2(nextafter)

MSL_NOSAN inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
MSL_NOSAN inline half fma(half x, half y, half z) {
  const double exact = msl::fused(double(float(x)), double(float(y)), double(float(z)));
  // From double to float to half would round twice: what the float loses decides a tie between halves.
  float once = float(exact);
  if (double(once) != exact && !(as_type<uint>(once) & 1)) {
    once = as_type<float>(as_type<uint>(once) + ((__builtin_fabs(exact) > __builtin_fabs(double(once))) ? 1u : ~0u));
  }
  return half(once);
}
MSL_VECTOR_3(fma)

// Functions with an integer, or a second result through a reference.
MSL_NOSAN inline float ldexp(float x, int k) { return __builtin_ldexpf(x, k); }
MSL_NOSAN inline half ldexp(half x, int k) { return half(__builtin_ldexpf(float(x), k)); }
template <class A, class K, class V = msl::vector_like<A>>
MSL_INLINE V ldexp(const A& a, const K& k) {
  const V x(a);
  const vec<int, msl::size_of<V>> power(k);
  V r;
  MSL_EACH(msl::size_of<V>, r.e[i] = ldexp(x.e[i], power.e[i]))
  return r;
}

MSL_NOSAN inline int ilogb(float x) { return __builtin_ilogbf(x); }
MSL_NOSAN inline int ilogb(half x) { return __builtin_ilogbf(float(x)); }
template <class A, class V = msl::vector_like<A>>
MSL_INLINE vec<int, msl::size_of<V>> ilogb(const A& a) {
  const V x(a);
  vec<int, msl::size_of<V>> r;
  MSL_EACH(msl::size_of<V>, r.e[i] = ilogb(x.e[i]))
  return r;
}

MSL_INLINE float frexp(float x, int& exponent) {
  int e;
  const float fraction = __builtin_frexpf(x, &e);
  exponent = e;
  return fraction;
}
MSL_INLINE half frexp(half x, int& exponent) { return half(frexp(float(x), exponent)); }
template <class A, class V = msl::vector_like<A>>
MSL_INLINE V frexp(const A& a, vec<int, msl::size_of<A>>& exponent) {
  const V x(a);
  V r;
  MSL_EACH(msl::size_of<V>, r.e[i] = frexp(x.e[i], exponent.e[i]))
  return r;
}

// Second results of the argument's own type. C's modf and sincos, whose pointers stay inside.
#define MSL_TWO_RESULTS(name, first, second)                                                  \
  MSL_INLINE float name(float x, float& other) { const float r = first; other = second; return r; } \
  MSL_INLINE half name(half x_, half& other) {                                                \
    const float x(x_), r = first;                                                             \
    other = half(float(second));                                                              \
    return half(r);                                                                           \
  }                                                                                           \
  template <class A, class V = msl::vector_like<A>>                                           \
  MSL_INLINE V name(const A& a, V& other) {                                                   \
    const V x(a);                                                                             \
    V r;                                                                                      \
    MSL_EACH(msl::size_of<V>, r.e[i] = name(x.e[i], other.e[i]))                              \
    return r;                                                                                 \
  }
MSL_TWO_RESULTS(modf, (x - x == 0.0f ? __builtin_copysignf(x - __builtin_truncf(x), x) : x != x ? x : __builtin_copysignf(0.0f, x)), __builtin_truncf(x))
MSL_TWO_RESULTS(sincos, __builtin_sinf(x), __builtin_cosf(x))
#undef MSL_TWO_RESULTS

}  // namespace metal
