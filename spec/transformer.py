"""The decoder that Llama and Qwen3 share: embedding, blocks of attention and MLP behind their norms, norm, head.

Shapes: tokens B×L ids, logits B×L×V. config is the dict of a Hugging Face `config.json`, weights its tensors by name:
dense (O×I), or packed as MLX stores them (`X.weight` uint32, `X.scales`, `X.biases`) with `config["quantization"]`.
With a cache the tokens of a call follow those of the calls before. Left open: what a call without tokens gives, B or L of 0.

Inside, arrays have the runs of the arithmetic first (`stochastic`): R×B×L×E, heads R×B×H×L×D.

Sources: Touvron et al. 2023 (Llama), section 2.2; Yang et al. 2025 (Qwen3), section 2; the tiny-llm course, week 1 days
3 to 5, week 2 days 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from inferspec.spec.contract import Answer, Arguments
from inferspec.spec.numerics import Precision, f64, is_float, model_budget
from inferspec.spec.rope_scaling import ScaledRope
from inferspec.spec.stochastic import Disturbed, Exact, Matrix

Memory = dict[Any, Any]
"""The cache of one request: layer -> (keys, values), R×B×H×S×D each, and "offset" -> the number of tokens so far."""

KEPT = 64
"""Answers that are kept."""

_ANSWERS: dict[Any, tuple[Answer, Any, Any]] = {}

BLOCK_LINEARS = (
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj",
)
BLOCK_NORMS = ("input_layernorm", "post_attention_layernorm")
HEAD_NORMS = ("self_attn.q_norm", "self_attn.k_norm")


class Decoder(ScaledRope):
    """Tokens in, logits out."""

    unless_declared: ClassVar = {"rope_types": ("default",)}
    head_norms: ClassVar[bool] = False
    """Whether queries and keys are normalised head by head."""

    def guard(self, a: Arguments) -> None:
        self.guard_config(a.config)
        shapes = self.shapes(a)
        self.guard_missing(a, shapes)
        self.guard_shapes(a, shapes)
        self.guard_additional(a, shapes)
        self.guard_tokens(a)

    def guard_config(self, config: Mapping[str, Any]) -> None:
        self.guard_rope(config)
        self.guard_activation(config)

    def guard_activation(self, config: Mapping[str, Any]) -> None:
        # transformers has SiLU under both names.
        if (kind := config.get("hidden_act") or "silu") not in ("silu", "swish"):
            raise ValueError(f"hidden_act is {kind!r}, not 'silu'")

    def guard_missing(self, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        if missing := sorted(set(shapes) - set(a.weights)):
            raise ValueError(f"weights have no {missing[0]}")

    def guard_shapes(self, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        for name, shape in shapes.items():
            if a.weights[name].shape != shape:
                raise ValueError(f"{name} is {a.weights[name].shape}, not {shape}")

    def guard_additional(self, a: Arguments, shapes: Mapping[str, tuple[int, ...]]) -> None:
        spare = {name for name in a.weights if self.tied(a.config) and name.startswith("lm_head.")}
        if unknown := sorted(set(a.weights) - set(shapes) - spare):
            raise ValueError(f"no place for {unknown[0]}")

    def guard_tokens(self, a: Arguments) -> None:
        for tokens in self.all_tokens(a):
            ids = tokens.astype(np.int64)
            if ids.size and not 0 <= ids.min() <= ids.max() < a.config["vocab_size"]:
                raise ValueError(f"tokens range from {ids.min()} to {ids.max()}")

    def all_tokens(self, a: Arguments) -> Sequence[np.ndarray]:
        return [a.tokens]

    def shapes(self, a: Arguments) -> dict[str, tuple[int, ...]]:
        """The shape of each tensor that the config asks for; a layer is packed where the weights have its scales."""
        config: Mapping[str, Any] = a.config
        found: dict[str, tuple[int, ...]] = {}
        hidden, inner, dim = config["hidden_size"], config["intermediate_size"], self.head_dim(config)
        queries, keys = (heads * dim for heads in self.heads(config))
        rows = (queries, keys, keys, hidden, inner, inner, hidden)
        columns = (hidden, hidden, hidden, queries, hidden, hidden, inner)
        linears = {"model.embed_tokens": (config["vocab_size"], hidden)}
        if not self.tied(config):
            linears["lm_head"] = (config["vocab_size"], hidden)
        for layer in (f"model.layers.{i}" for i in range(config["num_hidden_layers"])):
            for name, outputs, inputs in zip(BLOCK_LINEARS, rows, columns, strict=True):
                linears[f"{layer}.{name}"] = (outputs, inputs)
                if self.biased(name, config):
                    found[f"{layer}.{name}.bias"] = (outputs,)
            found |= {f"{layer}.{name}.weight": (hidden,) for name in BLOCK_NORMS}
            found |= {f"{layer}.{name}.weight": (dim,) for name in HEAD_NORMS if self.head_norms}
        found["model.norm.weight"] = (hidden,)
        for name, (outputs, inputs) in linears.items():
            if f"{name}.scales" not in a.weights or "quantization" not in config:
                found[f"{name}.weight"] = (outputs, inputs)
                continue
            group, bits = self.packing(name, config)
            found[f"{name}.weight"] = (outputs, inputs * bits // 32)
            found |= {f"{name}.{part}": (outputs, inputs // group) for part in ("scales", "biases")}
        return found

    # What the config says.

    def heads(self, config: Mapping[str, Any]) -> tuple[int, int]:
        """Query heads and key/value heads."""
        return config["num_attention_heads"], config.get("num_key_value_heads") or config["num_attention_heads"]

    def head_dim(self, config: Mapping[str, Any]) -> int:
        return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]

    def scale(self, config: Mapping[str, Any]) -> float:
        """What attention's logits are multiplied by."""
        return self.head_dim(config) ** -0.5

    def theta(self, config: Mapping[str, Any]) -> float:
        """The base of RoPE, in either style; where there is none, that of Hugging Face's Llama."""
        place = config if config.get("rope_theta") else config.get("rope_parameters") or {}
        return place.get("rope_theta") or 10000.0

    def eps(self, name: str, config: Mapping[str, Any]) -> float:
        """What the norm `name` adds inside the root."""
        return config["rms_norm_eps"]

    def tied(self, config: Mapping[str, Any]) -> bool:
        """Whether the head is the embedding; it is not where the config does not say."""
        return bool(config.get("tie_word_embeddings"))

    def biased(self, name: str, config: Mapping[str, Any]) -> bool:
        """Whether a layer of a block has a bias."""
        return bool(config.get("attention_bias" if name.startswith("self_attn.") else "mlp_bias"))

    def packing(self, name: str, config: Mapping[str, Any]) -> tuple[int, int]:
        """Group size and bits of a quantised layer: its own, or the model's."""
        own = config["quantization"].get(name)
        entry = {**config["quantization"], **(own if isinstance(own, Mapping) else {})}
        return entry["group_size"], entry["bits"]

    def window(self, layer: int, config: Mapping[str, Any]) -> int | None:
        """How many keys a query of a layer sees at most; None for all."""
        return None

    def layers(self, config: Mapping[str, Any]) -> Sequence[int]:
        """The layers, in the order in which they are applied."""
        return range(config["num_hidden_layers"])

    # The tensors.

    def array(self, name: str, a: Arguments) -> np.ndarray:
        return a.weights[name]

    def matrix(self, name: str, a: Arguments) -> Matrix:
        """The weight and bias of a linear layer or of the embedding."""
        bias = f64(self.array(f"{name}.bias", a)) if self._has_bias(name, a) else None
        if f"{name}.scales" not in a.weights:
            value = f64(self.array(f"{name}.weight", a))
            return Matrix(value, value, bias=bias)
        group, bits = self.packing(name, a.config)
        codes = self.codes(self.array(f"{name}.weight", a), bits)
        scales, offsets = (f64(self.array(f"{name}.{part}", a)) for part in ("scales", "biases"))
        steps, starts = (np.repeat(x, group, axis=-1) for x in (scales, offsets))
        return Matrix(codes * steps + starts, np.abs(codes * steps) + np.abs(starts), True, bias)

    def codes(self, packed: np.ndarray, bits: int) -> np.ndarray:
        """O×I numbers below 2^bits; the first of each word is in its lowest bits."""
        shifts = np.arange(0, 32, bits, dtype=np.uint32)
        return f64(packed[..., None] >> shifts & np.uint32(2**bits - 1)).reshape(len(packed), -1)

    def head(self, a: Arguments) -> Matrix:
        """The matrix that makes logits."""
        return self.matrix("model.embed_tokens" if self.tied(a.config) else "lm_head", a)

    def _has_bias(self, name: str, a: Arguments) -> bool:
        return name.startswith("model.layers.") and self.biased(name.split(".", 3)[3], a.config)

    # The computation, in its order.

    def forward(self, tokens: np.ndarray, a: Arguments, m: Exact, memory: Memory | None = None) -> np.ndarray:
        """R×B×L×V logits of tokens that follow those in memory, which then holds theirs too."""
        memory = {} if memory is None else memory
        ids = tokens.astype(np.int64)
        x = self.embed(np.broadcast_to(ids, (m.runs, *ids.shape)), a, m)
        positions = self.positions(memory, tokens.shape[1])
        for layer in self.layers(a.config):
            x = self.block(x, layer, positions, memory, a, m)
        self.advance(memory, tokens.shape[1])
        return m.stored(m.linear(self.norm(x, "model.norm", a, m), self.head(a)))

    def embed(self, ids: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
        return m.stored(m.passing(self.matrix("model.embed_tokens", a).value[ids]))

    def positions(self, memory: Memory, length: int) -> np.ndarray:
        """The positions of a call's tokens, L."""
        return f64(memory.get("offset", 0) + np.arange(length))

    def advance(self, memory: Memory, length: int) -> None:
        memory["offset"] = memory.get("offset", 0) + length

    def block(
        self, x: np.ndarray, layer: int, positions: np.ndarray, memory: Memory, a: Arguments, m: Exact
    ) -> np.ndarray:
        name = f"model.layers.{layer}"
        normed = self.norm(x, f"{name}.input_layernorm", a, m)
        x = m.stored(self.added(x, self.attention(normed, layer, positions, memory, a, m), normed))
        normed = self.norm(x, f"{name}.post_attention_layernorm", a, m)
        return m.stored(self.added(x, self.mlp(normed, name, a, m), normed))

    def added(self, x: np.ndarray, branch: np.ndarray, normed: np.ndarray) -> np.ndarray:
        """The residual stream after a branch that read `normed`."""
        return x + branch

    def norm(self, x: np.ndarray, name: str, a: Arguments, m: Exact) -> np.ndarray:
        root = m.computed(self.inverse_root(m.mean_square(x), self.eps(name, a.config)))
        return m.stored(m.stored(x * root) * f64(self.array(f"{name}.weight", a)))

    def inverse_root(self, mean: np.ndarray, eps: float) -> np.ndarray:
        return 1 / np.sqrt(mean + eps)

    def attention(
        self, x: np.ndarray, layer: int, positions: np.ndarray, memory: Memory, a: Arguments, m: Exact
    ) -> np.ndarray:
        name = f"model.layers.{layer}.self_attn"
        queries, keys = self.heads(a.config)
        query = self.placed(self.project(x, f"{name}.q_proj", queries, a, m), f"{name}.q_norm", positions, a, m)
        key = self.placed(self.project(x, f"{name}.k_proj", keys, a, m), f"{name}.k_norm", positions, a, m)
        key, value = self.extended(memory, layer, key, self.project(x, f"{name}.v_proj", keys, a, m))
        read, window = self.read_heads(queries, keys), self.window(layer, a.config)
        attended = m.by_head(
            lambda q, k, v, m: self.attend(q, k, v, a, m, window), query, key[:, :, read], value[:, :, read]
        )
        return m.stored(m.linear(self.merged(attended), self.matrix(f"{name}.o_proj", a)))

    def project(self, x: np.ndarray, name: str, heads: int, a: Arguments, m: Exact) -> np.ndarray:
        """R×B×L×E -> R×B×H×L×D."""
        return self.split(m.stored(m.linear(x, self.matrix(name, a))), heads)

    def split(self, x: np.ndarray, heads: int) -> np.ndarray:
        """R×B×L×(H·D) -> R×B×H×L×D."""
        return x.reshape(*x.shape[:-1], heads, -1).swapaxes(2, 3)

    def merged(self, x: np.ndarray) -> np.ndarray:
        """R×B×H×L×D -> R×B×L×(H·D)."""
        x = x.swapaxes(2, 3)
        return x.reshape(*x.shape[:3], -1)

    def placed(self, x: np.ndarray, norm: str, positions: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
        """Queries or keys as attention reads them: normalised (Qwen3), then turned by position."""
        return self.turn(self.norm(x, norm, a, m) if self.head_norms else x, positions, a, m)

    def turn(self, x: np.ndarray, positions: np.ndarray, a: Arguments, m: Exact) -> np.ndarray:
        """RoPE: pair i of D/2 turns by position · theta^(-2i/D), or as the config scales that."""
        cos, sin = self.rotation(positions, x.shape[-1], a, m)
        first, second = self.pairs(x.shape[-1])
        one, other = x[..., first], x[..., second]
        turned = np.empty_like(x)
        turned[..., first] = m.passing(one * cos) - m.passing(other * sin)
        turned[..., second] = m.passing(one * sin) + m.passing(other * cos)
        return m.stored(turned)

    def rotation(self, positions: np.ndarray, dim: int, a: Arguments, m: Exact) -> tuple[np.ndarray, np.ndarray]:
        """Cosine and sine of each position and pair."""
        frequencies = m.frequencies(self.theta(a.config) ** (-np.arange(0, dim, 2) / dim))
        frequencies = self.rescaled(frequencies, a.config, m)
        turns = m.turns(positions[:, None] * frequencies[:, None, None, None])
        if (factor := self.attention_factor(a.config)) == 1:
            return turns
        cos, sin = (m.passing(x * factor) for x in turns)
        return cos, sin

    def pairs(self, dim: int) -> tuple[Any, Any]:
        """Where the two features of each pair are: the halves of a head."""
        return slice(dim // 2), slice(dim // 2, dim)

    def extended(self, memory: Memory, layer: int, key: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All keys and values of a layer, after those of the new tokens are put at the end."""
        if layer in memory:
            key, value = (np.concatenate(pair, axis=3) for pair in zip(memory[layer], (key, value), strict=True))
        memory[layer] = key, value
        return key, value

    def read_heads(self, queries: int, keys: int) -> np.ndarray:
        """Which key/value head each query head reads."""
        return np.arange(queries) // (queries // keys)

    def attend(
        self,
        query: np.ndarray,
        key: np.ndarray,
        value: np.ndarray,
        a: Arguments,
        m: Exact,
        window: int | None = None,
    ) -> np.ndarray:
        """softmax(query · keyᵀ · scale) · value over the visible keys, of which the last `window` count."""
        scores = m.passing(self.scored(m.passing(m.product(query, key.swapaxes(-1, -2))), a))
        visible = self.seen(query.shape[-2], key.shape[-2], window)
        # In place: of a thousand tokens a head has a million scores.
        scores = np.where(visible, scores, -np.inf)
        np.subtract(scores, scores.max(axis=-1, keepdims=True), out=scores)
        weights = m.computed(np.exp(scores, out=scores))
        np.divide(weights, weights.sum(axis=-1, keepdims=True), out=weights)
        weights = m.passing(m.computed(weights))
        return m.stored(m.product(weights, value))

    def scored(self, scores: np.ndarray, a: Arguments) -> np.ndarray:
        """The scaled products, which softmax takes."""
        return scores * self.scale(a.config)

    def visible(self, length: int, keys: int) -> np.ndarray:
        """Whether query i sees key j, L×S: the last query sees the last key."""
        return np.arange(keys) <= np.arange(length)[:, None] + (keys - length)

    def seen(self, length: int, keys: int, window: int | None) -> np.ndarray:
        """Whether query i sees key j and has it in its window, L×S."""
        visible = self.visible(length, keys)
        return visible if window is None else visible & self.recent(length, keys, window)

    def recent(self, length: int, keys: int, window: int) -> np.ndarray:
        """Whether key j is among the last `window` up to that of query i, L×S."""
        return np.arange(keys) > np.arange(length)[:, None] + (keys - length) - window

    def mlp(self, x: np.ndarray, name: str, a: Arguments, m: Exact) -> np.ndarray:
        gate, up = (m.stored(m.linear(x, self.matrix(f"{name}.mlp.{part}_proj", a))) for part in ("gate", "up"))
        hidden = m.stored(m.stored(self.activated(gate, m)) * up)
        return m.stored(m.linear(hidden, self.matrix(f"{name}.mlp.down_proj", a)))

    def activated(self, gate: np.ndarray, m: Exact) -> np.ndarray:
        """SiLU."""
        with np.errstate(over="ignore"):
            return gate * m.passing(m.computed(1 / (1 + np.exp(-gate))))

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: `model_budget`, of the runs whose every operation is disturbed as rounding would disturb it."""
        return self.answered(a.tokens, a, precision)

    def answered(self, tokens: np.ndarray, a: Arguments, precision: Precision) -> Answer:
        """The logits of a whole sequence, with their budget. The last answers are kept: a comparison and a diagnosis ask
        for each more than once."""
        key = (type(self), precision, id(a.config), id(a.weights), tokens.tobytes())
        if key not in _ANSWERS:
            dtype = self.result_dtype(a)
            value, *disturbed = self.forward(tokens, a, Disturbed(dtype, precision))
            answer = Answer(value, model_budget(np.array(disturbed), value, dtype))
            # With the objects whose ids are in the key, which then are not given to others.
            _ANSWERS[key] = answer, a.config, a.weights
            if len(_ANSWERS) > KEPT:
                del _ANSWERS[next(iter(_ANSWERS))]
        return _ANSWERS[key][0]

    def respond(self, a: Arguments) -> Any:
        return self.finish(self.forward(a.tokens, a, Exact())[0], a)

    def result_dtype(self, a: Arguments) -> str:
        table = a.weights["model.embed_tokens.weight"]
        return (table if is_float(table.dtype) else a.weights["model.embed_tokens.scales"]).dtype.name


class Incremental(Decoder):
    """Chunks of tokens, each after those of its request, through a cache for each request.

    chunks: arrays B×L_i; requests: whose each chunk is, all of one by default, None for one without a cache; rewinds: how many
    tokens the layers of its request's cache are rewound by after each chunk, none by default. A cache whose layers have no
    `rewind` is made anew of what is left. The result is the logits of every chunk in the order given, B×ΣL_i×V. The oracle never caches: it
    computes each request's whole sequence at once.
    """

    methods: ClassVar[tuple[str, ...]] = ("make_cache", "__call__")

    def all_tokens(self, a: Arguments) -> Sequence[np.ndarray]:
        return a.chunks

    def owners(self, a: Arguments) -> Sequence[Any]:
        """Whose cache each chunk goes through."""
        return a.requests or [0] * len(a.chunks)

    def evaluate(self, a: Arguments, precision: Precision) -> Answer:
        """Budget: that of the whole sequences, whose roundings are no fewer."""
        if a.rewinds:
            return self.evaluate_rewound(a, precision)
        owners = list(a.requests or [0] * len(a.chunks))
        answers = {}
        for owner in dict.fromkeys(owners):
            tokens = np.concatenate([c for c, own in zip(a.chunks, owners, strict=True) if own == owner], axis=1)
            answers[owner] = self.answered(tokens, a, precision)
        values, budgets = ({own: getattr(x, part) for own, x in answers.items()} for part in ("value", "budget"))
        return Answer(*(_in_order(a.chunks, owners, whole) for whole in (values, budgets)))

    def evaluate_rewound(self, a: Arguments, precision: Precision) -> Answer:
        """Each chunk behind what is left of its request then."""
        left: dict[Any, np.ndarray] = {}
        values, budgets = [], []
        owners = a.requests or [0] * len(a.chunks)
        for chunk, owner, dropped in zip(a.chunks, owners, a.rewinds, strict=True):
            tokens = np.concatenate([left.get(owner, chunk[:, :0]), chunk], axis=1)
            answer = self.answered(tokens, a, precision)
            values.append(answer.value[:, -chunk.shape[1] :])
            budgets.append(answer.budget[:, -chunk.shape[1] :])
            left[owner] = tokens[:, : tokens.shape[1] - dropped]
        return Answer(np.concatenate(values, axis=1), np.concatenate(budgets, axis=1))

    def respond(self, a: Arguments) -> Any:
        """Through caches, chunk after chunk, as a subject does."""
        memories: dict[Any, Memory] = {}
        logits = []
        for chunk, owner, dropped in zip(a.chunks, self.owners(a), a.rewinds or [0] * len(a.chunks), strict=True):
            memory = memories.setdefault(owner, {})
            logits.append(self.forward(chunk, a, Exact(), memory)[0])
            if dropped:
                self.rewind(memory, dropped)
        return self.finish(np.concatenate(logits, axis=1), a)

    def rewind(self, memory: Memory, dropped: int) -> None:
        """Drop the last tokens of a cache."""
        memory["offset"] -= dropped
        for layer in memory.keys() - {"offset"}:
            memory[layer] = tuple(x[..., : x.shape[3] - dropped, :] for x in memory[layer])


def _in_order(chunks: Sequence[np.ndarray], owners: Sequence[Any], whole: Mapping[Any, np.ndarray]) -> np.ndarray:
    """The rows of each request's sequence, B×L×V, where its chunks stand among all."""
    parts, done = [], dict.fromkeys(whole, 0)
    for chunk, owner in zip(chunks, owners, strict=True):
        start = done[owner]
        done[owner] = start + chunk.shape[1]
        parts.append(whole[owner][:, start : done[owner]])
    return np.concatenate(parts, axis=1)
