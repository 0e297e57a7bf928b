"""How many queries and keys attention is called with: any, or as many as kernels have paths for."""

from __future__ import annotations

from inferspec.conformance.strategies import EDGES, ODD_TILES, ONE_SHORT, Pick


def padded(pick: Pick) -> tuple[int, int]:
    """A few queries over as many keys as several tiles or splits have."""
    return pick.one_of(1, 3, 8), pick.upto("keys", 65, 150, 300, 1100)


def over_splits(pick: Pick) -> tuple[int, int]:
    """A few queries over keys that kernels share out: so many parts that they are no power of two, or end in a short one."""
    few, keys = pick.one_of(1, 3, 8), pick.upto("keys", 600, 512, 1025)
    return min(few, keys), keys


def lengths(pick: Pick, relation: str = "any", longest: int = 9) -> tuple[int, int]:
    """L and S: related as asked ("L=1", "L<S", "L=S", "L>S"), or any of these."""
    if relation == "any":
        relation = pick.one_of("L<S", "L=S", "L=1", "L>S")
    keys = pick.size(2 if relation in ("L<S", "L>S") else 1, longest)
    if relation == "L=1":
        return 1, keys
    if relation == "L=S":
        return keys, keys
    small = pick.size(1, keys - 1)
    return (small, keys) if relation == "L<S" else (keys, small)


def held(pick: Pick, lengths: tuple[int, int]) -> tuple[int, int]:
    """L and S of any shape, cut to as many keys as a subject takes."""
    length, keys = lengths
    most = min(keys, pick.envelope["keys"])
    return min(length, most) if length <= keys else length, most


def taken(pick: Pick, lengths: tuple[int, int]) -> tuple[int, int]:
    """L and S, with no more queries than keys where a subject takes no more."""
    length, keys = lengths
    if True not in pick.envelope["more_queries"]:
        length = min(length, keys)
    pick.features["more_queries"] = length > keys
    return length, keys


def beside_tiles(pick: Pick) -> tuple[int, int]:
    """Lengths beside the thresholds of kernels; one of the two stays small, so that it stays quick."""
    size = pick.upto("keys", *EDGES, 1023, 1024, 1025, 2049, 4096)
    if size > 300:
        return 1, size
    small = pick.size(1, 4)
    return pick.one_of((small, size), (size, small), (min(size, 130), min(size, 130)), (min(size, 130), 130))


def beside_odd_tiles(pick: Pick) -> tuple[int, int]:
    """Queries and keys, both of them beside tiles that are no powers of two."""
    return pick.one_of(*ODD_TILES), pick.upto("keys", *ODD_TILES)


def one_short_of_tiles(pick: Pick) -> tuple[int, int]:
    """Queries and keys, both of them one short of whole tiles, as many or not; or a few queries."""
    queries, keys = pick.one_of(*ONE_SHORT), pick.upto("keys", *ONE_SHORT)
    return pick.one_of((queries, keys), (min(queries, keys), min(queries, keys)), (pick.size(1, 4), keys))


def ragged_tiles(pick: Pick) -> tuple[int, int]:
    """Queries that products of matrices serve, and keys that are no whole tiles."""
    return pick.one_of(17, 33, 40), pick.upto("keys", 33, 5, 41, 70)


def tiles_past_the_keys(pick: Pick) -> tuple[int, int]:
    """More queries than keys, by whole tiles or not, and keys of more than one tile: one, both or none of them end in a part."""
    return pick.one_of((64, 32), (96, 64), (65, 32), (64, 33), (128, 64), (70, 40), (130, 65), (64, 63), (33, 32))


def one_past_a_tile(pick: Pick) -> tuple[int, int]:
    """Keys that are one more than whole tiles of 32."""
    return pick.one_of(17, 1, 33), pick.upto("keys", 33, 65, 97)


def few_over_many(pick: Pick) -> tuple[int, int]:
    """One query or a few, as in verifying a draft, over so many keys that kernels share them out."""
    return pick.one_of(1, 2, 5, 1, 8), pick.upto("keys", 1025, 1024, 2049)


def a_draft_over_many(pick: Pick) -> tuple[int, int]:
    """The tokens of a draft, to be verified together after a long context."""
    guessed, keys = pick.one_of(5, 2, 8, 3), pick.upto("keys", 300, 1025, 512)
    return min(guessed, keys), keys


def whole_tiles(pick: Pick) -> tuple[int, int]:
    """Queries, keys or both of them fill their tiles, for which kernels have paths without a remainder."""
    length, keys = pick.one_of(
        (1, 128), (64, 64), (32, 64), (1, 256), (33, 64), (64, 33), (4, 128), (32, 96), (65, 128), (64, 65)
    )
    return length, min(keys, pick.envelope["keys"])


def whole_or_thousands(pick: Pick) -> tuple[int, int]:
    """Queries and keys that fill their tiles, or a token or a few after a thousand and more."""
    length, keys = pick.one_of((128, 128), (1, 1100), (32, 32), (16, 128), (3, 2050))
    return length, min(keys, pick.envelope["keys"])


def chunks_of_whole_tiles(pick: Pick) -> tuple[int, int]:
    """Chunks of prompts that fill tiles of queries, and all their keys too."""
    length, keys = pick.one_of((32, 64), (64, 128), (32, 96), (64, 64))
    return length, min(keys, pick.envelope["keys"])


def in_decoding(pick: Pick) -> tuple[int, int]:
    """A token or a few, after some others."""
    few, keys = pick.one_of(1, 3, 1, 9), pick.upto("keys", 40, 300, 65)
    return min(few, keys), keys


def groups_over_many(pick: Pick) -> tuple[int, int]:
    """A token or a few over more keys than a tile has."""
    return pick.one_of(1, 5, 2), pick.upto("keys", 100, 300)


def parts_of_batches(pick: Pick) -> tuple[int, int]:
    """The next token, a draft, a chunk or a whole prompt."""
    return pick.one_of((1, 70), (1, 300), (33, 65), (5, 300), (64, 64), (1, 1025))


def many_over_few(pick: Pick) -> tuple[int, int]:
    """More queries than a threadgroup has threads, over a few keys."""
    return pick.one_of(1025, 1030), pick.size(1, 5)


def prompts(pick: Pick) -> tuple[int, int]:
    """Whole prompts, alone or after others; for single heads, as it is dear."""
    length = pick.one_of(300, 257, 520)
    return length, length + pick.one_of(0, 0, 1, 129)


def long_prompts(pick: Pick) -> tuple[int, int]:
    """The same, of more than a thousand tokens too."""
    short = prompts(pick)
    return pick.one_of((1030, 1030), short, short)


def square_prompts(pick: Pick) -> tuple[int, int]:
    """Prompts from their first token on, of the lengths from which kernels have a path of their own."""
    length = pick.one_of(64, 65, 80)
    return length, length


def chunks_over_contexts(pick: Pick) -> tuple[int, int]:
    """A chunk of a prompt after hundreds of tokens."""
    length = pick.one_of(32, 64, 33)
    return length, length + pick.one_of(256, 512, 200)


def part_blocks_over_tiles(pick: Pick) -> tuple[int, int]:
    """A chunk whose queries past whole blocks of 8 are few, and of which only the last see the last tile of 64 keys."""
    length, tiles = pick.one_of(11, 22, 13, 31), pick.one_of(1, 2, 3)
    return length, min(64 * tiles + 1 + pick.size(0, length % 8 - 2), pick.envelope["keys"])


def tokens_and_prompts(pick: Pick) -> tuple[int, int]:
    """A token after hundreds of others, or a prompt."""
    return pick.one_of((1, 300), (64, 64), (1, 1025), (65, 65))


def of_models(pick: Pick) -> tuple[int, int]:
    """A prompt, a chunk of one, or a token or a draft after a long context."""
    length, keys = pick.one_of((64, 64), (1, 600), (33, 33), (1, 1025), (32, 100), (5, 300))
    return length, min(keys, pick.envelope["keys"])


def short_prompts(pick: Pick) -> tuple[int, int]:
    """A prompt of more than a block of queries, or a chunk of one."""
    return pick.one_of((20, 20), (17, 33))


def many_tiles(pick: Pick) -> tuple[int, int]:
    """The next token, or a chunk, over as many keys as large tiles have, and some more."""
    return pick.one_of(1, 33, 1, 9), pick.upto("keys", 1100, 2100, 4000, 8300)


def a_few_or_a_late_token(pick: Pick) -> tuple[int, int]:
    """A few queries and keys, or a token after hundreds of others."""
    return pick.one_of((3, 4), (5, 5), (1, 300))


def blocks_over_contexts(pick: Pick) -> tuple[int, int]:
    """A chunk of a prompt after a long context, or as many drafts as fill half a block."""
    length, keys = pick.one_of((33, 1100), (16, 300), (64, 1030))
    return length, min(keys, pick.envelope["keys"])


def prompts_of_batches(pick: Pick) -> tuple[int, int]:
    """Prompts of more than a hundred tokens, alone or after others."""
    return pick.one_of((130, 130), (128, 200))


def thousands_of_keys(pick: Pick) -> tuple[int, int]:
    """A token, or two, after thousands of others."""
    return pick.one_of(1, 2), pick.upto("keys", 5000, 4100)


def one_over_many(pick: Pick) -> tuple[int, int]:
    """A token that is generated after a long context."""
    return 1, pick.upto("keys", 1024, 2048, 1025, 2500)


def a_late_token(pick: Pick) -> tuple[int, int]:
    """A token after dozens of others."""
    return 1, pick.upto("keys", 70, 130, 100)


def small_blocks(pick: Pick) -> tuple[int, int]:
    """A short prompt, or a chunk of one: more queries than those that kernels serve one by one."""
    return pick.one_of((9, 9), (17, 17), (12, 20), (10, 33))


def queries_past_16_bits(pick: Pick) -> tuple[int, int]:
    """More queries than 16 bits count, over a key or two."""
    return pick.one_of(65537, 65600), pick.one_of(1, 2)


def tokens_of_large_models(pick: Pick) -> tuple[int, int]:
    """A token, or a draft of some, after hundreds of others, where a model has dozens of heads."""
    few, keys = pick.one_of(1, 2, 1), pick.upto("keys", 257, 256, 300)
    return min(few, keys), keys


def chunks_over_hundreds(pick: Pick) -> tuple[int, int]:
    """A chunk of a prompt of more than a block, after hundreds of tokens."""
    length, keys = pick.one_of(65, 70), pick.upto("keys", 300, 257)
    return min(length, keys), keys


def drafts_over_splits(pick: Pick) -> tuple[int, int]:
    """A few queries over so many keys that kernels share them out."""
    few, keys = pick.one_of(3, 8, 2), pick.upto("keys", 600, 512, 1025)
    return min(few, keys), keys


def whole_prompts(pick: Pick) -> tuple[int, int]:
    """Prompts of hundreds of tokens, alone or after others."""
    length, keys = pick.one_of((257, 257), (256, 300))
    return length, min(keys, pick.envelope["keys"])


def large_chunks_over_many(pick: Pick) -> tuple[int, int]:
    """A chunk of a prompt, of more than two blocks of 32, after a thousand tokens."""
    length, keys = pick.one_of((70, 1100), (128, 1153), (65, 1040))
    return length, min(keys, pick.envelope["keys"])


def many_keys(pick: Pick) -> tuple[int, int]:
    """More keys than 15 or 16 bits count."""
    length, keys = pick.size(1, 3), pick.upto("keys", 2**15 + 1000, 2**16 + 50)
    return min(length, keys), keys
