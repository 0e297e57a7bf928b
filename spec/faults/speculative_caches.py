"""Mistakes of speculative decoding in what target and draft are fed, and in what their caches hold."""

from __future__ import annotations

import numpy as np

from inferspec.spec.changes import speculative as loop
from inferspec.spec.changes import speculative_caches as changes
from inferspec.spec.contract import Fault
from inferspec.spec.faults.speculative_sources import COUNTING, MLX_LM, TIRED, WINDOW
from inferspec.spec.numerics import round_to
from inferspec.spec.speculative_sentences import (
    SPEC_28,
    SPEC_29,
    SPEC_30,
    SPEC_32,
)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "speculative-target-keeps-a-rejected-draft",
        "the target's cache is rewound by one too few",
        SPEC_28,
        changes.rewinds("target", -1),
        COUNTING,
    ),
    Fault(
        "speculative-target-loses-an-id",
        "the target's cache is rewound by one too many",
        SPEC_28,
        changes.rewinds("target", 1),
        COUNTING,
    ),
    Fault(
        "speculative-target-not-rewound",
        "the target's cache is not rewound",
        SPEC_28,
        changes.never_rewinds("target"),
        f"{MLX_LM}/commit/f56d9971",
    ),
    Fault(
        "speculative-first-layer-rewound",
        "only the first layer is rewound",
        SPEC_28,
        {"take_back": changes.first_layer_alone},
        f"{MLX_LM}/commit/f56d9971 (layers of other kinds)",
    ),
    Fault(
        "speculative-first-layer-not-rewound",
        "all layers are rewound but the first, or none but the last",
        SPEC_28,
        changes.layers_forgotten(slice(1, None)),
        TIRED,
        forms=(changes.layers_forgotten(slice(-1, None)),),
    ),
    Fault(
        "speculative-as-many-layers-as-the-draft",
        "of the target too only as many layers are rewound as the draft has",
        SPEC_28,
        changes.as_deep_as(lambda run: run.draft_cache),
        TIRED,
    ),
    Fault(
        "speculative-as-many-layers-as-the-target",
        "of the draft too only as many layers are rewound as the target has",
        SPEC_29,
        changes.as_deep_as(lambda run: run.target_cache),
        TIRED,
    ),
    Fault(
        "speculative-last-layer-not-rewound",
        "the last layer is not rewound",
        SPEC_28,
        {"take_back": changes.last_layer_forgotten},
        TIRED,
    ),
    Fault(
        "speculative-draft-keeps-a-rejected-draft",
        "the draft's cache is rewound by one too few",
        SPEC_29,
        changes.rewinds("draft", -1),
        COUNTING,
    ),
    Fault(
        "speculative-draft-loses-an-id",
        "the draft's cache is rewound by one too many",
        SPEC_29,
        changes.rewinds("draft", 1),
        COUNTING,
    ),
    Fault(
        "speculative-draft-not-rewound",
        "the draft's cache is not rewound",
        SPEC_29,
        changes.never_rewinds("draft"),
        f"{MLX_LM}/commit/f56d9971",
    ),
    Fault(
        "speculative-draft-misses-the-prompt",
        "the draft is fed the last id of the prompt alone",
        SPEC_29,
        changes.draft_fed(changes.prompt_missed),
        TIRED,
    ),
    Fault(
        "speculative-draft-sees-the-end",
        "the draft is fed the last 256 tokens of a prompt alone",
        SPEC_29,
        changes.draft_fed(changes.the_last_256),
        f"{MLX_LM}/commit/f56d9971 (a draft cache without the prompt)",
    ),
    Fault(
        "speculative-drafts-fed-twice",
        "each draft is fed to the draft twice, at two positions",
        SPEC_29,
        changes.draft_fed(changes.each_twice),
        "PROPERTIES SP9",
    ),
    Fault(
        "speculative-position-skipped",
        "a padding id takes a position between the text and the drafts",
        SPEC_29,
        changes.draft_fed(changes.position_skipped),
        "PROPERTIES SP9",
    ),
    Fault(
        "speculative-draft-misses-its-last",
        "after a run without rejection the draft is not fed the last of its drafts",
        SPEC_30,
        changes.draft_fed(changes.last_of_them),
        f"{MLX_LM}, speculative_generate_step (the case that it handles)",
    ),
    Fault(
        "speculative-drafts-from-the-first-row",
        "the draft's first row of logits decides, not its last",
        SPEC_30,
        {"feed_draft": changes.drafts_from_the_first_row},
        TIRED,
    ),
    Fault(
        "speculative-drafts-highest-of-equals",
        "of equal logits of the draft the highest id is taken, of the target's the lowest",
        SPEC_30,
        loop.drafted_by(lambda rows: rows.shape[-1] - 1 - np.argmax(rows[:, ::-1], axis=-1)),
        "https://github.com/vllm-project/vllm-metal/commit/12ee169",
    ),
    Fault(
        "speculative-drafts-in-bfloat16",
        "the draft's logits are rounded to bfloat16 first, the target's are not",
        SPEC_30,
        loop.drafted_by(lambda rows: np.argmax(round_to(rows, "bfloat16").astype(np.float64), axis=-1)),
        "PROPERTIES X5",
    ),
)


PROMPTS: tuple[Fault, ...] = (
    Fault(
        "speculative-prompt-cut",
        "only the last 512 tokens of a prompt are fed",
        SPEC_32,
        {"prompt": changes.window},
        TIRED,
    ),
    Fault(
        "speculative-one-past-pieces-of-100",
        "the last token of a prompt that is one longer than pieces of 100 is dropped",
        SPEC_32,
        changes.lone_token_lost(100),
        f"{MLX_LM}/commit/cd367819",
    ),
    Fault(
        "speculative-two-past-pieces-of-384",
        "of a prompt whose last token is fed apart the one before is dropped, where it is one past pieces of 384",
        SPEC_32,
        changes.lone_token_lost(384, last=1),
        f"{MLX_LM}/commit/cd367819",
    ),
    Fault(
        "speculative-draft-two-past-pieces-of-100",
        "the draft never sees the last token but one of a prompt that is two longer than pieces of 100",
        SPEC_32,
        changes.draft_loses_lone_token(100),
        f"{MLX_LM}/commit/cd367819",
    ),
    Fault(
        "speculative-sampled-prompt-cut",
        "above temperature 0 only the last 256 tokens of a prompt are fed",
        SPEC_32,
        {"prompt": changes.window_where_sampled},
        TIRED,
    ),
    Fault(
        "speculative-target-not-rewound-past-2048",
        "once the target's cache holds 2048 tokens, as a window that is full, wrong drafts stay in it",
        SPEC_32,
        changes.never_rewinds_past("target", 2048),
        WINDOW,
    ),
    Fault(
        "speculative-draft-not-rewound-past-2048",
        "once the draft's cache holds 2048 tokens, as a window that is full, its wrong drafts stay in it",
        SPEC_32,
        changes.never_rewinds_past("draft", 2048),
        WINDOW,
    ),
)
