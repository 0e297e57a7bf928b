// The kernel's memory: each buffer in a slot of address space of its own, most of which faults, and the threadgroup's arena.
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "protocol.h"

constexpr int THREADGROUP_SLOT = MOST_BUFFERS;
constexpr int SLOTS = MOST_BUFFERS + 1;
constexpr size_t RED_ZONE = 64;                     // bytes of poison around each threadgroup variable
constexpr size_t THREADGROUP_LIMIT = 32 << 10;      // Metal's
constexpr size_t ARENA_BYTES = 1 << 20;             // what a kernel may use that is over the limit, red zones included
constexpr int MOST_VARIABLES = 255;
constexpr uint8_t POISON = 0xff;                    // a NaN in every floating-point type, -1 in every integer

// A buffer that the kernel was given; `begin` null: none.
struct Buffer {
  char* begin;
  char* end;
  uint32_t granule;
  bool writable;
};

// A threadgroup variable of the threadgroup that runs.
struct Variable {
  const char* name;
  char* begin;
  char* end;
  uint32_t granule;
  bool scalars;  // declared as such
};

// Reserves the address space; false if the system has none.
bool reserve_slots();

// Empties all slots, then maps the request's buffers out of the data file. Null, or what went wrong.
const char* map_buffers(const Request& request, int data_file);
void* const* buffer_arguments();  // by index, null where there is none

void reset_arena(const uint64_t* argument_bytes);  // before a launch
void reset_variables();                            // before a threadgroup
size_t threadgroup_peak();                         // bytes, the most so far in the launch

// The slot that an address is in, -1: none, so it is no kernel memory.
int slot_of(const void* address);
const Buffer& buffer_of(int slot);
const Variable* variable_at(const void* address);    // the one that has the address, or null
const Variable* variable_near(const void* address);  // the nearest, null if there is none
size_t arena_offset(const void* address);

// Makes the page of a faulting address readable and writable, full of poison; false if it is in no slot or too many are.
bool map_stray_page(void* address);

// Zeros that take room only where they are written; null if there is no room.
void* zeroed_memory(size_t bytes);

extern char* slots_begin;
extern int slot_shift;

inline int slot_of(const void* address) {
  uintptr_t slot = (uintptr_t)((const char*)address - slots_begin) >> slot_shift;
  return slot < SLOTS ? (int)slot : -1;
}
