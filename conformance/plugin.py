"""The pytest plugin: options, the subject, and what a run reports and writes.

It is loaded in every pytest run of its environment, so importing it pulls in nothing but pytest; the rest is
imported when a run concerns the suites.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from inferspec.conformance.session import Session

SUITES = Path(__file__).resolve().parent
PACKAGE = "inferspec.conformance"
PROPERTY = "inferspec"
_session = pytest.StashKey["Session"]()
_watch = pytest.StashKey[Any]()
_results = pytest.StashKey["Results"]()
_certificate = pytest.StashKey[dict[str, Any]]()
_unwritten = pytest.StashKey[str]()
"""Why there is no certificate of this run."""
_files = pytest.StashKey[dict[str, str]]()


OPTIONS: dict[str, dict[str, Any]] = {
    "--impl": {
        "metavar": "SUBJECT",
        "help": "what to certify: a module, module:object, ./file.py or a registered name ('list' prints those); default impl",
    },
    "--with": {
        "metavar": "PART=SUBJECT",
        "action": "append",
        "default": [],
        "help": "put one component or name of another subject in its place",
    },
    "--layout": {
        "metavar": "NAME",
        "default": "",
        "help": "whose names --impl has, where it is no adapter: course (the tiny-llm course) or course-week2 (what its week 2 writes anew)",
    },
    "--certificate": {"metavar": "FILE", "help": "write the certificate (JSON) here"},
    "--profile": {
        "metavar": "NAME",
        "default": "standard",
        "help": "how many examples: quick, standard, full or nightly",
    },
    "--draw-seed": {
        "metavar": "N",
        "type": int,
        "default": 0,
        "help": "draw other examples; a seed draws the same ones for every subject",
    },
    "--shard": {
        "metavar": "I/N",
        "help": "run the I-th of N parts, by requirement; `inferspec merge` joins their certificates",
    },
    "--metal": {
        "metavar": "MODE",
        "default": "auto",
        "help": "what Metal kernels run on: auto (Metal where there is any), native, sim (a simulator) or off",
    },
    "--call-limit": {
        "metavar": "SECONDS",
        "type": float,
        "help": "a call without an answer for so long counts as hung; default 20",
    },
}
TELLING = ("--impl", "--with", "--layout", "--certificate", "--shard", "--draw-seed", "--metal", "--call-limit")
"""Options that make a run ours wherever its tests are; other plugins have a --profile too."""


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    # Two plugins with an option of one name break every run, so that runs which are not ours see none of our options.
    config = pluginmanager.get_plugin("pytestconfig")
    assert isinstance(config, pytest.Config)
    given = [
        *config.getini("addopts"),
        *shlex.split(os.environ.get("PYTEST_ADDOPTS", "")),
        *config.invocation_params.args,
    ]
    if not (_in_checkout() or any(_is_ours(str(a)) or str(a).split("=")[0] in TELLING for a in given)):
        return
    group = parser.getgroup("inferspec", "certify an implementation of LLM inference components")
    for name, settings in OPTIONS.items():
        try:
            group.addoption(name, dest=_dest(name), **settings)
        except (ValueError, argparse.ArgumentError):
            # Another plugin was there before.
            continue


def _dest(option: str) -> str:
    return "inferspec_" + option.strip("-").replace("-", "_")


def _option(config: pytest.Config, name: str) -> Any:
    return config.getoption(_dest(name), OPTIONS[name].get("default"))


def _in_checkout() -> bool:
    """Whether this is a run in the kit's own checkout, where pytest's ini file names the tests."""
    return SUITES.parent in (Path.cwd(), *Path.cwd().parents)


def pytest_cmdline_main(config: pytest.Config) -> int | None:
    if _option(config, "--impl") != "list":
        return None
    from inferspec.conformance.bridge.locate import registered

    subjects = registered()
    width = max(map(len, subjects))
    for name, module in subjects.items():
        print(f"{name:{width}}  {module}")
    return 0


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "requirement(id, component): the sentence of the contract that a test checks, and what it is about; "
        "-m \"requirement(id='ROPE-01')\" runs its tests, -m \"requirement(component='rope')\" all of RoPE's",
    )
    config.stash[_results] = Results()
    config.pluginmanager.register(config.stash[_results], "inferspec-results")
    if _concerns_us(config):
        _check_certificate(_option(config, "--certificate"))
        _check_marks(config.getoption("markexpr", ""))
        if shard := _option(config, "--shard"):
            _shard(shard)
        _open(config)


def _check_certificate(path: str | None) -> None:
    """A certificate that cannot be written is said before the run and not after it."""
    if path is None:
        return
    if not path.strip():
        raise pytest.UsageError("--certificate is empty; it takes a file")
    file = Path(path)
    nearest = next(parent for parent in file.absolute().parents if parent.exists())
    if file.is_dir():
        raise pytest.UsageError(f"--certificate {path} is a folder; it takes a file")
    if not nearest.is_dir() or not os.access(file if file.exists() else nearest, os.W_OK):
        raise pytest.UsageError(
            f"--certificate {path} cannot be written: {nearest} is no folder that can be written to"
        )


def _check_marks(expression: str) -> None:
    """What no requirement has would select no test, and say nothing."""
    from inferspec.conformance.bridge.did_you_mean import meant
    from inferspec.spec import COMPONENTS, contracts

    # What stands in the brackets of other markers is their own affair.
    asked = " ".join(re.findall(r"\brequirement\(([^)]*)\)", expression))
    for key, name in re.findall(r"""\b(\w+)\s*=\s*["']([^"']*)["']""", asked):
        if key not in ("id", "component"):
            raise pytest.UsageError(f"-m {expression}: {key!r} is nothing to choose by; id and component are")
        known = COMPONENTS if key == "component" else [one.id for about in contracts() for one in about.requirements]
        if name not in known:
            raise pytest.UsageError(f"-m {expression}: there is no requirement of {key} {name!r}{meant(name, known)}")


def _concerns_us(config: pytest.Config) -> bool:
    if hasattr(config, "workerinput"):
        return PROPERTY in config.workerinput
    asked = [_option(config, name) for name in ("--impl", "--with", "--certificate")]
    return any(asked) or any(_is_ours(argument) for argument in config.args)


def _is_ours(argument: str) -> bool:
    path = _path(argument)
    if path == PACKAGE or path.startswith(PACKAGE + "."):
        return True
    resolved = Path(path).resolve()
    return resolved == SUITES or SUITES in resolved.parents or (resolved / "conformance").resolve() == SUITES


def _open(config: pytest.Config) -> Session:
    from inferspec.conformance.bridge.allocator import keep_freed_memory
    from inferspec.conformance.bridge.signatures import AdapterError
    from inferspec.conformance.bridge.threads import let_woken_threads_wait
    from inferspec.conformance.reporting.waivers import WaiverError
    from inferspec.conformance.session import Session
    from inferspec.conformance.trust.integrity import files
    from inferspec.conformance.trust.tampering import Watch

    keep_freed_memory()
    let_woken_threads_wait()
    # Before there is a subject that could write there.
    config.stash[_files] = files()
    if sys.flags.optimize > 1:
        raise pytest.UsageError(
            "python -OO leaves out the docstrings that the kit compares itself by: run it without, or with -O"
        )
    spec = _option(config, "--impl")
    if spec is not None and not spec.strip():
        raise pytest.UsageError("--impl is empty; it takes a module, a file, an object in one, or a registered name")
    try:
        if handed := getattr(config, "workerinput", {}).get(PROPERTY):
            session = Session.joined(handed)
        else:
            session = Session.opened(
                spec=spec or "impl",
                replacements=dict(_part(text) for text in _option(config, "--with")),
                profile=_option(config, "--profile"),
                seed=_option(config, "--draw-seed"),
                limit=_option(config, "--call-limit"),
                metal=_option(config, "--metal"),
                layout=_option(config, "--layout"),
                components=_asked(config.args),
            )
    except (AdapterError, WaiverError, ValueError) as error:
        raise pytest.UsageError(" ".join(str(error).split())) from error
    config.stash[_session], config.stash[_watch] = session, Watch()
    config.add_cleanup(session.close)
    return session


def _asked(arguments: Sequence[str]) -> set[str]:
    """The components whose suites are named, and those that they make use of; none where anything else is named too."""
    from inferspec.conformance.suite import suites_of
    from inferspec.spec import COMPONENTS, contracts

    named = {Path(path).stem if path.endswith(".py") else path.rpartition(".")[2] for path in map(_path, arguments)}
    # Whoever names no suite need not wait for all of them to be read.
    if not named or not all(name.startswith("test_") for name in named) or not all(map(_is_ours, arguments)):
        return set()
    suites = {suite: component for component in COMPONENTS for suite in suites_of(component)}
    if not named <= {*suites}:
        return set()
    asked = {suites[name] for name in named}
    borrowed = {
        other.name
        for contract in contracts()
        if contract.component in asked
        for operation in contract.operations
        for other in operation.beside
    }
    return asked | {
        contract.component
        for contract in contracts()
        if any(operation.signature.operation in borrowed for operation in contract.operations)
    }


def _path(argument: str) -> str:
    return argument.split("::")[0]


def _part(text: str) -> tuple[str, str]:
    part, equals, spec = text.partition("=")
    if not (part and equals and spec):
        raise ValueError(f"--with {text}: it takes PART=SUBJECT, such as rope=my_pkg.rope")
    return part, spec


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """xdist: a worker takes over what the controller found, and does not smoke-test again."""
    if _session in node.config.stash:
        node.workerinput[PROPERTY] = node.config.stash[_session].handed_on()


def pytest_report_header(config: pytest.Config) -> list[str]:
    return config.stash[_session].header() if _session in config.stash else []


class Suite(pytest.Module):
    """A suite, whatever a project's `python_functions` calls its own tests."""

    def funcnamefilter(self, name: str) -> bool:
        return name.startswith("test_")


def _is_suite(path: Path) -> bool:
    return path.name.startswith("test_") and path.suffix == ".py" and path.resolve().parent == SUITES


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """The suites too where a project's `python_files` names other files than these, which pytest then leaves out."""
    named = any(file_path.match(pattern) for pattern in parent.config.getini("python_files"))
    if named or parent.session.isinitpath(file_path) or not _is_suite(file_path):
        return None
    return pytest_pycollect_makemodule(file_path, parent)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    """The suites as the kit itself has them: what pytest gives a name of its own is read a second time."""
    if not _is_suite(module_path):
        return None
    module: pytest.Module = Suite.from_parent(parent, path=module_path)
    module.obj = importlib.import_module(f"{PACKAGE}.{module_path.stem}")
    return module


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    tests = {item: getattr(getattr(item, "obj", None), "conformance", None) for item in items}
    for item, test in tests.items():
        if test:
            from inferspec.conformance.reporting.certificate import component_of

            about = test.requirement
            item.add_marker(pytest.mark.requirement(id=about.id, component=component_of(about)))
    if shard := _option(config, "--shard"):
        from inferspec.conformance.reporting.certificate import of_shard

        mine = of_shard(*_shard(shard))
        ours = {item: test is not None and test.requirement.id in mine for item, test in tests.items()}
        items[:] = [item for item, run in ours.items() if run]
        config.hook.pytest_deselected(items=[item for item, run in ours.items() if not run])


def pytest_collection_finish(session: pytest.Session) -> None:
    if _session in session.config.stash:
        # What is loaded stays: the collector need not walk through contracts and faults again and again.
        gc.freeze()


def _shard(text: str) -> tuple[int, int]:
    index, slash, count = text.partition("/")
    if not (slash and index.isdecimal() and count.isdecimal() and 1 <= int(index) <= int(count)):
        raise pytest.UsageError(f"--shard {text}: it takes I/N, such as 2/3")
    return int(index), int(count)


@pytest.fixture
def subject(request: pytest.FixtureRequest) -> Any:
    """Runs a conformance test on the subject under test and reports its outcome."""
    from inferspec.conformance.suite import own_tests

    config = request.config
    session = config.stash[_session] if _session in config.stash else _open(config)

    def run(test: Any) -> None:
        __tracebackhide__ = True
        outcome = session.run(test)
        # A text, which nobody changes on its way, and which xdist hands on as it is.
        told, results = json.dumps({"id": test.id, **session.record(outcome)}, sort_keys=True), config.stash[_results]
        request.node.user_properties.append((PROPERTY, told))
        results.found.append(told)
        # While what a fixture patched is still there: afterwards it is put back.
        results.altered |= {*config.stash[_watch].moved(request.module.__name__), *session.patched()}
        if own_tests().get(test.id, test) is not test:
            results.altered.add(f"the test in the place of {test.id}")
        if outcome.state in ("not_claimed", "outside_envelope"):
            pytest.skip(f"{outcome.state}: {outcome.message}")
        if outcome.state == "waived":
            pytest.xfail(f"waived: {test.requirement.id}")
        if outcome.state != "passed":
            text = session.failure_text(test, outcome, request.node.nodeid)
            if test.requirement.level == "SHOULD":
                pytest.xfail(text)
            pytest.fail(text, pytrace=False)

    return run


class Results:
    """Gathers the outcomes of the tests, from this process or from xdist's workers."""

    def __init__(self) -> None:
        self.found: list[str] = []
        """Outcomes, in JSON, as they were where they were found: other plugins may touch a report on its way here."""
        self.altered: set[str] = set()
        self.lost = False
        """Whether a worker is gone without a word: of what it ran there are reports alone."""
        self.silent = 0
        """Workers that have not said yet what they found."""
        self._reported: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._reported += [str(value) for name, value in report.user_properties if name == PROPERTY]

    def forged(self) -> set[str]:
        """Reports that are not as they were made."""
        made = set(self.found)
        forged = [_outcome(text) for text in self._reported if text not in made]
        return set() if self.lost else {f"the report of {outcome.get('id', 'a test')}" for outcome in forged}

    def outcomes(self) -> dict[str, Any]:
        """Test -> its outcome; of one that ran more than once, by a plugin that tries failures again say, the worst."""
        from inferspec.conformance.reporting.certificate import STATES

        every = [_outcome(text) for text in dict.fromkeys([*self._reported, *self.found])]
        known = [one for one in every if one.get("state") in STATES and isinstance(one.get("id"), str)]
        return {outcome["id"]: outcome for outcome in sorted(known, key=lambda outcome: STATES.index(outcome["state"]))}


def _outcome(text: str) -> dict[str, Any]:
    """What a report tells; nothing where another plugin put something else in its place."""
    try:
        outcome = json.loads(text)
    except ValueError:
        return {}
    return outcome if isinstance(outcome, dict) else {}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """xdist: a worker that is done takes tests from another; neighbouring tests, which share models, stay together."""
    if _session not in config.stash or config.getoption("dist") != "load":
        return None
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """xdist: workers are about to start."""
    if _session in config.stash:
        from inferspec.conformance.bridge.threads import one_thread

        config.stash[_results].silent = len(specs)
        for spec in specs:
            one_thread(spec.env)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """xdist: a worker is done; what it says of its own copy of the kit counts as what ours says."""
    results, told = node.config.stash[_results], getattr(node, "workeroutput", {}).get(PROPERTY)
    if told is None:
        results.lost = True
        return
    results.silent -= 1
    results.altered |= set(told["altered"])
    results.found += told["found"]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    config = session.config
    if _session not in config.stash:
        return
    _spare_hypothesis(config)
    results, changed = config.stash[_results], _changed(config)
    if hasattr(config, "workerinput"):
        told = {"altered": sorted({*results.altered, *changed}), "found": results.found}
        vars(config)["workeroutput"][PROPERTY] = told
        return
    # Who is interrupted asks no worker any more: reports alone are there, and make no verdict.
    cut = exitstatus == pytest.ExitCode.INTERRUPTED and results.silent > 0
    results.lost |= cut
    arguments = list(config.invocation_params.args)
    every = sorted({*results.altered, *results.forged(), *changed})
    certificate = config.stash[_session].conclude(results.outcomes(), arguments, every, whole=not cut)
    config.stash[_certificate] = certificate
    if path := _option(config, "--certificate"):
        _write(session, certificate, Path(path), stopped=exitstatus == pytest.ExitCode.INTERRUPTED)
    unsound = certificate["verdict"] == "nonconformant" or certificate["kit"]["altered"]
    if unsound and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _write(session: pytest.Session, certificate: dict[str, Any], path: Path, stopped: bool) -> None:
    """Write the certificate; that of a run that was stopped before its end takes no earlier one's place."""
    from inferspec.conformance.reporting.certificate import write

    if stopped and path.is_file():
        session.config.stash[_unwritten] = (
            f"certificate: {path} is of an earlier run, and stays: this one was stopped before its end"
        )
        return
    try:
        write(certificate, path)
    except OSError as error:
        session.config.stash[_unwritten] = f"the certificate could not be written: {error}"
        session.exitstatus = pytest.ExitCode.USAGE_ERROR


def _spare_hypothesis(config: pytest.Config) -> None:
    """Have Hypothesis say nothing of a run in which nobody used it: its plugin loads all of it for that, which takes every
    process 0.2 s."""
    if "hypothesis" not in sys.modules:
        config.pluginmanager.unregister(name="hypothesispytest")


def _changed(config: pytest.Config) -> list[str]:
    """What of the kit was changed since the run began: its files, and what of it is loaded."""
    from inferspec.conformance.session import Session
    from inferspec.conformance.trust.integrity import files
    from inferspec.conformance.trust.tampering import foreign

    before, now = config.stash[_files], files()
    moved = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    return moved + config.stash[_watch].moved() + foreign() + Session.altered(config.stash[_session])


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    result = config.stash.get(_certificate, None)
    if result is None:
        return
    from inferspec.conformance.reporting.summary import lines

    terminalreporter.section(f"conformance of {result['subject']['name']}")
    for line, style in lines(result):
        terminalreporter.write_line(line, **style)
    if config.get_verbosity() < 0:
        # pytest -q has no header.
        for line in config.stash[_session].not_taken():
            terminalreporter.write_line(line, yellow=True)
    if why := config.stash.get(_unwritten, ""):
        terminalreporter.write_line(why, red=True)
    elif path := _option(config, "--certificate"):
        terminalreporter.write_line(f"certificate: {path}")
