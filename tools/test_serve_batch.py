"""``inferspec serve-batch`` on the tiny model."""

import io
import json
import shutil
from pathlib import Path

import mlx.core as mx
import pytest
from rich.console import Console

from inferspec.impl.engine import Engine, EngineStats
from inferspec.tools import cli, prompts_file
from inferspec.tools.dashboard import Dashboard
from inferspec.tools.generate import located

pytest.importorskip("tokenizers")
pytest.importorskip("jinja2")

LINES = [
    {"prompt": "Ruth 1:16 And Ruth said", "raw": True, "id": "a", "max_tokens": 9},
    {"prompt": "Ruth 1:16 And Ruth said, Intreat me not", "raw": True, "priority": 2, "max_tokens": 12},
    {"prompt": "Who was Boaz?", "system": "Answer in verse.", "max_tokens": 5},
    {"prompt": "Now", "raw": True, "priority": -1, "max_tokens": 0},
]
SMALL = ("--page-size", "4", "--max-prefill-tokens", "7", "--max-requests", "3")


def written(folder: Path, lines: list[dict]) -> Path:
    path = folder / "prompts.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    return path


def serve(folder: Path, lines: list[dict], *more: str, model: str = "tiny-qwen3") -> int:
    out = folder / "out.jsonl"
    return cli.main(["serve-batch", str(written(folder, lines)), "--model", model, "--out", str(out), *SMALL, *more])


def widened(folder: Path) -> Path:
    """The tiny model in float32, where the order of a sum moves no draw."""
    shutil.copytree(located("tiny-qwen3"), folder)
    weights = mx.load(str(folder / "model.safetensors"))
    mx.save_safetensors(str(folder / "model.safetensors"), {name: x.astype(mx.float32) for name, x in weights.items()})
    return folder


def results(folder: Path) -> dict:
    lines = map(json.loads, (folder / "out.jsonl").read_text().splitlines())
    return {line["id"]: line for line in lines}


@pytest.mark.parametrize("draft", [(), ("--draft", "tiny-qwen3-4bit")])
def test_each_output_is_that_of_the_request_alone(tmp_path, capsys, draft):
    assert serve(tmp_path, LINES, "--num-pages", "24", "--check", *draft) == 0
    assert "4 of 4 outputs are those of generate alone" in capsys.readouterr().out
    found = results(tmp_path)
    assert set(found) == {"a", 2, 3, 4}
    assert [len(found[name]["tokens"]) for name in ("a", 2, 4)] == [9, 12, 0]
    assert found["a"]["finish_reason"] == "length"
    assert found[2]["e2el"] >= found[2]["ttft"] > 0


def test_the_larger_priority_ends_first_where_one_runs_at_a_time(tmp_path):
    lines = [{"prompt": "Now Boaz", "raw": True, "max_tokens": 3, "priority": p} for p in (0, 2, 1)]
    assert serve(tmp_path, lines, "--max-requests", "1") == 0
    assert list(results(tmp_path)) == [2, 3, 1]


def test_what_does_not_fit_is_refused_and_the_rest_is_served(tmp_path):
    long = {"prompt": "Ruth " * 40, "raw": True, "id": "long"}
    assert serve(tmp_path, [long, LINES[0]], "--num-pages", "8") == 1
    found = results(tmp_path)
    assert "all pages together hold 32 tokens" in found["long"]["error"]
    assert len(found["a"]["tokens"]) == 9


def test_sampling_does_not_depend_on_batch_mates(tmp_path):
    hot, model = ("--temperature", "2", "--seed", "5", "--overwrite"), str(widened(tmp_path / "model"))
    serve(tmp_path, LINES, *hot, "--max-requests", "1", model=model)
    alone = {name: line["tokens"] for name, line in results(tmp_path).items()}
    serve(tmp_path, LINES, *hot, model=model)
    assert {name: line["tokens"] for name, line in results(tmp_path).items()} == alone


def test_a_file_that_is_there_is_not_written_over(tmp_path, capsys):
    (tmp_path / "out.jsonl").write_text("mine")
    assert serve(tmp_path, LINES) == 2
    assert "--overwrite" in capsys.readouterr().out
    assert (tmp_path / "out.jsonl").read_text() == "mine"


def test_guesses_take_a_draft(tmp_path, capsys):
    assert serve(tmp_path, LINES, "--draft-tokens", "2") == 2
    assert "--draft-tokens 2: it takes --draft" in capsys.readouterr().out


@pytest.mark.parametrize("by", ["name", "link"])
def test_the_file_of_the_prompts_is_not_written_over(by, tmp_path, capsys):
    path = out = written(tmp_path, LINES)
    if by == "link":
        out = tmp_path / "link.jsonl"
        out.symlink_to(path)
    before = path.read_text()
    assert cli.main(["serve-batch", str(path), "--model", "tiny-qwen3", "--out", str(out), "--overwrite"]) == 2
    assert "is the file of the prompts" in capsys.readouterr().out
    assert path.read_text() == before


def test_what_had_ended_is_kept_when_it_is_interrupted(tmp_path, monkeypatch, capsys):
    steps = iter([None] * 12)
    step = Engine.step

    def interrupted(self):
        if next(steps, "no more") == "no more":
            raise KeyboardInterrupt
        return step(self)

    monkeypatch.setattr(Engine, "step", interrupted)
    assert serve(tmp_path, LINES, "--max-requests", "1") == 130
    assert "interrupted" in capsys.readouterr().out
    assert 0 < len(results(tmp_path)) < len(LINES)


def test_check_is_for_greedy_outputs(tmp_path, capsys):
    assert serve(tmp_path, LINES, "--check", "--temperature", "1") == 2
    assert "--temperature" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2: it is not JSON"),
        ("[1]", "line 2: it is .*takes an object"),
        ('{"id": 3}', "line 2: it has no prompt"),
        ('{"prompt": 3}', "line 2: prompt is 3; it takes str"),
        ('{"prompt": "x", "priority": true}', "line 2: priority is True; it takes int"),
        ('{"prompt": "x", "max_tokens": -1}', "line 2: max_tokens is -1"),
        ('{"prompt": "x", "prioritty": 1}', "line 2: it has prioritty; it takes prompt, id, priority"),
        ('{"prompt": "x", "id": 1}', "line 2: id is 1, which line 1 has too"),
        (r'{"prompt": "a\ud800"}', "line 2: prompt is .* holds half a character"),
        ("[" * 100_000, "line 2: it is not JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, message):
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "fine"}\n' + line)
    with pytest.raises(ValueError, match=message):
        prompts_file.read(path)


def test_a_line_ends_where_a_line_feed_is(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_bytes('\ufeff{"prompt": "a\u2028b"}\r\n{"prompt": "c"}\n'.encode())
    assert [one.prompt for one in prompts_file.read(path)] == ["a\u2028b", "c"]
    path.write_bytes(b'{"prompt": "\xe9"}')
    with pytest.raises(ValueError, match="is not UTF-8"):
        prompts_file.read(path)


def test_a_file_without_prompts_is_refused(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_text("\n\n")
    with pytest.raises(ValueError, match="has no prompt"):
        prompts_file.read(path)


def test_the_dashboard_shows_what_goes_on():
    now = iter([0.0, 1.0, 3.0])
    dashboard = Dashboard(5, lambda: next(now))
    stats = EngineStats(1, 2, 3, 10, 16, 0, 40, 10, 4, 8, 6)
    dashboard.take(stats, 0)
    dashboard.take(EngineStats(2, 2, 3, 10, 16, 12, 40, 10, 4, 8, 6), 1)
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(dashboard.shown)
    text = console.export_text()
    for part in (
        "1 of 5",
        "6 of 16",
        "running 2 · waiting 3 · hit rate 25% · preemptions 4 · 4.0 tokens/s",
        "right 75%",
    ):
        assert part in text


def test_of_a_long_line_the_beginning_is_told(tmp_path):
    path = tmp_path / "prompts.jsonl"
    path.write_text(json.dumps(list(range(10_000))))
    with pytest.raises(ValueError, match="it takes an object like") as caught:
        prompts_file.read(path)
    assert len(str(caught.value)) < 500
