// Vectors of 2, 3 and 4 components, their packed forms, swizzles and operators.
#pragma once
#include "limits.h"
#include "swizzles.h"

namespace metal {
template <class T, int N>
struct vec;
template <class T, int N>
struct packed_vec;
}  // namespace metal

namespace msl {

template <class T, int N, int... I>
struct swizzle;

// What a type is as a vector: its size (0: none), element type, and the plain vector of that kind.
template <class V>
struct vector_traits {
  static constexpr int size = 0;
};
template <class T, int N>
struct vector_traits_of {
  static constexpr int size = N;
  typedef T element;
  typedef metal::vec<T, N> type;
};
template <class T, int N>
struct vector_traits<metal::vec<T, N>> : vector_traits_of<T, N> {};
template <class T, int N>
struct vector_traits<metal::packed_vec<T, N>> : vector_traits_of<T, N> {};
template <class T, int N, int... I>
struct vector_traits<swizzle<T, N, I...>> : vector_traits_of<T, sizeof...(I)> {};

template <class V>
using vector_like = typename vector_traits<V>::type;
template <class V>
using element_of = typename vector_traits<V>::element;
template <class V>
constexpr int size_of = vector_traits<V>::size;

// The vector that several operands have in common: vectors of one kind, and scalars, which are spread. No such type (and so
// no such operator) where two vectors differ: MSL converts none of them by itself.
template <class Known, bool fits, class... Rest>
struct join {};
template <class Known>
struct join<Known, true> {
  typedef Known type;
};
template <>
struct join<void, true> {};
template <class Known, class A>
constexpr bool joins = size_of<A> == 0 ? metal::is_arithmetic_v<A> || metal::is_enum_v<A> : true;
template <class T, int N, class A>
constexpr bool joins<metal::vec<T, N>, A> = size_of<A> == 0 ? metal::is_arithmetic_v<A> || metal::is_enum_v<A> : false;
template <class T, int N>
constexpr bool joins<metal::vec<T, N>, metal::vec<T, N>> = true;
template <class T, int N>
constexpr bool joins<metal::vec<T, N>, metal::packed_vec<T, N>> = true;
template <class T, int N, int M, int... I>
constexpr bool joins<metal::vec<T, N>, swizzle<T, M, I...>> = sizeof...(I) == N;
template <class Known, class A, bool is_vector = size_of<A> != 0>
struct known_after {
  typedef Known type;
};
template <class A>
struct known_after<void, A, true> {
  typedef vector_like<A> type;
};
template <class Known, class A, class... Rest>
struct join<Known, true, A, Rest...> : join<typename known_after<Known, A>::type, joins<Known, A>, Rest...> {};
template <class... A>
using joined = typename join<void, true, A...>::type;

template <int... I>
constexpr bool all_different() {
  const int indices[] = {I...};
  for (int i = 0; i < int(sizeof...(I)); i++)
    for (int j = 0; j < i; j++)
      if (indices[i] == indices[j]) return false;
  return true;
}

// Components of a value by number: a swizzle of a swizzle (see rewrite/swizzles.py).
#define MSL_PICK(components)                                                         \
  template <int... K> MSL_INLINE constexpr auto msl_pick() const {                   \
    if constexpr (sizeof...(K) == 1) return ((components)[K], ...);                  \
    else return metal::vec<T, sizeof...(K)>((components)[K]...);                     \
  }

// `v.zyx`: lies over the whole of v's N elements and reaches components I of them. It becomes a vector where one is wanted.
template <class T, int N, int... I>
struct swizzle {
  T e[N];

  typedef metal::vec<T, sizeof...(I)> vector;
  MSL_INLINE constexpr operator vector() const { return vector(e[I]...); }
  MSL_INLINE constexpr swizzle& operator=(const vector& v) {
    static_assert(all_different<I...>(), "a swizzle that names a component twice cannot be written");
    int k = 0;
    ((e[I] = v.e[k++]), ...);
    return *this;
  }
  MSL_INLINE constexpr swizzle& operator=(const swizzle& other) { return *this = vector(other); }
  MSL_INLINE constexpr T operator[](int i) const { return vector(*this).e[i]; }
  MSL_PICK(vector(*this).e)
  swizzle() = default;
  swizzle(const swizzle&) = default;
};

// Where a swizzle of two stays what it is (`auto p = v.zx;`), its components have their names, each behind as many elements
// as come before it. (Longer ones have p[0], p[1] … alone: names for all 336 swizzles of a type would double the time that a
// kernel takes to compile.)
template <class T, int N, int I, int J>
struct swizzle<T, N, I, J> {
  union {
    T e[N];
    struct { T before_x[I]; T x; };
    struct { T before_y[J]; T y; };
  };

  typedef metal::vec<T, 2> vector;
  MSL_INLINE constexpr operator vector() const { return vector(e[I], e[J]); }
  MSL_INLINE constexpr swizzle& operator=(const vector& v) {
    static_assert(I != J, "a swizzle that names a component twice cannot be written");
    e[I] = v.e[0];
    e[J] = v.e[1];
    return *this;
  }
  MSL_INLINE constexpr swizzle& operator=(const swizzle& other) { return *this = vector(other); }
  MSL_INLINE constexpr T operator[](int i) const { return vector(*this).e[i]; }
  MSL_PICK(vector(*this).e)
  swizzle() = default;
  swizzle(const swizzle&) = default;
};

// Components that a constructor's argument brings: those of a vector, else one.
template <class P>
constexpr int components = size_of<P> == 0 ? 1 : size_of<P>;

template <int N, class... P>
constexpr bool fill = (components<P> + ...) == N || (((size_of<P> == 0) && ...) && int(sizeof...(P)) < N);

template <class T, class P>
MSL_INLINE constexpr void put(T* elements, int& at, const P& part) {
  if constexpr (size_of<P> == 0) {
    elements[at++] = T(part);
  } else {
    const vector_like<P> v(part);
    for (int i = 0; i < size_of<P>; i++) elements[at++] = T(v.e[i]);
  }
}

template <class T, int N>
struct elements {
  T e[N];
};

#define MSL_COMPONENTS_2(T) struct { T x, y; }; struct { T r, g; }; MSL_SWIZZLES_2(T)
#define MSL_COMPONENTS_3(T) struct { T x, y, z; }; struct { T r, g, b; }; MSL_SWIZZLES_3(T)
#define MSL_COMPONENTS_4(T) struct { T x, y, z, w; }; struct { T r, g, b, a; }; MSL_SWIZZLES_4(T)

// What plain and packed vectors share. Self: the type's own name. The elements are assigned as a whole, so that the
// checker sees one access.
#define MSL_VECTOR_MEMBERS(Self, T, N)                                                                                     \
  union { T e[N]; MSL_COMPONENTS_##N(T) };                                                                                 \
  Self() = default;                                                                                                        \
  /* one scalar for all components */                                                                                      \
  MSL_INLINE constexpr Self(T s) : e{} { for (int i = 0; i < N; i++) e[i] = s; }                                           \
  template <class U, metal::enable_if_t<metal::is_arithmetic_v<U> && !metal::is_same_v<U, T>, int> = 0>                    \
  MSL_INLINE constexpr Self(U s) : Self(T(s)) {}                                                                           \
  /* parts, scalars and vectors, that make N components together; of scalars fewer: the rest are zeros, as in a list {a, b, c} */                                                        \
  template <class A, class B, class... P, metal::enable_if_t<msl::fill<N, A, B, P...>, int> = 0>                                    \
  MSL_INLINE constexpr Self(const A& first, const B& second, const P&... rest) : e{} {                                     \
    int at = 0;                                                                                                            \
    msl::put(e, at, first);                                                                                                \
    msl::put(e, at, second);                                                                                               \
    (msl::put(e, at, rest), ...);                                                                                          \
  }                                                                                                                        \
  /* conversion of every component */                                                                                      \
  template <class V, metal::enable_if_t<msl::size_of<V> == N, int> = 0, metal::enable_if_t<!metal::is_same_v<msl::element_of<V>, T>, int> = 0> \
  MSL_INLINE constexpr explicit Self(const V& v) : e{} { int at = 0; msl::put(e, at, v); }                                 \
  MSL_INLINE Self& operator=(const Self& o) {                                                                              \
    reinterpret_cast<msl::elements<T, N>&>(e) = reinterpret_cast<const msl::elements<T, N>&>(o.e);                         \
    return *this;                                                                                                          \
  }                                                                                                                        \
  MSL_INLINE constexpr T& operator[](int i) { MSL_CHECK_INDEX(i, N) return e[i]; }                                         \
  MSL_INLINE constexpr const T& operator[](int i) const { MSL_CHECK_INDEX(i, N) return e[i]; }                             \
  MSL_PICK(e)

}  // namespace msl

namespace metal {

template <class T>
struct alignas(2 * sizeof(T)) vec<T, 2> {
  MSL_VECTOR_MEMBERS(vec, T, 2)
  vec(const vec&) = default;
};

template <class T>
struct alignas(4 * sizeof(T)) vec<T, 3> {
  MSL_VECTOR_MEMBERS(vec, T, 3)
  MSL_INLINE constexpr vec(const vec& o) : e{o.e[0], o.e[1], o.e[2]} {}  // the fourth is padding, which is never read
};

template <class T>
struct alignas(4 * sizeof(T)) vec<T, 4> {
  MSL_VECTOR_MEMBERS(vec, T, 4)
  vec(const vec&) = default;
};

// As in memory: aligned as one element. Arithmetic turns it into a plain vector.
#define MSL_PACKED(N)                                                                          \
  template <class T> struct packed_vec<T, N> {                                                 \
    MSL_VECTOR_MEMBERS(packed_vec, T, N)                                                       \
    packed_vec(const packed_vec&) = default;                                                   \
    MSL_INLINE constexpr packed_vec(const vec<T, N>& v) : e{} { MSL_EACH(N, e[i] = v.e[i]) }   \
    template <int M, int... I, enable_if_t<sizeof...(I) == N, int> = 0>                        \
    MSL_INLINE constexpr packed_vec(const msl::swizzle<T, M, I...>& v) : packed_vec(vec<T, N>(v)) {} \
    MSL_INLINE constexpr operator vec<T, N>() const {                                          \
      vec<T, N> v{};                                                                           \
      MSL_EACH(N, v.e[i] = e[i])                                                               \
      return v;                                                                                \
    }                                                                                          \
  };
MSL_PACKED(2)
MSL_PACKED(3)
MSL_PACKED(4)
#undef MSL_PACKED

// Operators, component by component, of vectors and scalars.
#define MSL_ASSIGNMENT(op)                                                                                      \
  template <class A, class B, class V = msl::vector_like<A>, class = msl::joined<A, B>>                         \
  MSL_CHECKED_INLINE constexpr A& operator op##=(A& a, const B& b) { a = V(a op b); return a; }
#define MSL_BINARY(op)                                                                                          \
  template <class A, class B, class V = msl::joined<A, B>>                                                      \
  MSL_CHECKED_INLINE constexpr V operator op(const A& a, const B& b) {                                                  \
    typedef msl::element_of<V> T;                                                                               \
    const V x(a), y(b);                                                                                         \
    V r{};                                                                                                      \
    MSL_EACH(msl::size_of<V>, r.e[i] = T(x.e[i] op y.e[i]))                                                     \
    return r;                                                                                                   \
  }                                                                                                             \
  MSL_ASSIGNMENT(op)
MSL_BINARY(+)
MSL_BINARY(-)
MSL_BINARY(*)
MSL_BINARY(/)
MSL_BINARY(%)
MSL_BINARY(&)
MSL_BINARY(|)
MSL_BINARY(^)
#undef MSL_BINARY

// A shift's count may have another element type than what it shifts.
#define MSL_SHIFT(op)                                                                                           \
  template <class A, class B, class V = msl::vector_like<A>, metal::enable_if_t<msl::size_of<B> == 0 || msl::size_of<B> == msl::size_of<V>, int> = 0> \
  MSL_CHECKED_INLINE constexpr V operator op(const A& a, const B& b) {                                                  \
    typedef msl::element_of<V> T;                                                                               \
    const V x(a);                                                                                               \
    V r{};                                                                                                      \
    if constexpr (msl::size_of<B> == 0) {                                                                       \
      MSL_EACH(msl::size_of<V>, r.e[i] = T(x.e[i] op b))                                                        \
    } else {                                                                                                    \
      const msl::vector_like<B> y(b);                                                                           \
      MSL_EACH(msl::size_of<V>, r.e[i] = T(x.e[i] op y.e[i]))                                                   \
    }                                                                                                           \
    return r;                                                                                                   \
  }                                                                                                             \
  template <class A, class B, class V = msl::vector_like<A>, metal::enable_if_t<msl::size_of<B> == 0 || msl::size_of<B> == msl::size_of<V>, int> = 0> \
  MSL_CHECKED_INLINE constexpr A& operator op##=(A& a, const B& b) { a = V(a op b); return a; }
MSL_SHIFT(<<)
MSL_SHIFT(>>)
#undef MSL_SHIFT
#undef MSL_ASSIGNMENT

#define MSL_COMPARISON(op)                                                                  \
  template <class A, class B, class V = msl::joined<A, B>>                                  \
  MSL_INLINE constexpr vec<bool, msl::size_of<V>> operator op(const A& a, const B& b) {     \
    const V x(a), y(b);                                                                     \
    vec<bool, msl::size_of<V>> r{};                                                         \
    MSL_EACH(msl::size_of<V>, r.e[i] = x.e[i] op y.e[i])                                    \
    return r;                                                                               \
  }
MSL_COMPARISON(==)
MSL_COMPARISON(!=)
MSL_COMPARISON(<)
MSL_COMPARISON(>)
MSL_COMPARISON(<=)
MSL_COMPARISON(>=)
MSL_COMPARISON(&&)
MSL_COMPARISON(||)
#undef MSL_COMPARISON

#define MSL_UNARY(op, R)                                                 \
  template <class A, class V = msl::vector_like<A>>                      \
  MSL_INLINE constexpr R operator op(const A& a) {                       \
    const V x(a);                                                        \
    R r{};                                                               \
    MSL_EACH(msl::size_of<V>, r.e[i] = msl::element_of<R>(op x.e[i]))    \
    return r;                                                            \
  }
MSL_UNARY(+, V)
MSL_UNARY(-, V)
MSL_UNARY(~, V)
#define MSL_BOOLS vec<bool, msl::size_of<V>>
MSL_UNARY(!, MSL_BOOLS)
#undef MSL_BOOLS
#undef MSL_UNARY

#define MSL_STEP(op)                                                                                   \
  template <class A, class V = msl::vector_like<A>>                                                    \
  MSL_INLINE constexpr A& operator op##op(A& a) { a = V(a op msl::element_of<V>(1)); return a; }       \
  template <class A, class V = msl::vector_like<A>>                                                    \
  MSL_INLINE constexpr V operator op##op(A& a, int) { const V old(a); a = V(old op msl::element_of<V>(1)); return old; }
MSL_STEP(+)
MSL_STEP(-)
#undef MSL_STEP

}  // namespace metal

// float2 … packed_ulong4, which MSL names outside of namespace metal too.
#define MSL_VECTOR_NAMES(T)                          \
  typedef metal::vec<T, 2> T##2;                     \
  typedef metal::vec<T, 3> T##3;                     \
  typedef metal::vec<T, 4> T##4;                     \
  typedef metal::packed_vec<T, 2> packed_##T##2;     \
  typedef metal::packed_vec<T, 3> packed_##T##3;     \
  typedef metal::packed_vec<T, 4> packed_##T##4;     \
  namespace metal {                                  \
  using ::T##2;                                      \
  using ::T##3;                                      \
  using ::T##4;                                      \
  using ::packed_##T##2;                             \
  using ::packed_##T##3;                             \
  using ::packed_##T##4;                             \
  }
MSL_VECTOR_NAMES(bool)
MSL_VECTOR_NAMES(char)
MSL_VECTOR_NAMES(uchar)
MSL_VECTOR_NAMES(short)
MSL_VECTOR_NAMES(ushort)
MSL_VECTOR_NAMES(int)
MSL_VECTOR_NAMES(uint)
MSL_VECTOR_NAMES(long)
MSL_VECTOR_NAMES(ulong)
MSL_VECTOR_NAMES(half)
MSL_VECTOR_NAMES(bfloat)
MSL_VECTOR_NAMES(float)
#undef MSL_VECTOR_NAMES

namespace metal {
using ::bfloat;
using ::half;
using ::uchar;
using ::uint;
using ::ulong;
using ::ushort;
}  // namespace metal
