// Fibers, barriers and SIMD-group functions without Python, for a machine that only an emulator is there for.
#include <stdio.h>

#include <initializer_list>

#include "cost.cpp"
#include "faults.cpp"
#include "fences.cpp"
#include "fibers.cpp"
#include "findings.cpp"
#include "memory.cpp"
#include "private_memory.cpp"
#include "rendezvous.cpp"
#include "scheduler.cpp"
#include "shadow.cpp"

namespace {

constexpr int LANES = 1024, TIMES = 100;
int tile[LANES];
double right[LANES];
Response response;

struct Wish {
  int in, out;
};

void add_up(void** requests, unsigned mask, void*) {
  int sum = 0;
  for (unsigned left = mask; left; left &= left - 1) sum += ((Wish*)requests[__builtin_ctz(left)])->in;
  for (unsigned left = mask; left; left &= left - 1) ((Wish*)requests[__builtin_ctz(left)])->out = sum;
}

// Integers and floating-point numbers that must survive the switches, in registers that the callee saves among others.
void lane_main(void* const*) {
  int t = msl_cur_pos->tiitg;
  double kept = t * 0.5, sum = 0;
  for (int n = 0; n < TIMES; n++) {
    tile[t] = t + n;
    msl_tg_barrier(3, "self_test", 1);
    sum += tile[LANES - 1 - t] * kept;
    Wish wish = {t, 0};
    msl_simd_collective(add_up, &wish, 1, "self_test", 2);
    sum += wish.out * kept;
    msl_tg_barrier(3, "self_test", 3);
  }
  double expected = 0;
  for (int n = 0; n < TIMES; n++) {
    expected += (LANES - 1 - t + n) * (t * 0.5);
    expected += (t / 32 * 32 * 32 + 31 * 16) * (t * 0.5);
  }
  right[t] = sum == expected;
}

void set_up() {
  group.lane_count = group.live = LANES;
  group.simdgroup_count = LANES / SIMD_WIDTH;
  group.ready = ~0u;
  group.at_barrier = 0;
  for (int i = 0; i < LANES; i++) {
    Lane& lane = group.lanes[i];
    lane.state = LaneState::New;
    lane.position.tiitg = i;
    lane.position.lane = i % SIMD_WIDTH;
    lane.simdgroup = &group.simdgroups[i / SIMD_WIDTH];
    right[i] = 0;
  }
  for (uint32_t i = 0; i < group.simdgroup_count; i++) {
    SimdGroup& simdgroup = group.simdgroups[i];
    simdgroup.index = i;
    simdgroup.all = simdgroup.live = simdgroup.ready = ~0u;
    simdgroup.waiting = 0;
  }
}

}  // namespace

int main() {
  Counters counters;
  msl_tgp.tgpg[0] = msl_tgp.tgpg[1] = msl_tgp.tgpg[2] = 1;
  reset_findings(&response, nullptr);
  reset_cost(&counters, nullptr, 0);
  for (Order order : {Order::Forward, Order::Reverse, Order::Random}) {
    settings.lanes = order;
    settings.random = 1;
    reset_stacks();
    set_up();
    run_threadgroup(lane_main, nullptr);
    for (int t = 0; t < LANES; t++)
      if (!right[t]) return printf("lane %d is wrong\n", t), 1;
  }
  if (response.report_count) return printf("%u reports\n", response.report_count), 2;
  printf("%d lanes met %d times in each of 3 orders\n", LANES, TIMES);
}
