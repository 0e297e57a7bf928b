"""What the sources of requirements and faults name: URLs, commits, issues and pull requests in short, and properties."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

PROJECTS = {
    "ATOM": "ROCm/ATOM",
    "Liger-Kernel": "linkedin/Liger-Kernel",
    "flash-attention": "Dao-AILab/flash-attention",
    "flashinfer": "flashinfer-ai/flashinfer",
    "mlx": "ml-explore/mlx",
    "mlx-engine": "lmstudio-ai/mlx-engine",
    "mlx-lm": "ml-explore/mlx-lm",
    "nano-vllm": "GeeeekExplorer/nano-vllm",
    "pytorch": "pytorch/pytorch",
    "sglang": "sgl-project/sglang",
    "tiny-llm": "skyzh/tiny-llm",
    "transformers": "huggingface/transformers",
    "vllm": "vllm-project/vllm",
    "vllm-metal": "vllm-project/vllm-metal",
}
"""What the sources call a project -> its repository on GitHub."""

PAGE = Path(__file__).resolve().parent.parent / "spec" / "PROPERTIES.md"
"""What the sources call PROPERTIES."""

_COMMIT = r"[0-9a-f]{7,40}\b"
_URL = re.compile(r"https?://[^\s;,)]+")
_SHORT = re.compile(
    rf"(?<![\w/-])(?:[\w-]+/)?(?P<project>{'|'.join(map(re.escape, PROJECTS))})"
    rf"(?:#(?P<number>\d+)|\s+(?:pull|issue)\s+(?P<thread>\d+)|\s+(?P<commit>{_COMMIT}))(?P<more>(?:,\s*{_COMMIT})*)"
)

_CITED = re.compile(r"\bPROPERTIES (?P<names>[A-Z]+\d+(?:(?:, | to )[A-Z]+\d+)*)")
_SENTENCE = re.compile(r"^- \*\*(?P<name>[A-Z]+\d+)\*\* (?P<text>.+)$", re.MULTILINE)


@functools.cache
def properties() -> Mapping[str, str]:
    """Name -> sentence of each property of the page."""
    return {found["name"]: found["text"] for found in _SENTENCE.finditer(PAGE.read_text(encoding="utf-8"))}


def cited(source: str) -> list[str]:
    """The names of the properties that a source cites: ``PROPERTIES X9, PG1 to PG3`` names four. KeyError for one that the
    page does not have."""
    names = []
    for citation in _CITED.finditer(source):
        for part in citation["names"].split(", "):
            first, _, last = part.partition(" to ")
            names += _between(first, last or first)
    return list(dict.fromkeys(names))


def _between(first: str, last: str) -> list[str]:
    """The properties of the page from one to another."""
    known = list(properties())
    for name in (first, last):
        if name not in known:
            raise KeyError(f"{name} is no property of {PAGE.name}")
    return known[known.index(first) : known.index(last) + 1]


def links(source: str) -> list[str]:
    """The links of a source: ``mlx 62f297b51, 005e7efa6; mlx#3360`` has two commits and a thread of ml-explore/mlx."""
    return list(dict.fromkeys([*_URL.findall(source), *_short(_URL.sub("", source))]))


def named(link: str) -> str:
    """A link as people write it: ``ml-explore/mlx#3360``, ``skyzh/tiny-llm@db71f15``; another one as it is."""
    if not link.startswith("https://github.com/"):
        return link
    owner, name, *rest = link.removeprefix("https://github.com/").split("/")
    kind, number = (rest[0], rest[-1]) if len(rest) == 2 else ("", "")
    mark = f"@{number[:9]}" if kind == "commit" else f"#{number}" if kind in ("pull", "issues") else ""
    return f"{owner}/{name}{mark}"


def _short(source: str) -> Iterator[str]:
    for found in _SHORT.finditer(source):
        place = f"https://github.com/{PROJECTS[found['project']]}"
        if number := found["number"] or found["thread"]:
            yield f"{place}/issues/{number}"  # GitHub leads on to the pull request where it is one
        for commit in re.findall(_COMMIT, f"{found['commit'] or ''} {found['more']}"):
            yield f"{place}/commit/{commit}"
