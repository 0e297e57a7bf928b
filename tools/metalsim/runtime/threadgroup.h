// The threadgroup that runs: its lanes and SIMD-groups, and which of them may run. One at a time, in one system thread.
#pragma once
#include <stdint.h>

#include "metalsim/abi.h"
#include "protocol.h"

constexpr uint32_t SIMD_WIDTH = 32;
constexpr uint32_t MOST_LANES = 1024;  // Metal's limit for a threadgroup
constexpr uint32_t MOST_SIMDGROUPS = MOST_LANES / SIMD_WIDTH;

enum Memory { DEVICE, THREADGROUP, MEMORIES };    // the two that barriers and fences order
constexpr uint32_t FLAG_OF[MEMORIES] = {1, 2};  // mem_flags::mem_device, mem_threadgroup

enum class LaneState : uint8_t { New, Begun, AtBarrier, Ended };

struct SimdGroup;

struct Lane {
  msl_lane_pos position;
  LaneState state;
  SimdGroup* simdgroup;
  void* fiber;
  char* stack;
  // The number of the last synchronisation of its SIMD-group that this lane took part in (see SimdGroup::syncs).
  uint32_t synced[MEMORIES];
  // Where it waits, and for what.
  msl_collective_fn collective;  // null at a barrier
  void* request;
  int kind;
  uint32_t flags;
  const char* file;
  int line;
  uint64_t path;  // the calls that led there, as a hash
};

struct SimdGroup {
  uint32_t index;
  // Masks of lanes.
  uint32_t all;      // fewer than 32 in a threadgroup's last one
  uint32_t live;     // not ended
  uint32_t ready;
  uint32_t waiting;  // at a SIMD-group function or barrier
  bool waits_together;  // all of them at the same one, as far as is known
  Lane* first_waiting;
  uint32_t syncs[MEMORIES];  // how many synchronisations have ordered this memory so far, never reset
};

struct Threadgroup {
  Lane lanes[MOST_LANES];
  SimdGroup simdgroups[MOST_SIMDGROUPS];
  uint32_t lane_count, simdgroup_count;
  uint32_t live;         // lanes not ended
  uint32_t at_barrier;   // lanes at a threadgroup barrier
  uint32_t ready;        // mask of SIMD-groups with lanes that are ready
  uint32_t number;       // in the grid, x fastest
  uint32_t barriers[MEMORIES];  // how many barriers have ordered this memory so far, over all threadgroups
};

struct Settings {
  Mode mode;
  Order lanes, groups;
  bool strict;
  uint64_t random;  // state of the generator
};

extern Threadgroup group;
extern Settings settings;
extern Lane* current;  // null while no kernel code runs

typedef void (*kernel_entry)(void* const* buffers);

// Runs all lanes of the threadgroup that was set up, to the end.
void run_threadgroup(kernel_entry entry, void* const* buffers);

// Lets other lanes run until somebody makes the current one ready.
void wait_current();
void make_ready(SimdGroup* simdgroup, uint32_t lanes);

// Nothing is ready: releases whoever waits for lanes that will not come, and reports it. False if nobody waits.
bool resolve_incomplete();

uint64_t next_random();

// Where the threadgroup of that number is in the grid.
void set_group_position(uint32_t position[3], uint32_t number);
