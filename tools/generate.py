"""``inferspec generate``: a model's answer, streamed, and how long it took."""

from __future__ import annotations

import argparse
import io
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console

from inferspec.conformance.bridge.did_you_mean import meant
from inferspec.tools import arguments

if TYPE_CHECKING:
    from inferspec.impl.metrics import RequestTimer
    from inferspec.tools.arguments import Sampling
    from inferspec.tools.narrate import Narrator

ALIASES = {"smollm2": "smollm2-135m-instruct", "tiny-qwen3": "tiny-qwen3", "tiny-qwen3-4bit": "tiny-qwen3-4bit"}
"""Models that are at hand without a hub: what to call them -> the name of their goldens."""

MODEL_HELP = f"{', '.join(ALIASES)}, a folder of safetensors, a .gguf file, or a hub id (owner/name)"


class Unusable(Exception):
    """A model or an option cannot be used; the message is one line that says why."""


def add_parser(commands: Any) -> None:
    """Add the command to the parser of the command line."""
    parser = commands.add_parser("generate", help="let a model answer a prompt, and show the latencies")
    parser.add_argument("--model", required=True, help=MODEL_HELP)
    parser.add_argument("--prompt", type=arguments.letters, required=True, help="what to say to it")
    parser.add_argument("--system", type=arguments.letters, metavar="TEXT", help="the system message of the chat")
    parser.add_argument("--raw", action="store_true", help="go on with the prompt as it is, without the chat template")
    parser.add_argument(
        "--max-tokens", type=arguments.whole(0), default=128, metavar="N", help="at most so many tokens (default: 128)"
    )
    arguments.add_sampling(parser)
    parser.add_argument("--no-cache", action="store_true", help="compute everything anew for each token")
    parser.add_argument("--revision", metavar="SHA", help="the commit of a hub id")
    parser.add_argument("--narrate", action="store_true", help="tell what happens: tokens, passes, cache, candidates")
    parser.set_defaults(command=command)


def command(options: argparse.Namespace) -> int:
    """Run the command; 2 when the model or an option cannot be used."""
    console = Console(highlight=False, soft_wrap=True)
    try:
        timer, prompt_tokens, ended = run(options, sys.stdout)
    except Unusable as error:
        console.print(str(error), style="red", markup=False)
        return 2
    console.print(described(timer, prompt_tokens, ended), style="dim")
    return 0


@dataclass(frozen=True)
class Loaded:
    """A model with its tokenizer. source: where they were read."""

    model: Any
    tokenizer: Any
    source: Path


def load(model: str, revision: str | None = None) -> Loaded:
    """Load a model by alias, path or hub id; Unusable, in one line, when that fails."""
    from inferspec.impl import loading
    from inferspec.impl.tokenizer import Tokenizer

    return usable(lambda: _load(loading, Tokenizer, model, revision))


def _load(loading: Any, tokenizer: Any, model: str, revision: str | None) -> Loaded:
    source = located(model, revision)
    return Loaded(loading.load(source), tokenizer.load(source), source)


def located(model: str, revision: str | None = None) -> Path:
    """Where a model lies, by alias, path or hub id; what an alias names goes before a path of that name."""
    from inferspec.golden.models import weights_of
    from inferspec.impl import loading

    if model in ALIASES:
        if revision is not None:
            raise ValueError(f"--revision is {revision!r}; only a hub id has one")
        return weights_of(ALIASES[model])
    try:
        return loading.located(model, revision)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error}{meant(model, ALIASES)}") from error
    except (ValueError, OSError, ImportError):
        raise
    except Exception as error:  # those of the hub's client, which are not OSErrors
        raise ConnectionError(f"{model} cannot be had from the hub: {error}") from error


def usable(do: Callable[[], Any]) -> Any:
    """Do something with a model; what goes wrong in it that a user can mend becomes Unusable."""
    from inferspec.golden.models import NotInstalled

    try:
        return do()
    except ImportError as error:
        raise Unusable(f'{error}: pip install "inferspec[models]"') from error
    except (ValueError, TypeError, OSError, NotInstalled) as error:
        raise Unusable(" ".join(str(error).split())) from error


def run(
    options: argparse.Namespace, out: TextIO, clock: Callable[[], float] = time.perf_counter
) -> tuple[RequestTimer, int, bool]:
    """Stream the answer to `out`; return its timer, the length of the prompt, and whether it ended by itself."""
    sampler = usable(lambda: drawing(arguments.sampling(options)))
    loaded = load(options.model, options.revision)
    return usable(lambda: _answer(options, loaded, sampler, out, clock))


def _answer(
    options: argparse.Namespace, loaded: Loaded, sampler: Any, out: TextIO, clock: Callable[[], float]
) -> tuple[RequestTimer, int, bool]:
    from inferspec.impl.generation import generate
    from inferspec.impl.metrics import RequestTimer

    tokenizer, config = loaded.tokenizer, loaded.model.config
    prompt = prompt_ids(tokenizer, options.prompt, options.system, options.raw)
    if not prompt:
        raise ValueError("--prompt is empty; it takes at least a token to go on from")
    if len(prompt) + options.max_tokens > config.max_positions:
        raise ValueError(
            f"a prompt of {len(prompt)} tokens and --max-tokens {options.max_tokens} are more than the "
            f"{config.max_positions} positions that the model has"
        )
    text, model, narrator = tokenizer.detokenizer(config.vocab_size), loaded.model, None
    if options.narrate:
        narrator = _narrator(options, tokenizer, prompt, out, clock)
        model, sampler = narrator.before_model(model), narrator.before_sampler(sampler)
        out = answer = io.StringIO()
    timer = RequestTimer(clock)
    ids = generate(
        model,
        prompt,
        max_tokens=options.max_tokens,
        eos=tokenizer.eos,
        sampler=sampler,
        cache=not options.no_cache,
    )
    for token in ids:
        timer.token()
        out.write(text.add(token))
        out.flush()
    out.write(text.finish() + "\n")
    if narrator is not None:
        narrator.answered(answer.getvalue().removesuffix("\n"))
    return timer, len(prompt), len(timer.token_times) < options.max_tokens


def _narrator(
    options: argparse.Namespace, tokenizer: Any, prompt: list[int], out: TextIO, clock: Callable[[], float]
) -> Narrator:
    """A narrator that has told of the prompt."""
    from inferspec.tools.narrate import Narrator

    narrator = Narrator(tokenizer, arguments.sampling(options), out, tokenizer.eos, clock)
    text = options.prompt if options.raw else chat(tokenizer, options.prompt, options.system)
    narrator.tokenised(text, prompt, templated=not options.raw)
    return narrator


def prompt_ids(tokenizer: Any, prompt: str, system: str | None, raw: bool) -> list[int]:
    """The ids of a prompt: as it is, or as the user's message in the model's chat template."""
    if raw and system is not None:
        raise ValueError("--system is part of a chat; --raw has none")
    if raw:
        return tokenizer.encode(prompt)
    return tokenizer.encode(chat(tokenizer, prompt, system), whole=False)


def chat(tokenizer: Any, prompt: str, system: str | None) -> str:
    """The text of a chat in which the prompt is the user's message."""
    messages = [{"role": "system", "content": system}] if system is not None else []
    return tokenizer.chat([*messages, {"role": "user", "content": prompt}])


def drawing(how: Sampling, request: int | None = None) -> Callable[[Any], Any] | None:
    """A sampler with a generator of its own; None for the likeliest token. Raises what `Sampler` raises.

    request: one of many, whose draws are its own, whatever runs beside it.
    """
    import mlx.core as mx
    import numpy as np

    from inferspec.impl.sampling import Sampler

    sampler = Sampler(how.temperature, how.top_k, how.top_p)
    if how.temperature == 0:
        return None
    random = np.random.default_rng(how.seed if how.seed is None or request is None else [how.seed, request])
    return lambda logits: sampler(logits, mx.array(random.random(dtype=np.float32)))


def described(timer: RequestTimer, prompt_tokens: int, ended: bool) -> str:
    """The metrics line. Rates leave out what they are not about: the prompt's is its tokens by TTFT, that of the
    tokens after the first theirs by their own time."""
    found, count = timer.metrics(), len(timer.token_times)
    parts = [f"prompt {prompt_tokens} tokens", f"generated {count} tokens ({'ended' if ended else 'limit'})"]
    parts += [f"TTFT {_seconds(found.ttft)}", f"TPOT {_seconds(found.tpot)}"]
    parts += [f"ITL median {_seconds(statistics.median(found.itl) if found.itl else None)}"]
    parts += [f"E2EL {_seconds(found.e2el)}"]
    if found.ttft:
        parts.append(f"prefill {prompt_tokens / found.ttft:.1f} tokens/s")
    if found.tpot:
        parts.append(f"decode {1 / found.tpot:.1f} tokens/s")
    return " · ".join(parts)


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.1f} ms"
