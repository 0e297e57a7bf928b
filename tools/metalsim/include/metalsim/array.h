// metal::array and metal::uniform.
#pragma once
#include "traits.h"

namespace metal {

template <class T, size_t N>
struct array {
  T elements_[N];  // public, so that array is an aggregate: array<int, 2> a = {1, 2}

  typedef T value_type;
  MSL_INLINE constexpr T& operator[](size_t i) { return elements_[i]; }
  MSL_INLINE constexpr const T& operator[](size_t i) const { return elements_[i]; }
  constexpr size_t size() const { return N; }
  constexpr bool empty() const { return N == 0; }
  MSL_INLINE constexpr T* data() { return elements_; }
  MSL_INLINE constexpr const T* data() const { return elements_; }
  MSL_INLINE constexpr T& front() { return elements_[0]; }
  MSL_INLINE constexpr const T& front() const { return elements_[0]; }
  MSL_INLINE constexpr T& back() { return elements_[N - 1]; }
  MSL_INLINE constexpr const T& back() const { return elements_[N - 1]; }
  MSL_INLINE constexpr T* begin() { return elements_; }
  MSL_INLINE constexpr const T* begin() const { return elements_; }
  MSL_INLINE constexpr T* end() { return elements_ + N; }
  MSL_INLINE constexpr const T* end() const { return elements_ + N; }
  constexpr void fill(const T& value) {
    for (size_t i = 0; i < N; i++) elements_[i] = value;
  }
};

// A value that is the same in all lanes; here a value.
template <class T>
struct uniform {
  T value;
  constexpr uniform(T x) : value(x) {}
  constexpr operator T() const { return value; }
};
template <class T>
constexpr uniform<T> make_uniform(T x) { return uniform<T>(x); }

}  // namespace metal
