// Which lane runs next. Lanes run until they wait or end; there is no preemption, so the order is the schedule's alone.
#include "fibers.h"
#include "shadow.h"
#include "threadgroup.h"

extern "C" {
__attribute__((visibility("default"))) msl_lane_pos* msl_cur_pos;
__attribute__((visibility("default"))) msl_tg_pos msl_tgp;
__attribute__((visibility("default"))) int msl_reduce_order;
}

Threadgroup group;
Settings settings;
Lane* current;

namespace {

kernel_entry entry_of_kernel;
void* const* buffers_of_kernel;
void* fiber_of_scheduler;
void* nowhere;  // what a fiber that has ended would go on from

int pick_bit(uint32_t mask) {
  if (settings.lanes == Order::Forward) return __builtin_ctz(mask);
  if (settings.lanes == Order::Reverse) return 31 - __builtin_clz(mask);
  for (int skip = next_random() % __builtin_popcount(mask); skip; skip--) mask &= mask - 1;
  return __builtin_ctz(mask);
}

// In order, a SIMD-group runs while it can; at random, it is left one time in eight, so that both long runs of one
// SIMD-group and quick changes come up.
bool stays_with_current() {
  if (!current || !current->simdgroup->ready) return false;
  return settings.lanes != Order::Random || next_random() % 8;
}

Lane* take_next() {
  if (!group.ready) return nullptr;
  SimdGroup* simdgroup = stays_with_current() ? current->simdgroup : &group.simdgroups[pick_bit(group.ready)];
  int lane = pick_bit(simdgroup->ready);
  simdgroup->ready &= ~(1u << lane);
  if (!simdgroup->ready) group.ready &= ~(1u << simdgroup->index);
  return &group.lanes[simdgroup->index * SIMD_WIDTH + lane];
}

void set_current(Lane* lane) {
  lane->state = LaneState::Begun;
  current = lane;
  msl_cur_pos = &lane->position;
}

void end_current() {
  current->state = LaneState::Ended;
  current->simdgroup->live &= ~(1u << current->position.lane);
  group.live--;
}

// The life of a fiber: it runs a lane, and, as long as the next one has not begun either, that one on the same stack.
void run_lanes() {
  for (;;) {
    entry_of_kernel(buffers_of_kernel);
    settle_writes();
    end_current();
    char* stack = current->stack;
    Lane* next = take_next();
    if (next && next->state == LaneState::New) {
      next->stack = stack;
      set_current(next);
      continue;
    }
    give_back_stack(stack);
    if (next) set_current(next);
    msl_switch_fiber(&nowhere, next ? next->fiber : fiber_of_scheduler);
  }
}

void begin(Lane* lane) {
  if (lane->state == LaneState::New) {
    lane->stack = take_stack();
    lane->fiber = new_fiber(lane->stack, run_lanes);
  }
  set_current(lane);
}

}  // namespace

uint64_t next_random() {  // xorshift64
  uint64_t x = settings.random;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return settings.random = x;
}

void set_group_position(uint32_t position[3], uint32_t number) {
  position[0] = number % msl_tgp.tgpg[0];
  position[1] = number / msl_tgp.tgpg[0] % msl_tgp.tgpg[1];
  position[2] = number / msl_tgp.tgpg[0] / msl_tgp.tgpg[1];
}

void make_ready(SimdGroup* simdgroup, uint32_t lanes) {
  if (!lanes) return;
  simdgroup->ready |= lanes;
  group.ready |= 1u << simdgroup->index;
}

void wait_current() {
  settle_writes();
  Lane* waits = current;
  Lane* next = take_next();
  if (next) begin(next);
  msl_switch_fiber(&waits->fiber, next ? next->fiber : fiber_of_scheduler);
}

void run_threadgroup(kernel_entry entry, void* const* buffers) {
  entry_of_kernel = entry;
  buffers_of_kernel = buffers;
  do {
    current = nullptr;
    while (Lane* next = take_next()) {
      begin(next);
      msl_switch_fiber(&fiber_of_scheduler, next->fiber);
      current = nullptr;
    }
  } while (group.live && resolve_incomplete());
}
