"""A subject in a process of its own: asked by messages, watched while it answers, and started anew when it dies."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from inferspec.conformance.bridge.arena import Arena, create
from inferspec.conformance.bridge.run_delay import PAUSE, Delays
from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.conformance.bridge.threads import one_thread
from inferspec.conformance.bridge.wire import decode, encode, readable
from inferspec.conformance.calls import Call, Observation
from inferspec.conformance.subject import Description, Result, SubjectDied

CALL_LIMIT = 20.0
"""Seconds that a call may take where nothing else is said."""

BYTES_A_SECOND = 1_000_000
"""A call of large arguments, such as a trained model, may take a second more for each so many bytes of them."""

PATIENCE = 0.25
"""The share of the limit that an operation gets once a call of it has hung: each test meets the same hang again."""

COMPILING = 100.0
"""Seconds more for a call whose Metal kernels are simulated: its first launches compile them, on machines that may be busy."""

LONGER = "kernels that are compiled at a first call may need a larger --call-limit"
"""What may help who has hung and has not."""

LEAST = 0.01
"""The share of the limit below which what a process lost to others is nothing."""

MOST = 10
"""Limits after which a call has hung whatever else runs: threads of a subject's own take the core from each other as well."""

BUFFER = 1 << 18
"""Bytes that the socket holds either way. macOS gives 8 KiB, and nearly half of all calls are longer: the two sides would change
places several times for one."""

LARGEST = 1 << 30
"""Bytes of an answer: more is none."""

ANSWERED = {
    "value": np.ndarray | None,
    "raised": str,
    "message": str,
    "changed": tuple,
    "parts": dict,
    "unwritten": tuple,
}
"""What an answer to a call is made of."""

PROBED = {"matmul_error": float, "kernel_path": str, "declared": str}
"""What the answer to the precision probe is made of."""

SHOWN = {"narrowed": dict, "lacking": tuple}
"""What the answer is made of that tells what an operation's objects have."""


class HostedSubject:
    """A subject in a process of its own, restarted when it dies.

    limit: seconds after which a call counts as hung, and less once its operation has, those not counted in which the process
    was ready to run and had no core; loading may take `start_limit`. arrays: a kind of arrays to use
    in place of the adapter's own. metal: on what its Metal kernels run (`metal.MODES`). layout: whose names it has
    (`layouts`), where it is no adapter. known: what it declared when it was loaded before. components: those that are asked
    for, all if empty: a part of another that cannot be used is not offered, and no reason to stop.
    """

    def __init__(
        self,
        spec: str,
        replacements: Mapping[str, str] | None = None,
        limit: float = CALL_LIMIT,
        start_limit: float = 120.0,
        arrays: str = "",
        metal: str = "auto",
        layout: str = "",
        known: Description | None = None,
        components: Collection[str] = (),
    ) -> None:
        self.replacements, self.metal, self.layout = dict(replacements or {}), metal, layout
        self.components = tuple(components)
        self._hello = {
            "spec": spec,
            "replacements": self.replacements,
            "arrays": arrays,
            "metal": metal,
            "layout": layout,
            "components": self.components,
        }
        self._limit, self._start_limit = limit + COMPILING * (metal == "sim"), start_limit
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None
        self._answers: select.poll | None = None
        self._delays: Delays | None = None
        self._asked: Arena | None = None
        self._answered: Arena | None = None
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the subject
        self._written_before = 0
        self._description = known
        self._fresh = False
        self._asked_so_far = 0
        self._hung: set[str] = set()
        """Operations of which a call has hung."""

    @property
    def description(self) -> Description:
        if self._description is None:
            self._start()
        assert self._description is not None
        return self._description

    def call(self, call: Call, results: Sequence[Result] = (), watch: bool = False) -> Observation:
        message = {
            "do": "call",
            "operation": call.operation,
            "arguments": dict(call.arguments),
            "views": dict(call.views),
            "keep": call.keep,
            "results": list(results),
            "watch": watch,
            "elsewhere": call.elsewhere,
            "refilled": call.refilled,
            "fresh": self._fresh,
        }
        self._fresh = False
        limit = self._limit * (PATIENCE if call.operation in self._hung else 1)
        try:
            answer = self._ask(message, limit, call)
        except SubjectDied as death:
            if death.state == "hung":
                self._hung.add(call.operation)
            raise
        if not _is_observation(answer):
            self._refuse(f"the subject's process answered with what is no result to {call}")
        return Observation(**{**answer, "message": readable(answer["message"])})

    def reset(self) -> None:
        # Told with the next call: a message of its own would wake the other process twice for each example.
        self._fresh = True

    def probe(self) -> dict[str, Any]:
        """The precision of the subject's library and what ran its kernels (`host.probed`)."""
        return self._told({"do": "probe"}, "the precision probe", PROBED)

    def shown(self, operation: str) -> dict[str, Any]:
        """What is left of an operation's envelope by what a call has made, and what this lacks (`host.shown`)."""
        return self._told({"do": "shown", "operation": operation}, "the question what its objects have", SHOWN)

    def _told(self, question: Mapping[str, Any], what: str, parts: Mapping[str, type]) -> dict[str, Any]:
        """The answer to a question of the kit's own, which is made of these parts."""
        answer = self._ask(question, self._limit, what)
        if set(answer) != set(parts) or not all(isinstance(answer[name], kind) for name, kind in parts.items()):
            self._refuse(f"the subject's process answered with what is no result to {what}")
        return answer

    def altered(self) -> list[str]:
        """What of the kit was changed where the subject runs (`host.PRESENT`); nothing where it does not run any more."""
        if self._process is None:
            return []
        try:
            answer = self._ask({"do": "altered"}, self._start_limit, "the kit's own question")
        except SubjectDied:
            return []
        return [readable(str(name)) for name in answer.get("names", ["the host"])]

    def close(self) -> None:
        """End the subject's process, and those that it has started."""
        if self._connection:
            self._connection.close()
        if self._process:
            _end_all(self._process)
            self._process.communicate()
        self._process = self._connection = None

    def _send(self, message: Mapping[str, Any]) -> int:
        """Send a message; returns of how many bytes it is, with its large arrays."""
        if self._process is None:
            try:
                self._start()
            except AdapterError as error:
                raise SubjectDied("crashed", f"it could not be started again: {error}") from error
        assert self._connection is not None
        data = encode(message, self._asked)
        try:
            self._connection.send_bytes(data)
        except BlockingIOError:
            self._die("hung", "the subject's process does not read what it is asked")
        except OSError:
            self._die("crashed", "the subject's process was gone")
        return len(data) + (self._asked.used if self._asked else 0)

    def _ask(self, message: Mapping[str, Any], limit: float, what: Any) -> dict[str, Any]:
        """The answer to a message. Each has a number: a process that answers twice would else answer the next one too."""
        self._asked_so_far += 1
        self._written_before = os.fstat(self._output.fileno()).st_size
        size = self._send({**message, "number": self._asked_so_far})
        answer = self._receive(limit + size / BYTES_A_SECOND, what)
        if not isinstance(answer, dict) or answer.pop("number", None) != self._asked_so_far:
            self._refuse(f"the subject's process answered something else than {what}")
        return answer

    def _receive(self, limit: float, what: Any) -> Any:
        """The answer. what: of what an error tells; a call is long to tell, and few calls end so."""
        assert self._connection is not None
        try:
            if not self._answers_within(limit):
                longer = f" ({LONGER})" if isinstance(what, Call) else ""
                self._die("hung", f"no answer within {limit:.3g} s to {what}{longer}")
            data = self._connection.recv_bytes(LARGEST)
        except BlockingIOError:
            self._die("hung", f"no more than a part of an answer to {what}")
        except (EOFError, OSError):
            self._die("crashed", f"the subject's process died in {what}")
        try:
            return decode(data, self._answered)
        except Exception as error:
            self._refuse(f"the subject's process answered with what is no message ({error}) to {what}")

    def _answers_within(self, limit: float) -> bool:
        """Whether an answer is there before the process had so many seconds to itself."""
        assert self._answers is not None
        assert self._delays is not None
        self._delays.look()
        left, most = limit, MOST * limit
        while not self._answers.poll(1000 * (pause := min(left, PAUSE))):
            most -= pause
            left = min(left - pause + self._delays.lost(), most)
            if left < LEAST * limit:
                return False
        return True

    def _start(self) -> None:
        """Launch the process, have it load the subject, and take what the subject tells of itself."""
        self._launch()
        spec = self._hello["spec"]
        assert self._connection is not None
        try:
            self._connection.send_bytes(encode(self._hello))
            answer = self._receive(self._start_limit, f"loading {spec}")
        except (SubjectDied, OSError) as death:
            self.close()
            raise AdapterError(f"{spec}: {death}") from death
        if isinstance(answer, dict) and "error" in answer:
            self.close()
            raise AdapterError(readable(answer["error"]))
        try:
            described = Description.told(answer)
        except (TypeError, AttributeError) as error:
            self.close()
            raise AdapterError(f"{spec}: what it tells of itself is no description: {error}") from error
        if self._description is None:
            self._description = described
        elif differing := self._description.differing(described):
            self.close()
            raise AdapterError(f"{spec}: loaded again, it declares another {differing} than at first")

    def _launch(self) -> None:
        """Start the process, with a connection to it and memory that both share."""
        ours, theirs = socket.socketpair()
        # Half a message is waited for no longer than a call.
        pause = struct.pack("@ll", int(self._limit) + 1, 0)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, pause)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, pause)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        # Memory of its own for each process: what a subject leaves behind there is not read again.
        files = [create(), create()]
        self._asked, self._answered = map(Arena, files)
        passed = [theirs.fileno(), *files]
        # -P: a file of the user's folder may have the name of a module that the host itself needs.
        command = [sys.executable, "-P", "-m", "inferspec.conformance.bridge.host", *map(str, passed)]
        environment = {"MLX_DISABLE_COMPILE": "1", **os.environ}
        one_thread(environment)
        self._process = subprocess.Popen(
            command,
            pass_fds=passed,
            # Nothing is ever written there: it closes when we are gone.
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._output,
            env=environment,
            process_group=0,
        )
        theirs.close()
        for file in files:
            os.close(file)
        self._delays = Delays(self._process.pid)
        self._connection = Connection(ours.detach())
        # The connection's own poll() makes a selector each time, which takes longer than the answer to a small call.
        self._answers = select.poll()
        self._answers.register(self._connection.fileno(), select.POLLIN)

    def _refuse(self, message: str) -> Any:
        """End a process that lives and does not answer as `host` does."""
        self.close()
        raise SubjectDied("crashed", message + self._tail())

    def _die(self, state: str, message: str) -> Any:
        process, self._process = self._process, None
        if self._connection:
            self._connection.close()
            self._connection = None
        if process:
            if state == "hung":
                _end_all(process)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=5)
            _end_all(process)
            process.communicate()
            code = process.returncode
            if state == "crashed" and code is not None:
                message += f" ({_signal(-code)})" if code < 0 else f" (exit code {code})"
        raise SubjectDied(state, message + self._tail())

    def _tail(self) -> str:
        """The last line that the subject wrote since it was asked, if any."""
        self._output.seek(max(self._written_before, self._output.seek(0, os.SEEK_END) - 2000))
        lines = self._output.read().decode(errors="replace").strip().splitlines()
        return f"; it last wrote: {readable(lines[-1])}" if lines else ""


def _signal(number: int) -> str:
    """The name of a signal; most of those of real time have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _end_all(process: subprocess.Popen[bytes]) -> None:
    """End a subject's process and its group: workers that it has started would go on without it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()


def _is_observation(answer: Mapping[str, Any]) -> bool:
    """Whether an answer is what `host` makes of an observation: a subject may have written it itself."""
    if set(answer) != set(ANSWERED) or not all(isinstance(answer[name], kind) for name, kind in ANSWERED.items()):
        return False
    texts = [*answer["changed"], *answer["parts"], *answer["unwritten"]]
    return all(isinstance(t, str) for t in texts) and all(isinstance(x, np.ndarray) for x in answer["parts"].values())
