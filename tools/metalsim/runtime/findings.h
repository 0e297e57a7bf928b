// The list of what was found, in the memory shared with Python: it outlives the process.
#pragma once
#include <stddef.h>

#include "protocol.h"
#include "threadgroup.h"

// Where something happened: a program counter in the kernel's library, or a file and line. Of several, the first in this order
// that is a line of the kernel's counts.
struct Place {
  const void* pc = nullptr;
  const void* earlier_pc = nullptr;
  const char* file = nullptr;
  int line = 0;
};

void reset_findings(Response* response, const void* library_base);

// The record to fill in, with the access of the current lane (or of `lane`) at `place`; null if the same finding was made at
// the same two places before, or the list is full: it is only counted then.
ReportRecord* new_finding(Finding finding, Place place, Place other = {}, const Lane* lane = nullptr);

// What memory it is about: the buffer or threadgroup variable that an address is in, or nearest to.
void set_memory(ReportRecord* record, const void* address, size_t bytes);

void copy_name(char* to, size_t bytes, const char* name);
