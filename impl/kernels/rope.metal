// Rotary position embedding: one thread turns one pair of features in HEADS heads of a token.
//
// Inputs: x B×L×H×D row-contiguous; starts B, the position of each row's first token; frequencies dims/2, radians per
// position in float32; traditional: whether pairs are neighbours. Output: out B×L×H×D of dtype T.
// Grid: columns × head blocks × tokens. The first dims/2 columns are pairs, the D - dims others features that stay.
// Cosine and sine are the precise ones, whose range reduction is right for every float32 angle (the fast ones stop at
// pi), and serve all heads of the thread. Threads share nothing: no threadgroup memory, no barrier.

constexpr uint HEADS = 4;

const uint length = x_shape[1];
const uint heads = x_shape[2];
const uint features = x_shape[3];
const uint pairs = frequencies_shape[0];
const uint column = thread_position_in_grid.x;
const uint token = thread_position_in_grid.z;
const uint first_head = thread_position_in_grid.y * HEADS;
const uint last_head = min(first_head + HEADS, heads);

if (column >= pairs) {
  for (uint head = first_head; head < last_head; head++) {
    const size_t place = (size_t(token) * heads + head) * features + column + pairs;
    out[place] = x[place];
  }
  return;
}

const float position = static_cast<float>(starts[token / length] + static_cast<int>(token % length));
const float angle = position * frequencies[column];
const float cosine = precise::cos(angle);
const float sine = precise::sin(angle);
const uint first = traditional ? 2 * column : column;
const uint second = traditional ? first + 1 : first + pairs;
for (uint head = first_head; head < last_head; head++) {
  const size_t start = (size_t(token) * heads + head) * features;
  const float a = wide(x[start + first]);
  const float b = wide(x[start + second]);
  out[start + first] = static_cast<T>(a * cosine - b * sine);
  out[start + second] = static_cast<T>(a * sine + b * cosine);
}
