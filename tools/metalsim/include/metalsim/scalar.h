// MSL's scalar type names, and the attributes that the library's own functions carry.
#pragma once
#include "abi.h"

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long uint64_t;
typedef __SIZE_TYPE__ size_t;
typedef __PTRDIFF_TYPE__ ptrdiff_t;
typedef __UINTPTR_TYPE__ uintptr_t;
typedef __INTPTR_TYPE__ intptr_t;

static_assert(sizeof(long) == 8, "MSL's long has 64 bits");
static_assert(char(-1) < 0, "MSL's char is signed: compile with -fsigned-char");

// A function through which a kernel reaches its own memory. It is always inlined, so that the checker sees the access at the
// kernel's line, and it carries no undefined-behaviour checks of its own, which would point into the library.
#define MSL_INLINE inline __attribute__((always_inline, no_sanitize("undefined")))

// Default arguments that name the caller: `f(x)` knows the line of the kernel that it stands in.
#define MSL_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

// A statement for each component i of N (2, 3 or 4). At -O1 compilers keep a loop of four as a loop.
#define MSL_EACH(N, ...)                                       \
  {                                                            \
    { constexpr int i = 0; __VA_ARGS__; }                      \
    { constexpr int i = 1; __VA_ARGS__; }                      \
    if constexpr ((N) > 2) { constexpr int i = 2; __VA_ARGS__; } \
    if constexpr ((N) > 3) { constexpr int i = 3; __VA_ARGS__; } \
  }
