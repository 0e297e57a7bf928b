"""The adapter of Hugging Face's generate: a model of which it knows nothing goes on as one of its own does, id by id."""

from __future__ import annotations

import threading

import pytest

from inferspec import golden

pytest.importorskip("transformers")

import torch
from transformers import AutoModelForCausalLM

from inferspec.conformance.subjects import transformers as subject

PROMPT = [17, 250, 3, 40, 41]


class Layer:
    def __init__(self):
        self.tokens = []

    @property
    def offset(self):
        return len(self.tokens)

    def rewind(self, n):
        del self.tokens[self.offset - n :]


class Foreign:
    """The caches of this model hold ids. calls: how many there were."""

    def __init__(self, model):
        self.model, self.calls = model, 0

    def make_cache(self):
        return [Layer()]

    def __call__(self, ids, cache=None):
        self.calls += 1
        every = ids[0].tolist()
        if cache is not None:
            cache[0].tokens += every
            every = cache[0].tokens
        return self.model(torch.tensor([every]), use_cache=False).logits[:, -ids.shape[1] :]


@pytest.fixture(scope="module")
def own():
    return AutoModelForCausalLM.from_pretrained(golden.ROOT / "models" / "tiny-qwen3", dtype=torch.float32)


@pytest.fixture(scope="module")
def ids(own):
    return own.generate(torch.tensor([PROMPT]), max_new_tokens=12, do_sample=False)[0, len(PROMPT) :].tolist()


@pytest.mark.parametrize("cache", [True, False])
def test_a_foreign_model_goes_on_as_one_of_its_own(own, ids, cache):
    assert list(subject.generate(Foreign(own), PROMPT, max_tokens=12, cache=cache)) == ids


@pytest.mark.parametrize("num_draft_tokens", [1, 4])
def test_so_it_does_with_an_assistant(own, ids, num_draft_tokens):
    target, draft = Foreign(own), Foreign(own)
    found = subject.speculative_generate(target, draft, PROMPT, max_tokens=12, num_draft_tokens=num_draft_tokens)
    assert list(found) == ids
    assert target.calls < len(ids)


def test_the_id_that_ends_them_is_the_last(own, ids):
    stop = ids[6]
    assert list(subject.generate(Foreign(own), PROMPT, max_tokens=12, eos=[stop])) == ids[: ids.index(stop) + 1]


def test_it_waits_between_ids_and_leaves_when_its_caller_does(own, ids):
    model, before = Foreign(own), threading.active_count()
    stream = subject.generate(model, PROMPT, max_tokens=12)
    assert [next(stream), next(stream)] == ids[:2]
    assert model.calls == 2
    stream.close()
    assert threading.active_count() == before


def test_what_a_model_raises_passes_to_the_caller(own):
    class Broken(Foreign):
        def __call__(self, ids, cache=None):
            raise ZeroDivisionError("no")

    with pytest.raises(ZeroDivisionError, match="no"):
        next(subject.generate(Broken(own), PROMPT, max_tokens=3))
