"""The command line: exit code 0 for good, 1 for a finding, 2 for bad usage."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import sys

import pytest

import inferspec
from inferspec.conformance import suite
from inferspec.conformance.reporting.certificate import certificate as build
from inferspec.conformance.reporting.certificate import judge, write
from inferspec.conformance.subject import Description
from inferspec.conformance.suite import Profile
from inferspec.tools.cli import main

MASK = """
import numpy as np

def causal_mask(L, S, dtype):
    return np.triu(np.full((L, S), -np.inf), S - L + 1).astype(dtype)
"""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """The file of a certificate of a run in which every test of causal masks passed."""
    passed = {"state": "passed", "examples": 40, "worst": 0.5, "precision": "float32", "message": "", "diagnosis": []}
    results = {test.id: passed for test in suite.all_tests() if test.requirement.name == "causal_mask"}
    rows = judge(suite.all_tests(), results, ["causal_mask"], {}, {}, datetime.date(2026, 11, 20))
    about = Description("./mask.py", "mask", "unversioned", "mask.py", offers={"causal_mask": {}})
    path = tmp_path_factory.mktemp("certificate") / "certificate.json"
    write(build(about, rows, {}, Profile(), [], None, {}, complete=True), path)
    return path


def test_the_version_is_told(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"inferspec {inferspec.__version__}\n"


def test_the_package_is_the_command_too():
    done = subprocess.run([sys.executable, "-m", "inferspec", "verify"], capture_output=True, text=True, timeout=1800)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: inferspec verify")


def test_certify_runs_the_suites_and_hands_options_on_to_pytest(tmp_path):
    (tmp_path / "mask.py").write_text(MASK, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "inferspec.tools.cli",
        "certify",
        "--impl",
        "./mask.py",
        "--certificate",
        "out.json",
        "-q",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout + done.stderr
    body = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert (body["verdict"], body["subject"]["name"]) == ("conformant", "mask")
    assert "warning" not in done.stdout + done.stderr


def test_verify_accepts_a_sound_certificate(certificate, capsys):
    assert main(["verify", str(certificate)]) == 0
    assert " ".join(capsys.readouterr().out.split()) == "sound: mask unversioned: conformant"


def test_verify_refuses_an_edited_certificate_and_says_why(certificate, tmp_path, capsys):
    body = json.loads(certificate.read_text(encoding="utf-8"))
    (tmp_path / "edited.json").write_text(json.dumps({**body, "verdict": "nonconformant"}), encoding="utf-8")
    assert main(["verify", str(tmp_path / "edited.json")]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "refused: the digest does not match" in out
    assert "refused: the verdict 'nonconformant' does not follow from its rows" in out


@pytest.mark.parametrize("text", [None, "", "{", "\x00"])
def test_verify_of_what_cannot_be_read_is_bad_usage(tmp_path, text):
    path = tmp_path / "certificate.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    assert main(["verify", str(path)]) == 2


@pytest.mark.parametrize("text", ["null", "[]", '{"verdict": "conformant"}'])
def test_verify_refuses_what_is_no_certificate(tmp_path, text):
    (tmp_path / "certificate.json").write_text(text, encoding="utf-8")
    assert main(["verify", str(tmp_path / "certificate.json")]) == 1


def test_verify_refuses_bytes_that_are_no_text(tmp_path):
    (tmp_path / "certificate.json").write_bytes(b"\xff\xfe\x00")
    assert main(["verify", str(tmp_path / "certificate.json")]) == 2


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["certifies"],
        ["verify"],
        ["golden"],
        ["faults", "-n", "many"],
        ["faults", "-n", "0"],
        ["faults", "--json", "nowhere/kills.json"],
        ["faults", "--report", __file__],
        ["mutate", "-n", "-3"],
        ["mutate", "--report", "."],
        ["specificity", "-n", ""],
        ["explain", "rope", "--xry"],
    ],
)
def test_a_command_that_is_not_there_is_bad_usage(arguments, capsys):
    # Told with the usage of the command, where there is one.
    command = "" if arguments[:1] in ([], ["certifies"]) else f" {arguments[0]}"
    assert f"usage: inferspec{command} [-h]" in bad_usage(arguments, capsys)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["simulate", "--json", "."], "--json: . cannot be written: it is a folder; it takes a file"),
        (["simulate", "--plot", "/nowhere/x.png"], "--plot: /nowhere/x.png cannot be written: there is no folder"),
        (["bench", "ops", "--json", "."], "--json: . cannot be written: it is a folder"),
        (
            ["bench", "model", "--shape", "tiny", "--json", "/nowhere/x.json"],
            "--json: /nowhere/x.json cannot be written: there is no folder /nowhere",
        ),
        (["bench", "scaling", "--plot", "/nowhere/x.png"], "--plot: /nowhere/x.png cannot be written"),
        (["report", "a.json", "--out", "."], "--out: . cannot be written"),
        (["badge", "a.json", "--out", ""], "--out: it is empty; it takes a file"),
        (["serve-batch", "p", "--model", "tiny-qwen3", "--out", "/nowhere/x"], "--out: /nowhere/x cannot be written"),
        (["generate", "--max-tokens", "-1"], "--max-tokens: it is -1; it takes 0 or more"),
        (["generate", "--top-p", "0"], "--top-p: it is 0; it takes a number above 0 and up to 1"),
        (["generate", "--temperature", "nan"], "--temperature: it is nan; it takes a number from 0 on"),
        (["generate", "--seed", "one"], "--seed: 'one' is no whole number"),
        (["kernels", "check", "x", "--timeout", "0"], "--timeout: it is 0; it takes seconds, more than 0"),
    ],
)
def test_an_option_that_cannot_be_used_is_named_as_it_was_spelt(arguments, says, capsys):
    assert f"error: argument {says}" in bad_usage(arguments, capsys)


@pytest.mark.parametrize("page", ["kills.html", "kills"])
def test_a_page_that_may_not_be_written_is_told_before_the_work(page, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    says = bad_usage(["faults", "--report", str(tmp_path / page)], capsys)
    assert f"{page} cannot be written: you may not write there" in says


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["verfy", "mine.json"], "); did you mean verify?\n"),
        (["golden", "chek"], "); did you mean check?\n"),
        (["faults", "--profile", "quik"], "); did you mean quick?\n"),
    ],
)
def test_a_command_that_is_not_there_is_told_with_what_may_have_been_meant(arguments, says, capsys):
    assert says in bad_usage(arguments, capsys)


def bad_usage(arguments, capsys) -> str:
    """What a command line that the parser refuses is told."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["golden", "check", "--revision", "abc"], "--revision abc: it takes --model"),
        (
            ["golden", "check", "--model", "tiny-qwen3", "--only", "rope"],
            "--only rope: it is of the goldens of operations",
        ),
        (["golden", "check", "--only", "ropes"], "did you mean rope?"),
        (["faults", "--only", "ropes"], "did you mean rope?"),
        (["faults", "--read", "binary", "--only", "rope"], "--only rope: --read shows all that is in its file"),
        (["faults", "--read", "binary"], "`inferspec faults --json` writes: it is not text in utf-8"),
        (["simulate", "--trace", "binary"], "ContextTokens, GeneratedTokens: it is not text in utf-8"),
        (["bench", "--compare", "binary"], "binary cannot be read: it is not text in utf-8"),
        (["faults", "--read", "nowhere"], "nowhere cannot be read: no such file or directory"),
        (["mutate", "--join", "nowhere"], "nowhere cannot be read: no such file or directory"),
        (["specificity", "--join", "nowhere"], "nowhere cannot be read: no such file or directory"),
        (
            ["serve-batch", "nowhere", "--model", "tiny-qwen3", "--out", "out.jsonl"],
            "nowhere cannot be read: no such file or directory",
        ),
        (["golden", "check", "--model", ""], "there is no model"),
        (["golden", "check", "--model", "."], "there is no model"),
        (["golden", "check", "--model", "tiny-qwen"], "did you mean tiny-qwen3?"),
        (
            ["generate", "--model", "tiny-qwen3", "--prompt", "x", "--top-k", "5"],
            "--top-k 5: it takes --temperature; without one the likeliest token is taken",
        ),
        (
            ["generate", "--model", "tiny-qwen3", "--prompt", "x", "--top-p", "0.9"],
            "--top-p 0.9: it takes --temperature",
        ),
        (["generate", "--model", "tiny-qwen3", "--prompt", "x", "--seed", "1"], "--seed 1: it takes --temperature"),
        (["simulate", "--seed", "-1"], "--seed is -1; it takes 0 or more"),
        (["simulate", "--plot", "figures.foo"], "it takes a name that ends in .png"),
        (["simulate", "--scheduler", "broken"], "importing it failed with SyntaxError"),
    ],
)
def test_what_cannot_be_used_is_told_before_the_work(arguments, says, tmp_path, monkeypatch, capsys):
    (tmp_path / "broken.py").write_text("def f(:", encoding="utf-8")
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 2
    assert says in " ".join(capsys.readouterr().out.split())


def test_faults_of_an_unknown_component_is_bad_usage(capsys):
    assert main(["faults", "--only", "ropes"]) == 2
    assert "the components are linear, attention" in " ".join(capsys.readouterr().out.split())


def test_certify_says_how_a_subject_is_named(capsys):
    assert main(["certify", "./mine.py", "-n", "0"]) == 2
    assert "./mine.py: a subject is named by --impl ./mine.py" in capsys.readouterr().out
