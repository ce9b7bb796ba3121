"""A prediction at a remote address that is stopped, altered and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fsspec
import pytest

import elasticdl
from elasticdl.errors import InvalidValue
from elasticdl.storage import place

from .test_remote import FLAGS, read, remote

__all__ = ["remote"]

OPTIONS: dict[str, Any] = {
    "minibatch_size": 10,
    "num_minibatches_per_task": 1,
    "log_level": "WARNING",
}


class Stops:
    """A processor that fails at the fifth minibatch."""

    calls = 0

    def process(self, predictions: Any, worker_id: int) -> None:
        self.calls += 1
        if self.calls == 5:
            raise LookupError("stopped")


def test_a_remote_prediction_is_checked_when_it_is_resumed(
    zoo: Path, remote: str, capsys: pytest.CaptureFixture[str]
) -> None:
    elasticdl.train(data=f"{remote}/train", output="run", **FLAGS)
    names = {"data": f"{remote}/train", "trained_model": "run"}
    elasticdl.predict(**names, **OPTIONS, output=f"{remote}/whole.csv")
    with pytest.raises(LookupError, match="stopped"):
        elasticdl.predict(
            **names, **OPTIONS, output=f"{remote}/out.csv", prediction_outputs_processor=Stops()
        )
    fs, path = fsspec.core.url_to_fs(f"{remote}/out.csv.parts")
    fs.pipe_file(f"{path}/part-00001.csv", b"prediction\n")
    assert elasticdl.predict(**OPTIONS, output=f"{remote}/out.csv", resume=True).status == (
        "completed"
    )
    assert "part-00001.csv was altered" in capsys.readouterr().err
    assert read(f"{remote}/out.csv") == read(f"{remote}/whole.csv")


def test_remote_data_is_neither_mixed_nor_replaced(zoo: Path, remote: str) -> None:
    elasticdl.train(data=f"{remote}/train", output="run", **FLAGS)
    names = {"data": f"{remote}/train/part-1.csv", "trained_model": "run"}
    before = read(names["data"])
    with pytest.raises(InvalidValue, match="would take the place of the data"):
        elasticdl.predict(**names, **OPTIONS, output=names["data"], overwrite=True)
    with pytest.raises(LookupError, match="stopped"):
        elasticdl.predict(
            **names, **OPTIONS, output="out.csv", prediction_outputs_processor=Stops()
        )
    assert read(names["data"]) == before
    place(names["data"]).write_bytes(before.replace(b"1", b"2"))
    with pytest.raises(InvalidValue, match="its data's content was"):
        elasticdl.predict(**names, **OPTIONS, output="out.csv", resume=True)
