// What the generated msl_entry uses: a kernel's arguments, made of what the runtime gives, by the types that its parameters have.
#pragma once
#include "vector.h"

namespace msl {

template <int I, class First, class... Rest>
struct nth : nth<I - 1, Rest...> {};
template <class First, class... Rest>
struct nth<0, First, Rest...> {
  typedef First type;
};

// For decltype: a pointer to (pick), a value of (pickr) the type of parameter I of a function.
template <int I, class R, class... A>
typename nth<I, A...>::type* pick(R (*)(A...));
template <int I, class R, class... A>
typename nth<I, A...>::type&& pickr(R (*)(A...));

// A [[buffer(n)]] parameter: a pointer or a reference.
template <class P>
struct bufarg {
  static_assert(metal::is_pointer_v<P>, "a buffer parameter is a pointer or a reference");
  static P get(void* buffer) { return static_cast<P>(buffer); }
};
template <class T>
struct bufarg<T&> {
  static T& get(void* buffer) { return *static_cast<T*>(buffer); }
};
template <class P>
struct bufarg<P&&> : bufarg<P> {};
template <class T>
struct bufarg<const T*> {
  static const T* get(const void* buffer) { return static_cast<const T*>(buffer); }
};
template <class T>
struct bufarg<volatile T*> {
  static volatile T* get(void* buffer) { return static_cast<volatile T*>(buffer); }
};

// The bytes of memory that the checker watches as one: an element's, 4 at most; and whether the elements are scalars.
template <class A>
constexpr uint granule_of() {
  typedef metal::remove_all_extents_t<A> element;
  constexpr size_t alignment = alignof(element);
  return (alignment < 4 ? uint(alignment) : 4u) | (metal::is_arithmetic_v<element> ? MSL_SCALARS : 0u);
}

// A [[threadgroup(n)]] parameter.
template <class P>
struct dynarg;
template <class T>
struct dynarg<T*> {
  static T* get(uint index) { return static_cast<T*>(msl_tg_dyn(index, granule_of<T>())); }
};
template <class T>
struct dynarg<T&> {
  static T& get(uint index) { return *static_cast<T*>(msl_tg_dyn(index, granule_of<T>())); }
};
template <class P>
struct dynarg<P&&> : dynarg<P> {};

// A position or size, of as many components as the parameter has. v: three of them.
template <class P>
struct posarg {
  static P get(const uint* v) { return P(v[0]); }
};
template <class T>
struct posarg<metal::vec<T, 2>> {
  static metal::vec<T, 2> get(const uint* v) { return {T(v[0]), T(v[1])}; }
};
template <class T>
struct posarg<metal::vec<T, 3>> {
  static metal::vec<T, 3> get(const uint* v) { return {T(v[0]), T(v[1]), T(v[2])}; }
};

// A variable in threadgroup memory.
template <class A>
MSL_INLINE A& tg_var(uint id, const char* name) {
  constexpr size_t alignment = alignof(A) < 16 ? 16 : alignof(A);
  return *static_cast<A*>(msl_tg_var(id, name, sizeof(A), alignment, granule_of<A>()));
}

}  // namespace msl
