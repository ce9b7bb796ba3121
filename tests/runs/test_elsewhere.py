"""Run directories, data and reports at addresses: all that a local run writes is there too."""

from __future__ import annotations

from pathlib import Path

import pytest

import elasticdl
from elasticdl.experiments.stages import Experiment
from elasticdl.storage import place
from runs.project_files import TEST, write_project, write_run

pytestmark = pytest.mark.usefixtures("tensorflow")

READS_ADDRESSES = """
import io

import numpy as np
from abstractions import DataLoaderBase
from dataset import Generators


class Remote(Generators):
    def __init__(self, config, data_dir):
        DataLoaderBase.__init__(self, config, data_dir)
        content = self.data_dir.joinpath("points.npz").read_bytes()
        self.points = dict(np.load(io.BytesIO(content)))
"""


def test_runs_data_and_reports_in_a_bucket(tmp_path: Path, bucket: str) -> None:
    root = write_project(tmp_path / "p", remote=READS_ADDRESSES)
    write_run(root, data_loader_class="remote.Remote", epochs=2)
    data = place(f"{bucket}/data/points.npz")
    data.write_bytes((root / "data" / "points.npz").read_bytes())

    def experiment(*overrides: str) -> Experiment:
        return Experiment(
            root,
            "one",
            data_dir=f"{bucket}/data",
            runs_dir=f"{bucket}/runs",
            eval_reports_dir=f"{bucket}/reports",
            mlflow=False,
            log_level="ERROR",
            overrides=overrides,
        )

    experiment().train()
    result = experiment("epochs=3").run()
    assert result.steps == 21 and len(result.history["loss"]) == 3
    run = place(f"{bucket}/runs/one")
    run.fs.invalidate_cache()
    assert {"checkpoints", "events.jsonl", "exported", "logs", "report.html"} <= {
        path.name for path in run.iterdir()
    }
    report = place(f"{bucket}/reports/points/one/eval_report.csv").read_text()
    assert len(report.splitlines()) == TEST + 1
    predicted = elasticdl.predict(trained_model=f"{bucket}/runs/one/exported", log_level="ERROR")
    assert predicted.records == TEST
    assert not list((root / "runs" / "one").glob("events*"))


@pytest.mark.slow
def test_workers_train_with_runs_and_data_in_a_bucket(tmp_path: Path, bucket: str) -> None:
    pytest.importorskip("ray")
    root = write_project(tmp_path / "p", remote=READS_ADDRESSES)
    write_run(root, data_loader_class="remote.Remote", epochs=2)
    data = place(f"{bucket}/data/points.npz")
    data.write_bytes((root / "data" / "points.npz").read_bytes())
    result = Experiment(
        root,
        "one",
        data_dir=f"{bucket}/data",
        runs_dir=f"{bucket}/runs",
        mlflow=False,
        log_level="ERROR",
        num_workers=2,
    ).run()
    assert result.status == "completed" and result.steps == 14
    assert set(result.metrics) == {"loss", "accuracy", "ce", "hit"}
