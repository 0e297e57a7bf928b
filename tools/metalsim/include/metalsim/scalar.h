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
// One whose operation may itself be undefined (a shift, a division): checked, and told at the kernel's line.
#define MSL_CHECKED_INLINE inline __attribute__((always_inline))

// A vector's component by a number that it may not have. Compilers do not check the bounds of an array at the end of a type.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define MSL_CHECKS_INDICES
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define MSL_CHECKS_INDICES
#endif
#ifdef MSL_CHECKS_INDICES
extern "C" void __ubsan_handle_out_of_bounds(void* location, __UINTPTR_TYPE__ index, __UINTPTR_TYPE__ unused);
namespace msl {
struct source_location {
  const char* file;
  uint line, column;
};
inline source_location here = {__FILE__, __LINE__, 1};
}  // namespace msl
#define MSL_CHECK_INDEX(i, n) \
  if (__builtin_expect(uint(i) >= uint(n), 0)) __ubsan_handle_out_of_bounds(&msl::here, uint(i), 0);
#else
#define MSL_CHECK_INDEX(i, n)
#endif

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
