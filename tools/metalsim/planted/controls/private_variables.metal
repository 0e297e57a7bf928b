// Variables and arrays set late, by helpers, in parts, in one branch and read in the same, in cases of a switch, in loops.
// launch: x=float32[64] out=float32[16] n=3 threads=16 threadgroup=16

#include <metal_stdlib>
using namespace metal;

struct Pair {
  float first, second;
  float many[3];
};

inline void halves(float value, thread float& whole, thread float* parts) {
  whole = value;
  for (int n = 0; n < 2; n++) {
    parts[n] = value / 2;
  }
}
template <typename T, int N>
inline T total(thread const T (&part)[N]) {
  T all(0);
  for (int n = 0; n < N; n++) all += part[n];
  return all;
}
constexpr int doubled(int n) {
  int twice[2] = {n, n};
  return twice[0] + twice[1];
}

kernel void ways(device const float* x, device float* out, constant int& n, uint i [[thread_position_in_grid]]) {
  float whole, parts[2], other = 1, unread;
  halves(x[i], whole, parts);
  uint later;
  unsigned int count = 0;
  Pair pair, copy;
  pair.first = whole;
  copy = pair;
  float4 vector;
  vector.x = parts[0];
  vector.yz = float2(parts[1], other);
  float4 same = vector;
  float some[4];
  float none[3] = {};
  half few[2][3] = {{1.0h, 2.0h}, {3.0h}};
  for (int k = 0; k < n; k++) {
    float inner;
    if (k % 2 == 0)
      inner = float(k);
    else
      inner = some[k - 1];
    some[k] = inner + none[k] + float(few[k % 2][k]);
  }
  switch (n) {
    case 1:
      float here;
      here = 1;
      other += here;
      break;
    case 3: {
      float there;
      there = 3;
      other += there;
    }
    default:
      other += 1;
  }
  float cosine;
  float sine = sincos(whole, cosine);
  int exponent;
  float fraction = frexp(1 + whole * whole, exponent);
  float integral;
  fraction += modf(whole, integral);
  bool late;
  if (n > 2) {
    later = i;
    late = true;
  }
  if (n > 2 && late) {
    count += later;
  }
  float read_in_loop;
  for (int k = 0; k < n - 3; k++) {
    out[i] = read_in_loop;
  }
  auto add = [&](float value) {
    float sum;
    sum = value + parts[0];
    return sum;
  };
  out[i] = copy.first + same.x + same.y + same.z + some[0] + some[n - 1] + other + add(sine) + cosine + fraction + integral +
           float(exponent + int(count) + doubled(2)) + total(parts) + total(none);
}
