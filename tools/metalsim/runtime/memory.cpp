#include "memory.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "faults.h"
#include "findings.h"
#include "shadow.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

#ifndef MAP_NORESERVE
#define MAP_NORESERVE 0
#endif

char* slots_begin;
int slot_shift;

namespace {

// A slot is so wide that no 32-bit index of elements of 8 bytes leaves it, in either direction: 16 GiB below the buffer, 32
// above. Where the system has not so much address space, slots are narrower.
constexpr int WIDEST_SLOT = 36, NARROWEST_SLOT = 30;
constexpr size_t MOST_STRAY_PAGES = 4096;

Buffer buffers[SLOTS];
void* arguments[MOST_BUFFERS];
size_t page_bytes;
size_t stray_pages;

// The arena of threadgroup memory, and for each 16 bytes of it the number of the variable there, counted from 1.
constexpr size_t ARENA_UNIT = 16;
char* arena;
uint8_t owner[ARENA_BYTES / ARENA_UNIT];
Variable variables[MOST_VARIABLES];
uint32_t variable_ids[MOST_VARIABLES];
uint32_t variable_count;
size_t arena_used, threadgroup_bytes, threadgroup_most;
uint64_t argument_lengths[MOST_BUFFERS];

char* slot_begin(int slot) { return slots_begin + ((size_t)slot << slot_shift); }
size_t below_buffer() { return (size_t)1 << (slot_shift - 2); }

bool map_anonymous(char* address, size_t bytes) {
  return mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) !=
         MAP_FAILED;
}

void empty_slots() {
  mmap(slots_begin, (size_t)SLOTS << slot_shift, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  memset(buffers, 0, sizeof buffers);
  memset(arguments, 0, sizeof arguments);
  stray_pages = 0;
}

void report_threadgroup_memory(const char* name, const void* pc) {
  if (ReportRecord* record = new_finding(Finding::ThreadgroupMemory, {pc})) {
    record->reason = Reason::Bytes;
    record->info[0] = threadgroup_bytes;
    copy_name(record->variable, sizeof record->variable, name);
  }
}

void* new_variable(uint32_t id, const char* name, size_t bytes, size_t align, uint32_t granule, const void* pc) {
  for (uint32_t i = 0; i < variable_count; i++)
    if (variable_ids[i] == id) return variables[i].begin;
  if (align < ARENA_UNIT) align = ARENA_UNIT;
  size_t offset = (arena_used + RED_ZONE + align - 1) & ~(align - 1);
  threadgroup_bytes += (bytes + ARENA_UNIT - 1) & ~(ARENA_UNIT - 1);
  if (threadgroup_bytes > threadgroup_most) threadgroup_most = threadgroup_bytes;
  if (threadgroup_bytes > THREADGROUP_LIMIT) report_threadgroup_memory(name, pc);
  if (variable_count == MOST_VARIABLES || offset + bytes + RED_ZONE > ARENA_BYTES) stop_launch();
  char* begin = arena + offset;
  arena_used = offset + bytes;
  memset(begin - RED_ZONE, POISON, bytes + 2 * RED_ZONE);
  variables[variable_count] = {name, begin, begin + bytes, granule & ~MSL_SCALARS, (granule & MSL_SCALARS) != 0};
  variable_ids[variable_count++] = id;
  memset(&owner[offset / ARENA_UNIT], variable_count, (bytes + ARENA_UNIT - 1) / ARENA_UNIT);
  if (settings.mode == Mode::Check) forget_threadgroup_bytes(offset, bytes);
  return begin;
}

}  // namespace

void* zeroed_memory(size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

bool reserve_slots() {
  page_bytes = (size_t)sysconf(_SC_PAGESIZE);
  for (slot_shift = WIDEST_SLOT; slot_shift >= NARROWEST_SLOT; slot_shift--) {
    void* found = mmap(nullptr, (size_t)SLOTS << slot_shift, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (found == MAP_FAILED) continue;
    slots_begin = (char*)found;
    arena = slot_begin(THREADGROUP_SLOT) + below_buffer();
    return true;
  }
  return false;
}

const char* map_buffers(const Request& request, int data_file) {
  empty_slots();
  if (!map_anonymous(arena, ARENA_BYTES)) return "the system has no memory for the threadgroup's";
  for (uint32_t i = 0; i < request.buffer_count; i++) {
    const BufferRequest& wanted = request.buffers[i];
    char* pages = slot_begin(wanted.index) + below_buffer();
    if (wanted.map_bytes > below_buffer()) return "a buffer is larger than a slot of the address space";
    // In check mode a write to an input is reported by the hooks, and the kernel goes on; otherwise it faults.
    int access = wanted.writable || request.mode == Mode::Check ? PROT_READ | PROT_WRITE : PROT_READ;
    if (wanted.map_bytes && mmap(pages, wanted.map_bytes, access, MAP_SHARED | MAP_FIXED, data_file, wanted.file_offset) == MAP_FAILED)
      return "the system cannot map a buffer";
    char* begin = pages + wanted.data_offset;
    buffers[wanted.index] = {begin, begin + wanted.bytes, wanted.granule, wanted.writable != 0};
    arguments[wanted.index] = begin + wanted.first;
  }
  return nullptr;
}

void* const* buffer_arguments() { return arguments; }

const Buffer& buffer_of(int slot) { return buffers[slot]; }

void reset_arena(const uint64_t* argument_bytes) {
  memcpy(argument_lengths, argument_bytes, sizeof argument_lengths);
  threadgroup_most = 0;
  reset_variables();
}

void reset_variables() {
  memset(owner, 0, arena_used / ARENA_UNIT + 1);
  variable_count = 0;
  arena_used = 0;
  threadgroup_bytes = 0;
}

size_t arena_offset(const void* address) { return (const char*)address - arena; }

size_t threadgroup_peak() { return threadgroup_most; }

const Variable* variable_at(const void* address) {
  size_t offset = (const char*)address - arena;
  if (offset >= ARENA_BYTES || !owner[offset / ARENA_UNIT]) return nullptr;
  const Variable* variable = &variables[owner[offset / ARENA_UNIT] - 1];
  return (const char*)address < variable->end ? variable : nullptr;
}

const Variable* variable_near(const void* address) {
  const Variable* nearest = nullptr;
  size_t least = ~(size_t)0;
  for (uint32_t i = 0; i < variable_count; i++) {
    const char* at = (const char*)address;
    size_t distance = at < variables[i].begin ? variables[i].begin - at : at < variables[i].end ? 0 : at - variables[i].end;
    if (distance >= least) continue;
    least = distance;
    nearest = &variables[i];
  }
  return nearest;
}

bool map_stray_page(void* address) {
  if (slot_of(address) < 0 || stray_pages++ == MOST_STRAY_PAGES) return false;
  char* page = (char*)((uintptr_t)address & ~(page_bytes - 1));
  if (!map_anonymous(page, page_bytes)) return false;
  memset(page, POISON, page_bytes);
  return true;
}

EXPORT void* msl_tg_var(unsigned id, const char* name, size_t bytes, size_t align, unsigned granule) {
  return new_variable(id, name, bytes, align, granule, __builtin_return_address(0));
}

EXPORT void* msl_tg_dyn(unsigned index, unsigned granule) {
  static const char* const names[MOST_BUFFERS] = {
      "threadgroup(0)",  "threadgroup(1)",  "threadgroup(2)",  "threadgroup(3)",  "threadgroup(4)",  "threadgroup(5)",
      "threadgroup(6)",  "threadgroup(7)",  "threadgroup(8)",  "threadgroup(9)",  "threadgroup(10)", "threadgroup(11)",
      "threadgroup(12)", "threadgroup(13)", "threadgroup(14)", "threadgroup(15)", "threadgroup(16)", "threadgroup(17)",
      "threadgroup(18)", "threadgroup(19)", "threadgroup(20)", "threadgroup(21)", "threadgroup(22)", "threadgroup(23)",
      "threadgroup(24)", "threadgroup(25)", "threadgroup(26)", "threadgroup(27)", "threadgroup(28)", "threadgroup(29)",
      "threadgroup(30)"};
  constexpr uint32_t FIRST_ID = 1u << 31;  // apart from the declared variables'
  if (index >= MOST_BUFFERS) return nullptr;
  return new_variable(FIRST_ID + index, names[index], argument_lengths[index], 16, granule, __builtin_return_address(0));
}
