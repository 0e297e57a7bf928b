"""One run of the suites on one subject: smoke stage first, then each test, then the certificate."""

from __future__ import annotations

import datetime
import re
import shlex
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from inferspec.conformance.bridge.did_you_mean import meant
from inferspec.conformance.bridge.hosted_subject import CALL_LIMIT, HostedSubject
from inferspec.conformance.bridge.layouts import LAYOUTS
from inferspec.conformance.bridge.layouts.packages import COMPILED, UNFILLED
from inferspec.conformance.bridge.metal import DECLARABLE, MODES
from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.conformance.bridge.wire import readable
from inferspec.conformance.judging.instead import give_what_is_taken
from inferspec.conformance.judging.optional import leave_out_refused
from inferspec.conformance.judging.refusals import NOT_YET, Choices
from inferspec.conformance.judging.repeated_failures import Repeats
from inferspec.conformance.judging.smoke import smoke_test
from inferspec.conformance.judging.trial import Outcome, Trial
from inferspec.conformance.judging.unclaimed import unclaimed
from inferspec.conformance.reporting import certificate
from inferspec.conformance.reporting.waivers import Waiver, read_findings, read_waivers
from inferspec.conformance.subject import Description, SubjectDied
from inferspec.conformance.suite import EXAMPLES, Profile, Test, address, all_tests
from inferspec.conformance.trust.canary import believed
from inferspec.conformance.trust.integrity import altered
from inferspec.spec import contracts
from inferspec.spec.contract import Fault

_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")

DAY = 86_400
"""Seconds that a call may take at most."""


@dataclass
class Session:
    """A subject that passed the smoke stage, and how it is to be tested."""

    subject: HostedSubject
    description: Description
    profile: Profile
    waivers: Mapping[str, Waiver]
    findings: Mapping[str, str]
    """requirement -> why the subject is known to fail it, where that is not waived"""
    smoke: Mapping[str, tuple[str, str]]
    """operation -> (state, message) where the plainest call already stubbed, crashed or hung."""
    matmul_error: float | None
    unclaimed: Mapping[str, list[str]]
    """operation -> what works although it is outside the envelope"""
    limit: float
    replacements: Mapping[str, str]
    judged: set[str] = field(default_factory=set)
    """The operations of which a test has run."""
    repeats: Repeats = field(default_factory=Repeats)
    """What was told of their failures."""
    _choices: Choices = field(default_factory=Choices)
    """What its tests saw of the envelope."""

    @classmethod
    def opened(
        cls,
        spec: str,
        replacements: Mapping[str, str] | None = None,
        profile: str = "standard",
        seed: int = 0,
        limit: float | None = None,
        metal: str = "auto",
        layout: str = "",
        components: Collection[str] = (),
    ) -> Session:
        """Load the subject and smoke-test it; AdapterError with one line where the adapter cannot be used.

        limit: seconds that a call may take, None: `CALL_LIMIT`. components: those that are asked for, all if empty (see
        `HostedSubject`).
        """
        replacements, limit = replacements or {}, CALL_LIMIT if limit is None else limit
        if profile not in EXAMPLES:
            raise ValueError(f"--profile {profile}: it takes {', '.join(EXAMPLES)}{meant(profile, EXAMPLES)}")
        if metal not in MODES:
            raise ValueError(f"--metal {metal}: it takes {', '.join(MODES)}")
        if not 0 < limit <= DAY:
            raise ValueError(f"--call-limit {limit}: it takes seconds, more than 0 and up to {DAY}")
        if layout and layout not in LAYOUTS:
            raise ValueError(f"--layout {layout}: it takes {', '.join(LAYOUTS)}{meant(layout, LAYOUTS)}")
        subject = HostedSubject(spec, replacements, limit, metal=metal, layout=layout, components=components)
        try:
            return cls._of(subject, spec, profile, seed, limit, replacements)
        except BaseException:
            subject.close()
            raise

    @classmethod
    def _of(
        cls, subject: HostedSubject, spec: str, profile: str, seed: int, limit: float, replacements: Mapping[str, str]
    ) -> Session:
        description = subject.description
        waivers = read_waivers(description.waivers, description.device) if description.waivers else {}
        findings = read_findings(description.waivers, description.device) if description.waivers else {}
        smoke = smoke_test(subject, description)
        try:
            probed = subject.probe()
        except (SubjectDied, EOFError):
            probed = {"matmul_error": None, "kernel_path": description.kernel_path, "declared": ""}
        if not DECLARABLE.fullmatch(probed["declared"]):
            raise AdapterError(
                f"{spec}: KERNEL_PATH is {probed['declared']!r}; it takes a few words, such as cpu avx512, and not what is seen "
                "(metal, metalsim, mlx, none)"
            )
        description.kernel_path = probed["kernel_path"]
        leave_out_refused(subject, description, without=set(smoke))
        give_what_is_taken(subject, description, without=set(smoke))
        also = unclaimed(subject, description, without=set(smoke))
        return cls(
            subject,
            description,
            Profile(profile, seed),
            waivers,
            findings,
            smoke,
            probed["matmul_error"],
            also,
            limit,
            replacements,
        )

    @classmethod
    def joined(cls, handed: Mapping[str, Any]) -> Session:
        """A worker's share of a session that the controller opened."""
        description = Description(**handed["description"])
        # As they were when the run began, and not as the subject may have left their file.
        waivers = {w["requirement"]: Waiver.from_plain(w) for w in handed["waivers"]}
        how = {name: handed[name] for name in ("metal", "layout", "components")}
        subject = HostedSubject(description.spec, handed["replacements"], handed["limit"], **how, known=description)
        profile = Profile(handed["profile"], handed["seed"])
        smoke = {name: (state, message) for name, (state, message) in handed["smoke"].items()}
        findings, limit = handed["findings"], handed["limit"]
        return cls(subject, description, profile, waivers, findings, smoke, None, {}, limit, handed["replacements"])

    def handed_on(self) -> dict[str, Any]:
        """What a worker needs, as plain data."""
        return {
            "description": asdict(self.description),
            "waivers": [waiver.plain() for waiver in self.waivers.values()],
            "findings": dict(self.findings),
            "profile": self.profile.name,
            "seed": self.profile.seed,
            "smoke": {name: list(found) for name, found in self.smoke.items()},
            "limit": self.limit,
            "metal": self.subject.metal,
            "layout": self.subject.layout,
            "components": list(self.subject.components),
            "replacements": dict(self.replacements),
        }

    def header(self) -> list[str]:
        about = self.description
        return [
            f"inferspec: {about.name} {about.version} ({about.origin}), {about.library} {about.device}, "
            f"kernel path {about.kernel_path}, profile {self.profile.name}, seed {self.profile.seed}",
            f"inferspec: offers {', '.join(about.offers) or 'nothing'}",
            *(f"inferspec: {line}" for line in self.not_taken()),
        ]

    def not_taken(self) -> list[str]:
        """What is not asked since no parameter has its name, where one of another name may be it."""
        return [
            f"{operation} takes no {name}, and so is not asked for it; if its {' or '.join(others)} is that, call it {name}"
            for operation, offer in self.description.offers.items()
            for name, others in offer.get("strange", {}).items()
        ]

    def run(self, test: Test) -> Outcome:
        """Run a test and return its outcome."""
        name = test.requirement.name
        if name in self.description.broken:
            return Outcome("failed", message=self.description.broken[name])
        if name not in self.description.offers:
            return Outcome("not_claimed", message=self.description.absent.get(name, f"the subject has no {name}"))
        if name in self.smoke:
            state, message = self.smoke[name]
            return Outcome(state, message=message)
        self.judged.add(name)
        trial = Trial(self.subject, test.requirement, self.waivers.get(test.requirement.id), self._choices)
        test.run(trial, self.profile, self.repeats)
        if self.subject.layout and _is_not_done(trial.outcome):
            # A branch that is not written yet, or that needs a kernel that is not built here.
            return Outcome("not_claimed", message=trial.outcome.message)
        return trial.outcome

    def record(self, outcome: Outcome) -> dict[str, Any]:
        """The outcome as plain data, fit for JSON and for xdist."""
        record = asdict(outcome)
        record["features"] = {key: str(value) for key, value in outcome.features.items()}
        return record

    def failure_text(self, test: Test, outcome: Outcome, nodeid: str) -> str:
        """What a reader sees of a failure."""
        about, requirement = self.description, test.requirement
        dtype = outcome.features.get("dtypes", "")
        where = " · ".join(
            part for part in (f"{about.name} {about.version}", dtype, f"{about.arrays} {about.device}") if part
        )
        lines = [f"{requirement.id} {requirement.text}   [{where}]", f"  {outcome.message}"]
        if outcome.state != "failed":
            lines[1] = f"  {outcome.state}: {outcome.message}"
        if outcome.call:
            seed = f", seed {outcome.seed}" if outcome.seed is not None else ""
            lines.append(f"  smallest input: {outcome.call}{seed}")
        if outcome.program:
            lines.append(f"  as a program: {outcome.program}")
        if outcome.diagnosis:
            lines.append(f"  looks like: {'; or: '.join(self._fault_text(name) for name in outcome.diagnosis[:4])}")
        if reason := self.findings.get(requirement.id):
            lines.append(f"  known of {about.name}: {readable(' '.join(reason.split()))}")
        lines.append(f"  rerun: {self._rerun(test, nodeid)}")
        return "\n".join(lines)

    def _fault_text(self, name: str) -> str:
        fault: Fault = next(f for c in contracts() for f in c.faults if f.name == name)
        return f"{fault.text} (fault {name})"

    def _rerun(self, test: Test, nodeid: str) -> str:
        how = ["--impl", self.description.spec]
        how += ["--layout", self.subject.layout] if self.subject.layout else []
        how += [word for part, spec in self.replacements.items() for word in ("--with", f"{part}={spec}")]
        how += ["--metal", self.subject.metal] if self.subject.metal != "auto" else []
        how += ["--call-limit", f"{self.limit:g}"] if self.limit != CALL_LIMIT else []
        how += ["--profile", self.profile.name, "--draw-seed", str(self.profile.seed), "-n", "0"]
        # As a shell takes it: a folder's name may have a space.
        options = shlex.join(how)
        return (
            f'pytest {options} "{nodeid}"'
            if nodeid.startswith("conformance/")
            else f"pytest {address(test.id)} {options}"
        )

    def conclude(
        self,
        results: Mapping[str, Mapping[str, Any]],
        arguments: Sequence[str],
        changed: Sequence[str],
        whole: bool = True,
    ) -> dict[str, Any]:
        """The certificate of what ran; changed: what of the kit was changed where it ran; whole: whether all who ran a part
        have said what they found."""
        rows = certificate.judge(
            all_tests(),
            results,
            self.description.offers,
            self.description.broken,
            self.waivers,
            datetime.datetime.now(datetime.UTC).date(),
            self.description.absent,
            # Quick may well not draw what a waiver is for.
            thorough=EXAMPLES[self.profile.name] >= EXAMPLES[Profile().name],
        )
        return certificate.certificate(
            self.description,
            rows,
            self.waivers,
            self.profile,
            arguments,
            self.matmul_error,
            self.unclaimed,
            bool(results) and not changed and whole,
            changed,
        )

    def altered(self) -> list[str]:
        """What was changed of what judges, here and where the subject runs."""
        if type(self.subject) is not HostedSubject:
            return ["Session.subject"]
        changed = altered() + Session.patched(self)
        changed += [f"{name}, where the subject runs" for name in HostedSubject.altered(self.subject)]
        # What is known to be changed may well be why.
        return changed or [f"wrong answers of {name} pass" for name in believed(sorted(self.judged))]

    def patched(self) -> list[str]:
        """What stands in the place of methods of this session and its subject."""
        return [
            f"{type(one).__name__}.{name}"
            for one in (self, self.subject)
            for name, value in vars(one).items()
            if callable(value)
        ]

    def close(self) -> None:
        self.subject.close()


def _is_not_done(outcome: Outcome) -> bool:
    """Whether a package of a course says that something is not written, or needs an extension that is not built."""
    if lacking := _NO_MODULE.search(outcome.message):
        return COMPILED.search(lacking[1]) is not None
    if UNFILLED.search(outcome.message):
        return True
    return outcome.state == "overclaimed" and "NotImplementedError" in outcome.message.replace(NOT_YET, "")
