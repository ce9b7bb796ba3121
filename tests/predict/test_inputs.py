"""What a prediction reads stays as it is, and its parts fit together only when it stayed so."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import elasticdl
from elasticdl import storage
from elasticdl.artifacts.predictions import Predictions
from elasticdl.cli.main import main
from elasticdl.data.writers.formats import FORMATS
from elasticdl.errors import CorruptData, InvalidValue, OutputExists

from .conftest import Trained
from .records import COUNT, read


class Stops:
    """A processor that fails after some minibatches."""

    def __init__(self, calls: int) -> None:
        self.calls = calls

    def process(self, predictions: Any, worker_id: int) -> None:
        self.calls -= 1
        if self.calls < 0:
            raise LookupError("stopped")


@pytest.fixture
def predict(home: Path, trained: Trained) -> Any:
    shutil.copy(home / "without/data.csv", "in.csv")

    def run(**options: Any) -> elasticdl.Result:
        defaults: dict[str, Any] = {
            "trained_model": trained("rows.custom_model", "csv"),
            "data": "in.csv",
            "minibatch_size": 10,
            "num_minibatches_per_task": 1,
            "log_level": "WARNING",
        }
        return elasticdl.predict(**(defaults | options))

    return run


def stopped(predict: Any, calls: int = 5, **options: Any) -> None:
    with pytest.raises(LookupError, match="stopped"):
        predict(prediction_outputs_processor=Stops(calls), **options)


@pytest.mark.parametrize("address", ["", "memory://altered/"])
def test_data_that_was_altered_is_not_mixed_with_what_it_was(predict: Any, address: str) -> None:
    content = Path("in.csv").read_bytes()
    data = f"{address}in.csv"
    storage.place(data).write_bytes(content)
    stopped(predict, data=data, output="out.csv")
    storage.place(data).write_bytes(content.replace(b"1", b"2"))
    with pytest.raises(InvalidValue, match=r"its data's content was 1 file, .* and is now 1 file"):
        predict(data=data, output="out.csv", resume=True)


@pytest.mark.parametrize("output", ["out", "out.csv", "memory://parts/out.csv"])
def test_a_part_that_was_damaged_is_made_again(
    predict: Any, output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stopped(predict, output=output, output_format="csv")
    parts = storage.place(output if output == "out" else f"{output}.parts")
    part = parts / "part-00001.csv"
    part.write_bytes(part.read_bytes()[:-9])
    (parts / "part-00002.csv").unlink()
    (parts / ".part-00003.json").write_bytes(b"{")
    predict(output=output, output_format="csv", resume=True)
    told = capsys.readouterr().err
    assert "part-00001.csv was altered: it has" in told
    assert "part-00003.csv was altered: it is not known what was written there" in told
    predict(output="whole.csv")
    whole = read(Path("whole.csv"))
    if "://" in output:
        Path("fetched.csv").write_bytes(storage.place(output).read_bytes())
        output = "fetched.csv"
    assert read(Path(output)) == whole
    assert len(whole) == COUNT


def test_a_part_of_the_same_size_with_other_bytes_is_made_again(predict: Any) -> None:
    predict(output="out", output_format="csv")
    part = Path("out/part-00004.csv")
    right = part.read_bytes()
    part.write_bytes(right[:-3] + b"99\n")
    predict(output="out", output_format="csv", resume=True)
    assert part.read_bytes() == right


def test_a_part_that_is_cut_before_the_end_is_not_put_into_the_file() -> None:
    made = Predictions(storage.place("out.csv"), FORMATS["csv"], is_file=True)
    with made.held({}, {}, resume=False):
        with made.part(0) as file:
            file.write(b"prediction\n1\n")
        Path("out.csv.parts/part-00000.csv").write_bytes(b"prediction\n")
        with pytest.raises(CorruptData, match=r"part-00000\.csv was altered.*--resume"):
            made.complete(1)
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("data", "output"),
    [
        ("in.csv", "./in.csv"),
        ("*.csv", "in.csv"),
        ("other.csv,in.csv", "link/in.csv"),
        ("link.csv", "in.csv"),
    ],
)
def test_the_data_is_not_replaced_by_its_predictions(predict: Any, data: str, output: str) -> None:
    content = Path("in.csv").read_bytes()
    shutil.copy("in.csv", "other.csv")
    Path("link").symlink_to(Path.cwd())
    Path("link.csv").symlink_to("in.csv")
    for given in (data, data.split(",")):
        with pytest.raises(InvalidValue, match="would take the place of the data"):
            predict(data=given, output=output, overwrite=True)
    assert Path("in.csv").read_bytes() == content
    assert not list(Path().glob("*.parts"))


def test_predictions_that_are_read_are_not_replaced(predict: Any) -> None:
    shutil.copy("in.csv", "part-00000.csv")
    predict(output="memory://again/out/", output_format="csv")
    for directory, url in (("out/", "out"), ("memory://again/out/", "memory://again/out")):
        if directory == "out/":
            predict(output=directory, output_format="csv")
        with pytest.raises(InvalidValue, match="would take the place of the data"):
            predict(data=f"{url}/part-00000.csv", output=directory, overwrite=True)


def test_an_output_inside_of_the_trained_model_is_refused(predict: Any, trained: Trained) -> None:
    run = trained("rows.custom_model", "csv")
    with pytest.raises(InvalidValue, match=r"out\.csv is inside of the trained model"):
        predict(output=run / "model/out.csv")
    assert not list((run / "model").glob("out*"))


def test_a_prediction_goes_on_from_another_directory(
    predict: Any, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkdir("some")
    shutil.copy("in.csv", "some/a,b.csv")
    shutil.copytree(trained("rows.custom_model", "csv"), "model")
    stopped(predict, data="in.csv,some/a,b.csv", trained_model="model", output="out.csv")
    os.mkdir("elsewhere")
    monkeypatch.chdir("elsewhere")
    assert main(["predict", "--resume", "--output=../out.csv"]) == 0
    assert len(read(Path("../out.csv"))) == 2 * COUNT


def test_other_files_in_the_output_are_named(predict: Any) -> None:
    os.mkdir("mine")
    Path("mine/a1.csv").touch()
    with pytest.raises(
        OutputExists, match=r"mine holds other files \(a1\.csv\)\. Give a directory"
    ):
        predict(output="mine")
