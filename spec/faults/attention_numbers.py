"""What goes wrong in attention with numbers: precision, large and small logits, NaN."""

from __future__ import annotations

import numpy as np

from inferspec.spec import attention as spec
from inferspec.spec.changes import attention as changes
from inferspec.spec.changes import attention_weights
from inferspec.spec.contract import Fault
from inferspec.spec.faults.attention_sources import ENGINEER, FLASHINFER
from inferspec.spec.mistakes import hides_nan, read_as_of

FAULTS: tuple[Fault, ...] = (
    Fault(
        "sdpa-logits-bfloat16",
        "the logits are rounded to bfloat16",
        spec.ATTN_09,
        attention_weights.softmax_by(lambda logits: attention_weights.rounded(logits, "bfloat16")),
        ENGINEER,
    ),
    Fault(
        "sdpa-logits-in-dtype",
        "the logits are rounded to the input's dtype",
        spec.ATTN_09,
        {"weights": lambda self, logits, dtype: changes.CORE.weights(attention_weights.rounded(logits, dtype), dtype)},
        "PROPERTIES, judging",
    ),
    Fault(
        "sdpa-query-in-dtype",
        "the scaled query is rounded to the input's dtype",
        spec.ATTN_09,
        {
            "logits": lambda self, q, k, scale, bias, dtype: (
                attention_weights.rounded(q * scale, dtype) @ k.swapaxes(-1, -2) + bias
            )
        },
        "PROPERTIES, judging",
    ),
    Fault(
        "sdpa-logits-summed-in-dtype",
        "the logits are accumulated in the input's dtype",
        spec.ATTN_09,
        {"logits": attention_weights.logits_summed_in_dtype},
        ENGINEER,
    ),
    Fault(
        "sdpa-values-summed-in-dtype",
        "the weighted values are accumulated in the input's dtype",
        spec.ATTN_09,
        {"combine": attention_weights.values_summed_in_dtype},
        ENGINEER,
    ),
    Fault(
        "sdpa-total-summed-in-dtype",
        "the sum of the weights is accumulated in the input's dtype",
        spec.ATTN_09,
        {"weights": attention_weights.total_summed_in_dtype},
        ENGINEER,
    ),
    Fault(
        "sdpa-fast-exponential",
        "exp(x) is taken as (1 + x/256)^256",
        spec.ATTN_09,
        {"weights": attention_weights.fast_exponentials},
        "fast-math approximations",
    ),
    Fault(
        "sdpa-weights-8-bit",
        "the weights are rounded to 8 bits",
        spec.ATTN_09,
        attention_weights.weights_by(lambda weights, logits: np.rint(weights * 255) / 255),
        ENGINEER,
    ),
    Fault(
        "sdpa-no-maximum",
        "the row's largest logit is not subtracted: exp overflows",
        spec.ATTN_10,
        {"weights": lambda self, logits, dtype: attention_weights.softmax(logits, np.zeros(()))},
        ENGINEER,
    ),
    Fault(
        "sdpa-maximum-of-head",
        "one maximum serves all rows of a head: rows far below it are lost",
        spec.ATTN_10,
        {"weights": attention_weights.largest_of_head},
        ENGINEER,
    ),
    Fault(
        "sdpa-maximum-from-sentinel",
        "the running maximum starts at -5e4: rows below it are zeros",
        spec.ATTN_10,
        attention_weights.starts_at(-5e4),
        FLASHINFER + "commit/d7f2c6464",
    ),
    Fault(
        "sdpa-products-saturate",
        "of float16 heads of 64 and 128 features products of queries and keys end at 65504 before they are scaled",
        spec.ATTN_10,
        {"logits": attention_weights.half_products_saturate},
        ENGINEER,
    ),
    Fault(
        "sdpa-maximum-from-zero",
        "the running maximum starts at 0: rows far below it are zeros",
        spec.ATTN_10,
        attention_weights.starts_at(0.0),
        ENGINEER,
    ),
    Fault(
        "sdpa-maximum-rounded-alone",
        "logits are scaled by a fused multiply-add that subtracts a maximum which was rounded: exp overflows",
        spec.ATTN_10,
        {"weights": attention_weights.maximum_rounded_alone},
        "https://github.com/ROCm/aotriton/issues/54",
    ),
    Fault(
        "sdpa-logits-clipped",
        "logits are clipped to ±80",
        spec.ATTN_10,
        attention_weights.softmax_by(
            lambda logits: np.where(np.isneginf(logits), logits, np.clip(logits, -80.0, 80.0))
        ),
        ENGINEER,
    ),
    Fault(
        "sdpa-soft-cap-left-in",
        "logits pass through 50 · tanh(x / 50)",
        spec.ATTN_10,
        attention_weights.softmax_by(
            lambda logits: np.where(np.isneginf(logits), logits, 50.0 * np.tanh(logits / 50.0))
        ),
        "Gemma 2's logit cap",
    ),
    Fault(
        "sdpa-float32-mask-bits",
        "what a float32 mask holds is read as numbers of the dtype of query",
        spec.ATTN_21,
        read_as_of("query", "mask"),
        "kernels of one dtype for all their buffers",
    ),
    Fault(
        "sdpa-nan-becomes-zero",
        "NaN in the result is replaced by 0",
        spec.ATTN_20,
        attention_weights.NAN_TO_ZERO,
        "IEEE 754, section 6.2",
    ),
    *(
        Fault(
            f"sdpa-{name}-nan-hidden-in-{part}",
            f"{where} what is no number in {part} is taken for 0",
            spec.ATTN_20,
            hides_nan(part, holds),
            "IEEE 754, section 6.2",
        )
        for name, where, holds in (
            ("many-queries", "of more than 16 queries", lambda a: a.query.shape[-2] > 16),
            ("many-keys", "of more than 128 keys", lambda a: a.key.shape[-2] > 128),
        )
        for part in ("query", "key", "value")
    ),
    Fault(
        "sdpa-nan-row-is-empty",
        "a row whose weights do not sum to more than 0 is taken for one that sees no key",
        spec.ATTN_20,
        attention_weights.NAN_ROW_IS_EMPTY,
        "PyTorch's flash attention on the CPU",
    ),
    Fault(
        "sdpa-nan-is-no-logit",
        "a NaN among the logits is taken for a hidden key",
        spec.ATTN_20,
        attention_weights.NAN_HIDES,
        "IEEE 754, section 6.2",
    ),
)
