"""What is promised of every decoder, whatever its name: the sentences that the contracts of Llama and Qwen3 share."""

from __future__ import annotations

from dataclasses import dataclass

from inferspec.spec.contract import Aspect, Level, Requirement

COURSE = "tiny-llm course, week 1 day 5"
CACHE = "tiny-llm course, week 2 day 1"


@dataclass(frozen=True, slots=True)
class Sentence:
    """A requirement without its id. cached: whether it is about calls with a cache."""

    text: str
    source: str = COURSE
    aspect: Aspect = Aspect.VALUE
    level: Level = Level.MUST
    cached: bool = False

    def of(self, id: str, name: str) -> Requirement:
        """The requirement of one model."""
        operation = f"{name}.incremental" if self.cached else name
        return Requirement(id, self.text, operation, self.level, self.aspect, self.source)


LOGITS = Sentence(
    "the logits of every token are head(norm(blocks(embedding))), each block x + attention(norm(x)), then x + MLP(norm(x))"
)
HEAD = Sentence(
    "tied, the head is the embedding's matrix; untied, it is lm_head and nothing else",
    "mlx-lm e92138cb; PROPERTIES EM3",
)
SPARE_HEAD = Sentence(
    "a tied model whose checkpoint carries an lm_head as well takes it and does not use it",
    "the checkpoint of Qwen3-0.6B, which has both; PROPERTIES EM3",
    level=Level.SHOULD,
)
HEADS = Sentence(
    "heads · head_dim need not be hidden_size, and any number of query heads share a key/value head: query head h reads h // (H_q / H), scores are multiplied by head_dim^-0.5, heads are joined in order",
    "vllm-metal bbacf63; PROPERTIES MO2, SD1",
)
ROPE = Sentence(
    "queries and keys are turned in the split-half form by position · theta^(-2i/head_dim), theta from rope_theta or from rope_parameters",
    "transformers 5 writes rope_parameters alone; PROPERTIES RO8, X13",
)
EPS = Sentence("rms_norm_eps of the config is added inside the root, in every norm", "PROPERTIES X13, RN1")
MLP = Sentence("the MLP is down(silu(gate(x)) · up(x))", "Shazeer 2020; PROPERTIES ML1")
LAYERS = Sentence(
    "layers are applied in order, all of them, each with its own tensors; a change of any tensor alone changes the logits as it must",
    "mlx aa8687681; PROPERTIES MO3, X13",
)
FLOAT32 = Sentence("scores and softmax are in float32, whatever the dtype of the model", "PROPERTIES X5, decisions")
CAUSAL = Sentence(
    "no token changes the logits of those before it, not in the last bit", "tiny-llm 0e439ac; PROPERTIES MO4"
)
BATCH = Sentence("a batch is the stack of its rows", "PROPERTIES X3, BK1")
QUANTISED = Sentence(
    "packed layers, of the model's group size and bits or of their own, give the logits of the weights that they stand for: the embedding and its tied head too",
    "vllm issue 45543; PROPERTIES QZ3, EM3",
)
LENGTHS = Sentence("one token, and prompts as long as tiles of 32 and 64, are right", "PROPERTIES X2")
TOKENS = Sentence(
    "tokens may be int32, int64 or uint32 and a strided view, and every id up to the last is one", "PROPERTIES X1, EM2"
)
DTYPE = Sentence(
    "logits are B×L×vocab_size in the dtype of the embedding (of its scales, where it is packed), or in float32 whatever is asked",
    "PROPERTIES X4",
    Aspect.DTYPE,
)
KEEPS = Sentence("no tensor and no token is changed", "PROPERTIES X6")
KEEPS_DICTS = Sentence(
    "the caller's config and dict of weights have what they had, and so has what is in them: no entry comes, goes or is replaced",
    "PROPERTIES X6",
    level=Level.SHOULD,
)
ALONE = Sentence(
    "a call depends on its arguments alone: repeated, it is the same bit for bit, whatever other model or tokens ran in between",
    "PROPERTIES X7, X11",
)
MISSING = Sentence("a tensor that the config asks for and the weights lack is refused", "PROPERTIES EM4", Aspect.GUARD)
MISSHAPED = Sentence("a tensor of another shape is refused", "PROPERTIES EM4", Aspect.GUARD)
ADDITIONAL = Sentence("a tensor that the config has no place for is refused", "PROPERTIES EM4", Aspect.GUARD)
NAMED = Sentence(
    "an error that refuses a tensor which is missing, misshaped or too many names it as the weights do",
    "PROPERTIES EM4",
    Aspect.GUARD,
    Level.SHOULD,
)
UNKNOWN_ROPE = Sentence(
    "a rope_type that is not known is refused, never taken for the default",
    "mlx-lm cff94b7f; PROPERTIES X13",
    Aspect.GUARD,
)
UNKNOWN_ACTIVATION = Sentence(
    "a hidden_act that is not known is refused, and one that is known is never taken for silu",
    "transformers, LlamaConfig; PROPERTIES X13",
    Aspect.GUARD,
)
VOCABULARY = Sentence("tokens outside 0 … vocab_size - 1 are refused", "PROPERTIES X9", Aspect.GUARD, Level.SHOULD)
SPLITS = Sentence(
    "fed in chunks through a cache, however they are cut, the logits are those of the whole at once",
    f"{CACHE}; tiny-llm 1fc0752; PROPERTIES MO1, CP1",
    cached=True,
)
DECODE = Sentence(
    "token by token after a prompt, each is at the position after the one before",
    "nano-vllm f5b4840; tiny-llm 4cddec2; PROPERTIES MO1, KV3",
    cached=True,
)
CHUNKS = Sentence(
    "a chunk of several tokens after others sees all that is cached and of itself what is not later",
    "PROPERTIES CM1, CP1",
    cached=True,
)
CACHE_BATCH = Sentence("so it is for a batch of sequences", "PROPERTIES X3, RO5", cached=True)
REQUESTS = Sentence(
    "caches made by one model are independent: requests that take turns do not see each other",
    "PROPERTIES CB4, X7",
    cached=True,
)
LONG_CACHE = Sentence(
    "a cache that grows past 256 tokens holds all of them", "mlx-lm eb98ff72; PROPERTIES KV2", cached=True
)
CACHE_REWOUND = Sentence(
    "a cache whose layers have rewind(n), which drops their last n tokens, goes on behind what is left, as if those had never been there",
    "Leviathan et al. 2023, whose rejected drafts are dropped so; PROPERTIES KV1, SP4",
    cached=True,
)
CACHE_QUANTISED = Sentence("so it is for packed weights", "PROPERTIES QZ3, MO1", cached=True)
CACHE_DTYPE = Sentence(
    "logits of a chunk are B×L×vocab_size in the dtype of the embedding, or in float32 whatever is in the cache",
    "PROPERTIES X4",
    Aspect.DTYPE,
    cached=True,
)
THREADS = Sentence(
    "a model that was made in one thread gives the same logits in another",
    "https://github.com/waybarrios/vllm-mlx/issues/613; PROPERTIES X7",
    level=Level.SHOULD,
)
CACHED_THREADS = Sentence(
    "a model that was made in one thread gives the same logits in another with a cache that was made there",
    "vllm-mlx c65c356; PROPERTIES X7",
    level=Level.SHOULD,
    cached=True,
)
ROPE_LINEAR = Sentence(
    "a rope_type of linear divides every frequency of RoPE by factor, at every position",
    "Chen et al. 2023, section 2.3; PROPERTIES RO9, X13",
)
ROPE_LLAMA3 = Sentence(
    "a rope_type of llama3 divides frequencies f of wavelengths 2π/f above N / low_freq_factor by factor, keeps those below N / high_freq_factor, and makes f · (kept + (1 - kept) / factor) of those between them, kept = (N·f/2π - low_freq_factor) / (high_freq_factor - low_freq_factor), N = original_max_position_embeddings, at every position",
    "apply_scaling of the reference code of Llama 3.1; PROPERTIES RO9, X13",
)
ROPE_YARN = Sentence(
    "a rope_type of yarn makes f · (1 - r + r / factor) of each frequency f, r rising with the pair from 0 where one turns beta_fast (32) times in original_max_position_embeddings, rounded down, to 1 where one turns beta_slow (1) times, rounded up, and multiplies queries and keys by 0.1 · ln(factor) + 1, at every position",
    "Peng et al. 2023, sections 3.2 to 3.4; PROPERTIES RO9, X13",
)
YARN_FIELDS = Sentence(
    "an attention_factor is what yarn multiplies queries and keys by; so is, where there are both, the ratio of 0.1 · mscale · ln(factor) + 1 to that of mscale_all_dim; a truncate of false leaves the ends of the ramp unrounded",
    "transformers, modeling_rope_utils; mlx-lm and vLLM 0.33 do the same; PROPERTIES X13",
)
SCALED_PLACES = Sentence(
    "a scaling means the same in rope_scaling, its kind under rope_type or type, beside rope_theta, and in rope_parameters; in both it counts once; its numbers may be whole, and whole ones may have a point",
    "transformers 5 writes rope_parameters alone; PROPERTIES X13",
)
SCALED_MISSING = Sentence(
    "a scaled RoPE without a factor is refused, and the field named", "PROPERTIES X9", Aspect.GUARD
)
SCALED_NUMBERS = Sentence(
    "a rope_type of llama3 without low_freq_factor or high_freq_factor, a number of a scaling that is not positive, and a high_freq_factor that is not above low_freq_factor are refused, and the field named",
    "apply_scaling of the reference code of Llama 3.1, which asserts that its bands differ; PROPERTIES X9",
    Aspect.GUARD,
    Level.SHOULD,
)
SCALED_CACHE = Sentence(
    "so it is for scaled RoPE: each chunk and each token is turned as in the whole",
    "PROPERTIES MO1, RO9",
    cached=True,
)
