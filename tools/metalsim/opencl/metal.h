// What the address-space lint (../lint.py) declares for clang, in its OpenCL C++: MSL's types, and functions as far as pointers and
// references pass through them. Nothing here is ever run. What is missing costs findings, never makes one.
#define device __global
#define threadgroup __local
#define thread __private
#define constant __constant

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef uchar uint8_t;
typedef ushort uint16_t;
typedef uint uint32_t;
typedef ulong uint64_t;
typedef ulong size_t;
typedef long ptrdiff_t;
typedef half bfloat;

#define LINT_VECTORS(T)                              \
  typedef T T##2 __attribute__((ext_vector_type(2))); \
  typedef T T##3 __attribute__((ext_vector_type(3))); \
  typedef T T##4 __attribute__((ext_vector_type(4))); \
  typedef T##2 packed_##T##2;                         \
  typedef T##3 packed_##T##3;                         \
  typedef T##4 packed_##T##4;
LINT_VECTORS(char)
LINT_VECTORS(uchar)
LINT_VECTORS(short)
LINT_VECTORS(ushort)
LINT_VECTORS(int)
LINT_VECTORS(uint)
LINT_VECTORS(long)
LINT_VECTORS(ulong)
LINT_VECTORS(half)
LINT_VECTORS(bfloat)
LINT_VECTORS(float)

namespace metal {

template <typename T, int N>
using vec = T __attribute__((ext_vector_type(N)));
template <typename A, typename B>
struct is_same {
  enum { value = 0 };
};
template <typename A>
struct is_same<A, A> {
  enum { value = 1 };
};
template <typename A, typename B>
constexpr bool is_same_v = is_same<A, B>::value;

enum class mem_flags : uint { mem_none, mem_device, mem_threadgroup };
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }
void threadgroup_barrier(mem_flags);
void simdgroup_barrier(mem_flags);

#define LINT_1(name) \
  template <typename T> T name(T);
#define LINT_2(name)                  \
  template <typename T> T name(T, T); \
  template <typename T, typename U> T name(T, U);
#define LINT_3(name) \
  template <typename T, typename U, typename V> T name(T, U, V);
#define LINT_MATHS                                                                                                   \
  LINT_1(abs) LINT_1(ceil) LINT_1(cos) LINT_1(exp) LINT_1(exp2) LINT_1(fabs) LINT_1(floor) LINT_1(log) LINT_1(log2)   \
  LINT_1(rint) LINT_1(round) LINT_1(rsqrt) LINT_1(sin) LINT_1(sqrt) LINT_1(tanh) LINT_1(trunc) LINT_2(max) LINT_2(min) \
  LINT_2(pow) LINT_2(fmax) LINT_2(fmin) LINT_2(dot) LINT_3(fma) LINT_3(clamp) LINT_3(mix) LINT_3(select)
LINT_MATHS
namespace fast {
LINT_MATHS
}
namespace precise {
LINT_MATHS
}
LINT_1(popcount) LINT_1(clz) LINT_1(ctz) LINT_1(isnan) LINT_1(isinf)
LINT_1(simd_sum) LINT_1(simd_product) LINT_1(simd_max) LINT_1(simd_min) LINT_1(simd_and) LINT_1(simd_or) LINT_1(simd_xor)
LINT_1(simd_prefix_exclusive_sum) LINT_1(simd_prefix_inclusive_sum) LINT_1(quad_sum) LINT_1(quad_max) LINT_1(quad_min)
LINT_2(simd_shuffle) LINT_2(simd_shuffle_xor) LINT_2(simd_shuffle_up) LINT_2(simd_shuffle_down) LINT_2(simd_broadcast)
LINT_2(quad_shuffle) LINT_2(quad_shuffle_xor) LINT_2(quad_broadcast)

template <typename T, int Columns, int Rows>
struct simdgroup_matrix {
  simdgroup_matrix() = default;
  explicit simdgroup_matrix(T);
  thread vec<T, 2>& thread_elements() const;
};
typedef simdgroup_matrix<float, 8, 8> simdgroup_float8x8;
typedef simdgroup_matrix<half, 8, 8> simdgroup_half8x8;
template <typename T, int C, int R>
simdgroup_matrix<T, C, R> make_filled_simdgroup_matrix(T);
#define LINT_MATRIX_MEMORY(space)                                                                                            \
  template <typename T> void simdgroup_load(thread simdgroup_matrix<T, 8, 8>&, const space T*, ulong = 8, ulong2 = 0, bool = false); \
  template <typename T> void simdgroup_store(simdgroup_matrix<T, 8, 8>, space T*, ulong = 8, ulong2 = 0, bool = false);
LINT_MATRIX_MEMORY(device)
LINT_MATRIX_MEMORY(threadgroup)
template <typename D, typename A, typename B, typename C>
void simdgroup_multiply_accumulate(thread simdgroup_matrix<D, 8, 8>&, simdgroup_matrix<A, 8, 8>, simdgroup_matrix<B, 8, 8>, simdgroup_matrix<C, 8, 8>);
template <typename D, typename A, typename B>
void simdgroup_multiply(thread simdgroup_matrix<D, 8, 8>&, simdgroup_matrix<A, 8, 8>, simdgroup_matrix<B, 8, 8>);

}  // namespace metal

template <typename T, typename U>
T as_type(U);
