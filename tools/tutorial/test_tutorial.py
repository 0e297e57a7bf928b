"""The tutorial, as a newcomer goes through it; its checks are real in the first test and told by the test in the others."""

from __future__ import annotations

import io
import json
import shlex

import pytest
from rich.console import Console

from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.tools import tutorial
from inferspec.tools.cli import main
from inferspec.tools.tutorial.checking import Failure
from inferspec.tools.tutorial.lessons import BEGINNING, LESSONS, lesson_for

MENDED = LESSONS[2].mended(LESSONS[1].mended(LESSONS[0].mended(BEGINNING)))


def test_by_itself_it_goes_from_three_mistakes_to_a_certificate(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path.parent)
    assert main(["tutorial", tmp_path.name, "--auto"]) == 0
    printed = capsys.readouterr().out
    text = " ".join(printed.split())
    told = [
        *("ROPE-01", "fault rope-interleaved-for-split-half", "Mistake 1 of 3"),
        *("✓ ROPE-02", "fault rope-int-offset-ignored", "Mistake 2 of 3"),
        *("fault rope-positions-in-input-dtype", "Mistake 3 of 3", "✓ ROPE-21", "verdict: conformant"),
    ]
    places = [text.index(one) for one in told]
    assert places == sorted(places)
    assert (tmp_path / "rope.py").read_text(encoding="utf-8") == MENDED
    certificate = json.loads((tmp_path / "certificate.json").read_text(encoding="utf-8"))
    assert (certificate["verdict"], certificate["subject"]["offers"]) == ("conformant", ["RoPE"])
    passed = {row["id"] for row in certificate["requirements"] if row["state"] == "passed"}
    assert f"All {len(passed)} requirements that the file claims hold" in text
    assert all(f"✓ {requirement} " in text for requirement in passed)
    lines = [line.strip() for line in printed.splitlines()]
    assert [line[-4:] for line in lines if line.startswith("rerun: ")] == ["-n 0"] * 3
    (verify,) = (line for line in lines if line.startswith("inferspec verify "))
    assert main(shlex.split(verify)[1:]) == 0


class Learner:
    """Answers in turn, and looks into the file before each answer."""

    def __init__(self, folder, *answers):
        self.folder, self.answers, self.seen = folder, list(answers), []

    def __call__(self, question):
        self.seen.append((self.folder / "rope.py").read_text(encoding="utf-8", errors="replace"))
        return self.answers.pop(0)


@pytest.fixture
def check(monkeypatch):
    """The suites' part: the lesson's first requirement fails as long as its mistake is in the file."""

    def first_failure(file, met):
        code = file.read_text(encoding="utf-8", errors="replace")
        for lesson in LESSONS:
            if lesson.is_open(code):
                text = f"failure: {lesson.title}\n  rerun: pytest --impl {file} -n 0"
                return Failure(min(lesson.requirements), text, ("a-fault",))
        if "# wrong" in code:
            return Failure("ROPE-17", "failure: x is changed", ())
        met("ROPE-01", 100)
        return None

    monkeypatch.setattr(tutorial, "first_failure", first_failure)
    monkeypatch.setattr(
        tutorial, "certified", lambda file: ({"verdict": "conformant", "requirements": []}, "printed by pytest")
    )


def walk(folder, *answers, restart=False):
    """(exit code, what was printed, the file before each answer)"""
    learner, out = Learner(folder, *answers), io.StringIO()
    code = tutorial.Tutorial(folder, Console(file=out, width=200), learner).run(restart)
    assert not learner.answers
    return code, out.getvalue(), learner.seen


@pytest.mark.usefixtures("check")
def test_a_learner_is_helped_as_far_as_asked_for(tmp_path):
    code, text, seen = walk(tmp_path, "h", "m", "m", "", "q")
    assert code == 1
    assert LESSONS[0].hint[:40] in text
    assert seen[0] == seen[1] == BEGINNING
    assert seen[4] == LESSONS[1].mended(LESSONS[0].mended(BEGINNING))
    assert text.count(f"failure: {LESSONS[2].title}") == 2
    assert "goes on from here" in text


@pytest.mark.usefixtures("check")
def test_what_is_no_answer_is_asked_again(tmp_path):
    code, text, seen = walk(tmp_path, "hint", "what?", "mend", "quit")
    assert code == 1
    assert LESSONS[0].hint[:40] in text
    assert "'what?' is none of the answers" in text
    assert text.count(f"failure: {LESSONS[0].title}") == 1
    assert seen == [BEGINNING] * 3 + [LESSONS[0].mended(BEGINNING)]


@pytest.mark.usefixtures("check")
def test_a_failure_s_rerun_is_one_line_however_narrow_the_terminal_is(tmp_path):
    folder, out = tmp_path / "a folder", io.StringIO()
    folder.mkdir()
    console = Console(file=out, width=30)
    assert tutorial.Tutorial(folder, console, Learner(folder, "q")).run() == 1
    assert f"  rerun: pytest --impl {folder}/rope.py -n 0\n" in out.getvalue()
    assert f"    inferspec tutorial '{folder}'\n" in out.getvalue()


@pytest.mark.usefixtures("check")
def test_started_again_it_goes_on_where_the_file_is(tmp_path):
    walk(tmp_path, "m", "q")
    code, text, _ = walk(tmp_path, "m", "m")
    assert code == 0
    assert "rope.py is there: the tutorial goes on with it, as it is." in text
    assert LESSONS[0].title not in text
    assert (tmp_path / "rope.py").read_text(encoding="utf-8") == MENDED


@pytest.mark.usefixtures("check")
def test_what_the_learner_wrote_stays(tmp_path):
    mine = BEGINNING.replace("# The pairs, turned.", "# My own words.")
    (tmp_path / "rope.py").write_text(mine, encoding="utf-8")
    _, _, seen = walk(tmp_path, "m", "q")
    assert seen[0] == mine
    assert "# My own words." in seen[1]
    latin = mine.encode().replace(b"My own words", b"In Latin-1: \xe4")
    (tmp_path / "rope.py").write_bytes(latin)
    walk(tmp_path, "m", "q")
    assert (tmp_path / "rope.py").read_bytes() == LESSONS[0].mended(latin.decode("latin-1")).encode("latin-1")
    other = MENDED + "\n# wrong\n"
    (tmp_path / "rope.py").write_text(other, encoding="utf-8")
    code, text, _ = walk(tmp_path, "m")
    assert code == 1
    assert "nothing was changed" in text
    assert (tmp_path / "rope.py").read_text(encoding="utf-8") == other


@pytest.mark.usefixtures("check")
def test_begun_anew_it_keeps_what_was_there(tmp_path):
    for number in (1, 2):
        (tmp_path / "rope.py").write_text(f"# {number}", encoding="utf-8")
        _, text, seen = walk(tmp_path, "q", restart=True)
        assert seen == [BEGINNING]
        assert f"is now in {tmp_path / f'rope.before-{number}.py'}" in text
    assert [(tmp_path / f"rope.before-{n}.py").read_text(encoding="utf-8") for n in (1, 2)] == ["# 1", "# 2"]


def test_a_file_that_cannot_be_run_is_told_and_can_be_mended(tmp_path, monkeypatch):
    def broken(file, met):
        raise AdapterError("rope.py: importing it failed with SyntaxError: invalid syntax")

    monkeypatch.setattr(tutorial, "first_failure", broken)
    code, text, _ = walk(tmp_path, "", "q")
    assert code == 1
    assert text.count("importing it failed with SyntaxError") == 2


def test_where_there_is_nobody_to_ask_it_stops(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert tutorial._asked("?") == "q"


def test_a_folder_that_cannot_be_made_is_bad_usage(tmp_path, capsys):
    (tmp_path / "file").write_text("", encoding="utf-8")
    assert main(["tutorial", str(tmp_path / "file"), "--auto"]) == 2
    assert "file is a file; it takes a folder" in " ".join(capsys.readouterr().out.split())


def test_each_lesson_is_found_while_its_mistake_is_there():
    code = BEGINNING
    for lesson in LESSONS:
        for id in lesson.requirements - {"ROPE-03"} or {"ROPE-03"}:
            assert lesson_for(id, code) == lesson
        code = lesson.mended(code)
        assert not lesson.is_open(code)
    assert lesson_for("ROPE-03", code) is None
    compile(code, "rope.py", "exec")
