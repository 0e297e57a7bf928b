"""Trains the tiny Qwen3 of `golden/models`: ``python -m inferspec.tools.train``.

A Qwen3 of about a million parameters learns 36 verses by heart, so that its greedy text is decisive in every dtype
while its logits still show every mistake in a model. Everything comes from the repository: the text (the first
verses of Ruth as Debian's bible-kjv-text prints them, public domain), the seed and this file. On one machine two runs
give the same bytes; another processor, or another version of PyTorch, sums float32 in another order, and a thousand
steps of training amplify that, so `training.json` says where the committed files were made.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from inferspec.golden import ROOT

if TYPE_CHECKING:
    import torch
    from tokenizers import Tokenizer

FOLDER, QUANTISED = ROOT / "models" / "tiny-qwen3", ROOT / "models" / "tiny-qwen3-4bit"
TEXT = "text.txt"
VOCABULARY = 512
END, START_OF_TURN, END_OF_TURN = SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

SHAPE: dict[str, Any] = {
    "hidden_size": 128,
    "num_hidden_layers": 4,
    "intermediate_size": 384,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 1024,
    "attention_bias": False,
    "hidden_act": "silu",
    "tie_word_embeddings": True,
}
"""heads·head_dim is not hidden_size, and there are fewer key heads than query heads."""

EPS, THETA = 1e-5, 250_000.0
"""Neither is a default (Qwen3 has 1e-6 and 1e6, transformers 1e-6 and 1e4), so whoever ignores them is seen."""

NORMS = (0.5, 1.5)
"""Norm weights start anywhere in here: a norm that is left out, or two that are exchanged, must matter."""

QUANTIZATION: dict[str, Any] = {
    "group_size": 64,
    "bits": 4,
    "mode": "affine",
    "model.embed_tokens": {"group_size": 32, "bits": 8, "mode": "affine"},
}
"""The embedding, which is the head too, has settings of its own, as llama.cpp and mlx-lm's recipes give it."""

ROWS, WINDOW, RATE, WARM_UP = 16, 160, 3e-3, 30


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, write both folders, print the sha256 of what was written."""
    parser = argparse.ArgumentParser(prog="python -m inferspec.tools.train", description=__doc__)
    parser.add_argument("--out", type=Path, default=FOLDER, help="folder of the bfloat16 model")
    parser.add_argument("--out-4bit", type=Path, default=QUANTISED, help="folder of the 4-bit model")
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1611)
    options = parser.parse_args(arguments)
    console = Console()
    text = (FOLDER / TEXT).read_text(encoding="utf-8")
    tokenizer = learn_tokenizer(text)
    model, loss = train(tokenizer, text, options.steps, options.seed, console)
    provenance = {
        "text": hashlib.sha256(text.encode()).hexdigest(),
        "seed": options.seed,
        "steps": options.steps,
        "loss": f"{loss:.2g}",
        "libraries": {name: version(name).split("+")[0] for name in ("torch", "transformers", "tokenizers", "mlx")},
        "processor": _processor(),
    }
    write(model, tokenizer, options.out, provenance)
    quantise(options.out, options.out_4bit)
    for file in sorted([*options.out.iterdir(), *options.out_4bit.iterdir()]):
        console.print(
            f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.parent.name}/{file.name}", soft_wrap=True
        )
    return 0


def learn_tokenizer(text: str) -> Tokenizer:
    """A byte-level BPE of VOCABULARY entries, special tokens first."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(SPECIAL),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator([text], trainer)
    return tokenizer


def conversations(text: str) -> list[str]:
    """One conversation for each verse: its number asks, its words answer."""
    verses = re.findall(r"^(Ruth \d+:\d+) (.+)$", text, re.MULTILINE)
    return [_turn("user", number) + _turn("assistant", words) for number, words in verses]


def _turn(role: str, content: str) -> str:
    return f"{START_OF_TURN}{role}\n{content}{END_OF_TURN}\n"


def batches(tokenizer: Tokenizer, text: str, seed: int) -> Iterator[torch.Tensor]:
    """ROWS windows at a time, for ever: half of them of the plain text, half of conversations in any order."""
    import torch

    draw = torch.Generator().manual_seed(seed)
    plain = tokenizer.encode(text).ids
    chats = [tokenizer.encode(chat).ids for chat in conversations(text)]

    def below(limit: int) -> int:
        return int(torch.randint(limit, (), generator=draw))

    while True:
        rows = []
        for _ in range(ROWS // 2):
            # From the beginning or anywhere: the first words of a text have nothing before them.
            start = below(len(plain) - WINDOW) if below(4) else 0
            rows.append(plain[start : start + WINDOW])
            chat: list[int] = []
            while len(chat) < WINDOW:
                chat += chats[below(len(chats))]
            rows.append(chat[:WINDOW])
        yield torch.tensor(rows)


def train(tokenizer: Tokenizer, text: str, steps: int, seed: int, console: Console) -> tuple[Any, float]:
    """Return the trained model and its last loss. One thread and deterministic algorithms: the same bits each time."""
    import torch
    from transformers import Qwen3ForCausalLM

    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(configuration())
    model.set_attn_implementation("eager")
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if name.endswith("norm.weight"):
                weight.uniform_(*NORMS)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98), weight_decay=0.0, foreach=False)
    source, loss = batches(tokenizer, text, seed), torch.zeros(())
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as progress:
        task = progress.add_task("training", total=steps)
        for step in range(steps):
            for group in optimizer.param_groups:
                group["lr"] = RATE * min((step + 1) / WARM_UP, 1.0) * (1 - step / steps)
            tokens = next(source)
            logits = model(input_ids=tokens[:, :-1], use_cache=False).logits
            loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            progress.update(task, advance=1, description=f"training, loss {loss.item():.3f}")
    return model.eval(), loss.item()


def configuration() -> Any:
    """The configuration of the tiny model."""
    from transformers import Qwen3Config

    return Qwen3Config(
        **SHAPE,
        rms_norm_eps=EPS,
        rope_parameters={"rope_type": "default", "rope_theta": THETA},
        use_cache=True,
        bos_token_id=None,
        eos_token_id=SPECIAL.index(END_OF_TURN),
    )


def write(model: Any, tokenizer: Tokenizer, folder: Path, provenance: dict[str, Any]) -> None:
    """Write the folder that `from_pretrained` of transformers and `load` of mlx-lm read, in bfloat16."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    weights = {name: x.to(torch.bfloat16).contiguous() for name, x in model.state_dict().items()}
    weights.pop("lm_head.weight", None)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "dtype": "bfloat16",
        "eos_token_id": SPECIAL.index(END_OF_TURN),
        "rms_norm_eps": EPS,
        "rope_parameters": {"rope_type": "default", "rope_theta": THETA},
        **SHAPE,
    }
    _write_json(folder / "config.json", config)
    _write_tokenizer(tokenizer.to_str(), folder)
    _write_json(folder / "training.json", provenance)


def quantise(folder: Path, out: Path) -> None:
    """Write the same model in 4 bits, in the format of mlx-lm, with `rope_theta` in the older style."""
    import mlx.core as mx

    out.mkdir(parents=True, exist_ok=True)
    weights: dict[str, mx.array] = {}
    stored = mx.load(str(folder / "model.safetensors"))
    assert isinstance(stored, dict)
    for name, x in stored.items():
        if x.ndim == 1:
            weights[name] = x
            continue
        module = name.removesuffix(".weight")
        settings = QUANTIZATION.get(module, QUANTIZATION)
        packed, scales, biases = mx.quantize(x, settings["group_size"], settings["bits"])
        weights |= {name: packed, f"{module}.scales": scales, f"{module}.biases": biases}
    mx.save_safetensors(str(out / "model.safetensors"), weights, {"format": "mlx"})
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    _write_json(out / "config.json", {**config, "quantization": QUANTIZATION})
    _write_tokenizer((folder / "tokenizer.json").read_text(encoding="utf-8"), out)


def _write_tokenizer(tokenizer: str, folder: Path) -> None:
    (folder / "tokenizer.json").write_text(tokenizer, encoding="utf-8")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "eos_token": END_OF_TURN,
        "pad_token": END,
        "chat_template": CHAT_TEMPLATE,
    }
    _write_json(folder / "tokenizer_config.json", config)


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _processor() -> str:
    """What float32 sums depend on: the machine and the vector instructions that PyTorch uses."""
    import platform

    import torch

    return f"{platform.system()} {platform.machine()} {torch.backends.cpu.get_cpu_capability()}"


if __name__ == "__main__":
    sys.exit(main())
