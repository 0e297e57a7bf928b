"""The page of requirements says what the contracts say."""

from __future__ import annotations

from inferspec.spec import contracts
from inferspec.tools import requirements
from inferspec.tools.cli import main


def test_the_page_is_fresh(capsys):
    code = main(["requirements", "--check"])
    assert code == 0, capsys.readouterr().out


def test_the_page_has_every_sentence():
    lines = requirements.page().splitlines()
    for one in (one for contract in contracts() for one in contract.requirements):
        assert any(line.startswith(f"* **{one.id}**") and one.text in line for line in lines)


def test_every_sentence_is_followed_by_its_faults():
    lines = requirements.page().splitlines()
    for contract in contracts():
        for one in contract.requirements:
            at = next(number for number, line in enumerate(lines) if line.startswith(f"* **{one.id}**"))
            names = [fault.name for fault in contract.faults if fault.kills.id == one.id]
            assert names, f"{one.id} has no fault"
            assert all(f"`{name}`" in lines[at + 1] for name in names)


def test_a_page_that_is_not_fresh_is_told_and_written_anew(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(requirements, "PAGE", tmp_path / "REQUIREMENTS.md")
    assert main(["requirements", "--check"]) == 1
    assert "inferspec requirements --write" in capsys.readouterr().out
    assert main(["requirements", "--write"]) == 0
    assert main(["requirements", "--check"]) == 0
    text = requirements.PAGE.read_text(encoding="utf-8")
    requirements.PAGE.write_text(
        text.replace("a slice is the int of its start", "a slice is a slice"), encoding="utf-8"
    )
    capsys.readouterr()
    assert main(["requirements", "--check"]) == 1
    out = capsys.readouterr().out
    assert "-* **ROPE-04** a slice is a slice" in out
    assert "+* **ROPE-04** a slice is the int of its start" in out
