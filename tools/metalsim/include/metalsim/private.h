// Private variables under the checker's eyes: what rewrite/private_variables.py puts behind their declarations.
#pragma once
#include "vector.h"

namespace msl {

#ifdef MSL_CHECK

// An array with room around it that nobody may touch.
constexpr size_t zone_bytes = 64;
template <class A>
struct zoned {
  char before[zone_bytes];
  A value;
  char after[zone_bytes];
};
#define MSL_BEFORE {},
#define MSL_AFTER , {}

// What may be read only once it was written: numbers and vectors. Structures have padding and members that nobody needs.
template <class A>
constexpr bool holds_numbers = metal::is_arithmetic_v<metal::remove_all_extents_t<A>> || size_of<metal::remove_all_extents_t<A>> != 0;

// For as long as a variable lives. Its address is given away, so that its accesses are seen.
struct watched {
  void* begin = nullptr;
  size_t bytes = 0;

  template <class A>
  MSL_INLINE explicit watched(A& variable) {
    if constexpr (holds_numbers<A>) {
      begin = &variable;
      bytes = sizeof variable;
      msl_private_begins(begin, bytes, 0, true);
    }
  }
  template <class A>
  MSL_INLINE watched(zoned<A>& zone, bool initialised) : begin(&zone), bytes(sizeof zone) {
    msl_private_begins(&zone.value, sizeof zone.value, zone_bytes, holds_numbers<A> && !initialised);
  }
  MSL_INLINE ~watched() {
    if (bytes) msl_private_ends(begin, bytes);
  }
};

#else

template <class A>
struct zoned {
  A value;
};
#define MSL_BEFORE
#define MSL_AFTER

struct watched {
  template <class... A>
  MSL_INLINE explicit watched(A&&...) {}
};

#endif

}  // namespace msl
