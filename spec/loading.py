"""Loading: a model from its files, whatever form they have.

A subject offers `load(path)`: path is a folder of safetensors (`model.safetensors`, or shards with
`model.safetensors.index.json`, beside a `config.json`) or a `.gguf` file; what it returns is called with tokens B×L and
gives logits B×L×V, of a Llama or a Qwen3. In a call of the contract config and weights are what the files say, under
Hugging Face names, packed as MLX packs (`transformer`); `form` says how they are written. Writing the files is the
kit's part.

A GGUF file has its matrices in float32, float16 or blocks of 32 codes with float16 scales, and its norms in float32;
the model computes in float32, with whatever scale and minimum the blocks hold. What it says of RoPE, under `rope.scaling`:
type "none", "linear" or "yarn", factor, and original_context_length, the positions of training, which are
original_max_position_embeddings elsewhere; of type "none" it is not scaled, whatever the factor. A tensor `rope_freqs.weight` of a llama, one number for each pair, divides the
frequencies: so llama.cpp stores the scaling of a Llama 3.1.

Left open: a `model.safetensors` beside an index (transformers reads it and not the index), bytes of a safetensors body that
no tensor has or that two have, a tied model whose only matrix of the vocabulary is called after the head, the version of a
GGUF file, metadata of it that are not there or a `vocab_size` that is not that of the embedding.

Sources: the safetensors format; mlx-lm's `quantization` entry of a config; the GGUF specification of ggml.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.contract import Answer, Arguments, Aspect, Contract, Level, Operation, Requirement, Signature
from inferspec.spec.llama import Llama
from inferspec.spec.numerics import MODEL_LOGITS, Precision, is_float
from inferspec.spec.qwen3 import Qwen3
from inferspec.spec.rope_scaling import LENGTH
from inferspec.spec.stochastic import Exact
from inferspec.spec.transformer import Decoder

FORMS = ("folder", "sharded", "gguf")

DAMAGES = ("cut short", "no config", "no shard", "no weights", "header", "few data", "beyond")
"""What can be wrong with files: a tensor file that ends too early, no config.json, a shard that is not there, a folder
without tensors, a header that is not one, an entry of a header that gives a tensor fewer bytes than its shape takes, a
tensor of a GGUF file that begins past its end."""

HABITS = (
    "out of order",
    "no metadata",
    "another file",
    "aligned to 128",
    "aligned to 16",
    "unpadded end",
    "data out of order",
    "keys out of order",
    "few keys",
    "keys of other types",
    "shards of any names",
    "one shard",
    "unpadded header",
    "empty metadata",
    "long header",
    "links",
    "not in ASCII",
    "numbers of 64 bits",
    "format of MLX",
    "names not of models",
    "a model beside",
    "a whole model beside",
    "copies elsewhere",
    "many words",
    "empty texts",
    "aligned to 24",
    "whole header",
    "any letters in the path",
    "brackets in the path",
    "index without sizes",
    "shards in folders",
    "a checkpoint below",
    "a GGUF file beside",
)
"""What files may have otherwise and mean the same: a header of safetensors that names tensors in another order than
that of their data, or has no `__metadata__`; a file of safetensors beside those of the model, which no index names; a
GGUF file with a `general.alignment`, larger or smaller than usual, that ends with the last byte of a tensor, with data
in another order than its tensors are named in, with its keys in another order, or without those that say what is known:
a number of key heads that is that of the heads, and of ids, a base of RoPE of 10000, and that a qwen3 turns all
features of its heads; or with others, of types that are rare; shards whose names do not say how many they are, or an
index of a single one, as mlx-lm writes it; a header of safetensors that is not padded, so that data begin at any byte,
or whose `__metadata__` has nothing in it, or the format of MLX, or tens of thousands of characters; links to files
elsewhere whose names say nothing, as the hub's cache has them; texts in a config and in headers that have letters of
any language; shards that are not called after a model, and one that is and that no index names, or a file of a whole
model as it lies in folders without an index; counts of a GGUF file in the 64 bits that its specification has, where
llama.cpp writes 32, or a tokenizer of thousands of words, or texts of no letters, or an alignment that is a multiple
of 8 and no power of two, or a header that ends where the data may begin, without padding. An index may say nothing of
sizes, and name shards in folders of their own; a folder within, as training leaves it, may be that of another
checkpoint, and a GGUF file beside the others hold no tensor of the model. What the files lie in may be called
anything, with letters of any language, spaces and signs that addresses have for others, or with brackets, which
patterns have for others.
"copies elsewhere" is what may be refused: shards with other tensors of a name that the index places in another one."""

Config = dict[str, Any]
Weights = dict[str, np.ndarray]

ROPE_FACTORS = "rope_freqs.weight"


KEPT = 4
_LATELY: dict[bytes, np.ndarray] = {}
"""Logits of the last trained models, by what they were computed from."""


class FactoredLlama(Llama):
    """A llama of a GGUF file, which may divide each frequency of RoPE by a factor of its own, `rope_factors` of its config."""

    def guard_rope(self, config: Mapping[str, Any]) -> None:
        super().guard_rope(config)
        pairs = self.head_dim(config) // 2
        if len(factors := config.get("rope_factors", [1.0] * pairs)) != pairs:
            raise ValueError(f"{ROPE_FACTORS} has {len(factors)} numbers, not one for each of {pairs} pairs")

    def rescaled(self, frequencies: np.ndarray, config: Mapping[str, Any], m: Exact) -> np.ndarray:
        scaled = super().rescaled(frequencies, config, m)
        factors = config.get("rope_factors")
        return scaled if factors is None else m.in_float32(scaled / np.array(factors))


class Load(Operation):
    """The logits of the model that the files hold."""

    # lost: the bytes that files which are cut short lack.
    # stored: the name of a trained model, whose files are there already; rewritten: they are written anew all the same.
    # written: some of HABITS. asked: tokens that the model is asked before, which make no difference; nor does `beside`, the
    # config and weights of another model, which is loaded after it, from elsewhere, and asked the same tokens first.
    signature = Signature.parse(
        "load(config, weights, form, tokens, damage='', lost=1, stored='', rewritten=False, written=(), asked=(), beside=None)"
    )
    methods = ("__call__",)
    unless_declared: ClassVar = {"rope_types": ("default",), "gguf_rope": ("default",)}
    models: ClassVar[Mapping[str, type[Decoder]]] = {"llama": FactoredLlama, "qwen3": Qwen3}

    def guard(self, a: Arguments) -> None:
        self.guard_files(a)
        self.guard_kind(a.config)
        inner = self.inner(a)
        decoder = self.decoder(inner.config)
        shapes = decoder.shapes(inner)
        self.guard_missing(inner, shapes)
        self.guard_shapes(inner, shapes)
        self.guard_additional(inner, shapes)
        decoder.guard(self.completed(inner))

    def guard_files(self, a: Arguments) -> None:
        if a.damage:
            raise ValueError(f"the files are damaged: {a.damage}")

    def guard_kind(self, config: Mapping[str, Any]) -> None:
        if config.get("model_type") not in self.models:
            raise ValueError(f"model_type is {config.get('model_type')!r}; it takes {', '.join(self.models)}")

    def guard_missing(self, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.decoder(a.config).guard_missing(a, shapes)

    def guard_shapes(self, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.decoder(a.config).guard_shapes(a, {name: shape for name, shape in shapes.items() if name in a.weights})

    def guard_additional(self, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        self.decoder(a.config).guard_additional(a, shapes)

    def decoder(self, config: Mapping[str, Any]) -> Decoder:
        """The model of a config."""
        return self.models[config["model_type"]]()

    # How the files are understood: faults go here.

    def inner(self, a: Arguments) -> Arguments:
        """The arguments of the model that the files hold."""
        config, weights = self.configured(dict(a.config), a), dict(a.weights)
        if a.form == "sharded":
            weights = self.gathered(weights)
        if a.form != "gguf":
            weights = self.of_the_model(weights)
        if a.form == "gguf":
            config, weights = self.from_gguf(self.rope_as_scaled(config), weights)
            config, weights = self.factored(config, weights)
            if not a.stored:
                weights = {name: x.astype(np.float32) if is_float(x.dtype) else x for name, x in weights.items()}
        config, weights = self.unpacked(config, weights)
        return Arguments(config=config, weights=weights, tokens=np.array(a.tokens, np.int32))

    def configured(self, config: Config, a: Arguments) -> Config:
        """The configuration as it is read."""
        return config

    def gathered(self, weights: Weights) -> Weights:
        """The tensors of all shards."""
        return weights

    def of_the_model(self, weights: Weights) -> Weights:
        """Without the frequencies of RoPE that older files have: every model computes its own."""
        return {name: x for name, x in weights.items() if not name.endswith("rotary_emb.inv_freq")}

    def rope_as_scaled(self, config: Config) -> Config:
        """The scaling of RoPE in a GGUF file, under the names of a config: a factor without a kind is a linear one, also
        under its older name, rope.scale_linear."""
        said = {key: config[key] for key in ("rope_scaling", "rope_scale_linear") if config.get(key)}
        rest = {key: x for key, x in config.items() if key not in said}
        if "rope_scale_linear" in said:
            said["rope_scaling"] = {"factor": said["rope_scale_linear"]} | said.get("rope_scaling", {})
        if self.says_none(said.get("rope_scaling", {})):
            return rest
        return {**rest, "rope_scaling": self.renamed({"type": "linear", **said["rope_scaling"]})} if said else config

    def says_none(self, scaling: Config) -> bool:
        """Whether a GGUF file says that RoPE is not scaled."""
        return scaling.get("type") == "none"

    def renamed(self, scaling: Config) -> Config:
        """The fields of a scaling of a GGUF file as a config has them."""
        return {LENGTH if key == "original_context_length" else key: x for key, x in scaling.items()}

    def factored(self, config: Config, weights: Weights) -> tuple[Config, Weights]:
        """What divides the frequencies of a llama in a GGUF file, which is a tensor there."""
        if config.get("model_type") != "llama" or ROPE_FACTORS not in weights:
            return config, weights
        rest = {name: x for name, x in weights.items() if name != ROPE_FACTORS}
        return {**config, "rope_factors": self.factors(weights[ROPE_FACTORS])}, rest

    def factors(self, stored: np.ndarray) -> list[float]:
        """What divides the frequency of each pair."""
        return [float(factor) for factor in stored]

    def from_gguf(self, config: Config, weights: Weights) -> tuple[Config, Weights]:
        """What a GGUF file holds, under Hugging Face names and in Hugging Face's order of rows."""
        return config, weights

    def unpacked(self, config: Config, weights: Weights) -> tuple[Config, Weights]:
        """Quantised tensors as the config's entry says."""
        return config, weights

    def completed(self, a: Arguments) -> Arguments:
        """What the model is built of, once nothing is refused."""
        return a

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: that of the model; of a trained one, which is large, the one that its goldens were agreed with."""
        inner = self.completed(self.inner(a))
        if not a.stored:
            return self.decoder(inner.config).evaluate(inner, precision)
        value = self.trained(inner)
        return Answer(value, np.full(value.shape, MODEL_LOGITS * np.abs(value).max(initial=0.0)))

    def respond(self, a: Arguments) -> Any:
        inner = self.completed(self.inner(a))
        if a.stored:
            return self.finish(self.trained(inner), a)
        return self.finish(self.decoder(inner.config).forward(inner.tokens, inner, Exact())[0], a)

    def trained(self, inner: Arguments) -> np.ndarray:
        """The logits of a trained model. A diagnosis asks the same ones of every fault that has no part in them, and
        a hundred million parameters take seconds: those of the last few models are kept."""
        digest = hashlib.blake2b(json.dumps(inner.config, sort_keys=True).encode() + inner.tokens.tobytes())
        for name in sorted(inner.weights):
            digest.update(name.encode())
            digest.update(inner.weights[name].tobytes())
        key = digest.digest()
        if key not in _LATELY:
            while len(_LATELY) >= KEPT:
                _LATELY.pop(next(iter(_LATELY)))
            _LATELY[key] = self.decoder(inner.config).forward(inner.tokens, inner, Exact())[0]
        return _LATELY[key]

    def result_dtype(self, a: Arguments) -> str:
        if a.form == "gguf":
            return "float32"
        return self.decoder(a.config).result_dtype(a)


def _load(
    id: str, text: str, level: Level = Level.MUST, aspect: Aspect = Aspect.VALUE, source: str = ""
) -> Requirement:
    return Requirement(id, text, "load", level, aspect, source)


HF_FORMAT = "the layout of Hugging Face checkpoints"
GGUF = "https://github.com/ggml-org/ggml/blob/master/docs/gguf.md"

LOAD_01 = _load(
    "LOAD-01",
    "a folder gives the model of its config.json and model.safetensors: every tensor counts, each under its own name",
    source="PROPERTIES EM4, MO3",
)
LOAD_02 = _load(
    "LOAD-02",
    "shards give the model that one file gives: the tensors of all files that the index names",
    source=HF_FORMAT,
)
LOAD_03 = _load(
    "LOAD-03",
    "a model from a folder computes in the dtype that its tensors are stored in",
    Level.SHOULD,
    Aspect.DTYPE,
    source="PROPERTIES X4",
)
LOAD_04 = _load(
    "LOAD-04",
    "the head is the embedding where tie_word_embeddings says so, packed or dense, and lm_head.weight where it does not",
    source="mlx-lm e92138cb; vllm 45543; PROPERTIES EM3",
)
LOAD_05 = _load(
    "LOAD-05",
    "the base of RoPE is read from rope_theta and, as transformers 5 writes it, from rope_parameters",
    source="the config.json of transformers 4 and 5",
)
LOAD_06 = _load(
    "LOAD-06",
    "MLX-quantised tensors are used with the bits and the group size that the config's quantization says",
    source="mlx-lm's quantization format; PROPERTIES QZ3",
)
LOAD_07 = _load(
    "LOAD-07",
    "a layer with an entry of its own under quantization has its own bits and group size, and one without scales is dense",
    source="mlx-lm's quantization format",
)
LOAD_08 = _load(
    "LOAD-08",
    "a GGUF file of F32 or F16 tensors gives the model of its metadata and tensors",
    source=GGUF,
)
LOAD_09 = _load(
    "LOAD-09",
    "the query and key rows of a llama in GGUF are in the order of traditional RoPE, head by head, those of a qwen3 are not",
    source="llama.cpp 3018; PROPERTIES RO4",
)
LOAD_10 = _load(
    "LOAD-10",
    "Q4_0, Q4_1 and Q8_0 blocks are scale · (code − 8), scale · code + minimum and scale · signed code, low nibbles first",
    source="ggml-quants.c of ggml",
)
LOAD_11 = _load(
    "LOAD-11",
    "a tensor that the config asks for and the files do not have is refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES EM4, X9",
)
LOAD_12 = _load(
    "LOAD-12",
    "a tensor that the model has no place for is refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES EM4",
)
LOAD_13 = _load(
    "LOAD-13",
    "a tensor of another shape than the config asks for is refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES EM4, X9",
)
LOAD_14 = _load(
    "LOAD-14",
    "a model_type that the subject does not have is refused, and not taken for another",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
LOAD_15 = _load(
    "LOAD-15",
    "files that are cut short or damaged, and folders in which one is lacking, are refused",
    aspect=Aspect.GUARD,
    source="PROPERTIES X9",
)
LOAD_16 = _load(
    "LOAD-16",
    "a model depends on its files alone: one that was loaded from the same path before leaves nothing behind, and"
    " one that is loaded beside it changes nothing",
    source="PROPERTIES X7",
)
LOAD_17 = _load(
    "LOAD-17",
    "the trained Qwen3 of golden/models gives the float32 logits and the greedy text of transformers and mlx-lm, in"
    " bfloat16 and in 4 bits",
    source="golden/models/tiny-qwen3, golden/models/tiny-qwen3-4bit",
)
LOAD_18 = _load(
    "LOAD-18",
    "SmolLM2-135M-Instruct, from its GGUF file, gives the float32 logits and the greedy text of transformers and mlx-lm",
    source="golden/models/smollm2-135m-instruct",
)
LOAD_19 = _load(
    "LOAD-19",
    "a model whose config.json has no tie_word_embeddings has a head of its own, lm_head.weight",
    source="transformers, LlamaConfig and Qwen3Config; PROPERTIES EM3",
)
LOAD_20 = _load(
    "LOAD-20",
    "the rotary_emb.inv_freq of older files is passed over",
    source="transformers and mlx-lm, which pass over it; the files of Llama 2",
)
LOAD_21 = _load(
    "LOAD-21",
    "the biases of a llama in GGUF are added, those of its queries and keys in the order of traditional RoPE as their rows",
    source="llama.cpp, build_llama and permute in convert_hf_to_gguf.py; PROPERTIES X13",
)
LOAD_22 = _load(
    "LOAD-22",
    "a config.json or a GGUF file that asks for scaled RoPE is refused, or scaled: it is not taken for the default",
    aspect=Aspect.GUARD,
    source=f"{GGUF}, rope.scaling.type; PROPERTIES X13",
)
LOAD_23 = _load(
    "LOAD-23",
    "a model that was asked before answers as if it were asked for the first time",
    source="PROPERTIES X7",
)
LOAD_24 = _load(
    "LOAD-24",
    "of a folder with an index the files are read that it names and no others, whatever they are called",
    Level.SHOULD,
    source=HF_FORMAT,
)
LOAD_25 = _load(
    "LOAD-25",
    "a tensor is that of the file that the index places it in: where another file has one of that name too, it is passed over, or the folder refused",
    Level.SHOULD,
    source="vllm#54230; PROPERTIES EM4",
)
LOAD_26 = _load(
    "LOAD-26",
    "a folder whose config.json scales RoPE, linearly or as llama3 or yarn, gives the model with that RoPE, or is refused; who"
    " declares the type refuses none",
    source="transformers, modeling_rope_utils; PROPERTIES X13",
)
LOAD_27 = _load(
    "LOAD-27",
    "a GGUF file that scales RoPE, by a factor, linearly or as yarn, or whose rope_freqs.weight divides the frequencies of a"
    " llama, gives the model with that RoPE, or is refused; who declares the way refuses none",
    source=f"{GGUF}, rope.scaling; llama.cpp 8676 (rope_freqs.weight)",
)
LOAD_28 = _load(
    "LOAD-28",
    "an error that refuses a tensor of a folder which is missing, misshaped or without a place names it as the files do",
    Level.SHOULD,
    Aspect.GUARD,
    "PROPERTIES EM4, X9",
)
LOAD_29 = _load(
    "LOAD-29",
    "a GGUF file is not refused for data in another order than its tensors are named in, nor for counts of 64 bits",
    Level.SHOULD,
    source=f"{GGUF}, which allows both; llama.cpp, which writes neither, refuses them",
)
LOAD_30 = _load(
    "LOAD-30",
    "a config.json that says another dtype than its tensors are stored in gives their model, in either dtype",
    source="transformers, whose models are in the config's dtype; mlx-lm, whose are in that of the tensors; PROPERTIES X4",
)
LOAD_31 = _load(
    "LOAD-31",
    "under quantization a layer's own entry may be true, where it is packed as the model is, or false, where it is not, and so "
    "may that of a norm or of RoPE, which never is: older mlx-lm wrote one for every module",
    Level.SHOULD,
    source="mlx-lm before https://github.com/ml-explore/mlx-lm/pull/349",
)


CONTRACT = Contract(
    component="loading",
    title="loading a model from its files",
    version=1,
    operations=(Load,),
    envelope={
        "forms": FORMS,
        "models": ("llama", "qwen3"),
        "dtypes": ("float32", "float16", "bfloat16"),
        "packing": ("dense", "4-bit", "8-bit", "2-bit", "mixed"),
        "group_sizes": (32, 64, 128),
        "gguf_types": ("F32", "F16", "Q4_0", "Q4_1", "Q8_0", "mixed"),
        "heads": ((4, 2), (2, 2), (3, 1), (6, 2)),
        "head_dims": ("free", "multiple"),
        "biases": ("none", "attention", "mlp", "both"),
        "rope": ("rope_theta", "rope_parameters"),
        "rope_types": ("default", "linear", "llama3", "yarn"),
        "gguf_rope": ("default", "linear", "yarn", "factors"),
        "tied": (True, False),
        "damages": DAMAGES,
        "trained": ("tiny-qwen3", "tiny-qwen3-4bit"),
        "packaged": ("smollm2-135m-instruct",),
    },
    requirements=tuple(value for value in list(globals().values()) if isinstance(value, Requirement)),
)
