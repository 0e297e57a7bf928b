// <metal_quadgroup>: functions of four lanes whose indices differ in their two lowest bits.
#pragma once
#include "collective.h"

namespace msl {

// The four bits of the quad that a lane is in.
MSL_NOSAN inline uint of_quad(uint lanes) { return lanes >> (own_lane() & ~3u) & 15u; }

}  // namespace msl

namespace metal {

MSL_GROUP_FUNCTIONS(quad, 4)

inline bool quad_all(bool value, MSL_SITE) {
  const msl::votes v = msl::vote_on(value, file, line);
  return msl::of_quad(v.yes) == msl::of_quad(v.arrived);
}
inline bool quad_any(bool value, MSL_SITE) { return msl::of_quad(msl::vote_on(value, file, line).yes) != 0; }

class quad_vote {
 public:
  typedef ulong vote_t;
  explicit constexpr quad_vote(vote_t v = 0) : votes_(v) {}
  explicit constexpr operator vote_t() const { return votes_; }
  constexpr bool all() const { return (votes_ & 15) == 15; }
  constexpr bool any() const { return (votes_ & 15) != 0; }

 private:
  vote_t votes_;
};
inline quad_vote quad_ballot(bool value, MSL_SITE) { return quad_vote(msl::of_quad(msl::vote_on(value, file, line).yes)); }
inline quad_vote quad_active_threads_mask(MSL_SITE) { return quad_vote(msl::of_quad(msl::vote_on(true, file, line).arrived)); }
inline bool quad_is_first(MSL_SITE) {
  return uint(__builtin_ctz(msl::of_quad(msl::vote_on(true, file, line).arrived))) == (msl::own_lane() & 3);
}
inline bool quad_is_helper_thread() { return false; }
template <class A, class T = msl::value_t<A>>
inline T quad_broadcast_first(const A& data, MSL_SITE) {
  const int first = __builtin_ctz(msl::of_quad(msl::vote_on(true, file, line).arrived));
  return msl::take<T>(msl::group_start(int(msl::own_lane()), 4) + first, T(data), file, line);
}

}  // namespace metal
