// A fiber: a stack of its own, and a switch that saves what the calling convention says a callee saves.
#pragma once
#include <stddef.h>
#include <stdint.h>

constexpr size_t FIBER_STACK_BYTES = 256 << 10;
constexpr int MOST_FIBERS = 1024;
constexpr size_t ALL_STACKS_BYTES = FIBER_STACK_BYTES * MOST_FIBERS;

// Stores where the running fiber is in *from, and goes on where `to` stopped.
extern "C" void msl_switch_fiber(void** from, void* to);

// A fiber that has not run yet: `to` for msl_switch_fiber, which begins `entry` on `stack`. entry never returns.
void* new_fiber(char* stack, void (*entry)());

char* take_stack();
const char* stacks_begin();  // of all, null before the first was taken
void give_back_stack(char* stack);
void reset_stacks();

// Whether `address` is in the guard page below some stack: that fiber's stack has overflown.
bool is_stack_guard(const void* address);
