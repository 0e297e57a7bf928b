// <metal_pack>: normalized integers packed into words. The first component lies in the lowest bits.
#pragma once
#include "geometric.h"

namespace msl {

// x in [0, 1] as an integer of so many bits, to nearest even; outside of it, and NaN, at the ends.
MSL_NOSAN inline uint unorm(float x, int bits) {
  return uint(__builtin_rintf(metal::saturate(x) * float((1u << bits) - 1)));
}
MSL_NOSAN inline uint snorm(float x, int bits) {
  const float inside = smaller(larger(x, -1.0f), 1.0f);
  return uint(int(__builtin_rintf((x != x ? 0.0f : inside) * float((1u << (bits - 1)) - 1)))) & ~0u >> (32 - bits);
}
MSL_NOSAN inline float from_unorm(uint x, int at, int bits) {
  return float(x >> at & ~0u >> (32 - bits)) / float((1u << bits) - 1);
}
MSL_NOSAN inline float from_snorm(uint x, int at, int bits) {
  const int value = int(x << (32 - bits - at)) >> (32 - bits);
  return larger(float(value) / float((1u << (bits - 1)) - 1), -1.0f);
}

MSL_NOSAN inline float to_srgb(float x) {
  const float c = metal::saturate(x);
  return c < 0.0031308f ? 12.92f * c : 1.055f * __builtin_powf(c, 1.0f / 2.4f) - 0.055f;
}
MSL_NOSAN inline float from_srgb(float c) {
  return c <= 0.04045f ? c / 12.92f : __builtin_powf((c + 0.055f) / 1.055f, 2.4f);
}

}  // namespace msl

namespace metal {

#define MSL_PACK(T)                                                                                                    \
  MSL_NOSAN inline uint pack_##T##_to_unorm4x8(T##4 v) {                                                               \
    return msl::unorm(v.x, 8) | msl::unorm(v.y, 8) << 8 | msl::unorm(v.z, 8) << 16 | msl::unorm(v.w, 8) << 24;         \
  }                                                                                                                    \
  MSL_NOSAN inline uint pack_##T##_to_snorm4x8(T##4 v) {                                                               \
    return msl::snorm(v.x, 8) | msl::snorm(v.y, 8) << 8 | msl::snorm(v.z, 8) << 16 | msl::snorm(v.w, 8) << 24;         \
  }                                                                                                                    \
  MSL_NOSAN inline uint pack_##T##_to_srgb_unorm4x8(T##4 v) {                                                          \
    return msl::unorm(msl::to_srgb(v.x), 8) | msl::unorm(msl::to_srgb(v.y), 8) << 8 |                                  \
           msl::unorm(msl::to_srgb(v.z), 8) << 16 | msl::unorm(v.w, 8) << 24;                                          \
  }                                                                                                                    \
  MSL_NOSAN inline uint pack_##T##_to_unorm2x16(T##2 v) { return msl::unorm(v.x, 16) | msl::unorm(v.y, 16) << 16; }    \
  MSL_NOSAN inline uint pack_##T##_to_snorm2x16(T##2 v) { return msl::snorm(v.x, 16) | msl::snorm(v.y, 16) << 16; }    \
  MSL_NOSAN inline uint pack_##T##_to_unorm10a2(T##4 v) {                                                              \
    return msl::unorm(v.x, 10) | msl::unorm(v.y, 10) << 10 | msl::unorm(v.z, 10) << 20 | msl::unorm(v.w, 2) << 30;     \
  }                                                                                                                    \
  MSL_NOSAN inline ushort pack_##T##_to_unorm565(T##3 v) {                                                             \
    return ushort(msl::unorm(v.x, 5) | msl::unorm(v.y, 6) << 5 | msl::unorm(v.z, 5) << 11);                            \
  }                                                                                                                    \
  MSL_NOSAN inline T##4 unpack_unorm4x8_to_##T(uint x) {                                                               \
    return T##4(msl::from_unorm(x, 0, 8), msl::from_unorm(x, 8, 8), msl::from_unorm(x, 16, 8), msl::from_unorm(x, 24, 8)); \
  }                                                                                                                    \
  MSL_NOSAN inline T##4 unpack_snorm4x8_to_##T(uint x) {                                                               \
    return T##4(msl::from_snorm(x, 0, 8), msl::from_snorm(x, 8, 8), msl::from_snorm(x, 16, 8), msl::from_snorm(x, 24, 8)); \
  }                                                                                                                    \
  MSL_NOSAN inline T##4 unpack_unorm4x8_srgb_to_##T(uint x) {                                                          \
    return T##4(msl::from_srgb(msl::from_unorm(x, 0, 8)), msl::from_srgb(msl::from_unorm(x, 8, 8)),                    \
                msl::from_srgb(msl::from_unorm(x, 16, 8)), msl::from_unorm(x, 24, 8));                                 \
  }                                                                                                                    \
  MSL_NOSAN inline T##2 unpack_unorm2x16_to_##T(uint x) {                                                              \
    return T##2(msl::from_unorm(x, 0, 16), msl::from_unorm(x, 16, 16));                                                \
  }                                                                                                                    \
  MSL_NOSAN inline T##2 unpack_snorm2x16_to_##T(uint x) {                                                              \
    return T##2(msl::from_snorm(x, 0, 16), msl::from_snorm(x, 16, 16));                                                \
  }                                                                                                                    \
  MSL_NOSAN inline T##4 unpack_unorm10a2_to_##T(uint x) {                                                              \
    return T##4(msl::from_unorm(x, 0, 10), msl::from_unorm(x, 10, 10), msl::from_unorm(x, 20, 10), msl::from_unorm(x, 30, 2)); \
  }                                                                                                                    \
  MSL_NOSAN inline T##3 unpack_unorm565_to_##T(ushort x) {                                                             \
    return T##3(msl::from_unorm(x, 0, 5), msl::from_unorm(x, 5, 6), msl::from_unorm(x, 11, 5));                        \
  }
MSL_PACK(float)
MSL_PACK(half)
#undef MSL_PACK

}  // namespace metal
