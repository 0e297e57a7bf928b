"""What is required of speculative decoding, sentence by sentence."""

from __future__ import annotations

from inferspec.spec.contract import Aspect, Level, Requirement

PAPER = "Leviathan et al. 2023, algorithm 1; Chen et al. 2023, algorithm 2"
VERIFY, GENERATE = "verify", "speculative_generate"


def _verify(
    id: str, text: str, aspect: Aspect = Aspect.VALUE, source: str = PAPER, level: Level = Level.MUST
) -> Requirement:
    return Requirement(id, text, VERIFY, level, aspect, source)


def _loop(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, GENERATE, level, aspect, source)


SPEC_01 = _verify(
    "SPEC-01",
    "a draft is kept while uniform · draft_probs < target_probs of its id; what comes after the first that is not is dropped",
)
SPEC_02 = _verify(
    "SPEC-02",
    "at the first draft that is not kept one id comes from max(target_probs - draft_probs, 0) of its row, normalised, by inverse CDF with the last uniform number, or the one that comes next",
)
SPEC_03 = _verify(
    "SPEC-03",
    "when all drafts are kept, one more id comes from the target's row after them, with the last uniform number",
)
SPEC_04 = _verify("SPEC-04", "of no drafts comes one id, drawn from the target's only row", source="PROPERTIES SP5")
SPEC_05 = _verify(
    "SPEC-05",
    "ids and their number are right for a rejection at every position and for none",
    source="openvino.genai issue 4190; PROPERTIES SP4",
)
SPEC_06 = _verify(
    "SPEC-06",
    "a draft that the target cannot give is never kept, also with a uniform number of 0; one that it gives at least as likely as the draft always is",
    source="PROPERTIES SP3",
)
SPEC_07 = _verify(
    "SPEC-07",
    "rows with all probability on one id, as greedy decoding has, keep equal drafts and replace others by the target's id",
    source="transformers issue 47932; PROPERTIES SP2",
)
SPEC_08 = _verify(
    "SPEC-08",
    "what comes out, gone on with by the target, has exactly the target's joint distribution",
    source="PROPERTIES SP2",
)
SPEC_09 = _verify(
    "SPEC-09",
    "no id comes out that the target cannot give, and no rejected draft comes back, whatever the uniform numbers",
    source="PROPERTIES SP3",
)
SPEC_10 = _verify(
    "SPEC-10",
    "where rounding leaves nothing of max(target_probs - draft_probs, 0), an id of the target's row comes",
    source="flashinfer 006fe19a4 (a draw from nothing); PROPERTIES SP2",
)
SPEC_11 = _verify(
    "SPEC-11",
    "probabilities in float32, float16 and bfloat16 are compared as they are, in float32; rows that rounding left off one are taken",
    source="PROPERTIES X5",
)
SPEC_12 = _verify("SPEC-12", "vocabularies of 151936 ids and ids past 32767 are right", source="PROPERTIES X8")
SPEC_13 = _verify("SPEC-13", "draft_tokens may be a list or an array of int32, int64 or uint32", source="PROPERTIES X1")
SPEC_14 = _verify("SPEC-14", "any array may be a strided view", source="PROPERTIES X1")
SPEC_15 = _verify("SPEC-15", "no argument is changed", source="vllm-ascend pull 2881; PROPERTIES SP6, X6")
SPEC_16 = _verify(
    "SPEC-16",
    "ids depend on the arguments alone: repeated, they are the same, and no random state is touched",
    source="PROPERTIES X7, X11",
)
SPEC_17 = _verify("SPEC-17", "what comes out are integers on one axis", aspect=Aspect.DTYPE, source="PROPERTIES X4")
SPEC_18 = _verify(
    "SPEC-18",
    "numbers of drafts, rows, ids and uniform numbers that do not fit each other are refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
SPEC_19 = _verify("SPEC-19", "drafts outside the vocabulary are refused", aspect=Aspect.GUARD, source="PROPERTIES X9")
SPEC_20 = _verify(
    "SPEC-20", "probabilities that are negative or NaN are refused", Aspect.GUARD, "PROPERTIES X9", Level.SHOULD
)
SPEC_21 = _verify(
    "SPEC-21",
    "rows that do not sum to one are refused, logits for one",
    Aspect.GUARD,
    "PROPERTIES X9",
    Level.SHOULD,
)
SPEC_22 = _verify("SPEC-22", "uniform numbers outside [0, 1) are refused", Aspect.GUARD, "PROPERTIES X9", Level.SHOULD)
SPEC_23 = _loop(
    "SPEC-23",
    "at temperature 0 the ids are those that the target alone gives, for any draft: perfect, always wrong, right now and then, unlike",
    source="PROPERTIES SP1",
)
SPEC_24 = _loop(
    "SPEC-24",
    "whatever num_draft_tokens is, below and past what is left to come, the ids are the same",
    source="PROPERTIES SP1, SP5",
)
SPEC_25 = _loop(
    "SPEC-25",
    "num_draft_tokens=0 is decoding by the target alone: the draft is fed no more than the prompt, and a uniform number draws each id",
    source="PROPERTIES SP5",
)
SPEC_26 = _loop(
    "SPEC-26",
    "an end-of-sequence id ends the ids, first, last or in the midst of accepted drafts, and any of several does: it is none of"
    " them, or the last of them where ends are declared to be kept",
    source="PROPERTIES SP5",
)
SPEC_27 = _loop(
    "SPEC-27",
    "exactly max_tokens ids come out where nothing ends them sooner, in the midst of accepted drafts too; none for 0",
    source="PROPERTIES SP5",
)
SPEC_28 = _loop(
    "SPEC-28",
    "before each call every layer of the target's cache holds the prompt and ids that came out, and nothing else",
    source="mlx-lm f56d9971; PROPERTIES SP4",
)
SPEC_29 = _loop(
    "SPEC-29",
    "the draft sees the prompt, the ids that came out and its own drafts, each at the position after the one before it, and nothing else",
    source="PROPERTIES SP4, SP9",
)
SPEC_30 = _loop(
    "SPEC-30", "a draft equal to the target, the same model too, is never rejected", source="PROPERTIES SP3"
)
SPEC_31 = _loop(
    "SPEC-31",
    "of equal logits the lowest id is taken; logits of float32, float16 and bfloat16 decide to their last bit",
    source="PROPERTIES, decisions; vllm-metal 12ee169",
)
SPEC_32 = _loop(
    "SPEC-32",
    "prompts of any length are right, of one token and beside the sizes in which prompts are fed",
    source="PROPERTIES CP1",
)
SPEC_33 = _loop("SPEC-33", "ids past 255, 32767 and 65535 come out as they are", source="PROPERTIES X8")
SPEC_34 = _loop(
    "SPEC-34",
    "above temperature 0 what comes out has exactly the target's joint distribution, tempered and filtered, whatever the draft's; whether top_p goes before the temperature or after it is left open",
    source="PROPERTIES SP2",
)
SPEC_35 = _loop(
    "SPEC-35",
    "over many rounds every id is as likely as the target says after what came out before it",
    source="transformers issue 47932; PROPERTIES SP2",
)
SPEC_36 = _loop(
    "SPEC-36",
    "each of a round's num_draft_tokens drafts takes one uniform number, then verify takes one for each and one for the last id",
    Level.SHOULD,
    source="the contract's signature",
)
SPEC_37 = _loop(
    "SPEC-37", "ids stream: when one comes out, the target is at most one round past its own", source="PROPERTIES ME3"
)
SPEC_38 = _loop(
    "SPEC-38",
    "no model is fed past max_tokens: no more is drafted than can come out, and no call follows the last id",
    Level.SHOULD,
    source="PROPERTIES CB5",
)
SPEC_39 = _loop(
    "SPEC-39",
    "num_draft_tokens are drafted in a round, as far as they can come out",
    Level.SHOULD,
    source="PROPERTIES X13",
)
SPEC_40 = _loop(
    "SPEC-40",
    "the caches of both models are let go when the ids end, also by an error, and when the caller stops early",
    source="PROPERTIES SP8",
)
SPEC_41 = _loop(
    "SPEC-41",
    "two requests to the same models, an id of each in turn, give what each gives alone",
    source="PROPERTIES CB1, CB4",
)
SPEC_42 = _loop(
    "SPEC-42",
    "a request after another to the same models, finished, failed or closed early, starts afresh",
    source="PROPERTIES CB4",
)
SPEC_43 = _loop(
    "SPEC-43", "tokens may be a list or an array of int32, int64 or uint32, a strided view too", source="PROPERTIES X1"
)
SPEC_44 = _loop("SPEC-44", "the caller's tokens are not changed", source="PROPERTIES X6")
SPEC_45 = _loop(
    "SPEC-45",
    "ids depend on the arguments alone: repeated, they are the same, whatever ran in between",
    source="PROPERTIES X7, X11",
)
SPEC_46 = _loop("SPEC-46", "ids are Python integers", aspect=Aspect.DTYPE, source="PROPERTIES X4")
SPEC_47 = _loop(
    "SPEC-47",
    "a target or draft whose cache is used and has a layer that cannot be rewound is refused before a model is called",
    aspect=Aspect.GUARD,
    source="mlx-lm f56d9971; PROPERTIES SP7",
)
SPEC_48 = _loop(
    "SPEC-48",
    "models of different vocabularies are refused before a drafted id comes out",
    Level.SHOULD,
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
SPEC_49 = _loop(
    "SPEC-49",
    "a temperature above 0 without uniforms is refused before a model is called",
    Level.SHOULD,
    aspect=Aspect.GUARD,
    source="PROPERTIES X7, X9",
)
SPEC_50 = _loop(
    "SPEC-50",
    "uniforms that run out, or are outside [0, 1), are an error and no end of the ids",
    Level.SHOULD,
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
SPEC_51 = _loop(
    "SPEC-51", "an empty prompt is refused before a model is called", aspect=Aspect.GUARD, source="PROPERTIES X9"
)
SPEC_52 = _loop(
    "SPEC-52",
    "a negative max_tokens or num_draft_tokens is refused before a model is called",
    Level.SHOULD,
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
SPEC_53 = _loop(
    "SPEC-53",
    "a negative temperature and a top_p outside (0, 1] are refused before a model is called",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
SPEC_54 = _loop(
    "SPEC-54",
    "right drafts before the first wrong one stay: the target is not fed them again",
    Level.SHOULD,
    source="Leviathan et al. 2023; PROPERTIES SP4",
)
SPEC_55 = _verify(
    "SPEC-55",
    "of probabilities in float16 and bfloat16 too the last id comes from differences and sums in float32",
    source="PROPERTIES X5, SP2",
)
SPEC_56 = _loop(
    "SPEC-56",
    "what the target raises passes to the caller: it is no end of the ids, and no reason to ask again",
    source="PROPERTIES CB2",
)
SPEC_57 = _loop(
    "SPEC-57",
    "what the caller does to its tokens once the first id is out does not show",
    source="PROPERTIES X6",
)
SPEC_58 = _loop(
    "SPEC-58",
    "what the caller does to its list of end-of-sequence ids once the first id is out does not show",
    Level.SHOULD,
    source="PROPERTIES X6",
)
SPEC_59 = _loop(
    "SPEC-59",
    "top_p sees the probabilities after the temperature",
    Level.SHOULD,
    source="PROPERTIES SA4; vLLM, SGLang and transformers",
)
SPEC_60 = _loop(
    "SPEC-60",
    "a temperature of NaN is refused before a model is called",
    Level.SHOULD,
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
SPEC_61 = _loop(
    "SPEC-61",
    "nor is a StopIteration of the target an end of the ids: it passes to the caller, as another error where it must",
    Level.SHOULD,
    source="PEP 479; PROPERTIES CB2",
)
SPEC_62 = _loop(
    "SPEC-62",
    "where ids reach top_p exactly none after them comes out",
    Level.SHOULD,
    source="Holtzman et al. 2020; PROPERTIES SA2",
)
SPEC_63 = _verify(
    "SPEC-63",
    "a draft that its own row calls impossible is kept if the target can give it",
    level=Level.SHOULD,
    source=f"{PAPER}; vLLM 0.33 rejects it",
)

SENTENCES = tuple(value for value in list(globals().values()) if isinstance(value, Requirement))
