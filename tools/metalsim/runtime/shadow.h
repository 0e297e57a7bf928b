// Check mode: what each byte of kernel memory has seen, and what is wrong with an access.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

// Before a launch, after map_buffers. False if the system has no memory for it.
bool reset_shadow(const Request& request, const void* library_base);
void check_access(const void* address, size_t bytes, bool writes, bool atomic, const void* pc, bool uses_value);
void forget_threadgroup_bytes(size_t offset, size_t bytes);  // a new variable there: uninitialised

// A write that races with a write is harmless if it changed nothing. That shows only after it: at the next access, or when the
// lane waits or ends.
void settle_writes();

// Whether an access at this address was just reported: then what it does next need not be.
bool just_reported(const void* address);
