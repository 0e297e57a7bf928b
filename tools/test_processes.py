"""Worker processes: they can do what their parent has done."""

import multiprocessing

from inferspec.tools.processes import pool

SECONDS = 60

# A worker that starts from nothing knows no function of a test.
SUMMED = "__import__('mlx.core', fromlist=['core']).ones(5).sum().item()"


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
