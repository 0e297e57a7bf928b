// [[function_constant(n)]]: the front turns one into a static variable, which the host gives a value before it launches.
#pragma once
#include "scalar.h"

namespace msl {

// Where constants that have a value live; MSL allows indices up to 65535, but no kernel declares as many as this.
inline const void* defined_constants[256];
inline int count_of_defined_constants = 0;

// value: the constant's bytes. For the generated msl_set_constant.
template <class T>
void define_constant(T& constant, const void* value) {
  __builtin_memcpy(static_cast<void*>(&constant), value, sizeof(T));
  for (int i = 0; i < count_of_defined_constants; i++)
    if (defined_constants[i] == &constant) return;
  if (count_of_defined_constants == 256) __builtin_trap();
  defined_constants[count_of_defined_constants++] = &constant;
}

}  // namespace msl

namespace metal {

template <class T>
bool is_function_constant_defined(const T& constant) {
  for (int i = 0; i < msl::count_of_defined_constants; i++)
    if (msl::defined_constants[i] == static_cast<const void*>(&constant)) return true;
  return false;
}

}  // namespace metal
