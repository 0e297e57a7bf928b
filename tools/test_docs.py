"""The pages are true: links lead somewhere, commands exist, and every component and subject is named."""

from __future__ import annotations

import re
import shlex
import textwrap
import tomllib
from pathlib import Path

import pytest

from inferspec.conformance.plugin import OPTIONS
from inferspec.spec import COMPONENTS
from inferspec.tools import cli

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "README.md",
    ".github/CONTRIBUTING.md",
    "conformance/README.md",
    "golden/README.md",
    "impl/README.md",
    "tools/metalsim/README.md",
)
PYTEST = {"-n", "-q", "-rx", "-k", "-m", "-x", "--pyargs", *OPTIONS}

pytestmark = pytest.mark.skipif(not (ROOT / "README.md").exists(), reason="only a checkout has the pages")


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def commands(page: str) -> list[str]:
    """The lines of shell blocks, and code in running text that is a command; without comments, one command each."""
    text = text_of(page)
    lines = [line for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    lines += re.findall(r"`((?:inferspec|pytest) [^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))
    parts = [part for line in lines for part in re.split(r"&&|;", re.sub(r"\s#\s.*|#\s.*", "", line))]
    return [part.strip() for part in parts if part.strip()]


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES)
def test_links_within_the_repository_lead_somewhere(page):
    for link, anchor in re.findall(r"\]\(([^)#]*)#?([^)]*)\)", text_of(page)):
        if link.startswith("http"):
            continue
        target = (ROOT / page).parent / link if link else ROOT / page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), f"{link}#{anchor}"


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_the_command_line_can_be_given(page):
    for command in commands(page):
        words = shlex.split(command)
        if words[0] != "inferspec":
            continue
        try:
            options, rest = cli._parser().parse_known_args(words[1:])
        except SystemExit:
            # In running text a command may be named without its arguments.
            assert len(words) <= 3, command
            continue
        assert not rest or options.hands_on, command


@pytest.mark.parametrize("page", PAGES)
def test_options_and_files_of_pytest_are_there(page):
    for command in commands(page):
        words = shlex.split(command)
        if words[0] != "pytest":
            continue
        for word in words[1:]:
            assert not word.startswith("-") or word.split("=")[0] in PYTEST, command
            assert not word.endswith(".py") or word.startswith("./") or (ROOT / word).exists(), command


def test_the_module_without_adapter_lines_is_conformant(certify):
    (module,) = re.findall(r"```python\n(# rope.py\n.*?)```", text_of("conformance/README.md"), re.DOTALL)
    run = certify({"rope.py": module}, "--impl", "./rope.py", "-n", "0", "-q")
    assert run.certificate["verdict"] == "conformant", run.text


def test_the_mistake_that_shows_how_one_is_written_is_one_of_the_dictionary():
    (shown,) = re.findall(r"```python\n(Fault\(.*?)\n```", text_of(".github/CONTRIBUTING.md"), re.DOTALL)
    assert textwrap.indent(shown, " " * 4) + ",\n" in text_of("spec/faults/linear.py")


def test_every_component_is_in_the_table_of_names():
    table = re.findall(r"^\| (`.*?) \|", text_of("conformance/README.md"), re.MULTILINE)
    named = {name for cell in table for name in re.findall(r"`(\w+)`", cell)}
    assert set(COMPONENTS) <= named


def test_modules_that_are_run_are_there():
    for page in PAGES:
        for module in re.findall(r"python -m inferspec\.([\w.]+)", text_of(page)):
            assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module


def test_what_is_said_of_real_software_is_known_there_with_that_thread():
    rows = re.findall(r"\]\((https:\S+)\) \| `--impl (\w+)`, ([A-Z0-9-]+) \|", text_of("README.md"))
    assert rows
    for thread, subject, requirement in rows:
        known = tomllib.loads(text_of(f"conformance/subjects/{subject}.toml"))
        threads = [one["issue"] for one in known["waiver"] if one["requirement"] == requirement]
        # What only some processors show cannot be waived: elsewhere the waiver would be one too many.
        threads += [one["reason"] for one in known.get("finding", ()) if requirement in one["requirements"]]
        assert any(thread in one for one in threads), requirement
