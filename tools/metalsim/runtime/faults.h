// Kernels that crash or never end: where they did is kept, and the process ends; the next launch gets a new one.
#pragma once
#include <stddef.h>

#include "protocol.h"

// From here on, signals and the timer end the launch.
void watch(Response* response, int reply_pipe);
void start_timer(uint64_t microseconds);
void stop_timer();

// Which addresses are the kernel's code.
void set_library(const void* base, size_t bytes);

// Where the kernel last called the runtime from, for signals that come while the runtime itself runs.
extern const void* last_kernel_pc;

// Ends the launch from within kernel code, and the process; what has been found so far is kept.
[[noreturn]] void stop_launch();
