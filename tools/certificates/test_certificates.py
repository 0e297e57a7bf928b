"""Merging, comparing, badges and reports of certificates that are put together here."""

from __future__ import annotations

import copy
import datetime
import json
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest

from inferspec.conformance.reporting import certificate as certificates
from inferspec.conformance.reporting.certificate import all_requirements, digest, judge, of_shard, problems
from inferspec.conformance.reporting.waivers import Waiver
from inferspec.conformance.subject import Description
from inferspec.conformance.suite import Profile, all_tests
from inferspec.spec import contract, contracts
from inferspec.tools import cli
from inferspec.tools.certificates.badge import badge
from inferspec.tools.certificates.comparing import changes
from inferspec.tools.certificates.merging import merge
from inferspec.tools.certificates.reading import Certificate, Refused, read, read_any
from inferspec.tools.certificates.report import report, rerun
from inferspec.tools.pages import browser

ATTENTION = next(c.requirements for c in contracts() if c.component == "attention")
MASK = [r for r in all_requirements() if r.name == "causal_mask"]
FAILURE = {
    "state": "failed",
    "message": "out[0] = <nan>, oracle 1",
    "diagnosis": ["causal-mask-top-left"],
    "call": "causal_mask(L=1, S=2)",
    "program": "print('<&>')",
}
WAIVER = Waiver("CMASK-03", {"dtypes": ["bfloat16"]}, "upstream", "https://example.org/1", datetime.date(2030, 1, 1))


def outcome(**details):
    plain = {"state": "passed", "examples": 40, "worst": 0.25, "precision": "float32", "message": "", "diagnosis": []}
    return {**plain, "features": {}, "call": "", "program": "", **details}


def made(only=None, arguments=("--impl", "mine"), waivers=(), name="mine", version="1", **others) -> Certificate:
    """A certificate of a run in which the tests of `only` passed (all by default), but for `others` (id -> outcome)."""
    of = {r.id: r for r in MASK}
    results = {t.id: outcome() for t in all_tests() if t.requirement.id in of}
    for identity, found in others.items():
        requirement = of[identity.replace("_", "-")]
        results |= {t.id: outcome(**found) for t in all_tests() if t.requirement == requirement}
    if only is not None:
        results = {t.id: results[t.id] for t in all_tests() if t.id in results and t.requirement.id in only}
    by_id = {w.requirement: w for w in waivers}
    rows = judge(all_tests(), results, ["causal_mask"], {}, by_id, datetime.date(2026, 1, 1))
    about = Description("mine", name, version, "mine.py", "numpy", "numpy 2", offers={"causal_mask": {}})
    return certificates.certificate(about, rows, by_id, Profile(), arguments, 2.0**-24, {}, bool(results))


def shards(count=3, **others) -> dict[str, Certificate]:
    return {f"{i}.json": made(of_shard(i, count), ["--shard", f"{i}/{count}"], **others) for i in range(1, count + 1)}


def written(folder: Path, **files: Certificate) -> dict[str, str]:
    for name, one in files.items():
        certificates.write(one, folder / f"{name}.json")
    return {name: str(folder / f"{name}.json") for name in files}


class Reader(HTMLParser):
    """Collects the tags, the text and the ids of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


# Shards


def test_every_requirement_is_in_one_shard():
    parts = [of_shard(i, 4) for i in range(1, 5)]
    assert sum(map(len, parts)) == len(frozenset().union(*parts)) == len(all_requirements())


@pytest.mark.parametrize("others", [{}, {"CMASK_02": FAILURE}], ids=["passed", "failed"])
def test_shards_make_the_certificate_of_the_whole_run(others):
    whole, merged = made(**others), merge(shards(**others))
    assert problems(merged) == []
    for key in ("requirements", "verdict", "subject", "kit", "precision", "complete"):
        assert merged[key] == whole[key]
    assert [one["arguments"] for one in merged["shards"]] == [["--shard", f"{i}/3"] for i in (1, 2, 3)]


def test_a_shard_is_incomplete_by_itself():
    assert made(of_shard(1, 3))["verdict"] == "incomplete"


def test_a_gap_is_refused():
    parts = shards()
    del parts["2.json"]
    with pytest.raises(Refused, match=r"there is a gap: no shard ran .* of CMASK-"):
        merge(parts)


def test_the_order_of_files_and_rows_does_not_matter():
    parts = shards()
    backwards = dict(reversed(parts.items()))
    assert merge(backwards) == merge(parts)
    turned = copy.deepcopy(parts)
    turned["2.json"]["requirements"].reverse()
    assert merge(turned)["requirements"] == merge(parts)["requirements"]


def test_an_overlap_is_refused():
    parts = shards()
    with pytest.raises(Refused, match=r"4\.json and 1\.json overlap: both ran"):
        merge({**parts, "4.json": made(of_shard(1, 3), ["again"])})


def test_one_shard_is_refused():
    with pytest.raises(Refused, match="two certificates or more; it got 1"):
        merge({"whole": made()})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("kit", {"version": "0.0"}, "kit is '0.0' and"),
        ("subject", {"version": "2"}, r"subject is '2' and '1' \(version\)"),
        ("environment", {"machine": "other"}, r"environment is 'other' and .* \(machine\)"),
        ("profile", "full", "profile is 'full' and 'standard'"),
        ("seed", 7, "seed is 7 and 0"),
    ],
)
def test_shards_of_different_runs_are_refused(key, value, message):
    parts = copy.deepcopy(shards())
    parts["2.json"][key] = {**parts["2.json"][key], **value} if isinstance(value, dict) else value
    with pytest.raises(Refused, match=f"not of one run: {message}"):
        merge(parts)


@pytest.mark.parametrize("option", ["--with=rope=other", "--metal=off", "--call-limit=1", "--layout=course"])
def test_shards_of_other_tests_are_refused(option):
    one, two = shards(2).values()
    two["arguments"] = [*two["arguments"], *option.split("=", 1)]
    with pytest.raises(Refused, match=rf"not of one run: arguments is \[\('{option.split('=')[0]}'"):
        merge({"one": one, "two": two})
    one["arguments"] = [option, "-q", *one["arguments"]]
    assert merge({"one": one, "two": two})["complete"]


def test_shards_may_come_from_machines_with_different_kernels():
    one, two = shards(2).values()
    one["environment"]["system"], two["environment"]["system"] = "Linux 6.1.0", "Linux 6.8.0-azure"
    assert merge({"one": one, "two": two})["complete"]
    two["environment"]["system"] = "Darwin 25"
    with pytest.raises(Refused, match="environment is 'Darwin' and 'Linux'"):
        merge({"one": one, "two": two})


def test_shards_may_come_from_machines_with_different_patches_of_python():
    one, two = shards(2).values()
    one["environment"]["python"], two["environment"]["python"] = "3.14.0", "3.14.1"
    assert merge({"one": one, "two": two})["complete"]
    two["environment"]["python"] = "3.11.14"
    with pytest.raises(Refused, match=r"environment is '3\.11' and '3\.14' \(python\)"):
        merge({"one": one, "two": two})


def test_a_merged_certificate_is_as_old_as_its_first_shard_and_as_precise_as_its_least_precise():
    one, two = shards(2).values()
    one["date"], two["date"] = "2026-02-01", "2026-01-01"
    two["precision"] |= {"matmul": "tf32", "matmul_error": 2.0**-11}
    for pair in ({"one": one, "two": two}, {"two": two, "one": one}):
        merged = merge(pair)
        assert (merged["date"], merged["precision"]["matmul"]) == ("2026-01-01", "tf32")


def test_an_edited_shard_is_refused(tmp_path):
    parts = written(tmp_path, one=made(of_shard(1, 2)), two=made(of_shard(2, 2)))
    changed = json.loads(Path(parts["one"]).read_text())
    changed["requirements"][0]["examples"] += 1
    Path(parts["one"]).write_text(json.dumps(changed))
    with pytest.raises(Refused, match="the digest does not match"):
        read(Path(parts["one"]))
    assert cli.main(["merge", *parts.values(), "--out", str(tmp_path / "all.json")]) == 2
    assert not (tmp_path / "all.json").exists()


def test_a_merged_certificate_that_was_edited_is_refused():
    merged = merge(shards(CMASK_02=FAILURE))
    for row in merged["requirements"]:
        row["state"] = "passed" if row["state"] == "failed" else row["state"]
    assert "the digest does not match" in problems(merged)[0]
    merged["digest"] = digest(merged)
    assert "the verdict 'nonconformant' does not follow from its rows" in problems(merged)


# Differences


def test_equal_certificates_have_no_differences():
    assert changes(made(), made()) == []


def test_what_became_worse_and_better_is_told():
    before, after = made(CMASK_01=FAILURE), made(version="2", CMASK_02=FAILURE)
    found = {change.what.split()[0]: change for change in changes(before, after)}
    assert (found["version"].before, found["version"].after) == ("1", "2")
    assert (found["CMASK-01"].before, found["CMASK-01"].after, found["CMASK-01"].weight) == ("failed", "passed", 1)
    assert (found["CMASK-02"].after, found["CMASK-02"].weight) == ("failed", -1)


def test_an_error_that_doubled_is_told_and_one_that_hardly_moved_is_not():
    before = made(CMASK_01={"worst": 0.1}, CMASK_02={"worst": 0.1})
    after = made(CMASK_01={"worst": 0.15}, CMASK_02={"worst": 0.3})
    (change,) = changes(before, after)
    assert (change.what, change.before, change.after) == ("CMASK-02 worst error, share of its budget", "0.1", "0.3")
    assert change.weight == -1
    (back,) = changes(after, before)
    assert back.weight == 1


def test_diff_exits_with_1_when_something_became_worse(tmp_path, capsys):
    files = written(tmp_path, good=made(), bad=made(CMASK_01=FAILURE))
    assert cli.main(["diff", files["good"], files["bad"]]) == 1
    assert cli.main(["diff", files["bad"], files["good"]]) == 0
    assert cli.main(["diff", files["good"], files["good"]]) == 0
    assert "nothing moved" in capsys.readouterr().out


def test_a_certificate_of_another_kit_can_be_compared_but_not_shown_as_sound(tmp_path):
    older = made()
    older["requirements"] = older["requirements"][1:]
    older["kit"] = {**older["kit"], "version": "0.0"}
    older["digest"] = digest(older)
    path = Path(written(tmp_path, older=older)["older"])
    assert changes(read_any(path), made())
    with pytest.raises(Refused, match="requirements are missing"):
        read(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "it.json cannot be read: no such file or directory"),
        ("", "it.json cannot be read: it is empty"),
        ("verdict: conformant", "it.json cannot be read: it is not JSON: Expecting value: line 1"),
        ("[]", "it is no certificate"),
        ('{"certificate": "of swimming"}', "it is no certificate"),
    ],
)
def test_what_is_no_certificate_is_told_in_a_line(text, says, tmp_path, capsys):
    file = tmp_path / "it.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    for command in ("verify", "report", "badge"):
        code = 1 if command == "verify" and says == "it is no certificate" else 2
        assert cli.main([command, str(file)]) == code
        (line,) = capsys.readouterr().out.splitlines()
        assert says in line


@pytest.mark.parametrize("name", ["x[/]", "x[cpu]", "x[red]"])
def test_a_name_with_brackets_is_shown_as_it_is(name, tmp_path, capsys):
    files = written(tmp_path, one=made(name=name), two=made(name="y[/]"))
    parts = written(tmp_path, **{f"part{i}": made(of_shard(i, 2), ["--shard", f"{i}/2"], name=name) for i in (1, 2)})
    for command in (
        ["verify", files["one"]],
        ["report", files["one"], "--out", str(tmp_path / "page.html")],
        ["merge", *parts.values(), "--out", str(tmp_path / "all.json")],
        ["diff", files["one"], files["two"]],
    ):
        assert cli.main(command) == 0
        assert name in capsys.readouterr().out


@pytest.mark.parametrize(
    ("lost", "says"),
    [
        (lambda c: c.pop("environment"), "it has no environment"),
        (lambda c: c["kit"].pop("version"), "it has no kit/version"),
        (lambda c: c.update(subject="mine"), "it has no subject/name"),
        (lambda c: c["precision"].update(measured=[]), "it has no table of measured"),
        (lambda c: c["requirements"][0].pop("text"), "it has no list of requirements with id, text"),
        (lambda c: c["requirements"][0].update(state="splendid"), "it has no list of requirements with states"),
    ],
)
def test_what_lacks_something_cannot_be_compared(lost, says, tmp_path, capsys):
    older = copy.deepcopy(made())
    lost(older)
    files = written(tmp_path, older={**older, "digest": digest(older)}, now=made())
    assert cli.main(["diff", files["older"], files["now"]]) == 2
    assert says in capsys.readouterr().out


@pytest.mark.parametrize("command", ["verify", "badge"])
def test_what_is_nested_without_end_is_refused(command, tmp_path, capsys):
    (tmp_path / "deep.json").write_text("[" * 500_000)
    assert cli.main([command, str(tmp_path / "deep.json")]) == 2
    assert "deep.json cannot be read" in capsys.readouterr().out


@pytest.mark.parametrize("key", ["id", "text", "state"])
def test_rows_without_texts_cannot_be_compared(key, tmp_path, capsys):
    older = copy.deepcopy(made())
    older["requirements"][0][key] = {}
    files = written(tmp_path, older={**older, "digest": digest(older)}, now=made())
    assert cli.main(["diff", files["older"], files["now"]]) == 2
    assert "it has no list of requirements with texts for id, text, state" in capsys.readouterr().out


def test_a_narrower_claim_is_told():
    before, after = made(), made()
    after["subject"]["envelope"] = {"attention": {"dtypes": ["float32"]}}
    after["precision"]["declared"] = {"attention": "native"}
    found = {change.what: change.after for change in changes(before, after)}
    assert found["envelope of attention"] == "{'dtypes': ['float32']}"
    assert found["declared precision of attention"] == "native"
    text = Reader(report({"a.json": after})).text
    assert "attention: dtypes float32" in text
    assert "all that the contracts have" in Reader(report({"a.json": before})).text


@pytest.mark.parametrize("command", ["report", "badge", "merge"])
def test_what_is_read_is_not_written_over(command, tmp_path, capsys):
    files = written(tmp_path, one=made(of_shard(1, 2)), two=made(of_shard(2, 2)))
    given = [files["one"]] if command == "badge" else [*files.values()]
    same = f"{tmp_path}/../{tmp_path.name}/one.json"
    assert cli.main([command, *given, "--out", same]) == 2
    assert "would take the place of" in capsys.readouterr().out
    assert problems(json.loads(Path(files["one"]).read_text())) == []
    assert cli.main([command, *given, same, "--out", str(tmp_path / "x")]) == 2 if command != "badge" else True


def test_halves_of_characters_and_controls_are_shown_as_what_can_be_shown(tmp_path, capsys):
    files = written(tmp_path, one=made(name="a\ud800\nb\x1b[2J"), two=made(name="c"))
    for command in (
        ["verify", files["one"]],
        ["report", files["one"], "--out", str(tmp_path / "page.html")],
        ["diff", files["one"], files["two"]],
        ["badge", files["one"], "--label", "\udcff"],
    ):
        assert cli.main(command) == 0
        out = capsys.readouterr().out
        assert "\x1b" not in out
        assert out.encode()


# Badges


@pytest.mark.parametrize(
    ("others", "message", "color"),
    [
        ({}, "conformant, {n} of {n} requirements", "brightgreen"),
        ({"CMASK_01": FAILURE}, "nonconformant, {m} of {n} requirements", "red"),
        ({"only": frozenset({"CMASK-01"})}, "incomplete, 1 of {n} requirements", "lightgrey"),
    ],
)
def test_a_badge_tells_the_verdict(others, message, color):
    found = badge(made(**others))
    assert found["message"] == message.format(n=len(MASK), m=len(MASK) - 1)
    assert (found["schemaVersion"], found["label"], found["color"]) == (1, "inferspec", color)


def test_a_badge_is_printed_as_one_line_of_json(tmp_path, capsys):
    files = written(tmp_path, one=made())
    assert cli.main(["badge", files["one"], "--label", "kernels"]) == 0
    assert json.loads(capsys.readouterr().out)["label"] == "kernels"


# Reports


def test_a_report_shows_every_requirement_of_every_certificate():
    page = Reader(report({"a.json": made(), "b.json": made(name="theirs", CMASK_01=FAILURE)}))
    ids = [given["id"] for _, given in page.tags if given.get("id")]
    assert {r.id for r in all_requirements()} <= set(ids)
    assert len(ids) == len(set(ids))
    cells = [given for tag, given in page.tags if tag == "a" and "cell" in (given.get("class") or "")]
    assert len(cells) == 2 * len(ATTENTION)
    assert sum("failed" in (cell["class"] or "") for cell in cells) == 1
    assert "mine 1" in page.text
    assert "theirs 1" in page.text


def test_a_report_tells_a_failure_with_its_diagnosis_and_rerun_line():
    text = Reader(report({"a.json": made(CMASK_01=FAILURE)})).text
    assert "out[0] = <nan>, oracle 1" in text
    assert "\nsmallest input: causal_mask(L=1, S=2)\nlooks like: " in text
    assert "fault causal-mask-top-left" in text
    assert "rerun: pytest --pyargs inferspec.conformance.test_attention_masks::" in text
    assert "print('<&>')" in text


def test_a_report_needs_no_more_of_a_failure_than_the_schema():
    least = {name: FAILURE[name] for name in ("state", "message", "diagnosis")}
    one = made(CMASK_01=least)
    for row in one["requirements"]:
        row["failures"] = [{name: f[name] for name in ("test", *least)} for f in row["failures"]]
    one["digest"] = digest(one)
    assert problems(one) == []
    assert "out[0] = <nan>, oracle 1" in Reader(report({"a.json": one})).text


def test_the_plot_says_that_what_lies_beyond_its_ends_stands_there():
    text = Reader(report({"a.json": made(CMASK_01={**FAILURE, "worst": 1e9})})).text
    assert "≤ 10⁻⁶" in text
    assert "≥ 10⁶" in text


def test_a_report_tells_what_requirements_fail_alike_by():
    text = Reader(report({"a.json": made(CMASK_01=FAILURE, CMASK_02=FAILURE, CMASK_03=FAILURE)})).text
    assert "3 requirements fail alike, as causal-mask-top-left would: CMASK-01, CMASK-02, CMASK-03" in text


def test_a_report_lists_waivers():
    page = Reader(report({"a.json": made(waivers=[WAIVER], CMASK_03={"state": "waived"})}))
    assert "dtypes bfloat16" in page.text
    assert ("a", {"href": "https://example.org/1"}) in page.tags


def test_only_a_page_is_linked():
    one = made(waivers=[WAIVER], CMASK_03={"state": "waived"})
    one["waivers"][0]["issue"] = "javascript:alert(1)"
    assert not any("javascript" in (given.get("href") or "") for _, given in Reader(report({"a.json": one})).tags)
    one["digest"] = digest(one)
    assert "'javascript:alert(1)' does not match" in problems(one)[0]


def test_a_report_needs_no_network_and_trusts_no_text():
    hostile = {**FAILURE, "message": "<script>alert(1)</script>"}
    source = report({"a.json": made(CMASK_01=hostile)})
    assert "<script>alert" not in source
    loading = [given for tag, given in Reader(source).tags if tag in ("link", "img", "iframe") or "src" in given]
    assert loading == []


def test_a_rerun_line_keeps_what_says_what_was_tested():
    arguments = [
        "-n",
        "auto",
        "--impl=./x.py",
        "--with",
        "rope=mine:rope",
        "-x",
        "--metal",
        "sim",
        "--certificate",
        "c",
    ]
    line = rerun(made(arguments=arguments), "test_attention.py::test_x")
    assert line == (
        "pytest --pyargs inferspec.conformance.test_attention::test_x"
        " --impl ./x.py --with rope=mine:rope --metal sim --profile standard --draw-seed 0 -n 0"
    )


def test_a_rerun_line_quotes_and_names_the_layout():
    line = rerun(made(arguments=["--impl", "./my kernels/x.py", "--layout", "course"]), "test_rope.py::test_x")
    assert " --impl './my kernels/x.py' --layout course --profile standard" in line


def test_a_merged_certificate_is_rerun_as_its_shards_were():
    parts = {f"{i}": made(of_shard(i, 2), ["--impl", "a", "--metal", "sim", "--shard", f"{i}/2"]) for i in (1, 2)}
    assert " --impl a --metal sim --profile standard" in rerun(merge(parts), "test_rope.py::test_x")


def test_the_rerun_lines_of_a_run_and_of_its_report_run_that_test_again(certify, run_pytest, tmp_path):
    files = {"mask.py": "import numpy as np\ndef causal_mask(L, S, dtype): return np.zeros((L, S), dtype)\n"}
    run = certify(files, "--impl", "./mask.py", "-n", "0", "-k", "aligned_bottom_right")
    told = next(line for line in run.text.splitlines() if "rerun: " in line).partition("rerun: ")[2]
    (row,) = [row for row in run.certificate["requirements"] if row["failures"]]
    (tmp_path / "mask.py").write_text(files["mask.py"], encoding="utf-8")
    for line in (told, rerun(run.certificate, row["failures"][0]["test"])):
        again = run_pytest(tmp_path, *shlex.split(line)[1:])
        assert "1 failed" in again.text, line
        assert "passed" not in again.text.splitlines()[-1], line


def test_a_report_is_written_where_it_is_asked_for(tmp_path, capsys):
    files = written(tmp_path, one=made(), two=made(CMASK_01=FAILURE))
    assert cli.main(["report", *files.values(), "--out", str(tmp_path / "page.html")]) == 0
    assert "nonconformant" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert cli.main(["report", files["one"], files["one"], "--out", str(tmp_path / "page.html")]) == 2
    assert "is given twice" in capsys.readouterr().out


@pytest.mark.skipif(browser.CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize("width", [400, 800, 1300])
def test_a_page_fits_its_width_in_a_browser(tmp_path, width):
    page = tmp_path / "page.html"
    page.write_text(report({"a.json": made(CMASK_01=FAILURE), "b.json": made(name="theirs")}), encoding="utf-8")
    assert browser.fits(page, width)


def test_a_page_tells_what_holds_of_each_chapter_of_a_layout():
    one = made(name="student", CMASK_03=FAILURE)
    one["subject"]["layout"] = "course"
    page = Reader(report({"student.json": one}))
    assert "By chapters of the course" in page.text
    assert "causal_mask: CMASK-03" in page.text
    assert ("a", {"href": "#CMASK-03"}) in page.tags
    assert "By chapters" not in Reader(report({"mine.json": made()})).text


@pytest.mark.parametrize(
    ("envelope", "narrowed"),
    [
        ({"rope": {"dtypes": ["float32"]}}, True),
        ({"rope": {"dtypes": list(contract("rope").envelope["dtypes"])}, "generation": {"ends": ["kept"]}}, False),
        ({}, False),
    ],
)
def test_a_badge_says_that_something_is_left_out_and_not_that_another_right_way_is_gone(envelope, narrowed):
    one = made()
    one["subject"]["envelope"] = envelope
    assert badge(one)["message"].endswith(", narrowed envelope") is narrowed
