"""What goes wrong between a command and its terminal is a line and an exit code, and never a traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

COMMAND = [sys.executable, "-m", "inferspec.tools.cli"]


def interruptible() -> None:
    """What a shell runs in the background ignores interrupts, and hands that on."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def ended(*arguments, **streams) -> tuple[int, str]:
    """Exit code and standard error of a command."""
    done = subprocess.run([*COMMAND, *arguments], stderr=subprocess.PIPE, text=True, timeout=600, **streams)
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="only Linux has a device that is full")
@pytest.mark.parametrize("buffered", [True, False])
@pytest.mark.parametrize("command", ["requirements", "explain rope", "verify nowhere.json", "--help", "golden --help"])
def test_an_output_that_is_full_is_told(command, buffered):
    environment = {**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"}
    with open("/dev/full", "w") as full:
        code, said = ended(*command.split(), stdout=full, env=environment)
    assert (code, said) == (2, "inferspec: standard output cannot be written: No space left on device\n")


def test_an_output_that_is_closed_is_told():
    code, said = ended("explain", "rope", preexec_fn=lambda: os.close(1))
    assert (code, said) == (2, "inferspec: standard output is closed: there is nowhere to print to\n")


@pytest.mark.parametrize("command", ["requirements", "explain rope"])
def test_a_reader_that_has_enough_is_no_trouble(command):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        assert ended(*command.split(), stdout=writing) == (1, "")
    finally:
        os.close(writing)


@pytest.mark.parametrize("command", ["requirements", "--help"])
def test_what_an_output_cannot_encode_is_a_question_mark_and_told(command):
    done = subprocess.run(
        [*COMMAND, command], env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, text=True
    )
    assert "?" in done.stdout
    assert done.returncode == 2
    assert "standard output is ascii, which has no '" in done.stderr
    assert "Traceback" not in done.stderr


BEGUN = """
import sys
from inferspec.tools import cli

def told(arguments, run=cli._run):
    print("begun", flush=True)
    return run(arguments)

cli._run = told
sys.exit(cli.main())
"""
"""A command that tells when it begins: how long Python takes to start, only an idle machine knows."""


@pytest.mark.parametrize(
    "command", ["faults --only rope -n 2", "faults --only rope -n 1", "simulate", "bench ops --shapes tiny"]
)
def test_an_interrupt_is_no_traceback_of_the_command_or_its_workers(command, tmp_path):
    # Both get it, as from a terminal.
    running = subprocess.Popen(
        [sys.executable, "-c", BEGUN, *command.split()],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=interruptible,
    )
    assert running.stdout.readline() == "begun\n"
    # Wherever it is by then.
    time.sleep(2)
    os.killpg(running.pid, signal.SIGINT)
    try:
        said, _ = running.communicate(timeout=600)
    finally:
        running.kill()
    assert running.returncode == 130
    assert said.splitlines()[-1] == "inferspec: interrupted"
    assert "Traceback" not in said


UNRAISABLE = """
import gc, os, signal, sys, time
from inferspec.tools.terminal import guarded

def interrupted(phase, info):
    gc.callbacks.clear()
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.1)

def command():
    gc.callbacks.append(interrupted)
    gc.collect()
    time.sleep(20)
    return 0

sys.exit(guarded(command))
"""


def test_an_interrupt_that_comes_where_nothing_can_be_raised_is_not_lost():
    done = subprocess.run(
        [sys.executable, "-c", UNRAISABLE], capture_output=True, text=True, timeout=600, preexec_fn=interruptible
    )
    assert (done.returncode, done.stderr) == (130, "inferspec: interrupted\n")


FAILING_THREAD = """
import os, signal, sys, threading, time
from inferspec.tools.terminal import guarded

def command():
    if {interrupted}:
        # A thread that stumbles once the command is interrupted, as that of a pool does.
        threading.Thread(target=lambda: (time.sleep(0.3), 1 / 0)).start()
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(10)
    failing = threading.Thread(target=lambda: 1 / 0)
    failing.start()
    failing.join()
    return 0

def waiting():
    try:
        return command()
    finally:
        for thread in set(threading.enumerate()) - {{threading.current_thread()}}:
            thread.join()

sys.exit(guarded(waiting))
"""


@pytest.mark.parametrize(("interrupted", "code"), [(True, 130), (False, 0)])
def test_the_error_of_a_thread_is_told_unless_the_command_was_interrupted(interrupted, code):
    program = FAILING_THREAD.format(interrupted=interrupted)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, preexec_fn=interruptible
    )
    assert done.returncode == code
    assert ("ZeroDivisionError" in done.stderr) is not interrupted
