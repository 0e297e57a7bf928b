"""Stories of caches that paged attention reads: what pool, caches, block table and attention make together.

Several requests, each with a cache in every layer, take tokens in turn, so that their pages lie scattered in the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inferspec.conformance.calls import Call
from inferspec.conformance.inputs.pages import SMALL_PAGES, Script
from inferspec.conformance.strategies import Calls, Pick
from inferspec.spec.paged_kv import CONTRACT

TOGETHER = "PagedKVCache.attention"


class Batches(Script):
    """A story of requests whose tokens are appended and attended to layer by layer."""

    def __init__(
        self,
        pick: Pick,
        requests: int = 3,
        layers: int = 1,
        poisoned: bool = False,
        pages: tuple[int, ...] = (9, 13, 17),
    ) -> None:
        super().__init__(pick, pages=pages)
        self.requests, self.layers = range(requests), range(layers)
        self.heads, self.dim, self.ratio = pick.one_of(2, 1, 3), pick("head_dims"), pick("ratios")
        self.amplitude = pick.one_of(1.0, 0.3, 2.0)
        self.former(always=poisoned)

    def of(self, request: int, layer: int = 0) -> int:
        """The number of a request's cache in a layer."""
        return 100 * layer + self.cache(request)

    def step(self, lengths: Sequence[int], queries: int | None = None) -> None:
        """Every request takes so many tokens, none where it is 0, as far as there is room for all; then each row has L
        queries, as many as the longest chunk has tokens if not said otherwise."""
        order = self.pick.one_of([*self.requests], [*self.requests][::-1])
        share = self.free // (len(self.requests) * len(self.layers)) * self.page_size
        for layer in self.layers:
            for request in order:
                if lengths[request]:
                    self.append(self.of(request, layer), min(lengths[request], max(share, 1)))
            self.attend([self.of(request, layer) for request in order], queries or max(*lengths, 1))

    def attend(self, caches: list[int], queries: int) -> None:
        shape = len(caches), self.heads * self.ratio, queries, self.dim
        # So loud that the weights of a row are far from equal.
        self.do("attend", caches=caches, query=self.pick.normal(*shape, dtype=self.dtype, amplitude=2 / self.amplitude))

    def prompts(self) -> None:
        """Requests of different lengths begin; their last tokens ask."""
        page = self.page_size
        self.step([self.pick.one_of(1, page, page + 1, 2 * page - 1, 5, 0) for _ in self.requests], queries=1)

    def end(self, request: int) -> None:
        """A request is over, in all layers, and another one takes its place."""
        for layer in self.layers:
            if self.of(request, layer) in self.lengths:
                self.release(self.of(request, layer))
        self.over[request] = self.over.get(request, 0) + 1

    def call(self, operation: str = TOGETHER) -> Call:
        return super().call(operation)


def batches(build: Callable[[Pick], Call]) -> Calls:
    """Like `calls`, for a subject whose attention takes any of the sizes."""
    sizes = {key: CONTRACT.envelope[key] for key in ("dtypes", "head_dims", "ratios")}
    return Calls(build, sizes, preferred={"page_sizes": SMALL_PAGES})


@batches
def decoding(pick: Pick) -> Call:
    """One new token a row, step by step, over the end of a page."""
    script = Batches(pick, requests=pick.one_of(3, 2, 1))
    script.prompts()
    for _ in range(pick.size(1, 4)):
        script.step([1 for _ in script.requests])
    return script.call()


@batches
def chunked(pick: Pick) -> Call:
    """Chunks of several tokens, of the same number for all rows or not: shorter ones have queries of the tokens before."""
    script = Batches(pick, requests=pick.one_of(2, 3, 1))
    for _ in range(pick.size(1, 3)):
        length = pick.one_of(2, 3, 5, script.page_size, script.page_size + 1)
        script.step([pick.one_of(length, length, length - 1, 1) for _ in script.requests], length)
    return script.call()


@batches
def uneven(pick: Pick) -> Call:
    """Rows of very different lengths, some without tokens."""
    script = Batches(pick)
    page = script.page_size
    for _ in range(pick.size(1, 3)):
        script.step([pick.one_of(0, 1, 3 * page, page - 1, 2 * page + 1) for _ in script.requests], pick.one_of(1, 3))
    return script.call()


@batches
def crowded(pick: Pick) -> Call:
    """As many rows as a server decodes together, of a few tokens each; one is over, and another takes its place."""
    requests = pick.one_of(9, 17, 6, 12)
    script = Batches(pick, requests=requests, pages=(3 * requests,))
    script.step([int(length) for length in pick.random.integers(0, script.page_size + 2, requests)], queries=1)
    script.step([1] * requests)
    script.end(int(pick.random.integers(requests)))
    script.step([1] * requests)
    return script.call()


@batches
def long_beside_short(pick: Pick) -> Call:
    """A context of hundreds of tokens beside a short one."""
    long = pick.one_of(300, 255, 530)
    script = Batches(pick, requests=2)
    script.pages = 2 * (long // script.page_size + 3)
    script.step([long, 2], queries=1)
    script.step([1, 1])
    return script.call()


@batches
def changing(pick: Pick) -> Call:
    """Between the steps requests are rewound, or end and are followed by others, and pages change hands."""
    rewinding = pick("rewinding")
    script = Batches(pick, requests=pick.one_of(2, 3))
    script.prompts()
    for _ in range(pick.size(1, 4)):
        request = pick.one_of(*script.requests)
        cache = script.of(request)
        match pick.one_of("rewind", "swap", "end") if rewinding and cache in script.lengths else "end":
            case "rewind":
                script.rewind(cache)
            case "swap":
                # As many tokens as before, in pages that another request has had meanwhile.
                before = script.lengths[cache]
                script.rewind(cache)
                left = script.lengths[cache]
                script.append(script.of((request + 1) % len(script.requests)), before - left)
                script.append(cache, before - left)
            case _:
                script.end(request)
        script.step([pick.one_of(1, 1, 2, script.page_size) for _ in script.requests])
    return script.call()


@batches
def layered(pick: Pick) -> Call:
    """Two layers or three in one pool, each filled and attended to in turn."""
    script = Batches(pick, requests=pick.one_of(2, 1), layers=pick.one_of(2, 3))
    script.prompts()
    for _ in range(pick.size(1, 3)):
        if pick.one_of(False, False, True):
            script.end(0)
        script.step([pick.one_of(1, 1, 2, script.page_size) for _ in script.requests])
    script.do("num_free")
    return script.call()


@batches
def layered_guesses(pick: Pick) -> Call:
    """Two layers in one pool, in all of which some tokens of a request are rewound, as those that were guessed wrongly are."""
    pick("rewinding")
    script = Batches(pick, requests=2, layers=2)
    script.step([script.page_size + 1, 3], queries=1)
    for _ in range(pick.size(1, 2)):
        request, guessed = pick.one_of(0, 1), pick.one_of(1, 2)
        script.step([guessed, guessed])
        for layer in script.layers:
            cache = script.of(request, layer)
            script.rewind(cache, min(pick.one_of(guessed, guessed + 1), script.lengths[cache] - 1))
    script.step([1, 1])
    return script.call()


@batches
def unwritten(pick: Pick) -> Call:
    """Every slot of the pool held NaN for a request that is over."""
    script = Batches(pick, poisoned=True)
    script.prompts()
    for _ in range(pick.size(1, 3)):
        script.step([1 for _ in script.requests], pick.one_of(1, 2))
    return script.call()
