"""What the tutorial teaches: three mistakes that real people made in rotary position embeddings, and their mends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

BEGINNING = (Path(__file__).parent / "rope.txt").read_text(encoding="utf-8")
"""The file that a newcomer begins with."""


@dataclass(frozen=True)
class Lesson:
    """One mistake. requirements: those whose failure shows it; mend: lines, and what to put in their place."""

    title: str
    requirements: frozenset[str]
    text: str
    hint: str
    mend: tuple[tuple[str, str], ...]

    def is_open(self, code: str) -> bool:
        """Whether the mistake is still in the code, word for word."""
        return all(old in code for old, _ in self.mend)

    def mended(self, code: str) -> str:
        """The code without the mistake."""
        for old, new in self.mend:
            code = code.replace(old, new)
        return code


LESSONS = (
    Lesson(
        "which features make a pair",
        frozenset({"ROPE-01"}),
        "There are two conventions. The paper pairs neighbours, features 2i and 2i + 1: the traditional form. Models that "
        "come as Hugging Face writes them pair the halves, features i and i + dims/2: the split-half form, which is the "
        "default here. The code takes neighbours whatever `traditional` says. A model still speaks with the wrong "
        "one, only worse, and a test on a single pair (2 features) cannot tell the two apart.",
        "where `traditional` is false, take the two halves of the features (np.split), and put them back as halves "
        "(np.concatenate)",
        (
            (
                "    first, second = y[..., 0::2], y[..., 1::2]\n",
                "    first, second = (y[..., 0::2], y[..., 1::2]) if traditional else np.split(y, 2, axis=-1)\n",
            ),
            (
                "    out = np.stack(turned, axis=-1).reshape(x.shape)\n",
                "    if traditional:\n"
                "        out = np.stack(turned, axis=-1).reshape(x.shape)\n"
                "    else:\n"
                "        out = np.concatenate(turned, axis=-1)\n",
            ),
        ),
    ),
    Lesson(
        "where the tokens are",
        frozenset({"ROPE-03"}),
        "While a model generates, it is given one token at a time, and `offset` says how many there were before it. The "
        "code counts from 0 again for each. Prompts come out right, so that a test of prompts alone passes: the text "
        "goes wrong only from the second generated word on.",
        "let the positions begin at the offset, and take None for 0",
        (
            (
                "    positions = np.arange(tokens)\n",
                "    positions = (offset or 0) + np.arange(tokens)\n",
            ),
        ),
    ),
    Lesson(
        "what the positions are counted in",
        frozenset({"ROPE-03", "ROPE-07"}),
        "bfloat16 has eight significant bits: from 256 on it cannot hold the odd numbers, and two tokens are at one "
        "position. MLX had this mistake (https://github.com/ml-explore/mlx/commit/f46877bc0). Short examples never "
        "show it, which is why the suites draw offsets beside the ends of what each dtype can hold.",
        "keep the positions out of the dtype of x: leave out the line that casts them",
        (("    positions = positions.astype(x.dtype).astype(np.float64)\n", ""),),
    ),
)


def lesson_for(requirement: str, code: str, lessons: Iterable[Lesson] = LESSONS) -> Lesson | None:
    """The lesson that a failure of the requirement shows, as far as its mistake is still in the code."""
    return next((one for one in lessons if requirement in one.requirements and one.is_open(code)), None)
