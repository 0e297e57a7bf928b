"""Mistakes in the loop of generation and in streaming detokenisation, and other honest ways to do both."""

from __future__ import annotations

from inferspec.spec.changes import generation as changes
from inferspec.spec.changes import generation_choices as choices
from inferspec.spec.changes import generation_ends as ends
from inferspec.spec.contract import Fault, Variant
from inferspec.spec.ends import KEEPING
from inferspec.spec.faults import generation_callers, generation_choices, generation_ends
from inferspec.spec.faults.detokenizer import TEXT_FAULTS, TEXT_VARIANTS
from inferspec.spec.faults.generation_sources import COURSE_CODE, MLX_LM, SEEDS, TIRED, VLLM_METAL
from inferspec.spec.generation import (
    GEN_01,
    GEN_02,
    GEN_03,
    GEN_04,
    GEN_06,
    GEN_09,
    GEN_10,
    GEN_13,
    GEN_14,
    GEN_15,
    GEN_16,
    GEN_17,
    GEN_18,
)

MLX_VLM = "https://github.com/Blaizzy/mlx-vlm"

FAULTS: tuple[Fault, ...] = (
    Fault("generation-least-likely", "the least likely id is taken", GEN_01, {"greedy": choices.lowest_logit}, TIRED),
    *(
        Fault(
            f"generation-favours-whole-tiles-of-{tile}",
            f"ids past the last whole tile of {tile} are never favoured",
            GEN_01,
            {"greedy": choices.of_whole_tiles(tile)},
            "kernels that look for the largest logit tile by tile",
        )
        for tile in (1024, 4096)
    ),
    Fault(
        "generation-prompt-forgotten",
        "with a cache, only the prompt's last token is fed",
        GEN_01,
        changes.feeds(lambda sequence, fed: sequence[-1:]),
        SEEDS,
    ),
    Fault(
        "generation-no-cache-last-token",
        "without a cache each step sees the newest token alone",
        GEN_02,
        {"forward": changes.last_token_alone},
        COURSE_CODE,
    ),
    Fault(
        "generation-cache-always",
        "cache=False is ignored: a cache is used all the same",
        GEN_02,
        {"cache": changes.always},
        "PROPERTIES X13",
    ),
    Fault(
        "generation-no-cache-gap",
        "without a cache each step sees the prompt and the newest id, not those between",
        GEN_02,
        {"forward": changes.prompt_alone},
        TIRED,
    ),
    Fault(
        "generation-refeeds-prompt",
        "the whole sequence is fed again each step, into the cache that holds it already",
        GEN_03,
        changes.feeds(lambda sequence, fed: sequence),
        SEEDS,
    ),
    Fault(
        "generation-last-prompt-token-twice",
        "prefill feeds the whole prompt, and the first step its last token again",
        GEN_03,
        {"forward": changes.prefill_then_last_again},
        "https://github.com/skyzh/tiny-llm/commit/1fc0752 (the offset past the prompt)",
    ),
    Fault(
        "generation-last-token-doubled",
        "the last token of the prompt is fed twice in one call",
        GEN_03,
        changes.feeds(changes.last_twice),
        TIRED,
    ),
    Fault("generation-ids-twice", "each new id is fed twice", GEN_03, changes.feeds(changes.each_id_twice), TIRED),
    Fault(
        "generation-first-id-lost",
        "the first id comes out but never reaches the cache: the prompt's last token goes in its place",
        GEN_03,
        {"forward": changes.first_id_lost},
        "https://github.com/skyzh/tiny-llm/commit/05972ff (a token of a request lost)",
    ),
    Fault(
        "generation-cache-ignored",
        "the cache is made and never used",
        GEN_03,
        {"cache": changes.without},
        SEEDS,
    ),
    Fault(
        "generation-stale-cache",
        "pieces of a prompt past the first go into another cache",
        GEN_04,
        {"forward": changes.stale_cache},
        f"{MLX_LM}/commit/5d10d9f2",
    ),
    Fault(
        "generation-remainder-lost",
        "the last piece of a prompt is dropped when it is not a whole one",
        GEN_04,
        {"forward": changes.remainder_lost},
        f"{MLX_LM}/commit/cd367819",
    ),
    Fault(
        "generation-one-past-pieces-of-100",
        "the last token of a prompt that is one longer than pieces of 100 is dropped",
        GEN_04,
        {"forward": changes.lone_token_lost(100)},
        f"{MLX_LM}/commit/cd367819",
    ),
    Fault(
        "generation-one-past-pieces-of-384",
        "the last token of a prompt that is one longer than pieces of 384 is dropped",
        GEN_04,
        {"forward": changes.lone_token_lost(384)},
        f"{MLX_LM}/commit/cd367819",
    ),
    Fault(
        "generation-prompt-cut",
        "only the last 512 tokens of a prompt are fed",
        GEN_04,
        {"prompt": changes.window(512)},
        f"{VLLM_METAL}/commit/dc602da (prompts past the budget)",
    ),
    Fault(
        "generation-eos-of-the-first-64",
        "the 65th id and those after it end nothing",
        GEN_06,
        {"stops": ends.ends_of_the_first_64},
        TIRED,
    ),
    Fault(
        "generation-eos-never-first-of-long-prompts",
        "the first id after a prompt of more than 512 tokens ends nothing",
        GEN_06,
        {"stops": ends.no_first_after_a_long_prompt},
        TIRED,
    ),
    Fault(
        "generation-eos-never-first-of-whole-pieces",
        "the first id after a prompt of whole pieces of 512 tokens ends nothing",
        GEN_06,
        ends.no_first_after_whole_pieces(512),
        TIRED,
        forms=(ends.no_first_after_whole_pieces(2048), ends.no_first_after_whole_pieces(64)),
    ),
    Fault(
        "generation-highest-of-equals-of-large",
        "of equal logits of more than 8192 ids the highest is taken",
        GEN_09,
        choices.large(choices.highest_of_equals),
        TIRED,
    ),
    Fault(
        "generation-large-logits-in-bfloat16",
        "more than 8192 logits are rounded to bfloat16 first",
        GEN_10,
        choices.large(choices.in_bfloat16),
        TIRED,
    ),
    Fault(
        "generation-prompt-cut-at-2048",
        "only the last 2048 tokens of a prompt are fed",
        GEN_04,
        {"prompt": changes.window(2048)},
        f"{MLX_LM}/commit/5d10d9f2 (its default piece)",
    ),
    Fault(
        "generation-prompt-cut-at-6000",
        "only the last 6000 tokens of a prompt are fed",
        GEN_04,
        {"prompt": changes.window(6000)},
        "https://github.com/jundot/omlx/issues/2394",
    ),
    Fault(
        "generation-prompt-to-8192",
        "what is past the 8192nd token of a prompt is not fed: the size of a piece is taken for the most there can be",
        GEN_04,
        {"prompt": changes.beginning(8192)},
        "https://github.com/raullenchai/Rapid-MLX/issues/1848",
    ),
    *generation_ends.FAULTS,
    *generation_choices.FAULTS,
    Fault("generation-uint8-ids", "ids come out in 8 bits", GEN_13, {"out": changes.in_bits(8)}, "PROPERTIES PC3"),
    Fault("generation-uint16-ids", "ids come out in 16 bits", GEN_13, {"out": changes.in_bits(16)}, "PROPERTIES X8"),
    Fault(
        "generation-int16-ids", "ids past 32767 come out negative", GEN_13, {"out": changes.signed_16}, "PROPERTIES X8"
    ),
    Fault(
        "generation-uint16-fed", "ids are fed back in 16 bits", GEN_13, {"back": changes.in_bits(16)}, "PROPERTIES X8"
    ),
    Fault(
        "generation-uint8-prompt",
        "the prompt is read in 8 bits",
        GEN_13,
        changes.prompt_in_bits(8),
        "PROPERTIES PC3",
    ),
    Fault(
        "generation-not-lazy",
        "all ids are made before the first comes out",
        GEN_14,
        {"ids": changes.all_at_once},
        "PROPERTIES ME3",
    ),
    Fault(
        "generation-three-late", "ids come out three steps late", GEN_14, {"ids": changes.ahead_by(3)}, "PROPERTIES ME3"
    ),
    Fault(
        "generation-one-late",
        "each id comes out after the step that follows it",
        GEN_15,
        {"ids": changes.ahead_by(1)},
        f"{MLX_LM}, generate_step (on purpose, to keep a GPU busy)",
    ),
    Fault(
        "generation-step-after-the-limit",
        "a step is executed whose id no one asked for",
        GEN_16,
        {"ids": changes.one_more_step},
        f"{MLX_LM}/issues/226",
    ),
    Fault(
        "generation-step-after-eos",
        "the end-of-sequence id is fed before it is noticed",
        GEN_16,
        {"ids": changes.step_after_the_end},
        "PROPERTIES CB5",
    ),
    Fault(
        "generation-prefills-for-nothing",
        "the prompt is fed although no id is asked for",
        GEN_16,
        {"ids": changes.prefills_for_nothing},
        "PROPERTIES CB5",
    ),
    Fault(
        "generation-cache-of-the-model",
        "one cache hangs on the model and serves all requests",
        GEN_17,
        {"cache": changes.shared_by_model},
        f"{MLX_LM}/commit/23af8570",
    ),
    Fault(
        "generation-ends-of-the-last",
        "the ends of the request that came last are those of all",
        GEN_17,
        {"ids": changes.ends_of_the_last},
        f"{MLX_VLM}/commit/63965655",
    ),
    Fault(
        "generation-ends-of-the-model",
        "what ended a request ends all later ones to the same model",
        GEN_18,
        {"ids": changes.ends_of_the_model},
        f"{MLX_VLM}/commit/63965655",
    ),
    Fault(
        "generation-cache-kept",
        "a prompt that begins like the last one goes on in its cache, whatever else that holds",
        GEN_18,
        changes.kept_for_later(1),
        f"{VLLM_METAL}/commit/b213b8b",
    ),
    Fault(
        "generation-cache-of-32-tokens-kept",
        "a prompt that begins with 32 tokens like the last one goes on in its cache, whatever else that holds",
        GEN_18,
        changes.kept_for_later(32),
        f"{VLLM_METAL}/commit/b213b8b",
    ),
    Fault(
        "generation-cache-in-use-found",
        "a prompt that begins with 32 tokens like one that is at work goes on in that one's cache",
        GEN_17,
        changes.found_while_in_use(32),
        f"{VLLM_METAL}/commit/b213b8b",
    ),
    Fault(
        "generation-cache-of-256-tokens-kept",
        "a prompt that begins with 256 tokens like the last one goes on in its cache, whatever else that holds",
        GEN_18,
        changes.kept_for_later(256),
        f"{VLLM_METAL}/commit/b213b8b",
    ),
    Fault(
        "generation-cache-of-256-tokens-in-use-found",
        "a prompt that begins with 256 tokens like one that is at work goes on in that one's cache",
        GEN_17,
        changes.found_while_in_use(256),
        f"{VLLM_METAL}/commit/b213b8b",
    ),
    *generation_callers.FAULTS,
    Fault(
        "generation-goes-on-past-the-end",
        "an iterator that came to its end gives an id when it is asked again",
        GEN_06,
        {"ids": lambda self, toy, request: ends.GoesOn(self, toy, request)},
        TIRED,
    ),
    Fault(
        "generation-limit-of-32-bits",
        "max_tokens is held in 32 bits",
        GEN_06,
        {"limit": lambda self, request: (request.max_tokens + 2**31) % 2**32 - 2**31},
        TIRED,
    ),
    *generation_callers.KEPT_ARGUMENTS,
    *generation_ends.KEPT_ENDS,
    *TEXT_FAULTS,
)

VARIANTS: tuple[Variant, ...] = (
    Variant(
        "generation-in-pieces-of-7",
        "the prompt is fed 7 tokens at a time",
        "generate",
        {"forward": changes.in_pieces(7)},
    ),
    Variant("generation-in-pieces-of-1", "every token is fed alone", "generate", {"forward": changes.in_pieces(1)}),
    Variant(
        "generation-in-pieces-of-512",
        "long prompts are fed 512 tokens at a time",
        "generate",
        {"forward": changes.in_pieces(512)},
    ),
    Variant(
        "generation-odd-first-piece",
        "a prompt's first piece is its smallest",
        "generate",
        {"forward": changes.in_pieces(64, 3)},
    ),
    Variant(
        "generation-all-but-one",
        "the prompt is fed but for its last token, which is the first step",
        "generate",
        {"forward": changes.all_but_one_first},
    ),
    Variant(
        "generation-samples-a-batch",
        "the sampler is given a batch of one row",
        "generate",
        {"choose": choices.sampler_sees_batch},
    ),
    Variant(
        "generation-keeps-ends",
        "every id comes out, and then it is looked at",
        "generate",
        {"ids": ends.emits_the_end},
        envelope=KEEPING,
    ),
    *TEXT_VARIANTS,
)
