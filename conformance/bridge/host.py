"""The process that hosts a subject: loads its adapter and makes the calls that a suite sends.

The subject lives here and not in pytest, so that a crash, a hang, a poisoned random state or a patched library
costs the requirement that was being tested and nothing else, and so that a subject never meets the oracle.
Started as ``python -m inferspec.conformance.bridge.host FD ASKED ANSWERED``: one end of a socket pair, and the memory for large
arrays of calls and of answers (`arena`).
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import fields
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from inferspec.conformance.bridge.adapter import Adapter, load
from inferspec.conformance.bridge.allocator import keep_freed_memory
from inferspec.conformance.bridge.arena import Arena
from inferspec.conformance.bridge.executor import DeviceLost, Executor
from inferspec.conformance.bridge.metal import kernel_path, prepare
from inferspec.conformance.bridge.signatures import AdapterError
from inferspec.conformance.bridge.threads import let_woken_threads_wait
from inferspec.conformance.bridge.wire import decode, encode
from inferspec.conformance.calls import Observation
from inferspec.conformance.trust.integrity import altered
from inferspec.conformance.trust.isolation import closed, without_stand_ins

PARTS = tuple(part.name for part in fields(Observation))
"""Of an observation; dataclasses' own way to a dict would copy every array."""

PRESENT = ("inferspec.conformance",)
"""What of the kit makes the calls here, and sees what they change; of the oracles nothing is left to look at."""


def serve(connection: Connection, asked: Arena, answered: Arena) -> None:
    """Answer messages until the suite hangs up. asked, answered: where large arrays of either are."""
    # What a subject prints is its own affair; on our standard output it would end up in the middle of a report.
    os.dup2(2, 1)
    keep_freed_memory()
    let_woken_threads_wait()
    # The subject is found from the folder of the run, after the host has all that it needs itself.
    sys.path.insert(0, os.getcwd())
    hello = decode(connection.recv_bytes())
    try:
        prepare(hello["metal"])
        closed()
        adapter = load(hello["spec"], hello["replacements"], hello["arrays"], hello["layout"], hello["components"])
        without_stand_ins(adapter.targets)
    except AdapterError as error:
        connection.send_bytes(encode({"error": str(error)}))
        return
    connection.send_bytes(encode({**describe(adapter), "layout": hello["layout"]}))
    executor = Executor(adapter.targets)
    # What is loaded stays: the collector need not walk through it again and again.
    gc.freeze()
    while True:
        try:
            message = decode(connection.recv_bytes(), asked)
        except EOFError:
            return
        if message["do"] == "call":
            connection.send_bytes(encode(_called(executor, message), answered))
        else:
            connection.send_bytes(encode({**_told(adapter, message), "number": message["number"]}))


def _told(adapter: Adapter, message: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a question of the kit's own."""
    if message["do"] == "probe":
        return probed(adapter)
    return shown(adapter, message["operation"]) if message["do"] == "shown" else {"names": altered(PRESENT)}


def _called(executor: Executor, message: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to the message of a call."""
    if message["fresh"]:
        executor.reset()
    asked = ("operation", "arguments", "views", "keep", "results", "watch", "elsewhere", "refilled")
    observation = executor.call(*(message[name] for name in asked))
    return {**{name: getattr(observation, name) for name in PARTS}, "number": message["number"]}


def describe(adapter: Adapter) -> dict[str, Any]:
    """What a suite needs to know of the subject."""
    return {
        "spec": adapter.spec,
        "name": adapter.name,
        "version": adapter.version,
        "origin": adapter.origin,
        "arrays": adapter.kind.name,
        "library": adapter.kind.version(),
        "offers": {
            name: {
                "narrowed": _plain(target.narrowed),
                "module": str(getattr(target.function, "__module__", "")),
                "plain": target.plain,
                "unasked": dict(target.unasked),
                "strange": {name: list(others) for name, others in target.strange.items()},
            }
            for name, target in adapter.targets.items()
        },
        "broken": adapter.broken,
        "absent": adapter.absent,
        "edition": adapter.edition,
        "envelope": {component: _plain(declared) for component, declared in adapter.envelope.items()},
        "precision": adapter.precision,
        "waivers": adapter.waivers,
        "device": adapter.kind.device(),
    }


def probed(adapter: Adapter) -> dict[str, Any]:
    """What shows when the subject has been used."""
    return {
        "matmul_error": matmul_error(adapter),
        "kernel_path": kernel_path(adapter.kind.name, adapter.kernel_path()),
        "declared": adapter.kernel_path(),
    }


def shown(adapter: Adapter, operation: str) -> dict[str, Any]:
    """What is left of the envelope of an operation by what it has made, and the methods that this lacks and needs."""
    target = adapter.targets[operation]
    return {"narrowed": _plain(target.narrowed), "lacking": target.lacking}


def _plain(envelope: Mapping[str, Any]) -> dict[str, Any]:
    return {key: left if isinstance(left, int) else list(left) for key, left in envelope.items()}


def matmul_error(adapter: Adapter) -> float:
    """The precision probe: the worst relative error of a float32 matrix product in the subject's own library."""
    import numpy as np

    from inferspec.spec.numerics import f64

    random = np.random.default_rng(0)
    x, y = (random.normal(size=(64, 64)).astype(np.float32) for _ in range(2))
    to = adapter.kind
    product = to.to_numpy(to.ready(to.from_numpy(x) @ to.from_numpy(y)))
    return float((np.abs(f64(product) - f64(x) @ f64(y)) / (np.abs(f64(x)) @ np.abs(f64(y)))).max())


def end_with_suite() -> None:
    """End this process, with those that it has started, when that of the suite is gone, which standard input tells: a call
    may run on for ever."""
    lifeline, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)

    def wait() -> None:
        # A subject that closes what is not its own ends the wait and no more.
        with contextlib.suppress(OSError):
            os.read(lifeline, 1)
            if os.getpgrp() == os.getpid():
                os.killpg(os.getpid(), signal.SIGKILL)
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def main(connection: str, asked: str, answered: str) -> NoReturn:
    """Serve, and end the process with all its threads: one of the subject's may run on for ever."""
    end_with_suite()
    code: object = 0
    try:
        serve(Connection(int(connection)), Arena(int(asked)), Arena(int(answered)))
    except SystemExit as left:
        code = left.code or 0
    except DeviceLost as lost:
        # The last line that it writes is what a failure tells.
        print(f"the call took the device with it: {lost}", file=sys.stderr)
        code = 1
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
