"""How objects are driven, whatever else than the contract's own their methods take and give."""

from __future__ import annotations

import textwrap
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from inferspec.conformance.bridge.adapter import load
from inferspec.conformance.bridge.arrays import arrays
from inferspec.conformance.bridge.drivers import block_manager, handed, taken
from inferspec.conformance.bridge.drivers.batching import HandedCache
from inferspec.conformance.bridge.drivers.engine import Counted, Running
from inferspec.conformance.bridge.drivers.scheduler import STEP, Scheduling
from inferspec.conformance.bridge.executor import Executor
from inferspec.conformance.session import Session
from inferspec.conformance.suite import all_tests
from inferspec.impl.block_manager import BlockManager
from inferspec.spec.contract import Unreadable
from inferspec.tools.adapter_files import called, module, narrowed, opened, refused

PAGES = """
ARRAYS = "numpy"
class PagePool:
    def __init__(self, num_pages, page_size, num_kv_heads, head_dim, dtype): ...
    num_free = 0
    key_pages = value_pages = None
    def allocate(self): ...
    def free(self, page): ...
"""
CACHES = """
ARRAYS = "numpy"
class PagedKVCache:
    def __init__(self, pool): ...
    page_ids = page_lens = offset = None
    def append(self, key, value): ...
    def gather(self): ...
    def rewind(self, n): ...
    def release(self): ...
"""


def test_a_cache_that_a_request_brings_is_empty_again_once_all_of_it_is_rewound():
    cache, tokens = HandedCache(arrays("numpy"), empty=(None, None)), np.ones((1, 1, 2, 3))
    cache.update_and_fetch(tokens, tokens)
    cache.rewind(1)
    assert [x.shape[2] for x in cache.state] == [1, 1]
    cache.rewind(1)
    assert cache.state == (None, None)


def test_an_object_is_driven_with_what_it_is_made_of(folder):
    module(folder, PAGES + CACHES)
    adapter = load("mine")
    assert adapter.targets["PagedKVCache"].beside["PagePool"] == adapter.targets["PagePool"].build


def test_an_object_without_what_it_is_made_of_is_told(folder):
    module(folder, CACHES)
    adapter = load("mine")
    assert "PagedKVCache" not in adapter.targets
    assert adapter.broken["PagedKVCache"] == "it takes PagePool beside it"


ATTENTION = """
def paged_attention(q, key_pages, value_pages, block_table, context_lens, page_size, scale=None):
    return q * page_size
"""


def test_an_object_whose_tokens_a_function_reads_is_driven_with_the_function_by_the_contracts_names(folder):
    module(folder, PAGES + CACHES + ATTENTION)
    target = load("mine").targets["PagedKVCache.attention"]
    x = np.ones(2, np.float32)
    given = dict.fromkeys(("key_pages", "value_pages", "block_table", "context_lens"), x)
    assert target.beside["paged_attention"](query=x, page_size=3, mask="causal", **given).tolist() == [3, 3]
    assert set(target.beside) == {"PagePool", "paged_attention"}


def test_a_function_of_another_library_is_given_its_own_arrays(folder):
    module(folder, "ARRAYS = 'torch'" + ATTENTION)
    target = load("mine").targets["paged_attention"]
    x = np.ones(2, ml_dtypes.bfloat16)
    given = dict.fromkeys(("key_pages", "value_pages", "block_table", "context_lens"), x)
    answer = target.beside_a(arrays("numpy"))(query=x, page_size=3, **given)
    assert isinstance(answer, np.ndarray)
    assert (answer.dtype, answer.tolist()) == (x.dtype, [3, 3])


def test_what_a_function_of_another_component_does_not_take_its_users_are_not_asked_for(folder):
    sizes = 'ENVELOPE = {"paged_attention": {"head_dims": [64, 128], "masks": ["causal"], "context": 99}}'
    module(folder, PAGES + CACHES + ATTENTION + sizes)
    adapter = load("mine")
    assert narrowed(adapter, "PagedKVCache.attention") == {"head_dims": (64, 128)}
    assert not narrowed(adapter, "PagedKVCache")


def test_caches_without_paged_attention_are_caches_alone(folder):
    module(folder, PAGES + CACHES)
    adapter = load("mine")
    assert "PagedKVCache" in adapter.targets
    assert "PagedKVCache.attention" not in {*adapter.targets, *adapter.broken}


DECODER = """
class {name}:
    def __init__(self, config, weights): ...
    def __call__(self, tokens, cache=None): ...
    def make_cache(self): ...
"""
ENGINE = """
ARRAYS = "numpy"
class Engine:
    def __init__(
        self, model, *, num_pages, page_size, max_requests, max_prefill_tokens, prefix_caching=True, draft=None, clock=None
    ): ...
    num_free_pages = has_unfinished = 0
    def add_request(self, tokens, max_tokens, priority=0, eos=()): ...
    def step(self): ...
    run = cancel = output = finished = metrics = step
"""


@pytest.mark.parametrize(("name", "models"), [("Qwen3", "qwen3"), ("Llama", "llama")])
def test_an_object_is_driven_with_any_of_what_it_can_be_made_of(folder, name, models):
    module(folder, ENGINE + DECODER.format(name=name))
    adapter = load("mine")
    assert adapter.targets["Engine"].beside == {name: adapter.targets[name].build}
    assert narrowed(adapter, "Engine") == {"logits": ("untold",), "models": (models,)}


@pytest.mark.parametrize(
    ("option", "left"),
    [("draft=None, ", {"drafts": ("none",)}), (", clock=None", {"metrics": ("untold",)}), ("prefix_caching=True, ", {"prefix_caching": (True,)})],
)  # fmt: skip
def test_an_option_that_an_object_does_not_take_narrows_the_envelope(folder, option, left):
    module(folder, (ENGINE + DECODER.format(name="Llama")).replace(option, ""))
    assert narrowed(load("mine"), "Engine") == {"logits": ("untold",), "models": ("llama",), **left}


def test_an_engine_whose_requests_cannot_leave_is_asked_for_the_rest(folder):
    module(folder, (ENGINE + DECODER.format(name="Llama")).replace("run = cancel = ", "run = "))
    left = {"logits": ("untold",), "models": ("llama",), "cancelling": (False,)}
    assert narrowed(load("mine"), "Engine") == left


@pytest.mark.parametrize(
    ("parameter", "left"), [(", priority=0", {"priorities": (False,)}), (", eos=()", {"stops": (False,)})]
)
def test_a_parameter_that_a_method_does_not_take_narrows_the_envelope(folder, parameter, left):
    module(folder, (ENGINE + DECODER.format(name="Llama")).replace(parameter, ""))
    assert narrowed(load("mine"), "Engine") == {"logits": ("untold",), "models": ("llama",), **left}


def test_an_object_that_has_one_of_two_ways_needs_no_option_to_say_so(folder):
    manager = """
        class BlockManager:
            def __init__(self, num_blocks, block_size): self.num_free = num_blocks
            def allocate(self, tokens): ...
            def append(self, table, tokens): ...
            mark_computed, free = append, allocate
        """
    story = {"num_blocks": 3, "block_size": 2, "prefix_caching": False, "colliding": False, "steps": ()}
    module(folder, textwrap.dedent(manager) + 'ENVELOPE = {"block_manager": {"prefix_caching": [False]}}\n')
    assert narrowed(load("mine"), "BlockManager") == {}
    assert called(load("mine"), "BlockManager", **story) is None


def test_an_object_without_any_of_what_it_can_be_made_of_is_told(folder):
    module(folder, ENGINE)
    adapter = load("mine")
    assert "Engine" not in adapter.targets
    assert adapter.broken["Engine"] == "it takes Qwen3 or Llama beside it"


NONE_WHERE_FULL = """
from inferspec.impl import block_manager

class BlockManager(block_manager.BlockManager):
    def allocate(self, tokens):
        try: return super().allocate(tokens)
        except ValueError: {changes}; return None
    def append(self, table, tokens):
        try: super().append(table, tokens)
        except ValueError as error:
            if "free" not in str(error): raise
            return False
"""


@pytest.mark.parametrize(("changes", "state"), [("pass", "passed"), ("super().allocate([1])", "failed")])
def test_a_block_manager_may_give_none_where_there_is_no_room_and_change_nothing(folder, changes, state):
    module(folder, NONE_WHERE_FULL.format(changes=changes))
    wanted = {"BLK-19": "passed", "BLK-21": "passed", "BLK-22": state}
    session = Session.opened("mine", profile="quick")
    try:
        tests = [test for test in all_tests() if test.requirement.id in wanted]
        found = {test.requirement.id: session.run(test).state for test in tests}
        assert found == wanted
    finally:
        session.close()


def test_a_block_manager_whose_methods_give_none_is_no_manager(folder):
    manager = "class BlockManager:\n    num_free = 99\n    def __init__(self, num_blocks, block_size): ...\n"
    methods = "".join(
        f"    def {name}(self, *given): ...\n" for name in ("allocate", "append", "mark_computed", "free")
    )
    module(folder, "ARRAYS = 'numpy'\n" + manager + methods)
    assert "BlockManager lacks what the contract reads ('NoneType' object has no attribute" in refused(
        "./mine.py", opened
    )


def test_the_sequence_of_block_ids_may_have_no_more_than_items(folder):
    module(
        folder,
        """
        from inferspec.impl import block_manager

        class Table:
            def __init__(self, own): self.own = own
            def __getitem__(self, i): return self.own.block_ids[i]
            @property
            def num_cached_tokens(self): return self.own.num_cached_tokens

        class BlockManager(block_manager.BlockManager):
            def allocate(self, tokens): return Table(super().allocate(tokens))
            def append(self, table, tokens): super().append(table.own, tokens)
            def mark_computed(self, table, n): super().mark_computed(table.own, n)
            def free(self, table): super().free(table.own)
        """,
    )
    session = Session.opened("mine", profile="quick")
    try:
        first = next(test for test in all_tests() if test.requirement.id == "BLK-01")
        assert session.run(first).state == "passed"
    finally:
        session.close()


SORTED = """
import numpy as np

class Sampler:
    def __init__(self, temperature=0, top_k=None, top_p=1.0): self._given = temperature, top_k, top_p
    def __call__(self, logits, uniform):
        temperature, top_k, top_p = self._given
        order = np.argsort(-logits.astype(np.float64), axis=-1, kind="stable")
        if not temperature:
            return order[..., 0].astype(np.int32)
        x = np.take_along_axis(logits.astype(np.float64), order, -1) / temperature
        weights = np.exp(x - x[..., :1])
        weights[..., logits.shape[-1] if top_k in (None, 0, -1) else top_k :] = 0
        before = np.cumsum(weights, -1) - weights
        weights[(before >= top_p * weights.sum(-1, keepdims=True)) & (top_p < 1)] = 0
        cdf = np.cumsum(weights{along}, -1)
        place = (cdf <= uniform[..., None].astype(np.float64) * cdf[..., -1:]).sum(-1, keepdims=True)
        return np.take_along_axis(order{along}, place, -1)[..., 0].astype(np.int32)
"""
BY_ORDER = "ENVELOPE = {'sampling': {'draws_by': ['order']}}"


@pytest.mark.parametrize(
    ("along", "declared", "state"),
    [("", BY_ORDER, "passed"), ("", "", "passed"), ("[..., ::-1]", BY_ORDER, "failed"), ("[..., ::-1]", "", "passed")],
)
def test_a_sampler_that_has_sorted_the_ids_may_draw_from_them_as_they_stand(folder, along, declared, state):
    module(folder, SORTED.format(along=along) + declared)
    session = Session.opened("mine", profile="quick")
    try:
        wanted = {"SAMP-22": state, "SAMP-24": state, "SAMP-21": "passed"}
        first = {
            test.requirement.id: test
            for test in reversed(all_tests())
            if test.requirement.id in wanted and test.file == "test_sampling.py"
        }
        outcomes = {id: session.run(test) for id, test in first.items()}
        assert {id: outcome.state for id, outcome in outcomes.items()} == wanted
    finally:
        session.close()


OWN_CACHES = """
from inferspec.impl import batching, kv_cache
ARRAYS = "mlx"

class Cache(kv_cache.KVCache): ...
class BatchingKVCache:
    def __init__(self, max_requests, max_len): self._own = batching.BatchingKVCache(max_requests, max_len)
    def add(self, cache, slot): self._own.add(cache{reads}, slot)
    def remove(self, slot): self._own.remove(slot)
    def update_and_fetch(self, key, value, mask_length): return self._own.update_and_fetch(key, value, mask_length)
"""
READS = " if isinstance(cache, Cache) else cache.pages"
UNPACKS = " if isinstance(cache, Cache) else dict(cache.state)"
PAIR = " if [keys for keys, values in [cache.state] if keys is not None] else kv_cache.KVCache()"


@pytest.mark.parametrize(
    ("reads", "beside", "state"),
    [
        (READS, "KVCache = Cache", "passed"),
        (READS, "", "failed"),
        # Whatever error reading another kind of state ends in.
        (UNPACKS, "KVCache = Cache", "passed"),
        (PAIR, "", "passed"),
        # What others do with caches of any kind does not depend on their own.
        ("", "class KVCache(Cache):\n    def update_and_fetch(self, key, value): raise MemoryError", "passed"),
    ],
)
def test_a_batch_that_takes_nothing_but_the_subject_s_own_caches_is_given_those(folder, reads, beside, state):
    module(folder, OWN_CACHES.format(reads=reads) + beside)
    session = Session.opened("mine", profile="quick")
    try:
        wanted = {"BATCH-01", "BATCH-09", "BATCH-32"}
        first = {test.requirement.id: session.run(test) for test in all_tests() if test.requirement.id in wanted}
        assert {id: outcome.state for id, outcome in first.items()} == dict.fromkeys(wanted, state)
        assert state == "passed" or "make_cache" in first["BATCH-32"].message
    finally:
        session.close()


def test_a_table_may_be_the_sequence_of_its_blocks(folder):
    module(
        folder,
        """
        from collections.abc import Sequence
        from inferspec.impl import block_manager

        class Table(Sequence):
            def __init__(self, own): self._own = own
            def __getitem__(self, place): return self._own.block_ids[place]
            def __len__(self): return len(self._own.block_ids)
            @property
            def num_cached_tokens(self): return self._own.num_cached_tokens
        class BlockManager(block_manager.BlockManager):
            def allocate(self, tokens): return Table(super().allocate(tokens))
            def append(self, table, tokens): super().append(table._own, tokens)
            def mark_computed(self, table, n): super().mark_computed(table._own, n)
            def free(self, table): super().free(table._own)
        """,
    )
    session = Session.opened("mine", profile="quick")
    try:
        wanted = {"BLK-01", "BLK-02", "BLK-09"}
        first = {test.requirement.id: test for test in all_tests() if test.requirement.id in wanted}
        assert {id: session.run(test).state for id, test in first.items()} == dict.fromkeys(wanted, "passed")
    finally:
        session.close()


def test_streams_of_a_detokenizer_are_all_made_by_what_is_offered(folder):
    module(
        folder,
        """
        from inferspec.impl import generation

        class Stream(generation.StreamingDetokenizer):
            def __init__(self, pieces, errors): super().__init__(pieces)

        def StreamingDetokenizer(pieces):
            return Stream(pieces, "replace")
        """,
    )
    session = Session.opened("mine")
    try:
        turns = next(test for test in all_tests() if test.requirement.id == "TEXT-07")
        assert session.run(turns).state == "passed"
    finally:
        session.close()


def test_a_detokenizer_that_takes_every_id_refuses_none_that_could_change_something(folder):
    module(
        folder,
        """
        from inferspec.impl import generation

        class StreamingDetokenizer(generation.StreamingDetokenizer):
            def __init__(self, pieces): super().__init__((*pieces, b"!"))
        """,
    )
    session = Session.opened("mine")
    try:
        asked = {test.name: test for test in all_tests() if test.requirement.id in {"TEXT-08", "TEXT-09"}}
        assert session.run(asked["test_an_id_past_the_table_is_refused"]).state == "failed"
        assert session.run(asked["test_a_refused_id_changes_nothing"]).state == "passed"
    finally:
        session.close()


def test_a_name_of_the_contract_that_means_something_else_moves_no_argument():
    def rewind(count, n=None):
        return count, n

    def add_request(prompt, max_tokens, tokens=None):
        return prompt, max_tokens, tokens

    assert handed(rewind, n=3) == (3, None)
    assert handed(add_request, tokens=[1, 2], max_tokens=4) == ([1, 2], 4, None)


def test_other_names_of_the_field_tell_the_order_too():
    def in_the_order_of_vllm(manager, max_num_batched_tokens, max_num_seqs):
        return manager, max_num_seqs, max_num_batched_tokens

    def by_name_alone(manager, *, max_num_seqs, max_num_batched_tokens):
        return manager, max_num_seqs, max_num_batched_tokens

    for scheduler in (in_the_order_of_vllm, by_name_alone):
        assert handed(scheduler, block_manager=7, max_requests=2, max_prefill_tokens=9) == (7, 2, 9)


def test_a_method_is_not_taken_for_its_function_nor_a_class_for_its_objects():
    class Engine:
        def __init__(self, model): ...
        def __call__(self, tokens): ...
        def step(self, limit): ...

    engine, given = Engine(None), {"self": 0, "limit": 1, "model": 2, "tokens": 3}
    for _ in range(2):
        assert set(taken(Engine.step, **given)) == {"self", "limit"}
        assert set(taken(engine.step, **given)) == {"limit"}
        assert set(taken(Engine, **given)) == {"model"}
        assert set(taken(engine, **given)) == {"tokens"}


DRAFTING = """
ARRAYS = "numpy"
def speculative_generate(target, draft, tokens, *, max_tokens, num_draft_tokens=7, eos=()):
    return iter([num_draft_tokens])
"""


def test_a_number_of_drafts_that_a_call_leaves_out_is_not_said(folder):
    module(folder, DRAFTING)
    toy = {"vocab_size": 9, "salt": 1, "rival": None, "dtype": "float32"}
    asked = {"target": toy, "draft": toy, "tokens": (1,), "max_tokens": 1}
    for said, drafted in (({}, 7), ({"num_draft_tokens": 2}, 2)):
        seen = Executor(load("mine").targets).call("speculative_generate", asked | said, {}, None, (), False)
        assert seen.parts["ids"].tolist() == [drafted]


def test_an_option_is_given_by_the_name_that_it_is_taken_by():
    def engine(model, num_blocks, max_num_seqs, **more): ...

    def scheduler(num_blocks, max_num_seqs): ...

    given = {"num_pages": 3, "max_requests": 2, "page_size": 1}
    assert taken(engine, **given) == {"num_blocks": 3, "max_num_seqs": 2, "page_size": 1}
    assert taken(scheduler, **given) == {"num_blocks": 3, "max_num_seqs": 2}


def test_what_an_engine_does_not_tell_of_its_requests_is_counted(folder):
    module(
        folder,
        (ENGINE + DECODER.format(name="Llama")).replace("output = finished = ", "").replace(" = has_unfinished", ""),
    )
    adapter = load("mine")
    assert narrowed(adapter, "Engine") == {"logits": ("untold",), "models": ("llama",), "outputs": ("untold",)}


class Untold:
    """Gives an id of each request in a step, and all that are left in a run."""

    def __init__(self):
        self.limits, self.given = [], 0

    def add_request(self, tokens, max_tokens):
        self.limits.append(max_tokens)
        return len(self.limits) - 1

    def step(self):
        self.given += 1
        return [(name, 7) for name, limit in enumerate(self.limits) if self.given <= limit]

    def run(self):
        return {name: [7] * limit for name, limit in enumerate(self.limits)}


def test_outputs_are_what_steps_and_runs_gave():
    engine = Counted(Untold())
    first, second = engine.add_request([1], 1), engine.add_request([1], 3)
    assert engine.step() == [(first, 7), (second, 7)]
    assert (engine.output(second), engine.finished(first), engine.finished(second)) == ([7], True, False)
    assert engine.has_unfinished
    engine.run()
    assert engine.output(second) == [7, 7, 7]
    assert not engine.has_unfinished


def test_a_step_has_to_tell_of_the_ids_that_add_request_gave():
    class Handling(Untold):
        def add_request(self, tokens, max_tokens):
            return f"handle {super().add_request(tokens, max_tokens)}"

    engine = Counted(Handling())
    engine.add_request([1], 1)
    with pytest.raises(Unreadable, match=r"step tells of a request 0, and add_request gave the ids \['handle 0'\]"):
        engine.step()


def test_what_an_engine_tells_of_its_requests_is_not_counted():
    class Telling(Untold):
        def output(self, name):
            return [8]

        def finished(self, name):
            return name == 1

    engine = Counted(Telling())
    first, second = engine.add_request([1], 1), engine.add_request([1], 1)
    engine.step()
    assert (engine.output(first), engine.finished(first), engine.finished(second)) == ([8], False, True)
    assert engine.has_unfinished


def _run_as(outputs, kind=Untold):
    engine = Counted(type("RunsSo", (kind,), {"run": lambda self: outputs})())
    for limit in (1, 2):
        engine.add_request([1], limit)
    return engine.run()


@pytest.mark.parametrize(
    "outputs",
    [
        {0: [7], 1: [7, 8]},
        [[7], [7, 8]],
        [(1, [7, 8]), (0, [7])],
        iter([(0, 7), (1, 7), (1, 8)]),
        iter([[(0, 7), (1, 7)], [(1, 8)]]),
        iter([(1, [7, 8]), (0, [7])]),
    ],
    ids=["by id", "in order", "as pairs", "token by token", "step by step", "output by output"],
)
def test_a_run_gives_its_outputs_in_any_form(outputs):
    assert _run_as(outputs) == {0: [7], 1: [7, 8]}


def test_of_a_run_that_gives_nothing_the_engine_tells_the_outputs():
    class Telling(Untold):
        def output(self, name):
            return [7 + name]

    assert _run_as(None, Telling) == {0: [7], 1: [8]}


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        ([(0, 8), (0, 9)], [7, 8, 9]),
        ([(0, 7), (0, 8), (0, 9)], [7, 8, 9]),
        ([(0, [7, 8, 9])], [7, 8, 9]),
        ([(0, 8)], [7, 8]),
        ([(0, 8), (0, 8), (0, 9)], [7, 8, 8, 9]),
        ([(0, 8), (0, 10)], [7, 8, 10]),
        ([], [7]),
    ],
    ids=["the rest", "what a failed step chose too", "whole", "too few", "one twice", "another", "nothing"],
)
def test_what_a_run_gives_as_it_comes_is_the_rest_of_what_the_engine_tells(given, ids):
    class Streaming:
        told = (7,)

        def add_request(self, tokens, max_tokens):
            return 0

        def run(self):
            yield from given
            self.told = (7, 8, 9)

        def output(self, name):
            return self.told

    engine = Running(Streaming())
    engine.add_request([1], 3)
    assert engine.run() == {0: ids}


def test_a_run_has_to_tell_of_the_ids_that_add_request_gave():
    with pytest.raises(Unreadable, match=r"run tells of a request 5, and add_request gave the ids \[0, 1\]"):
        _run_as(iter([(5, 7)]))


def test_who_was_finished_and_then_cancelled_has_an_output_in_a_run():
    class Cancelling(Untold):
        def cancel(self, name): ...

    engine = Counted(Cancelling())
    done, left = (engine.add_request([1], limit) for limit in (1, 2))
    engine.step()
    engine.cancel(done)
    engine.cancel(left)
    assert engine.live == [done]


def test_what_is_no_output_of_a_run_is_named():
    with pytest.raises(Unreadable, match=r"run gives a list of 1, which is no \{id: output\} of 2 requests"):
        _run_as([[7, 8]])


def _by_name(parts):
    return dict(zip(STEP, parts, strict=True))


@pytest.mark.parametrize(
    "kind",
    [tuple, _by_name, lambda parts: SimpleNamespace(**_by_name(parts))],
    ids=["tuple", "dict", "object of dicts"],
)
def test_a_step_and_its_chunks_may_be_plain(kind):
    class Plain:
        def schedule(self):
            return kind(([{"request": 1, "start": 0}], [], []))

        def update(self, step, tokens):
            return step

    scheduler = Scheduling(Plain(), {"schedule": (), "update": ("step", "tokens")})
    step = scheduler.schedule()
    assert (step.prefills[0].start, step.decodes, step.preempted) == (0, [], [])
    assert scheduler.update(step, [7]) == Plain().schedule()
    assert scheduler.schedule() is not step


def test_a_dict_that_is_filled_anew_is_one_step():
    class Filling:
        step = _by_name(([], [], []))

        def schedule(self):
            self.step.update(prefills=[*self.step["prefills"], {"start": 0}])
            return self.step

    scheduler = Scheduling(Filling(), {"schedule": ()})
    first = scheduler.schedule()
    assert (len(first.prefills), scheduler.schedule() is first, len(first.prefills)) == (1, True, 2)


def test_tables_that_come_and_go_are_told_before_a_mark_gives_them_copies():
    class Joining(BlockManager):
        def mark_computed(self, table, n):
            super().mark_computed(table, n)
            table._blocks[0] = self._hits(table._tokens)[0]

    given = {"num_blocks": 4, "block_size": 1, "prefix_caching": True, "colliding": False}
    told = block_manager.drive(
        Joining, {**given, "steps": [("pass_by", {"groups": [[(42, 31), (42, 8)]]})]}, arrays("numpy")
    )
    assert [told[f"1 table {k}"] for k in (-1, -2)] == [[0, 2, 0, 1], [0, 2, 2, 3]]


def test_an_engine_may_have_no_output_to_tell_before_the_first_id():
    class Telling(Untold):
        ran = False

        def output(self, name):
            if not self.ran:
                raise KeyError(name)
            return [7]

        def run(self):
            self.ran = True
            return {0: [7]}

    engine = Counted(Telling())
    engine.add_request([1], 1)
    assert engine.run() == {0: [7]}
