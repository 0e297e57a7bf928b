"""Mistakes of samplers with rows, those without a distribution, views, and what should be refused."""

from __future__ import annotations

from inferspec.spec import sampling_sentences as spec
from inferspec.spec.changes import sampling as samplers
from inferspec.spec.changes import sampling_arrays as changes
from inferspec.spec.changes import sampling_filters as filters
from inferspec.spec.changes import threads
from inferspec.spec.contract import Fault
from inferspec.spec.faults.sampling_sources import SEEN
from inferspec.spec.faults.sources import BACKWARD_ROWS, FLASHINFER, TIRED
from inferspec.spec.mistakes import (
    first_row_for_all,
    ignores_strides,
    mutates,
    only_where,
    promotes,
    remembers,
    rows_in_order_of_memory,
    unguarded,
)

ROWS: tuple[Fault, ...] = (
    Fault(
        "sampler-shifts-by-the-batch",
        "the largest logit of the batch is subtracted from all rows, not each row's own",
        spec.SAMP_27,
        {"weights": samplers.shifted_by_the_batch},
        "PROPERTIES SA5, SA8",
    ),
    Fault(
        "sampler-wide-rows-past-64",
        "of more than 1024 ids, ids of rows past 64 are not written",
        spec.SAMP_27,
        {"respond": changes.drawn_rows_to_64},
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-one-number-for-all",
        "the first row's uniform number serves all rows",
        spec.SAMP_27,
        {"uniforms": changes.shared_number},
        TIRED,
    ),
    Fault(
        "sampler-first-row-for-all",
        "the first row of the batch serves all",
        spec.SAMP_27,
        first_row_for_all("logits"),
        TIRED,
    ),
    Fault(
        "sampler-rows-past-32",
        "ids of rows past 32 are not written",
        spec.SAMP_27,
        samplers.rows_to(32),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-rows-past-256",
        "ids of rows past 256 are not written",
        spec.SAMP_27,
        samplers.rows_to(256),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-nuclei-past-128",
        "what top_p leaves of the first row is left of rows past 128",
        spec.SAMP_27,
        samplers.rows_past_128(),
        "PROPERTIES X2, SA5",
    ),
    Fault(
        "sampler-dozens-past-128",
        "where top_k leaves more than 32, rows past 128 keep the ids of the first one",
        spec.SAMP_27,
        samplers.rows_past_128(of_dozens=True),
        "PROPERTIES X2, SA5",
    ),
    Fault(
        "sampler-strides-past-32",
        "where top_k leaves more than 32, logits are read as if they were contiguous",
        spec.SAMP_32,
        only_where(samplers.of_more_than_32, ignores_strides("logits")),
        "PROPERTIES X1, X2",
    ),
    Fault(
        "sampler-in-place-past-32",
        "where top_k leaves more than 32, the caller's logits are tempered and filtered in place",
        spec.SAMP_34,
        only_where(samplers.of_more_than_32, {"respond": changes.filters_in_place}),
        SEEN,
    ),
    Fault(
        "sampler-rows-past-65535",
        "ids of rows past 65535 are not written: a grid has no more",
        spec.SAMP_27,
        samplers.rows_to(65535),
        "PROPERTIES X2",
    ),
    Fault(
        "greedy-rows-past-32768",
        "of a vocabulary of one id, rows past 32768 give how many rows came before their block",
        spec.SAMP_27,
        {"greedy": changes.counted_from_the_block},
        "https://github.com/pytorch/pytorch/issues/38922",
    ),
    Fault(
        "sampler-columns-of-the-first-row",
        "places in the sorted rows are looked up in the first row's order",
        spec.SAMP_27,
        {"ids": changes.first_column},
        "the course's later reference sampler is wrong for B > 1",
    ),
)


FAULTS: tuple[Fault, ...] = (
    Fault(
        "sampler-one-broken-for-all",
        "one row without a distribution makes every id 0",
        spec.SAMP_30,
        {"rows": samplers.one_broken_for_all},
        "PROPERTIES SA8",
    ),
    Fault(
        "sampler-last-of-equals-beside-broken",
        "where a row of the batch has no distribution the last of equal logits is taken at temperature 0",
        spec.SAMP_30,
        {"greedy": changes.last_of_equals_beside_broken},
        "PROPERTIES SA6, SA8",
    ),
    Fault(
        "sampler-broken-row-past-the-end",
        "a row without a distribution gives the size of the vocabulary",
        spec.SAMP_30,
        {"without_distribution": lambda self, a: a.logits.shape[-1]},
        f"{FLASHINFER}/commit/78d0a06b7",
    ),
    Fault(
        "sampler-broken-row-of-many",
        "with a top_k, a row without a distribution among 512 or more gives -1",
        spec.SAMP_30,
        {"without_distribution": changes.before_the_first_of_many},
        "https://github.com/intel/torch-xpu-ops/issues/4839",
    ),
    Fault(
        "sampler-broken-row-last",
        "a row without a distribution gives the last id",
        spec.SAMP_31,
        {"without_distribution": changes.last_without_distribution},
        TIRED,
    ),
    Fault(
        "sampler-logits-strides",
        "logits are read as if they were contiguous",
        spec.SAMP_32,
        ignores_strides("logits"),
        "PROPERTIES X1",
    ),
    Fault(
        "sampler-backward-rows",
        "rows of logits that lie backwards are read in the order in which they lie",
        spec.SAMP_32,
        rows_in_order_of_memory("logits"),
        BACKWARD_ROWS,
    ),
    Fault(
        "sampler-greedy-logits-strides",
        "at temperature 0 logits are read as if they were contiguous",
        spec.SAMP_32,
        only_where(lambda a: a.temperature == 0, ignores_strides("logits")),
        TIRED,
    ),
    Fault(
        "sampler-uniform-strides",
        "uniform numbers are read as if they were contiguous",
        spec.SAMP_32,
        ignores_strides("uniform"),
        "PROPERTIES X1",
    ),
    Fault("sampler-float-ids", "ids come back as floating-point numbers", spec.SAMP_33, promotes(), TIRED),
    Fault(
        "sampler-keeps-the-axis",
        "ids come back as a column",
        spec.SAMP_33,
        {"respond": changes.with_column},
        "PROPERTIES X4",
    ),
    Fault(
        "sampler-in-place",
        "the caller's logits are tempered and filtered in place",
        spec.SAMP_34,
        {"respond": changes.filters_in_place},
        SEEN,
    ),
    Fault(
        "sampler-in-place-at-temperature-0",
        "at temperature 0, where no quotient stands in for them, the caller's logits are filtered in place",
        spec.SAMP_34,
        only_where(lambda a: a.temperature == 0, {"respond": changes.filters_in_place}),
        SEEN,
    ),
    Fault("sampler-changes-uniform", "the uniform numbers are overwritten", spec.SAMP_34, mutates("uniform"), TIRED),
    Fault(
        "sampler-draws-in-vain",
        "a global generator is drawn from although uniform numbers are given",
        spec.SAMP_35,
        {"respond": changes.draws_in_vain},
        "PROPERTIES X7",
    ),
    Fault(
        "sampler-numbers-of-the-refused",
        "the uniform numbers of a call that was refused serve the next one",
        spec.SAMP_35,
        changes.numbers_of_the_refused(),
        TIRED,
    ),
    Fault(
        "sampler-remembers-uniform",
        "the uniform numbers of the first call of a shape serve later ones",
        spec.SAMP_35,
        {"respond": changes.keeps_numbers},
        f"{FLASHINFER}/commit/82784bb11",
    ),
    Fault(
        "sampler-remembers-logits",
        "probabilities cached by shape serve other logits",
        spec.SAMP_35,
        remembers("logits"),
        f"{FLASHINFER}/commit/82784bb11",
    ),
    Fault(
        "sampler-settings-of-the-latest",
        "settings are kept on the class: those of the sampler that was made last serve all",
        spec.SAMP_35,
        {"respond": changes.with_the_latest_settings},
        "PROPERTIES X7",
    ),
    Fault(
        "sampler-limit-of-the-first",
        "how many ids a sampler's top_k leaves is found out for the first vocabulary that it is given",
        spec.SAMP_35,
        {"limit": filters.limit_of_the_first},
        "PROPERTIES X7",
    ),
    Fault(
        "sampler-dtype-of-the-first",
        "a sampler takes all logits in the dtype of the first ones that it is given",
        spec.SAMP_35,
        {"rows": changes.in_the_first_dtype},
        "PROPERTIES X7",
    ),
    Fault(
        "sampler-absolute-temperature",
        "a negative temperature counts as its absolute value",
        spec.SAMP_36,
        {"guard_temperature": lambda self, a: None, "tempered": changes.absolute},
        "PROPERTIES X9",
    ),
    Fault(
        "sampler-nan-temperature",
        "only a temperature below 0 is refused: NaN passes every comparison",
        spec.SAMP_46,
        {"guard_temperature": changes.below_zero_alone},
        "PROPERTIES X9, SA8",
    ),
    Fault(
        "sampler-any-top-p",
        "any top_p is compared as it is",
        spec.SAMP_37,
        unguarded("guard_top_p"),
        "PROPERTIES X9",
    ),
    Fault(
        "sampler-any-top-p-at-temperature-0",
        "at temperature 0 no limit is looked at",
        spec.SAMP_37,
        {"guard_top_p": changes.no_limits_at_temperature_0},
        "PROPERTIES X9",
    ),
    Fault(
        "sampler-resizes-uniform",
        "uniform numbers of another shape are repeated or cut short",
        spec.SAMP_38,
        {"guard_uniform_shape": lambda self, a: None, "uniforms": changes.numbers_resized},
        "PROPERTIES X9",
    ),
    Fault(
        "sampler-any-number",
        "any number is taken for a uniform one",
        spec.SAMP_39,
        unguarded("guard_uniform_range"),
        "PROPERTIES X9",
    ),
    Fault(
        "sampler-bound-to-its-thread",
        "what was not computed when a sampler was made cannot be in another thread",
        spec.SAMP_52,
        threads.bound_to_its_thread(),
        "https://github.com/ml-explore/mlx-lm/pull/1090",
    ),
)
