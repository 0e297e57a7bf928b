"""Mistakes of samplers that draw from a generator of their own."""

from __future__ import annotations

import numpy as np

from inferspec.spec import sampling_sentences as spec
from inferspec.spec.changes import sampling_arrays as arrays
from inferspec.spec.changes import sampling_generators as changes
from inferspec.spec.changes import threads
from inferspec.spec.contract import Fault
from inferspec.spec.faults.sampling_sources import COURSE_REPO, VLLM_METAL
from inferspec.spec.faults.sources import FLASHINFER, TIRED

FAULTS: tuple[Fault, ...] = (
    Fault(
        "own-temperature-a-little-off",
        "the temperature is a tenth too high",
        spec.SAMP_40,
        changes.own_tempered(1.1),
        TIRED,
    ),
    Fault(
        "own-noise-in-bfloat16",
        "the noise is made in bfloat16, in 256 steps",
        spec.SAMP_40,
        changes.own(changes.in_bfloat16),
        "PROPERTIES X5",
    ),
    Fault("own-id-before", "the id before the right one is drawn", spec.SAMP_40, {"ids": changes.next_in_own}, TIRED),
    Fault(
        "own-race-with-zeros",
        "noise of exactly 0 lets an id win that was filtered out",
        spec.SAMP_41,
        {"ids": changes.race_with_zeros},
        f"{VLLM_METAL}/commit/bd32be8",
    ),
    Fault(
        "own-unfiltered-when-tempered",
        "with a temperature, ids that top_p leaves out come too",
        spec.SAMP_41,
        {"survivors": changes.all_where_tempered},
        "https://github.com/Blaizzy/mlx-vlm/commit/c7aaf2db (a path of its own for a batch)",
    ),
    Fault(
        "own-floor-of-probabilities",
        "an epsilon is added to every probability, so that rare ids come far too often",
        spec.SAMP_41,
        {"ids": changes.floored_probabilities},
        f"{FLASHINFER}/commit/006fe19a4",
    ),
    Fault(
        "own-one-number-for-all",
        "one draw serves all rows",
        spec.SAMP_42,
        changes.own(arrays.shared_number),
        "PROPERTIES SA5",
    ),
    Fault(
        "own-halves-share",
        "the second half of a batch gets the numbers of the first",
        spec.SAMP_42,
        changes.own(changes.halves_share),
        "PROPERTIES SA5",
    ),
    Fault(
        "own-low-discrepancy",
        "neighbouring rows are tied to each other by a sequence that fills [0, 1) evenly",
        spec.SAMP_42,
        changes.own(changes.low_discrepancy),
        TIRED,
    ),
    Fault(
        "own-seeded-anew",
        "with a seed, the generator begins again with each call",
        spec.SAMP_43,
        {"generator": changes.seeded_anew},
        "PROPERTIES SA9",
    ),
    Fault(
        "own-few-rows-share",
        "up to four rows get one number",
        spec.SAMP_42,
        changes.own(changes.few_share),
        "PROPERTIES SA5",
    ),
    Fault(
        "own-strata",
        "the numbers of a batch are spread evenly over [0, 1)",
        spec.SAMP_42,
        changes.own(changes.strata),
        "Kitagawa 1996 (the stratified resampling of particle filters)",
    ),
    Fault(
        "own-alone-from-the-start",
        "the generator starts again with each call of one row",
        spec.SAMP_43,
        changes.own(changes.alone_from_the_start),
        "PROPERTIES SA9",
    ),
    Fault(
        "own-alone-in-halves",
        "the numbers of lone rows stay below a half",
        spec.SAMP_40,
        changes.own(changes.alone_in_halves),
        "PROPERTIES SA7",
    ),
    Fault(
        "own-sticky",
        "every tenth row repeats the number before it",
        spec.SAMP_42,
        changes.own(changes.sticky),
        "PROPERTIES SA9",
    ),
    Fault(
        "own-seed-on-each-call",
        "the generator starts again with each call",
        spec.SAMP_43,
        {"generator": changes.same_seed},
        "PROPERTIES SA9",
    ),
    Fault(
        "own-seed-ignored",
        "the seed is ignored",
        spec.SAMP_44,
        {"generator": changes.seed_ignored},
        "PROPERTIES SA9",
    ),
    Fault(
        "own-seed-of-all",
        "samplers share one stream, which begins anew where one with a seed is made",
        spec.SAMP_44,
        {"generator": changes.stream_of_the_class},
        "mlx.core.random.seed in a constructor",
    ),
    Fault(
        "own-same-beginning",
        "every sampler that is given no seed begins with the seed 0",
        spec.SAMP_51,
        {"generator": changes.same_beginning},
        "jax.random.key(0) in a constructor",
    ),
    Fault(
        "own-same-in-another-thread",
        "in another thread than the one that compiled a draw every draw begins with the same state",
        spec.SAMP_52,
        threads.begins_anew_with_each_call(),
        "https://github.com/ml-explore/mlx-lm/pull/1537",
    ),
    Fault("own-one-seed", "every seed is the same", spec.SAMP_44, {"generator": changes.one_seed}, "PROPERTIES SA9"),
    Fault(
        "own-seed-0-is-none",
        "the seed 0 is taken for none",
        spec.SAMP_44,
        {"generator": changes.zero_is_none},
        "https://github.com/InternLM/lmdeploy/issues/4525",
    ),
    Fault(
        "own-seed-in-float32",
        "of large seeds the low bits are lost",
        spec.SAMP_44,
        changes.seed_as(lambda seed: int(np.float32(seed))),
        "https://github.com/vllm-project/vllm-ascend/pull/9693",
    ),
    Fault(
        "own-seed-of-16-bits",
        "of a seed the high bits are lost",
        spec.SAMP_44,
        changes.seed_as(lambda seed: seed & 0xFFFF),
        "https://github.com/numpy/numpy/pull/4676 (of 32 bits)",
    ),
    Fault(
        "own-seed-0-sticks",
        "every number that follows the seed 0 is 0",
        spec.SAMP_42,
        {"uniforms": changes.zero_sticks},
        "https://github.com/warpfront/hipfire/pull/627",
    ),
    Fault(
        "own-seeded-at-one",
        "with a seed, the temperature is ignored",
        spec.SAMP_40,
        {"tempered": changes.seeded_at_one},
        TIRED,
    ),
    Fault(
        "own-blocks-of-rows",
        "each block of 4096 rows gets the numbers of the first",
        spec.SAMP_42,
        changes.blocks_of(4096),
        "PROPERTIES SA9",
    ),
    Fault(
        "own-blocks-of-8192-rows",
        "each block of 8192 rows gets the numbers of the first",
        spec.SAMP_42,
        changes.blocks_of(8192),
        "PROPERTIES SA9",
    ),
    Fault(
        "own-stream-slides-by-one",
        "the generator goes on by one number with each call, however many rows it has",
        spec.SAMP_43,
        changes.own(changes.sliding),
        "PROPERTIES SA9",
    ),
    Fault(
        "own-without-crossing",
        "the id that reaches top_p is not drawn by a generator of its own",
        spec.SAMP_24,
        {"top_p": changes.without_crossing},
        f"{COURSE_REPO}, students' samplers",
    ),
    Fault(
        "own-noise-cut",
        "Gumbel noise is made from numbers up to 0.999, so that many ids together come too rarely",
        spec.SAMP_40,
        {"ids": changes.noise_cut},
        "https://github.com/huggingface/candle/commit/d4bac37a6",
    ),
    Fault(
        "own-seeded-blocks-of-rows",
        "with a seed, each block of 256 rows gets the numbers of the first",
        spec.SAMP_42,
        {"uniforms": changes.seeded_blocks},
        "PROPERTIES SA9",
    ),
)
