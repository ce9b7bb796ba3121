"""What is raised in one process is shown in another as if it had been raised there, and losses are told apart."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

import pytest

from elasticdl.errors import CorruptData, RunError
from elasticdl.runtime.elastic.failures import raised, tell
from elasticdl.runtime.elastic.losses import Losses, why_lost

ray = pytest.importorskip("ray")


class Unpicklable(ValueError):
    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def fails() -> None:
    try:
        {}["first"]
    except KeyError as error:
        raise Unpicklable(1, 2) from error


def caught() -> BaseException:
    try:
        fails()
    except Unpicklable as error:
        error.add_note("a note")
        return error
    raise AssertionError


def test_an_error_looks_the_same_on_the_other_side() -> None:
    error = caught()
    again = raised(pickle.loads(pickle.dumps(tell("worker-1", error))))  # noqa: S301
    assert traceback.format_exception(again) == traceback.format_exception(error)


def test_files_of_a_copy_are_called_by_their_own_names() -> None:
    error = CorruptData(f"{__file__} is torn")
    failure = tell("worker-1", error, {str(Path(__file__).parent): "/the/zoo"})
    again = raised(failure)
    assert isinstance(again, CorruptData)
    assert str(again) == f"/the/zoo/{Path(__file__).name} is torn"
    shown = "".join(
        traceback.format_exception(raised(tell("w", caught(), {str(Path(__file__).parent): "/z"})))
    )
    assert f'File "/z/{Path(__file__).name}", line' in shown
    assert __file__ not in shown


def test_memory_that_ran_out_is_called_so() -> None:
    again = raised(tell("worker-1", MemoryError()))
    assert isinstance(again, RunError)
    assert str(again).startswith("Out of memory in worker-1: MemoryError.")


DIED = "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit detail: "
EOF = (
    "Worker unexpectedly exits with a connection error code 2. End of file. Some common causes include: (1) the "
    "process was killed by the OOM killer due to high memory usage, (2) ray stop --force was called, or (3) the worker "
    "crashed unexpectedly due to SIGSEGV or another unexpected error, to prevent node deaths by resource contention."
)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (DIED + EOF, "its process was killed or crashed"),
        ("The actor died because its node has died. Node Id: 12ab", "its node was lost"),
        (DIED + "Worker exits with an exit code 3.", "its process ended with exit code 3"),
        (
            DIED + "Worker exits with an exit code 1. The process receives a SIGTERM.",
            "its process was ended by SIGTERM",
        ),
        ("Killed due to the node running low on memory.", "out of memory: Ray ended it since"),
    ],
)
def test_what_ray_says_of_a_lost_worker_is_told_apart(said: str, told: str) -> None:
    assert why_lost(ray.exceptions.RayActorError(error_msg=said)).startswith(told)


def test_a_crash_is_called_by_its_signal_if_the_log_has_it(tmp_path: Path) -> None:
    losses = Losses(tmp_path, 1, "a task was done", keeps_logs=False)
    (tmp_path / "worker-4.log").write_text("hello\n*** SIGSEGV received at time=1 on cpu 0 ***\n")
    error = ray.exceptions.RayActorError(error_msg=DIED + EOF)
    assert losses.why(4, error) == "its process crashed (SIGSEGV)"


def test_workers_that_are_lost_again_and_again_end_the_job_with_their_last_words(
    tmp_path: Path,
) -> None:
    losses = Losses(tmp_path, 1, "a task was done", keeps_logs=False)
    (tmp_path / "worker-9.log").write_text("the last words\n")
    for index in range(3):
        losses.lost(index, "gone")
    losses.went_on(10)
    for index in range(3):
        losses.lost(index, "gone")
    with pytest.raises(RunError, match="4 workers in a row were lost before a task was done") as e:
        losses.lost(9, "gone")
    assert "the last words" in e.value.__notes__[0]
