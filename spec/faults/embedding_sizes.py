"""Mistakes in the token embedding, and in its head, for sizes and views that are rarely tried."""

from __future__ import annotations

from inferspec.spec.changes import embedding as changes
from inferspec.spec.contract import Fault
from inferspec.spec.embedding import EMB_03, EMB_19
from inferspec.spec.faults.sources import TIRED
from inferspec.spec.mistakes import lacks_a_feature, leaves_unwritten

OF_MODELS: tuple[Fault, ...] = (
    Fault(
        "embedding-4096-features",
        "features past the 4096th are not written: four for each thread of a group",
        EMB_03,
        leaves_unwritten(lambda out: out[..., :4096]),
        TIRED,
    ),
    *(
        Fault(
            f"as-linear-{told}-lack-a-feature",
            f"{where} the last logit is not written",
            EMB_19,
            lacks_a_feature(changes.of_heads(*sizes)),
            TIRED,
        )
        for told, where, sizes in (
            ("wide-tokens", "of a token, of 1024 ids and 2048 dims and more,", (range(1, 2), 1024, 2048)),
            ("sixteen-rows", "of 12 to 31 rows, of 64 ids and 512 dims and more,", (range(12, 32), 64, 512)),
            ("wide-prompts", "of 128 rows and ids and 512 dims and more,", (range(128, 2**16), 128, 512)),
        )
    ),
)
