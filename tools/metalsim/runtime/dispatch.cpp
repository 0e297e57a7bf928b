// A launch: the library, the memory, then one threadgroup after the other.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "cost.h"
#include "dispatch.h"
#include "faults.h"
#include "fences.h"
#include "fibers.h"
#include "findings.h"
#include "memory.h"
#include "shadow.h"
#include "threadgroup.h"

namespace {

struct Library {
  char path[sizeof Request::library];
  void* handle;
  kernel_entry entry;
  void (*set_constant)(int, const void*);
  const void* base;
  size_t bytes;
  bool has_constants;
};

constexpr int MOST_LIBRARIES = 64;
Library libraries[MOST_LIBRARIES];
int next_library;

Library* find_library(const char* path) {
  for (Library& library : libraries)
    if (library.handle && !strcmp(library.path, path)) return &library;
  return nullptr;
}

void close_library(Library* library) {
  dlclose(library->handle);
  *library = {};
}

Library* open_library(const Request& request, Response* response) {
  Library* known = find_library(request.library);
  if (known && !known->has_constants) return known;
  // Function constants live in the library: one that had some is loaded anew, so that none are left over.
  Library* library = known ? known : &libraries[next_library++ % MOST_LIBRARIES];
  if (library->handle) close_library(library);
  library->handle = dlopen(request.library, RTLD_NOW | RTLD_LOCAL);
  struct stat state;
  Dl_info info;
  if (library->handle) library->entry = (kernel_entry)dlsym(library->handle, "msl_entry");
  if (!library->entry || stat(request.library, &state) || !dladdr((void*)library->entry, &info)) {
    const char* why = dlerror();
    snprintf(response->message, sizeof response->message, "%s", why ? why : "the library has no msl_entry");
    if (library->handle) close_library(library);
    return nullptr;
  }
  strcpy(library->path, request.library);
  library->set_constant = (void (*)(int, const void*))dlsym(library->handle, "msl_set_constant");
  library->base = info.dli_fbase;
  library->bytes = (size_t)state.st_size + (1 << 16);  // segments are spread out to page boundaries when loaded
  return library;
}

bool set_constants(const Request& request, Library* library, Response* response) {
  if (!request.constant_count) return true;
  if (!library->set_constant) {
    snprintf(response->message, sizeof response->message, "the library has no function constants (no msl_set_constant)");
    return false;
  }
  library->has_constants = true;
  for (uint32_t i = 0; i < request.constant_count; i++)
    library->set_constant(request.constants[i].index, request.constants[i].value);
  return true;
}

void set_up_threadgroup(const Request& request, uint32_t number) {
  uint32_t* position = msl_tgp.tgpig;
  set_group_position(position, number);
  for (int d = 0; d < 3; d++) {
    uint32_t left = request.grid[d] - position[d] * request.threadgroup[d];
    msl_tgp.tptg[d] = left < request.threadgroup[d] ? left : request.threadgroup[d];
  }
  const uint32_t* size = msl_tgp.tptg;
  group.number = number;
  group.lane_count = group.live = size[0] * size[1] * size[2];
  group.simdgroup_count = msl_tgp.nsg = (group.lane_count + SIMD_WIDTH - 1) / SIMD_WIDTH;
  group.at_barrier = 0;
  group.ready = group.simdgroup_count == 32 ? ~0u : (1u << group.simdgroup_count) - 1;
  for (uint32_t i = 0; i < group.lane_count; i++) {
    Lane& lane = group.lanes[i];
    uint32_t in_group[3] = {i % size[0], i / size[0] % size[1], i / size[0] / size[1]};
    for (int d = 0; d < 3; d++) {
      lane.position.tpitg[d] = in_group[d];
      lane.position.tpig[d] = position[d] * request.threadgroup[d] + in_group[d];
    }
    lane.position.tiitg = i;
    lane.position.sgi = i / SIMD_WIDTH;
    lane.position.lane = i % SIMD_WIDTH;
    lane.state = LaneState::New;
    lane.simdgroup = &group.simdgroups[i / SIMD_WIDTH];
    lane.line = 0;
  }
  for (uint32_t i = 0; i < group.simdgroup_count; i++) {
    SimdGroup& simdgroup = group.simdgroups[i];
    uint32_t lanes = group.lane_count - i * SIMD_WIDTH;
    simdgroup.index = i;
    simdgroup.all = simdgroup.live = simdgroup.ready = lanes >= SIMD_WIDTH ? ~0u : (1u << lanes) - 1;
    simdgroup.waiting = 0;
  }
  reset_variables();
  reset_fences_of_group();
}

// The threadgroups' numbers in a random order; null for the order of the numbers, or its reverse.
uint32_t* shuffled(uint32_t count) {
  if (settings.groups != Order::Random) return nullptr;
  uint32_t* numbers = (uint32_t*)malloc(count * sizeof *numbers);
  for (uint32_t i = 0; i < count; i++) {
    uint32_t other = next_random() % (i + 1);
    numbers[i] = numbers[other];
    numbers[other] = i;
  }
  return numbers;
}

void run_grid(const Request& request, Library* library, Counters& counters) {
  uint32_t count = 1;
  for (int d = 0; d < 3; d++) {
    msl_tgp.tgpg[d] = (request.grid[d] + request.threadgroup[d] - 1) / request.threadgroup[d];
    msl_tgp.tpg[d] = request.grid[d];
    msl_tgp.dtptg[d] = request.threadgroup[d];
    count *= msl_tgp.tgpg[d];
  }
  uint32_t* order = shuffled(count);
  for (uint32_t i = 0; i < count; i++) {
    set_up_threadgroup(request, order ? order[i] : settings.groups == Order::Reverse ? count - 1 - i : i);
    counters.threadgroups++;
    counters.simdgroups += group.simdgroup_count;
    counters.threads += group.lane_count;
    run_threadgroup(library->entry, buffer_arguments());
  }
  free(order);
}

uint64_t processor_nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return now.tv_sec * 1000000000ull + now.tv_nsec;
}

void set_settings(const Request& request) {
  settings.mode = request.mode;
  settings.lanes = request.lanes;
  settings.groups = request.groups;
  settings.strict = request.strict;
  settings.random = request.seed * 0x9E3779B97F4A7C15ull + 88172645463325252ull;
  if (!settings.random) settings.random = 1;
  msl_reduce_order = (int)request.reduction;
}

}  // namespace

bool dispatch(const Request& request, Response* response, int data_file, uint64_t data_bytes) {
  set_settings(request);
  current = nullptr;
  Library* library = open_library(request, response);
  if (!library || !set_constants(request, library, response)) return false;
  if (const char* problem = map_buffers(request, data_file)) {
    snprintf(response->message, sizeof response->message, "%s", problem);
    return false;
  }
  if (request.mode == Mode::Check && !reset_shadow(request, library->base)) {
    snprintf(response->message, sizeof response->message, "the system has no memory to check buffers of this size");
    return false;
  }
  set_library(library->base, library->bytes);
  reset_findings(response, library->base);
  reset_cost(&response->counters, library->base, library->bytes);
  reset_arena(request.threadgroup_bytes);
  reset_stacks();
  reset_fences();
  uint64_t began = processor_nanoseconds();
  start_timer(request.timeout_microseconds);
  run_grid(request, library, response->counters);
  stop_timer();
  response->nanoseconds = processor_nanoseconds() - began;
  response->threadgroup_bytes = threadgroup_peak();
  if (request.mode == Mode::Cost) response->block_count = finish_cost(data_file, data_bytes);
  return true;
}
