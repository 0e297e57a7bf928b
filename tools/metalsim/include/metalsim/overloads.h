// How a function of scalars becomes MSL's function of scalars and vectors.
//
// The float and half versions are ordinary overloads, so that MSL's overload resolution happens: `sqrt(2)` is ambiguous in
// both, a bfloat goes to float. The vector version is one template for vectors, packed vectors and swizzles, with scalars
// spread where there is one vector. Integers have templates, which want all arguments of one type.
#pragma once
#include "as_type.h"

#define MSL_VECTOR_1(name)                                  \
  template <class A, class V = msl::vector_like<A>>         \
  MSL_INLINE V name(const A& a) {                           \
    const V x(a);                                           \
    V r;                                                    \
    MSL_EACH(msl::size_of<V>, r.e[i] = name(x.e[i]))        \
    return r;                                               \
  }
#define MSL_VECTOR_2(name)                                        \
  template <class A, class B, class V = msl::joined<A, B>>        \
  MSL_INLINE V name(const A& a, const B& b) {                     \
    const V x(a), y(b);                                           \
    V r;                                                          \
    MSL_EACH(msl::size_of<V>, r.e[i] = name(x.e[i], y.e[i]))      \
    return r;                                                     \
  }
#define MSL_VECTOR_3(name)                                               \
  template <class A, class B, class C, class V = msl::joined<A, B, C>>   \
  MSL_INLINE V name(const A& a, const B& b, const C& c) {                \
    const V x(a), y(b), z(c);                                            \
    V r;                                                                 \
    MSL_EACH(msl::size_of<V>, r.e[i] = name(x.e[i], y.e[i], z.e[i]))     \
    return r;                                                            \
  }

// A function of floats: the expression in x, y, z is computed in float, and rounded once for half.
#define MSL_FLOAT_1(name, expression)                                        \
  MSL_NOSAN inline float name(float x) { return expression; }                \
  MSL_NOSAN inline half name(half x_) { const float x(x_); return half(float(expression)); } \
  MSL_VECTOR_1(name)
#define MSL_FLOAT_2(name, expression)                                        \
  MSL_NOSAN inline float name(float x, float y) { return expression; }       \
  MSL_NOSAN inline half name(half x_, half y_) { const float x(x_), y(y_); return half(float(expression)); } \
  MSL_VECTOR_2(name)
#define MSL_FLOAT_3(name, expression)                                        \
  MSL_NOSAN inline float name(float x, float y, float z) { return expression; } \
  MSL_NOSAN inline half name(half x_, half y_, half z_) {                    \
    const float x(x_), y(y_), z(z_);                                         \
    return half(float(expression));                                          \
  }                                                                          \
  MSL_VECTOR_3(name)

// A question about a float: bool for a scalar, booln for a vector. The half overload answers for itself.
#define MSL_QUESTION(name)                                                        \
  template <class A, class V = msl::vector_like<A>>                               \
  MSL_INLINE metal::vec<bool, msl::size_of<V>> name(const A& a) {                 \
    const V x(a);                                                                 \
    metal::vec<bool, msl::size_of<V>> r;                                          \
    MSL_EACH(msl::size_of<V>, r.e[i] = name(x.e[i]))                              \
    return r;                                                                     \
  }
