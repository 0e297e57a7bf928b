#include "fibers.h"

#include <sys/mman.h>
#include <string.h>
#include <unistd.h>

#if defined(__APPLE__)
#define SYMBOL "_msl_switch_fiber"
#define FUNCTION_TYPE
#else
#define SYMBOL "msl_switch_fiber"
#define FUNCTION_TYPE ".type " SYMBOL ", %function\n"
#endif

#if defined(__x86_64__)

// The System V ABI: rbx, rbp and r12 to r15 are the callee's. The control words of SSE and x87 are too, but no kernel
// changes them.
asm(".text\n.globl " SYMBOL "\n" FUNCTION_TYPE SYMBOL ":\n"
    "  pushq %rbp\n"
    "  pushq %rbx\n"
    "  pushq %r12\n"
    "  pushq %r13\n"
    "  pushq %r14\n"
    "  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq %rsi, %rsp\n"
    "  popq %r15\n"
    "  popq %r14\n"
    "  popq %r13\n"
    "  popq %r12\n"
    "  popq %rbx\n"
    "  popq %rbp\n"
    "  popq %rcx\n"  // the return address; a jump, as `ret` would upset the return predictor
    "  jmpq *%rcx\n");

constexpr int SAVED_WORDS = 8;  // six registers, where to begin, and a return address that nobody uses
constexpr int ENTRY_WORD = 6;

#elif defined(__aarch64__)

// AAPCS64: x19 to x29, the link register and the low halves of v8 to v15 are the callee's.
asm(".text\n.globl " SYMBOL "\n" FUNCTION_TYPE SYMBOL ":\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp]\n"
    "  stp x21, x22, [sp, #16]\n"
    "  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n"
    "  stp x27, x28, [sp, #64]\n"
    "  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n"
    "  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n"
    "  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n"
    "  str x9, [x0]\n"
    "  mov sp, x1\n"
    "  ldp x19, x20, [sp]\n"
    "  ldp x21, x22, [sp, #16]\n"
    "  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n"
    "  ldp x27, x28, [sp, #64]\n"
    "  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n"
    "  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n"
    "  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n"
    "  ret\n");

constexpr int SAVED_WORDS = 20;
constexpr int ENTRY_WORD = 11;  // x30

#else
#error metalsim switches fibers on x86-64 and arm64 only
#endif

namespace {

char* all_stacks;
char* free_stacks[MOST_FIBERS];
int free_count, ever_taken, ever_guarded;
size_t guard_bytes;

// Equal offsets in equally aligned stacks would compete for the same few cache sets: the tops are shifted.
char* top_of(char* stack) {
  size_t number = (stack - all_stacks) / FIBER_STACK_BYTES;
  return stack + FIBER_STACK_BYTES - 64 - number % 56 * 64;
}

}  // namespace

void* new_fiber(char* stack, void (*entry)()) {
  uint64_t* words = (uint64_t*)((uintptr_t)top_of(stack) & ~(uintptr_t)15) - SAVED_WORDS;
  memset(words, 0, SAVED_WORDS * sizeof *words);
  words[ENTRY_WORD] = (uint64_t)entry;
  return words;
}

char* take_stack() {
  if (free_count) return free_stacks[--free_count];
  if (!all_stacks) {
    guard_bytes = (size_t)sysconf(_SC_PAGESIZE);
    all_stacks = (char*)mmap(nullptr, ALL_STACKS_BYTES, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  char* stack = all_stacks + FIBER_STACK_BYTES * ever_taken++;
  if (ever_taken > ever_guarded) {
    mprotect(stack, guard_bytes, PROT_NONE);
    ever_guarded = ever_taken;
  }
  return stack;
}

const char* stacks_begin() { return all_stacks; }

void give_back_stack(char* stack) { free_stacks[free_count++] = stack; }

// The stacks are given out in the same order in every launch, so that what a kernel finds on its stack does not depend on
// the launches before.
void reset_stacks() { free_count = ever_taken = 0; }

bool is_stack_guard(const void* address) {
  if (!all_stacks) return false;
  size_t offset = (const char*)address - all_stacks;
  return offset < ALL_STACKS_BYTES && offset % FIBER_STACK_BYTES < guard_bytes;
}
