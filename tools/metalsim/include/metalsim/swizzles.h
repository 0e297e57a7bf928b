// Every swizzle of a vector of 2, 3 and 4 components, as members of the union that holds its elements.
// Generated: python make_swizzles.py > swizzles.h
#pragma once

#define MSL_SWIZZLES_2(T) \
  msl::swizzle<T, 2, 0, 0> xx; \
  msl::swizzle<T, 2, 0, 1> xy; \
  msl::swizzle<T, 2, 1, 0> yx; \
  msl::swizzle<T, 2, 1, 1> yy; \
  msl::swizzle<T, 2, 0, 0, 0> xxx; \
  msl::swizzle<T, 2, 0, 0, 1> xxy; \
  msl::swizzle<T, 2, 0, 1, 0> xyx; \
  msl::swizzle<T, 2, 0, 1, 1> xyy; \
  msl::swizzle<T, 2, 1, 0, 0> yxx; \
  msl::swizzle<T, 2, 1, 0, 1> yxy; \
  msl::swizzle<T, 2, 1, 1, 0> yyx; \
  msl::swizzle<T, 2, 1, 1, 1> yyy; \
  msl::swizzle<T, 2, 0, 0, 0, 0> xxxx; \
  msl::swizzle<T, 2, 0, 0, 0, 1> xxxy; \
  msl::swizzle<T, 2, 0, 0, 1, 0> xxyx; \
  msl::swizzle<T, 2, 0, 0, 1, 1> xxyy; \
  msl::swizzle<T, 2, 0, 1, 0, 0> xyxx; \
  msl::swizzle<T, 2, 0, 1, 0, 1> xyxy; \
  msl::swizzle<T, 2, 0, 1, 1, 0> xyyx; \
  msl::swizzle<T, 2, 0, 1, 1, 1> xyyy; \
  msl::swizzle<T, 2, 1, 0, 0, 0> yxxx; \
  msl::swizzle<T, 2, 1, 0, 0, 1> yxxy; \
  msl::swizzle<T, 2, 1, 0, 1, 0> yxyx; \
  msl::swizzle<T, 2, 1, 0, 1, 1> yxyy; \
  msl::swizzle<T, 2, 1, 1, 0, 0> yyxx; \
  msl::swizzle<T, 2, 1, 1, 0, 1> yyxy; \
  msl::swizzle<T, 2, 1, 1, 1, 0> yyyx; \
  msl::swizzle<T, 2, 1, 1, 1, 1> yyyy; \
  msl::swizzle<T, 2, 0, 0> rr; \
  msl::swizzle<T, 2, 0, 1> rg; \
  msl::swizzle<T, 2, 1, 0> gr; \
  msl::swizzle<T, 2, 1, 1> gg; \
  msl::swizzle<T, 2, 0, 0, 0> rrr; \
  msl::swizzle<T, 2, 0, 0, 1> rrg; \
  msl::swizzle<T, 2, 0, 1, 0> rgr; \
  msl::swizzle<T, 2, 0, 1, 1> rgg; \
  msl::swizzle<T, 2, 1, 0, 0> grr; \
  msl::swizzle<T, 2, 1, 0, 1> grg; \
  msl::swizzle<T, 2, 1, 1, 0> ggr; \
  msl::swizzle<T, 2, 1, 1, 1> ggg; \
  msl::swizzle<T, 2, 0, 0, 0, 0> rrrr; \
  msl::swizzle<T, 2, 0, 0, 0, 1> rrrg; \
  msl::swizzle<T, 2, 0, 0, 1, 0> rrgr; \
  msl::swizzle<T, 2, 0, 0, 1, 1> rrgg; \
  msl::swizzle<T, 2, 0, 1, 0, 0> rgrr; \
  msl::swizzle<T, 2, 0, 1, 0, 1> rgrg; \
  msl::swizzle<T, 2, 0, 1, 1, 0> rggr; \
  msl::swizzle<T, 2, 0, 1, 1, 1> rggg; \
  msl::swizzle<T, 2, 1, 0, 0, 0> grrr; \
  msl::swizzle<T, 2, 1, 0, 0, 1> grrg; \
  msl::swizzle<T, 2, 1, 0, 1, 0> grgr; \
  msl::swizzle<T, 2, 1, 0, 1, 1> grgg; \
  msl::swizzle<T, 2, 1, 1, 0, 0> ggrr; \
  msl::swizzle<T, 2, 1, 1, 0, 1> ggrg; \
  msl::swizzle<T, 2, 1, 1, 1, 0> gggr; \
  msl::swizzle<T, 2, 1, 1, 1, 1> gggg;

#define MSL_SWIZZLES_3(T) \
  msl::swizzle<T, 3, 0, 0> xx; \
  msl::swizzle<T, 3, 0, 1> xy; \
  msl::swizzle<T, 3, 0, 2> xz; \
  msl::swizzle<T, 3, 1, 0> yx; \
  msl::swizzle<T, 3, 1, 1> yy; \
  msl::swizzle<T, 3, 1, 2> yz; \
  msl::swizzle<T, 3, 2, 0> zx; \
  msl::swizzle<T, 3, 2, 1> zy; \
  msl::swizzle<T, 3, 2, 2> zz; \
  msl::swizzle<T, 3, 0, 0, 0> xxx; \
  msl::swizzle<T, 3, 0, 0, 1> xxy; \
  msl::swizzle<T, 3, 0, 0, 2> xxz; \
  msl::swizzle<T, 3, 0, 1, 0> xyx; \
  msl::swizzle<T, 3, 0, 1, 1> xyy; \
  msl::swizzle<T, 3, 0, 1, 2> xyz; \
  msl::swizzle<T, 3, 0, 2, 0> xzx; \
  msl::swizzle<T, 3, 0, 2, 1> xzy; \
  msl::swizzle<T, 3, 0, 2, 2> xzz; \
  msl::swizzle<T, 3, 1, 0, 0> yxx; \
  msl::swizzle<T, 3, 1, 0, 1> yxy; \
  msl::swizzle<T, 3, 1, 0, 2> yxz; \
  msl::swizzle<T, 3, 1, 1, 0> yyx; \
  msl::swizzle<T, 3, 1, 1, 1> yyy; \
  msl::swizzle<T, 3, 1, 1, 2> yyz; \
  msl::swizzle<T, 3, 1, 2, 0> yzx; \
  msl::swizzle<T, 3, 1, 2, 1> yzy; \
  msl::swizzle<T, 3, 1, 2, 2> yzz; \
  msl::swizzle<T, 3, 2, 0, 0> zxx; \
  msl::swizzle<T, 3, 2, 0, 1> zxy; \
  msl::swizzle<T, 3, 2, 0, 2> zxz; \
  msl::swizzle<T, 3, 2, 1, 0> zyx; \
  msl::swizzle<T, 3, 2, 1, 1> zyy; \
  msl::swizzle<T, 3, 2, 1, 2> zyz; \
  msl::swizzle<T, 3, 2, 2, 0> zzx; \
  msl::swizzle<T, 3, 2, 2, 1> zzy; \
  msl::swizzle<T, 3, 2, 2, 2> zzz; \
  msl::swizzle<T, 3, 0, 0, 0, 0> xxxx; \
  msl::swizzle<T, 3, 0, 0, 0, 1> xxxy; \
  msl::swizzle<T, 3, 0, 0, 0, 2> xxxz; \
  msl::swizzle<T, 3, 0, 0, 1, 0> xxyx; \
  msl::swizzle<T, 3, 0, 0, 1, 1> xxyy; \
  msl::swizzle<T, 3, 0, 0, 1, 2> xxyz; \
  msl::swizzle<T, 3, 0, 0, 2, 0> xxzx; \
  msl::swizzle<T, 3, 0, 0, 2, 1> xxzy; \
  msl::swizzle<T, 3, 0, 0, 2, 2> xxzz; \
  msl::swizzle<T, 3, 0, 1, 0, 0> xyxx; \
  msl::swizzle<T, 3, 0, 1, 0, 1> xyxy; \
  msl::swizzle<T, 3, 0, 1, 0, 2> xyxz; \
  msl::swizzle<T, 3, 0, 1, 1, 0> xyyx; \
  msl::swizzle<T, 3, 0, 1, 1, 1> xyyy; \
  msl::swizzle<T, 3, 0, 1, 1, 2> xyyz; \
  msl::swizzle<T, 3, 0, 1, 2, 0> xyzx; \
  msl::swizzle<T, 3, 0, 1, 2, 1> xyzy; \
  msl::swizzle<T, 3, 0, 1, 2, 2> xyzz; \
  msl::swizzle<T, 3, 0, 2, 0, 0> xzxx; \
  msl::swizzle<T, 3, 0, 2, 0, 1> xzxy; \
  msl::swizzle<T, 3, 0, 2, 0, 2> xzxz; \
  msl::swizzle<T, 3, 0, 2, 1, 0> xzyx; \
  msl::swizzle<T, 3, 0, 2, 1, 1> xzyy; \
  msl::swizzle<T, 3, 0, 2, 1, 2> xzyz; \
  msl::swizzle<T, 3, 0, 2, 2, 0> xzzx; \
  msl::swizzle<T, 3, 0, 2, 2, 1> xzzy; \
  msl::swizzle<T, 3, 0, 2, 2, 2> xzzz; \
  msl::swizzle<T, 3, 1, 0, 0, 0> yxxx; \
  msl::swizzle<T, 3, 1, 0, 0, 1> yxxy; \
  msl::swizzle<T, 3, 1, 0, 0, 2> yxxz; \
  msl::swizzle<T, 3, 1, 0, 1, 0> yxyx; \
  msl::swizzle<T, 3, 1, 0, 1, 1> yxyy; \
  msl::swizzle<T, 3, 1, 0, 1, 2> yxyz; \
  msl::swizzle<T, 3, 1, 0, 2, 0> yxzx; \
  msl::swizzle<T, 3, 1, 0, 2, 1> yxzy; \
  msl::swizzle<T, 3, 1, 0, 2, 2> yxzz; \
  msl::swizzle<T, 3, 1, 1, 0, 0> yyxx; \
  msl::swizzle<T, 3, 1, 1, 0, 1> yyxy; \
  msl::swizzle<T, 3, 1, 1, 0, 2> yyxz; \
  msl::swizzle<T, 3, 1, 1, 1, 0> yyyx; \
  msl::swizzle<T, 3, 1, 1, 1, 1> yyyy; \
  msl::swizzle<T, 3, 1, 1, 1, 2> yyyz; \
  msl::swizzle<T, 3, 1, 1, 2, 0> yyzx; \
  msl::swizzle<T, 3, 1, 1, 2, 1> yyzy; \
  msl::swizzle<T, 3, 1, 1, 2, 2> yyzz; \
  msl::swizzle<T, 3, 1, 2, 0, 0> yzxx; \
  msl::swizzle<T, 3, 1, 2, 0, 1> yzxy; \
  msl::swizzle<T, 3, 1, 2, 0, 2> yzxz; \
  msl::swizzle<T, 3, 1, 2, 1, 0> yzyx; \
  msl::swizzle<T, 3, 1, 2, 1, 1> yzyy; \
  msl::swizzle<T, 3, 1, 2, 1, 2> yzyz; \
  msl::swizzle<T, 3, 1, 2, 2, 0> yzzx; \
  msl::swizzle<T, 3, 1, 2, 2, 1> yzzy; \
  msl::swizzle<T, 3, 1, 2, 2, 2> yzzz; \
  msl::swizzle<T, 3, 2, 0, 0, 0> zxxx; \
  msl::swizzle<T, 3, 2, 0, 0, 1> zxxy; \
  msl::swizzle<T, 3, 2, 0, 0, 2> zxxz; \
  msl::swizzle<T, 3, 2, 0, 1, 0> zxyx; \
  msl::swizzle<T, 3, 2, 0, 1, 1> zxyy; \
  msl::swizzle<T, 3, 2, 0, 1, 2> zxyz; \
  msl::swizzle<T, 3, 2, 0, 2, 0> zxzx; \
  msl::swizzle<T, 3, 2, 0, 2, 1> zxzy; \
  msl::swizzle<T, 3, 2, 0, 2, 2> zxzz; \
  msl::swizzle<T, 3, 2, 1, 0, 0> zyxx; \
  msl::swizzle<T, 3, 2, 1, 0, 1> zyxy; \
  msl::swizzle<T, 3, 2, 1, 0, 2> zyxz; \
  msl::swizzle<T, 3, 2, 1, 1, 0> zyyx; \
  msl::swizzle<T, 3, 2, 1, 1, 1> zyyy; \
  msl::swizzle<T, 3, 2, 1, 1, 2> zyyz; \
  msl::swizzle<T, 3, 2, 1, 2, 0> zyzx; \
  msl::swizzle<T, 3, 2, 1, 2, 1> zyzy; \
  msl::swizzle<T, 3, 2, 1, 2, 2> zyzz; \
  msl::swizzle<T, 3, 2, 2, 0, 0> zzxx; \
  msl::swizzle<T, 3, 2, 2, 0, 1> zzxy; \
  msl::swizzle<T, 3, 2, 2, 0, 2> zzxz; \
  msl::swizzle<T, 3, 2, 2, 1, 0> zzyx; \
  msl::swizzle<T, 3, 2, 2, 1, 1> zzyy; \
  msl::swizzle<T, 3, 2, 2, 1, 2> zzyz; \
  msl::swizzle<T, 3, 2, 2, 2, 0> zzzx; \
  msl::swizzle<T, 3, 2, 2, 2, 1> zzzy; \
  msl::swizzle<T, 3, 2, 2, 2, 2> zzzz; \
  msl::swizzle<T, 3, 0, 0> rr; \
  msl::swizzle<T, 3, 0, 1> rg; \
  msl::swizzle<T, 3, 0, 2> rb; \
  msl::swizzle<T, 3, 1, 0> gr; \
  msl::swizzle<T, 3, 1, 1> gg; \
  msl::swizzle<T, 3, 1, 2> gb; \
  msl::swizzle<T, 3, 2, 0> br; \
  msl::swizzle<T, 3, 2, 1> bg; \
  msl::swizzle<T, 3, 2, 2> bb; \
  msl::swizzle<T, 3, 0, 0, 0> rrr; \
  msl::swizzle<T, 3, 0, 0, 1> rrg; \
  msl::swizzle<T, 3, 0, 0, 2> rrb; \
  msl::swizzle<T, 3, 0, 1, 0> rgr; \
  msl::swizzle<T, 3, 0, 1, 1> rgg; \
  msl::swizzle<T, 3, 0, 1, 2> rgb; \
  msl::swizzle<T, 3, 0, 2, 0> rbr; \
  msl::swizzle<T, 3, 0, 2, 1> rbg; \
  msl::swizzle<T, 3, 0, 2, 2> rbb; \
  msl::swizzle<T, 3, 1, 0, 0> grr; \
  msl::swizzle<T, 3, 1, 0, 1> grg; \
  msl::swizzle<T, 3, 1, 0, 2> grb; \
  msl::swizzle<T, 3, 1, 1, 0> ggr; \
  msl::swizzle<T, 3, 1, 1, 1> ggg; \
  msl::swizzle<T, 3, 1, 1, 2> ggb; \
  msl::swizzle<T, 3, 1, 2, 0> gbr; \
  msl::swizzle<T, 3, 1, 2, 1> gbg; \
  msl::swizzle<T, 3, 1, 2, 2> gbb; \
  msl::swizzle<T, 3, 2, 0, 0> brr; \
  msl::swizzle<T, 3, 2, 0, 1> brg; \
  msl::swizzle<T, 3, 2, 0, 2> brb; \
  msl::swizzle<T, 3, 2, 1, 0> bgr; \
  msl::swizzle<T, 3, 2, 1, 1> bgg; \
  msl::swizzle<T, 3, 2, 1, 2> bgb; \
  msl::swizzle<T, 3, 2, 2, 0> bbr; \
  msl::swizzle<T, 3, 2, 2, 1> bbg; \
  msl::swizzle<T, 3, 2, 2, 2> bbb; \
  msl::swizzle<T, 3, 0, 0, 0, 0> rrrr; \
  msl::swizzle<T, 3, 0, 0, 0, 1> rrrg; \
  msl::swizzle<T, 3, 0, 0, 0, 2> rrrb; \
  msl::swizzle<T, 3, 0, 0, 1, 0> rrgr; \
  msl::swizzle<T, 3, 0, 0, 1, 1> rrgg; \
  msl::swizzle<T, 3, 0, 0, 1, 2> rrgb; \
  msl::swizzle<T, 3, 0, 0, 2, 0> rrbr; \
  msl::swizzle<T, 3, 0, 0, 2, 1> rrbg; \
  msl::swizzle<T, 3, 0, 0, 2, 2> rrbb; \
  msl::swizzle<T, 3, 0, 1, 0, 0> rgrr; \
  msl::swizzle<T, 3, 0, 1, 0, 1> rgrg; \
  msl::swizzle<T, 3, 0, 1, 0, 2> rgrb; \
  msl::swizzle<T, 3, 0, 1, 1, 0> rggr; \
  msl::swizzle<T, 3, 0, 1, 1, 1> rggg; \
  msl::swizzle<T, 3, 0, 1, 1, 2> rggb; \
  msl::swizzle<T, 3, 0, 1, 2, 0> rgbr; \
  msl::swizzle<T, 3, 0, 1, 2, 1> rgbg; \
  msl::swizzle<T, 3, 0, 1, 2, 2> rgbb; \
  msl::swizzle<T, 3, 0, 2, 0, 0> rbrr; \
  msl::swizzle<T, 3, 0, 2, 0, 1> rbrg; \
  msl::swizzle<T, 3, 0, 2, 0, 2> rbrb; \
  msl::swizzle<T, 3, 0, 2, 1, 0> rbgr; \
  msl::swizzle<T, 3, 0, 2, 1, 1> rbgg; \
  msl::swizzle<T, 3, 0, 2, 1, 2> rbgb; \
  msl::swizzle<T, 3, 0, 2, 2, 0> rbbr; \
  msl::swizzle<T, 3, 0, 2, 2, 1> rbbg; \
  msl::swizzle<T, 3, 0, 2, 2, 2> rbbb; \
  msl::swizzle<T, 3, 1, 0, 0, 0> grrr; \
  msl::swizzle<T, 3, 1, 0, 0, 1> grrg; \
  msl::swizzle<T, 3, 1, 0, 0, 2> grrb; \
  msl::swizzle<T, 3, 1, 0, 1, 0> grgr; \
  msl::swizzle<T, 3, 1, 0, 1, 1> grgg; \
  msl::swizzle<T, 3, 1, 0, 1, 2> grgb; \
  msl::swizzle<T, 3, 1, 0, 2, 0> grbr; \
  msl::swizzle<T, 3, 1, 0, 2, 1> grbg; \
  msl::swizzle<T, 3, 1, 0, 2, 2> grbb; \
  msl::swizzle<T, 3, 1, 1, 0, 0> ggrr; \
  msl::swizzle<T, 3, 1, 1, 0, 1> ggrg; \
  msl::swizzle<T, 3, 1, 1, 0, 2> ggrb; \
  msl::swizzle<T, 3, 1, 1, 1, 0> gggr; \
  msl::swizzle<T, 3, 1, 1, 1, 1> gggg; \
  msl::swizzle<T, 3, 1, 1, 1, 2> gggb; \
  msl::swizzle<T, 3, 1, 1, 2, 0> ggbr; \
  msl::swizzle<T, 3, 1, 1, 2, 1> ggbg; \
  msl::swizzle<T, 3, 1, 1, 2, 2> ggbb; \
  msl::swizzle<T, 3, 1, 2, 0, 0> gbrr; \
  msl::swizzle<T, 3, 1, 2, 0, 1> gbrg; \
  msl::swizzle<T, 3, 1, 2, 0, 2> gbrb; \
  msl::swizzle<T, 3, 1, 2, 1, 0> gbgr; \
  msl::swizzle<T, 3, 1, 2, 1, 1> gbgg; \
  msl::swizzle<T, 3, 1, 2, 1, 2> gbgb; \
  msl::swizzle<T, 3, 1, 2, 2, 0> gbbr; \
  msl::swizzle<T, 3, 1, 2, 2, 1> gbbg; \
  msl::swizzle<T, 3, 1, 2, 2, 2> gbbb; \
  msl::swizzle<T, 3, 2, 0, 0, 0> brrr; \
  msl::swizzle<T, 3, 2, 0, 0, 1> brrg; \
  msl::swizzle<T, 3, 2, 0, 0, 2> brrb; \
  msl::swizzle<T, 3, 2, 0, 1, 0> brgr; \
  msl::swizzle<T, 3, 2, 0, 1, 1> brgg; \
  msl::swizzle<T, 3, 2, 0, 1, 2> brgb; \
  msl::swizzle<T, 3, 2, 0, 2, 0> brbr; \
  msl::swizzle<T, 3, 2, 0, 2, 1> brbg; \
  msl::swizzle<T, 3, 2, 0, 2, 2> brbb; \
  msl::swizzle<T, 3, 2, 1, 0, 0> bgrr; \
  msl::swizzle<T, 3, 2, 1, 0, 1> bgrg; \
  msl::swizzle<T, 3, 2, 1, 0, 2> bgrb; \
  msl::swizzle<T, 3, 2, 1, 1, 0> bggr; \
  msl::swizzle<T, 3, 2, 1, 1, 1> bggg; \
  msl::swizzle<T, 3, 2, 1, 1, 2> bggb; \
  msl::swizzle<T, 3, 2, 1, 2, 0> bgbr; \
  msl::swizzle<T, 3, 2, 1, 2, 1> bgbg; \
  msl::swizzle<T, 3, 2, 1, 2, 2> bgbb; \
  msl::swizzle<T, 3, 2, 2, 0, 0> bbrr; \
  msl::swizzle<T, 3, 2, 2, 0, 1> bbrg; \
  msl::swizzle<T, 3, 2, 2, 0, 2> bbrb; \
  msl::swizzle<T, 3, 2, 2, 1, 0> bbgr; \
  msl::swizzle<T, 3, 2, 2, 1, 1> bbgg; \
  msl::swizzle<T, 3, 2, 2, 1, 2> bbgb; \
  msl::swizzle<T, 3, 2, 2, 2, 0> bbbr; \
  msl::swizzle<T, 3, 2, 2, 2, 1> bbbg; \
  msl::swizzle<T, 3, 2, 2, 2, 2> bbbb;

#define MSL_SWIZZLES_4(T) \
  msl::swizzle<T, 4, 0, 0> xx; \
  msl::swizzle<T, 4, 0, 1> xy; \
  msl::swizzle<T, 4, 0, 2> xz; \
  msl::swizzle<T, 4, 0, 3> xw; \
  msl::swizzle<T, 4, 1, 0> yx; \
  msl::swizzle<T, 4, 1, 1> yy; \
  msl::swizzle<T, 4, 1, 2> yz; \
  msl::swizzle<T, 4, 1, 3> yw; \
  msl::swizzle<T, 4, 2, 0> zx; \
  msl::swizzle<T, 4, 2, 1> zy; \
  msl::swizzle<T, 4, 2, 2> zz; \
  msl::swizzle<T, 4, 2, 3> zw; \
  msl::swizzle<T, 4, 3, 0> wx; \
  msl::swizzle<T, 4, 3, 1> wy; \
  msl::swizzle<T, 4, 3, 2> wz; \
  msl::swizzle<T, 4, 3, 3> ww; \
  msl::swizzle<T, 4, 0, 0, 0> xxx; \
  msl::swizzle<T, 4, 0, 0, 1> xxy; \
  msl::swizzle<T, 4, 0, 0, 2> xxz; \
  msl::swizzle<T, 4, 0, 0, 3> xxw; \
  msl::swizzle<T, 4, 0, 1, 0> xyx; \
  msl::swizzle<T, 4, 0, 1, 1> xyy; \
  msl::swizzle<T, 4, 0, 1, 2> xyz; \
  msl::swizzle<T, 4, 0, 1, 3> xyw; \
  msl::swizzle<T, 4, 0, 2, 0> xzx; \
  msl::swizzle<T, 4, 0, 2, 1> xzy; \
  msl::swizzle<T, 4, 0, 2, 2> xzz; \
  msl::swizzle<T, 4, 0, 2, 3> xzw; \
  msl::swizzle<T, 4, 0, 3, 0> xwx; \
  msl::swizzle<T, 4, 0, 3, 1> xwy; \
  msl::swizzle<T, 4, 0, 3, 2> xwz; \
  msl::swizzle<T, 4, 0, 3, 3> xww; \
  msl::swizzle<T, 4, 1, 0, 0> yxx; \
  msl::swizzle<T, 4, 1, 0, 1> yxy; \
  msl::swizzle<T, 4, 1, 0, 2> yxz; \
  msl::swizzle<T, 4, 1, 0, 3> yxw; \
  msl::swizzle<T, 4, 1, 1, 0> yyx; \
  msl::swizzle<T, 4, 1, 1, 1> yyy; \
  msl::swizzle<T, 4, 1, 1, 2> yyz; \
  msl::swizzle<T, 4, 1, 1, 3> yyw; \
  msl::swizzle<T, 4, 1, 2, 0> yzx; \
  msl::swizzle<T, 4, 1, 2, 1> yzy; \
  msl::swizzle<T, 4, 1, 2, 2> yzz; \
  msl::swizzle<T, 4, 1, 2, 3> yzw; \
  msl::swizzle<T, 4, 1, 3, 0> ywx; \
  msl::swizzle<T, 4, 1, 3, 1> ywy; \
  msl::swizzle<T, 4, 1, 3, 2> ywz; \
  msl::swizzle<T, 4, 1, 3, 3> yww; \
  msl::swizzle<T, 4, 2, 0, 0> zxx; \
  msl::swizzle<T, 4, 2, 0, 1> zxy; \
  msl::swizzle<T, 4, 2, 0, 2> zxz; \
  msl::swizzle<T, 4, 2, 0, 3> zxw; \
  msl::swizzle<T, 4, 2, 1, 0> zyx; \
  msl::swizzle<T, 4, 2, 1, 1> zyy; \
  msl::swizzle<T, 4, 2, 1, 2> zyz; \
  msl::swizzle<T, 4, 2, 1, 3> zyw; \
  msl::swizzle<T, 4, 2, 2, 0> zzx; \
  msl::swizzle<T, 4, 2, 2, 1> zzy; \
  msl::swizzle<T, 4, 2, 2, 2> zzz; \
  msl::swizzle<T, 4, 2, 2, 3> zzw; \
  msl::swizzle<T, 4, 2, 3, 0> zwx; \
  msl::swizzle<T, 4, 2, 3, 1> zwy; \
  msl::swizzle<T, 4, 2, 3, 2> zwz; \
  msl::swizzle<T, 4, 2, 3, 3> zww; \
  msl::swizzle<T, 4, 3, 0, 0> wxx; \
  msl::swizzle<T, 4, 3, 0, 1> wxy; \
  msl::swizzle<T, 4, 3, 0, 2> wxz; \
  msl::swizzle<T, 4, 3, 0, 3> wxw; \
  msl::swizzle<T, 4, 3, 1, 0> wyx; \
  msl::swizzle<T, 4, 3, 1, 1> wyy; \
  msl::swizzle<T, 4, 3, 1, 2> wyz; \
  msl::swizzle<T, 4, 3, 1, 3> wyw; \
  msl::swizzle<T, 4, 3, 2, 0> wzx; \
  msl::swizzle<T, 4, 3, 2, 1> wzy; \
  msl::swizzle<T, 4, 3, 2, 2> wzz; \
  msl::swizzle<T, 4, 3, 2, 3> wzw; \
  msl::swizzle<T, 4, 3, 3, 0> wwx; \
  msl::swizzle<T, 4, 3, 3, 1> wwy; \
  msl::swizzle<T, 4, 3, 3, 2> wwz; \
  msl::swizzle<T, 4, 3, 3, 3> www; \
  msl::swizzle<T, 4, 0, 0, 0, 0> xxxx; \
  msl::swizzle<T, 4, 0, 0, 0, 1> xxxy; \
  msl::swizzle<T, 4, 0, 0, 0, 2> xxxz; \
  msl::swizzle<T, 4, 0, 0, 0, 3> xxxw; \
  msl::swizzle<T, 4, 0, 0, 1, 0> xxyx; \
  msl::swizzle<T, 4, 0, 0, 1, 1> xxyy; \
  msl::swizzle<T, 4, 0, 0, 1, 2> xxyz; \
  msl::swizzle<T, 4, 0, 0, 1, 3> xxyw; \
  msl::swizzle<T, 4, 0, 0, 2, 0> xxzx; \
  msl::swizzle<T, 4, 0, 0, 2, 1> xxzy; \
  msl::swizzle<T, 4, 0, 0, 2, 2> xxzz; \
  msl::swizzle<T, 4, 0, 0, 2, 3> xxzw; \
  msl::swizzle<T, 4, 0, 0, 3, 0> xxwx; \
  msl::swizzle<T, 4, 0, 0, 3, 1> xxwy; \
  msl::swizzle<T, 4, 0, 0, 3, 2> xxwz; \
  msl::swizzle<T, 4, 0, 0, 3, 3> xxww; \
  msl::swizzle<T, 4, 0, 1, 0, 0> xyxx; \
  msl::swizzle<T, 4, 0, 1, 0, 1> xyxy; \
  msl::swizzle<T, 4, 0, 1, 0, 2> xyxz; \
  msl::swizzle<T, 4, 0, 1, 0, 3> xyxw; \
  msl::swizzle<T, 4, 0, 1, 1, 0> xyyx; \
  msl::swizzle<T, 4, 0, 1, 1, 1> xyyy; \
  msl::swizzle<T, 4, 0, 1, 1, 2> xyyz; \
  msl::swizzle<T, 4, 0, 1, 1, 3> xyyw; \
  msl::swizzle<T, 4, 0, 1, 2, 0> xyzx; \
  msl::swizzle<T, 4, 0, 1, 2, 1> xyzy; \
  msl::swizzle<T, 4, 0, 1, 2, 2> xyzz; \
  msl::swizzle<T, 4, 0, 1, 2, 3> xyzw; \
  msl::swizzle<T, 4, 0, 1, 3, 0> xywx; \
  msl::swizzle<T, 4, 0, 1, 3, 1> xywy; \
  msl::swizzle<T, 4, 0, 1, 3, 2> xywz; \
  msl::swizzle<T, 4, 0, 1, 3, 3> xyww; \
  msl::swizzle<T, 4, 0, 2, 0, 0> xzxx; \
  msl::swizzle<T, 4, 0, 2, 0, 1> xzxy; \
  msl::swizzle<T, 4, 0, 2, 0, 2> xzxz; \
  msl::swizzle<T, 4, 0, 2, 0, 3> xzxw; \
  msl::swizzle<T, 4, 0, 2, 1, 0> xzyx; \
  msl::swizzle<T, 4, 0, 2, 1, 1> xzyy; \
  msl::swizzle<T, 4, 0, 2, 1, 2> xzyz; \
  msl::swizzle<T, 4, 0, 2, 1, 3> xzyw; \
  msl::swizzle<T, 4, 0, 2, 2, 0> xzzx; \
  msl::swizzle<T, 4, 0, 2, 2, 1> xzzy; \
  msl::swizzle<T, 4, 0, 2, 2, 2> xzzz; \
  msl::swizzle<T, 4, 0, 2, 2, 3> xzzw; \
  msl::swizzle<T, 4, 0, 2, 3, 0> xzwx; \
  msl::swizzle<T, 4, 0, 2, 3, 1> xzwy; \
  msl::swizzle<T, 4, 0, 2, 3, 2> xzwz; \
  msl::swizzle<T, 4, 0, 2, 3, 3> xzww; \
  msl::swizzle<T, 4, 0, 3, 0, 0> xwxx; \
  msl::swizzle<T, 4, 0, 3, 0, 1> xwxy; \
  msl::swizzle<T, 4, 0, 3, 0, 2> xwxz; \
  msl::swizzle<T, 4, 0, 3, 0, 3> xwxw; \
  msl::swizzle<T, 4, 0, 3, 1, 0> xwyx; \
  msl::swizzle<T, 4, 0, 3, 1, 1> xwyy; \
  msl::swizzle<T, 4, 0, 3, 1, 2> xwyz; \
  msl::swizzle<T, 4, 0, 3, 1, 3> xwyw; \
  msl::swizzle<T, 4, 0, 3, 2, 0> xwzx; \
  msl::swizzle<T, 4, 0, 3, 2, 1> xwzy; \
  msl::swizzle<T, 4, 0, 3, 2, 2> xwzz; \
  msl::swizzle<T, 4, 0, 3, 2, 3> xwzw; \
  msl::swizzle<T, 4, 0, 3, 3, 0> xwwx; \
  msl::swizzle<T, 4, 0, 3, 3, 1> xwwy; \
  msl::swizzle<T, 4, 0, 3, 3, 2> xwwz; \
  msl::swizzle<T, 4, 0, 3, 3, 3> xwww; \
  msl::swizzle<T, 4, 1, 0, 0, 0> yxxx; \
  msl::swizzle<T, 4, 1, 0, 0, 1> yxxy; \
  msl::swizzle<T, 4, 1, 0, 0, 2> yxxz; \
  msl::swizzle<T, 4, 1, 0, 0, 3> yxxw; \
  msl::swizzle<T, 4, 1, 0, 1, 0> yxyx; \
  msl::swizzle<T, 4, 1, 0, 1, 1> yxyy; \
  msl::swizzle<T, 4, 1, 0, 1, 2> yxyz; \
  msl::swizzle<T, 4, 1, 0, 1, 3> yxyw; \
  msl::swizzle<T, 4, 1, 0, 2, 0> yxzx; \
  msl::swizzle<T, 4, 1, 0, 2, 1> yxzy; \
  msl::swizzle<T, 4, 1, 0, 2, 2> yxzz; \
  msl::swizzle<T, 4, 1, 0, 2, 3> yxzw; \
  msl::swizzle<T, 4, 1, 0, 3, 0> yxwx; \
  msl::swizzle<T, 4, 1, 0, 3, 1> yxwy; \
  msl::swizzle<T, 4, 1, 0, 3, 2> yxwz; \
  msl::swizzle<T, 4, 1, 0, 3, 3> yxww; \
  msl::swizzle<T, 4, 1, 1, 0, 0> yyxx; \
  msl::swizzle<T, 4, 1, 1, 0, 1> yyxy; \
  msl::swizzle<T, 4, 1, 1, 0, 2> yyxz; \
  msl::swizzle<T, 4, 1, 1, 0, 3> yyxw; \
  msl::swizzle<T, 4, 1, 1, 1, 0> yyyx; \
  msl::swizzle<T, 4, 1, 1, 1, 1> yyyy; \
  msl::swizzle<T, 4, 1, 1, 1, 2> yyyz; \
  msl::swizzle<T, 4, 1, 1, 1, 3> yyyw; \
  msl::swizzle<T, 4, 1, 1, 2, 0> yyzx; \
  msl::swizzle<T, 4, 1, 1, 2, 1> yyzy; \
  msl::swizzle<T, 4, 1, 1, 2, 2> yyzz; \
  msl::swizzle<T, 4, 1, 1, 2, 3> yyzw; \
  msl::swizzle<T, 4, 1, 1, 3, 0> yywx; \
  msl::swizzle<T, 4, 1, 1, 3, 1> yywy; \
  msl::swizzle<T, 4, 1, 1, 3, 2> yywz; \
  msl::swizzle<T, 4, 1, 1, 3, 3> yyww; \
  msl::swizzle<T, 4, 1, 2, 0, 0> yzxx; \
  msl::swizzle<T, 4, 1, 2, 0, 1> yzxy; \
  msl::swizzle<T, 4, 1, 2, 0, 2> yzxz; \
  msl::swizzle<T, 4, 1, 2, 0, 3> yzxw; \
  msl::swizzle<T, 4, 1, 2, 1, 0> yzyx; \
  msl::swizzle<T, 4, 1, 2, 1, 1> yzyy; \
  msl::swizzle<T, 4, 1, 2, 1, 2> yzyz; \
  msl::swizzle<T, 4, 1, 2, 1, 3> yzyw; \
  msl::swizzle<T, 4, 1, 2, 2, 0> yzzx; \
  msl::swizzle<T, 4, 1, 2, 2, 1> yzzy; \
  msl::swizzle<T, 4, 1, 2, 2, 2> yzzz; \
  msl::swizzle<T, 4, 1, 2, 2, 3> yzzw; \
  msl::swizzle<T, 4, 1, 2, 3, 0> yzwx; \
  msl::swizzle<T, 4, 1, 2, 3, 1> yzwy; \
  msl::swizzle<T, 4, 1, 2, 3, 2> yzwz; \
  msl::swizzle<T, 4, 1, 2, 3, 3> yzww; \
  msl::swizzle<T, 4, 1, 3, 0, 0> ywxx; \
  msl::swizzle<T, 4, 1, 3, 0, 1> ywxy; \
  msl::swizzle<T, 4, 1, 3, 0, 2> ywxz; \
  msl::swizzle<T, 4, 1, 3, 0, 3> ywxw; \
  msl::swizzle<T, 4, 1, 3, 1, 0> ywyx; \
  msl::swizzle<T, 4, 1, 3, 1, 1> ywyy; \
  msl::swizzle<T, 4, 1, 3, 1, 2> ywyz; \
  msl::swizzle<T, 4, 1, 3, 1, 3> ywyw; \
  msl::swizzle<T, 4, 1, 3, 2, 0> ywzx; \
  msl::swizzle<T, 4, 1, 3, 2, 1> ywzy; \
  msl::swizzle<T, 4, 1, 3, 2, 2> ywzz; \
  msl::swizzle<T, 4, 1, 3, 2, 3> ywzw; \
  msl::swizzle<T, 4, 1, 3, 3, 0> ywwx; \
  msl::swizzle<T, 4, 1, 3, 3, 1> ywwy; \
  msl::swizzle<T, 4, 1, 3, 3, 2> ywwz; \
  msl::swizzle<T, 4, 1, 3, 3, 3> ywww; \
  msl::swizzle<T, 4, 2, 0, 0, 0> zxxx; \
  msl::swizzle<T, 4, 2, 0, 0, 1> zxxy; \
  msl::swizzle<T, 4, 2, 0, 0, 2> zxxz; \
  msl::swizzle<T, 4, 2, 0, 0, 3> zxxw; \
  msl::swizzle<T, 4, 2, 0, 1, 0> zxyx; \
  msl::swizzle<T, 4, 2, 0, 1, 1> zxyy; \
  msl::swizzle<T, 4, 2, 0, 1, 2> zxyz; \
  msl::swizzle<T, 4, 2, 0, 1, 3> zxyw; \
  msl::swizzle<T, 4, 2, 0, 2, 0> zxzx; \
  msl::swizzle<T, 4, 2, 0, 2, 1> zxzy; \
  msl::swizzle<T, 4, 2, 0, 2, 2> zxzz; \
  msl::swizzle<T, 4, 2, 0, 2, 3> zxzw; \
  msl::swizzle<T, 4, 2, 0, 3, 0> zxwx; \
  msl::swizzle<T, 4, 2, 0, 3, 1> zxwy; \
  msl::swizzle<T, 4, 2, 0, 3, 2> zxwz; \
  msl::swizzle<T, 4, 2, 0, 3, 3> zxww; \
  msl::swizzle<T, 4, 2, 1, 0, 0> zyxx; \
  msl::swizzle<T, 4, 2, 1, 0, 1> zyxy; \
  msl::swizzle<T, 4, 2, 1, 0, 2> zyxz; \
  msl::swizzle<T, 4, 2, 1, 0, 3> zyxw; \
  msl::swizzle<T, 4, 2, 1, 1, 0> zyyx; \
  msl::swizzle<T, 4, 2, 1, 1, 1> zyyy; \
  msl::swizzle<T, 4, 2, 1, 1, 2> zyyz; \
  msl::swizzle<T, 4, 2, 1, 1, 3> zyyw; \
  msl::swizzle<T, 4, 2, 1, 2, 0> zyzx; \
  msl::swizzle<T, 4, 2, 1, 2, 1> zyzy; \
  msl::swizzle<T, 4, 2, 1, 2, 2> zyzz; \
  msl::swizzle<T, 4, 2, 1, 2, 3> zyzw; \
  msl::swizzle<T, 4, 2, 1, 3, 0> zywx; \
  msl::swizzle<T, 4, 2, 1, 3, 1> zywy; \
  msl::swizzle<T, 4, 2, 1, 3, 2> zywz; \
  msl::swizzle<T, 4, 2, 1, 3, 3> zyww; \
  msl::swizzle<T, 4, 2, 2, 0, 0> zzxx; \
  msl::swizzle<T, 4, 2, 2, 0, 1> zzxy; \
  msl::swizzle<T, 4, 2, 2, 0, 2> zzxz; \
  msl::swizzle<T, 4, 2, 2, 0, 3> zzxw; \
  msl::swizzle<T, 4, 2, 2, 1, 0> zzyx; \
  msl::swizzle<T, 4, 2, 2, 1, 1> zzyy; \
  msl::swizzle<T, 4, 2, 2, 1, 2> zzyz; \
  msl::swizzle<T, 4, 2, 2, 1, 3> zzyw; \
  msl::swizzle<T, 4, 2, 2, 2, 0> zzzx; \
  msl::swizzle<T, 4, 2, 2, 2, 1> zzzy; \
  msl::swizzle<T, 4, 2, 2, 2, 2> zzzz; \
  msl::swizzle<T, 4, 2, 2, 2, 3> zzzw; \
  msl::swizzle<T, 4, 2, 2, 3, 0> zzwx; \
  msl::swizzle<T, 4, 2, 2, 3, 1> zzwy; \
  msl::swizzle<T, 4, 2, 2, 3, 2> zzwz; \
  msl::swizzle<T, 4, 2, 2, 3, 3> zzww; \
  msl::swizzle<T, 4, 2, 3, 0, 0> zwxx; \
  msl::swizzle<T, 4, 2, 3, 0, 1> zwxy; \
  msl::swizzle<T, 4, 2, 3, 0, 2> zwxz; \
  msl::swizzle<T, 4, 2, 3, 0, 3> zwxw; \
  msl::swizzle<T, 4, 2, 3, 1, 0> zwyx; \
  msl::swizzle<T, 4, 2, 3, 1, 1> zwyy; \
  msl::swizzle<T, 4, 2, 3, 1, 2> zwyz; \
  msl::swizzle<T, 4, 2, 3, 1, 3> zwyw; \
  msl::swizzle<T, 4, 2, 3, 2, 0> zwzx; \
  msl::swizzle<T, 4, 2, 3, 2, 1> zwzy; \
  msl::swizzle<T, 4, 2, 3, 2, 2> zwzz; \
  msl::swizzle<T, 4, 2, 3, 2, 3> zwzw; \
  msl::swizzle<T, 4, 2, 3, 3, 0> zwwx; \
  msl::swizzle<T, 4, 2, 3, 3, 1> zwwy; \
  msl::swizzle<T, 4, 2, 3, 3, 2> zwwz; \
  msl::swizzle<T, 4, 2, 3, 3, 3> zwww; \
  msl::swizzle<T, 4, 3, 0, 0, 0> wxxx; \
  msl::swizzle<T, 4, 3, 0, 0, 1> wxxy; \
  msl::swizzle<T, 4, 3, 0, 0, 2> wxxz; \
  msl::swizzle<T, 4, 3, 0, 0, 3> wxxw; \
  msl::swizzle<T, 4, 3, 0, 1, 0> wxyx; \
  msl::swizzle<T, 4, 3, 0, 1, 1> wxyy; \
  msl::swizzle<T, 4, 3, 0, 1, 2> wxyz; \
  msl::swizzle<T, 4, 3, 0, 1, 3> wxyw; \
  msl::swizzle<T, 4, 3, 0, 2, 0> wxzx; \
  msl::swizzle<T, 4, 3, 0, 2, 1> wxzy; \
  msl::swizzle<T, 4, 3, 0, 2, 2> wxzz; \
  msl::swizzle<T, 4, 3, 0, 2, 3> wxzw; \
  msl::swizzle<T, 4, 3, 0, 3, 0> wxwx; \
  msl::swizzle<T, 4, 3, 0, 3, 1> wxwy; \
  msl::swizzle<T, 4, 3, 0, 3, 2> wxwz; \
  msl::swizzle<T, 4, 3, 0, 3, 3> wxww; \
  msl::swizzle<T, 4, 3, 1, 0, 0> wyxx; \
  msl::swizzle<T, 4, 3, 1, 0, 1> wyxy; \
  msl::swizzle<T, 4, 3, 1, 0, 2> wyxz; \
  msl::swizzle<T, 4, 3, 1, 0, 3> wyxw; \
  msl::swizzle<T, 4, 3, 1, 1, 0> wyyx; \
  msl::swizzle<T, 4, 3, 1, 1, 1> wyyy; \
  msl::swizzle<T, 4, 3, 1, 1, 2> wyyz; \
  msl::swizzle<T, 4, 3, 1, 1, 3> wyyw; \
  msl::swizzle<T, 4, 3, 1, 2, 0> wyzx; \
  msl::swizzle<T, 4, 3, 1, 2, 1> wyzy; \
  msl::swizzle<T, 4, 3, 1, 2, 2> wyzz; \
  msl::swizzle<T, 4, 3, 1, 2, 3> wyzw; \
  msl::swizzle<T, 4, 3, 1, 3, 0> wywx; \
  msl::swizzle<T, 4, 3, 1, 3, 1> wywy; \
  msl::swizzle<T, 4, 3, 1, 3, 2> wywz; \
  msl::swizzle<T, 4, 3, 1, 3, 3> wyww; \
  msl::swizzle<T, 4, 3, 2, 0, 0> wzxx; \
  msl::swizzle<T, 4, 3, 2, 0, 1> wzxy; \
  msl::swizzle<T, 4, 3, 2, 0, 2> wzxz; \
  msl::swizzle<T, 4, 3, 2, 0, 3> wzxw; \
  msl::swizzle<T, 4, 3, 2, 1, 0> wzyx; \
  msl::swizzle<T, 4, 3, 2, 1, 1> wzyy; \
  msl::swizzle<T, 4, 3, 2, 1, 2> wzyz; \
  msl::swizzle<T, 4, 3, 2, 1, 3> wzyw; \
  msl::swizzle<T, 4, 3, 2, 2, 0> wzzx; \
  msl::swizzle<T, 4, 3, 2, 2, 1> wzzy; \
  msl::swizzle<T, 4, 3, 2, 2, 2> wzzz; \
  msl::swizzle<T, 4, 3, 2, 2, 3> wzzw; \
  msl::swizzle<T, 4, 3, 2, 3, 0> wzwx; \
  msl::swizzle<T, 4, 3, 2, 3, 1> wzwy; \
  msl::swizzle<T, 4, 3, 2, 3, 2> wzwz; \
  msl::swizzle<T, 4, 3, 2, 3, 3> wzww; \
  msl::swizzle<T, 4, 3, 3, 0, 0> wwxx; \
  msl::swizzle<T, 4, 3, 3, 0, 1> wwxy; \
  msl::swizzle<T, 4, 3, 3, 0, 2> wwxz; \
  msl::swizzle<T, 4, 3, 3, 0, 3> wwxw; \
  msl::swizzle<T, 4, 3, 3, 1, 0> wwyx; \
  msl::swizzle<T, 4, 3, 3, 1, 1> wwyy; \
  msl::swizzle<T, 4, 3, 3, 1, 2> wwyz; \
  msl::swizzle<T, 4, 3, 3, 1, 3> wwyw; \
  msl::swizzle<T, 4, 3, 3, 2, 0> wwzx; \
  msl::swizzle<T, 4, 3, 3, 2, 1> wwzy; \
  msl::swizzle<T, 4, 3, 3, 2, 2> wwzz; \
  msl::swizzle<T, 4, 3, 3, 2, 3> wwzw; \
  msl::swizzle<T, 4, 3, 3, 3, 0> wwwx; \
  msl::swizzle<T, 4, 3, 3, 3, 1> wwwy; \
  msl::swizzle<T, 4, 3, 3, 3, 2> wwwz; \
  msl::swizzle<T, 4, 3, 3, 3, 3> wwww; \
  msl::swizzle<T, 4, 0, 0> rr; \
  msl::swizzle<T, 4, 0, 1> rg; \
  msl::swizzle<T, 4, 0, 2> rb; \
  msl::swizzle<T, 4, 0, 3> ra; \
  msl::swizzle<T, 4, 1, 0> gr; \
  msl::swizzle<T, 4, 1, 1> gg; \
  msl::swizzle<T, 4, 1, 2> gb; \
  msl::swizzle<T, 4, 1, 3> ga; \
  msl::swizzle<T, 4, 2, 0> br; \
  msl::swizzle<T, 4, 2, 1> bg; \
  msl::swizzle<T, 4, 2, 2> bb; \
  msl::swizzle<T, 4, 2, 3> ba; \
  msl::swizzle<T, 4, 3, 0> ar; \
  msl::swizzle<T, 4, 3, 1> ag; \
  msl::swizzle<T, 4, 3, 2> ab; \
  msl::swizzle<T, 4, 3, 3> aa; \
  msl::swizzle<T, 4, 0, 0, 0> rrr; \
  msl::swizzle<T, 4, 0, 0, 1> rrg; \
  msl::swizzle<T, 4, 0, 0, 2> rrb; \
  msl::swizzle<T, 4, 0, 0, 3> rra; \
  msl::swizzle<T, 4, 0, 1, 0> rgr; \
  msl::swizzle<T, 4, 0, 1, 1> rgg; \
  msl::swizzle<T, 4, 0, 1, 2> rgb; \
  msl::swizzle<T, 4, 0, 1, 3> rga; \
  msl::swizzle<T, 4, 0, 2, 0> rbr; \
  msl::swizzle<T, 4, 0, 2, 1> rbg; \
  msl::swizzle<T, 4, 0, 2, 2> rbb; \
  msl::swizzle<T, 4, 0, 2, 3> rba; \
  msl::swizzle<T, 4, 0, 3, 0> rar; \
  msl::swizzle<T, 4, 0, 3, 1> rag; \
  msl::swizzle<T, 4, 0, 3, 2> rab; \
  msl::swizzle<T, 4, 0, 3, 3> raa; \
  msl::swizzle<T, 4, 1, 0, 0> grr; \
  msl::swizzle<T, 4, 1, 0, 1> grg; \
  msl::swizzle<T, 4, 1, 0, 2> grb; \
  msl::swizzle<T, 4, 1, 0, 3> gra; \
  msl::swizzle<T, 4, 1, 1, 0> ggr; \
  msl::swizzle<T, 4, 1, 1, 1> ggg; \
  msl::swizzle<T, 4, 1, 1, 2> ggb; \
  msl::swizzle<T, 4, 1, 1, 3> gga; \
  msl::swizzle<T, 4, 1, 2, 0> gbr; \
  msl::swizzle<T, 4, 1, 2, 1> gbg; \
  msl::swizzle<T, 4, 1, 2, 2> gbb; \
  msl::swizzle<T, 4, 1, 2, 3> gba; \
  msl::swizzle<T, 4, 1, 3, 0> gar; \
  msl::swizzle<T, 4, 1, 3, 1> gag; \
  msl::swizzle<T, 4, 1, 3, 2> gab; \
  msl::swizzle<T, 4, 1, 3, 3> gaa; \
  msl::swizzle<T, 4, 2, 0, 0> brr; \
  msl::swizzle<T, 4, 2, 0, 1> brg; \
  msl::swizzle<T, 4, 2, 0, 2> brb; \
  msl::swizzle<T, 4, 2, 0, 3> bra; \
  msl::swizzle<T, 4, 2, 1, 0> bgr; \
  msl::swizzle<T, 4, 2, 1, 1> bgg; \
  msl::swizzle<T, 4, 2, 1, 2> bgb; \
  msl::swizzle<T, 4, 2, 1, 3> bga; \
  msl::swizzle<T, 4, 2, 2, 0> bbr; \
  msl::swizzle<T, 4, 2, 2, 1> bbg; \
  msl::swizzle<T, 4, 2, 2, 2> bbb; \
  msl::swizzle<T, 4, 2, 2, 3> bba; \
  msl::swizzle<T, 4, 2, 3, 0> bar; \
  msl::swizzle<T, 4, 2, 3, 1> bag; \
  msl::swizzle<T, 4, 2, 3, 2> bab; \
  msl::swizzle<T, 4, 2, 3, 3> baa; \
  msl::swizzle<T, 4, 3, 0, 0> arr; \
  msl::swizzle<T, 4, 3, 0, 1> arg; \
  msl::swizzle<T, 4, 3, 0, 2> arb; \
  msl::swizzle<T, 4, 3, 0, 3> ara; \
  msl::swizzle<T, 4, 3, 1, 0> agr; \
  msl::swizzle<T, 4, 3, 1, 1> agg; \
  msl::swizzle<T, 4, 3, 1, 2> agb; \
  msl::swizzle<T, 4, 3, 1, 3> aga; \
  msl::swizzle<T, 4, 3, 2, 0> abr; \
  msl::swizzle<T, 4, 3, 2, 1> abg; \
  msl::swizzle<T, 4, 3, 2, 2> abb; \
  msl::swizzle<T, 4, 3, 2, 3> aba; \
  msl::swizzle<T, 4, 3, 3, 0> aar; \
  msl::swizzle<T, 4, 3, 3, 1> aag; \
  msl::swizzle<T, 4, 3, 3, 2> aab; \
  msl::swizzle<T, 4, 3, 3, 3> aaa; \
  msl::swizzle<T, 4, 0, 0, 0, 0> rrrr; \
  msl::swizzle<T, 4, 0, 0, 0, 1> rrrg; \
  msl::swizzle<T, 4, 0, 0, 0, 2> rrrb; \
  msl::swizzle<T, 4, 0, 0, 0, 3> rrra; \
  msl::swizzle<T, 4, 0, 0, 1, 0> rrgr; \
  msl::swizzle<T, 4, 0, 0, 1, 1> rrgg; \
  msl::swizzle<T, 4, 0, 0, 1, 2> rrgb; \
  msl::swizzle<T, 4, 0, 0, 1, 3> rrga; \
  msl::swizzle<T, 4, 0, 0, 2, 0> rrbr; \
  msl::swizzle<T, 4, 0, 0, 2, 1> rrbg; \
  msl::swizzle<T, 4, 0, 0, 2, 2> rrbb; \
  msl::swizzle<T, 4, 0, 0, 2, 3> rrba; \
  msl::swizzle<T, 4, 0, 0, 3, 0> rrar; \
  msl::swizzle<T, 4, 0, 0, 3, 1> rrag; \
  msl::swizzle<T, 4, 0, 0, 3, 2> rrab; \
  msl::swizzle<T, 4, 0, 0, 3, 3> rraa; \
  msl::swizzle<T, 4, 0, 1, 0, 0> rgrr; \
  msl::swizzle<T, 4, 0, 1, 0, 1> rgrg; \
  msl::swizzle<T, 4, 0, 1, 0, 2> rgrb; \
  msl::swizzle<T, 4, 0, 1, 0, 3> rgra; \
  msl::swizzle<T, 4, 0, 1, 1, 0> rggr; \
  msl::swizzle<T, 4, 0, 1, 1, 1> rggg; \
  msl::swizzle<T, 4, 0, 1, 1, 2> rggb; \
  msl::swizzle<T, 4, 0, 1, 1, 3> rgga; \
  msl::swizzle<T, 4, 0, 1, 2, 0> rgbr; \
  msl::swizzle<T, 4, 0, 1, 2, 1> rgbg; \
  msl::swizzle<T, 4, 0, 1, 2, 2> rgbb; \
  msl::swizzle<T, 4, 0, 1, 2, 3> rgba; \
  msl::swizzle<T, 4, 0, 1, 3, 0> rgar; \
  msl::swizzle<T, 4, 0, 1, 3, 1> rgag; \
  msl::swizzle<T, 4, 0, 1, 3, 2> rgab; \
  msl::swizzle<T, 4, 0, 1, 3, 3> rgaa; \
  msl::swizzle<T, 4, 0, 2, 0, 0> rbrr; \
  msl::swizzle<T, 4, 0, 2, 0, 1> rbrg; \
  msl::swizzle<T, 4, 0, 2, 0, 2> rbrb; \
  msl::swizzle<T, 4, 0, 2, 0, 3> rbra; \
  msl::swizzle<T, 4, 0, 2, 1, 0> rbgr; \
  msl::swizzle<T, 4, 0, 2, 1, 1> rbgg; \
  msl::swizzle<T, 4, 0, 2, 1, 2> rbgb; \
  msl::swizzle<T, 4, 0, 2, 1, 3> rbga; \
  msl::swizzle<T, 4, 0, 2, 2, 0> rbbr; \
  msl::swizzle<T, 4, 0, 2, 2, 1> rbbg; \
  msl::swizzle<T, 4, 0, 2, 2, 2> rbbb; \
  msl::swizzle<T, 4, 0, 2, 2, 3> rbba; \
  msl::swizzle<T, 4, 0, 2, 3, 0> rbar; \
  msl::swizzle<T, 4, 0, 2, 3, 1> rbag; \
  msl::swizzle<T, 4, 0, 2, 3, 2> rbab; \
  msl::swizzle<T, 4, 0, 2, 3, 3> rbaa; \
  msl::swizzle<T, 4, 0, 3, 0, 0> rarr; \
  msl::swizzle<T, 4, 0, 3, 0, 1> rarg; \
  msl::swizzle<T, 4, 0, 3, 0, 2> rarb; \
  msl::swizzle<T, 4, 0, 3, 0, 3> rara; \
  msl::swizzle<T, 4, 0, 3, 1, 0> ragr; \
  msl::swizzle<T, 4, 0, 3, 1, 1> ragg; \
  msl::swizzle<T, 4, 0, 3, 1, 2> ragb; \
  msl::swizzle<T, 4, 0, 3, 1, 3> raga; \
  msl::swizzle<T, 4, 0, 3, 2, 0> rabr; \
  msl::swizzle<T, 4, 0, 3, 2, 1> rabg; \
  msl::swizzle<T, 4, 0, 3, 2, 2> rabb; \
  msl::swizzle<T, 4, 0, 3, 2, 3> raba; \
  msl::swizzle<T, 4, 0, 3, 3, 0> raar; \
  msl::swizzle<T, 4, 0, 3, 3, 1> raag; \
  msl::swizzle<T, 4, 0, 3, 3, 2> raab; \
  msl::swizzle<T, 4, 0, 3, 3, 3> raaa; \
  msl::swizzle<T, 4, 1, 0, 0, 0> grrr; \
  msl::swizzle<T, 4, 1, 0, 0, 1> grrg; \
  msl::swizzle<T, 4, 1, 0, 0, 2> grrb; \
  msl::swizzle<T, 4, 1, 0, 0, 3> grra; \
  msl::swizzle<T, 4, 1, 0, 1, 0> grgr; \
  msl::swizzle<T, 4, 1, 0, 1, 1> grgg; \
  msl::swizzle<T, 4, 1, 0, 1, 2> grgb; \
  msl::swizzle<T, 4, 1, 0, 1, 3> grga; \
  msl::swizzle<T, 4, 1, 0, 2, 0> grbr; \
  msl::swizzle<T, 4, 1, 0, 2, 1> grbg; \
  msl::swizzle<T, 4, 1, 0, 2, 2> grbb; \
  msl::swizzle<T, 4, 1, 0, 2, 3> grba; \
  msl::swizzle<T, 4, 1, 0, 3, 0> grar; \
  msl::swizzle<T, 4, 1, 0, 3, 1> grag; \
  msl::swizzle<T, 4, 1, 0, 3, 2> grab; \
  msl::swizzle<T, 4, 1, 0, 3, 3> graa; \
  msl::swizzle<T, 4, 1, 1, 0, 0> ggrr; \
  msl::swizzle<T, 4, 1, 1, 0, 1> ggrg; \
  msl::swizzle<T, 4, 1, 1, 0, 2> ggrb; \
  msl::swizzle<T, 4, 1, 1, 0, 3> ggra; \
  msl::swizzle<T, 4, 1, 1, 1, 0> gggr; \
  msl::swizzle<T, 4, 1, 1, 1, 1> gggg; \
  msl::swizzle<T, 4, 1, 1, 1, 2> gggb; \
  msl::swizzle<T, 4, 1, 1, 1, 3> ggga; \
  msl::swizzle<T, 4, 1, 1, 2, 0> ggbr; \
  msl::swizzle<T, 4, 1, 1, 2, 1> ggbg; \
  msl::swizzle<T, 4, 1, 1, 2, 2> ggbb; \
  msl::swizzle<T, 4, 1, 1, 2, 3> ggba; \
  msl::swizzle<T, 4, 1, 1, 3, 0> ggar; \
  msl::swizzle<T, 4, 1, 1, 3, 1> ggag; \
  msl::swizzle<T, 4, 1, 1, 3, 2> ggab; \
  msl::swizzle<T, 4, 1, 1, 3, 3> ggaa; \
  msl::swizzle<T, 4, 1, 2, 0, 0> gbrr; \
  msl::swizzle<T, 4, 1, 2, 0, 1> gbrg; \
  msl::swizzle<T, 4, 1, 2, 0, 2> gbrb; \
  msl::swizzle<T, 4, 1, 2, 0, 3> gbra; \
  msl::swizzle<T, 4, 1, 2, 1, 0> gbgr; \
  msl::swizzle<T, 4, 1, 2, 1, 1> gbgg; \
  msl::swizzle<T, 4, 1, 2, 1, 2> gbgb; \
  msl::swizzle<T, 4, 1, 2, 1, 3> gbga; \
  msl::swizzle<T, 4, 1, 2, 2, 0> gbbr; \
  msl::swizzle<T, 4, 1, 2, 2, 1> gbbg; \
  msl::swizzle<T, 4, 1, 2, 2, 2> gbbb; \
  msl::swizzle<T, 4, 1, 2, 2, 3> gbba; \
  msl::swizzle<T, 4, 1, 2, 3, 0> gbar; \
  msl::swizzle<T, 4, 1, 2, 3, 1> gbag; \
  msl::swizzle<T, 4, 1, 2, 3, 2> gbab; \
  msl::swizzle<T, 4, 1, 2, 3, 3> gbaa; \
  msl::swizzle<T, 4, 1, 3, 0, 0> garr; \
  msl::swizzle<T, 4, 1, 3, 0, 1> garg; \
  msl::swizzle<T, 4, 1, 3, 0, 2> garb; \
  msl::swizzle<T, 4, 1, 3, 0, 3> gara; \
  msl::swizzle<T, 4, 1, 3, 1, 0> gagr; \
  msl::swizzle<T, 4, 1, 3, 1, 1> gagg; \
  msl::swizzle<T, 4, 1, 3, 1, 2> gagb; \
  msl::swizzle<T, 4, 1, 3, 1, 3> gaga; \
  msl::swizzle<T, 4, 1, 3, 2, 0> gabr; \
  msl::swizzle<T, 4, 1, 3, 2, 1> gabg; \
  msl::swizzle<T, 4, 1, 3, 2, 2> gabb; \
  msl::swizzle<T, 4, 1, 3, 2, 3> gaba; \
  msl::swizzle<T, 4, 1, 3, 3, 0> gaar; \
  msl::swizzle<T, 4, 1, 3, 3, 1> gaag; \
  msl::swizzle<T, 4, 1, 3, 3, 2> gaab; \
  msl::swizzle<T, 4, 1, 3, 3, 3> gaaa; \
  msl::swizzle<T, 4, 2, 0, 0, 0> brrr; \
  msl::swizzle<T, 4, 2, 0, 0, 1> brrg; \
  msl::swizzle<T, 4, 2, 0, 0, 2> brrb; \
  msl::swizzle<T, 4, 2, 0, 0, 3> brra; \
  msl::swizzle<T, 4, 2, 0, 1, 0> brgr; \
  msl::swizzle<T, 4, 2, 0, 1, 1> brgg; \
  msl::swizzle<T, 4, 2, 0, 1, 2> brgb; \
  msl::swizzle<T, 4, 2, 0, 1, 3> brga; \
  msl::swizzle<T, 4, 2, 0, 2, 0> brbr; \
  msl::swizzle<T, 4, 2, 0, 2, 1> brbg; \
  msl::swizzle<T, 4, 2, 0, 2, 2> brbb; \
  msl::swizzle<T, 4, 2, 0, 2, 3> brba; \
  msl::swizzle<T, 4, 2, 0, 3, 0> brar; \
  msl::swizzle<T, 4, 2, 0, 3, 1> brag; \
  msl::swizzle<T, 4, 2, 0, 3, 2> brab; \
  msl::swizzle<T, 4, 2, 0, 3, 3> braa; \
  msl::swizzle<T, 4, 2, 1, 0, 0> bgrr; \
  msl::swizzle<T, 4, 2, 1, 0, 1> bgrg; \
  msl::swizzle<T, 4, 2, 1, 0, 2> bgrb; \
  msl::swizzle<T, 4, 2, 1, 0, 3> bgra; \
  msl::swizzle<T, 4, 2, 1, 1, 0> bggr; \
  msl::swizzle<T, 4, 2, 1, 1, 1> bggg; \
  msl::swizzle<T, 4, 2, 1, 1, 2> bggb; \
  msl::swizzle<T, 4, 2, 1, 1, 3> bgga; \
  msl::swizzle<T, 4, 2, 1, 2, 0> bgbr; \
  msl::swizzle<T, 4, 2, 1, 2, 1> bgbg; \
  msl::swizzle<T, 4, 2, 1, 2, 2> bgbb; \
  msl::swizzle<T, 4, 2, 1, 2, 3> bgba; \
  msl::swizzle<T, 4, 2, 1, 3, 0> bgar; \
  msl::swizzle<T, 4, 2, 1, 3, 1> bgag; \
  msl::swizzle<T, 4, 2, 1, 3, 2> bgab; \
  msl::swizzle<T, 4, 2, 1, 3, 3> bgaa; \
  msl::swizzle<T, 4, 2, 2, 0, 0> bbrr; \
  msl::swizzle<T, 4, 2, 2, 0, 1> bbrg; \
  msl::swizzle<T, 4, 2, 2, 0, 2> bbrb; \
  msl::swizzle<T, 4, 2, 2, 0, 3> bbra; \
  msl::swizzle<T, 4, 2, 2, 1, 0> bbgr; \
  msl::swizzle<T, 4, 2, 2, 1, 1> bbgg; \
  msl::swizzle<T, 4, 2, 2, 1, 2> bbgb; \
  msl::swizzle<T, 4, 2, 2, 1, 3> bbga; \
  msl::swizzle<T, 4, 2, 2, 2, 0> bbbr; \
  msl::swizzle<T, 4, 2, 2, 2, 1> bbbg; \
  msl::swizzle<T, 4, 2, 2, 2, 2> bbbb; \
  msl::swizzle<T, 4, 2, 2, 2, 3> bbba; \
  msl::swizzle<T, 4, 2, 2, 3, 0> bbar; \
  msl::swizzle<T, 4, 2, 2, 3, 1> bbag; \
  msl::swizzle<T, 4, 2, 2, 3, 2> bbab; \
  msl::swizzle<T, 4, 2, 2, 3, 3> bbaa; \
  msl::swizzle<T, 4, 2, 3, 0, 0> barr; \
  msl::swizzle<T, 4, 2, 3, 0, 1> barg; \
  msl::swizzle<T, 4, 2, 3, 0, 2> barb; \
  msl::swizzle<T, 4, 2, 3, 0, 3> bara; \
  msl::swizzle<T, 4, 2, 3, 1, 0> bagr; \
  msl::swizzle<T, 4, 2, 3, 1, 1> bagg; \
  msl::swizzle<T, 4, 2, 3, 1, 2> bagb; \
  msl::swizzle<T, 4, 2, 3, 1, 3> baga; \
  msl::swizzle<T, 4, 2, 3, 2, 0> babr; \
  msl::swizzle<T, 4, 2, 3, 2, 1> babg; \
  msl::swizzle<T, 4, 2, 3, 2, 2> babb; \
  msl::swizzle<T, 4, 2, 3, 2, 3> baba; \
  msl::swizzle<T, 4, 2, 3, 3, 0> baar; \
  msl::swizzle<T, 4, 2, 3, 3, 1> baag; \
  msl::swizzle<T, 4, 2, 3, 3, 2> baab; \
  msl::swizzle<T, 4, 2, 3, 3, 3> baaa; \
  msl::swizzle<T, 4, 3, 0, 0, 0> arrr; \
  msl::swizzle<T, 4, 3, 0, 0, 1> arrg; \
  msl::swizzle<T, 4, 3, 0, 0, 2> arrb; \
  msl::swizzle<T, 4, 3, 0, 0, 3> arra; \
  msl::swizzle<T, 4, 3, 0, 1, 0> argr; \
  msl::swizzle<T, 4, 3, 0, 1, 1> argg; \
  msl::swizzle<T, 4, 3, 0, 1, 2> argb; \
  msl::swizzle<T, 4, 3, 0, 1, 3> arga; \
  msl::swizzle<T, 4, 3, 0, 2, 0> arbr; \
  msl::swizzle<T, 4, 3, 0, 2, 1> arbg; \
  msl::swizzle<T, 4, 3, 0, 2, 2> arbb; \
  msl::swizzle<T, 4, 3, 0, 2, 3> arba; \
  msl::swizzle<T, 4, 3, 0, 3, 0> arar; \
  msl::swizzle<T, 4, 3, 0, 3, 1> arag; \
  msl::swizzle<T, 4, 3, 0, 3, 2> arab; \
  msl::swizzle<T, 4, 3, 0, 3, 3> araa; \
  msl::swizzle<T, 4, 3, 1, 0, 0> agrr; \
  msl::swizzle<T, 4, 3, 1, 0, 1> agrg; \
  msl::swizzle<T, 4, 3, 1, 0, 2> agrb; \
  msl::swizzle<T, 4, 3, 1, 0, 3> agra; \
  msl::swizzle<T, 4, 3, 1, 1, 0> aggr; \
  msl::swizzle<T, 4, 3, 1, 1, 1> aggg; \
  msl::swizzle<T, 4, 3, 1, 1, 2> aggb; \
  msl::swizzle<T, 4, 3, 1, 1, 3> agga; \
  msl::swizzle<T, 4, 3, 1, 2, 0> agbr; \
  msl::swizzle<T, 4, 3, 1, 2, 1> agbg; \
  msl::swizzle<T, 4, 3, 1, 2, 2> agbb; \
  msl::swizzle<T, 4, 3, 1, 2, 3> agba; \
  msl::swizzle<T, 4, 3, 1, 3, 0> agar; \
  msl::swizzle<T, 4, 3, 1, 3, 1> agag; \
  msl::swizzle<T, 4, 3, 1, 3, 2> agab; \
  msl::swizzle<T, 4, 3, 1, 3, 3> agaa; \
  msl::swizzle<T, 4, 3, 2, 0, 0> abrr; \
  msl::swizzle<T, 4, 3, 2, 0, 1> abrg; \
  msl::swizzle<T, 4, 3, 2, 0, 2> abrb; \
  msl::swizzle<T, 4, 3, 2, 0, 3> abra; \
  msl::swizzle<T, 4, 3, 2, 1, 0> abgr; \
  msl::swizzle<T, 4, 3, 2, 1, 1> abgg; \
  msl::swizzle<T, 4, 3, 2, 1, 2> abgb; \
  msl::swizzle<T, 4, 3, 2, 1, 3> abga; \
  msl::swizzle<T, 4, 3, 2, 2, 0> abbr; \
  msl::swizzle<T, 4, 3, 2, 2, 1> abbg; \
  msl::swizzle<T, 4, 3, 2, 2, 2> abbb; \
  msl::swizzle<T, 4, 3, 2, 2, 3> abba; \
  msl::swizzle<T, 4, 3, 2, 3, 0> abar; \
  msl::swizzle<T, 4, 3, 2, 3, 1> abag; \
  msl::swizzle<T, 4, 3, 2, 3, 2> abab; \
  msl::swizzle<T, 4, 3, 2, 3, 3> abaa; \
  msl::swizzle<T, 4, 3, 3, 0, 0> aarr; \
  msl::swizzle<T, 4, 3, 3, 0, 1> aarg; \
  msl::swizzle<T, 4, 3, 3, 0, 2> aarb; \
  msl::swizzle<T, 4, 3, 3, 0, 3> aara; \
  msl::swizzle<T, 4, 3, 3, 1, 0> aagr; \
  msl::swizzle<T, 4, 3, 3, 1, 1> aagg; \
  msl::swizzle<T, 4, 3, 3, 1, 2> aagb; \
  msl::swizzle<T, 4, 3, 3, 1, 3> aaga; \
  msl::swizzle<T, 4, 3, 3, 2, 0> aabr; \
  msl::swizzle<T, 4, 3, 3, 2, 1> aabg; \
  msl::swizzle<T, 4, 3, 3, 2, 2> aabb; \
  msl::swizzle<T, 4, 3, 3, 2, 3> aaba; \
  msl::swizzle<T, 4, 3, 3, 3, 0> aaar; \
  msl::swizzle<T, 4, 3, 3, 3, 1> aaag; \
  msl::swizzle<T, 4, 3, 3, 3, 2> aaab; \
  msl::swizzle<T, 4, 3, 3, 3, 3> aaaa;
