"""Would the goldens notice? Twelve and more deliberate mistakes in a model, against the logits of the right one.

``python -m inferspec.tools.model_mistakes [MODEL …]`` prints, for each model with goldens, how far the kit's own
implementation and mlx-lm are from transformers (float32, worst of all prompts, as a share of the largest logit), and
the same for transformers with one mistake in it. Right ones must keep the budget, every mistake must break it.
"""

from __future__ import annotations

import argparse
import copy
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from inferspec.golden import models
from inferspec.golden.models import ModelGolden, NotInstalled
from inferspec.spec.numerics import MODEL_LOGITS
from inferspec.tools.model_diff import relative
from inferspec.tools.model_oracles import MlxLm, Transformers

Mistake = Callable[[Any], None]
"""Changes a transformers model (Llama or Qwen3) in place."""


def _each_norm(model: Any, change: Callable[[Any], None]) -> None:
    for module in model.modules():
        if hasattr(module, "variance_epsilon"):
            change(module)


def _eps(factor: float) -> Mistake:
    return lambda model: _each_norm(
        model, lambda norm: setattr(norm, "variance_epsilon", norm.variance_epsilon * factor)
    )


def _theta(theta: float) -> Mistake:
    def change(model: Any) -> None:
        rotary = model.model.rotary_emb
        count = len(rotary.inv_freq)
        rotary.inv_freq = rotary.inv_freq.new_tensor([theta ** (-i / count) for i in range(count)])

    return change


def _attentions(change: Callable[[Any], None]) -> Mistake:
    def everywhere(model: Any) -> None:
        for layer in model.model.layers:
            change(layer.self_attn)

    return everywhere


def _scale(factor: float) -> Mistake:
    return _attentions(lambda attention: setattr(attention, "scaling", attention.scaling * factor))


def _without(norm: str) -> Mistake:
    import torch

    return _attentions(lambda attention: setattr(attention, norm, torch.nn.Identity()))


def _gate_and_up(model: Any) -> None:
    for layer in model.model.layers:
        layer.mlp.gate_proj, layer.mlp.up_proj = layer.mlp.up_proj, layer.mlp.gate_proj


def _gelu(model: Any) -> None:
    import torch

    for layer in model.model.layers:
        layer.mlp.act_fn = torch.nn.GELU()


def _heads_tiled(model: Any) -> None:
    """Query head h reads key head h mod H in place of h // (H_q / H)."""

    def change(attention: Any) -> None:
        config, dims = model.config, attention.head_dim
        heads, groups = config.num_attention_heads, attention.num_key_value_groups
        order = np.arange(heads).reshape(groups, -1).T.ravel()
        q = attention.q_proj.weight.data
        attention.q_proj.weight.data = q.reshape(heads, dims, -1)[order].reshape(q.shape)
        o = attention.o_proj.weight.data
        attention.o_proj.weight.data = o.reshape(len(o), heads, dims)[:, order].reshape(o.shape)

    _attentions(change)(model)


def _traditional(model: Any) -> None:
    """The rows of a head are taken for those of traditional RoPE."""

    def change(attention: Any) -> None:
        for projection in (attention.q_proj, attention.k_proj):
            w = projection.weight.data
            pairs = w.reshape(-1, attention.head_dim // 2, 2, w.shape[-1])
            projection.weight.data = pairs.transpose(1, 2).reshape(w.shape)

    _attentions(change)(model)


def _norms_exchanged(model: Any) -> None:
    for layer in model.model.layers:
        first, second = layer.input_layernorm, layer.post_attention_layernorm
        layer.input_layernorm, layer.post_attention_layernorm = second, first


def _no_last_norm(model: Any) -> None:
    import torch

    model.model.norm = torch.nn.Identity()


def _last_layer_lost(model: Any) -> None:
    model.model.layers = model.model.layers[:-1]


def _layers_exchanged(model: Any) -> None:
    layers = model.model.layers
    layers[0].mlp, layers[1].mlp = layers[1].mlp, layers[0].mlp


def _scaled_embedding(model: Any) -> None:
    import torch

    embedding = model.model.embed_tokens
    scaled = torch.nn.Embedding.from_pretrained(embedding.weight.data * model.config.hidden_size**0.5)
    model.model.embed_tokens = scaled


def mistakes(kind: str, head_dim: int) -> dict[str, Mistake]:
    """The mistakes that a model of that model_type can have."""
    found: dict[str, Mistake] = {
        "eps ten times too large": _eps(10),
        "eps ten times too small": _eps(0.1),
        "rope theta 10,000": _theta(10_000.0),
        "rope theta 1,000,000": _theta(1_000_000.0),
        "traditional rope on split-half weights": _traditional,
        "attention scale 1 / head_dim": _scale(head_dim**-0.5),
        "attention scale doubled": _scale(2.0),
        "key heads tiled, not repeated": _heads_tiled,
        "gate and up exchanged": _gate_and_up,
        "GELU for SiLU": _gelu,
        "norms of a layer exchanged": _norms_exchanged,
        "last norm dropped": _no_last_norm,
        "last layer dropped": _last_layer_lost,
        "MLPs of two layers exchanged": _layers_exchanged,
        "embedding scaled by sqrt(hidden)": _scaled_embedding,
    }
    if kind == "qwen3":
        found |= {"query norm dropped": _without("q_norm"), "key norm dropped": _without("k_norm")}
    return found


def worst(golden: ModelGolden, logits: Callable[[Sequence[int]], np.ndarray]) -> float:
    """How far a model is from the goldens, over all prompts."""
    return max(relative(logits(prompt.read)[:, golden.columns], prompt.columns) for prompt in golden.prompts)


def table_of(name: str, console: Console) -> tuple[Table, bool]:
    """The table of one model, and whether all is as it must be."""
    import torch

    golden, path = models.read(name), models.weights_of(name)
    reference = Transformers(path)
    right = reference.model

    def torch_logits(model: Any) -> Callable[[Sequence[int]], np.ndarray]:
        def logits(ids: Sequence[int]) -> np.ndarray:
            with torch.inference_mode():
                return model(input_ids=torch.tensor([list(ids)]), use_cache=False).logits[0].numpy()

        return logits

    rows: dict[str, tuple[float, bool]] = {
        "transformers": (worst(golden, torch_logits(right)), True),
        "mlx-lm": (worst(golden, _mlx_logits(MlxLm(path, reference).model)), True),
        "inferspec.impl": (worst(golden, _mlx_logits(_own(path))), True),
    }
    config = right.config
    planned = mistakes(
        config.model_type, getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    )
    for text, change in track(planned.items(), name, console=console, transient=True, disable=not console.is_terminal):
        wrong = copy.deepcopy(right)
        change(wrong)
        rows[text] = (worst(golden, torch_logits(wrong)), False)
    table = Table("", "apart", "in budgets", title=f"{name}: float32 logits against the goldens of transformers")
    good = True
    for text, (apart, honest) in rows.items():
        as_it_must = (apart <= MODEL_LOGITS) == honest
        good &= as_it_must
        style = "" if as_it_must else "red"
        table.add_row(
            text, f"{apart:.2g}", f"{apart / MODEL_LOGITS:.3g}", style=style, end_section=text == "inferspec.impl"
        )
    return table, good


def _mlx_logits(model: Any) -> Callable[[Sequence[int]], np.ndarray]:
    import mlx.core as mx

    return lambda ids: np.array(model(mx.array([list(ids)]))[0].astype(mx.float32))


def _own(path: Path) -> Any:
    """The kit's own model of these weights, in float32."""
    import mlx.core as mx

    from inferspec.impl.loading import MODELS, read

    config, weights = read(path)
    wide: Mapping[str, mx.array] = {
        name: x.astype(mx.float32) if mx.issubdtype(x.dtype, mx.floating) else x for name, x in weights.items()
    }
    return MODELS[config["model_type"]](config, wide)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 0 when right ones keep the budget and every mistake breaks it."""
    parser = argparse.ArgumentParser(prog="python -m inferspec.tools.model_mistakes", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: {', '.join(models.names())}")
    console, good = Console(), True
    for name in parser.parse_args(arguments).models or models.names():
        try:
            table, fine = table_of(name, console)
        except NotInstalled as missing:
            console.print(f"{name} is left out: {missing}")
            continue
        console.print(table)
        good &= fine
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
