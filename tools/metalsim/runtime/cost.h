// Cost mode: counts instead of checks.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

// `code`: the kernel library's text, whose basic blocks are counted.
void reset_cost(Counters* counters, const void* library_base, size_t library_bytes);
void count_access(const void* address, size_t bytes, bool writes);
void count_atomic(const void* address, size_t bytes, bool writes);
void count_collective(int kind);  // 0: a SIMD-group barrier
void count_barrier();
void count_block(const void* pc);
// What a SIMD-group function does inside is counted as that function, not as arithmetic.
void pause_counting(bool paused);

// Sums up what was touched, and appends (pc, count) of each block to the file at `offset`; how many.
uint64_t finish_cost(int file, uint64_t offset);
