// <metal_simdgroup>: functions of the 32 lanes of a SIMD-group. Reductions, scans and votes are over the lanes that are active:
// alive, and at this call.
#pragma once
#include "collective.h"

namespace metal {

MSL_GROUP_FUNCTIONS(simd, 32)

inline bool simd_all(bool value, MSL_SITE) {
  const msl::votes v = msl::vote_on(value, file, line);
  return v.yes == v.arrived;
}
inline bool simd_any(bool value, MSL_SITE) { return msl::vote_on(value, file, line).yes != 0; }

// A bit for each lane.
class simd_vote {
 public:
  typedef ulong vote_t;
  explicit constexpr simd_vote(vote_t v = 0) : votes_(v) {}
  explicit constexpr operator vote_t() const { return votes_; }
  constexpr bool all() const { return (votes_ & 0xffffffffu) == 0xffffffffu; }
  constexpr bool any() const { return (votes_ & 0xffffffffu) != 0; }

 private:
  vote_t votes_;
};
inline simd_vote simd_ballot(bool value, MSL_SITE) { return simd_vote(msl::vote_on(value, file, line).yes); }
inline simd_vote simd_active_threads_mask(MSL_SITE) { return simd_vote(msl::vote_on(true, file, line).arrived); }
inline bool simd_is_first(MSL_SITE) { return uint(__builtin_ctz(msl::vote_on(true, file, line).arrived)) == msl::own_lane(); }
inline bool simd_is_helper_thread() { return false; }
template <class A, class T = msl::value_t<A>>
inline T simd_broadcast_first(const A& data, MSL_SITE) {
  const uint active = msl::vote_on(true, file, line).arrived;
  return msl::take<T>(__builtin_ctz(active), T(data), file, line);
}

}  // namespace metal
