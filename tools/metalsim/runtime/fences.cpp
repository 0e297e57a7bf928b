// A fence that releases makes a Release: what its thread, by then, has done or knows of. Atomics carry releases from who writes
// them to who reads them; a fence that acquires takes in what its thread has read. Threadgroups run one after the other, so
// whatever an atomic carries lies in the past.
//
// Where the rules are doubtful an order is taken for granted: better a race untold than a right kernel accused. So lanes that meet at
// a barrier share what they released and read as if the last of them had done it all (each thread fences, then one of them counts).
#include "fences.h"

#include <stdlib.h>
#include <string.h>

#include "memory.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// Releases that come before, as a graph whose nodes are shared and never change.
struct Releases {
  Moment moment;  // group1 0: none, `first` and `rest` alone
  const Releases* first;
  const Releases* rest;
  mutable uint32_t visit;  // the search that came by last
  mutable const Releases* next_to_visit;
};

// How far a fence reaches: to threads of its own threadgroup, or to all.
enum Reach { NEAR, FAR, REACHES };

typedef const Releases* Carried[MEMORIES][REACHES];

struct LaneFences {
  uint32_t count;
  Carried released;  // that its next atomic write carries
  Carried observed;  // that its atomic reads have brought: taken in by its next fence that acquires
  const Releases* known[MEMORIES];
};

struct Location {
  const void* atomic;
  uint32_t group;  // that accessed it last: what is NEAR, and threadgroup memory, is gone with it
  Carried carried;
};

enum MemoryOrder { RELAXED = 0, ACQUIRE = 2, RELEASE = 3 };
enum ThreadScope { SCOPE_THREAD = 1, SCOPE_DEVICE = 4 };

bool in_use;  // a fence was met in this launch
LaneFences of_lanes[MOST_LANES];
uint32_t visits;

constexpr int NODES_OF_BLOCK = 1 << 12;
struct Block {
  Block* earlier;
  Releases nodes[NODES_OF_BLOCK];
};
Block* block;
int nodes_used;

Location* locations;  // a hash table, a power of two long
size_t location_room, location_count;

LaneFences& own() { return of_lanes[current->position.tiitg]; }

const Releases* new_node(const Moment& moment, const Releases* first, const Releases* rest) {
  if (!block || nodes_used == NODES_OF_BLOCK) {
    Block* fresh = (Block*)malloc(sizeof(Block));
    fresh->earlier = block;
    block = fresh;
    nodes_used = 0;
  }
  Releases* node = &block->nodes[nodes_used++];
  *node = {moment, first, rest, 0, nullptr};
  return node;
}

const Releases* both(const Releases* a, const Releases* b) {
  if (!a || a == b) return b;
  if (!b || a->first == b || a->rest == b) return a;
  if (b->first == a || b->rest == a) return b;
  return new_node({}, a, b);
}

void add(Carried to, const Carried from) {
  for (int memory = 0; memory < MEMORIES; memory++)
    for (int reach = 0; reach < REACHES; reach++) to[memory][reach] = both(to[memory][reach], from[memory][reach]);
}

Location* place_for(const void* atomic) {
  size_t hash = (size_t)(((uintptr_t)atomic >> 2) * 0x9E3779B97F4A7C15ull >> 20);
  for (;; hash++) {
    Location* location = &locations[hash & (location_room - 1)];
    if (!location->atomic || location->atomic == atomic) return location;
  }
}

void grow() {
  Location* old = locations;
  size_t old_room = location_room;
  location_room = old_room ? 2 * old_room : 256;
  locations = (Location*)calloc(location_room, sizeof(Location));
  for (size_t i = 0; i < old_room; i++)
    if (old[i].atomic) *place_for(old[i].atomic) = old[i];
  free(old);
}

Location& location_of(const void* atomic) {
  if (2 * location_count >= location_room) grow();
  Location* location = place_for(atomic);
  if (!location->atomic) {
    location->atomic = atomic;
    location->group = group.number;
    location_count++;
  }
  if (location->group != group.number) {
    bool gone = slot_of(atomic) == THREADGROUP_SLOT;
    for (auto& carried : location->carried) {
      carried[NEAR] = nullptr;
      if (gone) carried[FAR] = nullptr;
    }
    location->group = group.number;
  }
  return *location;
}

// Does a release come after that moment, by the order of its own thread, its SIMD-group or its threadgroup?
bool covers(const Moment& release, const Moment& earlier) {
  if (release.group1 != earlier.group1) return false;
  if (release.thread == earlier.thread) return earlier.fences < release.fences || earlier.fences == MOST_FENCES;
  if (earlier.barriers < release.barriers) return true;
  return release.thread / SIMD_WIDTH == earlier.thread / SIMD_WIDTH && earlier.syncs < release.syncs;
}

}  // namespace

void reset_fences() {
  if (in_use) memset(of_lanes, 0, sizeof of_lanes);
  in_use = false;
  visits = 0;
  while (block) {
    Block* earlier = block->earlier;
    free(block);
    block = earlier;
  }
  free(locations);
  locations = nullptr;
  location_room = location_count = 0;
}

void reset_fences_of_group() {
  if (in_use) memset(of_lanes, 0, group.lane_count * sizeof *of_lanes);
}

uint32_t fences_so_far() { return own().count; }

void carry(const void* atomic, bool reads, bool writes) {
  if (!in_use) return;
  Location& location = location_of(atomic);
  LaneFences& lane = own();
  if (reads) add(lane.observed, location.carried);
  if (!writes) return;
  if (!reads) memset(location.carried, 0, sizeof location.carried);  // a store ends what others carry on by exchanging it
  add(location.carried, lane.released);
}

void share_fences(const uint32_t* numbers, uint32_t count, uint32_t flags) {
  if (!in_use) return;
  LaneFences all = {};
  for (uint32_t i = 0; i < count; i++) {
    const LaneFences& lane = of_lanes[numbers[i]];
    add(all.released, lane.released);
    add(all.observed, lane.observed);
    for (int memory = 0; memory < MEMORIES; memory++) all.known[memory] = both(all.known[memory], lane.known[memory]);
  }
  for (uint32_t i = 0; i < count; i++) {
    LaneFences& lane = of_lanes[numbers[i]];
    memcpy(lane.released, all.released, sizeof all.released);
    memcpy(lane.observed, all.observed, sizeof all.observed);
    for (int memory = 0; memory < MEMORIES; memory++)
      if (flags & FLAG_OF[memory]) lane.known[memory] = all.known[memory];
  }
}

bool fences_ordered(const Moment& earlier, Memory memory) {
  if (!in_use) return false;
  const Releases* to_visit = own().known[memory];
  if (!to_visit) return false;
  visits++;
  to_visit->visit = visits;
  to_visit->next_to_visit = nullptr;
  while (to_visit) {
    const Releases* node = to_visit;
    to_visit = node->next_to_visit;
    if (node->moment.group1 && covers(node->moment, earlier)) return true;
    const Releases* const earlier_ones[] = {node->rest, node->first};
    for (const Releases* before : earlier_ones) {
      if (!before || before->visit == visits) continue;
      before->visit = visits;
      before->next_to_visit = to_visit;
      to_visit = before;
    }
  }
  return false;
}

EXPORT void msl_fence(unsigned flags, int order, int scope) {
  if (settings.mode != Mode::Check || order == RELAXED || scope == SCOPE_THREAD) return;
  in_use = true;
  LaneFences& lane = own();
  bool releases = order != ACQUIRE, acquires = order != RELEASE;
  if (releases && lane.count < MOST_FENCES) lane.count++;
  for (int memory = 0; memory < MEMORIES; memory++) {
    if (!(flags & FLAG_OF[memory])) continue;
    for (int reach = NEAR; reach <= (scope == SCOPE_DEVICE ? FAR : NEAR); reach++) {
      if (acquires) lane.known[memory] = both(lane.known[memory], lane.observed[memory][reach]);
    }
    if (!releases) continue;
    Moment now = {group.number + 1, current->position.tiitg, lane.count, group.barriers[memory], current->synced[memory]};
    for (int reach = NEAR; reach <= (scope == SCOPE_DEVICE ? FAR : NEAR); reach++)
      lane.released[memory][reach] = new_node(now, lane.known[memory], lane.released[memory][reach]);
  }
}
