"""Mistakes in the loop of generation with what callers give, with what should be refused, and with what goes wrong."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import generation_callers as changes
from inferspec.spec.changes import generation_ends as ends
from inferspec.spec.changes import threads
from inferspec.spec.changes.generation import prompt_in_bits
from inferspec.spec.contract import Fault
from inferspec.spec.faults.generation_sources import COURSE_CODE, MLX_LM, SEEDS, TIRED
from inferspec.spec.generation import (
    GEN_18,
    GEN_19,
    GEN_20,
    GEN_21,
    GEN_22,
    GEN_23,
    GEN_24,
    GEN_25,
    GEN_26,
    GEN_27,
    GEN_28,
    GEN_29,
    GEN_30,
    GEN_31,
)
from inferspec.spec.mistakes import ignores_strides

FAULTS: tuple[Fault, ...] = (
    Fault(
        "generation-unsigned-prompt-in-16-bits",
        "a prompt of uint32 is cut to 16 bits",
        GEN_19,
        prompt_in_bits(16, lambda tokens: getattr(tokens, "dtype", None) == np.uint32),
        "PROPERTIES X8",
    ),
    Fault(
        "generation-long-prompt-in-16-bits",
        "a prompt of more than 8 tokens, which goes in by another path, is cut to 16 bits",
        GEN_19,
        prompt_in_bits(16, lambda tokens: len(tokens) > 8),
        "PROPERTIES X8",
    ),
    Fault(
        "generation-token-strides",
        "tokens are read as if they were contiguous",
        GEN_19,
        ignores_strides("tokens"),
        "PROPERTIES X1",
    ),
    Fault("generation-list-grows", "ids are appended to the caller's list", GEN_20, {"ids": changes.list_grows}, SEEDS),
    Fault(
        "generation-changes-tokens", "the caller's array is overwritten", GEN_20, changes.overwrites(), "PROPERTIES X6"
    ),
    Fault(
        "generation-remembers-prompt",
        "a prompt kept by its length serves others",
        GEN_21,
        {"prompt": changes.remembers_the_prompt},
        "https://github.com/flashinfer-ai/flashinfer/commit/82784bb11",
    ),
    Fault(
        "generation-counts-on", "a counter outlives the request", GEN_21, {"limit": changes.counts_on}, "PROPERTIES X7"
    ),
    Fault(
        "generation-nothing-from-nothing",
        "an empty prompt gives no ids and no error",
        GEN_22,
        {"check_prompt": changes.late, "ids": changes.nothing_from_nothing},
        "PROPERTIES X9",
    ),
    Fault(
        "generation-empty-is-zero",
        "an empty prompt is taken for id 0",
        GEN_22,
        {"check_prompt": changes.late, "prompt": changes.begins_with_zero},
        "PROPERTIES X9",
    ),
    Fault(
        "generation-empty-left-to-the-model",
        "nobody looks at an empty prompt: the model is called with it, and raises",
        GEN_22,
        {"check_prompt": changes.late},
        "LitGPT's generate",
    ),
    Fault(
        "generation-empty-refused-late",
        "an empty prompt is refused when the model was called already",
        GEN_22,
        changes.checks_after_prefill("check_prompt"),
        "PROPERTIES X9",
    ),
    Fault(
        "generation-unlimited",
        "a negative max_tokens is no limit",
        GEN_23,
        {"check_limit": changes.late, "limit": ends.no_limit_below_zero},
        f"{MLX_LM}, generate_step (documented there)",
    ),
    Fault(
        "generation-none-below-zero",
        "a negative max_tokens gives no ids and no error",
        GEN_23,
        {"check_limit": changes.late},
        "PROPERTIES X9",
    ),
    Fault(
        "generation-limit-refused-late",
        "a negative max_tokens is refused when the model was called already",
        GEN_23,
        changes.checks_after_prefill("check_limit"),
        "PROPERTIES X9",
    ),
    Fault(
        "generation-array-ids",
        "ids come out as arrays of no axes",
        GEN_24,
        {"out": lambda self, token: np.array(token)},
        COURSE_CODE,
    ),
    Fault("generation-float-ids", "ids come out as floats", GEN_24, {"out": lambda self, token: float(token)}, TIRED),
    Fault(
        "generation-flattens-batch",
        "a batch of prompts is read as one",
        GEN_25,
        {"check_rank": changes.late},
        "PROPERTIES X9",
    ),
    Fault(
        "generation-first-of-batch",
        "of a batch of prompts the first is served",
        GEN_25,
        {"check_rank": changes.late, "prompt": changes.first_row},
        "PROPERTIES X3",
    ),
    Fault(
        "generation-model-error-ends",
        "an error of the model ends the ids",
        GEN_26,
        changes.an_error_ends("model"),
        "PROPERTIES CB2",
    ),
    Fault(
        "generation-lookup-error-ends",
        "an IndexError or a KeyError of the model ends the ids, as one of a list of what is left would",
        GEN_26,
        changes.an_error_ends("model", LookupError),
        TIRED,
    ),
    Fault(
        "generation-stop-iteration-ends",
        "a StopIteration of the model or the sampler, whose numbers have run out, ends the ids",
        GEN_30,
        {"ids": changes.its_end_ends},
        "https://github.com/msgpack/msgpack-python/issues/22",
    ),
    Fault(
        "generation-error-of-a-long-prompt-ends",
        "an error of the model ends the ids while a prompt of more than 64 tokens is fed",
        GEN_26,
        changes.an_error_at_a_long_prompt_ends(64),
        TIRED,
    ),
    Fault(
        "generation-sampler-error-ends",
        "a ValueError of the sampler ends the ids",
        GEN_26,
        changes.an_error_ends("sampler", ValueError),
        TIRED,
    ),
    Fault(
        "generation-greedy-without-sampler",
        "a sampler that raises gives way to the largest logit",
        GEN_26,
        {"pick": changes.greedy_instead},
        TIRED,
    ),
    Fault(
        "generation-tries-again", "a model that fails is asked again", GEN_26, {"forward": changes.tried_again}, TIRED
    ),
    Fault("generation-holds-caches", "a table holds every cache", GEN_27, {"cache": changes.held}, "PROPERTIES PG7"),
    Fault(
        "generation-holds-while-held",
        "the iterator keeps the cache past the end, until nobody has it any more",
        GEN_27,
        {"ids": changes.held_by_the_iterator},
        "PROPERTIES PG7",
    ),
    Fault(
        "generation-holds-what-is-closed",
        "a table holds the caches of requests that were closed before their end",
        GEN_27,
        {"ids": changes.held_when_stopped_early},
        "PROPERTIES PG7",
    ),
)


KEPT_ARGUMENTS: tuple[Fault, ...] = (
    Fault(
        "generation-reads-the-callers-tokens",
        "the prompt is read again for each id, as the caller has it by then",
        GEN_28,
        {"ids": changes.reads_the_callers},
        TIRED,
    ),
    Fault(
        "generation-reads-the-callers-ends",
        "each id is looked for in the caller's own list of end-of-sequence ids",
        GEN_29,
        {"taken": changes.callers_ends},
        TIRED,
    ),
    Fault(
        "generation-holds-what-failed",
        "a table holds the caches of requests that ended by an error",
        GEN_27,
        {"cache": changes.held_while_running, "ids": changes.held_when_it_fails},
        "PROPERTIES PG7",
    ),
    Fault(
        "generation-lost-once-failed",
        "a model that failed once, or whose sampler did, serves no other request",
        GEN_18,
        {"ids": changes.given_up_once_failed},
        "PROPERTIES PG7",
    ),
    Fault(
        "generation-cache-of-the-failed",
        "a request goes on in the cache of one that ended by an error",
        GEN_18,
        {"cache": changes.left_by_the_failed, "ids": changes.held_when_it_fails},
        "PROPERTIES CB4, PG7",
    ),
    Fault(
        "generation-stream-of-the-module",
        "ids are computed on a stream that is made where the module is loaded, and not there in another thread",
        GEN_31,
        threads.bound_to_its_thread(),
        "https://github.com/ml-explore/mlx-lm/pull/1090",
    ),
)
