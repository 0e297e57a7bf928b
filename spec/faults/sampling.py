"""Mistakes in filters and samplers, and other honest ways to compute them."""

from __future__ import annotations

import numpy as np

from inferspec.spec import sampling_sentences as spec
from inferspec.spec.changes import sampling as changes
from inferspec.spec.changes import sampling_filters as filters
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.faults import sampling_arrays, sampling_filters, sampling_generators
from inferspec.spec.faults.sampling_sources import VLLM, VLLM_METAL
from inferspec.spec.faults.sources import FLASHINFER, MLX, TIRED
from inferspec.spec.numerics import Precision
from inferspec.spec.sampling import ANY_OF_EQUALS, BY_ORDER, Sampler

_SAMPLERS = (
    Fault(
        "sampler-without-millionths",
        "ids of less than a millionth of the probability are not among those that reach top_p",
        spec.SAMP_29,
        {"top_p": changes.without_millionths},
        "https://github.com/turboderp-org/exllamav2/commit/92a9828450ee9351078d00f33c741b6b47967afc",
    ),
    Fault(
        "sampler-top-p-exactly-reached",
        "where p is reached exactly one id more is drawn: <= for <",
        spec.SAMP_48,
        changes.top_p_by(changes.up_to_p),
        TIRED,
    ),
    Fault(
        "greedy-last-of-equals",
        "of equal largest logits the highest id is taken",
        spec.SAMP_21,
        {"greedy": changes.last_of_equal_greedy},
        TIRED,
    ),
    Fault(
        "greedy-bfloat16-minus-zero-below-zero",
        "in bfloat16 a 0 goes before a -0 that comes first",
        spec.SAMP_21,
        {"greedy": changes.bfloat16_minus_zero_below_zero},
        "https://github.com/tenstorrent/tt-metal/issues/55346",
    ),
    Fault(
        "greedy-of-log-probabilities",
        "logits are normalised in their dtype first, which may leave neighbours equal",
        spec.SAMP_21,
        {"greedy": changes.greedy_of_log_probabilities},
        "https://github.com/ml-explore/mlx-examples/commit/3d793ecf6887512fd81f0f0c6bd156c06a6eaf88",
    ),
    *(
        Fault(
            f"greedy-in-{dtype}",
            f"the largest logit is looked for in {dtype}",
            spec.SAMP_21,
            {"greedy": changes.greedy_in(dtype)},
            TIRED,
        )
        for dtype in ("float16", "bfloat16")
    ),
    Fault(
        "greedy-lowest-thread-of-equals",
        "of equal largest logits that of the lowest thread is taken, of 256 that go over every 256th id",
        spec.SAMP_21,
        {"greedy": changes.lowest_thread_of_equals},
        "https://github.com/NVIDIA/TensorRT-Model-Connect/pull/1157",
    ),
    Fault(
        "greedy-part-beside-padding-lost",
        "negative logits that share a part of the vocabulary with the zeros of its padding are never the largest",
        spec.SAMP_21,
        {"greedy": changes.part_beside_padding_lost},
        "https://github.com/mirage-project/mirage/issues/752",
    ),
    Fault(
        "greedy-is-temperature-one",
        "a temperature of 0 counts as not given: `temperature or 1`",
        spec.SAMP_21,
        {"respond": changes.or_one},
        "`scale or default` when scale is 0",
    ),
    Fault(
        "greedy-is-tiny-temperature",
        "temperature 0 draws at a tiny temperature, at random among equal logits",
        spec.SAMP_21,
        {"respond": changes.tiny_for_zero},
        TIRED,
    ),
    Fault(
        "sampler-by-probability",
        "the cdf runs from the most likely id on",
        spec.SAMP_22,
        {"ids": changes.by_probability},
        TIRED,
    ),
    Fault(
        "sampler-first-to-reach",
        "the first id whose cdf reaches the uniform number is given: searchsorted from the left",
        spec.SAMP_50,
        {"ids": changes.from_zero_up},
        "https://numpy.org/doc/stable/reference/generated/numpy.searchsorted.html",
    ),
    Fault("sampler-next-id", "the id after the right one is given", spec.SAMP_22, {"ids": changes.next_id}, TIRED),
    Fault(
        "sampler-turned-number",
        "1 - u is taken for u",
        spec.SAMP_22,
        {"uniforms": lambda self, a, rows: 1 - Sampler.uniforms(self, a, rows)},
        TIRED,
    ),
    Fault(
        "sampler-ignores-temperature",
        "the temperature is ignored",
        spec.SAMP_22,
        {"tempered": lambda self, z, a: z},
        TIRED,
    ),
    Fault(
        "sampler-multiplies-temperature",
        "logits are multiplied by the temperature",
        spec.SAMP_22,
        {"tempered": lambda self, z, a: z * a.temperature},
        TIRED,
    ),
    Fault(
        "sampler-sums-not-shared-out",
        "sums that do not end at 1 are compared with the uniform number",
        spec.SAMP_22,
        {"ids": changes.of_the_largest},
        TIRED,
    ),
    Fault(
        "sampler-zero-takes-the-first",
        "a uniform number of 0 gives id 0 whatever its probability",
        spec.SAMP_23,
        {"ids": changes.from_zero_up},
        f"{VLLM_METAL}/commit/bd32be8",
    ),
    Fault(
        "sampler-151936-ids-alone",
        "ids past the vocabulary of one family of models are never drawn",
        spec.SAMP_29,
        {"weights": changes.of_the_first(151936)},
        TIRED,
    ),
    Fault(
        "sampler-greedy-of-151936",
        "ids past the vocabulary of one family of models are never the most likely",
        spec.SAMP_21,
        {"greedy": lambda self, z, kept, a: np.argmax(np.where(kept, z, -np.inf)[:, :151936], axis=-1)},
        TIRED,
    ),
    Fault(
        "sampler-past-the-vocabulary",
        "a uniform number close to 1 gives an id past the vocabulary",
        spec.SAMP_23,
        {"ids": changes.counted(clamp=False)},
        f"{FLASHINFER}/commit/78d0a06b7",
    ),
    Fault(
        "sampler-clamped-to-the-last",
        "a uniform number close to 1 gives the last id, filtered out or not",
        spec.SAMP_23,
        {"ids": changes.counted(clamp=True)},
        "https://github.com/apache/mxnet/issues/19073",
    ),
    Fault(
        "sampler-clamped-to-a-hidden-one",
        "a uniform number close to 1 gives the last id that the filters leave, be it of no probability: -inf is no filter",
        spec.SAMP_23,
        {"ids": changes.counted_among_filtered},
        TIRED,
    ),
    Fault(
        "sampler-falls-to-the-first",
        "where no cdf exceeds the largest uniform numbers the id is 0, filtered out or not",
        spec.SAMP_23,
        {"ids": changes.never_past},
        TIRED,
    ),
    Fault(
        "sampler-unfiltered",
        "ids are drawn from all logits when there is a temperature",
        spec.SAMP_24,
        {"survivors": changes.unfiltered},
        f"the kind of {VLLM_METAL}/commit/55b6144",
    ),
    Fault(
        "sampler-not-shared-out",
        "what the filters took away falls to the last survivor",
        spec.SAMP_24,
        {"ids": changes.cut_without_sharing},
        "PROPERTIES SA4",
    ),
    Fault(
        "sampler-top-p-of-the-whole",
        "top_p counts the probability that top_k took away",
        spec.SAMP_24,
        {"top_p": changes.of_the_whole_mass},
        "PROPERTIES SA4",
    ),
    Fault(
        "sampler-top-p-shares-of-all-equal",
        "the probability that top_k left is that of all that are equal to the k-th",
        spec.SAMP_24,
        {"top_p": filters.shares_of_all_equal},
        "PROPERTIES SA4",
    ),
    Fault(
        "sampler-top-p-not-beside-0",
        "a top_k of 0 ends the filters, whatever top_p is",
        spec.SAMP_24,
        changes.not_beside(0),
        TIRED,
    ),
    Fault(
        "sampler-top-p-of-both-in-bfloat16",
        "where there is a top_k too, the probabilities that top_p sees are in bfloat16, their sums in float32",
        spec.SAMP_29,
        changes.shares_of_both_in("bfloat16"),
        TIRED,
    ),
    Fault(
        "sampler-top-p-not-beside-all",
        "a top_k of the whole vocabulary or more ends the filters, whatever top_p is",
        spec.SAMP_24,
        {"top_p": changes.not_beside_all},
        TIRED,
    ),
    Fault(
        "sampler-top-p-of-the-whole-past-32",
        "where top_k leaves more than 32, top_p counts the probability that it took away",
        spec.SAMP_24,
        changes.past_32(changes.of_the_whole_mass),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-tempered-top-p-of-the-whole-past-32",
        "with a temperature, where top_k leaves more than 32, top_p counts the probability that it took away",
        spec.SAMP_24,
        {"top_p": changes.tempered_and_of_the_whole_past_32},
        "PROPERTIES SA4, X2",
    ),
    Fault(
        "sampler-lone-id-past-the-vocabulary",
        "where one id alone is not hidden, a limit past the vocabulary gives no id at all",
        spec.SAMP_24,
        {"respond": changes.past_a_huge_limit},
        f"{FLASHINFER}/issues/384",
    ),
    Fault(
        "sampler-all-equals",
        "all ids whose logits are equal to the k-th may be drawn",
        spec.SAMP_45,
        {"top_k": changes.by_value},
        f"{VLLM}/pull/50979",
    ),
    Fault(
        "sampler-many-negative-logits",
        "the largest logit is found by its bits as a signed number: with a limit past 128, logits that are all negative give id 0",
        spec.SAMP_24,
        {"top_k": changes.first_of_the_negative},
        "https://github.com/kekzl/imp/issues/1305",
    ),
    Fault(
        "greedy-only-choice-lost",
        "where one id alone is not hidden, the first is given: nothing that is compared is larger than the start",
        spec.SAMP_21,
        {"greedy": changes.only_choice_lost},
        TIRED,
    ),
    Fault(
        "greedy-saturates",
        "logits past the range of float16 are its largest number, and alike",
        spec.SAMP_21,
        {"greedy": changes.saturated_greedy},
        TIRED,
    ),
    Fault(
        "sampler-top-k-at-most-256",
        "ids are drawn from no more than 256",
        spec.SAMP_24,
        changes.at_most(256),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-top-k-at-most-1024",
        "ids are drawn from no more than 1024",
        spec.SAMP_24,
        changes.at_most(1024),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-top-k-at-most-1024-of-100000",
        "of 100,000 ids and more ids are drawn from no more than 1024",
        spec.SAMP_24,
        changes.wide(changes.at_most(1024), 100_000),
        "https://github.com/sgl-project/sglang/issues/35257",
    ),
    Fault(
        "sampler-nucleus-of-256",
        "with a top_p, ids are drawn from the 256 likeliest",
        spec.SAMP_24,
        {"limit": changes.nucleus_of_256},
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-last-of-equals",
        "of equal logits at the cut those of the highest ids may be drawn",
        spec.SAMP_45,
        {"order": changes.last_of_equals},
        TIRED,
    ),
    Fault(
        "sampler-tempered-twice",
        "top_p sees probabilities with the temperature applied twice",
        spec.SAMP_25,
        {"survivors": changes.seen_after_it_twice},
        TIRED,
    ),
    Fault(
        "sampler-wide-tempered-twice",
        "of more than 4096 ids, with a top_p, logits are divided by the temperature twice",
        spec.SAMP_25,
        changes.wide({"tempered": changes.tempered_twice_with_top_p}, 4096),
        "https://github.com/RL-Align/RL-Kernel/pull/86",
    ),
    *(
        Fault(
            f"sampler-order-past-{size}",
            f"top_p comes before the temperature where there are more than {size} ids, and after it where there are fewer",
            spec.SAMP_25,
            changes.wide({"survivors": changes.seen_before_temperature}, size),
            "https://github.com/sgl-project/sglang-jax/pull/1563",
        )
        for size in (4096, 32768)
    ),
    Fault(
        "sampler-lone-row-filtered-first",
        "top_p comes before the temperature for one row, and after it in batches",
        spec.SAMP_25,
        {"survivors": changes.seen_before_temperature_alone},
        "https://github.com/Blaizzy/mlx-vlm/commit/c7aaf2db (a path of its own for a batch)",
    ),
    Fault(
        "sampler-lone-row-unfiltered",
        "with a temperature, one row is drawn from all ids, whatever top_p",
        spec.SAMP_24,
        {"survivors": changes.all_of_a_lone_row},
        "https://github.com/Blaizzy/mlx-vlm/commit/c7aaf2db (a path of its own for a batch)",
    ),
    Fault(
        "sampler-first-nucleus-for-all",
        "with a temperature, what top_p leaves of the first row is left of all rows",
        spec.SAMP_27,
        {"survivors": changes.nucleus_of_the_first_row},
        "https://github.com/ml-explore/mlx-lm/commit/2922cb4f",
    ),
    Fault(
        "sampler-two-decimals",
        "the temperature is rounded to two decimals",
        spec.SAMP_29,
        {"tempered": changes.tempered_to_two_decimals},
        TIRED,
    ),
    Fault(
        "sampler-order-by-temperature",
        "top_p comes after a temperature below 1, and before one above 1",
        spec.SAMP_25,
        {"survivors": changes.seen_after_cooling_alone},
        TIRED,
    ),
    Fault(
        "sampler-order-near-one",
        "top_p comes before a temperature between 0.5 and 2, and after any other",
        spec.SAMP_25,
        {"survivors": changes.seen_before_mild_temperatures},
        TIRED,
    ),
    Fault(
        "sampler-filters-first",
        "top_p sees the probabilities before the temperature",
        spec.SAMP_26,
        {"survivors": changes.seen_before_temperature},
        "llama.cpp's, mlx-lm's and the course's order",
    ),
    *sampling_arrays.ROWS,
    Fault(
        "sampler-without-shift",
        "exp of the logits as they are overflows",
        spec.SAMP_28,
        {"weights": changes.without_shift},
        f"{MLX}/commit/d935276de",
    ),
    Fault(
        "sampler-by-float32-logarithm",
        "probabilities are exp(x - logsumexp(x)), which float32 cannot tell far from zero, and are taken to sum to 1",
        spec.SAMP_28,
        {"weights": changes.by_float32_logarithm, "ids": changes.of_the_largest},
        f"{MLX}/pull/4169",
    ),
    Fault(
        "sampler-hidden-as-zero",
        "-inf is replaced by 0 before the softmax",
        spec.SAMP_28,
        {"weights": changes.hidden_as_zero, "survivors": lambda self, z, x, a: np.ones_like(z, bool)},
        TIRED,
    ),
    Fault(
        "sampler-temperature-floor",
        "a temperature below 0.01 counts as 0.01",
        spec.SAMP_28,
        {"tempered": changes.floor_of_a_hundredth},
        f"{VLLM}, SamplingParams (on purpose, with a warning)",
    ),
    Fault(
        "sampler-temperature-floor-where-filtered",
        "a temperature below 0.01 counts as 0.01 where there is a filter",
        spec.SAMP_28,
        {"tempered": changes.floor_where_filtered},
        TIRED,
    ),
    Fault(
        "sampler-temperature-ceiling",
        "a temperature above 10000 counts as 10000, also where logits are as large",
        spec.SAMP_28,
        {"tempered": changes.ceiling},
        TIRED,
    ),
    Fault(
        "sampler-greedy-when-cold",
        "a temperature below 1e-5 counts as 0, also where logits are equal",
        spec.SAMP_28,
        {"chosen": changes.greedy_when_cold},
        f"{VLLM}, _SAMPLING_EPS",
    ),
    Fault(
        "sampler-sums-in-dtype",
        "probabilities are summed in the dtype of the logits",
        spec.SAMP_29,
        {"ids": changes.cdf_in_dtype},
        "PROPERTIES X5",
    ),
    Fault(
        "sampler-top-p-in-dtype",
        "the probabilities that top_p sees are in the dtype of the logits, their sums in float32",
        spec.SAMP_29,
        changes.shares_in(None),
        "https://github.com/NVIDIA/Megatron-LM/pull/7182",
    ),
    Fault("sampler-uint16-ids", "ids are kept in 16 bits", spec.SAMP_29, {"ids": changes.wrapped(16)}, "PROPERTIES X8"),
    Fault("sampler-int16-ids", "ids are kept in 15 bits", spec.SAMP_29, {"ids": changes.wrapped(15)}, "PROPERTIES X8"),
    *sampling_arrays.FAULTS,
    Fault(
        "greedy-wide-last-block-of-equals",
        "of equal largest logits in several blocks of 1024 that of the last block is taken",
        spec.SAMP_21,
        changes.wide({"greedy": changes.last_of_equals_in_rows}, 1024),
        "PROPERTIES X2",
    ),
    Fault(
        "greedy-wide-in-float16",
        "the largest of more than 8192 logits is looked for in float16",
        spec.SAMP_21,
        changes.wide({"greedy": changes.greedy_in("float16")}),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-wide-without-the-last",
        "of more than 50000 ids the last one is never drawn",
        spec.SAMP_22,
        changes.wide({"respond": changes.without_the_last}, 50_000),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-wide-without-temperature",
        "the temperature is ignored for more than 8192 ids",
        spec.SAMP_22,
        changes.wide({"tempered": lambda self, z, a: z}),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-wide-without-shift",
        "exp of more than 8192 logits as they are overflows",
        spec.SAMP_22,
        changes.wide({"weights": changes.without_shift}),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-wide-at-most-64",
        "of more than 8192 ids no more than 64 are drawn from",
        spec.SAMP_24,
        changes.wide(changes.at_most(64)),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-wide-eight-of-a-block",
        "of more than 8192 ids no more than eight of a block of 1024 are drawn from",
        spec.SAMP_24,
        changes.wide({"top_k": changes.eight_of_each_block}),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-wide-filters-first",
        "top_p sees the probabilities before the temperature where there are more than 256 ids",
        spec.SAMP_26,
        changes.wide({"survivors": changes.seen_before_temperature}, 256),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-wide-rows-past-8",
        "ids of rows past 8 are not written where there are more than 4096",
        spec.SAMP_27,
        changes.wide(changes.rows_to(8), 4096),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-coarse-number",
        "uniform numbers are taken in steps of 2^-16",
        spec.SAMP_29,
        {"uniforms": changes.coarse_number},
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-weights-in-float16",
        "exp(x - max) is kept in float16",
        spec.SAMP_29,
        {"weights": changes.weights_in_float16},
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-wide-broken-for-all",
        "one row of more than 256 ids without a distribution makes every id 0",
        spec.SAMP_30,
        changes.wide({"rows": changes.one_broken_for_all}, 256),
        "PROPERTIES X2",
    ),
    Fault(
        "sampler-wide-strides",
        "more than 256 logits are read as if they were contiguous",
        spec.SAMP_32,
        changes.wide({"respond": changes.wide_strides}, 256),
        "PROPERTIES X2",
    ),
)


_SORTED = tuple(
    Fault(f"sampler-sorted-{name}", text, spec.SAMP_22, change, TIRED, BY_ORDER)
    for name, text, change in (
        ("by-id", "ids are drawn as they are numbered, and not in their order", {"draws_by": lambda self: "id"}),
        ("places", "the place of an id in the order comes out for the id", {"sorted_ids": changes.places_for_ids}),
        ("ascending", "the least likely id comes first in the cdf", {"sorted_ids": changes.likeliest_last}),
        ("first-row", "the order of the first row is that of all rows", {"sorted_ids": changes.order_of_the_first_row}),
        ("weights-by-id", "probabilities stay as ids are numbered", {"sorted_ids": changes.weights_by_id}),
    )
)
"""Mistakes of who draws from sorted ids."""

_SORTED_IF_FILTERED = tuple(
    Fault(f"sampler-sorted-{name}", text, spec.SAMP_24, change, TIRED, {"draws_by": (way,)})
    for name, text, way, change in (
        (
            "places-if-filtered",
            "where a filter has sorted the ids, the place of one in the order comes out for it",
            "order if filtered",
            {"sorted_ids": changes.places_for_ids},
        ),
        (
            "first-row-if-top-k",
            "where top_k has sorted the ids, the order of the first row is that of all rows",
            "order if top_k",
            {"sorted_ids": changes.order_of_the_first_row},
        ),
        (
            "weights-by-id-if-top-p",
            "where top_p has sorted the ids, probabilities stay as ids are numbered",
            "rising if top_p",
            {"sorted_ids": changes.weights_by_id},
        ),
    )
)
"""Mistakes of who draws from sorted ids where it sorted them."""

FAULTS: tuple[Fault, ...] = (
    *sampling_filters.FAULTS,
    *_SAMPLERS,
    *sampling_generators.FAULTS,
    *_SORTED,
    *_SORTED_IF_FILTERED,
)


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "filter-in-float32",
        "softmax and exclusive sums in float32",
        "filter_logits",
        {"weights": changes.weights_in("float32"), "before": changes.exclusive_in_float32},
    ),
    Variant(
        "filter-ascending", "float32 sums from the least likely id on", "filter_logits", changes.ascending("float32")
    ),
    Variant(
        "filter-ascending-in-dtype",
        "sums from the least likely id on, in the dtype of the logits",
        "filter_logits",
        changes.ascending(None),
        Precision.NATIVE,
    ),
    Variant(
        "sampler-in-float32",
        "logits divided by the temperature, softmax and normalised cdf in float32",
        "Sampler",
        {
            "tempered": changes.divided_in_float32,
            "weights": changes.weights_in("float32"),
            "before": changes.exclusive_in_float32,
            "ids": changes.normalised_cdf,
        },
    ),
    Variant(
        "sampler-sorted",
        "ids are drawn in the order of their logits, in float32",
        "Sampler",
        {"tempered": changes.divided_in_float32, "weights": changes.weights_in("float32")},
        envelope=BY_ORDER,
    ),
    Variant(
        "sampler-sorted-probabilities",
        "ids are drawn in the order of their probabilities in float32, of which more are equal than of the logits",
        "Sampler",
        {
            "tempered": changes.divided_in_float32,
            "weights": changes.weights_in("float32"),
            "sorted_ids": changes.order_of_the_probabilities,
        },
        envelope=BY_ORDER,
    ),
    Variant(
        "sampler-rising",
        "ids are drawn in the order of their logits, the smallest first and of equal ones the highest, in float32",
        "Sampler",
        {"sorted_ids": changes.reversed_order, "weights": changes.weights_in("float32")},
        envelope={"draws_by": ("rising",)},
    ),
    Variant(
        "sampler-sorted-if-filtered",
        "ids are drawn in the order of their logits where there is a filter, a top_k of all ids too",
        "Sampler",
        {"way": changes.sorted_for_any_limit, "weights": changes.weights_in("float32")},
        envelope={"draws_by": ("order if filtered",)},
    ),
    Variant(
        "sampler-sorted-if-top-k",
        "ids are drawn in the order of their logits where there is a top_k, as it was gathered",
        "Sampler",
        {"tempered": changes.divided_in_float32, "weights": changes.weights_in("float32")},
        envelope={"draws_by": ("order if top_k",)},
    ),
    Variant(
        "sampler-rising-if-top-p",
        "ids are drawn in the order of their logits, the smallest first, where there is a top_p",
        "Sampler",
        {"tempered": changes.divided_in_float32, "weights": changes.weights_in("float32")},
        envelope={"draws_by": ("rising if top_p",)},
    ),
    Variant(
        "sampler-sorted-any-of-equals",
        "ids are drawn in the order of their logits, of equal ones the highest first, as is said",
        "Sampler",
        {"order": changes.last_of_equals, "greedy": changes.greedy_of_all, "tempered": changes.divided_in_float32},
        envelope={**BY_ORDER, **ANY_OF_EQUALS},
    ),
    Variant(
        "filter-any-of-equals",
        "of equal ids the highest survive, as is said",
        "filter_logits",
        {"order": changes.last_of_equals},
        envelope=ANY_OF_EQUALS,
    ),
    Variant(
        "filter-all-equals-said",
        "all logits equal to the k-th survive, as is said",
        "filter_logits",
        {"top_k": changes.by_value},
        envelope=ANY_OF_EQUALS,
    ),
    Variant(
        "sampler-any-of-equals",
        "of equal ids at a cut the highest may be drawn, as is said",
        "Sampler",
        {"order": changes.last_of_equals, "greedy": changes.greedy_of_all},
        envelope=ANY_OF_EQUALS,
    ),
    Variant(
        "sampler-filtered-before-greedy",
        "at temperature 0 too filters come first, which leave the highest of equal ids, as is said",
        "Sampler",
        {"order": changes.last_of_equals},
        envelope=ANY_OF_EQUALS,
    ),
    Variant(
        "sampler-all-equals-said",
        "all ids whose logits are equal to the k-th may be drawn, as is said",
        "Sampler",
        {"top_k": changes.by_value},
        envelope=ANY_OF_EQUALS,
    ),
    Variant(
        "sampler-times-inverse",
        "logits multiplied by the inverse of the temperature in float32; a Gumbel-max draw of its own",
        "Sampler",
        {"tempered": changes.times_inverse, "weights": changes.weights_in("float32"), "ids": changes.gumbel},
    ),
)
