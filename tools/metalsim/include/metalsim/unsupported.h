// Names of what metalsim does not simulate, so that using one ends in a sentence and not in a heap of errors.
#pragma once
#include "traits.h"

namespace metal {

enum class access { sample, read, write, read_write };

#define MSL_UNSUPPORTED(name, what)                                                                \
  template <class... T>                                                                            \
  struct name##_refused {                                                                          \
    static_assert(sizeof...(T) > 100, "metalsim does not simulate " what);                         \
  };
MSL_UNSUPPORTED(texture, "textures")
MSL_UNSUPPORTED(function_table, "tables of visible functions")
#undef MSL_UNSUPPORTED

#define MSL_TEXTURE(name) \
  template <class T, access a = access::sample> struct name : texture_refused<T> {};
MSL_TEXTURE(texture1d)
MSL_TEXTURE(texture1d_array)
MSL_TEXTURE(texture2d)
MSL_TEXTURE(texture2d_array)
MSL_TEXTURE(texture2d_ms)
MSL_TEXTURE(texture3d)
MSL_TEXTURE(texturecube)
MSL_TEXTURE(texturecube_array)
MSL_TEXTURE(texture_buffer)
MSL_TEXTURE(depth2d)
MSL_TEXTURE(depth2d_array)
MSL_TEXTURE(depthcube)
#undef MSL_TEXTURE

template <class F>
struct visible_function_table : function_table_refused<F> {};

}  // namespace metal
