"""Runs of the suites on made-up subjects, each in a process and a folder of its own."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

from inferspec.conformance.bridge.arrays import KINDS, Arrays, arrays
from inferspec.conformance.bridge.hosted_subject import HostedSubject
from inferspec.conformance.session import Session
from inferspec.conformance.suite import Profile, all_tests
from inferspec.tools.golden_copies import copied

HANGS = 1800
"""Seconds after which a process hangs, on the busiest machine."""

TOGETHER = {
    "test_claimed_inputs.py": "inputs",
    "test_course.py": "course",
    "test_engine_inputs.py": "inputs",
    "test_inputs.py": "inputs",
    "test_plugin.py": "plugin",
    "test_sizes.py": "inputs",
}
"""Files whose tests share what takes long to make, and the group that one worker runs."""


class Groups(LoadScopeScheduling):
    """Tests of a group go to one worker, every other test by itself. xdist 3.8 does so by marks, but by way of an attribute
    that pytest 9.2 reads no more. It has no public way to name a test's group: its own schedulers override this method too."""

    def _split_scope(self, nodeid: str) -> str:
        return TOGETHER.get(Path(nodeid.partition("::")[0]).name, nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """xdist, where it is not switched off: who hands out the tests."""
    return Groups(config, log) if config.getoption("dist") == "loadgroup" else None


@dataclass
class Run:
    """What a pytest process did."""

    code: int
    text: str
    certificate: dict[str, Any] | None

    def row(self, requirement: str) -> dict[str, Any]:
        """The certificate's row of a requirement."""
        assert self.certificate is not None, self.text
        return next(row for row in self.certificate["requirements"] if row["id"] == requirement)

    def states(self, operation: str) -> dict[str, str]:
        """State of each requirement of an operation of which a test ran."""
        assert self.certificate is not None, self.text
        rows = [row for row in self.certificate["requirements"] if row["name"] == operation and row["ran"]]
        return {row["id"]: row["state"] for row in rows}

    def complaint(self) -> str:
        """The one line of a usage error."""
        lines = [line for line in self.text.splitlines() if line.strip()]
        assert self.code == pytest.ExitCode.USAGE_ERROR, self.text
        assert len(lines) == 1, self.text
        return lines[0]


def in_folder(folder: Path, *arguments: str) -> Run:
    """Run pytest in a folder; a certificate that it writes is read back."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "COV_"))}
    out = folder / "certificate.json"
    out.unlink(missing_ok=True)
    # Plugins that nothing here needs, and that take each process a tenth of its start.
    idle = ("-p", "no:anyio", "-p", "no:syrupy")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *idle, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=HANGS)
    certificate = json.loads(out.read_text(encoding="utf-8")) if out.exists() else None
    return Run(done.returncode, done.stdout + done.stderr, certificate)


@pytest.fixture(scope="session")
def certify(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """Run the suites in a new folder with these files: ``certify({"rope.py": "…"}, "--impl", "./rope.py", "-k", "…")``. suite: the
    one that is run, which saves seconds where others have nothing to do with what is tested."""

    def run(files: Mapping[str, str], *arguments: str, suite: str = "") -> Run:
        folder = tmp_path_factory.mktemp("run")
        written(folder, files)
        suites = ".".join(["inferspec.conformance", *filter(None, [suite])])
        return in_folder(folder, "--pyargs", suites, "--certificate", "certificate.json", *arguments)

    return run


@pytest.fixture(scope="session")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """What `certify` finds of a course's package `student`, for requirements alone and without a pytest of its own, which
    takes seconds to start: ``judge({"student/basics.py": "…"}, "LIN-01")``. The certificate's rows, and no text: failures are
    neither made smaller nor looked up, and what works and is not claimed is not looked for, which takes most of the time of
    one."""

    def run(files: Mapping[str, str], *requirements: str, layout: str = "course") -> Run:
        folder = tmp_path_factory.mktemp("judged")
        written(folder, files)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("inferspec.conformance.session.unclaimed", lambda *_, **__: {})
            session = Session.opened(str(folder / "student"), layout=layout)
        session.profile = Profile(shrink=False, diagnose=False)
        try:
            tests = [test for test in all_tests() if test.requirement.id in requirements]
            found = {test.id: session.record(session.run(test)) for test in tests}
            return Run(0, "", session.conclude(found, [], []))
        finally:
            session.close()

    return run


@pytest.fixture(scope="session")
def run_pytest() -> Callable[..., Run]:
    """Run pytest in a folder as it is."""
    return in_folder


@pytest.fixture(scope="session")
def write() -> Callable[[Path, Mapping[str, str]], None]:
    """Write files into a folder."""
    return written


def written(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def as_course(tmp_path_factory: pytest.TempPathFactory, write: Callable[..., None]) -> Any:
    """A subject made of files, seen through `--layout course`, or another layout, as the package `student`."""
    made = []

    def host(files: dict[str, str], layout: str = "course") -> HostedSubject:
        folder = tmp_path_factory.mktemp("course")
        write(folder, files)
        made.append(HostedSubject(str(folder / "student"), layout=layout, limit=60))
        return made[-1]

    yield host
    for subject in made:
        subject.close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of its own for modules, and a process that forgets what was imported from it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.split(".")[0] in ("mine", "other", "package")]:
        del sys.modules[name]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where a copy of the committed goldens is."""
    return copied(tmp_path)


@pytest.fixture
def torch() -> Any:
    """PyTorch, which computes goldens."""
    return pytest.importorskip("torch", reason="goldens are computed with PyTorch")


@pytest.fixture(scope="module", params=KINDS)
def to(request: pytest.FixtureRequest) -> Arrays:
    """The bridge to each kind of arrays that is installed."""
    if importlib.util.find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return arrays(request.param)
