#include "cost.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "memory.h"
#include "threadgroup.h"

namespace {

constexpr uint8_t TOUCHED_READ = 1, TOUCHED_WRITTEN = 2;

Counters* totals;
uint8_t* touched[MOST_BUFFERS];  // for each byte of a buffer
size_t touched_bytes[MOST_BUFFERS];
uint64_t* blocks;  // by program counter, relative to the library
size_t block_bytes;
const char* counted_code;
bool paused;

void touch(int slot, const void* address, size_t bytes, bool writes) {
  size_t offset = (const char*)address - buffer_of(slot).begin;
  if (!touched[slot] || offset >= touched_bytes[slot]) return;
  if (bytes > touched_bytes[slot] - offset) bytes = touched_bytes[slot] - offset;
  uint8_t mark = writes ? TOUCHED_WRITTEN : TOUCHED_READ;
  for (size_t i = 0; i < bytes; i++) touched[slot][offset + i] |= mark;
}

}  // namespace

void reset_cost(Counters* counters, const void* library_base, size_t library_bytes) {
  totals = counters;
  memset(totals, 0, sizeof *totals);
  paused = false;
  if (blocks) munmap(blocks, block_bytes * sizeof *blocks);
  blocks = nullptr;
  for (int slot = 0; slot < MOST_BUFFERS; slot++) {
    if (touched[slot]) munmap(touched[slot], touched_bytes[slot]);
    touched[slot] = nullptr;
    touched_bytes[slot] = buffer_of(slot).end - buffer_of(slot).begin;
    if (settings.mode == Mode::Cost && touched_bytes[slot]) touched[slot] = (uint8_t*)zeroed_memory(touched_bytes[slot]);
  }
  if (settings.mode != Mode::Cost) return;
  counted_code = (const char*)library_base;
  block_bytes = library_bytes;
  blocks = (uint64_t*)zeroed_memory(block_bytes * sizeof *blocks);
}

void pause_counting(bool on) { paused = on; }

void count_access(const void* address, size_t bytes, bool writes) {
  int slot = slot_of(address);
  if (slot < 0 || !current) return;
  if (slot == THREADGROUP_SLOT) {
    (writes ? totals->threadgroup_bytes_written : totals->threadgroup_bytes_read) += bytes;
    return;
  }
  (writes ? totals->device_bytes_written : totals->device_bytes_read) += bytes;
  touch(slot, address, bytes, writes);
}

// An atomic read-modify-write reads and writes: both are traffic.
void count_atomic(const void* address, size_t bytes, bool writes) {
  int slot = slot_of(address);
  if (slot < 0) return;
  (slot == THREADGROUP_SLOT ? totals->threadgroup_atomics : totals->device_atomics)++;
  count_access(address, bytes, false);
  if (writes) count_access(address, bytes, true);
}

void count_collective(int kind) {
  if (kind == 0)
    totals->simdgroup_barriers++;
  else if (kind < COLLECTIVE_KINDS)
    totals->collectives[kind]++;
}

void count_barrier() { totals->threadgroup_barriers++; }

void count_block(const void* pc) {
  size_t offset = (const char*)pc - counted_code;
  if (blocks && !paused && offset < block_bytes) blocks[offset]++;
}

uint64_t finish_cost(int file, uint64_t offset) {
  for (int slot = 0; slot < MOST_BUFFERS; slot++) {
    if (!touched[slot]) continue;
    for (size_t i = 0; i < touched_bytes[slot]; i++) {
      totals->touched_read[slot] += touched[slot][i] & TOUCHED_READ;
      totals->touched_written[slot] += touched[slot][i] / TOUCHED_WRITTEN;
    }
  }
  uint64_t count = 0;
  for (size_t pc = 0; blocks && pc < block_bytes; pc++) {
    if (!blocks[pc]) continue;
    uint64_t pair[2] = {pc, blocks[pc]};
    if (pwrite(file, pair, sizeof pair, offset + count * sizeof pair) != sizeof pair) break;
    count++;
  }
  return count;
}
