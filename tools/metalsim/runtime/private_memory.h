// Private variables that are watched: where on the stacks nothing has been written yet, and where arrays end.
#pragma once
#include <stddef.h>

extern bool private_in_use;

// An access by the current lane, on a stack or not.
void check_private(const void* address, size_t bytes, bool writes, const void* pc);

// An index out of an array's bounds was reported: the access that follows need not be.
void expect_private_overrun();
