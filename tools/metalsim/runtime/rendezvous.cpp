// Where lanes meet: SIMD-group functions, SIMD-group barriers, threadgroup barriers.
//
// A meeting is complete when every lane has come to it. If nothing can run and meetings are incomplete, lanes have gone
// different ways, or ended. What that means, by Metal's rules:
//   * a barrier, of a threadgroup or a SIMD-group, must be reached by all: divergent barrier.
//   * a simdgroup_matrix operation needs 32 lanes: divergent SIMD-group function.
//   * any other SIMD-group function works on the active lanes. A right kernel may do that (`if (i >= n) return;` before a
//     simd_sum), so that lanes idle is told as harmless; reading the value of a lane that takes no part is a finding.
// Lanes that a threadgroup's last SIMD-group never had are not missed, except by matrix operations.
// Since incomplete meetings are only resolved when nothing can run, who takes part does not depend on the schedule.
#include <string.h>

#include "cost.h"
#include "faults.h"
#include "fences.h"
#include "fibers.h"
#include "findings.h"
#include "threadgroup.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr int KIND_MATRIX = 5;    // the headers number the kinds of SIMD-group functions from 1
constexpr int KIND_MATRIX_ACCESS = 6;
constexpr int KIND_BARRIER = 100;

Lane* lanes_of(SimdGroup* simdgroup) { return &group.lanes[simdgroup->index * SIMD_WIDTH]; }

// What a function finds at its frame pointer, on x86-64 and arm64.
struct Frame {
  const Frame* caller;
  const char* return_address;
};

constexpr int MOST_FRAMES = 64;

// The calls that led to a meeting, innermost first: where a helper is called twice, or a line calls a function twice, lanes that went
// different ways do not meet, as on a GPU, which inlines all calls. Relative to the library, to be the same in every run.
uint64_t call_path(const void* frame_pointer) {
  const Frame* frame = (const Frame*)frame_pointer;
  const char* stack = current->stack;
  uint64_t path = 0;
  for (int i = 0; i < MOST_FRAMES; i++, frame = frame->caller) {
    bool on_stack = (const char*)frame >= stack && (const char*)(frame + 1) <= stack + FIBER_STACK_BYTES;
    if (!on_stack || !is_in_library(frame->return_address)) break;
    path = path * 0x9E3779B97F4A7C15 + (uint64_t)offset_in_library(frame->return_address);
  }
  return path;
}

bool same_site(const Lane* a, const Lane* b) {
  return a->line == b->line && a->path == b->path && (a->file == b->file || !strcmp(a->file, b->file));
}

bool same_meeting(const Lane* a, const Lane* b) {
  return a->collective == b->collective && a->kind == b->kind && same_site(a, b);
}

bool needs_all_lanes(const Lane* lane) { return lane->kind == KIND_MATRIX || lane->kind == KIND_MATRIX_ACCESS; }

// The lanes that a meeting is complete with.
uint32_t needed_for(const Lane* lane) { return needs_all_lanes(lane) ? ~0u : lane->simdgroup->all; }

// The lanes of `mask` that wait at the meeting at which `lane` waits.
uint32_t waiting_with(const Lane* lane, uint32_t mask) {
  Lane* lanes = lanes_of(lane->simdgroup);
  uint32_t with = 0;
  for (uint32_t left = mask; left; left &= left - 1) {
    int i = __builtin_ctz(left);
    if (same_meeting(lane, &lanes[i])) with |= 1u << i;
  }
  return with;
}

// By the rules SIMD-group functions are no memory fences. Kernels in the wild take them for ones, lanes of a SIMD-group running
// in step; so they order memory here too, except in strict mode.
uint32_t orders(const Lane* lane) {
  if (lane->kind == KIND_BARRIER) return lane->flags;
  if (lane->kind == KIND_MATRIX_ACCESS) return 0;  // each lane goes on by itself
  return settings.strict ? 0 : FLAG_OF[DEVICE] | FLAG_OF[THREADGROUP];
}

void synchronise(SimdGroup* simdgroup, uint32_t mask, uint32_t flags) {
  Lane* lanes = lanes_of(simdgroup);
  for (int memory = 0; memory < MEMORIES; memory++) {
    if (!(flags & FLAG_OF[memory])) continue;
    uint32_t sync = ++simdgroup->syncs[memory];
    for (uint32_t left = mask; left; left &= left - 1) lanes[__builtin_ctz(left)].synced[memory] = sync;
  }
  uint32_t numbers[SIMD_WIDTH], count = 0;
  for (uint32_t left = mask; left; left &= left - 1) numbers[count++] = simdgroup->index * SIMD_WIDTH + __builtin_ctz(left);
  share_fences(numbers, count, flags);
}

// The lanes of `mask` have met: does what they came for, and lets all but `running` go on.
void hold(SimdGroup* simdgroup, uint32_t mask, Lane* running) {
  Lane* lanes = lanes_of(simdgroup);
  Lane* first = &lanes[__builtin_ctz(mask)];
  count_collective(first->kind == KIND_BARRIER ? 0 : first->kind);
  if (settings.mode == Mode::Check) synchronise(simdgroup, mask, orders(first));
  if (first->collective) {
    void* requests[SIMD_WIDTH];
    for (uint32_t left = mask; left; left &= left - 1) requests[__builtin_ctz(left)] = lanes[__builtin_ctz(left)].request;
    pause_counting(true);
    first->collective(requests, mask, nullptr);
    pause_counting(false);
  }
  simdgroup->waiting &= ~mask;
  simdgroup->waits_together = false;  // any that still wait: found to be together, if they are, when nothing else can run
  make_ready(simdgroup, running ? mask & ~(1u << running->position.lane) : mask);
}

void arrive_at_simdgroup(msl_collective_fn collective, void* request, int kind, uint32_t flags, const char* file, int line,
                         uint64_t path) {
  Lane* lane = current;
  SimdGroup* simdgroup = lane->simdgroup;
  lane->collective = collective;
  lane->request = request;
  lane->kind = kind;
  lane->flags = flags;
  lane->file = file;
  lane->line = line;
  lane->path = path;
  last_kernel_pc = nullptr;
  if (!simdgroup->waiting) {
    simdgroup->first_waiting = lane;
    simdgroup->waits_together = true;
  } else if (!same_meeting(lane, simdgroup->first_waiting)) {
    simdgroup->waits_together = false;
  }
  simdgroup->waiting |= 1u << lane->position.lane;
  if (simdgroup->waiting == needed_for(lane) && simdgroup->waits_together) {
    hold(simdgroup, simdgroup->waiting, lane);
    return;
  }
  wait_current();
}

void report_missing_lanes(const Lane* lane, uint32_t mask) {
  uint32_t needed = needed_for(lane);
  if (mask == needed) return;
  Finding finding = lane->kind == KIND_BARRIER ? Finding::DivergentBarrier
                    : needs_all_lanes(lane)    ? Finding::DivergentCollective
                                               : Finding::PartialCollective;
  if (ReportRecord* record = new_finding(finding, {nullptr, nullptr, lane->file, lane->line}, {}, lane)) {
    record->reason = Reason::LanesMissing;
    record->info[0] = mask;
    record->info[1] = needed;
  }
}

// Resolved at the lowest line first: a loop's lanes catch up with those that have left it, as a GPU's do that reconverges behind the
// loop. Wrong only where the code behind calls a function that is written above.
void resolve_simdgroup(SimdGroup* simdgroup) {
  Lane* lanes = lanes_of(simdgroup);
  Lane* lowest = nullptr;
  for (uint32_t left = simdgroup->waiting; left; left &= left - 1) {
    Lane* lane = &lanes[__builtin_ctz(left)];
    if (!lowest || lane->line < lowest->line) lowest = lane;
  }
  uint32_t mask = waiting_with(lowest, simdgroup->waiting);
  report_missing_lanes(lowest, mask);
  current = lowest;
  hold(simdgroup, mask, nullptr);
  current = nullptr;
}

bool is_at_barrier(const Lane* lane) { return lane->state == LaneState::AtBarrier || lane == current; }

// Lanes at the barrier, of which the current one is the last to come if there is one: are they all, and at the same one?
void report_divergent_barrier() {
  Lane* first = nullptr;
  Lane* ended = nullptr;
  for (uint32_t i = 0; i < group.lane_count; i++) {
    Lane* lane = &group.lanes[i];
    if (lane->state == LaneState::Ended && !ended) ended = lane;
    if (!is_at_barrier(lane)) continue;
    if (!first) first = lane;
    if (same_site(lane, first)) continue;
    Place place{nullptr, nullptr, first->file, first->line}, other{nullptr, nullptr, lane->file, lane->line};
    if (ReportRecord* record = new_finding(Finding::DivergentBarrier, place, other, first)) {
      record->reason = Reason::OtherBarrier;
      record->has_other = 1;
      record->other.thread = lane->position.tiitg;
    }
    return;
  }
  if (!ended) return;
  if (ReportRecord* record = new_finding(Finding::DivergentBarrier, {nullptr, nullptr, first->file, first->line}, {}, first)) {
    record->reason = Reason::ThreadsEnded;
    record->has_other = 1;
    record->other.thread = ended->position.tiitg;
    record->info[0] = group.lane_count - group.live;
  }
}

void release_barrier() {
  uint32_t flags = ~0u;
  for (uint32_t i = 0; i < group.lane_count; i++)
    if (is_at_barrier(&group.lanes[i])) flags &= group.lanes[i].flags;
  for (int memory = 0; memory < MEMORIES; memory++)
    if (flags & FLAG_OF[memory]) group.barriers[memory]++;
  count_barrier();
  group.at_barrier = 0;
  uint32_t waited[MOST_LANES], count = 0;
  for (uint32_t i = 0; i < group.lane_count; i++)
    if (is_at_barrier(&group.lanes[i])) waited[count++] = i;
  share_fences(waited, count, flags);
  for (uint32_t i = 0; i < group.lane_count; i++) {
    Lane& lane = group.lanes[i];
    if (lane.state != LaneState::AtBarrier) continue;
    lane.state = LaneState::Begun;
    make_ready(lane.simdgroup, 1u << lane.position.lane);
  }
}

}  // namespace

EXPORT void msl_simd_collective(msl_collective_fn collective, void* request, int kind, const char* file, int line) {
  arrive_at_simdgroup(collective, request, kind, 0, file, line, call_path(__builtin_frame_address(0)));
}

EXPORT void msl_simd_barrier(unsigned flags, const char* file, int line) {
  arrive_at_simdgroup(nullptr, nullptr, KIND_BARRIER, flags, file, line, call_path(__builtin_frame_address(0)));
}

EXPORT void msl_tg_barrier(unsigned flags, const char* file, int line) {
  current->flags = flags;
  current->file = file;
  current->line = line;
  current->path = call_path(__builtin_frame_address(0));
  last_kernel_pc = nullptr;
  if (++group.at_barrier < group.lane_count) {
    current->state = LaneState::AtBarrier;
    wait_current();
    return;
  }
  report_divergent_barrier();
  release_barrier();
}

// Called by a collective that was asked for the value of a lane that takes no part.
EXPORT void msl_bad_shuffle(unsigned lane, unsigned source, unsigned mask) {
  const Lane* reader = &lanes_of(current->simdgroup)[lane];
  if (ReportRecord* record = new_finding(Finding::InactiveLane, {nullptr, nullptr, reader->file, reader->line}, {}, reader)) {
    record->reason = Reason::LaneRead;
    record->info[0] = source;
    record->info[1] = mask;
  }
}

bool resolve_incomplete() {
  for (uint32_t i = 0; i < group.simdgroup_count; i++) {
    if (!group.simdgroups[i].waiting) continue;
    resolve_simdgroup(&group.simdgroups[i]);
    return true;
  }
  if (!group.at_barrier) return false;
  report_divergent_barrier();
  release_barrier();
  return true;
}
