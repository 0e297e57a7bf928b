"""What can go wrong between a command and its terminal: an interrupt, and an output that is closed, full or of few letters."""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType

INTERRUPTED = 130
"""Exit code of a command that was interrupted: 128 and the number of SIGINT, as shells have it."""

UNSHOWN = 2
"""Exit code of a command whose output could not be shown as it is."""

_SPELT = "inferspec.spelt"

_AGAIN = 0.01
"""Seconds after which an interrupt that could not be raised where it came comes again."""


def guarded(command: Callable[[], int]) -> int:
    """Run a command; what goes wrong with the terminal is a line on standard error and an exit code, and no traceback."""
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process
    if sys.stdout is None:
        return _said("standard output is closed: there is nowhere to print to", UNSHOWN)
    with _Interrupts() as interrupts, _spelt() as unspelt:
        try:
            try:
                code = _left(command)
            finally:
                sys.stdout.flush()
        except OSError as error:
            if not (broken := _broken()):
                raise
            _discard()
            # Whoever read it has enough of it, and knows.
            quiet = isinstance(broken, BrokenPipeError)
            return 1 if quiet else _said(f"standard output cannot be written: {broken.strerror or error}", UNSHOWN)
        except BaseException:
            # Not KeyboardInterrupt alone: some libraries make another error of it.
            if not interrupts.seen:
                raise
            return _said("interrupted", INTERRUPTED)
    if interrupts.seen:
        return INTERRUPTED
    if unspelt:
        text = f"standard output is {sys.stdout.encoding}, which has no {unspelt[0]!a}: ? stands for it"
        return _said(f"{text}; PYTHONIOENCODING=utf-8 shows all", code or UNSHOWN)
    return code


def _left(command: Callable[[], int]) -> int:
    """A command's exit code, also where it leaves without an error, as --help does."""
    try:
        return command()
    except SystemExit as left:
        if left.code:
            raise
        return 0


class _Interrupts:
    """Whether the command was interrupted, whatever has become of the exception."""

    def __init__(self) -> None:
        self.seen = False
        self._before: object = None
        self._hook, self._ignored = threading.excepthook, sys.unraisablehook
        self._again: threading.Timer | None = None

    def __enter__(self) -> _Interrupts:
        threading.excepthook, sys.unraisablehook = self._thread_failed, self._unraisable
        # An interrupt that is ignored (of a job in the background), or somebody else's, stays so.
        usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if usual and threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        threading.excepthook, sys.unraisablehook = self._hook, self._ignored
        if self._again is not None:
            self._again.cancel()
        if self._before is not None:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        __tracebackhide__ = True  # pytest tells where it was interrupted
        self.seen = True
        raise KeyboardInterrupt

    def _thread_failed(self, failed: threading.ExceptHookArgs) -> None:
        # That of a pool stumbles over workers which the interrupt ended, and over work that was called off.
        if not self.seen:
            self._hook(failed)

    def _unraisable(self, ignored: sys.UnraisableHookArgs) -> None:
        # A finalizer or a callback of the garbage collector raises nothing: the command would go on as if nobody had asked.
        if not (self.seen and ignored.exc_type is KeyboardInterrupt):
            self._ignored(ignored)
            return
        main = threading.main_thread().ident
        self._again = threading.Timer(_AGAIN, signal.pthread_kill, (main, signal.SIGINT))
        self._again.start()


@contextlib.contextmanager
def interrupts_later() -> Iterator[None]:
    """An interrupt waits until this is over; processes that start meanwhile wait with it until they say otherwise."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _spelt() -> Iterator[list[str]]:
    """What standard output cannot encode becomes a question mark in it, and is told."""
    unspelt: list[str] = []

    def replaced(error: UnicodeError) -> tuple[str, int]:
        if not isinstance(error, UnicodeEncodeError):
            raise error
        unspelt.append(error.object[error.start])
        return "?" * (error.end - error.start), error.end

    stream, reconfigure = sys.stdout, getattr(sys.stdout, "reconfigure", None)
    if reconfigure is None:
        yield unspelt
        return
    before = stream.errors
    codecs.register_error(_SPELT, replaced)
    reconfigure(errors=_SPELT)
    try:
        yield unspelt
    finally:
        with contextlib.suppress(OSError):
            reconfigure(errors=before)


def _broken() -> OSError | None:
    """Why standard output takes nothing more, if that is so."""
    try:
        sys.stdout.write("\n")
        sys.stdout.flush()
    except OSError as error:
        return error
    return None


def _discard() -> None:
    """Python writes what is left when it ends, and would complain again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _said(text: str, code: int) -> int:
    print(f"inferspec: {text}", file=sys.stderr)
    return code
