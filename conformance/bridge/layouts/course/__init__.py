"""The tiny-llm course (https://github.com/skyzh/tiny-llm): its names of things, for `--layout course`.

Any student's package is certified as it is: `--impl tiny_llm --layout course`. One room for each component says which of
the course's classes and functions stand for it, in older and newer editions, and what the course's text asks of them:

* dtypes are those that the text computes in: float32 for attention, float32 and bfloat16 for what the models do in
  their own dtype, all three for RMSNorm, bfloat16 for packed weights, of 4 bits in groups of 128;
* masks are none, "causal" and arrays that are added, of the whole shape N..×H_q×L×S where a function takes no other; a
  bool mask is not asked for;
* a chunk of keys and values has a token at least, and keys are as wide as values;
* there may be more keys than queries; more queries than keys are asked of a package that neither refuses them nor aligns
  them otherwise;
* a cache that is rewound holds a token, and packed weights, and a lookup or a product of them, have a row at least;
* flash attention has one axis of batches where it takes no others, as the course's own;
* a sampler is given log-probabilities, of one row at a time unless it takes more; both filters at once are not asked for,
  nor a top_k larger than the vocabulary;
* top_p is not asked of a package of an older edition that drops the id with which a sum of probabilities reaches it: whether that
  one is kept the text says since July 2026, and before its own code dropped it;
* where RMSNorm rounds is asked of the edition that says it; of others the mean alone is in float32;
* speculative decoding is greedy, and nothing bounds how many tokens it makes;
* all is made and called in one thread;
* the id that ends a text may be handed over or not in the editions that do not say it;
* what a requirement guards (bad arguments are refused) the text seldom speaks of. It is judged all the same, and
  reported apart: a summary by chapters tells missing guards from wrong values.

Where week 2 writes anew what week 1 wrote (FastRMSNorm beside RMSNorm), this layout takes week 1's: `--layout course-week2` takes
week 2's. No contract of this kit is about the mixture of experts, the scheduler of batches (`batch_generate`) or the agent of week 4.

What is only begun (`pass`, NotImplementedError) and what needs an extension that is not built here is not claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from types import ModuleType

from inferspec.conformance.bridge.layouts import Chapter, Laid, Offer
from inferspec.conformance.bridge.layouts.course import (
    attention,
    batching,
    embedding,
    flash_attention,
    generation,
    kv_cache,
    linear,
    llama,
    mlp,
    paged_attention,
    paged_kv,
    quantization,
    qwen3,
    rms_norm,
    rope,
    sampling,
    speculation,
)
from inferspec.conformance.bridge.layouts.course.editions import NEWER, OLDER, edition, is_of_july_2026
from inferspec.conformance.bridge.layouts.packages import Broken, NotOffered, Package
from inferspec.conformance.bridge.signatures import AdapterError

ROOMS = (
    linear,
    attention,
    flash_attention,
    paged_attention,
    rope,
    rms_norm,
    mlp,
    embedding,
    quantization,
    kv_cache,
    batching,
    paged_kv,
    sampling,
    llama,
    qwen3,
    generation,
    speculation,
)

WEEK_1 = (
    Chapter("week 1 day 1", "attention, multi-head attention", ("linear", "softmax", "MultiHeadAttention")),
    Chapter("week 1 day 2", "RoPE", ("RoPE",)),
    Chapter("week 1 day 3", "grouped attention, causal mask", ("scaled_dot_product_attention", "causal_mask")),
    Chapter("week 1 day 4", "RMSNorm, MLP", ("RMSNorm", "silu", "SwiGLU")),
    Chapter("week 1 day 5", "embedding, the model", ("Embedding", "Embedding.as_linear", "Qwen3", "Llama")),
    Chapter("week 1 day 6", "generation, with a cache from week 2 on", ("generate",)),
    Chapter("week 1 day 7", "sampling", ("Sampler",)),
    Chapter(
        "week 2 day 1", "key-value cache, the model with one", ("KVCache", "Qwen3.incremental", "Llama.incremental")
    ),
)
PACKED = ("dequantize", "quantized_matmul", "QuantizedLinear", "QuantizedEmbedding", "QuantizedEmbedding.as_linear")
BATCHES = ("ROPE-05", "BatchingKVCache")
PAGES, TABLES = ("PagePool", "PagedKVCache"), ("block_table", "paged_attention")
WEEK_2_ANEW = "judged by --layout course-week2"

CHAPTERS = {
    OLDER: (
        *WEEK_1,
        Chapter("week 2 day 2-3", "quantized matmul", PACKED),
        Chapter("week 2 day 4-5", "flash attention", ("flash_attention",)),
        Chapter("week 2 day 6-7", "batches: positions, keys and values", BATCHES),
        Chapter("week 3 day 1", "pages of keys and values", PAGES),
        Chapter("week 3 day 2", "block tables, paged attention", TABLES),
        Chapter("week 3", "speculative decoding", ("speculative_generate",)),
    ),
    NEWER: (
        *WEEK_1,
        Chapter("week 2 day 3", "quantized matmul", PACKED),
        Chapter("week 2 day 4", "FastRMSNorm, FastRoPE, swiglu", elsewhere=WEEK_2_ANEW),
        Chapter("week 2 day 5", "decode attention", ("flash_attention",)),
        Chapter("week 2 day 6-7", "SIMD and split-K products", elsewhere=WEEK_2_ANEW),
        Chapter("week 3 day 1", "batches: positions, keys and values", BATCHES),
        Chapter("week 3 day 3", "pages of keys and values", PAGES),
        Chapter("week 3 day 4-5", "block tables, paged attention", TABLES),
        Chapter("week 3 optional", "speculative decoding", ("speculative_generate",)),
    ),
}
"""Edition of the text -> its chapters."""

GUARDS = frozenset({"test_positions_outside_the_table_are_refused_or_right"}) | frozenset(
    {"KV-15", "KV-19", "BATCH-23", "BATCH-28", "POOL-09", "PKV-16", "PKV-25"}
)
"""The text refuses nothing, and does not say what a refusal leaves behind; what these tell is told apart, as by the
requirements that are guards."""

ALTERNATIVES = (frozenset({"Qwen3", "Llama"}), frozenset({"Qwen3.incremental", "Llama.incremental"}))
"""The model is a Qwen3, in older editions a Qwen2."""

ONE_THREAD = dict.fromkeys(
    ("ROPE-22", "SAMP-52", "LLAMA-48", "LLAMA-49", "QWEN3-48", "QWEN3-49", "GEN-31"), "the text has one thread"
)
"""What no chapter asks, of any operation."""

PRECISION = dict.fromkeys(
    ("linear", "attention", "flash_attention", "rope", "mlp", "quantization", "sampling", "llama", "qwen3"), "native"
)
"""The text computes with MLX's own products, which round each step to the input's dtype on a CPU, and
makes log-probabilities in the dtype of the logits."""

BEFORE = PRECISION | {"rms_norm": "native"}
"""Before July 2026 RMSNorm's mean alone is in float32 by the text: its root may be rounded."""


def lay_out(name: str) -> Laid:
    """The package of that name, seen as the course's."""
    return laid_out(name, ROOMS)


def laid_out(name: str, every: Iterable[ModuleType]) -> Laid:
    """The package of that name, by these rooms."""
    package = Package(name)
    values = [value for module in package.modules.values() for value in vars(module).values()]
    libraries = {value.__name__.partition(".")[0] for value in values if isinstance(value, ModuleType)}
    if "torch" in libraries and "mlx" not in libraries:
        raise AdapterError(f"{name}: the course's packages compute with MLX; this one imports torch and no mlx")
    offers: dict[str, Offer] = {}
    absent: dict[str, str] = {}
    broken: dict[str, str] = {}
    rooms: dict[str, Callable[[Package], Offer]] = {}
    for room in every:
        rooms |= room.OFFERS
    for operation, look in rooms.items():
        try:
            offer = look(package)
            offers[operation] = replace(offer, unasked={**offer.unasked, **ONE_THREAD})
        except NotOffered as reason:
            absent[operation] = str(reason)
        except Broken as reason:
            broken[operation] = str(reason)
        except NotImplementedError as reason:
            absent[operation] = str(reason)
        except AdapterError as reason:
            broken[operation] = str(reason)
        except Exception as error:
            # A look at what an edition takes has called it.
            broken[operation] = f"{type(error).__name__}: {error}"
    precision = PRECISION if is_of_july_2026(package) else BEFORE
    return Laid(offers, absent, broken, package.origin, precision, edition(package))
