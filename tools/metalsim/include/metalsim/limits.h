// <metal_limits>.
#pragma once
#include "small_float.h"

namespace msl {

// What the floats have in common; Bits is the integer of their size. Exponents as C's <float.h> counts them.
template <class T, class Bits, int significand, int largest_exponent>
struct float_limits {
  static constexpr bool is_specialized = true, is_signed = true, is_integer = false, is_exact = false;
  static constexpr bool has_infinity = true, has_quiet_NaN = true, has_signaling_NaN = true;
  static constexpr bool is_iec559 = true, is_bounded = true, is_modulo = false;
  static constexpr int radix = 2, digits = significand, max_exponent = largest_exponent, min_exponent = 3 - largest_exponent;
  static constexpr int digits10 = (significand - 1) * 301 / 1000, max_digits10 = 2 + significand * 301 / 1000;

  static constexpr int fraction_bits = significand - 1;
  static constexpr Bits infinite = Bits((2 * largest_exponent - 1) << fraction_bits);
  static constexpr T of(Bits bits) { return __builtin_bit_cast(T, bits); }

  static constexpr T infinity() { return of(infinite); }
  static constexpr T max() { return of(Bits(infinite - 1)); }
  static constexpr T lowest() { return -max(); }
  static constexpr T min() { return of(Bits(Bits(1) << fraction_bits)); }
  static constexpr T denorm_min() { return of(1); }
  static constexpr T epsilon() { return of(Bits(Bits(largest_exponent - 1 - fraction_bits) << fraction_bits)); }
  static constexpr T round_error() { return of(Bits(Bits(largest_exponent - 2) << fraction_bits)); }
  static constexpr T quiet_NaN() { return of(Bits(infinite | Bits(Bits(1) << (fraction_bits - 1)))); }
  static constexpr T signaling_NaN() { return of(Bits(infinite | Bits(Bits(1) << (fraction_bits - 2)))); }
};

template <class T>
struct integer_limits {
  static constexpr bool is_specialized = true, is_signed = metal::is_signed_v<T>, is_integer = true, is_exact = true;
  static constexpr bool has_infinity = false, has_quiet_NaN = false, has_signaling_NaN = false;
  static constexpr bool is_iec559 = false, is_bounded = true, is_modulo = !is_signed;
  static constexpr int radix = 2, digits = int(sizeof(T)) * 8 - is_signed, digits10 = digits * 301 / 1000, max_digits10 = 0;

  static constexpr T max() { return T(~0ul >> (64 - digits)); }
  static constexpr T min() { return is_signed ? T(~max()) : T(0); }
  static constexpr T lowest() { return min(); }
};

}  // namespace msl

namespace metal {

template <class T>
struct numeric_limits : msl::integer_limits<T> {};
template <class T>
struct numeric_limits<const T> : numeric_limits<T> {};
template <>
struct numeric_limits<bool> : msl::integer_limits<bool> {
  static constexpr int digits = 1, digits10 = 0;
  static constexpr bool max() { return true; }
  static constexpr bool min() { return false; }
  static constexpr bool lowest() { return false; }
};
template <>
struct numeric_limits<float> : msl::float_limits<float, uint, 24, 128> {};
template <>
struct numeric_limits<half> : msl::float_limits<half, ushort, 11, 16> {};
template <>
struct numeric_limits<bfloat> : msl::float_limits<bfloat, ushort, 8, 128> {};

}  // namespace metal
