// <metal_common>: clamp, mix, saturate, sign, smoothstep, step.
#pragma once
#include "integer.h"

namespace metal {

template <class T, msl::if_integer<T> = 0>
MSL_NOSAN constexpr T clamp(T x, T low, T high) { return min(max(x, low), high); }
MSL_NOSAN inline float clamp(float x, float low, float high) { return fmin(fmax(x, low), high); }
MSL_NOSAN inline half clamp(half x, half low, half high) { return fmin(fmax(x, low), high); }
MSL_VECTOR_3(clamp)

// Rounded after each of its operations, in the type of its arguments.
MSL_NOSAN inline float mix(float x, float y, float a) { return x + (y - x) * a; }
MSL_NOSAN inline half mix(half x, half y, half a) { return half(x + (y - x) * a); }
MSL_VECTOR_3(mix)

// NaN becomes 0.
MSL_FLOAT_1(saturate, msl::smaller(msl::larger(x, 0.0f), 1.0f))
// 0 keeps its sign, NaN becomes 0.
MSL_FLOAT_1(sign, x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x != x ? 0.0f : x)
MSL_FLOAT_2(step, y < x ? 0.0f : 1.0f)

MSL_NOSAN inline float smoothstep(float low, float high, float x) {
  const float t = saturate((x - low) / (high - low));
  return t * t * (3.0f - 2.0f * t);
}
MSL_NOSAN inline half smoothstep(half low, half high, half x) { return half(smoothstep(float(low), float(high), float(x))); }
MSL_VECTOR_3(smoothstep)

}  // namespace metal
