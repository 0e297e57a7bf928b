"""Worker processes: they can do what their parent has done, and do not outlive it."""

import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

from inferspec.tools.conftest import TOGETHER, Groups
from inferspec.tools.processes import pool

SECONDS = 600

# A worker that starts from nothing knows no function of a test.
SUMMED = "__import__('mlx.core', fromlist=['core']).ones(5).sum().item()"

PARENT = """
import os, time
from inferspec.tools.processes import pool
if __name__ == "__main__":
    workers = pool(1)
    print(workers.submit(os.getpid).result(), flush=True)
    time.sleep(600)
"""


def test_a_worker_evaluates_though_its_parent_has():
    assert eval(SUMMED) == 5
    workers = pool(1)
    try:
        assert workers.submit(eval, SUMMED).result(timeout=SECONDS) == 5
    finally:
        # One that waits for ever would be waited for.
        for child in multiprocessing.active_children():
            child.kill()
        workers.shutdown(wait=False)


def test_a_worker_ends_with_a_parent_that_is_killed(tmp_path):
    (tmp_path / "parent.py").write_text(PARENT, encoding="utf-8")
    parent = subprocess.Popen([sys.executable, "parent.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    parent.kill()
    try:
        # The worker has the same standard output: it is closed when both have ended.
        parent.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        os.kill(worker, signal.SIGKILL)
        raise


def test_tests_that_share_what_takes_long_to_make_are_of_one_group():
    def group(test):
        return Groups._split_scope(None, test)

    assert group("tools/test_inputs.py::test_a[1]") == group("tools/test_engine_inputs.py::test_b")
    assert group("tools/test_docs.py::test_a[1]") != group("tools/test_docs.py::test_a[2]")
    assert {name for name in TOGETHER if not Path(__file__).with_name(name).is_file()} == set()
