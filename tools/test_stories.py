"""Calls that are more than one array: parts, nested arguments, drivers, and stories of stateful objects."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from inferspec.conformance.bridge.arrays import arrays
from inferspec.conformance.bridge.binding import Target, bind
from inferspec.conformance.bridge.drivers import driver_of, follow, parts
from inferspec.conformance.bridge.executor import Executor
from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.conformance.bridge.wire import decode, encode
from inferspec.conformance.calls import Call, Observation
from inferspec.conformance.inputs.engine_leavers import failing
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.properties.common import refuses_step
from inferspec.conformance.subject import LocalSubject
from inferspec.conformance.suite import Profile, all_tests
from inferspec.spec import contract, linear
from inferspec.spec.contract import STORY, Answer, Operation, Signature
from inferspec.spec.engine import ENG_25

NUMPY = arrays("numpy")


class Halves(Operation):
    """An operation with two results."""

    signature = Signature.parse("halves(x)")
    parts = ("first", "second")

    def evaluate(self, a, precision):
        value = np.asarray(a.x, np.float64)
        middle = len(value) // 2
        return {
            "first": Answer(value[:middle], np.zeros(middle)),
            "second": Answer(value[middle:], np.zeros(len(value) - middle)),
        }

    def result_dtype(self, a):
        return "float32"


class Counter(Operation):
    """A story."""

    signature = Signature.parse("Counter(steps)")
    parts = STORY
    methods = ("add",)
    optional_methods = {"clear": ("clears", (False,))}  # noqa: RUF012

    def result_dtype(self, a):
        return "float32"


def observed(operation, function, driver=None, **arguments):
    target = Target(operation, function, NUMPY, False, {}, {name: name for name in arguments}, driver=driver)
    return Executor({"it": target}).call("it", arguments, {}, None, (), False)


# parts


@pytest.mark.parametrize("shape", [tuple, list, lambda pair: dict(zip(("first", "second"), pair, strict=True))])
def test_parts_are_named_in_their_order_or_by_the_subject(shape):
    seen = observed(Halves, lambda x: shape((x[:1], x[1:])), x=np.arange(3.0))
    assert {part: value.tolist() for part, value in seen.parts.items()} == {"first": [0], "second": [1, 2]}
    assert seen.value is None


@pytest.mark.parametrize("shape", [tuple, list, iter, dict, lambda named: SimpleNamespace(**named)])
def test_what_a_step_returns_is_named_in_its_order_or_by_the_subject(shape):
    named = {"values": 2, "keys": 1}
    returned = shape((1, 2)) if shape in (tuple, list, iter) else shape(named)
    assert list(parts(returned, "keys", "values")) == [1, 2]


@pytest.mark.parametrize("returned", [np.ones(2), (np.ones(2),), (np.ones(1),) * 3, 1.0])
def test_another_number_of_parts_is_no_result(returned):
    seen = observed(Halves, lambda x: returned, x=np.arange(3.0))
    assert (seen.value, dict(seen.parts)) == (None, {})
    assert seen.message


def test_an_oracle_gives_its_parts_in_their_dtype():
    parts = LocalSubject({"halves": Halves}).call(Call("halves", {"x": np.arange(3.0)})).parts
    assert [(name, x.dtype.name) for name, x in parts.items()] == [("first", "float32"), ("second", "float32")]


# nested arguments


def test_nested_arrays_are_converted_and_cross_to_another_process():
    weights = {"a": np.arange(2, dtype=np.float32), "b": [np.ones(1, np.float32), ("x", {"c": np.zeros(3)})]}
    crossed = decode(encode({"weights": weights}))["weights"]
    assert Call("f", {"weights": crossed}).leaves().keys() == {"weights.a", "weights.b.0", "weights.b.1.1.c"}
    mlx = arrays("mlx")
    target = Target(linear.Silu, lambda w: w["a"] * 2 + w["b"][0], mlx, False, {}, {"w": "w"})
    seen = Executor({"silu": target}).call("silu", {"w": crossed}, {}, None, (), False)
    assert seen.value.tolist() == [1, 3]


def test_a_change_of_a_nested_array_is_noticed():
    def spoils(w):
        w["a"][0] = 7
        return w["a"].copy()

    assert observed(linear.Silu, spoils, w={"a": np.zeros(2)}).changed == ("w.a",)


# drivers and stories


def test_why_a_step_was_refused_is_told_beside_the_parts():
    def driver(subject, given, to):
        return follow(subject, [("pop", {})], {"pop": ("last",)})

    seen = observed(Counter, [], driver=driver, x=np.ones(1))
    assert (seen.parts, seen.message) == ({"1 refused": 1}, "step 1: IndexError: pop from empty list")


def test_a_driver_uses_what_is_offered_in_the_place_of_a_call():
    seen = observed(
        linear.Silu, lambda x: x + 1, driver=lambda subject, given, to: subject(given["x"]).sum() > 0, x=np.ones(2)
    )
    assert seen.value == 1


def test_a_story_goes_on_after_a_refusal():
    class Tally:
        def __init__(self):
            self.total = 0

        def add(self, n):
            if n < 0:
                raise ValueError(f"n is {n}")
            self.total += n
            return self.total, -self.total

    steps = (("add", {"n": 2}), ("add", {"n": -1}), ("add", {"n": 3}), ("total", {}))
    names = {"add": ("up", "down"), "total": ("total",)}
    assert follow(Tally(), steps, names) == {
        "1 up": 2, "1 down": -2, "2 refused": 1, "2 why": "ValueError: n is -1", "3 up": 5, "3 down": -5, "4 total": 5,
    }  # fmt: skip


def test_a_state_that_can_be_called_is_a_state_all_the_same():
    class Module:
        def __init__(self, tokens):
            self.tokens = tokens

        def __call__(self):
            raise NotImplementedError

    class Cache:
        def __init__(self):
            self.module = Module([])

        def update_and_fetch(self, key, value):
            self.module = Module([*self.module.tokens, key])
            return (np.concatenate(self.module.tokens, axis=2),) * 2

        @property
        def state(self):
            return self.module

        def restore(self, state):
            self.module = state

    chunk = {"key": np.ones((1, 1, 1, 2)), "value": np.ones((1, 1, 1, 2))}
    steps = (("update_and_fetch", chunk), ("save", {}), ("another", {}), ("restore", {}), ("update_and_fetch", chunk))
    seen = driver_of("kv_cache", "KVCache")(Cache, {"steps": steps, "layout": ""}, NUMPY)
    assert seen["5 keys"].shape == (1, 1, 2, 2)


def test_a_bool_mask_has_no_dtype_to_be_wrong_in():
    class Promotes:
        def __init__(self, max_requests, max_len):
            pass

        def update_and_fetch(self, key, value, mask_length):
            return key.astype(np.float32), value.astype(np.float32), np.ones((1, 1, 1, 1), bool)

    chunk = dict.fromkeys(("key", "value"), np.ones((1, 1, 1, 2), np.float16))
    steps = (("update_and_fetch", {**chunk, "mask_length": 1}),)
    drive = driver_of("batching", "BatchingKVCache")
    seen = drive(Promotes, {"max_requests": 1, "max_len": 1, "steps": steps}, NUMPY)
    assert (seen["1 keys"].dtype, seen["1 mask"].dtype) == (np.float32, np.float16)


def test_what_is_not_implemented_in_a_story_is_a_refusal_too():
    def add(n):
        raise NotImplementedError("later")

    assert follow(SimpleNamespace(add=add), [("add", {"n": 1})], {"add": ("up",)}) == {
        "1 refused": 1, "1 why": "NotImplementedError: later",
    }  # fmt: skip


def test_a_story_prints_one_numbered_line_a_step():
    call = Call("Counter", {"size": 3, "steps": (("add", {"n": 2}), ("append", {"key": np.ones((1, 2))}))})
    assert str(call) == "Counter(size=3)\n    1. add(n=2)\n    2. append(key=float64[1, 2])"


@pytest.mark.parametrize(
    ("arguments", "program"),
    [
        ({"x": (1, 2.5), "mode": "a"}, "it(x=[1, 2.5], mode='a')"),
        ({"x": np.zeros((0, 3), np.float32)}, "it(x=zeros((0, 3), dtype=float32))"),
        ({"mask": np.array([[True, False]])}, "it(mask=array([[True, False]]))"),
        ({"mask": np.zeros((0, 2), bool)}, "it(mask=zeros((0, 2)) > 0)"),
        ({"model": {"vocab_size": 7}, "tokens": (1, 2)}, None),
        ({"pieces": (b"a",), "tokens": (0,)}, None),
    ],
)
def test_only_what_a_line_can_say_is_printed_as_a_program(arguments, program):
    assert Call("it", arguments).program(Signature("it", {})) == program


@pytest.mark.parametrize(
    ("signature", "program"),
    [
        ("turn(x, by=1)", "turn(x=2, by=3)"),
        ("Turn(by=1)(x)", "Turn(by=3)(x=2)"),
        ("Turn(by=1).back(x)", "Turn(by=3).back(x=2)"),
        ("Turn.back(x, by=1)", "Turn.back(x=2, by=3)"),
    ],
)
def test_a_program_makes_an_object_and_then_calls_it(signature, program):
    spelt = Signature.parse(signature)
    assert Call(spelt.operation, {"x": 2, "by": 3}).program(spelt) == program


@pytest.mark.parametrize("x", [np.zeros((0, 3), np.float16), np.array([[1.5, -np.inf], [np.nan, 0]], np.float16)])
def test_a_program_runs_by_the_names_of_numpy(x):
    line = Call("asarray", {"a": x}).program(Signature.parse("asarray(a)"))
    assert line is not None
    result = eval(line, vars(np))
    assert (result.shape, result.dtype) == (x.shape, x.dtype)
    assert np.array_equal(result, x, equal_nan=True)


def test_a_class_must_have_the_methods_that_its_driver_uses():
    with pytest.raises(AdapterError, match="Counter: object has no add"):
        bind(Counter, object, NUMPY, plain=False)


def test_a_class_without_an_optional_method_is_asked_for_less():
    class Adds:
        def add(self, n): ...

    assert bind(Counter, Adds, NUMPY, plain=False).narrowed == {"clears": (False,)}


# what a failure says


@pytest.fixture
def trial():
    requirement = linear.CONTRACT.requirements[0]
    it = Trial(LocalSubject({op.signature.operation: op for op in linear.CONTRACT.operations}), requirement)
    it._operation = lambda call: Counter()
    return it


STEPS = {"steps": (("add", {"n": 2}),)}


@pytest.mark.parametrize(
    ("got", "message"),
    [
        ({}, "step 1, add(n=2): up is missing; it came with nothing (step 1: ValueError: no)"),
        ({"1 up": np.ones(2)}, "step 1, add(n=2): up: the result has shape [2], not [1]"),
        ({"1 up": np.ones(1), "1 refused": np.ones(())}, "step 1, add(n=2): refused should not be there (step 1:"),
        ({"1 up": np.full(1, 3.0)}, "step 1, add(n=2): up: out[0] = 3, exact 1"),
    ],
)
def test_a_wrong_part_is_named_with_its_step(trial, got, message):
    seen = Observation(message="step 1: ValueError: no", parts=got)
    with pytest.raises(Nonconformance) as failure:
        trial._compare_all(Call("it", STEPS), seen, {"1 up": Answer(np.ones(1), np.zeros(1))}, None, "exact")
    assert str(failure.value).startswith(message)


REFUSED = Observation(message="step 1: NotImplementedError: no", parts={"1 refused": np.ones(())}, unwritten=("1",))


def test_a_step_that_is_not_implemented_is_refused_where_that_is_right(trial):
    trial._compare_all(Call("it", STEPS), REFUSED, {"1 refused": Answer(np.ones(()), np.zeros(()))}, None, "exact")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("no", "step 1, add(n=2): is offered and not there (step 1: NotImplementedError: no)"),
        ("'mul' not implemented for 'Half'", "step 1, add(n=2): refuses what its envelope includes (step 1: "),
    ],
)
def test_a_step_that_is_not_implemented_and_should_be_is_overclaimed(trial, words, message):
    seen = replace(REFUSED, message=f"step 1: NotImplementedError: {words}")
    with pytest.raises(Nonconformance) as failure:
        trial._compare_all(Call("it", STEPS), seen, {"1 up": Answer(np.ones(1), np.zeros(1))}, None, "exact")
    assert failure.value.state == "overclaimed"
    assert str(failure.value).startswith(message)


@pytest.mark.parametrize(("refusal", "state"), [(True, "overclaimed"), (False, "failed")])
def test_an_objection_to_a_refusal_that_is_not_implemented_is_an_overclaim(trial, refusal, state):
    found = trial.objection(Call("it", STEPS), REFUSED, 1, "what is wrong", refusal)
    assert (found.state, "step 1, add(n=2)" in str(found)) == (state, True)


def test_to_a_course_a_step_that_is_not_implemented_is_not_written_yet(trial, monkeypatch):
    monkeypatch.setattr(trial.subject, "call", lambda *_: REFUSED)
    trial.subject.description.layout = "course"
    with pytest.raises(Nonconformance, match=r"step 1, .* not there .*NotImplementedError"):
        trial.observe(Call("it", STEPS))


def test_the_steps_that_are_not_implemented_are_noted():
    def told(subject, given, to):
        return {"1 refused": 1, "1 why": "ValueError: no", "2.1 refused": 1, "2.1 why": "NotImplementedError: later"}

    seen = observed(Counter, lambda steps: None, driver=told, steps=())
    assert (seen.unwritten, seen.message) == (("2.1",), "step 1: ValueError: no; step 2.1: NotImplementedError: later")


def test_a_step_that_should_not_have_been_refused_is_told_before_what_is_wrong_for_that(trial):
    seen = Observation(message="step 1: TypeError: no", parts={"1 refused": np.ones(()), "2 up": np.zeros(1)})
    call = Call("it", {"steps": (("clear", {}), ("add", {"n": 2}))})
    with pytest.raises(
        Nonconformance, match=r"step 1, clear\(\): refused should not be there \(step 1: TypeError: no\)"
    ):
        trial._compare_all(call, seen, {"2 up": Answer(np.ones(1), np.zeros(1))}, None)


def test_what_was_refused_before_a_step_that_is_not_refused_is_told(trial, monkeypatch):
    seen = Observation(message="step 1: TypeError: no", parts={"1 refused": np.ones(())})
    monkeypatch.setattr(trial, "observe", lambda call, watch, results: seen)
    call = Call("it", {"steps": (("clear", {}), ("add", {"n": -1}))})
    with pytest.raises(Nonconformance, match=r"step 2, add\(n=-1\), is not refused \(step 1: TypeError: no\)"):
        refuses_step(trial, (call, 2))


def test_a_long_prompt_is_told_by_its_ends():
    call = Call("Counter", {"steps": (("add", {"tokens": tuple(range(2050))}),)})
    assert str(call).endswith(
        "add(tokens=[0, 1, 2, 3, 4, 5, 6, 7, … 2042, 2043, 2044, 2045, 2046, 2047, 2048, 2049] (2050 in all))"
    )


class Made:
    """An id that a step made, as it is given out."""

    def __init__(self, request, token):
        self.request, self.token = request, token

    def __iter__(self):
        return iter((self.request, self.token))


class Giving(contract("engine").operation("Engine")):
    def step(self, m):
        return [Made(*pair) for pair in super().step(m)]


def test_what_a_step_gives_may_be_pairs_of_any_kind():
    test = next(one for one in all_tests() if one.name == "test_what_was_given_keeps_its_values")
    trial = Trial(LocalSubject({"Engine": Giving}), test.requirement)
    test.run(trial, Profile(thinned=0.2))
    assert trial.outcome.state == "passed", trial.outcome.message


def test_an_id_that_two_failed_steps_tell_of_has_the_time_of_the_first():
    engine = contract("engine")
    row_by_row = engine.variant(next(one for one in engine.variants if one.name == "engine-row-by-row"))
    drawn = failing(seen=("outputs", "metrics"), metrics=["told"], drafts=["none"]).within(engine.envelope)(bytes(64))
    asked = drawn.arguments["steps"][0]
    # The first of two rows is settled before the second fails; then the first fails too.
    steps = (asked, asked, ("step", {}), ("fail", {"after": 1}), ("fail", {"after": 0}))
    told = Trial(LocalSubject({"Engine": row_by_row}), ENG_25).agrees(drawn.having(steps=steps))
    assert len(told["1 itl"]) > 2


FELL = "step 1: ValueError: no; step 2: KeyError: 'x'"


def test_what_is_wrong_is_told_with_the_steps_that_were_not_to_raise(trial):
    seen = Observation(message=FELL, parts={"1 refused": np.ones(()), "2 up": np.zeros(2)})
    answers = {"1 refused": Answer(np.ones(()), np.zeros(())), "2 up": Answer(np.ones(1), np.zeros(1))}
    call = Call("it", {"steps": (("clear", {}), ("add", {"n": 2}))})
    with pytest.raises(Nonconformance, match=r"the result has shape \[2\], not \[1\] \(step 2: KeyError: 'x'\)$"):
        trial._compare_all(call, seen, answers, None)
