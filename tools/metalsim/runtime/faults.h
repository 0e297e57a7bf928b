// Kernels that crash or never end: where they did is kept, and the process ends; the next launch gets a new one.
#pragma once
#include <stddef.h>

#include "protocol.h"

// From here on, signals and the timer end the launch.
void watch(Response* response, int reply_pipe);
void start_timer(uint64_t microseconds);
void stop_timer();

// Whose code is the kernel's.
void set_library(const void* base, size_t bytes);
bool is_in_library(const void* address);
ptrdiff_t offset_in_library(const void* address);

// Where the kernel last called the runtime from since it last waited, for signals that come while the runtime itself runs.
extern const void* last_kernel_pc;

// The division by zero that is about to trap has been reported.
extern bool division_reported;

// Ends the launch from within kernel code, and the process; what has been found so far is kept.
[[noreturn]] void stop_launch();
