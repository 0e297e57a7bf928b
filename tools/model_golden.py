"""Writes the goldens of whole models: transformers and mlx-lm answer the same prompts, and what both say is kept.

``inferspec golden regen --model …`` makes them anew and says what moved and why, ``check`` compares and writes
nothing. Each answer is kept in a cache as soon as it is there, so an interrupted run goes on where it stopped.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from inferspec.conformance.bridge.did_you_mean import meant
from inferspec.golden import GoldenError, models
from inferspec.golden.models import ModelGolden, NotInstalled, Prompt
from inferspec.spec.numerics import MODEL_LOGITS
from inferspec.tools import model_store
from inferspec.tools.golden import DIFFERENT, GOOD, UNABLE
from inferspec.tools.model_diff import relative, show
from inferspec.tools.model_oracles import Oracle, Reply, libraries, oracles
from inferspec.tools.model_store import Partial, digest, file_digest

PROMPTS = "prompts.json"
COLUMNS = 64
"""Logits that are kept of each position."""

DEFAULT_PROMPTS: list[dict[str, Any]] = [
    {"name": "chat", "max_tokens": 16, "chat": [{"role": "user", "content": "What is the capital of France?"}]},
    {"name": "fable", "max_tokens": 16, "text": "Once upon a time, in a small village by the sea, there lived"},
    {"name": "code", "max_tokens": 16, "text": "def fibonacci(n):\n    if n <= 1:\n"},
    {"name": "letters", "max_tokens": 8, "text": "Übergrößenträger, naïve café, 東京, 12 345.67, and 🙂"},
    {"name": "long", "max_tokens": 4, "text": "The quick brown fox jumps over the lazy dog. " * 24},
]

Oracles = Callable[[Path], Mapping[str, Oracle]]


@dataclass(frozen=True)
class _Model:
    """Where a model is. name: that of its goldens; asked: what to ask for to get it again."""

    name: str
    asked: str
    path: Path
    revision: str | None


class _Unable(Exception):
    """Nothing can be computed; the message says why."""


def regen(
    model: str,
    revision: str | None = None,
    console: Console | None = None,
    *,
    root: Path = models.ROOT,
    cache: Path = model_store.CACHE,
    using: Oracles = oracles,
) -> int:
    """Make the goldens of a model anew and write them, unless the oracles disagree.

    model: a name in `golden/models`, a folder, a .gguf file, or a hub id. Returns 0 when they were written, 1 when
    they were refused, 2 when nothing could be computed.
    """
    return _run(model, revision, console or Console(), root, cache, using, writes=True)


def check(
    model: str,
    revision: str | None = None,
    console: Console | None = None,
    *,
    root: Path = models.ROOT,
    cache: Path = model_store.CACHE,
    using: Oracles = oracles,
) -> int:
    """Make them anew and compare; write nothing. Returns 0 when nothing moved, 1 when something did, 2 when unable."""
    return _run(model, revision, console or Console(), root, cache, using, writes=False)


def _run(
    asked: str, revision: str | None, console: Console, root: Path, cache: Path, using: Oracles, writes: bool
) -> int:
    try:
        model = _located(asked, revision, root)
        old = _recorded(model.name, root, console)
        golden, refusals, partial = _make(model, using(model.path), root, cache, console)
    except (_Unable, NotInstalled, ImportError) as problem:
        console.print(str(problem), style="red", markup=False, soft_wrap=True)
        return UNABLE
    # Answers are kept for a run that did not get here: the next one asks anew.
    partial.clear()
    rows = show(old, golden, console)
    for refusal in refusals:
        console.print(f"{model.name} refused: {refusal}", style="red", markup=False, soft_wrap=True)
    if refusals:
        console.print("the oracles disagree: nothing was written")
        return DIFFERENT
    console.print(f"transformers and mlx-lm are at most {golden.record['apart']:.1e} apart, of {MODEL_LOGITS:.0e}")
    if not writes:
        return DIFFERENT if any(row.changed for row in rows) else GOOD
    model_store.write(golden, root / model.name)
    _keep_prompts(golden, model, root)
    console.print(f"{len(golden.prompts)} prompts written to {root / model.name}", markup=False, soft_wrap=True)
    return GOOD


def _located(asked: str, revision: str | None, root: Path) -> _Model:
    if asked in models.PACKAGED or (root / asked / "config.json").exists():
        if revision is not None:
            raise _Unable(f"--revision {revision}: {asked} comes with the kit or a package, not from the hub")
        return _Model(asked, asked, models.weights_of(asked, root), _package(asked))
    from inferspec.impl.loading import located

    if not asked or (Path(asked).is_dir() and not (Path(asked) / "config.json").exists()):
        raise _Unable(
            f"--model {asked}: there is no model: it takes a name of the kit's, a folder with a config.json, a .gguf file or a hub id"
        )
    try:
        path = located(asked, revision)
    except FileNotFoundError as error:
        raise _Unable(f"--model {asked}: {error}{meant(asked, _names(root))}") from error
    except (OSError, ValueError) as error:
        raise _Unable(f"--model {asked}: {error}") from error
    except ImportError:
        raise
    except Exception as error:  # those of the hub's client, which are not OSErrors
        raise _Unable(f"--model {asked}: it cannot be had from the hub: {error}") from error
    here = Path(asked).exists()
    name = (path.stem if path.is_file() else Path(asked).resolve().name if here else asked.split("/")[-1]).lower()
    # The hub's cache names the folder of a snapshot by its commit.
    return _Model(name, asked if not here else path.name, path, None if here else path.name)


def _names(root: Path) -> set[str]:
    """Of the models that need no path."""
    return {*models.PACKAGED, *(config.parent.name for config in root.glob("*/config.json"))}


def _package(name: str) -> str | None:
    """The package that brings a model, and its version."""
    if name not in models.PACKAGED:
        return None
    from importlib.metadata import version

    *_, package = models.PACKAGED[name]
    return f"{package} {version(package)}"


def _recorded(name: str, root: Path, console: Console) -> ModelGolden | None:
    """The goldens as they stand; None when there are none, or none that can be trusted."""
    if not (root / name / models.RECORD).exists():
        return None
    try:
        return models.read(name, root)
    except GoldenError as error:
        console.print(f"{error} (they are made anew)", style="yellow", markup=False, soft_wrap=True)
        return None


def _make(
    model: _Model, using: Mapping[str, Oracle], root: Path, cache: Path, console: Console
) -> tuple[ModelGolden, list[str], Partial]:
    """The goldens of what the first oracle says, and where the others disagree with it."""
    tokenizer = _tokenizer(model.path)
    asked = _prompts(root / model.name / PROMPTS)
    sources = _sources(model, tokenizer)
    stop = _stop(model.path, tokenizer)
    texts = [(entry, *_encoded(entry, tokenizer)) for entry in asked]
    partial = Partial(cache / model.name)
    replies = _replies(texts, stop, using, sources, partial, console)
    first, *others = using
    vocabulary = replies[first, texts[0][0]["name"]].logits.shape[-1]
    columns = _columns(vocabulary)
    prompts, refusals, worst = [], [], 0.0
    for entry, text, ids in texts:
        name = entry["name"]
        reply = replies[first, name]
        for other in others:
            apart, refusal = _disagreement(name, first, reply, other, replies[other, name])
            worst = max(worst, apart)
            refusals += [refusal] if refusal else []
        chat = tuple(entry.get("chat", ()))
        last = reply.logits[len(ids) - 1]
        gap = round(reply.gap, 4)
        prompts.append(Prompt(name, text, ids, reply.greedy, gap, last, reply.logits[:, columns], chat))
    versions = {name: v for oracle in using.values() for name, v in libraries(oracle).items()}
    record = {
        "model": model.asked,
        **sources,
        "libraries": dict(sorted(versions.items())),
        "apart": float(f"{worst:.2g}"),
        "command": f"inferspec golden regen --model {shlex.quote(model.asked)}"
        + (f" --revision {model.revision}" if model.path.is_dir() and model.revision else ""),
    }
    return ModelGolden(model.name, columns, tuple(prompts), record), refusals, partial


def _replies(
    texts: Sequence[tuple[Mapping[str, Any], str, tuple[int, ...]]],
    stop: tuple[int, ...],
    using: Mapping[str, Oracle],
    sources: Mapping[str, Any],
    partial: Partial,
    console: Console,
) -> dict[tuple[str, str], Reply]:
    """Every oracle's answer to every prompt; those that an interrupted run left are taken up."""
    replies: dict[tuple[str, str], Reply] = {}
    resumed = 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(using) * len(texts))
        for library, oracle in using.items():
            for entry, _, ids in texts:
                progress.update(task, description=f"{library}: {entry['name']}")
                key = digest(library, libraries(oracle), sources, entry["name"], ids, entry["max_tokens"], stop)[:32]
                reply = partial.get(key)
                resumed += reply is not None
                if reply is None:
                    reply = oracle.reply(ids, entry["max_tokens"], stop)
                    partial.put(key, reply)
                replies[library, entry["name"]] = reply
                progress.advance(task)
    if resumed:
        console.print(f"{resumed} of {len(replies)} answers were there from an interrupted run")
    return replies


def _disagreement(prompt: str, first: str, one: Reply, second: str, other: Reply) -> tuple[float, str]:
    """How far apart two replies are, and why they must not be kept, if so."""
    if one.greedy != other.greedy:
        return 0.0, f"{prompt}: {first} says {list(one.greedy)}, {second} {list(other.greedy)}"
    apart = relative(other.logits, one.logits)
    if apart > MODEL_LOGITS:
        return apart, f"{prompt}: {first} and {second} are {apart:.2g} apart, of {MODEL_LOGITS:.0e} that they may be"
    return apart, ""


def _tokenizer(path: Path) -> Any:
    try:
        from transformers import AutoTokenizer
    except ImportError as error:
        raise _Unable("goldens of models need transformers and mlx-lm: pip install inferspec[oracle]") from error
    if path.is_file():
        return AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    return AutoTokenizer.from_pretrained(path)


def _prompts(file: Path) -> list[dict[str, Any]]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else DEFAULT_PROMPTS


def _keep_prompts(golden: ModelGolden, model: _Model, root: Path) -> None:
    """A model without prompts of its own gets the ordinary ones, to be read and changed."""
    file = root / model.name / PROMPTS
    if not file.exists():
        file.write_text(json.dumps(DEFAULT_PROMPTS, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _encoded(entry: Mapping[str, Any], tokenizer: Any) -> tuple[str, tuple[int, ...]]:
    """The text of a prompt, a conversation rendered by the model's template, and its ids."""
    if "chat" not in entry:
        return entry["text"], tuple(tokenizer(entry["text"])["input_ids"])
    text = tokenizer.apply_chat_template(entry["chat"], tokenize=False, add_generation_prompt=True)
    return text, tuple(tokenizer(text, add_special_tokens=False)["input_ids"])


def _stop(path: Path, tokenizer: Any) -> tuple[int, ...]:
    """The ids that end a text: the configuration's, or else the tokenizer's."""
    config = json.loads((path / "config.json").read_text(encoding="utf-8")) if path.is_dir() else {}
    ids = config.get("eos_token_id", tokenizer.eos_token_id)
    return tuple(ids) if isinstance(ids, list) else () if ids is None else (int(ids),)


def _sources(model: _Model, tokenizer: Any) -> dict[str, Any]:
    """What the answers depend on, by its sha256."""
    path = model.path
    if path.is_file():
        weights = config = file_digest(path)
    else:
        files = sorted(file for file in path.glob("*.safetensors") if file.name != models.LOGITS)
        weights = file_digest(files[0]) if len(files) == 1 else digest([[f.name, file_digest(f)] for f in files])
        config = file_digest(path / "config.json")
    return {
        "revision": model.revision,
        "weights": weights,
        "config": config,
        "tokenizer": digest(tokenizer.backend_tokenizer.to_str(), tokenizer.chat_template),
        "processor": _processor(),
    }


def _processor() -> str:
    import platform

    return f"{platform.system()} {platform.machine()}"


def _columns(vocabulary: int) -> np.ndarray:
    """COLUMNS ids, the first and the last among them; the same ones for every model of that vocabulary."""
    if vocabulary <= COLUMNS:
        return np.arange(vocabulary)
    inner = np.random.default_rng(0).choice(np.arange(1, vocabulary - 1), COLUMNS - 2, replace=False)
    return np.sort(np.array([0, *inner, vocabulary - 1]))
