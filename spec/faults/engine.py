"""Mistakes in serving engines, and other honest ways to serve."""

from __future__ import annotations

from inferspec.spec import engine as spec
from inferspec.spec.changes import engine as changes
from inferspec.spec.changes import engine_behind as behind
from inferspec.spec.changes import engine_guesses as guesses
from inferspec.spec.changes import engine_metrics as metrics
from inferspec.spec.changes import engine_pages as pages
from inferspec.spec.changes import engine_requests as requests
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.faults import (
    engine_beside,
    engine_drafts,
    engine_ends,
    engine_guesses,
    engine_leavers,
    engine_many,
    engine_pages,
    engine_requests,
    engine_runs,
)
from inferspec.spec.faults.defining import named
from inferspec.spec.faults.serving import COURSE, METAL, MLX_LM, VLLM
from inferspec.spec.faults.sources import TIRED

_JOB = "PROPERTIES CB4"

_fault = named("engine")

FAULTS: tuple[Fault, ...] = (
    _fault(
        "one-offset",
        "all rows are turned from the first row's position",
        spec.ENG_01,
        {"position": changes.position_of_the_first},
        f"{MLX_LM}/1e71de53",
    ),
    _fault("five-rows", "rows of a step past the fifth get its logits", spec.ENG_01, changes.rows(5), TIRED),
    _fault("sixteen-rows", "rows of a step past the sixteenth get its logits", spec.ENG_01, changes.rows(16), TIRED),
    _fault("sixty-four-rows", "rows of a step past the 64th get its logits", spec.ENG_01, changes.rows(64), TIRED),
    _fault(
        "prompts-cut",
        "only the last 128 tokens of a prompt are computed",
        spec.ENG_01,
        changes.the_last(128),
        TIRED,
    ),
    _fault(
        "last-logits-for-all",
        "all rows of a step get the last row's logits",
        spec.ENG_01,
        {"step": changes.last_logits_for_all},
        f"{METAL}/d20dd02",
    ),
    _fault(
        "first-id-of-the-config",
        "what came of a prompt comes again of another model with the same config",
        spec.ENG_01,
        {"emit": changes.first_id_of_the_config},
        "PROPERTIES X7",
    ),
    _fault(
        "context-one-short",
        "a generating row does not see the token before its own",
        spec.ENG_01,
        {"context": changes.one_token_short},
        "PROPERTIES PA1",
    ),
    _fault(
        "context-one-more",
        "a generating row sees a slot that is not written yet",
        spec.ENG_01,
        {"context": changes.one_token_more},
        f"{VLLM}/pull/47305",
    ),
    _fault(
        "longest-context",
        "every row reads as many slots as the longest row has tokens",
        spec.ENG_01,
        {"context": changes.longest_context},
        f"{VLLM}/pull/936",
    ),
    _fault(
        "table-of-the-place",
        "who takes the place of a finished request reads the place's old pages",
        spec.ENG_02,
        {"end": changes.moves_into_the_gap, "table": changes.table_of_the_place},
        _JOB,
    ),
    _fault(
        "state-of-the-last-owner",
        "a request begins with what the last owner of its place had computed",
        spec.ENG_02,
        {"end": changes.leaves_its_state, "start": changes.takes_the_state, "read": changes.behind_the_state},
        f"{METAL}/b213b8b",
    ),
    _fault(
        "table-of-64-pages",
        "the table of a request has 64 pages, and begins anew behind them",
        spec.ENG_04,
        changes.table_of(64),
        "the maximum number of blocks of a sequence",
    ),
    _fault("pages-in-a-byte", "page ids have 8 bits", spec.ENG_04, changes.page_ids_of(256), "PROPERTIES X8"),
    _fault(
        "stops-repeating",
        "an id that came sixteen times in a row ends a request",
        spec.ENG_13,
        {"stops": changes.repeats},
        "https://github.com/ollama/ollama/pull/3080 (on purpose); ollama 14117",
    ),
    _fault("at-most-32", "no more than 32 ids come out", spec.ENG_13, changes.at_most_ids(32), TIRED),
    _fault(
        "only-id-no-end",
        "an id that ends a request comes out where no more than one is asked for",
        spec.ENG_15,
        {"stops": changes.looks_past_one},
        "PROPERTIES CB3",
    ),
    _fault(
        "given-up-after-five-failures",
        "a request in five of whose steps the model has failed is finished as it is",
        spec.ENG_25,
        {"step": changes.gives_up_after(5)},
        TIRED,
    ),
    _fault(
        "half-a-step",
        "ids that came before the model failed are lost",
        spec.ENG_25,
        {"step": changes.one_by_one},
        "PROPERTIES PG7",
    ),
    _fault(
        "batch-dropped",
        "when the model fails all running requests end",
        spec.ENG_25,
        {"step": changes.drops_the_batch},
        f"{COURSE}/00dbf5c",
    ),
    _fault(
        "says-nothing",
        "what the model raises is swallowed",
        spec.ENG_25,
        {"step": changes.says_nothing},
        "PROPERTIES PG7",
    ),
    _fault(
        "run-says-nothing",
        "what the model raises in a run is swallowed",
        spec.ENG_25,
        {"run": changes.run_says_nothing},
        "PROPERTIES PG7",
    ),
    _fault(
        "places-of-a-failed-call-stay",
        "keys that a call had cached before it failed stay: what comes later is put behind them",
        spec.ENG_25,
        {"feed": changes.places_stay, "position": changes.behind_what_failed},
        "PROPERTIES PG7",
    ),
    _fault(
        "run-hands-out-once",
        "who ends in a run is given out by it alone, and by none when it fails",
        spec.ENG_25,
        {"run": changes.run_hands_out_once},
        TIRED,
    ),
    _fault(
        "errors-for-no-room",
        "some errors of the model are taken for a lack of room",
        spec.ENG_25,
        {"step": changes.no_room},
        "PROPERTIES PG7",
    ),
    _fault(
        "stamps-stay",
        "the times of ids of a failed step stay",
        spec.ENG_25,
        {"feed": changes.stamped_when_computed, "stamp": changes.stamped_before},
        "PROPERTIES ME2",
    ),
    _fault(
        "counts-before",
        "what the model failed to compute counts as computed",
        spec.ENG_25,
        {"feed": changes.counts_before},
        "PROPERTIES PC5",
    ),
    _fault(
        "first-logits",
        "logits are those of the first id",
        spec.ENG_36,
        {"emit": changes.logits_of_the_prompt},
        "PROPERTIES CB4",
    ),
    _fault(
        "logits-lost-with-a-step",
        "a step that fails takes the logits of all that were in it",
        spec.ENG_36,
        {"feed": changes.logits_dropped, "settle": changes.logits_put_back},
        "PROPERTIES CB4, PG7",
    ),
    _fault(
        "logits-moved-by-a-step",
        "a step that fails leaves each request with the logits of another",
        spec.ENG_36,
        {"step": changes.logits_moved},
        "PROPERTIES CB4, PG7",
    ),
    _fault(
        "logits-of-another",
        "logits are those of the last row of the step",
        spec.ENG_36,
        {"step": changes.logits_of_the_last_row},
        f"{MLX_LM}/d9846d37",
    ),
    _fault(
        "logits-of-rows-before",
        "logits behind a chunk in the midst of a prompt are those of the row before",
        spec.ENG_36,
        {"step": changes.logits_of_rows_before},
        "https://github.com/sgl-project/sglang/issues/36938",
    ),
    _fault(
        "logits-at-the-end",
        "there are no logits of a request until it is finished",
        spec.ENG_36,
        {"emit": changes.logits_held_back, "end": changes.shows_its_logits},
        TIRED,
    ),
    _fault(
        "log-probabilities", "logits are normalised", spec.ENG_36, {"emit": changes.normalised}, f"{COURSE}/05972ff"
    ),
    _fault(
        "logits-behind-the-end",
        "where an id ends a run of guesses, the logits are those behind it",
        spec.ENG_36,
        {"settle": changes.logits_behind_the_end},
        TIRED,
    ),
    _fault(
        "logits-behind-a-long-run",
        "where an id ends a run of guesses behind three that come out, the logits are those that the end was chosen by",
        spec.ENG_36,
        {"settle": changes.logits_behind_a_long_run},
        TIRED,
    ),
    _fault(
        "logits-of-the-end",
        "where an id ends the output, the logits are those that the end was chosen by",
        spec.ENG_36,
        {"emit": changes.logits_of_the_end},
        TIRED,
    ),
    _fault(
        "order-of-sums",
        "the last bits depend on how many requests run",
        spec.ENG_37,
        {"called": changes.another_order_of_sums},
        "PROPERTIES X11",
    ),
    _fault(
        "128-rows",
        "rows of a step past the 128th get its logits",
        spec.ENG_01,
        changes.rows(128),
        TIRED,
    ),
    _fault(
        "256-rows",
        "rows of a step past the 256th get its logits",
        spec.ENG_01,
        changes.rows(256),
        TIRED,
    ),
    _fault(
        "512-tokens",
        "rows behind the 512th token of a step get the logits at its beginning",
        spec.ENG_01,
        {"step": changes.tokens_of_512},
        TIRED,
    ),
    _fault(
        "guesses-past-512",
        "in a step of more than 512 tokens the rows of guesses are looked for at other places",
        spec.ENG_10,
        {"step": changes.guesses_past_512},
        "https://github.com/unslothai/llama.cpp/pull/182",
    ),
    _fault(
        "tiles-of-256",
        "of more than 256 tokens of a prompt in a step only the last 256 see each other",
        spec.ENG_01,
        {"feed": changes.tiles_of_256},
        TIRED,
    ),
    _fault(
        "prompts-cut-at-512",
        "only the last 512 tokens of a prompt are computed",
        spec.ENG_01,
        changes.the_last(512),
        TIRED,
    ),
    _fault(
        "window-of-512",
        "no more than the last 512 tokens are seen",
        spec.ENG_01,
        {"read": changes.window_of_512},
        TIRED,
    ),
    _fault(
        "512-positions",
        "positions begin anew after 512",
        spec.ENG_01,
        {"position": changes.positions_of_512},
        TIRED,
    ),
    _fault(
        "eight-layers",
        "layers past the eighth write into the pages of the first ones",
        spec.ENG_01,
        {"fresh": changes.layers_of_8},
        TIRED,
    ),
    _fault(
        "four-heads",
        "heads of keys and values past the fourth read those of the first ones",
        spec.ENG_01,
        {"read": changes.heads_of_4},
        TIRED,
    ),
    _fault(
        "32-features",
        "of heads of more than 32 features the rest is not read",
        spec.ENG_01,
        {"read": changes.features_of_32},
        TIRED,
    ),
    _fault(
        "chosen-in-16-bits",
        "ids past 16 bits are never chosen",
        spec.ENG_01,
        {"choose": changes.chosen_in_16_bits},
        TIRED,
    ),
    *(
        _fault(
            f"chosen-in-{dtype}",
            f"ids are chosen by logits that are rounded to {dtype}",
            spec.ENG_52,
            {"choose": changes.chosen_by_rounded(dtype)},
            "https://github.com/sgl-project/sglang/pull/773 (logits for sampling in float16)",
        )
        for dtype in ("bfloat16", "float16")
    ),
    _fault(
        "table-of-512-pages",
        "the table of a request has 512 pages, and begins anew behind them",
        spec.ENG_04,
        changes.table_of(512),
        TIRED,
    ),
    _fault(
        "512-pages",
        "page ids have 9 bits",
        spec.ENG_04,
        changes.page_ids_of(512),
        TIRED,
    ),
    _fault(
        "slots-in-16-bits",
        "places of all pages together are numbered in 16 bits",
        spec.ENG_04,
        {"slots": changes.slots_in_16_bits},
        TIRED,
    ),
    _fault(
        "sixteen-places",
        "tokens past the sixteenth of a page lie over its first ones",
        spec.ENG_04,
        changes.places_of(16),
        TIRED,
    ),
    _fault(
        "128-places",
        "tokens past the 128th of a page lie over its first ones",
        spec.ENG_04,
        changes.places_of(128),
        TIRED,
    ),
    _fault(
        "at-most-256",
        "no more than 256 ids come out",
        spec.ENG_13,
        changes.at_most_ids(256),
        TIRED,
    ),
    _fault(
        "limit-in-a-byte",
        "max_tokens has 8 bits",
        spec.ENG_13,
        {"most": changes.limit_in_a_byte},
        TIRED,
    ),
    _fault(
        "ends-in-16-bits",
        "ids that have the same low 16 bits end a request too",
        spec.ENG_14,
        {"stops": changes.ends_in_16_bits},
        TIRED,
    ),
    _fault(
        "ends-from-the-end",
        "an id below 0 ends a request at the id that stands there from the vocabulary's end",
        spec.ENG_54,
        {"add": changes.ends_from_the_end},
        TIRED,
    ),
    _fault(
        "ends-by-remainder",
        "an id past the vocabulary ends a request at its remainder",
        spec.ENG_54,
        {"add": changes.ends_by_remainder},
        TIRED,
    ),
    _fault(
        "ends-below-16-bits",
        "ids past 16 bits never end a request",
        spec.ENG_14,
        {"stops": changes.ends_below_16_bits},
        TIRED,
    ),
    *engine_pages.FAULTS,
    *engine_ends.FAULTS,
    *engine_guesses.FAULTS,
    *engine_beside.FAULTS,
    *engine_drafts.FAULTS,
    *engine_leavers.FAULTS,
    *engine_many.FAULTS,
    *engine_requests.FAULTS,
    *engine_runs.FAULTS,
)


VARIANTS: tuple[Variant, ...] = (
    Variant("engine-one-at-a-time", "one request after the other", "Engine", {"admit": changes.one_at_a_time}),
    Variant(
        "engine-prompts-first", "nobody generates while a prompt is computed", "Engine", {"plan": changes.prompts_first}
    ),
    Variant(
        "engine-time-slices",
        "all take turns, two ids each",
        "Engine",
        {"order": changes.slices, "admit": changes.takes_turns},
    ),
    Variant(
        "engine-admits-when-others-end",
        "requests are admitted when others end, and computed in the same step",
        "Engine",
        {"step": changes.admits_when_others_end},
    ),
    Variant(
        "engine-no-prefix-cache",
        "nothing is ever hit",
        "Engine",
        {"hits": pages.no_hits},
        unmet=("ENG-38", "ENG-53", "ENG-55"),
    ),
    Variant("engine-everything-anew", "all tokens computed in every step", "Engine", {"feed": changes.everything_anew}),
    Variant("engine-contiguous", "a contiguous memory for each request", "Engine", {"feed": changes.own_memory}),
    Variant("engine-latest-freed-first", "free pages are a stack", "Engine", {"take": changes.latest_freed_first}),
    Variant(
        "engine-never-preempts",
        "a request starts when there are pages for all of it",
        "Engine",
        {"admit": changes.all_it_will_need},
        unmet=("ENG-38", "ENG-53", "ENG-55"),
    ),
    Variant(
        "engine-latest-victim",
        "of the smallest priority who came last is preempted first",
        "Engine",
        {"victim": changes.latest_victim},
    ),
    Variant(
        "engine-prompts-cached",
        "only pages of prompts are cached",
        "Engine",
        {"written": changes.prompts_alone_cached},
        unmet=("ENG-53", "ENG-55"),
    ),
    Variant(
        "engine-keeps-guessed-pages", "pages for guesses are kept", "Engine", {"trim": changes.pages_of_guesses_kept}
    ),
    Variant("engine-latest-copy", "the later of two equal pages is hit", "Engine", {"publish": changes.latest_copy}),
    Variant(
        "engine-refuses-past-the-draft",
        "a draft's positions bound requests",
        "Engine",
        {"check": changes.fits_the_draft},
    ),
    Variant(
        "engine-guesses-within-the-draft",
        "nothing is guessed past the draft's positions",
        "Engine",
        {"most_guesses": changes.as_far_as_the_draft},
    ),
    Variant(
        "engine-without-a-failing-draft",
        "where the draft fails nothing is guessed",
        "Engine",
        {"guesses": changes.without_a_draft_that_fails},
    ),
    Variant(
        "engine-untold-before-the-first-id",
        "there are no metrics before the first id",
        "Engine",
        {"metrics": metrics.untold_before(1)},
    ),
    Variant("engine-captures-steps", "steps are captured after a dozen", "Engine", {"called": requests.captured}),
    Variant(
        "engine-row-by-row",
        "the rows of a step are computed one after the other",
        "Engine",
        {"step": requests.one_row_after_the_other},
    ),
    Variant(
        "engine-a-step-behind", "ids come out with the step after theirs", "Engine", {"served": behind.a_step_behind}
    ),
    Variant(
        "engine-draft-without-memory", "a draft that computes all anew", "Engine", {"guesses": changes.dense_draft}
    ),
    Variant(
        "engine-draft-unused",
        "a draft that is not used",
        "Engine",
        {"most_guesses": guesses.never_guesses},
        unmet=("ENG-41", "ENG-44"),
    ),
    Variant(
        "engine-slot-of-the-last",
        "the last id has a slot too: a request is refused where it would have none",
        "Engine",
        {"check_room": requests.all_ids_counted},
        envelope={"last_id_takes_slot": (True,)},
    ),
    *engine_ends.VARIANTS,
    *engine_beside.VARIANTS,
)
