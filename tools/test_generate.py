"""``inferspec generate`` on the tiny model, on a clock that the test drives."""

import argparse
import io
import re

import mlx.core as mx
import numpy as np
import pytest

from inferspec.golden import models
from inferspec.impl.metrics import RequestTimer
from inferspec.tools import cli, generate, narrate
from inferspec.tools.arguments import Sampling

pytest.importorskip("tokenizers")
pytest.importorskip("jinja2")


class Clock:
    """Advances by the next of the steps at each look."""

    def __init__(self, *steps: float) -> None:
        self.now, self.steps = 0.0, list(steps)

    def __call__(self) -> float:
        self.now += self.steps.pop(0)
        return self.now


def options(*more: str) -> argparse.Namespace:
    return cli._parser().parse_args(["generate", "--model", "tiny-qwen3", *more])


def answer(*more: str) -> str:
    out = io.StringIO()
    generate.run(options(*more), out)
    return out.getvalue()


CHAT = ("--prompt", "Ruth 1:16", "--max-tokens", "12")


def test_a_chat_is_answered_as_the_golden_says():
    prompt = next(one for one in models.read("tiny-qwen3").prompts if one.name == "chat")
    text = generate.load("tiny-qwen3").tokenizer.decode(prompt.greedy[:12])
    assert answer(*CHAT) == text + "\n"
    assert answer(*CHAT, "--no-cache") == text + "\n"


def test_a_raw_prompt_is_gone_on_with():
    prompt = next(one for one in models.read("tiny-qwen3").prompts if one.name == "beginning")
    text = generate.load("tiny-qwen3").tokenizer.decode(prompt.greedy[:12])
    assert answer("--raw", "--prompt", prompt.text, "--max-tokens", "12") == text + "\n"


def test_a_system_message_is_read():
    tokenizer = generate.load("tiny-qwen3").tokenizer
    ids = generate.prompt_ids(tokenizer, "Ruth 1:16", "Answer in verse.", raw=False)
    assert tokenizer.decode(ids).startswith("system\nAnswer in verse.")


def test_sampling_is_repeatable_by_its_seed():
    hot = [*CHAT, "--temperature", "3", "--seed"]
    assert answer(*hot, "1") == answer(*hot, "1")
    assert len({answer(*hot, seed) for seed in "1234"}) > 1


def test_sampling_from_one_token_is_greedy():
    assert answer(*CHAT, "--temperature", "3", "--top-k", "1") == answer(*CHAT)
    assert answer(*CHAT, "--temperature", "3", "--top-p", "1e-6") == answer(*CHAT)


def test_text_streams_token_by_token():
    class Out(io.StringIO):
        flushed = 0

        def flush(self) -> None:
            self.flushed += 1

    out = Out()
    generate.run(options(*CHAT), out)
    assert out.flushed == 12


def test_the_command_prints_the_answer_and_then_the_metrics(capsys):
    assert cli.main(["generate", "--model", "tiny-qwen3-4bit", *CHAT]) == 0
    text, metrics = capsys.readouterr().out.splitlines()
    assert text == answer(*CHAT).rstrip("\n")
    assert metrics.startswith("prompt 19 tokens · generated 12 tokens (limit) · TTFT ")


def test_a_narrated_answer_is_the_same_and_tells_of_each_step():
    text = answer("--narrate", *CHAT)
    *story, last = text.rstrip("\n").split("── the answer\n")
    assert last == answer(*CHAT).rstrip("\n")
    heads = ["── tokenisation", "── prefill", "── sampling", "── decode"]
    assert sorted(heads, key=text.index) == heads
    assert "19 tokens, each a piece of text and its id:" in text
    assert "18 tokens in one pass: cache 0 → 18 tokens" in text
    assert "the last token “\\n”: cache 18 → 19 tokens" in text
    assert "  ← taken" in text
    for step, held in enumerate(range(19, 30), 2):
        assert re.search(rf"\n {step:6}  “.*cache {held} → {held + 1} tokens, [0-9.]+ ms", story[0]), step


def test_a_narrated_draw_shows_what_the_filters_leave():
    hot = ("--raw", "--prompt", "Ruth 1:16", "--max-tokens", "3", "--temperature", "2", "--top-k", "2", "--seed", "1")
    text = answer("--narrate", "--no-cache", *hot)
    assert "an id is drawn, after temperature 2, top-k 2:" in text
    assert "5 tokens: no cache" in text
    shares = [float(share) for share in re.findall(r"^ +([0-9.]+)%  ", text, re.MULTILINE)]
    assert len(shares) == 2
    assert round(sum(shares)) == 100
    assert text.endswith(f"── the answer\n{answer(*hot)}")


def test_candidates_are_those_of_the_model_and_of_the_draw():
    logits = mx.array([2.0, 1.0, 0.0, -1.0])
    np.testing.assert_array_equal(narrate.probabilities(Sampling(), logits), np.array(mx.softmax(logits)))
    drawn = narrate.probabilities(Sampling(0.5, 2), logits)
    np.testing.assert_array_equal(drawn[:2], np.array(mx.softmax(mx.array([4.0, 2.0]))))
    assert not drawn[2:].any()


def timed(*steps: float) -> RequestTimer:
    timer = RequestTimer(Clock(*steps))
    for _ in steps[1:]:
        timer.token()
    return timer


def test_the_metrics_line_on_a_driven_clock():
    line = generate.described(timed(5.0, 2.0, 0.25, 0.5, 0.25), prompt_tokens=30, ended=True)
    assert line == (
        "prompt 30 tokens · generated 4 tokens (ended) · TTFT 2.00 s · TPOT 333.3 ms · ITL median 250.0 ms · "
        "E2EL 3.00 s · prefill 15.0 tokens/s · decode 3.0 tokens/s"
    )


def test_the_metrics_of_one_token_and_of_none():
    one = generate.described(timed(0.0, 0.5), prompt_tokens=8, ended=False)
    assert one == (
        "prompt 8 tokens · generated 1 tokens (limit) · TTFT 500.0 ms · TPOT - · ITL median - · E2EL 500.0 ms · "
        "prefill 16.0 tokens/s"
    )
    none = generate.described(timed(0.0), prompt_tokens=8, ended=True)
    assert none == "prompt 8 tokens · generated 0 tokens (ended) · TTFT - · TPOT - · ITL median - · E2EL -"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--model", "nowhere"], "nowhere is neither a folder"),
        (["--model", "tiny-qwen"], "did you mean tiny-qwen3?"),
        (["--max-tokens", "1020"], "more than the 1024 positions"),
        (["--raw", "--system", "x"], "--system is part of a chat; --raw has none"),
        (["--revision", "main"], "only a hub id has one"),
        (["--raw", "--prompt", ""], "--prompt is empty"),
    ],
)
def test_what_cannot_be_used_is_told_in_one_line(capsys, arguments, message):
    assert cli.main(["generate", "--model", "tiny-qwen3", "--prompt", "Ruth", *arguments]) == 2
    out = capsys.readouterr().out
    assert message in out
    assert out.count("\n") == 1


def test_a_hub_that_cannot_be_reached_is_told_in_one_line(capsys, monkeypatch):
    from inferspec.impl import loading

    def unreachable(model, revision):
        raise RuntimeError("Name or service not known")

    monkeypatch.setattr(loading, "located", unreachable)
    assert cli.main(["generate", "--model", "owner/name", "--prompt", "x"]) == 2
    assert capsys.readouterr().out == "owner/name cannot be had from the hub: Name or service not known\n"


def test_bytes_that_are_no_text_are_told_of_the_argument(capsys):
    with pytest.raises(SystemExit):
        cli.main(["generate", "--model", "tiny-qwen3", "--prompt", "x", "--system", "\udcff"])
    assert "argument --system: it is not text in utf-8" in capsys.readouterr().err


def test_a_missing_library_is_told_with_the_extra_that_brings_it(capsys, monkeypatch):
    from inferspec.impl import tokenizer

    def missing(path):
        raise ImportError("No module named 'tokenizers'")

    monkeypatch.setattr(tokenizer, "_of_folder", missing)
    assert cli.main(["generate", "--model", "tiny-qwen3", "--prompt", "x"]) == 2
    assert capsys.readouterr().out == "No module named 'tokenizers': pip install \"inferspec[models]\"\n"
