// <metal_geometric>. Operations are rounded one by one in the vector's element type; the root is taken in float.
#pragma once
#include "common.h"

namespace metal {

template <class A, class B, class V = msl::joined<A, B>, enable_if_t<is_floating_point_v<msl::element_of<V>>, int> = 0>
MSL_INLINE msl::element_of<V> dot(const A& a, const B& b) {
  typedef msl::element_of<V> T;
  const V x(a), y(b);
  T sum = T(x.e[0] * y.e[0]);
  for (int k = 1; k < msl::size_of<V>; k++) sum = T(sum + T(x.e[k] * y.e[k]));
  return sum;
}

template <class A, class B, class V = msl::joined<A, B>>
MSL_INLINE V cross(const A& a, const B& b) {
  static_assert(msl::size_of<V> == 3, "cross takes vectors of 3 components");
  const V x(a), y(b);
  return V(x.y * y.z - x.z * y.y, x.z * y.x - x.x * y.z, x.x * y.y - x.y * y.x);
}

template <class A, class V = msl::vector_like<A>>
MSL_INLINE msl::element_of<V> length_squared(const A& a) { return dot(a, a); }
template <class A, class V = msl::vector_like<A>>
MSL_INLINE msl::element_of<V> length(const A& a) { return sqrt(dot(a, a)); }
template <class A, class B, class V = msl::joined<A, B>>
MSL_INLINE msl::element_of<V> distance_squared(const A& a, const B& b) { return length_squared(a - b); }
template <class A, class B, class V = msl::joined<A, B>>
MSL_INLINE msl::element_of<V> distance(const A& a, const B& b) { return length(a - b); }
template <class A, class V = msl::vector_like<A>>
MSL_INLINE V normalize(const A& a) { return V(a) * msl::element_of<V>(rsqrt(dot(a, a))); }

// n, pointing against the incident i as reference says.
template <class A, class B, class C, class V = msl::joined<A, B, C>>
MSL_INLINE V faceforward(const A& n, const B& i, const C& reference) { return dot(reference, i) < 0 ? V(n) : -V(n); }
template <class A, class B, class V = msl::joined<A, B>>
MSL_INLINE V reflect(const A& i, const B& n) { return V(i) - V(n) * msl::element_of<V>(2 * dot(n, i)); }
// eta: the ratio of refraction indices. Total reflection gives zeros.
template <class A, class B, class S, class V = msl::joined<A, B>>
MSL_INLINE V refract(const A& i, const B& n, S eta_) {
  typedef msl::element_of<V> T;
  const T eta = T(eta_), cosine = dot(n, i), k = T(T(1) - eta * eta * (T(1) - cosine * cosine));
  if (k < T(0)) return V(T(0));
  return V(i) * eta - V(n) * T(eta * cosine + sqrt(k));
}

// fast:: and precise:: name the functions above.
#define MSL_SAME(name) using metal::name;
#define MSL_BOTH_PRECISIONS                                                                                              \
  MSL_SAME(abs) MSL_SAME(acos) MSL_SAME(acosh) MSL_SAME(asin) MSL_SAME(asinh) MSL_SAME(atan) MSL_SAME(atan2)             \
  MSL_SAME(atanh) MSL_SAME(ceil) MSL_SAME(clamp) MSL_SAME(copysign) MSL_SAME(cos) MSL_SAME(cosh) MSL_SAME(cospi)         \
  MSL_SAME(distance) MSL_SAME(distance_squared) MSL_SAME(divide) MSL_SAME(exp) MSL_SAME(exp10) MSL_SAME(exp2)            \
  MSL_SAME(fabs) MSL_SAME(fdim) MSL_SAME(floor) MSL_SAME(fma) MSL_SAME(fmax) MSL_SAME(fmax3) MSL_SAME(fmedian3)          \
  MSL_SAME(fmin) MSL_SAME(fmin3) MSL_SAME(fmod) MSL_SAME(fract) MSL_SAME(frexp) MSL_SAME(ilogb) MSL_SAME(isfinite)       \
  MSL_SAME(isinf) MSL_SAME(isnan) MSL_SAME(isnormal) MSL_SAME(ldexp) MSL_SAME(length) MSL_SAME(length_squared)           \
  MSL_SAME(log) MSL_SAME(log10) MSL_SAME(log2) MSL_SAME(max) MSL_SAME(max3) MSL_SAME(median3) MSL_SAME(min)              \
  MSL_SAME(min3) MSL_SAME(mix) MSL_SAME(modf) MSL_SAME(nextafter) MSL_SAME(normalize) MSL_SAME(pow) MSL_SAME(powr)       \
  MSL_SAME(refract) MSL_SAME(rint) MSL_SAME(round) MSL_SAME(rsqrt) MSL_SAME(saturate) MSL_SAME(sign) MSL_SAME(sin)       \
  MSL_SAME(sincos) MSL_SAME(sinh) MSL_SAME(sinpi) MSL_SAME(smoothstep) MSL_SAME(sqrt) MSL_SAME(step) MSL_SAME(tan)       \
  MSL_SAME(tanh) MSL_SAME(tanpi) MSL_SAME(trunc)
namespace fast {
MSL_BOTH_PRECISIONS
}
namespace precise {
MSL_BOTH_PRECISIONS
}
#undef MSL_SAME
#undef MSL_BOTH_PRECISIONS

}  // namespace metal
