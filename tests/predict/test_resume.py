"""Each record's prediction exactly once, whatever ends a prediction, and nothing lost that was there before."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

import elasticdl
from elasticdl import storage
from elasticdl.artifacts.predictions import Predictions
from elasticdl.cli.main import main
from elasticdl.errors import (
    InvalidValue,
    NotFound,
    OutputExists,
    StorageFailure,
    UnknownName,
)
from processes import start_elasticdl

from .conftest import Trained
from .records import COUNT, read

ROUNDS = 3


def command(home: Path, trained: Path, *more: str) -> list[str]:
    return [
        *["predict", f"--trained_model={trained}", f"--data={home}/without/data.recordio"],
        *["--minibatch_size=1", "--num_minibatches_per_task=1", *more],
    ]


def wait_for_parts(process: subprocess.Popen[str], parts: Path, count: int) -> None:
    while len(list(parts.glob("part-*"))) < count:
        assert process.poll() is None, process.communicate()
        threading.Event().wait(0.002)


@pytest.mark.parametrize("output", ["out.csv", "out"])
def test_a_killed_prediction_that_is_resumed_equals_one_that_was_not(
    home: Path, trained: Trained, output: str
) -> None:
    """Killed at random points, several times; then compared byte for byte."""
    model = trained("examples.custom_model")
    rng = random.Random(output)
    parts = Path(output if output == "out" else f"{output}.parts")
    resume: list[str] = []
    for kill_at in sorted(rng.sample(range(5, COUNT - 20), ROUNDS)):
        process = start_elasticdl(*command(home, model, f"--output={output}"), *resume)
        try:
            wait_for_parts(process, parts, kill_at)
        finally:
            process.kill()
            process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert output == "out" or not Path(output).exists()
        resume = ["--resume"]
    assert main(["predict", "--resume", f"--output={output}"]) == 0
    assert main(command(home, model, f"--output=whole/{output}")) == 0
    written = [Path(output)] if output != "out" else sorted(parts.glob("part-*"))
    assert [p.read_bytes() for p in written] == [
        (Path("whole") / path).read_bytes() for path in written
    ]
    assert sum(len(read(path)) for path in written) == COUNT
    assert not list(Path().glob("*.parts"))
    assert not list(Path().rglob(".*.tmp"))


@pytest.mark.parametrize(
    ("number", "code", "fork"), [(signal.SIGINT, 130, True), (signal.SIGTERM, 143, False)]
)
def test_a_signal_keeps_the_parts_and_says_how_to_go_on(
    home: Path, trained: Trained, number: signal.Signals, code: int, fork: bool
) -> None:
    model = trained("examples.custom_model")
    process = start_elasticdl(*command(home, model, "--output=out.jsonl"), fork=fork)
    wait_for_parts(process, Path("out.jsonl.parts"), 3)
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, err
    assert "elasticdl predict --resume --output=out.jsonl" in out
    assert not Path("out.jsonl").exists()
    assert main(["predict", "--resume", "--output=out.jsonl"]) == 0
    assert len(read(Path("out.jsonl"))) == COUNT


@pytest.fixture
def predict(home: Path, trained: Trained) -> Any:
    def run(**options: Any) -> elasticdl.Result:
        defaults: dict[str, Any] = {
            "trained_model": trained("examples.custom_model"),
            "data": home / "without/data.recordio",
            "minibatch_size": 10,
            "num_minibatches_per_task": 1,
            "log_level": "ERROR",
        }
        return elasticdl.predict(**(defaults | options))

    return run


class Breaks:
    """A processor that fails at the third minibatch."""

    def __init__(self) -> None:
        self.calls = 0

    def process(self, predictions: Any, worker_id: int) -> None:
        self.calls += 1
        if self.calls == 3:
            raise LookupError("the table is gone")


@pytest.mark.parametrize(
    "output", ["out.parquet", "out.recordio", "out", "memory://broken/out.csv"]
)
def test_a_failure_keeps_the_parts_and_resuming_makes_the_rest(predict: Any, output: str) -> None:
    with pytest.raises(LookupError, match="the table is gone"):
        predict(output=output, prediction_outputs_processor=Breaks())
    with pytest.raises(OutputExists, match=r"holds a part of a prediction.*--resume.*--overwrite"):
        predict(output=output)
    rest = Breaks()
    rest.calls = 10
    result = predict(output=output, resume=True, prediction_outputs_processor=rest)
    assert (result.status, result.records, rest.calls) == ("completed", COUNT, 10 + 13)


def test_parts_of_another_prediction_are_refused(
    predict: Any, home: Path, trained: Trained
) -> None:
    with pytest.raises(LookupError):
        predict(output="out", prediction_outputs_processor=Breaks())
    others = {
        "its data was": {"data": home / "without/data.tfrecord"},
        "its model was": {"trained_model": trained("subclass.Net")},
        "its minibatch_size was 10 and is now 20": {"minibatch_size": 20},
        "its format was parquet and is now csv": {"output_format": "csv"},
    }
    for said, other in others.items():
        with pytest.raises(InvalidValue, match=rf"of another prediction: {said}"):
            predict(output="out", resume=True, **other)
    assert len(list(Path("out").glob("part-*"))) == 2


def test_a_complete_prediction_is_kept_unless_it_is_overwritten(predict: Any) -> None:
    for output in ("out", "out.csv"):
        predict(output=output)
        with pytest.raises(OutputExists, match="--overwrite"):
            predict(output=output)
        predict(output=output, overwrite=True)
        assert len(read(Path(output))) == COUNT
    assert predict(output="out", resume=True).status == "completed"
    with pytest.raises(OutputExists, match=r"out\.csv is complete"):
        predict(output="out.csv", resume=True)


def test_the_old_file_is_there_until_the_new_one_is_whole(predict: Any) -> None:
    Path("out.csv").write_text("precious")
    with pytest.raises(LookupError):
        predict(output="out.csv", overwrite=True, prediction_outputs_processor=Breaks())
    assert Path("out.csv").read_text() == "precious"
    predict(output="out.csv", resume=True)
    assert len(read(Path("out.csv"))) == COUNT


class _Fails:
    """A format whose files cannot be put together, at first."""

    name, suffix, is_broken = "bytes", ".bytes", True

    def join(self, parts: Iterable[IO[bytes]], file: IO[bytes]) -> None:
        for part in parts:
            file.write(part.read())
        if self.is_broken:
            raise OSError(5, "Input/output error")


@pytest.mark.parametrize("place", ["here/out.bytes", "memory://join/out.bytes"])
def test_what_fails_as_the_file_is_made_loses_neither_the_parts_nor_the_old_file(
    place: str,
) -> None:
    final, format_ = storage.place(place), _Fails()
    final.parent.mkdir(parents=True, exist_ok=True)
    final.write_bytes(b"old")
    made = Predictions(final, format_, is_file=True)
    with made.held({"model": "a"}, {}, resume=False):
        for number in (0, 1):
            with made.part(number) as file:
                file.write(b"%d" % number)
        with pytest.raises(StorageFailure, match="Input/output error"):
            made.complete(2)
    assert final.read_bytes() == b"old"
    format_.is_broken = False
    with made.held({"model": "a"}, {}, resume=True):
        assert made.done() == {0, 1}
        made.complete(2)
    assert final.read_bytes() == b"01"
    assert [path.name for path in storage.children(final.parent)] == ["out.bytes"]


def test_parts_that_were_about_to_be_removed_are_in_nobodys_way(predict: Any) -> None:
    for options in ({}, {"overwrite": True}):
        Path("out.csv.parts").mkdir()
        Path("out.csv.parts/part-00099.csv").write_text("prediction\n1\n")
        predict(output="out.csv", **options)
        assert len(read(Path("out.csv"))) == COUNT


def test_other_peoples_files_are_left_alone(predict: Any) -> None:
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("precious")
    for options in ({}, {"overwrite": True}):
        with pytest.raises(OutputExists, match=r"notes\.txt"):
            predict(output="mine", **options)
    assert os.listdir("mine") == ["notes.txt"]


def test_a_file_is_not_taken_for_a_directory_nor_a_directory_for_a_file(predict: Any) -> None:
    Path("plain").write_text("precious")
    with pytest.raises(OutputExists, match="plain is a file"):
        predict(output="plain", overwrite=True)
    assert Path("plain").read_text() == "precious"


def test_what_a_process_left_that_was_killed_as_it_began_is_in_nobodys_way(predict: Any) -> None:
    Path("out").mkdir()
    Path("out/.lock").touch()
    Path("out/..prediction.json.tmp").touch()
    predict(output="out")
    assert len(read(Path("out"))) == COUNT


def test_a_smaller_prediction_leaves_no_part_of_the_larger_one(predict: Any, home: Path) -> None:
    predict(output="out", num_minibatches_per_task=1)
    predict(output="out", num_minibatches_per_task=5, overwrite=True)
    assert len(list(Path("out").glob("part-*"))) == 3
    assert len(read(Path("out"))) == COUNT


def test_two_predictions_do_not_write_to_one_place(predict: Any) -> None:
    class Second:
        def process(self, predictions: Any, worker_id: int) -> None:
            predict(output="out", resume=True)

    with pytest.raises(OutputExists, match="Another run is writing to"):
        predict(output="out", prediction_outputs_processor=Second())


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"output": "out.xlsx"}, UnknownName, r"Unknown suffix '\.xlsx'.* give out\.xlsx/"),
        ({"output": "out.csv.gz"}, UnknownName, r"Unknown suffix '\.gz'"),
        ({"output": "out.cvs"}, UnknownName, r"Did you mean '\.csv'\?"),
        (
            {"output": "out.csv", "output_format": "jsonl"},
            InvalidValue,
            "is a csv file by its name",
        ),
        ({"output": "out", "output_format": "xml"}, InvalidValue, "Invalid output_format 'xml'"),
        ({"output": "out", "resume": True}, NotFound, "no prediction to resume in out"),
        ({"resume": True}, InvalidValue, "--output"),
        ({"output": "o", "resume": True, "overwrite": True}, InvalidValue, "contradict"),
        ({"trained_model": "nowhere"}, NotFound, "There is no trained model in nowhere"),
        ({"trained_model": None}, InvalidValue, "No trained model was given"),
        ({"data": None}, InvalidValue, "No data was given"),
    ],
)
def test_what_is_asked_wrongly_is_said_and_nothing_written(
    predict: Any, options: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        predict(**options)
    assert not [path for path in Path().iterdir() if not path.name.startswith(".")]


def test_the_command_line_asks_where_predictions_should_go(
    home: Path, trained: Trained, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(command(home, trained("examples.custom_model"))) == 2
    assert "nowhere to go. Give --output=FILE.parquet" in capsys.readouterr().err


def test_a_state_that_was_altered_is_said(predict: Any) -> None:
    predict(output="out")
    state = Path("out/.prediction.json")
    state.write_text(json.dumps(json.loads(state.read_text()) | {"version": 9}))
    with pytest.raises(InvalidValue, match="version 9"):
        predict(output="out", resume=True)
    state.write_text("{")
    with pytest.raises(ValueError, match="start anew with --overwrite"):
        predict(output="out", resume=True)


@pytest.fixture
def small_disk(make_disk: Callable[[str], Path]) -> Path:
    return make_disk("60k")


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".recordio", ".tfrecord", ""])
def test_a_full_disk_is_said_and_whole_parts_stay(
    predict: Any, small_disk: Path, suffix: str
) -> None:
    with pytest.raises(StorageFailure, match=r"No space left on device.*Free some space"):
        predict(output=small_disk / f"out{suffix}", minibatch_size=1)
    left = [p for p in small_disk.rglob("*part-*") if p.is_file() and p.suffix != ".json"]
    assert left
    assert not [path for path in left if path.name.startswith(".")]


def test_a_place_without_permission_is_said(predict: Any, tmp_path: Path) -> None:
    with pytest.raises(StorageFailure, match="/proc/out"):
        predict(output="/proc/out")


def test_truncated_data_is_named_and_what_was_predicted_stays(
    predict: Any, home: Path, trained: Trained
) -> None:
    content = bytearray((home / "without/data.recordio").read_bytes())
    Path("a_whole.recordio").write_bytes(content)
    content[-10] ^= 0xFF
    Path("broken.recordio").write_bytes(content)
    with pytest.raises(ValueError, match=r"broken\.recordio.*chunk"):
        predict(data="*.recordio", output="out.csv")
    assert list(Path("out.csv.parts").glob("part-*"))
    assert not Path("out.csv").exists()
    Path("cut.recordio").write_bytes(content[:-5])
    with pytest.raises(ValueError, match=r"cut\.recordio.*the file ends"):
        predict(data="cut.recordio", output="other.csv")
    assert not list(Path().glob("other*"))


def test_records_that_are_filtered_out_are_told(
    predict: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    import tensorflow as tf

    def dataset_fn(dataset: Any, mode: Any) -> Any:
        description = {"x": tf.io.FixedLenFeature([3], tf.float32)}
        parsed = dataset.map(lambda record: tf.io.parse_single_example(record, description)["x"])
        return parsed.filter(lambda x: x[0] > 0)

    found = predict(dataset_fn=dataset_fn, log_level="INFO").predictions
    assert 0 < len(found) < COUNT
    assert np.isfinite(found).all()
    assert f"{COUNT} records made {len(found)} predictions" in capsys.readouterr().err
