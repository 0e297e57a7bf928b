// <metal_simdgroup_matrix>: 8×8 matrices spread over a SIMD-group, two neighbouring elements of a row in each lane, as on
// Apple's GPUs (MLX's kernels rely on which).
#pragma once
#include "simdgroup.h"

namespace msl {

struct place {
  int row, column;  // of a lane's first element; the second is right of it
};
MSL_NOSAN __attribute__((MSL_NO_COVERAGE)) inline place place_of_lane(int lane) {
  const int quad = lane / 4;
  return {(quad & 4) + lane / 2 % 4, (quad & 2) * 2 + lane % 2 * 2};
}

// What a matrix holds that nobody has set, in check mode: a NaN that no arithmetic makes, recognised quieted too.
template <class T>
struct spoilt_bits {
  typedef metal::conditional_t<sizeof(T) == 4, uint, ushort> bits;
  static constexpr bits quiet = sizeof(T) == 4 ? 0x00400000u : metal::is_same_v<T, half> ? 0x0200u : 0x0040u;
  static constexpr bits value = sizeof(T) == 4 ? 0x7fa5a55au : metal::is_same_v<T, half> ? 0x7d5au : 0x7fa5u;
};
template <class T>
MSL_NOSAN inline void spoil(metal::vec<T, 2>& elements) {
  const auto value = spoilt_bits<T>::value;
  for (int i = 0; i < 2; i++) __builtin_memcpy(&elements.e[i], &value, sizeof value);
}
template <class T>
MSL_NOSAN inline bool is_spoilt(const metal::vec<T, 2>& elements) {
  typedef spoilt_bits<T> spoilt;
  for (int i = 0; i < 2; i++) {
    typename spoilt::bits found;
    __builtin_memcpy(&found, &elements.e[i], sizeof found);
    if ((found | spoilt::quiet) == (spoilt::value | spoilt::quiet)) return true;
  }
  return false;
}

typedef float row_of_8 __attribute__((vector_size(32)));

template <class D, class A, class B, class C>
struct product_request {
  const metal::vec<A, 2>* a;
  const metal::vec<B, 2>* b;
  const metal::vec<C, 2>* c;  // null: nothing to add to
  metal::vec<D, 2> d;
};

// D = A B + C. Products and sums are rounded to float one after the other, k ascending, C first; a D of 16 bits is rounded once,
// at the end. What Apple's hardware does in between is not documented.
template <class D, class A, class B, class C>
MSL_NOSAN void multiply(void** requests, uint arrived, void*) {
  typedef product_request<D, A, B, C> request;
  if (arrived != ~0u) {  // undefined in MSL, and reported by the runtime: nobody shall take the result for one
    MSL_LANES(i, arrived) static_cast<request*>(requests[i])->d = metal::vec<D, 2>(D(__builtin_nanf("")));
    return;
  }
  float a[8][8];
  row_of_8 b[8], d[8];
  for (int lane = 0; lane < 32; lane++) {
    const place at = place_of_lane(lane);
    const request& r = *static_cast<request*>(requests[lane]);
    for (int j = 0; j < 2; j++) {
      a[at.row][at.column + j] = float(r.a->e[j]);
      b[at.row][at.column + j] = float(r.b->e[j]);
      d[at.row][at.column + j] = r.c ? float(r.c->e[j]) : 0.0f;
    }
  }
  for (int i = 0; i < 8; i++)
    for (int k = 0; k < 8; k++) d[i] += a[i][k] * b[k];
  for (int lane = 0; lane < 32; lane++) {
    const place at = place_of_lane(lane);
    for (int j = 0; j < 2; j++) static_cast<request*>(requests[lane])->d.e[j] = D(d[at.row][at.column + j]);
  }
}

}  // namespace msl

namespace metal {

template <class T, int Columns, int Rows>
struct simdgroup_matrix {
  static_assert(Columns == 8 && Rows == 8, "simdgroup_matrix: MSL has 8x8 alone");
  static_assert(is_floating_point_v<T>, "simdgroup_matrix: of half, bfloat or float");
  typedef vec<T, 2> storage_type;

#ifdef MSL_CHECK
  MSL_NOSAN simdgroup_matrix() { msl::spoil(elements_); }
#else
  simdgroup_matrix() = default;
#endif
  // The diagonal.
  explicit simdgroup_matrix(T diagonal) {
    const msl::place at = msl::place_of_lane(int(msl::own_lane()));
    elements_ = storage_type(at.column == at.row ? diagonal : T(0), at.column + 1 == at.row ? diagonal : T(0));
  }
  MSL_INLINE storage_type& thread_elements() { return elements_; }
  MSL_INLINE const storage_type& thread_elements() const { return elements_; }

 private:
  storage_type elements_;
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
typedef simdgroup_matrix<bfloat, 8, 8> simdgroup_bfloat8x8;

template <class T, int C, int R = C>
inline simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T value) {
  simdgroup_matrix<T, C, R> m;
  m.thread_elements() = vec<T, 2>(value);
  return m;
}
template <class T, int C, int R = C>
inline simdgroup_matrix<T, C, R> make_diagonal_simdgroup_matrix(T value) { return simdgroup_matrix<T, C, R>(value); }

}  // namespace metal

namespace msl {

// The index of element j of this lane, in memory whose rows are elements_per_row apart.
MSL_INLINE ulong index_of(int j, ulong elements_per_row, ulong2 origin, bool transposed) {
  const place at = place_of_lane(int(own_lane()));
  const ulong row = ulong(transposed ? at.column + j : at.row), column = ulong(transposed ? at.row : at.column + j);
  return (row + origin.e[1]) * elements_per_row + column + origin.e[0];
}

// In check mode lanes meet to load and store too: nothing that they do needs it, but the rules do.
inline void nothing(void**, uint, void*) {}
#ifdef MSL_CHECK
#define MSL_MEET msl_simd_collective(&msl::nothing, nullptr, msl::matrix_access, file, line);
#define MSL_CHECK_SET(m) if (msl::is_spoilt(m.thread_elements())) msl_matrix_not_set(file, line);
#else
#define MSL_MEET
#define MSL_CHECK_SET(m)
#endif

// A GPU has one instruction for it: in cost mode its arithmetic is left out.
#ifdef MSL_COST
#define MSL_MATRIX_ACCESS __attribute__((noinline, MSL_NO_COVERAGE))
#else
#define MSL_MATRIX_ACCESS MSL_INLINE
#endif

}  // namespace msl

namespace metal {

// Memory is reached by each lane for its own two elements. origin: column, row of the matrix's first element.
template <class T>
MSL_MATRIX_ACCESS void simdgroup_load(simdgroup_matrix<T, 8, 8>& m, const T* memory, ulong elements_per_row = 8, ulong2 origin = ulong2(0ul), bool transposed = false, MSL_SITE) {
  MSL_MEET
  vec<T, 2> e;
  e.e[0] = memory[msl::index_of(0, elements_per_row, origin, transposed)];
  e.e[1] = memory[msl::index_of(1, elements_per_row, origin, transposed)];
  m.thread_elements() = e;
}
template <class T>
MSL_MATRIX_ACCESS void simdgroup_store(const simdgroup_matrix<T, 8, 8>& m, T* memory, ulong elements_per_row = 8, ulong2 origin = ulong2(0ul), bool transposed = false, MSL_SITE) {
  MSL_MEET
  MSL_CHECK_SET(m)
  memory[msl::index_of(0, elements_per_row, origin, transposed)] = m.thread_elements().e[0];
  memory[msl::index_of(1, elements_per_row, origin, transposed)] = m.thread_elements().e[1];
}

template <class D, class A, class B, class C>
inline void simdgroup_multiply_accumulate(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a, const simdgroup_matrix<B, 8, 8>& b, const simdgroup_matrix<C, 8, 8>& c, MSL_SITE) {
  MSL_CHECK_SET(a) MSL_CHECK_SET(b) MSL_CHECK_SET(c)
  msl::product_request<D, A, B, C> r;
  r.a = &a.thread_elements();
  r.b = &b.thread_elements();
  r.c = &c.thread_elements();
  msl_simd_collective(&msl::multiply<D, A, B, C>, &r, msl::matrix_product, file, line);
  d.thread_elements() = r.d;
}
template <class D, class A, class B>
inline void simdgroup_multiply(simdgroup_matrix<D, 8, 8>& d, const simdgroup_matrix<A, 8, 8>& a, const simdgroup_matrix<B, 8, 8>& b, MSL_SITE) {
  MSL_CHECK_SET(a) MSL_CHECK_SET(b)
  msl::product_request<D, A, B, D> r;
  r.a = &a.thread_elements();
  r.b = &b.thread_elements();
  r.c = nullptr;
  msl_simd_collective(&msl::multiply<D, A, B, D>, &r, msl::matrix_product, file, line);
  d.thread_elements() = r.d;
}
// An operator has no arguments to carry its line in: the site is the library's.
template <class A, class B>
inline simdgroup_matrix<A, 8, 8> operator*(const simdgroup_matrix<A, 8, 8>& a, const simdgroup_matrix<B, 8, 8>& b) {
  simdgroup_matrix<A, 8, 8> d;
  simdgroup_multiply(d, a, b);
  return d;
}

}  // namespace metal
