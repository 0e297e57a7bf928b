// What SIMD-group and quad-group functions have in common: lanes hand a request to the runtime, which calls one function for
// all lanes that came.
#pragma once
#include "common.h"

namespace msl {

// The kinds of collective that abi.h's msl_simd_collective is told.
enum collective_kind { reduction = 1, shuffle = 2, scan = 3, vote = 4, matrix_product = 5, matrix_access = 6 };

constexpr int simd_width = 32, quad_width = 4;

// One lane's part. source: the lane that it reads, by index in the SIMD-group; or, of a scan and a reduction, unused.
template <class T>
struct request {
  T value, filling, result;
  int source;
  bool from_filling;
  uint arrived;  // which lanes came
};

inline __attribute__((always_inline)) uint own_lane() { return msl_cur_pos->lane; }

// For each lane i of a mask.
#define MSL_LANES(i, mask) for (uint left = (mask), i = 0; left && (i = uint(__builtin_ctz(left)), true); left &= left - 1)

template <class T>
MSL_NOSAN inline request<T>& of_lane(void** requests, uint i) { return *static_cast<request<T>*>(requests[i]); }

// Operations, each with the value that changes nothing.
struct sum {
  template <class T> static MSL_NOSAN T of(const T& a, const T& b) { return T(a + b); }
  template <class T> static MSL_NOSAN T neutral() { return T(0); }
};
struct product {
  template <class T> static MSL_NOSAN T of(const T& a, const T& b) { return T(a * b); }
  template <class T> static MSL_NOSAN T neutral() { return T(1); }
};
template <class T>
MSL_NOSAN T wider_of(const T& a, const T& b, bool larger_one) {
  using metal::max;
  using metal::min;
  if constexpr (metal::is_same_v<T, bfloat>) return T(larger_one ? larger(a, b) : smaller(a, b));
  else return T(larger_one ? max(a, b) : min(a, b));
}
struct maximum {
  template <class T> static MSL_NOSAN T of(const T& a, const T& b) { return wider_of(a, b, true); }
};
struct minimum {
  template <class T> static MSL_NOSAN T of(const T& a, const T& b) { return wider_of(a, b, false); }
};
struct bit_and {
  template <class T> static MSL_NOSAN T of(const T& a, const T& b) { return T(a & b); }
};
struct bit_or {
  template <class T> static MSL_NOSAN T of(const T& a, const T& b) { return T(a | b); }
};
struct bit_xor {
  template <class T> static MSL_NOSAN T of(const T& a, const T& b) { return T(a ^ b); }
};

// n values become one. MSL leaves the order open; msl_reduce_order chooses one, so that a kernel can be run in several.
template <class Operation, class T>
MSL_NOSAN T reduced(T* v, int n) {
  switch (msl_reduce_order) {
    case 1:  // first to last
      for (int i = 1; i < n; i++) v[0] = Operation::of(v[0], v[i]);
      return v[0];
    case 2:  // last to first
      for (int i = n - 2; i >= 0; i--) v[n - 1] = Operation::of(v[n - 1], v[i]);
      return v[n - 1];
    case 3:  // the upper half onto the lower, until one is left
      for (int width = n; width > 1; width = (width + 1) / 2)
        for (int i = 0, half_ = (width + 1) / 2; i + half_ < width; i++) v[i] = Operation::of(v[i], v[i + half_]);
      return v[0];
    default:  // neighbours, then neighbours of pairs: the tree of simd_shuffle_xor
      for (int step = 1; step < n; step *= 2)
        for (int i = 0; i + step < n; i += 2 * step) v[i] = Operation::of(v[i], v[i + step]);
      return v[0];
  }
}

// The reduction over the lanes that came, of each group of `width` lanes.
template <class T, class Operation, int width>
MSL_NOSAN void reduce(void** requests, uint arrived, void*) {
  for (uint first = 0; first < simd_width; first += width) {
    const uint group = arrived & (~0u >> (32 - width)) << first;
    if (!group) continue;
    T values[width];
    int n = 0;
    MSL_LANES(i, group) values[n++] = of_lane<T>(requests, i).value;
    const T result = reduced<Operation>(values, n);
    MSL_LANES(i, group) of_lane<T>(requests, i).result = result;
  }
}

// Prefixes over the lanes that came, in the order of lanes.
template <class T, class Operation, bool inclusive, int width>
MSL_NOSAN void prefixes(void** requests, uint arrived, void*) {
  for (uint first = 0; first < simd_width; first += width) {
    T before = Operation::template neutral<T>();
    MSL_LANES(i, arrived & (~0u >> (32 - width)) << first) {
      request<T>& r = of_lane<T>(requests, i);
      const T with_own = Operation::of(before, r.value);
      r.result = inclusive ? with_own : before;
      before = with_own;
    }
  }
}

// Each lane takes what its source lane brought. From a lane that did not come the value is undefined: that is reported, and
// the lane keeps its own.
template <class T>
MSL_NOSAN void exchange_values(void** requests, uint arrived, void*) {
  MSL_LANES(i, arrived) {
    request<T>& r = of_lane<T>(requests, i);
    if (uint(r.source) < simd_width && (arrived >> r.source & 1)) {
      const request<T>& from = of_lane<T>(requests, uint(r.source));
      r.result = r.from_filling ? from.filling : from.value;
    } else {
      msl_bad_shuffle(i, uint(r.source), arrived);
      r.result = r.value;
    }
  }
}

// result: a bit for each lane that says yes.
MSL_NOSAN inline void ballot(void** requests, uint arrived, void*) {
  uint yes = 0;
  MSL_LANES(i, arrived) yes |= uint(of_lane<uint>(requests, i).value != 0) << i;
  MSL_LANES(i, arrived) {
    of_lane<uint>(requests, i).result = yes;
    of_lane<uint>(requests, i).arrived = arrived;
  }
}

template <class T>
MSL_NOSAN inline T collect(msl_collective_fn fn, collective_kind kind, const T& value, const char* file, int line) {
  request<T> r;
  r.value = value;
  msl_simd_collective(fn, &r, kind, file, line);
  return r.result;
}
template <class T>
MSL_NOSAN inline T take(int source, const T& value, const char* file, int line) {
  request<T> r;
  r.value = value;
  r.source = source;
  r.from_filling = false;
  msl_simd_collective(&exchange_values<T>, &r, shuffle, file, line);
  return r.result;
}
template <class T>
MSL_NOSAN inline T take_or_fill(int source, bool from_filling, const T& value, const T& filling, const char* file, int line) {
  request<T> r;
  r.value = value;
  r.filling = filling;
  r.source = source;
  r.from_filling = from_filling;
  msl_simd_collective(&exchange_values<T>, &r, shuffle, file, line);
  return r.result;
}
struct votes {
  uint yes, arrived;
};
MSL_NOSAN inline votes vote_on(bool value, const char* file, int line) {
  request<uint> r;
  r.value = value;
  msl_simd_collective(&ballot, &r, vote, file, line);
  return {r.result, r.arrived};
}

// Source lanes. A group is `width` lanes, modulo a part of it (a power of two); down and up do not leave it.
MSL_NOSAN inline int group_start(int lane, int width) { return lane & ~(width - 1); }
// Beyond the end a lane keeps its own value, so it is its own source.
MSL_NOSAN inline int down(int lane, int delta, int width) { return (lane & (width - 1)) + delta < width ? lane + delta : lane; }
MSL_NOSAN inline int up(int lane, int delta, int width) { return (lane & (width - 1)) - delta >= 0 ? lane - delta : lane; }
MSL_NOSAN inline int rotated(int lane, int delta, int width) { return group_start(lane, width) | ((lane + delta) & (width - 1)); }

// What a function of values is called with: a swizzle or a packed vector becomes the vector that it stands for.
template <class A, bool = size_of<A> != 0>
struct value_of {
  typedef A type;
};
template <class A>
struct value_of<A, true> {
  typedef vector_like<A> type;
};
template <class A>
using value_t = typename value_of<A>::type;

}  // namespace msl

// The functions that SIMD-groups (prefix simd, 32 lanes) and quad-groups (quad, 4) both have.
#define MSL_GROUP_REDUCTION(prefix, width, name, operation)                                                            \
  template <class A, class T = msl::value_t<A>> inline T prefix##_##name(const A& data, MSL_SITE) {                    \
    return msl::collect<T>(&msl::reduce<T, msl::operation, width>, msl::reduction, T(data), file, line);               \
  }
#define MSL_GROUP_SCAN(prefix, width, name, operation, inclusive)                                                      \
  template <class A, class T = msl::value_t<A>> inline T prefix##_##name(const A& data, MSL_SITE) {                    \
    return msl::collect<T>(&msl::prefixes<T, msl::operation, inclusive, width>, msl::scan, T(data), file, line);       \
  }
#define MSL_GROUP_SHUFFLE(prefix, name, parameter, source_lane)                                                        \
  template <class A, class T = msl::value_t<A>> inline T prefix##_##name(const A& data, ushort parameter, MSL_SITE) {  \
    const int lane = int(msl::own_lane());                                                                             \
    return msl::take<T>(source_lane, T(data), file, line);                                                             \
  }
#define MSL_GROUP_FUNCTIONS(prefix, width)                                                                             \
  MSL_GROUP_REDUCTION(prefix, width, sum, sum)                                                                         \
  MSL_GROUP_REDUCTION(prefix, width, product, product)                                                                 \
  MSL_GROUP_REDUCTION(prefix, width, max, maximum)                                                                     \
  MSL_GROUP_REDUCTION(prefix, width, min, minimum)                                                                     \
  MSL_GROUP_REDUCTION(prefix, width, and, bit_and)                                                                     \
  MSL_GROUP_REDUCTION(prefix, width, or, bit_or)                                                                       \
  MSL_GROUP_REDUCTION(prefix, width, xor, bit_xor)                                                                     \
  MSL_GROUP_SCAN(prefix, width, prefix_inclusive_sum, sum, true)                                                       \
  MSL_GROUP_SCAN(prefix, width, prefix_exclusive_sum, sum, false)                                                      \
  MSL_GROUP_SCAN(prefix, width, prefix_inclusive_product, product, true)                                               \
  MSL_GROUP_SCAN(prefix, width, prefix_exclusive_product, product, false)                                              \
  MSL_GROUP_SHUFFLE(prefix, shuffle, source, msl::group_start(lane, width) + int(source))                              \
  MSL_GROUP_SHUFFLE(prefix, broadcast, source, msl::group_start(lane, width) + int(source))                            \
  MSL_GROUP_SHUFFLE(prefix, shuffle_xor, mask, msl::group_start(lane, width) + ((lane & (width - 1)) ^ int(mask)))     \
  MSL_GROUP_SHUFFLE(prefix, shuffle_down, delta, msl::down(lane, delta, width))                                        \
  MSL_GROUP_SHUFFLE(prefix, shuffle_up, delta, msl::up(lane, delta, width))                                            \
  MSL_GROUP_SHUFFLE(prefix, shuffle_rotate_down, delta, msl::rotated(lane, int(delta), width))                         \
  MSL_GROUP_SHUFFLE(prefix, shuffle_rotate_up, delta, msl::rotated(lane, -int(delta), width))                          \
  /* Data moves down (up) by delta; into what becomes free at the end of each `modulo` lanes comes the start (end) of  \
     filling_data. */                                                                                                  \
  template <class A, class B, class T = msl::value_t<A>>                                                               \
  inline T prefix##_shuffle_and_fill_down(const A& data, const B& filling_data, ushort delta, ushort modulo = width, MSL_SITE) { \
    const int lane = int(msl::own_lane()), parts = int(modulo);                                                        \
    return msl::take_or_fill<T>(msl::rotated(lane, int(delta), parts), (lane & (parts - 1)) + int(delta) >= parts, T(data), \
                                T(filling_data), file, line);                                                          \
  }                                                                                                                    \
  template <class A, class B, class T = msl::value_t<A>>                                                               \
  inline T prefix##_shuffle_and_fill_up(const A& data, const B& filling_data, ushort delta, ushort modulo = width, MSL_SITE) { \
    const int lane = int(msl::own_lane()), parts = int(modulo);                                                        \
    return msl::take_or_fill<T>(msl::rotated(lane, -int(delta), parts), (lane & (parts - 1)) < int(delta), T(data),    \
                                T(filling_data), file, line);                                                          \
  }
