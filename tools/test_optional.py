"""Is what may be refused asked of those alone who take it, and of all of them?"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inferspec.conformance.judging.optional import leave_out_refused, optional_choices
from inferspec.conformance.judging.trial import Trial
from inferspec.conformance.session import Session
from inferspec.conformance.subject import LocalSubject, SubjectDied
from inferspec.conformance.suite import Profile, all_tests
from inferspec.conformance.trust.canary import plain_call
from inferspec.spec import contract, contracts
from inferspec.spec.block_manager import BlockManager
from inferspec.tools.right_rope import RIGHT


class Int32(BlockManager):
    """Keeps tokens as NumPy's int32, which refuses what has more bits."""

    def taken(self, tokens: list[int]) -> list[int]:
        return [int(np.int32(token)) for token in tokens]


KIT = contract("block_manager")
Cut = KIT.faulty(next(fault for fault in KIT.faults if fault.name == "block-manager-thirty-two-bits"))


README = Path(__file__).parents[1] / "conformance" / "README.md"


def _tables(quantization: dict[str, Any]) -> list[dict[str, Any]]:
    """What a config says of the packing: of all layers, and of some."""
    return [quantization, *(one for one in quantization.values() if isinstance(one, dict))]


def _packing(bits: set[int]) -> str:
    return "mixed" if len(bits) > 1 else f"{bits.pop()}-bit"


def opened(operation: type[BlockManager], envelope: dict[str, list[int]] | None = None) -> LocalSubject:
    subject = LocalSubject({"BlockManager": operation}, envelope={"block_manager": envelope} if envelope else None)
    leave_out_refused(subject, subject.description)
    return subject


def states(subject: LocalSubject, ids: str = "") -> set[str]:
    """What the tests of a requirement found, or those of all."""
    found = set()
    for test in (test for test in all_tests() if test.requirement in KIT.requirements):
        if ids in ("", test.requirement.id):
            trial = Trial(subject, test.requirement)
            test.run(trial, Profile("quick", shrink=False, diagnose=False, thinned=0.5))
            found.add(trial.outcome.state)
    return found


def test_who_refuses_ids_of_63_bits_is_not_asked_for_them():
    subject = opened(Int32)
    assert subject.description.envelope == {"block_manager": {"id_bits": [31]}}
    assert states(subject) == {"passed"}


@pytest.mark.parametrize("size", KIT.envelope["block_sizes"])
def test_who_takes_ids_of_63_bits_is_asked_for_them_whatever_the_size_of_its_blocks(size):
    assert opened(BlockManager, {"block_sizes": [size]}).description.envelope == {
        "block_manager": {"block_sizes": [size]}
    }


def test_who_dies_of_what_may_be_refused_is_asked_for_it():
    class Dies(LocalSubject):
        def call(self, call, results=(), watch=False):
            raise SubjectDied("crashed", "the process is gone")

    subject = Dies({"BlockManager": BlockManager})
    leave_out_refused(subject, subject.description)
    assert subject.description.envelope == {}


@pytest.mark.parametrize(
    ("narrowed", "left"), [((), ("absent",)), (("free", "absent"), ("absent",)), (("multiple",), ("multiple",))]
)
def test_an_engine_is_asked_for_what_its_model_takes_of_what_it_takes_itself(narrowed, left):
    subject = LocalSubject({"Llama": PlainLlama, "Engine": contract("engine").operation("Engine")})
    if narrowed:
        subject.description.shown["Engine"] = {"head_dims": narrowed}
    leave_out_refused(subject, subject.description)
    assert subject.description.narrowed("Engine") == {"head_dims": left}


def test_what_an_envelope_has_no_call_for_is_not_refused():
    subject = LocalSubject({"load": contract("loading").operation("load")}, envelope={"loading": {"forms": ["gguf"]}})
    leave_out_refused(subject, subject.description)
    assert subject.description.envelope == {"loading": {"forms": ["gguf"]}}


@pytest.mark.parametrize(
    ("component", "name"), [("generation", "generate"), ("speculative", "speculative_generate"), ("engine", "Engine")]
)
def test_who_refuses_a_limit_of_0_is_not_asked_for_it(component, name):
    class AboveZero(contract(component).operation(name)):  # type: ignore[misc]
        def check_limit(self, asked):
            # An engine's is the number alone.
            if getattr(asked, "max_tokens", asked) == 0:
                raise ValueError("at least one id")
            super().check_limit(asked)

    subject = LocalSubject({name: AboveZero, "Llama": contract("llama").operation("Llama")})
    leave_out_refused(subject, subject.description)
    assert subject.description.envelope[component]["zero_max_tokens"] == [False]


@pytest.mark.parametrize(
    ("component", "name", "key", "refused"),
    [
        ("rope", "RoPE", "empty", lambda a: not a.x.size),
        ("rope", "RoPE", "partial", lambda a: a.x.shape[-1] != a.dims),
        ("paged_attention", "paged_attention", "more_queries", lambda a: (a.context_lens < a.query.shape[2]).any()),
        ("attention", "MultiHeadAttention", "odd_hidden_size", lambda a: a.hidden_size % a.num_heads),
    ],
)
def test_what_else_is_refused_is_not_asked_for_either(component, name, key, refused):
    class Refuses(contract(component).operation(name)):  # type: ignore[misc]
        def guard(self, a):
            if refused(a):
                raise ValueError("not taken")
            super().guard(a)

    subject = LocalSubject({name: Refuses})
    leave_out_refused(subject, subject.description)
    assert subject.description.envelope == {component: {key: [False]}}


def test_heads_of_a_size_that_is_not_free_have_whole_parts_of_the_features():
    class Refuses(contract("attention").operation("MultiHeadAttention")):  # type: ignore[misc]
        def guard(self, a):
            if a.wq.shape[0] != a.hidden_size:
                raise ValueError("not taken")
            super().guard(a)

    subject = LocalSubject({"MultiHeadAttention": Refuses})
    leave_out_refused(subject, subject.description)
    assert subject.description.envelope == {"attention": {"free_head_dim": [False], "odd_hidden_size": [False]}}


@pytest.mark.parametrize(
    ("component", "name"), [("kv_cache", "KVCache"), ("kv_cache", "StaticKVCache"), ("batching", "BatchingKVCache")]
)
def test_caches_that_refuse_values_of_another_head_dim_are_given_none(component, name):
    class Refuses(contract(component).operation(name)):  # type: ignore[misc]
        def respond(self, a):
            if any(x["key"].shape != x["value"].shape for _, x in a.steps if "key" in x):
                raise ValueError("keys and values of one shape are taken")
            return super().respond(a)

    subject = LocalSubject({name: Refuses})
    leave_out_refused(subject, subject.description)
    assert subject.description.envelope == {component: {"head_dims": ["same"]}}


@pytest.mark.parametrize("operation", [BlockManager, Cut])
def test_who_takes_them_rightly_or_wrongly_is_asked_for_them(operation):
    assert opened(operation).description.envelope == {}


@pytest.mark.parametrize(
    ("component", "name", "envelope", "taken"),
    [
        ("rope", "RoPE", {"dtypes": ["bfloat16"]}, lambda a: a.x.dtype.name == "bfloat16"),
        ("rope", "RoPE", {"head_dims": [64, 128]}, lambda a: a.x.shape[-1] in (64, 128)),
        ("attention", "MultiHeadAttention", {"head_dims": [64]}, lambda a: a.wq.shape[0] == 64 * a.num_heads),
        ("paged_attention", "paged_attention", {"head_dims": [64]}, lambda a: a.query.shape[-1] == 64),
        ("paged_attention", "paged_attention", {"page_sizes": [16]}, lambda a: a.page_size == 16),
        ("paged_attention", "paged_attention", {"queries": ["one"]}, lambda a: a.query.shape[2] == 1),
        ("attention", "MultiHeadAttention", {"dtypes": ["float16"]}, lambda a: a.query.dtype.name == "float16"),
        ("paged_attention", "paged_attention", {"dtypes": ["float16"]}, lambda a: a.query.dtype.name == "float16"),
        ("kv_cache", "KVCache", {"dtypes": ["bfloat16"]}, lambda a: a.steps[0][1]["key"].dtype.name == "bfloat16"),
        (
            "batching",
            "BatchingKVCache",
            {"dtypes": ["float16"]},
            lambda a: a.steps[0][1]["key"].dtype.name == "float16",
        ),
        ("paged_kv", "PagedKVCache", {"dtypes": ["float16"]}, lambda a: a.dtype == "float16"),
        ("paged_kv", "PagedKVCache", {"page_sizes": [16]}, lambda a: a.page_size == 16),
        ("block_manager", "BlockManager", {"block_sizes": [16]}, lambda a: a.block_size == 16),
        ("scheduler", "Scheduler", {"block_sizes": [16, 32]}, lambda a: a.block_size in (16, 32)),
        ("scheduler", "Scheduler", {"prefix_caching": [False]}, lambda a: not a.prefix_caching),
        ("engine", "Engine", {"page_sizes": [256]}, lambda a: a.page_size == 256),
    ],
)
def test_what_is_refused_for_lying_outside_of_what_was_declared_tells_nothing(component, name, envelope, taken):
    class Refuses(contract(component).operation(name)):  # type: ignore[misc]
        def guard(self, a):
            if not taken(a):
                raise ValueError("not taken")
            super().guard(a)

        def respond(self, a):
            if not taken(a):
                raise ValueError("not taken")
            return super().respond(a)

    subject = LocalSubject({name: Refuses}, envelope={component: envelope})
    leave_out_refused(subject, subject.description)
    assert subject.description.envelope == {component: envelope}


@pytest.mark.parametrize(
    ("component", "variant", "envelope"),
    [
        ("scheduler", "scheduler-slot-of-the-last", {"block_sizes": [16]}),
        ("engine", "engine-slot-of-the-last", {"page_sizes": [256]}),
        ("kv_cache", "kv-cache-no-empty-chunk", {"dtypes": ["bfloat16"]}),
    ],
)
def test_what_is_refused_within_what_was_declared_is_found(component, variant, envelope):
    kit = contract(component)
    honest = next(one for one in kit.variants if one.name == variant)
    subject = LocalSubject({honest.operation: kit.variant(honest)}, envelope={component: envelope})
    leave_out_refused(subject, subject.description)
    left = {key: list(left) for key, left in honest.envelope.items()}
    assert subject.description.envelope == {component: {**envelope, **left}}


def test_who_cuts_ids_is_red():
    assert "failed" in states(opened(Cut), "BLK-11")


def test_who_declares_them_and_refuses_them_is_red():
    subject = opened(Int32, {"id_bits": [63]})
    assert subject.description.envelope == {"block_manager": {"id_bits": [63]}}
    assert "failed" in states(subject, "BLK-20")


@pytest.mark.parametrize(
    ("component", "variant"),
    [
        ("scheduler", "scheduler-slot-of-the-last"),
        ("engine", "engine-slot-of-the-last"),
        ("kv_cache", "kv-cache-no-empty-chunk"),
        ("kv_cache", "static-kv-cache-no-empty-chunk"),
        ("batching", "batching-empty-refused"),
        ("paged_kv", "paged-no-empty-chunk"),
    ],
)
def test_what_an_honest_variant_refuses_is_found_to_be_its_envelope(component, variant):
    kit = contract(component)
    honest = next(one for one in kit.variants if one.name == variant)
    subject = LocalSubject({honest.operation: kit.variant(honest)})
    leave_out_refused(subject, subject.description)
    assert subject.description.envelope == {component: {key: list(left) for key, left in honest.envelope.items()}}


@pytest.mark.parametrize(
    ("component", "name", "argument", "key"),
    [
        ("generation", "generate", "tokens", "prompts"),
        ("speculative", "speculative_generate", "tokens", "prompts"),
        ("speculative", "verify", "draft_tokens", "drafts"),
    ],
)
@pytest.mark.parametrize("refused", ["list", "array", "list or array"])
def test_ids_are_given_as_the_subject_takes_them(component, name, argument, key, refused):
    class Refuses(contract(component).operation(name)):  # type: ignore[misc]
        def respond(self, a):
            form = "array" if isinstance(getattr(a, argument), np.ndarray) else "list"
            if form in refused:
                raise TypeError(f"no {form} is taken")
            return super().respond(a)

    subject = LocalSubject({name: Refuses})
    leave_out_refused(subject, subject.description)
    taken = {"list": ["array"], "array": ["list"]}.get(refused)
    assert subject.description.envelope == ({component: {key: taken}} if taken else {})


@pytest.mark.parametrize("refused", ["8-bit", "2-bit", "mixed"])
@pytest.mark.parametrize(("component", "name"), [("llama", "Llama"), ("qwen3", "Qwen3"), ("loading", "load")])
def test_models_that_refuse_other_bits_are_given_none(component, name, refused):
    kit = contract(component)

    class Refuses(kit.operation(name)):  # type: ignore[misc]
        def guard(self, a):
            super().guard(a)
            bits = {tables.get("bits") for tables in _tables(a.config.get("quantization") or {})}
            if _packing(bits) == refused:
                raise ValueError(f"bits of {bits}")

    subject = LocalSubject({name: Refuses})
    leave_out_refused(subject, subject.description)
    left = [packing for packing in kit.envelope["packing"] if packing != refused]
    assert subject.description.envelope == {component: {"packing": left}}


NO = {
    "rope": (lambda config: "rope_parameters" in config, ["rope_theta"]),
    "tied": (lambda config: config.get("tie_word_embeddings"), [False]),
    "biases": (lambda config: config.get("attention_bias") or config.get("mlp_bias"), ["none"]),
}
"""What is refused of a config, and what is then left."""


@pytest.mark.parametrize("field", ["num_key_value_heads", "rope_theta"])
def test_a_llama_that_reads_a_field_as_if_it_were_always_there_is_given_it(field):
    class Reads(contract("llama").operation("Llama")):  # type: ignore[misc]
        def guard(self, a):
            if "rope_parameters" not in a.config:
                a.config[field]
            super().guard(a)

    subject = LocalSubject({"Llama": Reads})
    leave_out_refused(subject, subject.description)
    (left,) = subject.description.envelope["llama"].values()
    assert set(subject.description.envelope["llama"]) == {"absent_fields"}
    assert set(left) == {"none", "num_key_value_heads", "rope_theta"} - {field}


@pytest.mark.parametrize(
    ("component", "name", "key"),
    [
        *((component, name, key) for component, name in (("llama", "Llama"), ("loading", "load")) for key in NO),
        *(("qwen3", "Qwen3", key) for key in ("rope", "tied")),
    ],
)
def test_what_else_a_model_refuses_it_is_not_given(component, name, key):
    refused, left = NO[key]

    class Refuses(contract(component).operation(name)):  # type: ignore[misc]
        def guard(self, a):
            super().guard(a)
            if refused(a.config):
                raise ValueError(f"no {key}")

    subject = LocalSubject({name: Refuses})
    leave_out_refused(subject, subject.description)
    assert subject.description.envelope == {component: {key: left}}


def _has_own_heads(config: dict[str, Any]) -> bool:
    return config.get("head_dim", 0) * config["num_attention_heads"] not in (0, config["hidden_size"])


class PlainLlama(contract("llama").operation("Llama")):  # type: ignore[misc]
    def guard(self, a):
        super().guard(a)
        if _has_own_heads(a.config):
            raise ValueError("head_dim is hidden_size / num_attention_heads")


def test_a_llama_whose_heads_share_the_hidden_size_is_given_no_others_nor_is_its_engine():
    engine = contract("engine").operation("Engine")
    subject = LocalSubject({"Llama": PlainLlama, "Engine": engine})
    leave_out_refused(subject, subject.description)
    assert subject.description.envelope == {"llama": {"head_dims": ["absent"]}}
    assert subject.description.narrowed("Engine") == {"head_dims": ("absent",)}


def test_what_is_refused_is_not_taken_for_another_declaration(tmp_path):
    lines = "    assert x.shape[1] > 0\n    if offset == 4: __import__('os')._exit(1)\n    dims ="
    (tmp_path / "rope.py").write_text(RIGHT.replace("    dims =", lines), encoding="utf-8")
    session = Session.opened(str(tmp_path / "rope.py"))
    worker = Session.joined(session.handed_on())
    call = plain_call("RoPE")
    try:
        assert session.description.envelope == worker.description.envelope == {"rope": {"empty": [False]}}
        with pytest.raises(SubjectDied):
            session.subject.call(call.having(offset=4))
        for subject in (session.subject, worker.subject):
            assert not subject.call(call).raised
    finally:
        session.close()
        worker.close()


def test_the_readme_has_every_choice_that_may_be_refused():
    rows = [line for line in README.read_text(encoding="utf-8").splitlines() if line.startswith("  | ")]
    choices = {(kit.component, key) for kit in contracts() for _, key, _ in optional_choices(kit)}
    assert choices
    for component, key in choices:
        assert any(component in row.split("|")[1] and f'"{key}":' in row for row in rows), f"{component}: {key}"
