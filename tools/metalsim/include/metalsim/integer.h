// <metal_integer>: functions of integers of 8 to 64 bits and of their vectors; of floats too abs, max, min and their kin.
#pragma once
#include "math.h"

namespace msl {

// An integer type that holds any product or sum of two Ts.
template <class T>
using wide = metal::conditional_t<(sizeof(T) < 8), long, __int128>;
template <class T>
constexpr int width = sizeof(T) * 8;

template <class T>
MSL_NOSAN constexpr T saturated(wide<T> x) {
  if (x > wide<T>(metal::numeric_limits<T>::max())) return metal::numeric_limits<T>::max();
  if (x < wide<T>(metal::numeric_limits<T>::min())) return metal::numeric_limits<T>::min();
  return T(x);
}

}  // namespace msl

namespace metal {

#define MSL_INTEGER_1(name, ...)                                                                  \
  template <class T, msl::if_integer<T> = 0> MSL_NOSAN constexpr T name(T x) { __VA_ARGS__ }
#define MSL_INTEGER_2(name, ...)                                                                  \
  template <class T, msl::if_integer<T> = 0> MSL_NOSAN constexpr T name(T x, T y) { __VA_ARGS__ }
#define MSL_INTEGER_3(name, ...)                                                                  \
  template <class T, msl::if_integer<T> = 0> MSL_NOSAN constexpr T name(T x, T y, T z) { __VA_ARGS__ }

// Those that floats have too.
MSL_INTEGER_1(abs, return x < T(0) ? T(T(0) - x) : x;)
MSL_INTEGER_2(max, return x < y ? y : x;)
MSL_INTEGER_2(min, return y < x ? y : x;)
MSL_INTEGER_3(max3, return max(max(x, y), z);)
MSL_INTEGER_3(min3, return min(min(x, y), z);)
MSL_INTEGER_3(median3, return max(min(x, y), min(max(x, y), z));)
#define MSL_FLOAT_SYNONYM_2(name, of)                                        \
  MSL_NOSAN inline float name(float x, float y) { return of(x, y); }         \
  MSL_NOSAN inline half name(half x, half y) { return of(x, y); }            \
  MSL_VECTOR_2(name)
#define MSL_FLOAT_SYNONYM_3(name, of)                                        \
  MSL_NOSAN inline float name(float x, float y, float z) { return of(x, y, z); } \
  MSL_NOSAN inline half name(half x, half y, half z) { return of(x, y, z); } \
  MSL_VECTOR_3(name)
MSL_NOSAN inline float abs(float x) { return fabs(x); }
MSL_NOSAN inline half abs(half x) { return fabs(x); }
MSL_VECTOR_1(abs)
MSL_FLOAT_SYNONYM_2(max, fmax)
MSL_FLOAT_SYNONYM_2(min, fmin)
MSL_FLOAT_SYNONYM_3(max3, fmax3)
MSL_FLOAT_SYNONYM_3(min3, fmin3)
MSL_FLOAT_SYNONYM_3(median3, fmedian3)
#undef MSL_FLOAT_SYNONYM_2
#undef MSL_FLOAT_SYNONYM_3

// The distance of two integers, without overflow; unsigned.
template <class T, msl::if_integer<T> = 0>
MSL_NOSAN constexpr msl::unsigned_t<T> absdiff(T x, T y) {
  typedef msl::unsigned_t<T> U;
  return x < y ? U(U(y) - U(x)) : U(U(x) - U(y));
}
template <class A, class B, class V = msl::joined<A, B>>
MSL_INLINE vec<msl::unsigned_t<msl::element_of<V>>, msl::size_of<V>> absdiff(const A& a, const B& b) {
  const V x(a), y(b);
  vec<msl::unsigned_t<msl::element_of<V>>, msl::size_of<V>> r;
  MSL_EACH(msl::size_of<V>, r.e[i] = absdiff(x.e[i], y.e[i]))
  return r;
}

#define MSL_BOTH_1(name, ...) MSL_INTEGER_1(name, __VA_ARGS__) MSL_VECTOR_1(name)
#define MSL_BOTH_2(name, ...) MSL_INTEGER_2(name, __VA_ARGS__) MSL_VECTOR_2(name)
#define MSL_BOTH_3(name, ...) MSL_INTEGER_3(name, __VA_ARGS__) MSL_VECTOR_3(name)

MSL_BOTH_2(addsat, return msl::saturated<T>(msl::wide<T>(x) + y);)
MSL_BOTH_2(subsat, return msl::saturated<T>(msl::wide<T>(x) - y);)
MSL_BOTH_2(hadd, return T((msl::wide<T>(x) + y) >> 1);)
MSL_BOTH_2(rhadd, return T((msl::wide<T>(x) + y + 1) >> 1);)

// The upper half of the product, which has twice the bits.
template <class T, msl::if_integer<T> = 0>
MSL_NOSAN constexpr T mulhi(T x, T y) {
  if constexpr (sizeof(T) == 8 && is_unsigned_v<T>) return T((unsigned __int128)(x) * y >> 64);
  else if constexpr (is_unsigned_v<T>) return T(ulong(x) * y >> msl::width<T>);
  else return T(msl::wide<T>(x) * y >> msl::width<T>);
}
MSL_VECTOR_2(mulhi)
MSL_BOTH_3(madhi, return T(msl::unsigned_t<T>(mulhi(x, y)) + msl::unsigned_t<T>(z));)
// x y + z, held at the ends of the type. In 128 bits: a product of two ulongs fills them.
template <class T, msl::if_integer<T> = 0>
MSL_NOSAN constexpr T madsat(T x, T y, T z) {
  if constexpr (is_unsigned_v<T>) {
    const unsigned __int128 product = (unsigned __int128)(x) * y, most = numeric_limits<T>::max();
    return product > most - z ? T(most) : T(product + z);
  } else {
    const __int128 exact = __int128(x) * y + z;
    if (exact > __int128(numeric_limits<T>::max())) return numeric_limits<T>::max();
    return exact < __int128(numeric_limits<T>::min()) ? numeric_limits<T>::min() : T(exact);
  }
}
MSL_VECTOR_3(madsat)

// Of 32-bit integers: the low 24 bits multiplied, the low 32 bits of that.
MSL_NOSAN constexpr uint mul24(uint x, uint y) { return (x & 0xffffffu) * (y & 0xffffffu); }
MSL_NOSAN constexpr int mul24(int x, int y) { return int(long(int(uint(x) << 8) >> 8) * (int(uint(y) << 8) >> 8)); }
MSL_VECTOR_2(mul24)
MSL_NOSAN constexpr uint mad24(uint x, uint y, uint z) { return mul24(x, y) + z; }
MSL_NOSAN constexpr int mad24(int x, int y, int z) { return int(uint(mul24(x, y)) + uint(z)); }
MSL_VECTOR_3(mad24)

MSL_BOTH_1(popcount, return T(__builtin_popcountl(ulong(msl::unsigned_t<T>(x))));)
MSL_BOTH_1(clz, return x == 0 ? T(msl::width<T>) : T(__builtin_clzl(ulong(msl::unsigned_t<T>(x))) - (64 - msl::width<T>));)
MSL_BOTH_1(ctz, return x == 0 ? T(msl::width<T>) : T(__builtin_ctzl(ulong(msl::unsigned_t<T>(x))));)
MSL_BOTH_1(reverse_bits, {
  ulong bits = msl::unsigned_t<T>(x);
  bits = (bits >> 1 & 0x5555555555555555ul) | (bits & 0x5555555555555555ul) << 1;
  bits = (bits >> 2 & 0x3333333333333333ul) | (bits & 0x3333333333333333ul) << 2;
  bits = (bits >> 4 & 0x0f0f0f0f0f0f0f0ful) | (bits & 0x0f0f0f0f0f0f0f0ful) << 4;
  return T(__builtin_bswap64(bits) >> (64 - msl::width<T>));
})
// Left, by y modulo the width.
MSL_BOTH_2(rotate, {
  const msl::unsigned_t<T> bits = msl::unsigned_t<T>(x);
  const int left = int(msl::unsigned_t<T>(y) % msl::width<T>);
  return T(left == 0 ? bits : bits << left | bits >> (msl::width<T> - left));
})

// `count` bits of x from bit `offset` on, sign-extended for signed types. Beyond the width MSL leaves it undefined: here
// what is beyond reads as 0.
template <class T, msl::if_integer<T> = 0>
MSL_NOSAN constexpr T extract_bits(T x, uint offset, uint count) {
  if (count == 0) return T(0);
  const unsigned __int128 all = msl::unsigned_t<T>(x);
  const ulong field = ulong(all >> (offset < 64 ? offset : 64)) & ~0ul >> (64 - (count < 64 ? count : 64));
  const int unused = 64 - int(count < 64 ? count : 64);
  return is_signed_v<T> ? T(long(field << unused) >> unused) : T(field);
}
template <class A, class V = msl::vector_like<A>>
MSL_INLINE V extract_bits(const A& a, uint offset, uint count) {
  const V x(a);
  V r;
  MSL_EACH(msl::size_of<V>, r.e[i] = extract_bits(x.e[i], offset, count))
  return r;
}
// base with `count` bits from bit `offset` on replaced by the lowest of insert.
template <class T, msl::if_integer<T> = 0>
MSL_NOSAN constexpr T insert_bits(T base, T insert, uint offset, uint count) {
  if (count == 0 || offset >= 64) return base;
  const ulong mask = (~0ul >> (64 - (count < 64 ? count : 64))) << offset;
  return T((ulong(msl::unsigned_t<T>(base)) & ~mask) | (ulong(msl::unsigned_t<T>(insert)) << offset & mask));
}
template <class A, class B, class V = msl::joined<A, B>>
MSL_INLINE V insert_bits(const A& base, const B& insert, uint offset, uint count) {
  const V x(base), y(insert);
  V r;
  MSL_EACH(msl::size_of<V>, r.e[i] = insert_bits(x.e[i], y.e[i], offset, count))
  return r;
}

#undef MSL_INTEGER_1
#undef MSL_INTEGER_2
#undef MSL_INTEGER_3
#undef MSL_BOTH_1
#undef MSL_BOTH_2
#undef MSL_BOTH_3

}  // namespace metal
