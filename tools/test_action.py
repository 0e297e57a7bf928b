"""The GitHub Action: its scripts, run as a runner would, and that it and the workflow hold together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from inferspec.tools import step_summary

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).resolve().parent.parent
ACTION = ROOT / ".github" / "actions" / "certify" / "action.yml"
WORKFLOW = ROOT / ".github" / "workflows" / "conformance.yml"
MASK = """
import numpy as np

def causal_mask(L, S, dtype):
    return np.triu(np.full((L, S), -np.inf), S - L + SHIFT).astype(dtype)
"""

pytestmark = pytest.mark.skipif(not ACTION.exists(), reason="only a checkout has the action")


@pytest.fixture(scope="module")
def action():
    return yaml.safe_load(ACTION.read_text(encoding="utf-8"))


def steps(action) -> dict[str, dict]:
    return {step["name"]: step for step in action["runs"]["steps"]}


def run(action, folder: Path, **inputs: str) -> dict[str, str]:
    """Run the action's scripts, but for the installation, and return the outputs of its steps."""
    given = {name: one.get("default", "") for name, one in action["inputs"].items()} | inputs
    out, summary = folder / "output", folder / "summary"
    for name in ("Certify", "Report"):
        step = steps(action)[name]
        variables = {key: given[value[len("${{ inputs.") : -len(" }}")]] for key, value in step["env"].items()}
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")} | variables
        environment |= {"GITHUB_OUTPUT": str(out), "GITHUB_STEP_SUMMARY": str(summary)}
        environment["PYTEST_XDIST_AUTO_NUM_WORKERS"] = "1"
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1800)
        assert done.returncode == 0, done.stdout + done.stderr
    return dict(line.split("=", 1) for line in out.read_text(encoding="utf-8").splitlines())


def test_a_run_leaves_a_certificate_a_report_a_badge_and_a_summary(action, tmp_path):
    (tmp_path / "mask.py").write_text(MASK.replace("SHIFT", "1"), encoding="utf-8")
    (tmp_path / "other.py").write_text(MASK.replace("SHIFT", "2"), encoding="utf-8")
    outputs = run(
        action,
        tmp_path,
        impl="./mask.py",
        profile="quick",
        certificate="it.json",
        python=sys.executable,
        **{"with": "\ncausal_mask=./other.py\n"},
    )
    assert outputs == {"code": "1", "verdict": "nonconformant", "base": "it"}
    certificate = json.loads((tmp_path / "it.json").read_text(encoding="utf-8"))
    assert certificate["subject"]["name"] == "mask with causal_mask=./other.py"
    assert json.loads((tmp_path / "it.badge.json").read_text(encoding="utf-8"))["message"].startswith("nonconformant")
    assert "<html" in (tmp_path / "it.html").read_text(encoding="utf-8")
    summary = (tmp_path / "summary").read_text(encoding="utf-8")
    assert summary.startswith("### ❌ mask with causal_mask=./other.py unversioned: nonconformant\n")
    assert "verdict: nonconformant" in summary


def test_without_a_subject_the_job_fails(action, tmp_path):
    assert run(action, tmp_path, impl="", python=sys.executable) == {"code": "4"}
    assert "no certificate" in (tmp_path / "summary").read_text(encoding="utf-8")


def test_without_a_certificate_the_summary_says_so(tmp_path):
    command = [sys.executable, "-m", "inferspec.tools.step_summary", str(tmp_path / "none.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout.startswith("### ⚠️ no certificate\n")


def test_the_name_of_a_subject_hides_nothing_of_the_summary(monkeypatch):
    monkeypatch.setattr(step_summary, "lines", lambda certificate: [])
    certificate = {
        "subject": {"name": "mine <!--", "version": "1", "kernel_path": "none"},
        "environment": {"system": "<b>Linux"},
        "profile": "standard",
        "requirements": [],
        "verdict": "nonconformant",
    }
    shown = step_summary.markdown(certificate)
    assert shown.startswith("### ❌ mine &lt;!-- 1: nonconformant\n")
    assert "<" not in shown


def test_inputs_reach_the_scripts_as_variables_alone(action):
    for step in action["runs"]["steps"]:
        assert "${{" not in step.get("run", "")


def test_the_workflow_gives_the_action_what_it_takes(action):
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    used = [step for job in jobs.values() for step in job["steps"] if step.get("uses") == "./.github/actions/certify"]
    assert used
    for step in used:
        assert set(step["with"]) <= set(action["inputs"])
    matrix, merged = (jobs[name]["strategy"]["matrix"] for name in ("certify", "merge"))
    assert matrix["shard"] == list(range(1, len(matrix["shard"]) + 1))
    assert used[0]["with"]["shard"].endswith(f"/{len(matrix['shard'])}")
    assert all(matrix[name] == merged[name] for name in merged)


def test_the_parts_of_a_night_are_those_that_are_joined():
    jobs = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"]
    script = next(step["run"] for step in jobs["false-alarms"]["steps"] if "--join" in step.get("run", ""))
    matrix = jobs["specificity"]["strategy"]["matrix"]
    assert f"' variants {' '.join(matrix['who'])})" in script
    for job, seeds in (("specificity", 4), ("specificity-of-variants", 1)):
        command = next(step["run"] for step in jobs[job]["steps"] if "inferspec specificity" in step.get("run", ""))
        assert f"--seeds {seeds} " in command
        assert len(jobs[job]["strategy"]["matrix"]["part"]) * seeds == 20
