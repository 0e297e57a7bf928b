// as_type<To>(x): the same bits as another type of the same size.
#pragma once
#include "matrix.h"

template <class To, class From>
MSL_INLINE constexpr To as_type(const From& from) {
  static_assert(sizeof(To) == sizeof(From), "as_type: both types must have the same size");
  if constexpr (__is_trivially_copyable(To) && __is_trivially_copyable(From)) {
    return __builtin_bit_cast(To, from);
  } else {  // a vector
    To to;
    __builtin_memcpy(static_cast<void*>(&to), static_cast<const void*>(&from), sizeof(To));
    return to;
  }
}

// A swizzle is a view of a vector: its bits are those of what it names.
template <class To, class T, int N, int... I>
MSL_INLINE constexpr To as_type(const msl::swizzle<T, N, I...>& from) {
  return as_type<To>(metal::vec<T, sizeof...(I)>(from));
}

namespace metal {
using ::as_type;
}
