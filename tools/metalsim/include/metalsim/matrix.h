// float2x2 … float4x4 and half's: columns of vectors. matrix<T, C, R> has C columns of R rows.
#pragma once
#include "vector.h"

namespace metal {

template <class T, int C, int R>
struct matrix {
  vec<T, R> columns[C];

  matrix() = default;
  // Column by column, so that the checker sees it and no padding is read.
  MSL_INLINE constexpr matrix(const matrix& o) { MSL_EACH(C, columns[i] = o.columns[i]) }
  MSL_INLINE constexpr matrix& operator=(const matrix& o) {
    MSL_EACH(C, columns[i] = o.columns[i])
    return *this;
  }
  // The diagonal.
  MSL_INLINE constexpr explicit matrix(T diagonal) : columns{} {
    for (int c = 0; c < C && c < R; c++) columns[c].e[c] = diagonal;
  }
  // Columns, or all scalars, column by column.
  template <class A, class B, class... P, enable_if_t<msl::components<A> + msl::components<B> + (0 + ... + msl::components<P>) == C * R, int> = 0>
  MSL_INLINE constexpr matrix(const A& first, const B& second, const P&... rest) : columns{} {
    T all[C * R] = {};
    int at = 0;
    msl::put(all, at, first);
    msl::put(all, at, second);
    (msl::put(all, at, rest), ...);
    for (int c = 0; c < C; c++)
      for (int r = 0; r < R; r++) columns[c].e[r] = all[c * R + r];
  }
  template <class U, enable_if_t<!is_same_v<U, T>, int> = 0>
  MSL_INLINE constexpr explicit matrix(const matrix<U, C, R>& o) : columns{} {
    for (int c = 0; c < C; c++) columns[c] = vec<T, R>(o.columns[c]);
  }

  MSL_INLINE constexpr vec<T, R>& operator[](int c) { MSL_CHECK_INDEX(c, C) return columns[c]; }
  MSL_INLINE constexpr const vec<T, R>& operator[](int c) const { MSL_CHECK_INDEX(c, C) return columns[c]; }
};

#define MSL_MATRIX template <class T, int C, int R> MSL_INLINE

#define MSL_SUM(op)                                                                                      \
  MSL_MATRIX matrix<T, C, R> operator op(const matrix<T, C, R>& a, const matrix<T, C, R>& b) {           \
    matrix<T, C, R> m;                                                                                   \
    MSL_EACH(C, m.columns[i] = a.columns[i] op b.columns[i])                                             \
    return m;                                                                                            \
  }                                                                                                      \
  MSL_MATRIX matrix<T, C, R>& operator op##=(matrix<T, C, R>& a, const matrix<T, C, R>& b) { return a = a op b; }
MSL_SUM(+)
MSL_SUM(-)
#undef MSL_SUM

MSL_MATRIX matrix<T, C, R> operator-(const matrix<T, C, R>& a) {
  matrix<T, C, R> m;
  MSL_EACH(C, m.columns[i] = -a.columns[i])
  return m;
}

template <class T, int C, int R, class S, enable_if_t<is_arithmetic_v<S>, int> = 0>
MSL_INLINE matrix<T, C, R> operator*(const matrix<T, C, R>& a, S s) {
  matrix<T, C, R> m;
  MSL_EACH(C, m.columns[i] = a.columns[i] * T(s))
  return m;
}
template <class T, int C, int R, class S, enable_if_t<is_arithmetic_v<S>, int> = 0>
MSL_INLINE matrix<T, C, R> operator*(S s, const matrix<T, C, R>& a) { return a * s; }
template <class T, int C, int R, class S, enable_if_t<is_arithmetic_v<S>, int> = 0>
MSL_INLINE matrix<T, C, R>& operator*=(matrix<T, C, R>& a, S s) { return a = a * s; }

// Matrix by column vector: the sum of the columns, each times its component.
MSL_MATRIX vec<T, R> operator*(const matrix<T, C, R>& m, const vec<T, C>& v) {
  vec<T, R> sum = m.columns[0] * v.e[0];
  for (int c = 1; c < C; c++) sum += m.columns[c] * v.e[c];
  return sum;
}
// Row vector by matrix: a dot product with each column.
MSL_MATRIX vec<T, C> operator*(const vec<T, R>& v, const matrix<T, C, R>& m) {
  vec<T, C> r;
  for (int c = 0; c < C; c++) {
    T sum = T(v.e[0] * m.columns[c].e[0]);
    for (int k = 1; k < R; k++) sum = T(sum + T(v.e[k] * m.columns[c].e[k]));
    r.e[c] = sum;
  }
  return r;
}
// A template's argument is matched without conversions: swizzles and packed vectors become what they stand for here.
template <class T, int C, int R, class V, enable_if_t<is_same_v<msl::vector_like<V>, vec<T, C>> && !is_same_v<V, vec<T, C>>, int> = 0>
MSL_INLINE vec<T, R> operator*(const matrix<T, C, R>& m, const V& v) { return m * vec<T, C>(v); }
template <class T, int C, int R, class V, enable_if_t<is_same_v<msl::vector_like<V>, vec<T, R>> && !is_same_v<V, vec<T, R>>, int> = 0>
MSL_INLINE vec<T, C> operator*(const V& v, const matrix<T, C, R>& m) { return vec<T, R>(v) * m; }
template <class T, int K, int R, int C>
MSL_INLINE matrix<T, C, R> operator*(const matrix<T, K, R>& a, const matrix<T, C, K>& b) {
  matrix<T, C, R> m;
  MSL_EACH(C, m.columns[i] = a * b.columns[i])
  return m;
}
template <class T, int N>
MSL_INLINE matrix<T, N, N>& operator*=(matrix<T, N, N>& a, const matrix<T, N, N>& b) { return a = a * b; }

MSL_MATRIX bool operator==(const matrix<T, C, R>& a, const matrix<T, C, R>& b) {
  for (int c = 0; c < C; c++)
    for (int r = 0; r < R; r++)
      if (!(a.columns[c].e[r] == b.columns[c].e[r])) return false;
  return true;
}
MSL_MATRIX bool operator!=(const matrix<T, C, R>& a, const matrix<T, C, R>& b) { return !(a == b); }

MSL_MATRIX matrix<T, R, C> transpose(const matrix<T, C, R>& a) {
  matrix<T, R, C> m;
  for (int c = 0; c < C; c++)
    for (int r = 0; r < R; r++) m.columns[r].e[c] = a.columns[c].e[r];
  return m;
}

template <class T>
inline T determinant(const matrix<T, 2, 2>& m) { return T(m[0][0] * m[1][1] - m[1][0] * m[0][1]); }
template <class T>
inline T determinant(const matrix<T, 3, 3>& m) {
  return T(m[0][0] * (m[1][1] * m[2][2] - m[2][1] * m[1][2]) - m[1][0] * (m[0][1] * m[2][2] - m[2][1] * m[0][2]) +
           m[2][0] * (m[0][1] * m[1][2] - m[1][1] * m[0][2]));
}
template <class T>
inline T determinant(const matrix<T, 4, 4>& m) {  // along the first row
  T sum = T(0);
  for (int c = 0; c < 4; c++) {
    matrix<T, 3, 3> minor_;
    for (int k = 0, at = 0; k < 4; k++) {
      if (k == c) continue;
      minor_[at++] = vec<T, 3>(m[k][1], m[k][2], m[k][3]);
    }
    const T term = T(m[c][0] * determinant(minor_));
    sum = T(c % 2 ? sum - term : sum + term);
  }
  return sum;
}
#undef MSL_MATRIX

}  // namespace metal

#define MSL_MATRIX_NAMES(T)                                                                        \
  typedef metal::matrix<T, 2, 2> T##2x2;                                                           \
  typedef metal::matrix<T, 2, 3> T##2x3;                                                           \
  typedef metal::matrix<T, 2, 4> T##2x4;                                                           \
  typedef metal::matrix<T, 3, 2> T##3x2;                                                           \
  typedef metal::matrix<T, 3, 3> T##3x3;                                                           \
  typedef metal::matrix<T, 3, 4> T##3x4;                                                           \
  typedef metal::matrix<T, 4, 2> T##4x2;                                                           \
  typedef metal::matrix<T, 4, 3> T##4x3;                                                           \
  typedef metal::matrix<T, 4, 4> T##4x4;                                                           \
  namespace metal {                                                                                \
  using ::T##2x2; using ::T##2x3; using ::T##2x4; using ::T##3x2; using ::T##3x3;                  \
  using ::T##3x4; using ::T##4x2; using ::T##4x3; using ::T##4x4;                                  \
  }
MSL_MATRIX_NAMES(float)
MSL_MATRIX_NAMES(half)
#undef MSL_MATRIX_NAMES
