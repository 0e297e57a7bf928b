// <metal_relational>: all, any, select, and what kind of number a float is.
#pragma once
#include "overloads.h"

namespace metal {

constexpr bool all(bool x) { return x; }
constexpr bool any(bool x) { return x; }
template <class A, enable_if_t<is_same_v<msl::element_of<A>, bool>, int> = 0>
MSL_INLINE bool all(const A& a) {
  const msl::vector_like<A> x(a);
  bool r = true;
  MSL_EACH(msl::size_of<A>, r = r && x.e[i])
  return r;
}
template <class A, enable_if_t<is_same_v<msl::element_of<A>, bool>, int> = 0>
MSL_INLINE bool any(const A& a) {
  const msl::vector_like<A> x(a);
  bool r = false;
  MSL_EACH(msl::size_of<A>, r = r || x.e[i])
  return r;
}

// select(a, b, c): b where c, else a.
template <class T, enable_if_t<msl::size_of<T> == 0, int> = 0>
MSL_INLINE constexpr T select(T a, T b, bool c) { return c ? b : a; }
template <class A, class B, class C, class V = msl::joined<A, B>, enable_if_t<msl::size_of<C> == msl::size_of<V>, int> = 0>
MSL_INLINE V select(const A& a, const B& b, const C& c) {
  static_assert(is_same_v<msl::element_of<C>, bool>, "select: the third argument is a vector of bool");
  const V x(a), y(b);
  const msl::vector_like<C> choice(c);
  V r;
  MSL_EACH(msl::size_of<V>, r.e[i] = choice.e[i] ? y.e[i] : x.e[i])
  return r;
}
template <class A, class B, class V = msl::joined<A, B>>
MSL_INLINE V select(const A& a, const B& b, bool c) { return c ? V(b) : V(a); }

MSL_NOSAN inline bool isnan(float x) { return x != x; }
MSL_NOSAN inline bool isinf(float x) { return (as_type<uint>(x) & 0x7fffffffu) == 0x7f800000u; }
MSL_NOSAN inline bool isfinite(float x) { return (as_type<uint>(x) & 0x7f800000u) != 0x7f800000u; }
MSL_NOSAN inline bool isnormal(float x) { return isfinite(x) && (as_type<uint>(x) & 0x7f800000u) != 0; }
MSL_NOSAN inline bool signbit(float x) { return as_type<uint>(x) >> 31; }
MSL_NOSAN inline bool isnan(half x) { return (as_type<ushort>(x) & 0x7fff) > 0x7c00; }
MSL_NOSAN inline bool isinf(half x) { return (as_type<ushort>(x) & 0x7fff) == 0x7c00; }
MSL_NOSAN inline bool isfinite(half x) { return (as_type<ushort>(x) & 0x7c00) != 0x7c00; }
MSL_NOSAN inline bool isnormal(half x) { return isfinite(x) && (as_type<ushort>(x) & 0x7c00) != 0; }
MSL_NOSAN inline bool signbit(half x) { return as_type<ushort>(x) >> 15; }
MSL_QUESTION(isnan)
MSL_QUESTION(isinf)
MSL_QUESTION(isfinite)
MSL_QUESTION(isnormal)
MSL_QUESTION(signbit)

MSL_NOSAN inline bool isordered(float x, float y) { return x == x && y == y; }
MSL_NOSAN inline bool isunordered(float x, float y) { return x != x || y != y; }
template <class A, class B, class V = msl::joined<A, B>>
MSL_INLINE vec<bool, msl::size_of<V>> isunordered(const A& a, const B& b) { return isnan(V(a)) || isnan(V(b)); }
template <class A, class B, class V = msl::joined<A, B>>
MSL_INLINE vec<bool, msl::size_of<V>> isordered(const A& a, const B& b) { return !isunordered(a, b); }

}  // namespace metal
