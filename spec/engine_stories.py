"""How the kit uses an engine, and what it looks at meanwhile. The oracle's model and the driver of real subjects share it; it
judges nothing.

Schedules are free, so what it tells does not depend on them: no part of a story says in which step something happened.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from inferspec.spec.contract import Arguments, Unreadable

BEGIN = 2.0**14
"""What a clock shows at first, in seconds: some hours, as that of a machine does."""

DURATIONS = (1 + 2**-12, 2.5, 0.75 + 2**-11, 4.0)
"""Seconds from one step to the next: no two gaps of a few steps are alike, all sums are exact in float64, and neither in
float32 nor in milliseconds."""

PAUSE = 0.375 + 2**-10
"""Seconds from what was done last to the next request."""

COMPUTING = 0.25
"""Seconds that a use of the model takes, where a story watches them."""

FAILURES = ("use", "call", "end")
"""What of a model fails: a use, whatever it is; a call, before anything is computed; a call when all is."""

ROUNDS = 8
"""Steps for each token of all requests, beyond which an engine is said to stand still."""


class Clock:
    """Seconds that the story sets, or (`ticking`) that every reading adds one to."""

    def __init__(self, ticking: bool) -> None:
        self.now, self.ticking = BEGIN, ticking

    def __call__(self) -> float:
        self.now += self.ticking
        return self.now


@dataclass
class Fuse:
    """Lets the model, or the draft, fail: `burn(n, error, draft, at)` arms it for its n-th use from now on, its n-th call, or
    the end of that, one of FAILURES, with an error of that name; `tripped` says whether it has failed since.
    `watch(listener)`: the listener is called at each use of the model."""

    burn: Callable[[int | None, str, bool, str], None]
    tripped: Callable[[], bool]
    watch: Callable[[Callable[[], None]], None]


@dataclass
class _Known:
    """A request as the caller knows it. asked: number of the step that added it."""

    asked: int
    name: Any
    engine: int
    given: list[int]
    ends: Any
    tokens: tuple[int, ...]
    arrival: float
    cancelled: bool = False
    streamed: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    when: list[int] = field(default_factory=list)
    """Numbers of the steps that gave the ids."""
    most: int = 0
    late: int = 0
    first: int = 0
    """Number of the step that gave the first id; `last`: that gave the last."""
    last: int = 0
    steps: int = 0
    bursts: int = 0
    ran: bool = False
    apart: int = 0
    strayed: int = 0
    """Looks at logits that are not those of the last id."""
    meanwhile: float = 0.0
    computed: float | None = None
    """When the model had been used for the first time after the request came."""
    early: dict[int, float] = field(default_factory=dict)
    """When ids were there that a step chose before it failed, by their place; a later step gives them."""


class _Story:
    def __init__(self, make: Callable[..., Any], a: Arguments, fuse: Fuse) -> None:
        self.make, self.a, self.fuse = make, a, fuse
        self.clock = Clock(a.ticking)
        self.engines = [make(self.clock)]
        self.known: dict[int, _Known] = {}
        self.durations = itertools.cycle(DURATIONS)
        self.order: list[int] = []
        self.told: dict[str, Any] = {}
        self.outside = self.held = self.misled = self.at_once = self.repeated = self.over_lent = self.advanced = 0
        self.uses = self.heard = self.unheard = 0
        """Of the model, where they are watched; and steps that gave ids, in which there was one or was none."""
        self.least, self.replayed = 0, False
        """Uses in a step that gave ids, at least; and whether a run had fewer than its steps take."""
        self.lent: list[tuple[Any, Any]] = []
        """What the engine gave out, and what it held then."""
        self.number = 0
        self.ran = any(step == "run" or given.get("run") for step, given in a.steps)
        self.compares = not self.ran and bool({"stream", "latest", "metrics"} & set(a.seen))
        if "computing" in a.seen:
            fuse.watch(self._computes)

    # steps

    def do(self, number: int, step: str, given: Mapping[str, Any]) -> None:
        self.number = number
        try:
            getattr(self, step)(**given)
        except Exception as error:
            self.told |= {f"{number} refused": 1, f"{number} why": f"{type(error).__name__}: {error}"}
        self.look()

    def add(
        self,
        tokens: tuple[int, ...],
        max_tokens: int,
        priority: int = 0,
        eos: tuple[int, ...] = (),
        engine: int = 0,
        listed: bool = False,
        sizes: Mapping[str, int] = MappingProxyType({}),
    ) -> None:
        """listed: the ids that end the request are given in a list, which may be changed later; sizes: those of the engine, if it
        is made for the request."""
        while len(self.engines) <= engine:
            # Of other limits: what there is one of for all engines shows.
            self.engines.append(self.make(self.clock, max_requests=self.a.max_requests + 1, **sizes))
        self.clock.now += PAUSE
        given, ends = list(tokens), list(eos) if listed else eos
        options = {name: value for name, value in (("priority", priority), ("eos", ends)) if value}
        try:
            name = self.engines[engine].add_request(given, max_tokens, **options)
        finally:
            if given != list(tokens) or list(ends) != list(eos):
                self.told[f"{self.number} changed"] = 1
        self.known[self.number] = _Known(self.number, name, engine, given, ends, tokens, self.clock.now)

    def step(self, times: int = 1, engine: int = 0) -> None:
        for _ in range(times):
            self._advance(engine)
            self.look()

    def fail(
        self, after: int, run: bool = False, error: str = "RuntimeError", draft: bool = False, at: str = "use"
    ) -> None:
        """A step, or a run, in which the model fails at one of its uses, or calls, if it has so many; or the draft, without
        which an engine may go on. at: one of FAILURES."""
        self.fuse.burn(after, error, draft, at)
        raised = False
        try:
            if run:
                self.engines[0].run()
            else:
                self._advance(0)
        except NotImplementedError:
            raise
        except Exception:
            raised = True
        finally:
            self.fuse.burn(None, error, draft, at)
        if raised != self.fuse.tripped() and (raised or not draft):
            self.told[f"{self.number} swallowed" if not raised else f"{self.number} crashed"] = 1
        # Whom a step served before it failed may have an id that it did not come to give.
        for one in self.known.values() if raised and not run else ():
            if one.engine == 0 and not one.cancelled:
                places = range(len(one.streamed), len(self._ids(one)))
                # One that another failed step had told of is no younger for that.
                one.early = {place: one.early.get(place, self.clock.now) for place in places}

    def run(self, engine: int = 0, overwrite: bool = False) -> None:
        """overwrite: the caller then changes the lists that it was given."""
        mine = [one for one in self.known.values() if one.engine == engine]
        had, uses = {one.asked: len(self._ids(one)) for one in mine} if self.least else {}, self.uses
        outputs = self._kept(self.engines[engine].run())
        longest = max((len(self._ids(one)) - had[one.asked] for one in mine if one.asked in had), default=0)
        self.replayed |= self.uses - uses < longest * self.least
        for one in mine:
            one.ran = True
            if one.name in outputs:
                self.told[f"{one.asked} run"] = [int(token) for token in outputs[one.name]]
        self.told[f"{self.number} ran"] = len(outputs)
        for ids in outputs.values() if overwrite else ():
            if isinstance(ids, list):
                ids.append(0)

    def cancel(self, request: int, finished: bool = False) -> None:
        """Whether cancelling what is over is refused is left open. finished: it is cancelled only if it is finished."""
        if one := self.known.get(request):
            engine = self.engines[one.engine]
            over = one.cancelled or bool(engine.finished(one.name))
            if finished and not over:
                return
            one.cancelled |= not finished
            with contextlib.suppress(*((Exception,) if over else ())):
                engine.cancel(one.name)

    def overwrite(self, request: int, ends: tuple[int, ...] = ()) -> None:
        """ends: what the caller makes of its list of the ids that end the request."""
        if one := self.known.get(request):
            if isinstance(one.ends, list):
                one.ends[:] = ends
            one.given[:] = [0, *one.given[:-1]] if len(one.given) % 2 else one.given[::-1]
            one.given.append(0)
            output = self.engines[one.engine].output(one.name)
            if isinstance(output, list):
                output.append(0)

    def strange(self, method: str, name: Any = 10**6) -> None:
        """Ask about an id that no request has: this one, or where one has it another."""
        names = {one.name for one in self.known.values()}
        getattr(self.engines[0], method)(next(x for x in (name, 10**6, "nobody") if x not in names))

    def _advance(self, engine: int) -> None:
        self.clock.now += next(self.durations)
        waiting = [one for one in self.known.values() if one.engine == engine and not one.streamed]
        for one in waiting:
            one.steps += 1
        made: dict[int, int] = {}
        self.advanced, uses = self.advanced + 1, self.uses
        for name, token in pairs_of(self._kept(self.engines[engine].step())):
            mine = [x for x in self.known.values() if x.engine == engine and x.name == name]
            if not mine:
                self.told["of nobody"] = 1
                continue
            one = mine[0]
            if not one.streamed:
                self.order.append(one.asked)
                one.first = self.advanced
            one.last = self.advanced
            one.streamed.append(int(token))
            one.when.append(self.advanced)
            one.times.append(one.early.get(len(one.times), self.clock.now))
            one.late += one.cancelled
            self.repeated += one.ran
            one.bursts += one.asked not in made
            made[one.asked] = made.get(one.asked, 0) + 1
            one.most = max(one.most, made[one.asked])
        self.heard += bool(made) and self.uses > uses
        self.unheard += bool(made) and self.uses == uses
        if made and self.uses > uses:
            self.least = min(self.least or self.uses - uses, self.uses - uses)
        # Who generates and is not served in a step may be preempted: that does not count.
        running = [number for number in made if not self.engines[engine].finished(self.known[number].name)]
        self.at_once = max(self.at_once, len(running))
        if "filled" in self.a.seen:
            free = int(read(self.engines[engine], "num_free_pages"))
            filled = max((self._filled(self.known[number]) for number in running), default=0)
            self.over_lent = max(self.over_lent, free + filled - self.a.num_pages)

    def _paced(self) -> bool:
        """Whether all steps that gave ids used the model, as far as that can be seen, and gave each request one at most."""
        single = all(one.most <= 1 for one in self.known.values())
        unseen = self.unheard or self.replayed
        return single and bool(self.heard) and not unseen and self.a.draft is None

    def _ids(self, one: _Known) -> list[int]:
        return [int(token) for token in self._kept(self.engines[one.engine].output(one.name))]

    def _kept(self, given: Any) -> Any:
        """What the engine gives out, noted as it is now."""
        listed = isinstance(given, Sequence | Mapping)
        if "kept" in self.a.seen and listed and not any(given is thing for thing, _ in self.lent):
            self.lent.append((given, _held(given)))
        return given

    def _filled(self, one: _Known) -> int:
        """How many pages a request fills: its last id is not computed yet. None where one id alone is to come: an engine
        whose ids come out a step after theirs is done with it."""
        if len(one.streamed) + 1 >= self.a.steps[one.asked - 1][1]["max_tokens"]:
            return 0
        return -(-(len(one.tokens) + len(one.streamed) - 1) // self.a.page_size)

    def _computes(self) -> None:
        self.clock.now += COMPUTING
        self.uses += 1
        for one in self.known.values():
            # A use that comes later, for another request, says nothing of an id that is out.
            if not one.streamed:
                one.computed = one.computed or self.clock.now

    # what is seen

    def look(self) -> None:
        """What holds at every moment."""
        for index, engine in enumerate(self.engines):
            unfinished = bool(read(engine, "has_unfinished"))
            if "pages" in self.a.seen:
                free = int(read(engine, "num_free_pages"))
                self.outside = max(self.outside, -free, free - self.a.num_pages)
                self.held = max(self.held, 0 if unfinished else abs(self.a.num_pages - free))
            mine = [one for one in self.known.values() if one.engine == index]
            for one in mine if self.compares else ():
                self.compare(engine, one)
            for one in mine if "kept" in self.a.seen else ():
                self._ids(one)
                if "gaps" in self.a.seen:
                    self._kept(_told(engine, one)[2])
            self.misled += unfinished != any(not (one.cancelled or engine.finished(one.name)) for one in mine)

    def compare(self, engine: Any, one: _Known) -> None:
        """What the engine tells of a request while it is served, and what steps gave of it."""
        if one.cancelled:
            return
        ids = self._ids(one)
        pending = len(one.streamed) in one.early and ids[: len(one.streamed)] == one.streamed
        if "stream" in self.a.seen:
            one.apart += ids != one.streamed and not pending
        if "latest" in self.a.seen and ids:
            logits = engine.logits(one.name)
            one.strayed += logits is None or int(np.argmax(logits)) != ids[-1]
        if "metrics" in self.a.seen and not pending:
            off = [float(np.abs(x).max(initial=0.0)) for x in _metrics(engine, one).values()]
            one.meanwhile = float(np.max([one.meanwhile, *off]))

    def drain(self) -> None:
        """Step until nothing is unfinished."""
        total = sum(len(given["tokens"]) + given["max_tokens"] for step, given in self.a.steps if step == "add")
        for _ in range(ROUNDS * total + ROUNDS):
            busy = [index for index, engine in enumerate(self.engines) if read(engine, "has_unfinished")]
            if not busy:
                return
            for index in busy:
                self._advance(index)
                self.look()
        self.told["stands still"] = 1

    def finish(self) -> dict[str, Any]:
        """What there is to tell at the end."""
        for one in self.known.values():
            engine = self.engines[one.engine]
            for group in self.a.seen:
                tell = _TOLD.get(group)
                if (
                    tell
                    and (not self.ran or group not in ("stream", "pace"))
                    and (not one.cancelled or group == "cancelled")
                ):
                    self.told |= {f"{one.asked} {name}": value for name, value in tell(engine, one).items()}
            if "computing" in self.a.seen and not one.cancelled:
                self.told[f"{one.asked} in no time"] = int(self._paced() and _in_no_time(engine, one))
                if self.unheard:
                    # What made an id may have gone unseen, and a use that was seen be another's.
                    self.told[f"{one.asked} before it was computed"] = 0
            if "began" in self.a.seen and not one.cancelled:
                # Where uses of the model go unseen, several steps have one time.
                began = one.arrival + (_told(engine, one)[0] or 0.0)
                self.told |= {f"{one.asked} began": began, f"{one.asked} paced": int(self._paced())}
        free = [int(read(x, "num_free_pages")) for x in self.engines] if "pages" in self.a.seen else []
        together: dict[str, dict[str, Any]] = {
            "pages": {"free at the end": free, "free pages beyond those there are": self.outside, "pages held while idle": self.held},
            "ends": {"has_unfinished misled": self.misled, "ids that a run had returned": self.repeated, "has_unfinished at the end": [int(bool(read(x, "has_unfinished"))) for x in self.engines]},
            "order": {"order": self.order},
            "filled": {"pages free that a request fills": self.over_lent},
            "steps": {"most at once": self.at_once},
            "kept": {"given things that changed": sum(_held(thing) != held for thing, held in self.lent)},
        }  # fmt: skip
        for group in self.a.seen:
            self.told |= together.get(group, {})
        return self.told


def pairs_of(given: Any) -> Iterator[tuple[Any, Any]]:
    """What a step gives, one after the other: anything that comes apart into pairs, or a dict; Unreadable where it does not."""
    wanted = f"step gives a {type(given).__name__}, which is no list of (id, token)"
    if not isinstance(given, Iterable):
        raise Unreadable(wanted)
    for pair in given.items() if isinstance(given, Mapping) else given:
        try:
            name, token = pair
        except (TypeError, ValueError) as error:
            raise Unreadable(wanted) from error
        yield name, token


def _outputs(engine: Any, one: _Known) -> dict[str, Any]:
    ids = [int(token) for token in engine.output(one.name)]
    return {"output": ids, "finished": int(bool(engine.finished(one.name)))}


def _cancelled(engine: Any, one: _Known) -> dict[str, Any]:
    return {"until cancelled": one.streamed, "after it": one.late} if one.cancelled else {}


def _metrics(engine: Any, one: _Known) -> dict[str, Any]:
    """What the engine tells less what the clock said, as the tokens came out; TPOT times the number of gaps."""
    ttft, tpot, itl, e2el = _told(engine, one)
    gaps, n = np.diff(one.times), len(one.times)
    span = one.times[-1] - one.times[0] if n > 1 else None
    told = [float(x) for x in itl]
    return {
        "ttft": _less(ttft, one.times[0] - one.arrival if n else None),
        "tpot": _less(None if tpot is None else tpot * max(n - 1, 1), span),
        "itl": np.array(told) - gaps if len(told) == len(gaps) else np.array([*told, np.nan]),
        "e2el": _less(e2el, one.times[-1] - one.arrival if n else None),
    }


def _computing(engine: Any, one: _Known) -> dict[str, Any]:
    """Whether the first id is told to be older than the first use of the model that can have made it."""
    ttft, *_ = _told(engine, one)
    if ttft is None or one.computed is None:
        return {"before it was computed": 0}
    return {"before it was computed": int(ttft < one.computed - one.arrival)}


def _in_no_time(engine: Any, one: _Known) -> bool:
    """Whether many ids have the same time. The last may have that of the one before, if steps are begun ahead of time."""
    _, _, itl, _ = _told(engine, one)
    return len(itl) > 2 and sum(float(x) for x in itl) < COMPUTING


def _identities(engine: Any, one: _Known) -> dict[str, Any]:
    """TTFT + ΣITL - E2EL, the number of gaps, how far below 0 anything is."""
    ttft, tpot, itl, e2el = _told(engine, one)
    n = len(engine.output(one.name))
    told = [float(x) for x in itl]
    every = [*told, *(x for x in (ttft, tpot, e2el) if x is not None)]
    return {
        "identity": _less(None if ttft is None else ttft + sum(told), e2el),
        "gaps": len(told) - max(n - 1, 0),
        "mean gap": _less(None if tpot is None else tpot * (n - 1), sum(told) if n > 1 else None),
        "below 0": min([0.0, *every]),
    }


def _held(given: Any) -> Any:
    """A copy of an output, of the pairs of a step, or of the outputs of a run."""
    if isinstance(given, Mapping):
        return {name: _held(ids) for name, ids in given.items()}
    return [_number_or_pair(x) for x in given]


def _number_or_pair(x: Any) -> Any:
    """Pairs may be of any kind that comes apart into two."""
    try:
        return float(x)
    except (TypeError, ValueError):
        return tuple(x)


def _told(engine: Any, one: _Known) -> tuple[Any, Any, Any, Any]:
    """TTFT, TPOT, ITL and E2EL. Before the first id there is nothing to tell, and an engine may refuse to."""
    try:
        return _four(engine.metrics(one.name))
    except NotImplementedError:
        raise
    except Exception:
        if one.streamed or len(engine.output(one.name)):
            raise
        return None, None, [], None


def _four(told: Any) -> tuple[Any, Any, Any, Any]:
    """TTFT, TPOT, ITL and E2EL of a tuple in this order, or of a dict or an object with these names."""
    names = ("ttft", "tpot", "itl", "e2el")
    if isinstance(told, Mapping):
        told = [told[name] for name in names]
    elif hasattr(told, names[0]):
        told = [getattr(told, name) for name in names]
    ttft, tpot, itl, e2el = told
    return ttft, tpot, itl, e2el


def _less(told: float | None, seen: float | None) -> float:
    """The difference; 0 where both are None, and NaN where one is."""
    if told is None or seen is None:
        return 0.0 if told is seen else np.nan
    return float(told) - seen


_TOLD: Mapping[str, Callable[[Any, _Known], dict[str, Any]]] = {
    "outputs": _outputs,
    "stream": lambda engine, one: {"streamed": one.streamed, "output unlike the steps": one.apart},
    "pace": lambda engine, one: {"most in a step": one.most},
    "cancelled": _cancelled,
    "metrics": lambda engine, one: {**_metrics(engine, one), "meanwhile": one.meanwhile},
    "identities": _identities,
    "computing": _computing,
    "steps": lambda engine, one: {
        "steps to the first id": one.steps,
        "steps with ids": one.bursts,
        "first": one.first,
        "last": one.last,
        "when": one.when,
    },
    # Who has no id may refuse to tell by what it was chosen.
    "logits": lambda engine, one: {"logits": engine.logits(one.name)} if len(engine.output(one.name)) else {},
    "latest": lambda engine, one: {"logits of another id": one.strayed},
}


def read(thing: Any, name: str) -> Any:
    """An attribute, or what a method of that name returns."""
    attribute = getattr(thing, name)
    return attribute() if callable(attribute) else attribute


def watch(make: Callable[..., Any], a: Arguments, fuse: Fuse) -> dict[str, Any]:
    """Do the steps of a story to engines that `make(clock, …)` builds, with other options than the story's where some are
    named; serve what is left, and return what `a.seen` names."""
    story = _Story(make, a, fuse)
    for number, (step, given) in enumerate(a.steps, 1):
        story.do(number, step, given)
    try:
        story.drain()
    except Exception as error:
        last = len(a.steps)
        story.told |= {f"{last} raised later": 1, f"{last} why": f"{type(error).__name__}: {error}"}
    return story.finish()
