// half and bfloat: 16 bits, every operation rounded to nearest even, subnormals kept.
#pragma once
#include "traits.h"

namespace msl {

// Sign, 5 bits of exponent, 10 of fraction (IEEE 754 binary16).
struct half_format {
  static constexpr bool from_float_is_implicit = true;

  // The bits of the half nearest to x, ties to even.
  static MSL_INLINE constexpr ushort encode(float x) {
    const uint bits = __builtin_bit_cast(uint, x), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return ushort(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));  // NaN, made quiet
    if (magnitude >= 0x477ff000u) return ushort(sign | 0x7c00u);  // from 65520 on, half way to 2^16, all is infinite
    if (magnitude < 0x38800000u) {
      // Below 2^-14: the result is a multiple of 2^-24, which is what the last bit of a float near 0.5 is worth.
      const float shifted = __builtin_bit_cast(float, magnitude) + 0.5f;
      return ushort(sign | (__builtin_bit_cast(uint, shifted) - 0x3f000000u));
    }
    const uint tie_to_even = magnitude >> 13 & 1u;
    return ushort(sign | ((magnitude - 0x38000000u + 0xfffu + tie_to_even) >> 13));
  }

  static MSL_INLINE constexpr float decode(ushort half_bits) {
    const uint sign = uint(half_bits & 0x8000) << 16, shifted = uint(half_bits & 0x7fff) << 13;
    if (shifted >= 0x0f800000u) {  // infinity, or NaN made quiet
      return __builtin_bit_cast(float, sign | 0x7f800000u | shifted | (shifted > 0x0f800000u ? 0x400000u : 0u));
    }
    // The exponent is 112 too small; the multiplication is exact, for subnormals too.
    const float magnitude = __builtin_bit_cast(float, shifted) * __builtin_bit_cast(float, 0x77800000u);
    return __builtin_bit_cast(float, __builtin_bit_cast(uint, magnitude) | sign);
  }
};

// The upper half of a float.
struct bfloat_format {
  static constexpr bool from_float_is_implicit = false;

  static MSL_INLINE constexpr ushort encode(float x) {
    const uint bits = __builtin_bit_cast(uint, x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return ushort(bits >> 16 | 0x40u);  // NaN, made quiet
    return ushort((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }

  static MSL_INLINE constexpr float decode(ushort bits) { return __builtin_bit_cast(float, uint(bits) << 16); }
};

template <class Format>
struct small_float;

template <class T>
constexpr bool native_number = integer<T> || metal::is_same_v<T, float> || metal::is_same_v<T, double>;
#ifdef __FLT16_MANT_DIG__
template <>
inline constexpr bool native_number<_Float16> = true;
#endif

// A 16-bit float that the compiler does not know: stored as its bits, computed in float. The sum, difference, product,
// quotient and root of two such numbers, rounded to float and then to 16 bits, are the exact results rounded once, since a
// float has more than twice as many bits of significand and two.
template <class Format>
struct small_float {
  ushort bits;

  small_float() = default;
  template <class U, metal::enable_if_t<integer<U> || (metal::is_same_v<U, float> && Format::from_float_is_implicit), int> = 0>
  MSL_INLINE constexpr small_float(U x) : bits(Format::encode(float(x))) {}
  template <class U, metal::enable_if_t<native_number<U> && !integer<U> && !(metal::is_same_v<U, float> && Format::from_float_is_implicit), char> = 0>
  MSL_INLINE constexpr explicit small_float(U x) : bits(Format::encode(float(x))) {}
  template <class Other, metal::enable_if_t<!metal::is_same_v<Other, Format>, int> = 0>
  MSL_INLINE constexpr explicit small_float(small_float<Other> x) : bits(Format::encode(float(x))) {}
  static MSL_INLINE constexpr small_float from_bits(ushort bits) { return __builtin_bit_cast(small_float, bits); }

  // Implicit to float and to nothing else: `flag ? x : 0` then has one meaning, that of the 16-bit type.
  template <class U, metal::enable_if_t<metal::is_same_v<U, float>, int> = 0>
  MSL_INLINE constexpr operator U() const { return Format::decode(bits); }
  template <class U, metal::enable_if_t<native_number<U> && !metal::is_same_v<U, float>, int> = 0>
  MSL_INLINE constexpr explicit operator U() const { return U(Format::decode(bits)); }

  template <class U>
  MSL_INLINE constexpr small_float& operator+=(U x) { return *this = small_float(*this + x); }
  template <class U>
  MSL_INLINE constexpr small_float& operator-=(U x) { return *this = small_float(*this - x); }
  template <class U>
  MSL_INLINE constexpr small_float& operator*=(U x) { return *this = small_float(*this * x); }
  template <class U>
  MSL_INLINE constexpr small_float& operator/=(U x) { return *this = small_float(*this / x); }
  MSL_INLINE constexpr small_float& operator++() { return *this += 1; }
  MSL_INLINE constexpr small_float& operator--() { return *this -= 1; }
  MSL_INLINE constexpr small_float operator++(int) { const small_float old = *this; *this += 1; return old; }
  MSL_INLINE constexpr small_float operator--(int) { const small_float old = *this; *this -= 1; return old; }
  MSL_INLINE constexpr small_float operator+() const { return *this; }
  MSL_INLINE constexpr small_float operator-() const { return from_bits(ushort(bits ^ 0x8000)); }
  MSL_INLINE constexpr bool operator!() const { return (bits & 0x7fff) == 0; }
};

// What a small float and a U become together: with an integer the small float, with a float that float.
template <class Format, class U>
using beside = metal::conditional_t<integer<U>, small_float<Format>, float>;
template <class U>
using if_native = metal::enable_if_t<native_number<U>, int>;

#define MSL_ARITHMETIC(op)                                                                                             \
  template <class F> MSL_INLINE constexpr small_float<F> operator op(small_float<F> a, small_float<F> b) {             \
    return small_float<F>(float(a) op float(b));                                                                       \
  }                                                                                                                    \
  template <class F, class U, if_native<U> = 0> MSL_INLINE constexpr beside<F, U> operator op(small_float<F> a, U b) { \
    return beside<F, U>(float(a) op float(beside<F, U>(b)));                                                           \
  }                                                                                                                    \
  template <class F, class U, if_native<U> = 0> MSL_INLINE constexpr beside<F, U> operator op(U a, small_float<F> b) { \
    return beside<F, U>(float(beside<F, U>(a)) op float(b));                                                           \
  }                                                                                                                    \
  template <class F, class G, metal::enable_if_t<!metal::is_same_v<F, G>, int> = 0>                                    \
  MSL_INLINE constexpr float operator op(small_float<F> a, small_float<G> b) { return float(a) op float(b); }         \
  template <class F, class U, if_native<U> = 0> MSL_INLINE constexpr U& operator op##=(U& a, small_float<F> b) {       \
    return a = U(a op b);                                                                                              \
  }
MSL_ARITHMETIC(+)
MSL_ARITHMETIC(-)
MSL_ARITHMETIC(*)
MSL_ARITHMETIC(/)
#undef MSL_ARITHMETIC

#define MSL_COMPARISON(op)                                                                                   \
  template <class F, class G> MSL_INLINE constexpr bool operator op(small_float<F> a, small_float<G> b) {    \
    return float(a) op float(b);                                                                             \
  }                                                                                                          \
  template <class F, class U, if_native<U> = 0> MSL_INLINE constexpr bool operator op(small_float<F> a, U b) { \
    return float(a) op float(beside<F, U>(b));                                                               \
  }                                                                                                          \
  template <class F, class U, if_native<U> = 0> MSL_INLINE constexpr bool operator op(U a, small_float<F> b) { \
    return float(beside<F, U>(a)) op float(b);                                                               \
  }
MSL_COMPARISON(==)
MSL_COMPARISON(!=)
MSL_COMPARISON(<)
MSL_COMPARISON(>)
MSL_COMPARISON(<=)
MSL_COMPARISON(>=)
#undef MSL_COMPARISON

// half is the compiler's own type where that rounds every operation, since only a built-in type takes part in the usual
// conversions (`flag ? x : 0.0f` is ambiguous between two class types). g++ 12 rounds every operation; later ones do with
// -fexcess-precision=16, which the constant below finds out. clang on x86 keeps excess precision or lacks the type.
#if defined(__FLT16_MANT_DIG__) && (!defined(__clang__) || defined(__aarch64__)) && !defined(MSL_HALF_AS_CLASS)
constexpr _Float16 just_above_one = _Float16(1.0009765625f);
constexpr _Float16 square_less_rounded_square = just_above_one * just_above_one - _Float16(1.001953125f);
typedef metal::conditional_t<float(square_less_rounded_square) == 0.0f, _Float16, small_float<half_format>> half_t;
#else
typedef small_float<half_format> half_t;
#endif

}  // namespace msl

typedef msl::half_t half;
typedef msl::small_float<msl::bfloat_format> bfloat;

static_assert(sizeof(half) == 2 && alignof(half) == 2 && sizeof(bfloat) == 2 && alignof(bfloat) == 2, "16-bit floats");

namespace metal {

template <class T>
struct is_floating_point : bool_constant<is_same_v<remove_cv_t<T>, float> || is_same_v<remove_cv_t<T>, half> || is_same_v<remove_cv_t<T>, bfloat>> {};
template <class T>
constexpr bool is_floating_point_v = is_floating_point<T>::value;
template <class T>
struct is_arithmetic : bool_constant<is_integral_v<T> || is_floating_point_v<T>> {};
template <class T>
constexpr bool is_arithmetic_v = is_arithmetic<T>::value;
template <class T>
constexpr bool is_scalar_v = is_arithmetic_v<T> || is_pointer_v<T> || is_enum_v<T>;
template <class T, bool = is_arithmetic_v<T>>
struct is_signed : bool_constant<(remove_cv_t<T>(-1) < remove_cv_t<T>(0))> {};
template <class T>
struct is_signed<T, false> : false_type {};
template <class T>
constexpr bool is_signed_v = is_signed<T>::value;
template <class T>
struct is_unsigned : bool_constant<is_integral_v<T> && !is_signed_v<T>> {};
template <class T>
constexpr bool is_unsigned_v = is_unsigned<T>::value;

template <class T>
struct make_unsigned { typedef msl::unsigned_t<T> type; };
template <class T>
using make_unsigned_t = typename make_unsigned<T>::type;
template <class T>
struct make_signed {
  typedef conditional_t<sizeof(T) == 1, signed char, conditional_t<sizeof(T) == 2, short, conditional_t<sizeof(T) == 4, int, long>>> type;
};
template <class T>
using make_signed_t = typename make_signed<T>::type;

}  // namespace metal
