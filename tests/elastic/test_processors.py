"""Processors of a machine, divided among the workers of a job."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import processes
from elasticdl.job.config import JobConfig
from elasticdl.runtime.elastic.processors import Places, num_cpus, processors
from elasticdl.runtime.elastic.worker import Assignment, prepare_process

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="the system places processes by itself"
)


def test_workers_have_processors_of_their_own_when_they_take_all() -> None:
    places = Places([0, 1, 4, 5], threads=2, workers=2)
    assert [places.take(0), places.take(1)] == [(0, 1), (4, 5)]


@pytest.mark.parametrize(
    ("threads", "workers"),
    [(1, 2), (1, 5), (3, 1), (4, 2)],
    ids=["some are left", "too few", "one is left", "too many threads"],
)
def test_workers_share_when_processors_do_not_come_out_even(threads: int, workers: int) -> None:
    places = Places([0, 1, 2, 3], threads, workers)
    assert [places.take(worker) for worker in range(workers)] == [()] * workers


def test_workers_elsewhere_share() -> None:
    assert Places([], threads=1, workers=2).take(0) == ()


def test_a_replacement_has_the_place_of_the_one_that_was_lost() -> None:
    places = Places([0, 1], threads=1, workers=2)
    places.take(0), places.take(1)
    places.give_back(0)
    places.give_back(0)  # told twice: expelled, then ended
    assert places.take(2) == (0,)
    assert places.take(3) == (), "there is no third processor"
    places.give_back(3)
    places.give_back(1)
    assert places.take(4) == (1,)


def test_a_process_counts_the_processors_that_it_may_use() -> None:
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(allowed)})
        assert processors() == [min(allowed)]
        assert num_cpus() == 1
    finally:
        os.sched_setaffinity(0, allowed)


def test_a_worker_stays_on_its_processors_with_all_threads_that_it_starts(tmp_path: Path) -> None:
    mine = min(os.sched_getaffinity(0))
    assignment = Assignment(
        config=JobConfig(command="train"),
        directory=str(tmp_path / "none"),
        is_temporary=True,
        cwd="",
        threads=1,
        host=None,
        zoo=None,
        processors=(mine,),
    )

    def start() -> None:
        prepare_process("worker-0", assignment)
        with ThreadPoolExecutor(1) as pool:
            allowed.append(pool.submit(os.sched_getaffinity, 0).result())

    allowed: list[set[int]] = []
    thread = threading.Thread(target=start)  # a thread has its own, so the tests keep theirs
    thread.start()
    thread.join()
    assert allowed == [{mine}]


@pytest.mark.parametrize(("own", "spins"), [((), True), ((0,), False), ((0, 1), True)])
def test_threads_of_one_processor_sleep_when_they_have_nothing_to_do(
    own: tuple[int, ...], spins: bool
) -> None:
    said = processes.run_python(
        "-c",
        f"""
from elasticdl.quiet import load_tensorflow
from elasticdl.runtime.elastic.worker import divide_threads

load_tensorflow(lambda: divide_threads({max(1, len(own))}, {own}))
import tensorflow as tf
from tensorflow.python.eager import context

print(tf.config.threading.get_intra_op_parallelism_threads())
print(context.context().config.experimental.disable_thread_spinning)
""",
    )
    assert said.stdout.split() == [str(max(1, len(own))), str(not spins)], said.stderr
