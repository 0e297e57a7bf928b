// Barriers and fences (<metal_compute>).
#pragma once
#include "scalar.h"

namespace metal {

enum class mem_flags : uint {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8,
  mem_object_data = 16,
};
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(uint(a) | uint(b)); }
constexpr mem_flags operator&(mem_flags a, mem_flags b) { return mem_flags(uint(a) & uint(b)); }

enum memory_order : int {
  memory_order_relaxed = 0,
  memory_order_acquire = 2,
  memory_order_release = 3,
  memory_order_acq_rel = 4,
  memory_order_seq_cst = 5,
};
enum thread_scope : int {
  thread_scope_thread = 1,
  thread_scope_simdgroup = 2,
  thread_scope_threadgroup = 3,
  thread_scope_device = 4,
};

inline void threadgroup_barrier(mem_flags flags, MSL_SITE) { msl_tg_barrier(uint(flags), file, line); }
inline void simdgroup_barrier(mem_flags flags, MSL_SITE) { msl_simd_barrier(uint(flags), file, line); }

// A fence makes nobody wait, and threads here see every write at once: only the checker has to know.
inline void atomic_thread_fence(mem_flags flags, memory_order order, thread_scope scope = thread_scope_device) {
  msl_fence(uint(flags), int(order), int(scope));
}

// With a scope wider than those who wait, a barrier is a fence as well.
inline void threadgroup_barrier(mem_flags flags, thread_scope scope, MSL_SITE) {
  atomic_thread_fence(flags, memory_order_seq_cst, scope);
  msl_tg_barrier(uint(flags), file, line);
  atomic_thread_fence(flags, memory_order_seq_cst, scope);
}
inline void simdgroup_barrier(mem_flags flags, thread_scope scope, MSL_SITE) {
  atomic_thread_fence(flags, memory_order_seq_cst, scope);
  msl_simd_barrier(uint(flags), file, line);
  atomic_thread_fence(flags, memory_order_seq_cst, scope);
}

}  // namespace metal
