// <metal_type_traits>.
#pragma once
#include "scalar.h"

namespace metal {

template <class T, T v>
struct integral_constant {
  static constexpr T value = v;
  typedef T value_type;
  typedef integral_constant type;
  constexpr operator T() const { return v; }
  constexpr T operator()() const { return v; }
};
template <bool B>
using bool_constant = integral_constant<bool, B>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <bool B, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> { typedef T type; };
template <bool B, class T = void>
using enable_if_t = typename enable_if<B, T>::type;

template <bool B, class T, class F>
struct conditional { typedef T type; };
template <class T, class F>
struct conditional<false, T, F> { typedef F type; };
template <bool B, class T, class F>
using conditional_t = typename conditional<B, T, F>::type;

template <class T, class U>
struct is_same : false_type {};
template <class T>
struct is_same<T, T> : true_type {};
template <class T, class U>
constexpr bool is_same_v = is_same<T, U>::value;

// Transformations. An address space is no part of a type here, so that removing one does nothing.
#define MSL_TRANSFORMATION(name, from, to)             \
  template <class T> struct name { typedef T type; };  \
  template <class T> struct name<from> { typedef to type; }; \
  template <class T> using name##_t = typename name<T>::type;
MSL_TRANSFORMATION(remove_const, const T, T)
MSL_TRANSFORMATION(remove_volatile, volatile T, T)
MSL_TRANSFORMATION(remove_pointer, T*, T)
#undef MSL_TRANSFORMATION

template <class T>
struct remove_cv { typedef remove_const_t<remove_volatile_t<T>> type; };
template <class T>
using remove_cv_t = typename remove_cv<T>::type;

template <class T>
struct remove_reference { typedef T type; };
template <class T>
struct remove_reference<T&> { typedef T type; };
template <class T>
struct remove_reference<T&&> { typedef T type; };
template <class T>
using remove_reference_t = typename remove_reference<T>::type;

template <class T>
struct remove_extent { typedef T type; };
template <class T, size_t N>
struct remove_extent<T[N]> { typedef T type; };
template <class T>
struct remove_extent<T[]> { typedef T type; };
template <class T>
using remove_extent_t = typename remove_extent<T>::type;

template <class T>
struct remove_all_extents { typedef T type; };
template <class T, size_t N>
struct remove_all_extents<T[N]> { typedef typename remove_all_extents<T>::type type; };
template <class T>
using remove_all_extents_t = typename remove_all_extents<T>::type;

template <class T>
struct remove_addrspace { typedef T type; };
template <class T>
using remove_addrspace_t = T;

template <class T>
using decay_t = remove_cv_t<remove_reference_t<T>>;
template <class T>
using add_const_t = const T;
template <class T>
using add_pointer_t = remove_reference_t<T>*;

template <class T>
T&& declval() noexcept;

// Logic.
template <class... B>
struct disjunction : bool_constant<(bool(B::value) || ...)> {};
template <class... B>
struct conjunction : bool_constant<(bool(B::value) && ...)> {};
template <class B>
struct negation : bool_constant<!bool(B::value)> {};
template <class... B>
constexpr bool disjunction_v = disjunction<B...>::value;
template <class... B>
constexpr bool conjunction_v = conjunction<B...>::value;
// The name under which MLX reaches it ("#pragma METAL internals").
template <class... B>
using _disjunction = disjunction<B...>;

// Categories.
#define MSL_CATEGORY(name, pattern)           \
  template <class T> struct name : false_type {}; \
  template <class T> struct name<pattern> : true_type {};
MSL_CATEGORY(is_pointer, T*)
MSL_CATEGORY(is_lvalue_reference, T&)
MSL_CATEGORY(is_const, const T)
MSL_CATEGORY(is_volatile, volatile T)
#undef MSL_CATEGORY
template <class T>
struct is_array : false_type {};
template <class T, size_t N>
struct is_array<T[N]> : true_type {};
template <class T>
struct is_void : is_same<remove_cv_t<T>, void> {};
template <class T>
constexpr bool is_pointer_v = is_pointer<remove_cv_t<T>>::value;
template <class T>
constexpr bool is_lvalue_reference_v = is_lvalue_reference<T>::value;
template <class T>
constexpr bool is_const_v = is_const<T>::value;
template <class T>
constexpr bool is_array_v = is_array<T>::value;
template <class T>
constexpr bool is_void_v = is_void<T>::value;
template <class T>
constexpr bool is_enum_v = __is_enum(T);
template <class T>
constexpr bool is_class_v = __is_class(T);
template <class T>
constexpr bool is_union_v = __is_union(T);
template <class T>
constexpr bool is_trivially_copyable_v = __is_trivially_copyable(T);
template <class B, class D>
constexpr bool is_base_of_v = __is_base_of(B, D);
template <class T>
using underlying_type_t = __underlying_type(T);

}  // namespace metal

namespace msl {

template <class From, class To>
struct converts {
  static void take(To);
  template <class F, class = decltype(take(metal::declval<F>()))>
  static metal::true_type test(int);
  template <class>
  static metal::false_type test(...);
  typedef decltype(test<From>(0)) type;
};

template <class T>
constexpr bool integer = false;
template <>
inline constexpr bool integer<bool> = true;
template <>
inline constexpr bool integer<char> = true;
template <>
inline constexpr bool integer<signed char> = true;
template <>
inline constexpr bool integer<unsigned char> = true;
template <>
inline constexpr bool integer<short> = true;
template <>
inline constexpr bool integer<unsigned short> = true;
template <>
inline constexpr bool integer<int> = true;
template <>
inline constexpr bool integer<unsigned int> = true;
template <>
inline constexpr bool integer<long> = true;
template <>
inline constexpr bool integer<unsigned long> = true;
template <>
inline constexpr bool integer<long long> = true;
template <>
inline constexpr bool integer<unsigned long long> = true;

// For a template that takes integers only: `template <class T, msl::if_integer<T> = 0>`.
template <class T>
using if_integer = metal::enable_if_t<integer<T>, int>;


// The unsigned integer type of so many bytes.
template <size_t bytes>
struct bits_type;
template <>
struct bits_type<1> { typedef uchar type; };
template <>
struct bits_type<2> { typedef ushort type; };
template <>
struct bits_type<4> { typedef uint type; };
template <>
struct bits_type<8> { typedef ulong type; };
template <class T>
using unsigned_t = typename bits_type<sizeof(T)>::type;

}  // namespace msl

namespace metal {

template <class From, class To>
struct is_convertible : msl::converts<From, To>::type {};
template <class From, class To>
constexpr bool is_convertible_v = is_convertible<From, To>::value;

template <class T>
struct is_integral : bool_constant<msl::integer<remove_cv_t<T>>> {};
template <class T>
constexpr bool is_integral_v = is_integral<T>::value;

}  // namespace metal
