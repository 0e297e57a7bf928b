// What instrumented code calls. The compilers' own sanitizer runtimes are not linked: these take their names and their place.
// Kernels compiled for check mode call __tsan_* before each access and __ubsan_handle_* where something is undefined; those for
// cost mode call __tsan_* and, in each basic block, __sanitizer_cov_trace_pc.
#include <string.h>

#include "cost.h"
#include "faults.h"
#include "fences.h"
#include "findings.h"
#include "private_memory.h"
#include "shadow.h"

#define EXPORT extern "C" __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)

namespace {

__attribute__((always_inline)) inline void on_access(const void* address, size_t bytes, bool writes, const void* pc) {
  last_kernel_pc = pc;
  if (settings.mode == Mode::Check)
    check_access(address, bytes, writes, false, pc, !writes);
  else
    count_access(address, bytes, writes);
}

}  // namespace

#define ACCESS(name, bytes, writes) \
  EXPORT void __tsan_##name(void* address) { on_access(address, bytes, writes, CALLER); }
#define ACCESSES(prefix, bytes)          \
  ACCESS(prefix##read##bytes, bytes, false) \
  ACCESS(prefix##write##bytes, bytes, true)

ACCESSES(, 1)
ACCESSES(, 2)
ACCESSES(, 4)
ACCESSES(, 8)
ACCESSES(, 16)
ACCESSES(unaligned_, 2)
ACCESSES(unaligned_, 4)
ACCESSES(unaligned_, 8)
ACCESSES(unaligned_, 16)
ACCESSES(volatile_, 1)
ACCESSES(volatile_, 2)
ACCESSES(volatile_, 4)
ACCESSES(volatile_, 8)
ACCESSES(volatile_, 16)
ACCESSES(unaligned_volatile_, 2)
ACCESSES(unaligned_volatile_, 4)
ACCESSES(unaligned_volatile_, 8)
ACCESSES(unaligned_volatile_, 16)

// clang's: a read and a write at once.
#define READ_WRITE(name, bytes)                      \
  EXPORT void __tsan_##name(void* address) {         \
    on_access(address, bytes, false, CALLER);        \
    on_access(address, bytes, true, CALLER);         \
  }
READ_WRITE(read_write1, 1)
READ_WRITE(read_write2, 2)
READ_WRITE(read_write4, 4)
READ_WRITE(read_write8, 8)
READ_WRITE(read_write16, 16)
READ_WRITE(unaligned_read_write2, 2)
READ_WRITE(unaligned_read_write4, 4)
READ_WRITE(unaligned_read_write8, 8)
READ_WRITE(unaligned_read_write16, 16)

EXPORT void __tsan_read_range(void* address, size_t bytes) {
  if (bytes) on_access(address, bytes, false, CALLER);
}
EXPORT void __tsan_write_range(void* address, size_t bytes) {
  if (bytes) on_access(address, bytes, true, CALLER);
}

namespace {

void on_copy(void* to, const void* from, size_t bytes, const void* pc) {
  if (!bytes) return;
  on_access(from, bytes, false, pc);
  on_access(to, bytes, true, pc);
}

}  // namespace

EXPORT void* __tsan_memcpy(void* to, const void* from, size_t bytes) {
  on_copy(to, from, bytes, CALLER);
  return memcpy(to, from, bytes);
}
EXPORT void* __tsan_memmove(void* to, const void* from, size_t bytes) {
  on_copy(to, from, bytes, CALLER);
  return memmove(to, from, bytes);
}
EXPORT void* __tsan_memset(void* to, int value, size_t bytes) {
  if (bytes) on_access(to, bytes, true, CALLER);
  return memset(to, value, bytes);
}

EXPORT void __tsan_init() {}
EXPORT void __tsan_func_entry(void*) {}
EXPORT void __tsan_func_exit() {}
EXPORT void __tsan_vptr_update(void*, void*) {}
EXPORT void __tsan_vptr_read(void*) {}
EXPORT void __tsan_ignore_thread_begin() {}
EXPORT void __tsan_ignore_thread_end() {}

EXPORT void msl_atomic_touch(const volatile void* address, unsigned bytes, int kind) {
  constexpr int LOAD = 0, STORE = 1;
  const bool writes = kind != LOAD;
  last_kernel_pc = CALLER;
  if (settings.mode == Mode::Check) {
    check_access((const void*)address, bytes, writes, true, CALLER, kind != STORE);
    carry((const void*)address, kind != STORE, writes);
  } else if (settings.mode == Mode::Cost) {
    count_atomic((const void*)address, bytes, writes);
  }
}

EXPORT void __sanitizer_cov_trace_pc() { count_block(CALLER); }

// The undefined behaviours that kernels are compiled to notice. Each handler's data begins with where it is in the source.
struct SourceLocation {
  const char* file;
  uint32_t line, column;
};

namespace {

// The location is in our headers where the operator of a vector does it: then the call tells the kernel's line.
void on_undefined(Finding finding, const SourceLocation* at, const void* pc) {
  division_reported = finding == Finding::Division;
  if (finding == Finding::ArrayOverrun) expect_private_overrun();
  new_finding(finding, {pc, nullptr, at->file ? at->file : "", (int)at->line});
}

}  // namespace

#define UNDEFINED(name, finding) \
  EXPORT void __ubsan_handle_##name(SourceLocation* at, uintptr_t, uintptr_t) { on_undefined(Finding::finding, at, CALLER); }
UNDEFINED(out_of_bounds, ArrayOverrun)
UNDEFINED(shift_out_of_bounds, Shift)
UNDEFINED(type_mismatch_v1, Misaligned)
UNDEFINED(divrem_overflow, Division)
UNDEFINED(mul_overflow, Overflow)
// Sums wrap around in what right kernels do (hashes, counters); products are sizes and offsets.
EXPORT void __ubsan_handle_add_overflow(SourceLocation*, uintptr_t, uintptr_t) {}
EXPORT void __ubsan_handle_sub_overflow(SourceLocation*, uintptr_t, uintptr_t) {}
EXPORT void __ubsan_handle_negate_overflow(SourceLocation*, uintptr_t) {}

// Called by what uses a simdgroup_matrix.
EXPORT void msl_matrix_not_set(const char* file, int line) {
  if (ReportRecord* record = new_finding(Finding::Uninitialised, {nullptr, nullptr, file, line})) record->reason = Reason::Matrix;
}
