#include "shadow.h"

#include <string.h>
#include <sys/mman.h>

#include "fences.h"
#include "findings.h"
#include "memory.h"
#include "private_memory.h"
#include "threadgroup.h"

namespace {

// One access to a granule (an element of at most 4 bytes), as it is remembered.
struct Record {
  uint32_t group1;  // the threadgroup's number, counted from 1; 0: no access
  uint32_t thread : 10;
  uint32_t bytes : 4;  // mask of the granule's bytes
  uint32_t atomic : 1;
  uint32_t fences : 17;  // of its thread that release, before it
  uint32_t barriers;  // of its threadgroup, and synchronisations of its SIMD-group, before it
  uint32_t syncs;
  uint32_t pc;  // relative to the library
};

// The last write, and two reads since: the first that no barrier has ordered, and, if any, one by another thread, best of
// another SIMD-group. Two different readers suffice: a later writer differs from one of them.
struct Cell {
  Record write, read, other_read;
};

// The shadow of one slot. Cells and flags are lazily zero memory of the system's.
struct Shadow {
  Cell* cells;
  uint8_t* initialised;  // for each byte
  size_t cell_count, byte_count;
};

struct PendingWrite {
  const char* address;
  size_t bytes;
  char before[256];
  Record earlier;
  const void* pc;
};

Shadow shadows[SLOTS];
PendingWrite pending;
bool write_is_pending;
const char* code_begin;
const char *reported_begin, *reported_end;

// Have barriers ordered the earlier access of its own threadgroup before what the current lane does now?
bool ordered(const Record& earlier, Memory memory) {
  if (earlier.barriers < group.barriers[memory]) return true;
  // Both took part in a synchronisation of their SIMD-group since.
  const Lane& lane = group.lanes[earlier.thread];
  return lane.simdgroup == current->simdgroup && earlier.syncs < lane.synced[memory] &&
         earlier.syncs < current->synced[memory];
}

bool conflicts(const Record& earlier, uint8_t bytes, bool atomic, Memory memory) {
  if (!earlier.group1 || !(earlier.bytes & bytes) || (earlier.atomic && atomic)) return false;
  bool same_group = earlier.group1 == group.number + 1;
  if (same_group && (earlier.thread == current->position.tiitg || ordered(earlier, memory))) return false;
  if (!same_group && memory == THREADGROUP) return false;
  return !fences_ordered({earlier.group1, earlier.thread, earlier.fences, earlier.barriers, earlier.syncs}, memory);
}

Record record_of(uint8_t bytes, bool atomic, Memory memory, const void* pc) {
  return {group.number + 1,
          current->position.tiitg,
          bytes,
          atomic,
          fences_so_far(),
          group.barriers[memory],
          current->simdgroup->syncs[memory],
          (uint32_t)((const char*)pc - code_begin)};
}

bool make_shadow(Shadow& shadow, size_t bytes, uint32_t granule) {
  shadow.cell_count = bytes / granule + 1;
  shadow.byte_count = bytes;
  shadow.cells = (Cell*)zeroed_memory(shadow.cell_count * sizeof(Cell));
  shadow.initialised = (uint8_t*)zeroed_memory(bytes);
  return shadow.cells && shadow.initialised;
}

// A buffer or a threadgroup variable with its shadow.
struct Object {
  const char* begin;
  const char* end;
  uint32_t granule;
  bool writable;
  bool scalars;  // declared as an array of scalars; of a buffer nobody knows
  Cell* cells;
  uint8_t* initialised;
};

Object buffer_object(int slot) {
  const Buffer& buffer = buffer_of(slot);
  const Shadow& shadow = shadows[slot];
  return {buffer.begin, buffer.end, buffer.granule, buffer.writable, false, shadow.cells, shadow.initialised};
}

Object threadgroup_object(const char* address) {
  const Variable* variable = variable_at(address);
  if (!variable) return {};
  const Shadow& shadow = shadows[THREADGROUP_SLOT];
  size_t offset = arena_offset(variable->begin);  // the arena has as many cells as bytes: room for granules of any size
  return {variable->begin, variable->end, variable->granule, true, variable->scalars, shadow.cells + offset, shadow.initialised + offset};
}

// Most accesses are of 4 bytes: no call of the C library's for those.
bool all_four(const uint8_t* initialised) {
  uint32_t flags;
  memcpy(&flags, initialised, 4);
  return flags == 0x01010101;
}

void mark_initialised(uint8_t* initialised, size_t bytes) {
  if (bytes == 4)
    memset(initialised, 1, 4);
  else
    memset(initialised, 1, bytes);
}

// Is a float[] used as one, not as room for structures or float3s, which have padding? Seen from who wrote it, here and just before:
// where one line has written neighbouring elements from different threads of this threadgroup, as no structure's copy does.
bool written_as_scalars(const Object& object, size_t offset, size_t bytes) {
  if (!object.scalars) return false;
  size_t granule = object.granule, first = (offset > bytes ? offset - bytes : 0) / granule, last = (offset + bytes) / granule;
  for (size_t cell = first; cell + 1 < last; cell++) {
    const Record &left = object.cells[cell].write, &right = object.cells[cell + 1].write;
    if (left.group1 == group.number + 1 && right.group1 == left.group1 && left.pc == right.pc && left.thread != right.thread) return true;
  }
  return false;
}

// Does a read get what nobody wrote? What is wider than an element may have padding, which copies read and nobody writes: the last
// quarter of a float3, the second one of a float and a long. The first and the third are never that, so they must be written, and
// the others where the memory is known to be of scalars; of what is wider than a vector, anything at all.
bool holds_nothing(const Object& object, size_t offset, size_t bytes) {
  constexpr size_t WIDEST_VECTOR = 4;
  const uint8_t* initialised = object.initialised + offset;
  size_t granule = object.granule;
  if (bytes == 4 && granule == 4) return !all_four(initialised);
  if (bytes <= granule) return memchr(initialised, 0, bytes) != nullptr;
  if (bytes > WIDEST_VECTOR * granule) return memchr(initialised, 1, bytes) == nullptr;
  bool may_be_padding = false;
  for (size_t at = 0; at < bytes; at += granule) {
    if (memchr(initialised + at, 1, bytes - at < granule ? bytes - at : granule)) continue;
    if (at / granule % 2 == 0) return true;
    may_be_padding = true;
  }
  return may_be_padding && written_as_scalars(object, offset, bytes);
}

void report_race(Finding finding, const Record& earlier, bool earlier_writes, const void* address, size_t bytes, bool writes, const void* pc) {
  ReportRecord* report = new_finding(finding, {pc}, {code_begin + earlier.pc});
  if (!report) return;
  set_memory(report, address, bytes);
  report->access.writes = writes;
  report->has_other = 1;
  report->other.thread = earlier.thread;
  report->other.writes = earlier_writes;
  set_group_position(report->other.group, earlier.group1 - 1);
}

__attribute__((noinline)) void report_access(Finding finding, const void* address, size_t bytes, bool writes, const void* pc) {
  reported_begin = (const char*)address;
  reported_end = reported_begin + bytes;
  ReportRecord* report = new_finding(finding, {pc});
  if (!report) return;
  set_memory(report, address, bytes);
  report->access.writes = writes;
}

// A race of two writes waits for its verdict; one access that races at several elements is one race.
void report_racing_write(const Record& earlier, const void* address, size_t bytes, const void* pc) {
  if (write_is_pending) return;
  if (bytes > sizeof pending.before) {
    report_race(Finding::Race, earlier, true, address, bytes, true, pc);
    return;
  }
  pending.address = (const char*)address;
  pending.bytes = bytes;
  pending.earlier = earlier;
  pending.pc = pc;
  memcpy(pending.before, address, bytes);
  write_is_pending = true;
}

// Of two accesses by one thread: does nothing between them order anything?
bool same_phase(const Record& earlier, const Record& now) {
  return earlier.barriers == now.barriers && earlier.syncs == now.syncs && earlier.fences == now.fences;
}

// An atomic access after a plain one by the same thread, with nothing between that orders them: what the plain one conflicts
// with must not be forgotten.
bool still_plain(const Record& earlier, const Record& now) {
  return now.atomic && earlier.group1 == now.group1 && !earlier.atomic && earlier.thread == now.thread &&
         same_phase(earlier, now);
}

void remember_read(Cell& cell, const Record& now, Memory memory) {
  Record& first = cell.read;
  if (!first.group1 || (first.group1 != now.group1 && memory == THREADGROUP)) {
    first = now;
  } else if (first.group1 == now.group1 && first.thread == now.thread) {
    if (still_plain(first, now)) return;
    uint8_t before = same_phase(first, now) ? first.bytes : 0;
    first = now;
    first.bytes |= before;
  } else if (first.group1 == now.group1 && ordered(first, memory)) {
    first = now;
  } else {
    Record& second = cell.other_read;
    bool keeps = second.group1 == now.group1 && first.group1 == now.group1 && !ordered(second, memory) &&
                 second.thread / SIMD_WIDTH != first.thread / SIMD_WIDTH && now.thread / SIMD_WIDTH == first.thread / SIMD_WIDTH;
    if (!keeps) second = now;
  }
}

void check_cell(Cell& cell, const Record& now, bool writes, Memory memory, const char* address, size_t bytes, const void* pc) {
  if (conflicts(cell.write, now.bytes, now.atomic, memory)) {
    if (writes && !now.atomic && !cell.write.atomic)
      report_racing_write(cell.write, address, bytes, pc);
    else
      report_race(Finding::Race, cell.write, true, address, bytes, writes, pc);
  }
  if (!writes) {
    remember_read(cell, now, memory);
    return;
  }
  if (conflicts(cell.read, now.bytes, now.atomic, memory))
    report_race(Finding::Race, cell.read, false, address, bytes, true, pc);
  else if (conflicts(cell.other_read, now.bytes, now.atomic, memory))
    report_race(Finding::Race, cell.other_read, false, address, bytes, true, pc);
  if (!still_plain(cell.write, now)) cell.write = now;
}

}  // namespace

bool reset_shadow(const Request& request, const void* library_base) {
  code_begin = (const char*)library_base;
  write_is_pending = false;
  reported_begin = reported_end = nullptr;
  for (Shadow& shadow : shadows) {
    if (shadow.cells) munmap(shadow.cells, shadow.cell_count * sizeof(Cell));
    if (shadow.initialised) munmap(shadow.initialised, shadow.byte_count);
    shadow = {};
  }
  if (!make_shadow(shadows[THREADGROUP_SLOT], ARENA_BYTES, 1)) return false;
  for (uint32_t i = 0; i < request.buffer_count; i++) {
    const BufferRequest& buffer = request.buffers[i];
    Shadow& shadow = shadows[buffer.index];
    if (!buffer.bytes) continue;
    if (!make_shadow(shadow, buffer.bytes, buffer.granule)) return false;
    if (buffer.initialised) memset(shadow.initialised, 1, buffer.bytes);
  }
  return true;
}

bool just_reported(const void* address) { return address >= reported_begin && address < reported_end; }

void forget_threadgroup_bytes(size_t offset, size_t bytes) { memset(shadows[THREADGROUP_SLOT].initialised + offset, 0, bytes); }

void settle_writes() {
  if (!write_is_pending) return;
  write_is_pending = false;
  bool changed = memcmp(pending.address, pending.before, pending.bytes) != 0;
  Finding finding = changed ? Finding::Race : Finding::SameValueRace;
  report_race(finding, pending.earlier, true, pending.address, pending.bytes, true, pending.pc);
}

void check_access(const void* address, size_t bytes, bool writes, bool atomic, const void* pc, bool uses_value) {
  int slot = slot_of(address);
  if (!current) return;
  if (slot < 0) {  // a stack, or a constant of the program's: private, or read only
    if (private_in_use) check_private(address, bytes, writes, pc);
    return;
  }
  if (write_is_pending) settle_writes();
  const char* at = (const char*)address;
  Memory memory = slot == THREADGROUP_SLOT ? THREADGROUP : DEVICE;
  Object object = memory == THREADGROUP ? threadgroup_object(at) : buffer_object(slot);
  if (!object.begin || at < object.begin || at + bytes > object.end) {
    report_access(Finding::OutOfBounds, at, bytes, writes, pc);
    return;
  }
  if (writes && !object.writable) report_access(Finding::WriteToInput, at, bytes, true, pc);
  size_t offset = at - object.begin;
  if (uses_value && holds_nothing(object, offset, bytes))
    report_access(Finding::Uninitialised, at, bytes, writes, pc);
  if (writes) mark_initialised(object.initialised + offset, bytes);
  size_t granule = object.granule;
  for (size_t cell = offset / granule; cell * granule < offset + bytes; cell++) {
    size_t low = cell * granule < offset ? offset - cell * granule : 0;
    size_t high = offset + bytes - cell * granule;
    if (high > granule) high = granule;
    uint8_t mask = (uint8_t)((1u << high) - (1u << low));
    check_cell(object.cells[cell], record_of(mask, atomic, memory, pc), writes, memory, at, bytes, pc);
  }
}
