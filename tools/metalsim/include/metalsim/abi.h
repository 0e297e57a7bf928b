// What a compiled kernel and the runtime that executes it say to each other. No standard header: MSL's names must not
// meet C's (`::exp` beside `metal::exp`).
#pragma once

#define MSL_NOSAN __attribute__((no_sanitize("thread"), no_sanitize("undefined")))

#if defined(__clang__)
#define MSL_NO_COVERAGE no_sanitize("coverage")
#else
#define MSL_NO_COVERAGE no_sanitize_coverage
#endif

// A call at which lanes meet: two of them must not become one.
#if defined(__clang__)
#define MSL_CONVERGENT __attribute__((convergent))
#else
#define MSL_CONVERGENT
#endif

extern "C" {

// Where the running lane is.
struct msl_lane_pos {
  unsigned int tpig[3];   // thread_position_in_grid
  unsigned int tpitg[3];  // thread_position_in_threadgroup
  unsigned int tiitg;     // thread_index_in_threadgroup
  unsigned int sgi;       // simdgroup_index_in_threadgroup
  unsigned int lane;      // thread_index_in_simdgroup
};

// Where its threadgroup is.
struct msl_tg_pos {
  unsigned int tgpig[3];  // threadgroup_position_in_grid
  unsigned int tptg[3];   // threads_per_threadgroup: of this one, smaller at the grid's edge
  unsigned int tgpg[3];   // threadgroups_per_grid
  unsigned int tpg[3];    // threads_per_grid
  unsigned int dtptg[3];  // dispatch_threads_per_threadgroup: what the launch asked for
  unsigned int nsg;       // simdgroups_per_threadgroup
};

extern msl_lane_pos* msl_cur_pos;
extern msl_tg_pos msl_tgp;
extern int msl_reduce_order;  // 0: xor tree, 1: first to last, 2: last to first, 3: halves

// A SIMD-group function: called once for all lanes that arrived, request[lane] valid where mask has its bit.
typedef void (*msl_collective_fn)(void** request, unsigned int mask, void* context);
MSL_CONVERGENT void msl_simd_collective(msl_collective_fn fn, void* request, int kind, const char* file, int line);
MSL_CONVERGENT void msl_simd_barrier(unsigned int flags, const char* file, int line);
MSL_CONVERGENT void msl_tg_barrier(unsigned int flags, const char* file, int line);

// Threadgroup memory: a declared variable, and the n-th [[threadgroup(n)]] argument. granule: the bytes of an element, 4 at most,
// and MSL_SCALARS if it is declared as scalars, which leave no padding between them.
#define MSL_SCALARS 256u
void* msl_tg_var(unsigned int id, const char* name, __SIZE_TYPE__ bytes, __SIZE_TYPE__ align, unsigned int granule);
void* msl_tg_dyn(unsigned int index, unsigned int granule);

// kind: 0 a load, 1 a store or exchange, 2 a read-modify-write, whose result depends on what was there.
void msl_atomic_touch(const volatile void* p, unsigned int bytes, int kind);
// An atomic_thread_fence, its arguments as MSL numbers them.
void msl_fence(unsigned int flags, int order, int scope);
// A private variable begins to live, with `zone` bytes on both sides that are nobody's; what lies there ends.
void msl_private_begins(void* variable, __SIZE_TYPE__ bytes, __SIZE_TYPE__ zone, bool empty);
void msl_private_ends(void* begin, __SIZE_TYPE__ bytes);
void msl_matrix_not_set(const char* file, int line);
void msl_bad_shuffle(unsigned int lane, unsigned int source, unsigned int mask);
}

// A compiled kernel exports:
//   extern "C" void msl_entry(void* const* buffers);            runs one lane; buffers by [[buffer(n)]] index
//   extern "C" void msl_set_constant(int index, const void* p); a [[function_constant(index)]]
