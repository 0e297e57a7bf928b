"""What is required of paged key/value storage, sentence by sentence."""

from __future__ import annotations

from inferspec.spec.contract import Aspect, Level, Requirement

COURSE = "tiny-llm course, week 3 day 1"
INVARIANTS = "tiny-llm course, week 3 day 2, Correctness Invariants"


def _pool(
    number: int, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(f"POOL-{number:02}", text, "PagePool", level, aspect, source or COURSE)


def _cache(
    number: int, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(f"PKV-{number:02}", text, "PagedKVCache", level, aspect, source or COURSE)


def _table(number: int, text: str, source: str) -> Requirement:
    return Requirement(f"TABLE-{number:02}", text, "block_table", Level.MUST, Aspect.VALUE, source)


def _batch(number: int, text: str, source: str) -> Requirement:
    return Requirement(f"PKVA-{number:02}", text, "PagedKVCache.attention", Level.MUST, Aspect.VALUE, source)


POOL_01 = _pool(
    1,
    "allocate hands out pages that the pool has, and none that is in use",
    source="PROPERTIES PG1; TensorRT-LLM 14937",
)
POOL_02 = _pool(
    2, "num_free is the number of pages that are not in use, at any time", source="PROPERTIES PG1; TensorRT-LLM 12834"
)
POOL_03 = _pool(
    3,
    "all num_pages pages can be in use at once, and a freed page can be handed out again, however often",
    source="PROPERTIES PG4; MinivLLM 84",
)
POOL_04 = _pool(4, "a pool without a free page refuses to allocate", aspect=Aspect.GUARD, source="PROPERTIES PG5")
POOL_05 = _pool(5, "a refused allocation changes nothing", source="PROPERTIES PG5, decisions")
POOL_06 = _pool(
    6,
    "a page that was freed already is refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES PG2, decisions",
)
POOL_07 = _pool(
    7,
    "a page that was never handed out is refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES PG2, decisions",
)
POOL_08 = _pool(
    8,
    "an id that the pool does not have is refused: -1, num_pages and beyond",
    aspect=Aspect.GUARD,
    source="PROPERTIES PG2, X9",
)
POOL_09 = _pool(9, "a refused free changes nothing", source="PROPERTIES PG2, PG5")
POOL_10 = _pool(
    10,
    "key_pages and value_pages are num_pages×num_kv_heads×page_size×head_dim, in the dtype of the pool",
    source="tiny-llm course, week 3 day 2; PROPERTIES PG8",
)
POOL_11 = _pool(
    11, "pools have nothing in common: a story is the same whatever others do meanwhile", source="PROPERTIES X7, X11"
)
POOL_12 = _pool(
    12,
    "a pool of less than one page, slot, head or head dim is refused",
    Level.SHOULD,
    Aspect.GUARD,
    "PROPERTIES X9; vllm-metal 0f6f76b",
)

PKV_01 = _cache(
    1,
    "gather returns the keys and values of all tokens in order, 1×H×S×D each, as a dense cache would, bit for bit",
    source="PROPERTIES PG6",
)
PKV_02 = _cache(
    2,
    "chunks may be of any size, 0, 1 and beside the multiples of page_size too: how tokens are chunked does not show",
    source="PROPERTIES PG3, CP1; https://github.com/vllm-project/vllm/pull/7380",
)
PKV_03 = _cache(
    3,
    "token p lies in page page_ids[p // page_size] of key_pages and value_pages, slot p % page_size",
    source=f"{INVARIANTS} 2; PROPERTIES PG6",
)
PKV_04 = _cache(
    4, "offset is the number of tokens, before the first append and after every event", source=f"{INVARIANTS} 1"
)
PKV_05 = _cache(
    5,
    "a cache of n tokens uses exactly ceil(n / page_size) pages: it takes a new one only when its last one is full",
    source=f"{INVARIANTS} 5; PROPERTIES PG3",
)
PKV_06 = _cache(
    6, "page_lens says how many tokens each page holds: page_size, and what is left in the last one", source=COURSE
)
PKV_07 = _cache(
    7,
    "no page is in two live caches, nor in a cache and in the caller's use",
    source=f"{INVARIANTS} 3; PROPERTIES PG1; https://github.com/vllm-project/vllm/pull/3347",
)
PKV_08 = _cache(
    8, "what becomes of a cache does not show in the tokens of others on the same pool", source="PROPERTIES CB4, PG1"
)
PKV_09 = _cache(
    9,
    "a page in the caller's use holds what it held, whatever caches do",
    source="PROPERTIES PG1, judging",
)
PKV_10 = _cache(10, "what a recycled page held before never shows, NaN neither", source="PROPERTIES PA2, BK3, judging")
PKV_11 = _cache(
    11,
    "gather returns keys and values in the dtype of the pool",
    aspect=Aspect.DTYPE,
    source="PROPERTIES PG6; vllm-metal 59b9be4",
)
PKV_12 = _cache(
    12,
    "rewind(n) drops the last n tokens: what is appended next takes their place, and they never show again",
    source="PROPERTIES KV1, SP8",
)
PKV_13 = _cache(
    13,
    "rewind gives back the pages that became empty, and no other, and they are free for any cache",
    source="PROPERTIES PG3, PG4",
)
PKV_14 = _cache(
    14,
    "rewinding by 0 changes nothing, and a cache that is rewound by all its tokens begins anew, without pages",
    source="PROPERTIES KV1, PG4",
)
PKV_15 = _cache(
    15,
    "a rewind by more tokens than are cached, or by less than none, is refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
PKV_16 = _cache(16, "a refused rewind changes nothing", source="PROPERTIES X9, PG5")
PKV_17 = _cache(
    17,
    "release gives all pages of the cache back, each once, and those of no other cache",
    source=f"{INVARIANTS} 4; PROPERTIES PG4, PG7",
)
PKV_18 = _cache(
    18, "releasing a cache again changes nothing, an error or not", source="PROPERTIES PG2; TensorRT-LLM 14937"
)
PKV_19 = _cache(
    19,
    "a released cache has no pages and offset 0",
    Level.SHOULD,
    source=f"{INVARIANTS} 1; vllm-metal bb14a36",
)
PKV_20 = _cache(
    20, "an append for which too few pages are free is refused", aspect=Aspect.GUARD, source="PROPERTIES PG5"
)
PKV_21 = _cache(
    21,
    "an append for which too few pages are free changes nothing: neither tokens nor pages, and what fits is still taken",
    source="PROPERTIES PG5; https://github.com/vllm-project/vllm/pull/11565",
)
PKV_22 = _cache(22, "num_pages·page_size tokens fit: a pool can be filled to its last slot", source="PROPERTIES SC6")
PKV_23 = _cache(
    23,
    "keys and values that are not 1×H×L×D, both of the same L and of the pool's H and D, are refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
PKV_24 = _cache(
    24,
    "keys or values of another dtype than the pool's are refused",
    Level.SHOULD,
    Aspect.GUARD,
    source="PROPERTIES X9; vllm-metal 59b9be4",
)
PKV_25 = _cache(
    25, "an append whose arrays are refused changes nothing: neither tokens nor pages", source="PROPERTIES PG5, X9"
)
PKV_26 = _cache(
    26, "keys and values may each be a strided view: what is cached is that of their copies", source="PROPERTIES X1"
)
PKV_27 = _cache(27, "an append changes neither its key nor its value", source="PROPERTIES X6")
PKV_28 = _cache(
    28,
    "what the caller does to its arrays after an append does not show in the cache",
    Level.SHOULD,
    source="PROPERTIES X6",
)
PKV_29 = _cache(29, "what gather returned keeps its values, whatever the pool's caches do", source="PROPERTIES X7")
PKV_30 = _cache(
    30,
    "no page is lost: after all requests are over every page is free, however many there were",
    source="PROPERTIES PG4; MinivLLM 84",
)
PKV_31 = _cache(
    31,
    "pools and their caches have nothing in common with others: a story depends on itself alone",
    source="PROPERTIES X7",
)
PKV_32 = _cache(32, "page ids past 2^15 and 2^16 are as small ones", source="PROPERTIES X8, PA4")

TABLE_01 = _table(
    1,
    "token p of row b lies in page table[b, p // page_size], slot p % page_size, in the order of the caches given",
    f"{INVARIANTS} 2; PROPERTIES PG6",
)
TABLE_02 = _table(
    2,
    "context_lens is the offset of each row's cache, rows that are shorter than others and empty ones too",
    f"{INVARIANTS} 1; PROPERTIES PA5",
)
TABLE_03 = _table(
    3,
    "each table is of its time: appends, rewinds and other caches show in the next one, and not in those before",
    f"{COURSE}; PROPERTIES X7",
)

PKVA_01 = _batch(
    1,
    "attention of one new token a row, by the block table and context_lens of the batch, is that over the tokens of each "
    "row's cache, the new one too, as dense keys and values would have it",
    f"{INVARIANTS} 1 and 2; PROPERTIES PA1",
)
PKVA_02 = _batch(
    2,
    "the queries of a chunk are the last L tokens of their row: each sees the tokens up to its own, those of earlier "
    "chunks too, and none where there is none",
    "tiny-llm course, week 3 day 2; PROPERTIES CP1",
)
PKVA_03 = _batch(
    3,
    "rows of any lengths stand beside each other, those without tokens too, which are zeros: padding of the table is "
    "not read",
    "tiny-llm course, week 3 day 2; PROPERTIES PA2, PA5",
)
PKVA_04 = _batch(
    4,
    "attention is of its time: rewinds across pages, releases and pages that change hands show in the next one",
    f"{INVARIANTS} 3 and 4; PROPERTIES KV1, PG4",
)
PKVA_05 = _batch(
    5,
    "caches of several layers share a pool and its allocator: attention in a layer is over the layer's own tokens",
    "tiny-llm course, week 3 day 2; PROPERTIES PG1",
)
PKVA_06 = _batch(
    6,
    "slots that no token was written to do not show, NaN of former requests neither",
    f"{INVARIANTS} 1; PROPERTIES PA2; vllm#47305",
)

SENTENCES = tuple(value for value in list(globals().values()) if isinstance(value, Requirement))
