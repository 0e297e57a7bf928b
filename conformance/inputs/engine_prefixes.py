"""Stories of engines for the suites: prompts that begin alike, that only look alike, or that come again."""

from __future__ import annotations

from inferspec.conformance.inputs.engine_models import NARROW, POSITIONS, WIDE, is_clear, of_positions, wide
from inferspec.conformance.inputs.engine_script import PLAIN, Ids, Script, told


@told()
def sharing(script: Script) -> None:
    """Prompts that begin alike, at once or while another is served."""
    pick = script.pick
    start = script.ids(script.page() * pick.size(1, 3) + pick.one_of(0, 1, -1) + 1)
    for _ in range(pick.size(2, 4)):
        common = pick.size(1, len(start))
        limit = pick.one_of(3, 4, 2)
        script.add(script.prompt(common + pick.size(0, 5), limit, start[:common]), limit)
        script.between(6)


@told(prefix_caching=[True], chunks=[1, 3, 7])
def half_computed(script: Script) -> None:
    """A prompt that is computed in chunks, and perhaps cancelled; meanwhile others ask for the same."""
    _half_computed(script)


@told(prefix_caching=[True], chunks=[1, 3, 7], failing_models=[True])
def failed_prompts(script: Script) -> None:
    """A prompt that is cancelled when one of its chunks has failed; others ask for the same."""
    _half_computed(script, fails=True)


@told(prefix_caching=[True], page_sizes=[1, 2, 3], chunks=[3, 7], failing_models=[True], **PLAIN)
def failed_ends_of_prompts(script: Script) -> None:
    """A prompt that is cancelled when the last of its chunks has failed, or its only one; another goes on from it."""
    pick = script.pick
    # Its last chunk may fill a page that takes several.
    before = -(-script.size // script.chunk) - 1 if script.lead else 0
    length = script.chunk * (before + pick.size(0, 3)) + pick.one_of(script.chunk, 3)
    first = script.add(script.prompt(length, 3), 3)
    script.do("step", times=-(-length // script.chunk) - 1)
    script.do("fail", after=0, at=pick.one_of("use", "call"))
    script.cancel(first)
    script.add(script.prompt(length + pick.size(1, 3), 4, script.asked[first][0]), 4)


@told(prefix_caching=[True], page_sizes=[2, 3, 1, 4], chunks=[64, 7], failing_models=[True], **PLAIN)
def failed_ids_that_fill_pages(script: Script) -> None:
    """A request that is cancelled when the step has failed in which its last id was to fill a page; another goes on from it."""
    first, said = _filling(script)
    script.do("fail", after=0, at=script.pick.one_of("use", "call"))
    script.cancel(first)
    script.add(script.prompt(len(said) + script.pick.size(1, 3), 4, said), 4)


def _filling(script: Script) -> tuple[int, Ids]:
    """A request whose last id, which is not computed, fills a page, and all its tokens."""
    limit = 2 * min(script.size, 4) + 2
    tokens = script.prompt(max(script.lead - 5, 0) + script.pick.size(1, 8), limit)
    # So many ids that prompt and output end with a page.
    ids = -len(tokens) % script.size or script.size
    request = script.add(tokens, limit)
    script.do("step", times=-(-len(tokens) // script.chunk) + ids - 1)
    return request, (*tokens, *script.way(tokens, limit)[:ids])


def _half_computed(script: Script, fails: bool = False) -> None:
    pick = script.pick
    limit = pick.one_of(3, 4)
    length = script.chunk * pick.size(1, 3) + script.page() * 2 + 1
    first = script.add(script.prompt(length, limit), limit)
    script.do("step", times=pick.size(1, 3))
    if fails:
        script.do("fail", after=pick.one_of(0, 1, 2), at=pick.one_of("use", "end"))
    if fails or pick.one_of(False, True):
        script.cancel(first)
    for _ in range(pick.size(1, 2)):
        tokens = script.asked[first][0]
        if pick.one_of(False, True):
            tokens = script.prompt(length + pick.size(1, 3), limit, tokens)
        script.add(tokens, limit, priority=script.rank(0, 2))
        script.between(2)


@told(prefix_caching=[True], page_sizes=[2, 8], chunks=[3, 7], **PLAIN)
def computed_again_in_chunks(script: Script) -> None:
    """A request gives way to one that takes all pages, and later computes prompt and output again in chunks; meanwhile a
    prompt comes that goes on from its output, and goes first."""
    pick, size = script.pick, script.size
    script.max_requests = 2
    # So many ids that it takes more chunks than one to compute them again.
    beside = script.chunk + pick.size(0, 2)
    limit = beside + pick.size(3, 5)
    tokens = script.prompt(script.lead + pick.size(1, 2), limit)
    said = (*tokens, *script.way(tokens, limit))
    following = script.prompt(len(said) + 1, 4, said)
    script.pages = 2 * script.need(len(following), 4) + pick.size(0, 1)
    room = script.pages * size
    more = 2 * size + beside if script.lead else len(tokens) + 2 * beside
    ahead = script.prompt(room - more, more + 1)
    script.add(ahead, room + 1 - len(ahead))
    script.add(tokens, limit)
    # Then it is computed again, up to the end of a page, or, where that can be, to one token before it.
    short = script.lead and size % script.chunk == 1
    again = (max(size // script.chunk, 1) - 1 if script.lead else 0) + (1 if short else pick.size(1, 2))
    script.do("step", times=-(-len(ahead) // script.chunk) + room - len(ahead) + again)
    script.add(following, 4, priority=script.rank(2, 2, 2, 0))


@told(prefix_caching=[True])
def lookalikes(script: Script) -> None:
    """Prompts with whole pages in common, behind other beginnings or in another order."""
    pick, size = script.pick, script.page()
    pages = [script.ids(size) for _ in range(2)]
    pages.append(pages[0][::-1])
    for _ in range(pick.size(2, 4)):
        limit = pick.one_of(3, 2, 4)
        tokens = sum((pages[pick.one_of(0, 1, 2)] for _ in range(pick.size(1, 3))), ())
        script.add(script.prompt(len(tokens) + pick.size(1, 3), limit, tokens), limit)
        script.between(40)


@told(prefix_caching=[True], page_sizes=[1, 2, 3, 8], **PLAIN)
def other_beginnings(script: Script) -> None:
    """The same pages behind one first page, then all of them but the last behind another, then all of them behind that."""
    pick = script.pick
    one, other = script.ids(script.size), script.ids(script.size)
    # Or in one place alone, where a key of a page's ends, or of its beginning or its end, does not look.
    alike = pick.one_of("nothing", "all but the middle", "all but the first", "all but the last")
    if script.size > 1 and alike == "all but the first":
        other = ((one[0] + 1) % script.vocabulary, *one[1:])
    elif script.size > 1 and alike == "all but the last":
        other = (*one[:-1], (one[-1] + 1) % script.vocabulary)
    elif script.size > 2 and alike == "all but the middle":
        other = (one[0], *other[1:-1], one[-1])
    same = script.ids(script.size * pick.size(2, 4))
    for start in ((*one, *same), (*other, *same[: -script.size]), (*other, *same)):
        script.add(script.prompt(len(start) + 1, 5, start), 5)
        script.do("step", times=50)


@told(prefix_caching=[True], page_sizes=[3, 2, 1], **PLAIN)
def other_orders(script: Script) -> None:
    """The same pages behind four others, then all of them but the last behind these in another order, then all of them behind
    that."""
    one, other, same = (script.ids(script.size * pages) for pages in (2, 2, script.pick.size(4, 5)))
    for start in ((*one, *other, *same), (*other, *one, *same[: -script.size]), (*other, *one, *same)):
        script.add(script.prompt(len(start) + 1, 8, start), 8)
        script.do("step", times=40)


@told(prefix_caching=[True], page_sizes=[1, 2], **PLAIN)
def far_beginnings(script: Script) -> None:
    """Dozens of the same pages before some pages and behind them; then most of them, and then all, around others."""
    pick, size = script.pick, script.size
    most, less = 66, 16
    if script.lead:
        script.model, most, less = of_positions(script.model, POSITIONS), 22, 5
    one, other = script.ids(4 * size), script.ids(4 * size)
    head, tail = (script.ids(size * min(n, most)) for n in (pick.one_of(40, 0, 66), pick.one_of(40, 66, 20)))
    for start in ((*head, *one, *tail), (*head, *other, *tail[: -size * less]), (*head, *other, *tail)):
        script.add(script.prompt(len(start) + 1, 5, start), 5)
        script.do("step", times=min(-(-len(start) // script.chunk), 140) + 8)


@told(prefix_caching=[True], page_sizes=[1, 2, 3], **PLAIN)
def wide_vocabularies(script: Script) -> None:
    """Prompts whose ids are alike in their low bits, in a vocabulary past what 16 bits hold."""
    pick = script.pick
    script.model = wide(script.kind)
    start, place = list(script.ids(script.size * 2)), pick.size(0, script.size * 2 - 1)
    # One of many ids would not show.
    places = range(len(start)) if script.lead else (place,)
    for place in places:
        start[place] %= WIDE - NARROW
    for more in (0, pick.one_of(NARROW, 2**8, 2**15)):
        for place in places:
            start[place] += more
        script.add(script.prompt(len(start) + 1, 3, tuple(start)), 3)
        script.do("step", times=40)


@told(prefix_caching=[True], page_sizes=[2, 3, 8], **PLAIN)
def alike_in_print(script: Script) -> None:
    """Prompts of which a page has the same digits as another's, or the same value as a number to a small base."""
    pick = script.pick
    start = list(script.ids(script.size))
    place = pick.size(0, script.size - 2)
    if base := pick.one_of(0, 31, 33, 37):
        high, low = pick.size(0, 40), pick.size(base, 46)
        pairs = (high, low), (high + 1, low - base)
    else:
        tens, middle, ones = pick.size(1, 4), pick.size(1, 3), pick.size(0, 6)
        pairs = (tens, 10 * middle + ones), (10 * tens + middle, ones)
    for pair in pairs:
        start[place : place + 2] = pair
        script.add(script.prompt(len(start) + 1, 3, tuple(start)), 3)
        script.do("step", times=40)


@told(prefix_caching=[True], page_sizes=[1, 2, 3], chunks=[64], **PLAIN)
def copies_taken(script: Script) -> None:
    """A prompt twice at once, so that each computes it; when one is served another prompt takes its pages, while the other
    goes on; then what begins like it is asked for."""
    pick, size = script.pick, script.size
    # How many ids fill the third page.
    last = 3 if script.lead else size
    tokens, limit = script.ids(size * 3 - last + pick.one_of(0, min(1, size - 1))), 6 + 4 * last
    while not is_clear(script.model, tokens, limit):
        tokens = script.ids(len(tokens))
    way = (*tokens, *script.way(tokens, limit))
    script.add(tokens, 2)
    script.add(tokens, limit)
    script.do("step", times=-(-2 * len(tokens) // script.chunk) + last + 1)
    length = len(tokens) + pick.one_of(0, 1)
    script.add(script.prompt(length, 1), 1)
    script.do("step", times=2)
    common = way[: pick.one_of(size * 3, len(tokens), size * 3)]
    script.add(script.prompt(len(common) + 1, 2, common), 2)
    # The newcomer needs all pages that are free.
    script.pages = script.need(len(tokens), last + 3) + script.need(length, 1) + pick.one_of(0, 0, 1)
    script.pages = max(script.pages, script.need(len(tokens), limit))


@told()
def same_again(script: Script) -> None:
    """The same prompt several times, of whole pages or a token more or less, at once or one after the other, for fewer ids
    or more."""
    pick = script.pick
    length = max(1, script.page() * pick.size(1, 3) + pick.one_of(0, 0, 1, -1))
    tokens = script.prompt(length, 4)
    pause = pick.one_of(0, 1, 40, 3)
    for _ in range(pick.size(2, 4)):
        script.add(tokens, pick.one_of(3, 2, 4))
        if pause:
            script.do("step", times=pause)


@told("outputs", "pages", prefix_caching=[True], pages=["told"], page_sizes=[1, 2, 3], **PLAIN)
def asked_again_and_again(script: Script) -> None:
    """A prompt of some pages three times and more, each when the one before is served."""
    tokens = script.prompt(script.size * script.pick.size(1, 4) + 1, 3)
    for _ in range(script.pick.one_of(3, 4, 5)):
        script.add(tokens, script.pick.one_of(3, 1, 2))
        script.do("step", times=len(tokens) + 3)


@told(prefix_caching=[True], page_sizes=[1, 2, 3], **PLAIN)
def twins_in_short_pools(script: Script) -> None:
    """The same prompt several times, until there are no pages left: who is preempted then finds all that it had."""
    pick = script.pick
    limit = pick.one_of(8, 9, 6)
    tokens = script.prompt(script.lead + pick.size(1, 4), limit)
    script.max_requests = pick.one_of(3, 8)
    for _ in range(pick.size(2, 3)):
        script.add(tokens, limit)
    script.shorten(pick.size(0, 1))


@told()
def conversations(script: Script) -> None:
    """A request, and one that goes on from what came of it; perhaps a third."""
    pick = script.pick
    tokens: Ids = ()
    for _ in range(pick.size(2, 3)):
        limit = pick.one_of(4, 3, 6)
        tokens = script.prompt(len(tokens) + pick.size(1, 5), limit, tokens)
        script.add(tokens, limit)
        script.do("step", times=40)
        tokens = (*tokens, *script.way(tokens, limit))


@told(prefix_caching=[True], page_sizes=[1, 2, 3], **PLAIN)
def guessed_outputs(script: Script) -> None:
    """A request, and one that goes on otherwise than it did: with its first id again and again, or with its ids moved by one."""
    pick, limit = script.pick, 8
    tokens = script.prompt(script.lead + pick.size(1, 5), limit)
    script.add(tokens, limit)
    script.do("step", times=40)
    ids = script.way(tokens, limit)
    others = pick.one_of(ids[:1] * limit, [tokens[-1], *ids[:-1]], [*ids[1:], ids[0]])
    limit = pick.one_of(3, 2, 4)
    script.add(script.prompt(len(tokens) + len(others) + pick.size(1, 3), limit, (*tokens, *others)), limit)


@told(prefix_caching=[True], page_sizes=[2, 3], stops=[True])
def conversations_past_ends(script: Script) -> None:
    """A request that an id ends which would be the last of a page, and one that goes on with that id and more."""
    pick, limit = script.pick, 6
    tokens = script.prompt(max(script.lead - 4, 0) + pick.size(2, 8), limit)
    way = script.way(tokens, limit)
    last_of_a_page = [i for i in range(limit) if not (len(tokens) + i + 1) % script.size and way[i] not in way[:i]]
    at = pick.one_of(*last_of_a_page or [0])
    script.add(tokens, limit, eos=(way[at],))
    script.do("step", times=40)
    tokens = (*tokens, *way[: at + 1])
    limit = pick.one_of(3, 2, 4)
    script.add(script.prompt(len(tokens) + pick.size(1, 4), limit, tokens), limit)


@told(prefix_caching=[True], page_sizes=[2, 3, 1, 4], chunks=[64, 7], **PLAIN)
def interrupted(script: Script) -> None:
    """A request that is cancelled when its last id, which was not computed, fills a page; a prompt goes on from it."""
    request, said = _filling(script)
    script.cancel(request)
    script.add(script.prompt(len(said) + script.pick.size(1, 3), 4, said), 4)


@told("outputs", "steps", prefix_caching=[True], page_sizes=[1, 2, 3], chunks=[1, 3], **PLAIN)
def asked_twice(script: Script) -> None:
    """A prompt of some pages, alone, and the same again after it is served."""
    tokens = script.prompt(script.size * 4 + 2 + 3 * script.chunk, 2)
    for _ in range(2):
        script.add(tokens, 2)
        script.do("step", times=len(tokens) + 4)


@told("outputs", "steps", prefix_caching=[True], page_sizes=[1, 2, 3], chunks=[1, 3], **PLAIN)
def asked_twice_meanwhile(script: Script) -> None:
    """A prompt of some pages, and the same again when it is computed and ids of it are still to come."""
    length = script.size * 4 + 2 + 3 * script.chunk
    tokens = script.prompt(length, 4)
    script.add(tokens, 4)
    # So few ids that who serves one request at a time is soon done with it.
    script.do("step", times=-(-length // script.chunk) + 1)
    script.add(tokens, 4)


@told("outputs", "steps", prefix_caching=[False], page_sizes=[1, 2, 3], chunks=[1, 3], **PLAIN)
def asked_twice_beside_another(script: Script) -> None:
    """A prompt, and the same again after it is served, of an engine that caches no prefixes; meanwhile of one that does."""
    tokens = script.prompt(script.size * 4 + 2 + 3 * script.chunk, 2)
    for engine, sizes in ((0, {}), (1, {"sizes": {"prefix_caching": True}}), (0, {})):
        script.add(tokens, 2, engine=engine, **sizes)
        script.do("step", times=len(tokens) + 4, engine=engine)


@told("outputs", "steps", prefix_caching=[True], page_sizes=[1, 2, 3], chunks=[1, 3], **PLAIN)
def asked_twice_in_taken_pages(script: Script) -> None:
    """Prompts of which each takes the pages of the one before, and the last of them once more."""
    length = script.size * 4 + 2 + 3 * script.chunk
    prompts = [script.prompt(length, 2) for _ in range(3)]
    for tokens in (*prompts, prompts[-1]):
        script.add(tokens, 2)
        script.do("step", times=len(tokens) + 4)
    script.shorten()


@told("outputs", "steps", prefix_caching=[True], page_sizes=[1, 2, 3], chunks=[3, 7], **PLAIN)
def budgets_behind_hits(script: Script) -> None:
    """A prompt of some pages, and when it is served several at once that begin with it and have a chunk or more of their own."""
    pick, size = script.pick, script.size
    script.max_requests = pick.one_of(8, 4)
    start = script.prompt(-(-script.chunk * 2 // size) * size + 1, 1)
    script.add(start, 1)
    script.do("step", times=len(start) + 1)
    for _ in range(pick.size(2, 4)):
        script.add(script.prompt(len(start) + script.chunk + pick.size(0, 2), 2, start), 2)


@told("outputs", "steps", prefix_caching=[True], page_sizes=[1, 2, 3], chunks=[3, 7], **PLAIN)
def going_on(script: Script) -> None:
    """A prompt of two chunks; a request whose last step may be its first; and a prompt as long as the first that goes on from all
    that was computed of it, a chunk behind whole pages."""
    pick = script.pick
    limit = pick.one_of(1, 2, 1, 3)
    pages = max(script.chunk // script.size, 1) * script.size
    tokens = script.prompt(max(pages - limit + 1, 1), limit)
    said = (*tokens, *script.way(tokens, limit))[: len(tokens) + limit - 1]
    following = script.prompt(len(said) // script.size * script.size + script.chunk, 1, said)
    for prompt, most in ((script.prompt(len(following), 1), 1), (tokens, limit), (following, 1)):
        script.add(prompt, most)
        script.do("step", times=len(prompt) + 4)


@told("outputs", "steps", prefix_caching=[True], page_sizes=[3, 8, 2, 1], chunks=[3, 7, 1], **PLAIN)
def conversation(script: Script) -> None:
    """Prompts one after the other of which each goes on from what was said before, and the last once more."""
    pick = script.pick
    said: Ids = ()
    for _ in range(3):
        # Of guesses that are right a step fills several pages.
        limit = pick.size(2, 7) if script.draft is None else pick.one_of(9, 11)
        tokens = script.prompt(len(said) + script.size + pick.size(1, 5), limit, said)
        said = _answered(script, tokens, limit)
    _answered(script, tokens, limit)


def _answered(script: Script, tokens: Ids, limit: int) -> Ids:
    """A request is added and served; what it said and was told."""
    script.add(tokens, limit)
    script.do("step", times=len(tokens) + limit)
    return (*tokens, *script.way(tokens, limit))
