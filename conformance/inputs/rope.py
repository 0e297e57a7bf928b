"""Calls of rotary position embedding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, OutsideEnvelope
from inferspec.conformance.strategies import EDGES, ODD_TILES, Calls, Pick, calls, in_reach
from inferspec.spec.numerics import f64, round_to
from inferspec.spec.rope import RoPE

ROPE = "RoPE"
EXAMPLES = {ROPE: Call(ROPE, {"dims": 4, "max_positions": 8, "x": np.ones((1, 2, 1, 4), np.float32)})}


def _of_no_tokens(envelope: Envelope) -> Call:
    dims = envelope["head_dims"][0]
    return EXAMPLES[ROPE].having(dims=dims, x=np.ones((1, 0, 1, dims), np.float32))


def _of_more_features(envelope: Envelope) -> Call:
    """Half of the features turn, or two of six; none more where the claimed heads have but two."""
    features = next((dim for dim in envelope["head_dims"] if dim > 2), 2)
    return EXAMPLES[ROPE].having(dims=max(features // 4 * 2, 2), x=np.ones((1, 2, 1, features), np.float32))


OPTIONAL = {ROPE: {"empty": {True: _of_no_tokens}, "partial": {True: _of_more_features}}}
"""Choices that may be refused, by their key, each with what makes a call of an envelope that asks for it and for nothing else
that is rare."""

Sizes = Callable[[Pick], tuple[int, int, int]]
"""Draws batch, length and heads."""

NEAR = (0, 1, 2, 3, 5, 17, 100)
STARTS = (*NEAR, 255, 256, 257, 1000, 2047, 2049, 4000, 32768, 65503, 65535, 65536, 100003, 2**17)
"""First positions: beside what bfloat16 (256), float16 (2048, 65504) and 16-bit integers hold."""


def small(pick: Pick) -> tuple[int, int, int]:
    """A few rows, tokens and heads, no two numbers of them equal but for 1."""
    batch, length = pick.size(1, 4), pick.size(1, 9)
    return batch, length, pick.one_of(1, *(n for n in (2, 3, 5, 8) if n not in (batch, length)))


def decode(pick: Pick) -> tuple[int, int, int]:
    """One token for each of several rows."""
    batch = pick.size(2, 6)
    return batch, 1, pick.one_of(1, *(n for n in (2, 3, 5) if n != batch))


def prefill(pick: Pick) -> tuple[int, int, int]:
    """Several tokens."""
    batch, length = pick.size(1, 3), pick.size(2, 12)
    return batch, length, pick.one_of(1, *(n for n in (2, 3, 5) if n not in (batch, length)))


def several_rows(pick: Pick) -> tuple[int, int, int]:
    """At least two rows, one token or a few."""
    batch = pick.size(2, 6)
    return batch, pick.one_of(1, *(n for n in (2, 3, 5, 7) if n != batch)), pick.size(1, 3)


def beside_tiles(pick: Pick) -> tuple[int, int, int]:
    """Tokens, heads or rows beside the sizes at which kernels take another path; the rest stays small."""
    edge, many = pick.one_of(*EDGES), pick.one_of(*(n for n in EDGES if n <= 129))
    few, fewer = pick.one_of(3, 2, 1, 5), pick.size(1, 2)
    return pick.one_of((fewer, edge, few), (fewer, few, many), (many, few, fewer))


def beside_odd_tiles(pick: Pick) -> tuple[int, int, int]:
    """Tokens beside tiles that are no powers of two."""
    return pick.size(1, 2), pick.one_of(*ODD_TILES), pick.one_of(3, 2, 1, 5)


def any_length(pick: Pick) -> tuple[int, int, int]:
    """Several tokens, one for each of several rows, or a prompt: kernels and their tables may be of each kind."""
    return pick.one_of(prefill, decode, short_prompt)(pick)


def short_prompt(pick: Pick) -> tuple[int, int, int]:
    """A prompt of more tokens than a block has."""
    return pick.size(1, 2), pick.one_of(32, 65), pick.one_of(1, 3)


def long(pick: Pick) -> tuple[int, int, int]:
    """One long sequence."""
    return 1, pick.one_of(300, 1000, 2050, 5000), 1


def tokens_of_models(pick: Pick) -> tuple[int, int, int]:
    """A token for each of some rows, with as many heads as models have."""
    return pick.one_of(2, 1, 4, 9), 1, pick.one_of(8, 16, 4, 40)


def prompts_of_models(pick: Pick) -> tuple[int, int, int]:
    """Prompts that kernels take in blocks, with as many heads as models have."""
    return pick.one_of(1, 2), pick.one_of(64, 130, 65), pick.one_of(8, 4)


def prompts_of_dozens_of_heads(pick: Pick) -> tuple[int, int, int]:
    """A prompt of more tokens than a block has, with as many heads as large models have."""
    return 1, pick.one_of(130, 65, 300), pick.one_of(32, 17, 12)


def long_prompts_of_models(pick: Pick) -> tuple[int, int, int]:
    """A prompt of more tokens than a group of threads has, with as many heads as models have."""
    return 1, pick.one_of(1030, 1025), pick.one_of(8, 4)


def prompts_of_many_heads_or_rows(pick: Pick) -> tuple[int, int, int]:
    """A prompt, short or not, of as many heads as the largest models have, or of some rows."""
    return pick.one_of((1, 130, 64), (9, 200, 2), (2, 20, 40), (5, 130, 3))


def tokens_and_prompts(pick: Pick) -> tuple[int, int, int]:
    """A token for each of some rows, or a prompt, of some heads."""
    return pick.one_of((2, 1, 8), (1, 33, 4), (9, 1, 4))


def batches_of_prompts(pick: Pick) -> tuple[int, int, int]:
    """Prompts of more rows than four or eight, of more tokens than a block has."""
    return pick.one_of(5, 9, 17), pick.one_of(33, 65), pick.size(1, 2)


def long_prompts_of_rows(pick: Pick) -> tuple[int, int, int]:
    """Prompts of hundreds of tokens, of some rows and heads each."""
    return pick.one_of(2, 3), pick.one_of(300, 257), pick.one_of(3, 2)


def tokens_of_many_rows(pick: Pick) -> tuple[int, int, int]:
    """A token for each of dozens of rows, or of dozens of heads, as the largest models have."""
    return pick.one_of((33, 1, 2), (2, 1, 64), (40, 1, 3), (1, 1, 128))


def some_heads_of_rows(pick: Pick) -> tuple[int, int, int]:
    """Tokens or short prompts of a batch, of several heads each."""
    return pick.one_of(3, 2, 9), pick.one_of(4, 1, 17), pick.one_of(3, 2, 8)


def many_heads(pick: Pick) -> tuple[int, int, int]:
    """More heads of tokens than 16 bits count: those of a long prompt, or of many rows that decode."""
    return pick.one_of((1, 4099, 16), (3, 7300, 3), (8200, 1, 8), (2051, 1, 32))


def very_long(pick: Pick) -> tuple[int, int, int]:
    """A prompt of more tokens than 16 bits count."""
    return 1, pick.one_of(65537, 65600), 1


def no_rows(pick: Pick) -> tuple[int, int, int]:
    """No row, of some tokens or of none. Few have a list of no slices: offsets are drawn that are no list."""
    return pick.one_of((0, 3, 2), (0, 0, 1))


def no_tokens(pick: Pick) -> tuple[int, int, int]:
    """Rows of no token."""
    return pick.one_of((2, 0, 3), (1, 0, 1))


def offset(kind: str, starts: Sequence[int], length: int) -> Any:
    """The rows' first positions, said in one of the envelope's kinds of offset."""
    slices = [slice(start, start + length) for start in starts]
    if kind == "slices":
        return slices
    start = starts[0] if starts else 0
    return {"none": None, "int": start, "slice": slice(start, start + length)}[kind]


def starts_of(call: Call) -> list[int]:
    """The first position of each batch row."""
    operation = RoPE()
    return [int(start) for start in operation.starts(operation.bind(call.arguments))]


def at(call: Call, starts: Sequence[int]) -> Call:
    """The same call with its rows at other positions, said in the same kind of offset."""
    length = call.arguments["x"].shape[1]
    reach = max(starts, default=0) + length
    given = offset(call.features["offsets"], starts, length)
    return call.having(offset=given, max_positions=max(call.arguments["max_positions"], reach))


def moved(call: Call, step: int) -> Call:
    """The same call with all its rows so many positions later."""
    return at(call, [start + step for start in starts_of(call)])


def _start(pick: Pick, starts: Sequence[int], length: int) -> int:
    """One of the starts, or the last that the envelope's positions allow."""
    last = pick.envelope["positions"] - length
    return pick.one_of(*sorted({min(start, last) for start in starts}))


def _starts(pick: Pick, kind: str, starts: Sequence[int], batch: int, length: int) -> list[int]:
    """A first position for each row: the same for all unless each has its own, and then some twice, some 0."""
    if kind == "none":
        return [0] * batch
    one, other = _start(pick, starts, length), _start(pick, starts, length)
    if kind != "slices":
        return [one] * batch
    return pick.random.choice([starts[0], one, other], batch).tolist()


def _widths(pick: Pick) -> tuple[int, int]:
    """dims and D; dims < D where it is to be partial. Whoever claims no head of two features turns no single pair."""
    least = 2 if 2 in pick.envelope["head_dims"] else 4
    wide = [dim for dim in pick.envelope["head_dims"] if dim >= least + 2]
    if not wide and pick.envelope["partial"] == (True,):
        raise OutsideEnvelope(f"head_dims has none of {least + 2} and more")
    partial = pick("partial") and bool(wide)
    features = pick.one_of(*wide) if partial else pick.one_of(*pick.envelope["head_dims"])
    pick.features |= {"partial": partial, "head_dims": features}
    # A half and a quarter of them, as models have it.
    parts = {least, features // 4 * 2, features // 8 * 4 or 2, features // 8 * 2 or 2, features - 2}
    return pick.one_of(*sorted(dims for dims in parts if dims >= least)) if partial else features, features


def _spelt(pick: Pick, form: str) -> dict[str, Any]:
    """base and traditional, left out half of the time where they are the defaults."""
    base = pick("bases")
    given = {"base": base, "traditional": form == "traditional"}
    defaults = RoPE.signature.parameters
    return {name: value for name, value in given.items() if value != defaults[name] or pick.one_of(False, True)}


def of_any_heads(build: Callable[..., Any]) -> Calls:
    """Calls whose heads have the dims that a test asks for, since they are small or usual, where a subject takes any of them."""
    return Calls(build, yielding=["head_dims"])


@of_any_heads
def rope_calls(
    pick: Pick,
    sizes: Sizes = small,
    starts: Sequence[int] = STARTS,
    amplitude: tuple[float, ...] = (1.0, 0.02, 3e7),
    form: str = "",
) -> Call:
    """RoPE of normal data, with every form, base, width and kind of offset that the envelope has.

    starts: the first one is that of rows which are nowhere in particular.
    """
    dtype, kind, form = pick("dtypes"), pick("offsets"), form or pick("forms")
    pick.features["forms"] = form
    batch, length, heads = sizes(pick)
    length = min(length, pick.envelope["positions"])
    firsts = _starts(pick, kind, starts, batch, length)
    reach = max(max(firsts, default=0) + length, 1)
    most = min(pick.one_of(reach, reach + 1, 2 * reach, reach + 100), pick.envelope["positions"])
    dims, features = _widths(pick)
    size = in_reach(pick.one_of(*amplitude), dtype, 300.0)
    x = pick.normal(batch, length, heads, features, dtype=dtype, amplitude=size)
    return pick.call(
        ROPE, dims=dims, max_positions=most, **_spelt(pick, form), x=x, offset=offset(kind, firsts, length)
    )


@calls
def outside_the_table(pick: Pick) -> Call:
    """Calls that reach max_positions or beyond, or begin before 0, with all their tokens or with some."""
    if pick.envelope["positions"] < 2:
        raise OutsideEnvelope("positions only up to 1")
    call = rope_calls.build(pick, sizes=pick.one_of(prefill, decode), starts=(1, 2, 5, 64, 300, 4000))
    length = call.arguments["x"].shape[1]
    if call.features["offsets"] == "none" and length == 1:
        call = call.having(x=np.repeat(call.arguments["x"], 2, axis=1))
        length = 2
    starts, reach = starts_of(call), max(starts_of(call)) + length
    if call.features["offsets"] != "none" and pick.one_of(False, True):
        return at(call, [start - reach + pick.one_of(0, 1, -2) for start in starts])
    return call.having(max_positions=pick.one_of(reach - 1, max(reach - length, 1), (reach + 1) // 2, 1))


def first_in_the_table(call: Call) -> Call:
    """The first token of each row at position 0."""
    return at(call.having(x=call.arguments["x"][:, :1]), [0] * len(call.arguments["x"]))


def last_in_the_table(call: Call) -> Call:
    """The first token of each row at the last position that max_positions has."""
    return at(
        call.having(x=call.arguments["x"][:, :1]), [call.arguments["max_positions"] - 1] * len(call.arguments["x"])
    )


@calls
def both_forms(pick: Pick) -> tuple[Call, Call, np.ndarray]:
    """A traditional call, the split-half call of the same features in another order, and that order."""
    if len(pick.envelope["forms"]) < 2:
        raise OutsideEnvelope(f"forms {list(pick.envelope['forms'])} are not both")
    traditional = rope_calls.build(pick, form="traditional")
    x, dims = traditional.arguments["x"], traditional.arguments["dims"]
    order = np.concatenate([np.arange(0, dims, 2), np.arange(1, dims, 2), np.arange(dims, x.shape[-1])])
    return traditional, traditional.having(x=x[..., order], traditional=False), order


@calls
def two_turns(pick: Pick) -> tuple[Call, Call, Call]:
    """The same tokens, one for each row, at positions m, n and m + n."""
    call = rope_calls.build(pick, sizes=decode, starts=(0,))
    rows = len(call.arguments["x"])
    half = (pick.envelope["positions"] - 1) // 2
    choices = [step for step in (1, 2, 3, 7, 64, 255, 1000, 3001) if step <= half] or [0]

    def steps() -> list[int]:
        one = pick.one_of(*choices)
        return pick.random.choice(choices, rows).tolist() if call.features["offsets"] == "slices" else [one] * rows

    first, second = steps(), steps()
    return at(call, first), at(call, second), at(call, [m + n for m, n in zip(first, second, strict=True)])


@calls
def queries_and_keys(pick: Pick) -> tuple[Call, Call, int]:
    """Queries and keys at any positions, and how many positions later the distances between them are the same."""
    third = pick.envelope["positions"] // 3
    query = rope_calls.build(pick, starts=[start for start in NEAR if start <= third] or [0], amplitude=(1.0,))
    x = query.arguments["x"]
    room = max(pick.envelope["positions"] - max(starts_of(query), default=0) - x.shape[1], 0)
    ahead = pick.one_of(*(step for step in (0, 1, 4, 50) if step <= room // 2))
    key = moved(query.having(x=pick.normal(*x.shape, dtype=x.dtype.name)), ahead)
    return query, key, pick.one_of(*(step for step in (1, 3, 64, 500, 3000) if step <= room // 2), room // 2)


@calls
def in_chunks(pick: Pick) -> tuple[Call, list[Call]]:
    """A sequence, and the chunks of one way to cut it, each at its own offset."""
    call = rope_calls.build(pick, sizes=prefill)
    x, starts = call.arguments["x"], starts_of(call)
    chunks, begin = [], 0
    while begin < x.shape[1]:
        end = min(begin + pick.one_of(1, 2, 3, 5, 8), x.shape[1])
        chunks.append(at(call.having(x=x[:, begin:end]), [start + begin for start in starts]))
        begin = end
    return call, chunks


@calls
def other_tables(pick: Pick, sizes: Sizes = any_length) -> tuple[Call, Call]:
    """Two calls on the same x at the same positions with another base, form or number of turned features; the rest is alike,
    as it is where a table is kept with all but one of them in its key."""
    call = rope_calls.build(pick, sizes=sizes, starts=[start for start in NEAR if start])
    a = RoPE().bind(call.arguments)
    features = a.x.shape[-1]
    widths = range(2, features + 1, max(features // 8 * 2, 2)) if len(pick.envelope["partial"]) > 1 else ()
    others = {
        "base": [base for base in pick.envelope["bases"] if base != a.base],
        "traditional": [not a.traditional] * (len(pick.envelope["forms"]) > 1),
        "dims": [dims for dims in widths if dims != a.dims],
    }
    name = pick.one_of(*[name for name, values in others.items() if values] or ["base"])
    return call, call.having(**{name: pick.one_of(*others[name] or [a.base])})


@calls
def bases_alike(pick: Pick) -> tuple[Call, Call]:
    """Two calls whose bases have the same whole part, which is all that a table that is kept may know of them."""
    call = rope_calls.build(pick, sizes=any_length, starts=[start for start in NEAR if start])
    claimed = pick.envelope["bases"]
    if 10 not in claimed or all(float(base).is_integer() for base in claimed):
        raise OutsideEnvelope("bases of 10 and with a fraction are not claimed both")
    # Of larger ones a fraction changes less than half dtypes show.
    whole, half = call.having(base=10), call.having(base=10.5)
    return pick.one_of((whole, half), (half, whole))


@calls
def other_places(pick: Pick) -> tuple[Call, Call]:
    """Two calls of one object on the same x at other positions."""
    here = rope_calls.build(pick, sizes=any_length, starts=NEAR)
    room = pick.envelope["positions"] - max(starts_of(here)) - here.arguments["x"].shape[1]
    there = moved(here, pick.size(min(1, room), min(9, room)))
    return here.having(max_positions=there.arguments["max_positions"]).kept(0), there.kept(0)


@calls
def places_exchanged(pick: Pick) -> tuple[Call, Call]:
    """Two calls of one object on the same x, whose rows have the same positions in another order."""
    call = rope_calls.build(pick, sizes=several_rows, starts=NEAR, amplitude=(1.0,))
    length = call.arguments["x"].shape[1]
    rows = [_start(pick, NEAR, length) for _ in starts_of(call)]
    rows[-1] = min(rows[0] + pick.one_of(1, 4), pick.envelope["positions"] - length)
    here = at(call, rows)
    return here.kept(0), at(here, rows[::-1]).kept(0)


@calls
def in_turn(pick: Pick) -> list[Call]:
    """Calls of one object with every kind of offset that there is, several tokens and one."""
    kinds = list(pick.envelope["offsets"])
    call = rope_calls.build(pick, sizes=several_rows, starts=NEAR)
    x = call.arguments["x"]
    most = min(2 * max(NEAR) + x.shape[1], pick.envelope["positions"])
    made = []
    for kind in [*kinds, *pick.random.permutation(kinds)]:
        tokens = x[:, :1] if pick.one_of(False, True) else x
        starts = _starts(pick, str(kind), NEAR, len(x), tokens.shape[1])
        given = offset(str(kind), starts, tokens.shape[1])
        made.append(call.having(x=tokens, offset=given, max_positions=most).kept(0))
    return made


@calls
def past_a_table(pick: Pick) -> list[Call]:
    """Calls of one object with single tokens: the first, and those where a table that grows by steps ends."""
    size = min(pick.one_of(256, 64, 512, 128, 1024, 2048), max(pick.envelope["positions"] - 2, 1))
    call = rope_calls.build(pick, sizes=decode, starts=(0,), amplitude=(1.0,))
    kind, rows = str(call.features["offsets"]), len(call.arguments["x"])
    return [
        call.having(offset=offset(kind, [start] * rows, 1), max_positions=size + 2).kept(0)
        for start in (0, size - 1, size, size + 1)
    ]


@calls
def in_dtypes_in_turn(pick: Pick) -> list[Call]:
    """Calls of one object with the same numbers in every dtype that there is, in any order, and in the first one again."""
    claimed = list(pick.envelope["dtypes"])
    if len(claimed) < 2:
        raise OutsideEnvelope(f"dtypes are {claimed[0]} alone")
    call = rope_calls.build(pick, sizes=any_length, starts=[start for start in NEAR if start], amplitude=(1.0,))
    x = f64(call.arguments["x"])
    order = [str(dtype) for dtype in pick.random.permutation(claimed)]
    return [call.having(x=round_to(x, dtype)).kept(0) for dtype in [*order, order[0]]]


@calls
def misplaced(pick: Pick) -> Call:
    """Calls whose offset is a slice of another length, or one that leaves positions out, or has a slice too few or too many."""
    call = rope_calls.build(pick, starts=NEAR)
    kind, (batch, length) = call.features["offsets"], call.arguments["x"].shape[:2]
    start = starts_of(call)[0]
    # Of one position no step leaves any out.
    ends = (length + 1, 1), (length - 1, 1), (2 * length, 1), (length, 2) if length > 1 else (length + 2, 1)
    reach, step = pick.one_of(*ends)
    bad = slice(start, start + reach, step) if step > 1 else slice(start, start + reach)
    if kind == "slice":
        return call.having(offset=bad)
    rows = list(call.arguments["offset"])
    row = int(pick.random.integers(batch))
    wrong = pick.one_of("fewer", "more", "none", "row")
    given = {"fewer": rows[:-1], "more": [*rows, rows[0]], "none": [], "row": [*rows[:row], bad, *rows[row + 1 :]]}
    return call.having(offset=given[wrong])


ORDINARY = {ROPE: rope_calls}
"""The widest calls of each operation."""
