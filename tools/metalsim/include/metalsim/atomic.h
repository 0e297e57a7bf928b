// <metal_atomic>. One lane runs at a time, so a plain read and write is atomic; the checker is told that it was meant so.
#pragma once
#include "matrix.h"
#include "synchronization.h"

namespace metal {

template <class T>
struct atomic {
  T value;
};
typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<long> atomic_long;
typedef atomic<ulong> atomic_ulong;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;

}  // namespace metal

namespace msl {

// The accesses themselves stand in functions of their own, which are not instrumented: they are no plain accesses.
template <class T>
MSL_NOSAN __attribute__((noinline)) T read_atomically(const volatile metal::atomic<T>* object) { return object->value; }
template <class T>
MSL_NOSAN __attribute__((noinline)) T exchange_atomically(volatile metal::atomic<T>* object, T value) {
  const T old = object->value;
  object->value = value;
  return old;
}
template <class T>
MSL_INLINE T load(const volatile metal::atomic<T>* object) {
  msl_atomic_touch(object, sizeof(T), 0);
  return read_atomically(object);
}
template <class T>
MSL_INLINE T exchange(volatile metal::atomic<T>* object, T value) {
  msl_atomic_touch(object, sizeof(T), 1);
  return exchange_atomically(object, value);
}
// The type that a template argument is not deduced from: fetch_add of a float atomic takes an int literal.
template <class T>
struct exactly {
  typedef T type;
};
template <class T>
using exactly_t = typename exactly<T>::type;

}  // namespace msl

namespace metal {

template <class T>
MSL_INLINE T atomic_load_explicit(const volatile atomic<T>* object, memory_order) { return msl::load(object); }
template <class T>
MSL_INLINE void atomic_store_explicit(volatile atomic<T>* object, msl::exactly_t<T> desired, memory_order) {
  msl::exchange(object, desired);
}
template <class T>
MSL_INLINE T atomic_exchange_explicit(volatile atomic<T>* object, msl::exactly_t<T> desired, memory_order) {
  return msl::exchange(object, desired);
}

// Compares bits, as the hardware does: a NaN equals itself. Never fails without reason, though it may.
template <class T>
MSL_INLINE bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* object, T* expected, msl::exactly_t<T> desired, memory_order, memory_order) {
  msl_atomic_touch(object, sizeof(T), 2);
  const T found = msl::read_atomically(object), wanted = *expected;
  if (__builtin_memcmp(&found, &wanted, sizeof(T)) == 0) {
    msl::exchange_atomically(object, T(desired));
    return true;
  }
  *expected = found;
  return false;
}

#define MSL_FETCH(name, expression)                                                                          \
  template <class T>                                                                                         \
  MSL_INLINE T atomic_fetch_##name##_explicit(volatile atomic<T>* object, msl::exactly_t<T> x, memory_order) { \
    msl_atomic_touch(object, sizeof(T), 2);                                                                  \
    const T old = msl::read_atomically(object);                                                              \
    msl::exchange_atomically(object, T(expression));                                                         \
    return old;                                                                                              \
  }
MSL_FETCH(add, old + x)
MSL_FETCH(sub, old - x)
MSL_FETCH(max, old < x ? x : old)
MSL_FETCH(min, x < old ? x : old)
MSL_FETCH(and, old & x)
MSL_FETCH(or, old | x)
MSL_FETCH(xor, old ^ x)
#undef MSL_FETCH

// Of ulong MSL has these two alone, which return nothing.
template <class T>
MSL_INLINE void atomic_max_explicit(volatile atomic<T>* object, msl::exactly_t<T> x, memory_order order) {
  atomic_fetch_max_explicit(object, x, order);
}
template <class T>
MSL_INLINE void atomic_min_explicit(volatile atomic<T>* object, msl::exactly_t<T> x, memory_order order) {
  atomic_fetch_min_explicit(object, x, order);
}

}  // namespace metal
