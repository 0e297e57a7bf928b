#include "private_memory.h"

#include <string.h>

#include "fibers.h"
#include "findings.h"
#include "memory.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

bool private_in_use;

namespace {

enum State : uint8_t { USED, EMPTY, ZONE };

uint8_t* states;  // of each byte of all stacks: lazily zero memory of the system's
bool overrun_expected;

uint8_t* state_of(const void* address) {
  size_t offset = (const char*)address - stacks_begin();
  return offset < ALL_STACKS_BYTES ? states + offset : nullptr;
}

void report_private(Finding finding, bool writes, const void* pc) {
  ReportRecord* record = new_finding(finding, {pc});
  if (!record) return;
  record->reason = Reason::Private;
  record->access.writes = writes;
}

}  // namespace

void expect_private_overrun() { overrun_expected = true; }

void check_private(const void* address, size_t bytes, bool writes, const void* pc) {
  uint8_t* state = state_of(address);
  if (!state) return;
  size_t empty = 0;
  bool zone = false;
  for (size_t i = 0; i < bytes; i++) {
    empty += state[i] == EMPTY;
    zone |= state[i] == ZONE;
    if (writes && state[i] == EMPTY) state[i] = USED;
  }
  if (zone && !overrun_expected) report_private(Finding::ArrayOverrun, writes, pc);
  overrun_expected = false;
  // A copy of a vector may take components along that nobody has set yet.
  if (!writes && empty == bytes) report_private(Finding::Uninitialised, false, pc);
}

EXPORT void msl_private_begins(void* variable, size_t bytes, size_t zone, bool empty) {
  if (!states) states = (uint8_t*)zeroed_memory(ALL_STACKS_BYTES);
  uint8_t* state = states ? state_of(variable) : nullptr;
  if (!state) return;
  private_in_use = true;
  memset(state - zone, ZONE, zone);
  memset(state, empty ? EMPTY : USED, bytes);
  memset(state + bytes, ZONE, zone);
}

EXPORT void msl_private_ends(void* begin, size_t bytes) {
  if (uint8_t* state = states ? state_of(begin) : nullptr) memset(state, USED, bytes);
}
