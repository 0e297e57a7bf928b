// What atomic fences order: a fence that releases, an atomic write behind it, an atomic read of what that wrote, a fence behind
// that which acquires. What came before the first comes before what follows the last, in other threadgroups too.
#pragma once
#include <stdint.h>

#include "threadgroup.h"

// When an access was made, as far as its thread, its SIMD-group and its threadgroup count.
struct Moment {
  uint32_t group1;    // the threadgroup's number, counted from 1
  uint32_t thread;
  uint32_t fences;    // releasing ones of its thread before it, MOST_FENCES: that many or more
  uint32_t barriers;  // of its threadgroup, and synchronisations of its SIMD-group, that ordered its memory before it
  uint32_t syncs;
};

constexpr uint32_t MOST_FENCES = (1 << 17) - 1;

// Before a launch, and before a threadgroup.
void reset_fences();
void reset_fences_of_group();

// The current lane's releasing fences so far, at most MOST_FENCES.
uint32_t fences_so_far();

// The current lane accesses an atomic.
void carry(const void* atomic, bool reads, bool writes);

// Lanes of the current threadgroup, by number, have met at a barrier that orders that memory, if any.
void share_fences(const uint32_t* lanes, uint32_t count, uint32_t flags);

// Has the current lane learnt through fences of what was done at that moment?
bool fences_ordered(const Moment& earlier, Memory memory);
