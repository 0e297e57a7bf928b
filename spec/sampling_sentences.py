"""What is required of filters and samplers, sentence by sentence."""

from __future__ import annotations

from inferspec.spec.contract import Aspect, Level, Requirement

COURSE = "tiny-llm course, week 1 day 7"


def _filter(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "filter_logits", level, aspect, source or COURSE)


def _sample(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "Sampler", level, aspect, source or COURSE)


SAMP_01 = _filter(
    "SAMP-01",
    "top_k leaves exactly the k largest logits of each row and puts -inf in the place of the others",
    source="PROPERTIES SA3",
)
SAMP_02 = _filter(
    "SAMP-02",
    "of logits equal to the k-th largest those of the lowest ids survive, so that exactly k do",
    source="PROPERTIES SA3; vllm pull 50979",
)
SAMP_03 = _filter(
    "SAMP-03",
    "top_k of None, 0 or at least the vocabulary's size and top_p of 1 filter nothing",
    source="PROPERTIES SA2, SA3",
)
SAMP_04 = _filter("SAMP-04", "top_k of -1 filters nothing either", Level.SHOULD, source="PROPERTIES SA3")
SAMP_05 = _filter(
    "SAMP-05",
    "top_p leaves the smallest set of the most likely ids whose probability is at least p: the id that reaches p stays",
    source="Holtzman et al. 2020; PROPERTIES SA2",
)
SAMP_06 = _filter(
    "SAMP-06",
    "the most likely id survives however small top_p is, in every dtype and vocabulary",
    source="mlx-lm pull 1912; PROPERTIES SA2",
)
SAMP_07 = _filter(
    "SAMP-07",
    "of ids as likely as the one that reaches p those of the lowest ids survive",
    source="flashinfer pull 3774; PROPERTIES SA2",
)
SAMP_08 = _filter(
    "SAMP-08",
    "top_p comes after top_k and shares out the probability that top_k left, which is taken for the whole",
    source="PROPERTIES SA4",
)
SAMP_09 = _filter(
    "SAMP-09",
    "probabilities are summed in float32 in every dtype, over vocabularies of 151936 ids too",
    source="mlx-lm pull 1912; PROPERTIES SA2, X5",
)
SAMP_10 = _filter(
    "SAMP-10",
    "what survives keeps its logit exactly; -0 may come back as 0",
    source="PROPERTIES SA4",
)
SAMP_11 = _filter(
    "SAMP-11",
    "logits of any size are filtered by their differences, beside -inf entries too, as long as the dtype tells them apart",
    source="mlx d935276de; PROPERTIES SA8",
)
SAMP_12 = _filter(
    "SAMP-12",
    "each row is filtered by itself: a batch is the stack of its rows, for any leading dims",
    source="mlx-lm 2922cb4f; PROPERTIES SA5, X3",
)
SAMP_13 = _filter(
    "SAMP-13",
    "a row with a NaN, or with nothing above -inf, changes no other row",
    source="PROPERTIES SA8",
)
SAMP_14 = _filter(
    "SAMP-14",
    "a row with a NaN, or with nothing above -inf, comes back as it is",
    Level.SHOULD,
    source="PROPERTIES SA8",
)
SAMP_15 = _filter(
    "SAMP-15", "logits may be a strided view: the result is that of their copy", source="PROPERTIES X1, SA3"
)
SAMP_16 = _filter(
    "SAMP-16", "the result has the shape and the dtype of the logits", aspect=Aspect.DTYPE, source="mlx-lm 8726691c"
)
SAMP_17 = _filter("SAMP-17", "the filters do not change the logits that they are given", source="PROPERTIES X6")
SAMP_18 = _filter(
    "SAMP-18",
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever ran in between",
    source="flashinfer 6ba8058bd; PROPERTIES X7, X11",
)
SAMP_19 = _filter(
    "SAMP-19", "a top_p that is not above 0 and up to 1 is refused", aspect=Aspect.GUARD, source="PROPERTIES X9"
)
SAMP_20 = _filter("SAMP-20", "a top_k below -1 is refused", Level.SHOULD, Aspect.GUARD, source="PROPERTIES X9")
SAMP_21 = _sample(
    "SAMP-21",
    "temperature 0 gives the id of the largest logit, the lowest among equal ones, whatever the uniform number",
    source="vllm-metal 55b6144; PROPERTIES SA6",
)
SAMP_22 = _sample(
    "SAMP-22",
    "the id is the first, in ascending order of ids, whose cdf of softmax(logits / temperature) exceeds the uniform number; or, where"
    " that is seen or declared, in the order of the logits, the largest first or last, always or for what a filter sorts",
    source="PROPERTIES SA7",
)
SAMP_23 = _sample(
    "SAMP-23",
    "uniform numbers of 0, the smallest above it and the largest below 1 give an id within the vocabulary that survived",
    source="vllm-metal bd32be8; flashinfer 78d0a06b7; PROPERTIES SA1",
)
SAMP_24 = _sample(
    "SAMP-24",
    "ids are drawn from what top_k and then top_p leave, as filter_logits leaves it, and by its shares",
    source="PROPERTIES SA1, SA4",
)
SAMP_25 = _sample(
    "SAMP-25",
    "with a temperature and a top_p, top_p sees the probabilities after the temperature always, or before it always",
    source="PROPERTIES SA4",
)
SAMP_26 = _sample(
    "SAMP-26",
    "top_p sees the probabilities after the temperature",
    Level.SHOULD,
    source="PROPERTIES SA4; vLLM, SGLang and transformers",
)
SAMP_27 = _sample(
    "SAMP-27",
    "each row is drawn from its own logits by its own uniform number: a batch is the stack of its rows, for any leading dims",
    source="PROPERTIES SA5, X3",
)
SAMP_28 = _sample(
    "SAMP-28",
    "logits of any size, beside -inf entries too, and any temperature above 0 give an id by the logits' differences",
    source="mlx d935276de; PROPERTIES SA8, X12",
)
SAMP_29 = _sample(
    "SAMP-29",
    "probabilities are summed in float32 in every dtype, over vocabularies of 151936 ids too",
    source="PROPERTIES SA1, X5, X8",
)
SAMP_30 = _sample(
    "SAMP-30",
    "a row with a NaN, or with nothing above -inf, changes no other row and gives an id within the vocabulary",
    source="PROPERTIES SA8",
)
SAMP_31 = _sample(
    "SAMP-31", "a row with a NaN, or with nothing above -inf, gives id 0", Level.SHOULD, source="PROPERTIES SA8"
)
SAMP_32 = _sample(
    "SAMP-32",
    "logits and uniform numbers may each be a strided view: the ids are those of their copies",
    source="PROPERTIES X1",
)
SAMP_33 = _sample(
    "SAMP-33",
    "the ids are of an integer dtype, one for each row in the shape of the leading dims",
    aspect=Aspect.DTYPE,
    source="PROPERTIES X4",
)
SAMP_34 = _sample("SAMP-34", "the sampler changes no argument", source="PROPERTIES X6")
SAMP_35 = _sample(
    "SAMP-35",
    "given uniform numbers, the ids depend on the arguments alone and no random state is touched",
    source="PROPERTIES X7, X11",
)
SAMP_36 = _sample("SAMP-36", "a negative temperature is refused", aspect=Aspect.GUARD, source="PROPERTIES X9")
SAMP_37 = _sample(
    "SAMP-37", "a top_p that is not above 0 and up to 1 is refused", aspect=Aspect.GUARD, source="PROPERTIES X9"
)
SAMP_38 = _sample(
    "SAMP-38",
    "uniform numbers that are not one for each row, in the shape of the leading dims, are refused; a single one, which"
    " broadcasts, is left open",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9, SA5",
)
SAMP_39 = _sample(
    "SAMP-39", "uniform numbers outside [0, 1) are refused", Level.SHOULD, Aspect.GUARD, source="PROPERTIES X9, SA1"
)
SAMP_40 = _sample(
    "SAMP-40",
    "a sampler with a generator of its own draws each id as often as its probability says",
    source="PROPERTIES SA7",
)
SAMP_41 = _sample(
    "SAMP-41",
    "a generator of its own never gives an id that was filtered out, and an id of probability 1e-7 as rarely as that",
    source="flashinfer 006fe19a4; PROPERTIES SA1, SA7",
)
SAMP_42 = _sample(
    "SAMP-42", "the rows of a call are drawn independently by a generator of its own", source="PROPERTIES SA5, SA9"
)
SAMP_43 = _sample(
    "SAMP-43",
    "a generator of its own goes on from call to call, one with a seed too: the next ids do not depend on the last",
    source="PROPERTIES SA9",
)
SAMP_44 = _sample(
    "SAMP-44",
    "a sampler that takes a seed repeats its ids for it, and gives others for another seed",
    source="PROPERTIES SA9",
)
SAMP_45 = _sample(
    "SAMP-45",
    "of equal logits at the cut of top_k or top_p only those of the lowest ids are drawn, whatever the size of the batch",
    source="vllm pull 50979; PROPERTIES SA3, SA5",
)
SAMP_46 = _sample("SAMP-46", "a temperature of NaN is refused", Level.SHOULD, Aspect.GUARD, source="PROPERTIES X9")
_EXACT = "Holtzman et al. 2020; transformers, vLLM, llama.cpp and mlx-lm; PROPERTIES SA2"
SAMP_47 = _filter(
    "SAMP-47",
    "where ids reach p exactly none survives after them: of four equal ones two do at 0.5",
    Level.SHOULD,
    source=_EXACT,
)
SAMP_48 = _sample("SAMP-48", "where ids reach p exactly none after them is drawn", Level.SHOULD, source=_EXACT)
SAMP_49 = _filter(
    "SAMP-49",
    "whichever of equal logits survive, those above them do, those below do not, and no fewer survive than top_k and top_p leave",
    source="vllm pull 50979; flashinfer pull 3774; PROPERTIES SA2, SA3",
)
SAMP_50 = _sample(
    "SAMP-50",
    "a uniform number that the cdf of an id reaches exactly gives the id after it",
    Level.SHOULD,
    source="PROPERTIES SA1",
)
SAMP_51 = _sample(
    "SAMP-51",
    "two samplers that are given no seed do not begin with the same ids",
    Level.SHOULD,
    source="mlx-lm, PyTorch, transformers, vLLM and NumPy, which begin with a state of all or a fresh one; PROPERTIES SA9",
)
SAMP_52 = _sample(
    "SAMP-52",
    "a sampler that was made in one thread chooses alike in another, and one that draws by itself does not draw the same again and again",
    Level.SHOULD,
    source="https://github.com/ml-explore/mlx-lm/pull/1537; PROPERTIES X7, SA9",
)

SENTENCES = tuple(value for value in list(globals().values()) if isinstance(value, Requirement))
