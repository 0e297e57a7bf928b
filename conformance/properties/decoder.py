"""Properties of whole models, as sentences about one subject and one call; the suites of Llama and Qwen3 share them."""

from __future__ import annotations

from collections.abc import Sequence

from inferspec.conformance.calls import Call
from inferspec.conformance.judging.trial import Nonconformance, Trial
from inferspec.conformance.properties.common import bit_equal, refuses, returns
from inferspec.conformance.properties.decoder_calls import (
    SCALED_ROPE,
    additional,
    next_ids,
    scaled_otherwise,
    with_additional,
    with_config,
)


def gives_logits(subject: Trial, call: Call, plain: Call) -> None:
    """Logits of every position, in the dtype of the embedding, or in float32 where those of a plain call are in float32 too."""
    a, kept = call.arguments, call.features["dtypes"]
    chunks = a["chunks"] if "chunks" in a else [a["tokens"]]
    shape = (chunks[0].shape[0], sum(chunk.shape[1] for chunk in chunks), a["config"]["vocab_size"])
    usual = kept if subject.value(call).dtype.name == kept else subject.value(plain).dtype.name
    returns(subject, call, shape, usual if usual == "float32" else kept)


def refuses_naming(subject: Trial, call: Call, tensor: str) -> None:
    """The model is refused, with an error that names the tensor."""
    refuses(subject, call)
    message = subject.observe(call).message
    if tensor not in message:
        raise Nonconformance(f"the error does not name {tensor}; it reads: {message[:200]}", call)


def no_token_changes_earlier_logits(subject: Trial, call: Call, at: float) -> None:
    """Other tokens from some place on leave all logits before it the same, bit for bit."""
    tokens = call.arguments["tokens"]
    place = min(1 + int(at * (tokens.shape[1] - 1)), tokens.shape[1] - 1)
    later = next_ids(call)
    later[:, :place] = tokens[:, :place]
    before, after = subject.agrees(call.kept(0)), subject.agrees(call.having(tokens=later).kept(0))
    if not bit_equal(before[:, :place], after[:, :place]):
        raise Nonconformance(f"tokens from {place} on change the logits before them", call)


def each_row_is_right_alone(subject: Trial, call: Call) -> None:
    """A batch is right, and so is each of its rows in a call of its own."""
    subject.agrees(call.kept(0))
    for row in range(len(call.arguments["tokens"])):
        subject.agrees(call.having(tokens=call.arguments["tokens"][row : row + 1]).kept(0))


def is_right_if_its_first_chunk_is_taken(subject: Trial, call: Call) -> None:
    """A model that need not be taken is refused when it is made or first used, or right to the end."""
    if subject.observe(call.having(chunks=call.arguments["chunks"][:1])).raised:
        return
    seen = subject.observe(call)
    if seen.raised:
        raise Nonconformance(f"takes the first chunk and refuses a later one: {seen.raised}: {seen.message}", call)
    subject.agrees(call)


def refuses_every_additional(subject: Trial, call: Call, head_norms: bool) -> None:
    """Each tensor that has no place is refused."""
    count = len(additional(call.arguments["config"], head_norms))
    for number in range(count):
        refuses(subject, with_additional(call, (number + 0.5) / count)[0])


def takes_no_scaled_rope_for_the_default(subject: Trial, call: Call, place: str, keys: Sequence[str]) -> None:
    """A kind that nobody knows is refused; a kind that some know is refused or gives other logits than the default.

    place: where the config says it; keys: the names that it may have there.
    """
    theta = {"rope_theta": call.arguments["config"][place]["rope_theta"]} if place == "rope_parameters" else {}
    for key in keys:
        refuses(subject, with_config(call, **{place: {key: "unheard-of", "factor": 8.0, **theta}}))
        for kind in SCALED_ROPE:
            fields, positions = scaled_otherwise(kind, call.arguments["config"])
            scaled = with_config(call, **{place: {key: kind, **fields, **theta}}, **positions)
            is_not_taken_for(subject, call, scaled, f"{key} {kind!r} of {place} is taken for the default")


def is_not_taken_for(subject: Trial, plain: Call, other: Call, problem: str) -> None:
    """The other call is refused, or gives other logits than the plain one."""
    seen = subject.observe(other)
    if not seen.raised and bit_equal(subject.agrees(plain), subject.value(other)):
        raise Nonconformance(problem, other)


def takes_no_other_activation_for_silu(subject: Trial, call: Call) -> None:
    """An activation that nobody knows is refused; one that some know is refused or gives other logits than SiLU."""
    refuses(subject, with_config(call, hidden_act="unheard-of"))
    for name in ("gelu", "gelu_pytorch_tanh", "relu"):
        is_not_taken_for(subject, call, with_config(call, hidden_act=name), f"hidden_act {name!r} is taken for 'silu'")
