"""Mistakes that several operations on packed weights have alike, and where they are documented."""

from __future__ import annotations

from inferspec.spec.changes import quantization_products as products
from inferspec.spec.contract import Fault, Requirement
from inferspec.spec.faults.sources import BUFFER_IN_USE, MLX, TIRED, UNALIGNED
from inferspec.spec.mistakes import (
    copies_the_first_view,
    defaults_to,
    drifts,
    ignores_strides,
    in_half,
    lacks_a_feature,
    mutates,
    of_many_rows,
    only_where,
    paths_break_promises,
    paths_lack_a_feature,
    paths_misread,
    promotes,
    promotes_where,
    reads_16_bytes_at_once,
    remembers,
    swaps_batches,
    takes_all_that_lies_behind,
)

AS_MOST_ARE = {
    "tokens": (range(1, 2), 512, 512),
    "few-tokens": (range(2, 9), 64, 512),
    "prompts": (range(32, 2**16), 64, 256),
}
"""Numbers of rows, and the least outputs and features, of the paths that kernels have for most models."""

MLX_LM = "https://github.com/ml-explore/mlx-lm"
SPLIT_NIBBLES = "https://github.com/kekzl/imp/pull/722"
PREFIX_LOST = "https://github.com/mflux-community/mflux/pull/489"
COURSE = "tiny-llm course, week 2 day 2"


def other_defaults(name: str, requirement: Requirement) -> list[Fault]:
    """A grid that nobody names is another than the course's: that of MLX, or of layers of 8 bits."""
    return [
        Fault(
            f"{name}-groups-of-64-unless-said",
            "groups are of 64 weights where nothing is said",
            requirement,
            defaults_to(group_size=64),
            f"{MLX}, whose quantize has groups of 64 by default",
        ),
        Fault(
            f"{name}-8-bits-unless-said",
            "codes have 8 bits where nothing is said",
            requirement,
            defaults_to(bits=8),
            TIRED,
        ),
    ]


def past_float16(name: str, requirement: Requirement) -> Fault:
    """Weights of float16 are restored in float16, where code times scale may pass its range although the weight keeps it."""
    return Fault(
        f"{name}-products-past-float16",
        "code times scale is infinite in float16 where it passes 65504",
        requirement,
        {"affine": products.products_past_float16},
        f"{MLX}/commit/56e026d8a",
    )


def strides_of_prompts(name: str, requirement: Requirement) -> list[Fault]:
    return [
        Fault(
            f"{name}-prompts-{part}-strides",
            f"of 32 rows and 256 features and more {part} is read as if it were contiguous",
            requirement,
            only_where(products.of_prompts, ignores_strides(part)),
            TIRED,
        )
        for part in ("x", "packed", "scales")
    ]


def strides_of_models(name: str, requirement: Requirement) -> list[Fault]:
    """Of a single row x is in one piece wherever its elements lie side by side."""
    return [
        fault
        for told, (rows, outputs, features) in AS_MOST_ARE.items()
        if told != "prompts"
        for fault in paths_misread(
            f"{name}-{told}-of-models",
            f"of {told} in half precision, for {outputs} outputs of {features} features and more,",
            requirement,
            in_half(products.of_layers(rows, outputs, features)),
            dict.fromkeys(("packed", "scales", "x")[: 2 if told == "tokens" else 3]),
        )
    ]


def strides_of_thousands(name: str, requirement: Requirement, outputs: str = "outputs") -> list[Fault]:
    parts = dict.fromkeys(("x", "packed", "scales", "biases"))
    return [
        *paths_misread(
            f"{name}-many-groups", "of more than 16 groups", requirement, lambda a: a.scales.shape[-1] > 16, parts
        ),
        *paths_misread(
            f"{name}-hundreds-of-{outputs}",
            f"for more than 512 {outputs}",
            requirement,
            lambda a: a.scales.shape[-2] > 512,
            parts,
        ),
    ]


def lost_in_longer_buffers(name: str, requirement: Requirement) -> list[Fault]:
    return [
        Fault(
            f"{name}-whole-buffer",
            "weights that are the beginning of a longer buffer are taken with the whole of it, and refused",
            requirement,
            takes_all_that_lies_behind("packed", "scales", "biases"),
            BUFFER_IN_USE,
        ),
        Fault(
            f"{name}-unaligned-words",
            "words are read by four, from the multiple of 16 bytes before them where they begin at none",
            requirement,
            reads_16_bytes_at_once("packed"),
            f"the kind of {UNALIGNED}",
        ),
    ]


def batches_swapped(name: str, requirement: Requirement, argument: str = "x") -> list[Fault]:
    five = 5 - (argument == "tokens")
    return [
        Fault(
            f"{name}-batches-swapped",
            "of four axes the first two are exchanged when rows are folded back",
            requirement,
            swaps_batches(),
            TIRED,
        ),
        Fault(
            f"{name}-of-five-axes-swapped",
            "of five axes the first two are exchanged when rows are folded back",
            requirement,
            only_where(lambda a: getattr(a, argument).ndim >= five, swaps_batches()),
            "the kind of https://github.com/bitsandbytes-foundation/bitsandbytes/issues/658",
        ),
    ]


def unwritten_on_common_paths(prefix: str, requirement: Requirement) -> list[Fault]:
    """One for each path that kernels have for most models."""
    return [
        fault
        for told, sizes in AS_MOST_ARE.items()
        for fault in paths_lack_a_feature(
            f"{prefix}-common-{told}",
            f"of {told}, in 4 bits and groups of 64,",
            requirement,
            products.as_most_models_are_packed(*sizes),
            TIRED,
        )
    ]


WIDE = {
    "wide-tokens": ("of a token, for 512 outputs of 2048 features and more,", (range(1, 2), 512, 2048)),
    "sixteen-rows": ("of 12 to 31 rows, for 64 outputs of 512 features and more,", (range(12, 32), 64, 512)),
    "wide-prompts": ("of 64 rows and more, for 64 outputs of 1024 features and more,", (range(64, 2**16), 64, 1024)),
    "one-block-of-rows": ("of 32 to 63 rows, for 512 outputs of 512 features and more,", (range(32, 64), 512, 512)),
}
"""Paths that kernels have for layers that are wide both ways: where, and for how many rows, outputs and features."""


def unwritten_on_wide_paths(prefix: str, requirement: Requirement) -> list[Fault]:
    return [
        Fault(
            f"{prefix}-{told}-lack-a-feature",
            f"{where} the last feature is not written",
            requirement,
            lacks_a_feature(products.of_layers(*sizes)),
            "https://github.com/ROCm/aiter/issues/5643" if told == "wide-prompts" else TIRED,
        )
        for told, (where, sizes) in WIDE.items()
    ]


def first_view_copied(name: str, requirement: Requirement) -> Fault:
    return Fault(
        f"{name}-first-view-copied",
        "of arguments that lie in memory in different ways the first that is no contiguous array is copied, and the others "
        "are read as if they were contiguous",
        requirement,
        copies_the_first_view("x", "packed", "scales", "biases"),
        TIRED,
    )


def row_in_32_kib(name: str, requirement: Requirement) -> Fault:
    return Fault(
        f"{name}-row-in-32-kib",
        "a row of x is kept where 32 KiB have room for it: features past the 8192nd are not read",
        requirement,
        products.with_product(products.features_of_32_kib),
        TIRED,
    )


def faults_of_products(
    name: str, strided: Requirement, dtype: Requirement, unchanged: Requirement, alone: Requirement
) -> tuple[Fault, ...]:
    """What every product can do wrong."""
    return (
        *(
            Fault(
                f"{name}-{part}-strides",
                f"{part} is read as if it were contiguous",
                strided,
                ignores_strides(part),
                "PROPERTIES X1",
            )
            for part in ("x", "packed", "scales", "biases")
        ),
        *paths_break_promises(
            f"{name}-many-rows",
            "of 32 rows and more in half precision",
            in_half(of_many_rows()),
            dtype,
            unchanged,
            alone,
            ("x", "packed", "scales", "biases"),
        ),
        *paths_misread(
            f"{name}-many-rows",
            "of 32 rows and more in half precision",
            strided,
            in_half(of_many_rows()),
            dict.fromkeys(("x", "packed", "scales", "biases")),
        ),
        Fault(
            f"{name}-no-rows-promote",
            "the result of no rows comes back in float32",
            dtype,
            promotes_where(lambda a: not a.x.size),
            "PROPERTIES X4",
        ),
        Fault(f"{name}-promotes", "the result comes back in float32", dtype, promotes(), f"{MLX}-swift/issues/420"),
        Fault(f"{name}-changes-x", "x is scaled in place", unchanged, mutates("x"), "PROPERTIES X6"),
        Fault(f"{name}-changes-biases", "biases are scaled in place", unchanged, mutates("biases"), "PROPERTIES X6"),
        Fault(
            f"{name}-remembers-codes",
            "restored weights cached by shape serve other layers",
            alone,
            remembers("packed"),
            "PROPERTIES X7",
        ),
        Fault(f"{name}-drifts", "the output buffer of an earlier call is added to", alone, drifts(), "PROPERTIES X11"),
    )
