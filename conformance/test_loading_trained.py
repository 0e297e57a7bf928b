"""Are trained models what transformers and mlx-lm say?"""

from functools import partial

import numpy as np

from inferspec.conformance.envelope import OutsideEnvelope, narrow
from inferspec.conformance.inputs.loading import packaged, trained
from inferspec.conformance.judging.trial import Nonconformance
from inferspec.conformance.suite import requirement
from inferspec.golden import models
from inferspec.spec import loading as spec
from inferspec.spec.contract import Answer
from inferspec.spec.numerics import MODEL_LOGITS, f64


@requirement(spec.LOAD_17)
def test_trained_models_give_the_logits_of_transformers(subject):
    for name, call in _claimed(subject, "trained", partial(trained, dtype="float32")):
        _gives_the_goldens(subject, name, call)


@requirement(spec.LOAD_17)
def test_trained_models_say_the_same_in_the_dtype_of_their_files(subject):
    for name, call in _claimed(subject, "trained", trained):
        _says_the_same(subject, name, call)


@requirement(spec.LOAD_18)
def test_smollm2_gives_the_logits_of_transformers(subject):
    narrow(subject.envelope, {"forms": ["gguf"]})
    for name, call in _claimed(subject, "packaged", packaged):
        # One prompt: a pass of 135 million parameters takes seconds. `inferspec golden check` asks all of them.
        _gives_the_goldens(subject, name, call, prompts=1)


def _claimed(subject, key, made):
    """The trained models that the subject claims, by name, with the call that loads each; none that has anything else that it
    does not claim."""
    if not subject.envelope[key]:
        raise OutsideEnvelope(f"{key} {list(subject.contract.envelope[key])} has nothing that is claimed")
    calls = {name: made(name) for name in subject.envelope[key]}
    beyond = {name: _beyond(subject, call) for name, call in calls.items()}
    if all(beyond.values()):
        raise OutsideEnvelope("; ".join(f"{name} has {', '.join(found)}" for name, found in beyond.items()))
    return [(name, call) for name, call in calls.items() if not beyond[name]]


def _beyond(subject, call):
    """What a call has that the subject does not claim."""
    return [f"{key} {value!r}" for key, value in call.features.items() if value not in subject.envelope[key]]


def _gives_the_goldens(subject, name, call, prompts=None):
    """Logits of the prompts within `MODEL_LOGITS` of the largest one, and the greedy text."""
    golden = models.read(name)
    for prompt in golden.prompts[:prompts]:
        asked = call.having(tokens=(prompt.read,))
        logits = subject.value(asked)
        vocabulary = call.arguments["config"]["vocab_size"]
        if logits.shape != (1, len(prompt.read), vocabulary):
            raise Nonconformance(f"the logits are {list(logits.shape)}", asked)
        budget = MODEL_LOGITS * np.abs(prompt.last).max()
        for got, stored in (
            (logits[0, len(prompt.ids) - 1], prompt.last),
            (logits[0][:, golden.columns], prompt.columns),
        ):
            subject.compare(asked, got, Answer(f64(stored), np.full(stored.shape, budget)), name="golden")
        _greedy(asked, logits, prompt)


def _says_the_same(subject, name, call):
    for prompt in models.read(name).prompts:
        asked = call.having(tokens=(prompt.read,))
        _greedy(asked, subject.value(asked), prompt)


def _greedy(call, logits, prompt):
    """Every token of the greedy text is the most likely one after the text before it."""
    said = logits[0, len(prompt.ids) - 1 :].astype(np.float32).argmax(axis=-1)
    if (wrong := np.flatnonzero(said != np.array(prompt.greedy))).size:
        place = int(wrong[0])
        raise Nonconformance(
            f"prompt {prompt.name}: token {place} of the greedy text is {said[place]}, not {prompt.greedy[place]}", call
        )
