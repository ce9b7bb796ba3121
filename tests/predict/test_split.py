"""A prediction that several processes work on is the one that a single process makes."""

from __future__ import annotations

import json
import pickle
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest

import elasticdl
from elasticdl.data.ledger import Lease
from elasticdl.errors import ElasticDLError, OutputExists
from elasticdl.job.config import JobConfig
from elasticdl.runtime.predict_end import Outcome, finish, made_result
from elasticdl.runtime.predict_work import Stopped
from elasticdl.runtime.prediction import (
    Prediction,
    Request,
    accept,
    holding,
    opened_prediction,
)
from processes import python

from .conftest import Trained
from .records import COUNT, FEATURES, read

OPTIONS = {"minibatch_size": 10, "num_minibatches_per_task": 2, "log_level": "ERROR"}
WORKER = """
import pickle, sys
from elasticdl.quiet import load_tensorflow
from elasticdl.runtime.prediction import opened_prediction

load_tensorflow()
with open(sys.argv[1], "rb") as file:
    request = pickle.load(file)

def told(rows):
    print("rows", rows, flush=True)
    sys.stdin.readline()  # goes on when it is told to, if ever

with opened_prediction(request, {}) as prediction:
    leases = list(iter(prediction.ledger().lease, None))
    print("open", len(leases), flush=True)
    for word in sys.stdin:
        on_rows = {"on_rows": told} if word.startswith("slowly ") else {}
        number = int(word.split()[-1])
        print("done", prediction.run_lease(leases[number], **on_rows), flush=True)
"""


def travelled(value: Any) -> Any:
    """To another process."""
    return pickle.loads(pickle.dumps(value))  # noqa: S301


def asked(trained: Path, home: Path, **options: Any) -> JobConfig:
    data = f"{home}/without/data.recordio"
    given = {"trained_model": str(trained), "prediction_data": data, **OPTIONS, **options}
    return JobConfig.parse("predict", given)


@pytest.fixture
def config(home: Path, trained: Trained) -> JobConfig:
    return asked(trained("examples.custom_model"), home)


@pytest.fixture
def opened() -> Iterator[Any]:
    """Opens what workers open; closed at the end."""
    with ExitStack() as stack:

        def open_one(request: Request, objects: Any = None, **options: Any) -> Prediction:
            one = opened_prediction(travelled(request), objects or {}, **options)
            return stack.enter_context(one)

        yield open_one


def leases_of(prediction: Prediction, done: Sequence[int] = ()) -> list[Lease]:
    leases = list(iter(prediction.ledger().lease, None))
    return [lease for lease in leases if lease.number not in done]


def completed(leases: Sequence[Lease], left_out: int = 0) -> Outcome:
    total = sum(lease.num_records for lease in leases)
    return Outcome("completed", total, total, len(leases), left_out)


def bytes_of(output: str) -> list[bytes]:
    place = Path(output)
    return [p.read_bytes() for p in ([place] if place.is_file() else sorted(place.glob("part-*")))]


@pytest.mark.parametrize("output", ["out.parquet", "out.csv", "out.recordio", "out"])
def test_two_workers_make_what_one_process_makes(
    config: JobConfig, opened: Any, output: str
) -> None:
    request = accept(replace(config, output=output), {})
    with holding(request) as held:
        first, second = opened(request), opened(request, worker_id=1)
        begun = first.begin()
        assert not begun.done
        leases = leases_of(first)
        assert len(leases) > 4
        made = sum(second.run_lease(lease) for lease in leases[1::2])
        made += sum(first.run_lease(lease, None) for lease in reversed(leases[::2]))
        assert made == COUNT
        assert finish(held, completed(leases)) == []
    assert not list(Path().rglob(".*.tmp"))
    assert not Path(f"{output}.parts").exists()
    elasticdl.api.run(replace(config, output=f"whole/{output}"))
    assert bytes_of(output) == bytes_of(f"whole/{output}")
    result = made_result(config, {}, completed(leases), output=held, seconds=1.0)
    assert (result.records, result.num_predictions) == (COUNT, COUNT)
    assert str(result.output) == output


def test_what_was_made_before_is_not_made_again(config: JobConfig, opened: Any) -> None:
    request = accept(replace(config, output="out", output_format="csv"), {})
    with holding(request):
        first = opened(request)
        first.begin()
        first.run_lease(leases_of(first)[1])
    with pytest.raises(OutputExists, match="holds a part of a prediction"):
        accept(replace(config, output="out"), {})
    again = accept(JobConfig.parse("predict", {"output": "out", "resume": True}), {})
    with holding(again) as held:
        second = opened(again)
        begun = second.begin()
        assert begun.done == {1}
        for lease in leases_of(second, list(begun.done)):
            second.run_lease(lease)
        finish(held, completed(leases_of(second)))
    assert sum(len(read(path)) for path in Path("out").glob("part-*.csv")) == COUNT


def test_one_process_holds_the_output_while_others_write(config: JobConfig, opened: Any) -> None:
    request = accept(replace(config, output="out"), {})
    with holding(request):
        with pytest.raises(OutputExists, match="Another run is writing"), holding(request):
            pass
        worker = opened(request)
        worker.begin()
        assert worker.run_lease(leases_of(worker)[0])
    with holding(request):
        pass


def test_a_part_that_is_there_whole_stays(config: JobConfig, opened: Any) -> None:
    """Who comes late, after it was taken for dead, changes nothing; also when all is done."""
    request = accept(replace(config, output="out.csv"), {})
    with holding(request) as held:
        late, other = opened(request), opened(request)
        other.begin()
        leases = leases_of(other)
        part = Path("out.csv.parts/part-00000.csv")

        def overtake(rows: int) -> None:
            if not part.exists():
                other.run_lease(leases[0])

        late.run_lease(leases[0], on_rows=overtake)
        before = part.stat()
        late.run_lease(leases[0])
        assert part.stat().st_ino == before.st_ino
        for lease in leases[1:]:
            other.run_lease(lease)
        finish(held, completed(leases))
        with pytest.raises(ElasticDLError):
            late.run_lease(leases[0])
    assert len(read(Path("out.csv"))) == COUNT
    assert not list(Path().glob("*.parts"))


def test_a_part_that_was_altered_is_made_again_by_any_worker(
    config: JobConfig, opened: Any
) -> None:
    request = accept(replace(config, output="out.csv"), {})
    with holding(request) as held:
        first, second = opened(request), opened(request)
        first.begin()
        leases = leases_of(first)
        for lease in leases:
            first.run_lease(lease)
        part = Path("out.csv.parts/part-00002.csv")
        whole = part.read_bytes()
        part.write_bytes(whole.replace(b"0", b"1"))
        second.run_lease(leases[2])
        assert part.read_bytes() == whole
        finish(held, completed(leases))
    assert len(read(Path("out.csv"))) == COUNT


def test_who_is_stopped_leaves_no_part(config: JobConfig, opened: Any) -> None:
    request = accept(replace(config, output="out", num_minibatches_per_task=9), {})
    with holding(request):
        worker, rows = opened(request), list[int]()
        worker.begin()
        with pytest.raises(Stopped):
            worker.run_lease(
                leases_of(worker)[0], on_rows=rows.append, is_stopped=lambda: bool(rows)
            )
    assert rows
    assert not list(Path("out").glob("*part-*"))


class Worker:
    """A process of its own, which does what it is told."""

    def __init__(self, request: Path) -> None:
        streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = python("-c", WORKER, str(request), text=True, **streams)

    def tell(self, words: str) -> None:
        self.process.stdin.write(f"{words}\n")
        self.process.stdin.flush()

    def hear(self) -> list[str]:
        return str(self.process.stdout.readline()).split()


def test_a_worker_that_is_killed_in_a_lease_loses_nothing(config: JobConfig, opened: Any) -> None:
    request = accept(replace(config, output="out"), {})
    with holding(request) as held, Path("request").open("wb") as file:
        pickle.dump(request, file)
        file.flush()
        worker, leases = Worker(Path("request")), []
        with worker.process:
            try:
                assert worker.hear()[0] == "open"
                other = opened(request)
                other.begin()
                leases = leases_of(other)
                worker.tell("0")
                assert worker.hear() == ["done", str(leases[0].num_records)]
                worker.tell("slowly 1")
                assert worker.hear()[0] == "rows"
            finally:
                worker.process.kill()
        assert worker.process.returncode == -signal.SIGKILL
        assert list(Path("out").glob(".part-00001.*.tmp"))
        for lease in leases[1:]:
            other.run_lease(lease)
        finish(held, completed(leases))
    assert not list(Path("out").glob(".*.tmp"))
    assert json.loads(Path("out/.prediction.json").read_text())["completed"]
    elasticdl.api.run(replace(config, output="whole"))
    assert bytes_of("out") == bytes_of("whole")


def network() -> keras.Model:
    x = keras.Input((3,))
    return keras.Model(x, {"a": keras.layers.Dense(2)(x), "b": keras.layers.Dense(1)(x)})


def test_predictions_in_memory_are_collected_from_several_workers(opened: Any) -> None:
    model = network()
    objects = {"model": model, "prediction_data": FEATURES}
    request = accept(JobConfig.parse("predict", OPTIONS), objects)
    workers = [opened(request, objects, collect=True) for _ in range(2)]
    collector = travelled(workers[0].collector())
    leases = leases_of(workers[0])
    for lease in reversed(leases):
        worker = workers[lease.number % 2]
        worker.run_lease(lease)
        collector.add(lease.number, travelled(worker.take(lease.number)))
    found, expected = collector.predictions(), model.predict(FEATURES, verbose=0)
    assert set(found) == {"a", "b"}
    for name in found:
        np.testing.assert_allclose(found[name], expected[name], rtol=1e-5, atol=1e-6)
    collector.add(0, workers[0].take(0) if workers[0].run_lease(leases[0]) else [])
    assert len(collector.predictions()["a"]) == COUNT


class Notes:
    """A processor that says by whom it was called."""

    def __init__(self) -> None:
        self.workers: set[int] = set()

    def process(self, predictions: Any, worker_id: int) -> None:
        self.workers.add(worker_id)


def test_a_processor_is_told_its_workers_number(config: JobConfig, opened: Any) -> None:
    notes = Notes()
    objects = {"prediction_outputs_processor": notes}
    worker = opened(accept(config, objects), objects, worker_id=3)
    assert worker.begin().done == frozenset()
    worker.run_lease(leases_of(worker)[0])
    assert notes.workers == {3}
    assert worker.take(0) == []


def test_records_that_are_filtered_out_are_told_at_the_end() -> None:
    (told,) = finish(None, Outcome("completed", 100, 100, 4, left_out=30))
    assert "100 records made 70 predictions" in told
