"""Calls of generators on the toy model, and of detokenizers."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from inferspec.conformance.calls import Call
from inferspec.conformance.envelope import Envelope, OutsideEnvelope
from inferspec.conformance.judging.instead import Answers, Told
from inferspec.conformance.strategies import Pick, calls
from inferspec.spec.ends import DROPPED, EOS_AS, IDS
from inferspec.spec.generation import Generate
from inferspec.spec.toy import Toy
from inferspec.spec.watch import Ranks, Request

GENERATE, TEXT = "generate", "StreamingDetokenizer"

CHUNKS = (15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 300, 511, 512, 513, 600, 1023, 1024, 1025)
"""Prompt lengths beside the sizes in which prompts are fed."""

LONG = (2047, 2048, 2049, 2050, 4096, 4097, 4099, 8193)
"""More of them."""

ODD_CHUNKS = (101, 49, 201, 385, 1000, 1001, 1002, 1536, 1537, 1538)
"""Prompt lengths beside sizes of pieces that are no powers of two, of 48 and more and of 100 and more: whole ones, and one
or two tokens past them, as some loops feed the last token apart. So few that FEWEST examples have each of them."""

LARGE = (300, 32769, 40000, 65537, 70000, 131073, 151936)
"""Vocabularies past the ends of narrow integers."""

RAGGED = (1500, 3000, 6000, 12_000)
"""Vocabularies a large part of which lies past the last whole tile of 1024, 2048, 4096 or 8192 ids."""

ENOUGH = (97, 300)
"""Vocabularies in which ids seldom meet by chance."""

NEAR = {"float32": 2.0**-14, "float16": 2.0**-8, "bfloat16": 2.0**-5}
"""How near two logits can lie that a dtype still tells apart, also when a softmax' normaliser is taken off, which is below 8."""

_toy = {"vocab_size": 7, "salt": 1, "rival": None, "dtype": "float32"}
EXAMPLES = {
    GENERATE: Call(GENERATE, {"model": _toy, "tokens": (1, 2, 3), "max_tokens": 3}),
    TEXT: Call(TEXT, {"pieces": (b"a", b"\xc3", b"\xa9"), "tokens": (0, 1, 2)}),
}


def continuation(model: dict[str, Any], tokens: Any, length: int, ranks: tuple[int, ...] | None = None) -> list[int]:
    """The first ids that a model goes on with, if nothing ends them."""
    request = Request(list(tokens), length, sampler=Ranks(ranks) if ranks else None)
    return list(Generate().stream(Toy.of(model), request))


def nearest(dtype: str, vocabulary: int) -> float:
    """The same for a vocabulary: of a large one the normaliser is 8 and more."""
    return NEAR[dtype] * (2 if vocabulary > 2**15 else 1)


LIMITS = (4, 1, 2, 3, 5, 6, 8, 11)
"""How many ids at most."""


@calls
def generate_calls(
    pick: Pick,
    lengths: tuple[int, ...] = (3, 1, 2, 4, 5, 7, 9),
    limits: tuple[int, ...] = LIMITS,
    vocabularies: tuple[int, ...] = (40, 5, 11, 97, 300),
    rival: float | str | None = None,
    stop_at: tuple[int, ...] = (),
    more_stops: tuple[int, ...] = (),
    prompt_stops: bool = False,
    barred: bool = False,
    untils: tuple[int | None, ...] = (None,),
    numbers: bool = False,
    seen: tuple[str, ...] = ("ids",),
) -> Call:
    """Any request. rival: how near another id comes to the favoured one (0: a tie), "near": as near as the dtype can
    tell. stop_at: the numbers of the id that ends it, from 0; none of those that stop end it where that is
    empty. more_stops: how many there are beside those that the envelope says. prompt_stops: end-of-sequence ids are of the
    prompt. barred: every other id has a logit of -inf. untils: how many ids the consumer takes. seen: what is looked at. numbers: the
    sampler may say plain numbers: who takes arrays alone is told so by those tests, and not by all."""
    dtype, size = pick("dtypes"), min(pick.one_of(*vocabularies), pick.envelope["vocabulary"])
    model = {
        "vocab_size": size,
        "salt": int(pick.random.integers(2**31)),
        "rival": nearest(dtype, size) if rival == "near" else rival,
        "dtype": dtype,
        **({"barred": True} if barred else {}),
    }
    tokens = pick.random.integers(0, model["vocab_size"], pick.upto("prompt", *lengths))
    held = [limit for limit in limits if limit <= pick.envelope["max_tokens"]] or [1]
    limit, sampler = pick.count("zero_max_tokens", *held), _sampler(pick, numbers)
    arguments: dict[str, Any] = {"model": model, "tokens": _given(pick, tokens), "max_tokens": limit}
    following = continuation(model, tokens.tolist(), limit, sampler["ranks"] if sampler else None)
    if eos := _stops(pick, model, tokens.tolist(), following, stop_at, prompt_stops, more_stops):
        arguments["eos"] = eos
    if sampler:
        arguments["sampler"] = sampler
    if not _cached(pick, sampler):
        arguments["cache"] = False
    if (until := pick.one_of(*untils)) is not None:
        arguments["until"] = until
    return pick.call(GENERATE, **arguments, seen=seen, **ends_declared(pick))


def ends_declared(pick: Pick) -> dict[str, Any]:
    """What is declared of the ids that end a request: what becomes of them, and how they are given."""
    return {**pick.declared("ends", DROPPED), **pick.declared("eos_as", IDS)}


def _given(pick: Pick, tokens: np.ndarray) -> Any:
    if pick("prompts") == "list":
        return tuple(tokens.tolist())
    return tokens.astype(pick("token_dtypes"))


def _sampler(pick: Pick, numbers: bool) -> dict[str, Any] | None:
    form, sampled = pick("samplers"), set(pick.envelope["caches"]) & set(pick.envelope["sampled_caches"])
    able = [one for one in pick.envelope["samplers"] if sampled or one == "none"]
    if others := [one for one in able if numbers or one != "int"]:
        form = pick.features["samplers"] = pick.one_of(*others)
    ranks = pick.one_of((1,), (2, 0), (1, 3, 2), (0,))
    return None if form == "none" else {"ranks": ranks, "form": form}


def _cached(pick: Pick, sampler: dict[str, Any] | None) -> bool:
    """With a cache, without one, or as a sampler takes it."""
    held = [one for one in pick.envelope["caches"] if sampler is None or one in pick.envelope["sampled_caches"]]
    if not held:
        raise OutsideEnvelope(f"sampled_caches has none of {list(pick.envelope['caches'])}")
    pick.features["caches"] = pick.one_of(*held)
    return pick.features["caches"]


def _stops(
    pick: Pick,
    model: dict[str, Any],
    prompt: list[int],
    following: list[int],
    stop_at: tuple[int, ...],
    known: bool,
    more: tuple[int, ...],
) -> tuple[int, ...]:
    """As many end-of-sequence ids as the envelope says, and some more; the one that is to end it anywhere among them."""
    count = pick("stops")
    if count == 0:
        return ()
    count += pick.one_of(*more) if more else 0
    number = pick.one_of(*stop_at) if stop_at else None
    ending = [following[min(number, len(following) - 1)]] if number is not None and following else []
    banned = set(following)
    others = [token for token in prompt if token not in banned] if known else []
    others += itertools.islice((token for token in range(model["vocab_size"]) if token not in banned), count + 2)
    found = [*ending, *dict.fromkeys(others)][:count]
    first = pick.size(0, max(len(found) - 1, 0))
    return tuple(found[first:] + found[:first])


@calls
def paired_calls(
    pick: Pick,
    orders: tuple[str, ...] = ("turns", "after"),
    untils: tuple[Any, ...] = (None,),
    limits: tuple[int, ...] = LIMITS,
) -> Call:
    """Two requests to one model; the second shares a beginning with the first, or its whole prompt."""
    call = generate_calls.build(pick, limits=limits, vocabularies=(97, 300), untils=untils)
    prompt = [int(token) for token in np.ravel(call.arguments["tokens"])]
    other = pick.random.integers(0, 97, pick.size(1, 5)).tolist()
    second = pick.one_of(other, prompt[:1] + other, prompt)
    beside = {"tokens": given_as(call, second), "max_tokens": pick.size(1, min(8, pick.envelope["max_tokens"]))}
    return call.having(beside=beside, order=pick.one_of(*orders), seen=("ids", "beside"))


@calls
def paired_conversations(
    pick: Pick, orders: tuple[str, ...] = ("turns", "after"), lengths: tuple[int, ...] = (40, 70, 33, 130)
) -> Call:
    """Two requests of dozens of tokens to one model, or of as many as asked for: see `prompt_like`."""
    call = generate_calls.build(pick, lengths=lengths, limits=(3, 2, 5), vocabularies=(97, 300))
    second = prompt_like(pick, call)
    beside = {"tokens": second, "max_tokens": pick.size(1, min(8, pick.envelope["max_tokens"]))}
    return call.having(beside=beside, order=pick.one_of(*orders), seen=("ids", "beside"))


def given_as(call: Call, tokens: Sequence[int]) -> Any:
    """Tokens as those of a call are: a tuple, or an array of their dtype."""
    prompt = call.arguments["tokens"]
    return np.array(tokens, prompt.dtype) if isinstance(prompt, np.ndarray) else tuple(tokens)


def prompt_like(pick: Pick, call: Call) -> Any:
    """The prompt of a call, or one that leaves it at its end or half way."""
    prompt = [int(token) for token in np.ravel(call.arguments["tokens"])]
    other = pick.random.integers(0, 97, pick.size(1, 5)).tolist()
    second = pick.one_of(prompt, [*prompt[: len(prompt) - len(other)], *other], [*prompt[: len(prompt) // 2], *other])
    return given_as(call, second)


@calls
def paired_ends(pick: Pick, orders: tuple[str, ...] = ("turns", "after")) -> Call:
    """Two requests to one model that do not end alike: see `ended_apart`."""
    call = paired_calls.build(pick, orders=orders)
    sampler = call.arguments.get("sampler")
    return ended_apart(pick, call, call.arguments["model"], sampler["ranks"] if sampler else None)


def ended_apart(pick: Pick, call: Call, model: dict[str, Any], ranks: tuple[int, ...] | None = None) -> Call:
    """The call of two requests where an id ends the first, one that either of them gives, and none the second."""
    first, second = call.arguments, {**call.arguments["beside"], "eos": ()}
    giving = pick.one_of(second, first, second)
    given = continuation(model, np.ravel(giving["tokens"]).tolist(), giving["max_tokens"], ranks)
    return call.having(beside=second, **({"eos": (pick.one_of(*given),)} if given else {}))


@calls
def nearly_ended(pick: Pick) -> Call:
    """A request that just those ids end which are alike in their low bits to those that come of it, as many as may end one."""
    call = generate_calls.build(pick, vocabularies=LARGE[5:6], lengths=(3, 1, 2), limits=(3, 2))
    model, sampler = call.arguments["model"], call.arguments.get("sampler")
    tokens = np.ravel(call.arguments["tokens"]).tolist()
    given = continuation(model, tokens, call.arguments["max_tokens"], sampler["ranks"] if sampler else None)
    return call.having(eos=alike_in_16_bits(given, model["vocab_size"])[: max(pick.envelope["stops"])])


def alike_in_16_bits(ids: Sequence[int], size: int) -> tuple[int, ...]:
    """Ids of the vocabulary that differ from these in their high bits alone."""
    alike = (id % 2**16 if id >= 2**16 else id + 2**16 for id in ids)
    return tuple(id for id in alike if id < size and id not in ids)


PLAIN = ("a", "b", "ing", " ", "  ", "\n", ".", " ,", "'s", " the", "\t", "\r\n", "0")
WIDE = ("é", "ß", "ж", "€", "日本", "ア", "\u200d", "\ufeff", "🙂", "👩‍👩‍👧", "e\u0301", "ﬁ", "\u00a0", "𝄞")
UNSEEN = ("\u00ad", "\u200b", "\u2060", "\u202e", "\ufe0f", "\U0001f3fd", "\U0001f1e9", "a", " ", "é")
"""Characters that show nothing, or nothing by themselves, among others."""
JOINED = (
    *("\u1112\u1161\u11ab", "\u0915\u094d\u0937", "1\u20e3", "\u845b\U000e0101"),
    "\U0001f3f4\U000e0067\U000e0062\U000e007f",
)
"""Several characters that are one to a reader: a Hangul syllable, a conjunct, a key, a variant, a flag."""
BROKEN = (b"\xff", b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x99", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf5", b"\xc0\x80")
LONG_WORDS = ("a", "-" * 200, "x" + " " * 300, "日本" * 70, "é" * 129)
"""Words some of which are longer than any of a language: vocabularies have runs of spaces and lines as one id."""
PLANES = (
    "\u0800",
    "\ud7ff",
    "\ue000",
    "\ufdd0",
    "\ufffe",
    "\U0001ffff",
    "\U00040000",
    "\U000e0001",
    "\U000c0ffe",
    "\U00100000",
    "\U0010ffff",
    "a",
)
"""Characters beside the ends of what each first byte begins; those that are none among them."""

OUTSIDE = (
    b"\xe0\x9f\xbf",
    b"\xf4\x90\x80\x80",
    b"\xf0\x8f\xbf\xbf",
    b"\xed\xbf\xbf",
    b"\xc1\xbf",
    b"\xf8\x88\x80\x80\x80",
    b"\xed\xa0\xbd\xed\xb8\x80",
)
"""What looks like UTF-8: too long, past the last character, half a pair, or both halves as CESU-8 has them."""
SAME_BYTES = ("\u3000", "\u1000", "x", "\u0800", "\U00010000", " ", "\u0440\u0440", "aa")
"""Characters some of which have a byte twice in a row, as the space of Chinese and Japanese has."""
SAME_ENDS = ("\u4e01", "\u4e41", "\u4e81", "🙂", "🞂", "𝙂", "\u5001")
"""Characters that have the first byte and the last in common, and not what is between."""
PAST = (
    b"\xf5\x80\x80\x80",
    b"\xf7\xbf\xbf\xbf",
    b"\xfb\xbf\xbf\xbf\xbf",
    b"\xfd\xbf\xbf\xbf\xbf\xbf",
    b"\xfe\x80",
    b"\xe2\x82 ",
    b"\xf0\x9f\x99 ",
    b"\xc3 ",
    b"\xe2\x82\xe2\x82\xac",
    b"\xf0\x9f\x99\xc3\xa9",
)
"""First bytes that no character has, with those that would follow; and characters that are cut off by what follows."""

SPELLINGS = (
    *("▁", "▁the", "Ġ", "Ċ", "<0x41>", "<s>", "<|im_end|>", "##s", "</w>", "a", " the"),
    *("[TOOL_CALLS]", "</think>", "\\n", "\\x41"),
)
"""What vocabularies and texts in quotes spell something else by, and what is the text itself where ids are bytes."""


@calls
def text_calls(
    pick: Pick,
    texts: tuple[str, ...] = PLAIN + WIDE,
    broken: bool | tuple[bytes, ...] = False,
    replacements: bool = False,
    empties: bool = True,
    cut: bool | tuple[str, ...] = False,
    beside: bool = False,
    again: bool = False,
    whole: bool = False,
    repeats: tuple[int, ...] = (1,),
    others: tuple[int, ...] = (0,),
    seen: tuple[str, ...] = ("text",),
) -> Call:
    """A text in bytes, cut into pieces of 1 to 4 of them, 16 or 100, each an id; the ids in the table are in another order.

    again: pieces that are the same have one id; some come twice in a row, and all of them once more;
    whole: every word is an id; repeats: how often the text comes; others: how many ids of the table do not occur;
    broken: with bytes that are no UTF-8, these or any; replacements: with real U+FFFD; empties: some ids have no bytes, perhaps several on end; cut: it ends
    inside a character, one of these or of any of up to three bytes, the last of which is missing; beside: a second stream of the same ids, shuffled after the first.
    """
    longest = pick.one_of(4, 4, 4, 16, 100)
    words = _words(pick, texts, longest, repeats)
    bad = broken if isinstance(broken, tuple) else BROKEN
    for kind, wanted in ((bad, broken), (("\ufffd".encode(),), replacements)):
        for _ in range(pick.size(1, 3) if wanted else 0):
            words.insert(pick.size(1, len(words)), pick.one_of(*kind))
    end = pick.one_of(*(cut if isinstance(cut, tuple) else WIDE[:8])).encode()[:-1] if cut else b""
    pieces = [*words] if whole else _cut(pick, b"".join(words) + end, longest)
    if empties:
        place = pick.size(1, len(pieces))
        pieces[place:place] = [b""] * pick.one_of(1, 1, 7)
    if again:
        pieces = [piece for piece in pieces for _ in range(1 + (_is_text(piece) and pick.random.random() < 0.3))] * 2
    distinct = list(dict.fromkeys(pieces)) if again else pieces
    table = [b"?"] * (len(distinct) + pick.one_of(*others))
    order = pick.random.permutation(len(table))[: len(distinct)]
    for place, piece in zip(order, distinct, strict=True):
        table[place] = piece
    if again:
        places = dict(zip(distinct, order, strict=True))
        order = np.array([places[piece] for piece in pieces])
    arguments = {"pieces": tuple(table), "tokens": tuple(int(token) for token in order)}
    if beside:
        shuffled = pick.random.permutation(order[1:]).tolist()
        arguments["beside"] = (int(order[0]), *shuffled)
    return pick.call(TEXT, **arguments, seen=seen)


@calls
def bytes_alone(pick: Pick, texts: tuple[str, ...] = SAME_BYTES) -> Call:
    """Every byte is an id, as where a vocabulary falls back to bytes."""
    text = "x" + "".join(pick.one_of(*texts) for _ in range(pick.size(1, 6)))
    pieces = tuple(bytes([byte]) for byte in range(256))
    return pick.call(TEXT, pieces=pieces, tokens=tuple(text.encode()), seen=("text",))


@calls
def first_byte_calls(pick: Pick, broken: bool = False) -> Call:
    """For every first byte the first and the last character that begins with it. broken: what is just outside of them,
    beside them, and all bytes that are none."""
    words, between = [char.encode() for char in _outermost()], b""
    if broken:
        words += [_stepped(word, place, step) for word in words for place in (1, 2) for step in (-1, 1)]
        words += [bytes([byte]) for byte in range(0x80, 0x100)]
        if not pick("control_characters"):
            # A byte that is none and the next could be one together.
            words, between = [word for word in words if not _controls(word)], b"x"
    text = between.join(words[i] for i in pick.random.permutation(len(words)))
    pieces = [b"x", *_cut(pick, text, pick.one_of(4, 4, 1))]
    return pick.call(TEXT, pieces=tuple(pieces), tokens=tuple(range(len(pieces))), seen=("text",))


def _outermost() -> list[str]:
    """The characters of several bytes that come before or after all others with their first byte, control characters and
    halves of pairs aside."""
    codes = (*range(0xA0, 0xD800, 0x20), *range(0xE000, 0x110000, 0x20))
    groups = (list(group) for _, group in itertools.groupby(codes, lambda code: chr(code).encode()[0]))
    return [chr(code) for group in groups for code in (group[0], group[-1] + 0x1F)]


def _controls(word: bytes) -> bool:
    """Whether a control character is among what the bytes say."""
    return any(unicodedata.category(char) == "Cc" for char in word.decode("utf-8", "replace"))


def _stepped(word: bytes, place: int, step: int) -> bytes:
    """A character with one of its bytes one more or less."""
    return bytes((byte + step) % 0x100 if index == place else byte for index, byte in enumerate(word))


def _words(pick: Pick, texts: Sequence[str], longest: int, repeats: Sequence[int]) -> list[bytes]:
    """Words of a text, more of them where the longest piece is long. repeats: how often all come."""
    words = [pick.one_of(*texts).encode() for _ in range(pick.size(1, 12))]
    words += words * (longest // 16)
    words *= pick.one_of(*repeats)
    if pick("control_characters"):
        words.insert(pick.size(1, len(words)), pick.one_of(b"\x00", b"\x07", b"\x7f", b"\x1b[1m", b"\xc2\x85"))
    if pick("leading_spaces"):
        words.insert(0, b" ")
    elif words[0].startswith((b" ", "\ufeff".encode())):
        # Whether U+FEFF at the start is a mark of the encoding is left open.
        words.insert(0, b"x")
    return words


def _cut(pick: Pick, data: bytes, longest: int) -> list[bytes]:
    """Bytes in pieces of 1 … longest."""
    pieces, start = [], 0
    while start < len(data):
        end = start + int(pick.random.integers(1, longest + 1))
        pieces.append(data[start:end])
        start = end
    return pieces


def _is_text(piece: bytes) -> bool:
    """Whether bytes are whole characters."""
    return piece.decode("utf-8", "ignore").encode() == piece


def ends_of(call: Call) -> str:
    """What becomes of the id that ends the ids of a call."""
    return str(call.arguments.get("ends", DROPPED))


ORDINARY = {GENERATE: generate_calls, TEXT: text_calls}
"""The widest calls of each operation."""

_as_array = EXAMPLES[GENERATE].having(tokens=np.array([1, 2, 3], np.int32))

_of_no_ids = EXAMPLES[GENERATE].having(max_tokens=0)

OPTIONAL = {
    GENERATE: {"prompts": {"list": EXAMPLES[GENERATE], "array": _as_array}, "zero_max_tokens": {True: _of_no_ids}}
}
"""Choices that may be refused, by their key, with a call that asks for them and for nothing else that is rare."""


def ending(call: Call, target: str, envelope: Envelope) -> Answers:
    """A plain call that its second id ends, given in each of the ways. Who takes several has to answer where two are given: an id of
    NumPy is equal to a tuple of it alone, and not to be compared with one of two."""
    model, tokens = call.arguments[target], call.arguments["tokens"]
    plain = call if "list" in envelope["prompts"] else call.having(tokens=_as_array.arguments["tokens"])
    first, last = (int(id) for id in continuation(model, tokens, 2))
    other = next(id for id in range(model["vocab_size"]) if id not in (first, last))

    def ended(told: Told) -> bool:
        return told["ids"].size < call.arguments["max_tokens"]

    def answered(told: Told) -> bool:
        return True

    ways = {way: [(plain.having(eos=(last,), eos_as=way), ended)] for way in EOS_AS}
    if max(envelope["stops"], default=0) > 1:
        ways[IDS].append((plain.having(eos=(other, last), eos_as=IDS), answered))
    return ways


INSTEAD = {GENERATE: {"eos_as": partial(ending, EXAMPLES[GENERATE], "model")}}
"""What is taken in one way or in another, by its key (`judging.instead`)."""
