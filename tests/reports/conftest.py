"""One run with all that a report can have, written once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from upath import UPath

from elasticdl.reports import ConfusionCounter, PointTable, Reports, Section, write_reports

EVIL = '<script>alert("x")</script> & $\\frac$'


@dataclass(frozen=True)
class Written:
    root: Path
    reports: Reports
    sections: list[Section]

    @property
    def page(self) -> Path:
        return Path(str(self.reports.page))


def section(name: str, count: int = 120) -> Section:
    rng = np.random.default_rng(count)
    labels = rng.integers(0, 3, count)
    scores = rng.random((count, 3)) + np.eye(3)[labels] * 0.7
    scores /= scores.sum(axis=1, keepdims=True)
    table = PointTable(
        {
            "sparse categorical ce": lambda y_true, y_pred: -np.log(y_pred[y_true]),
            "accuracy": lambda y_true, y_pred: y_pred.argmax() == y_true,
            EVIL: lambda y_true, y_pred: float("nan") if y_true else y_pred.max(),
        }
    )
    counter = ConfusionCounter(["cat", EVIL, "a class with a name that goes on and on"])
    table.add([f"image_{i}.jpg" if i else EVIL for i in range(count)], labels, scores)
    counter.add(labels, scores)
    return Section(name, table, counter.confusion(), {"loss": 0.25, "accuracy": 0.75})


def events() -> list[dict[str, Any]]:
    epochs = [
        {"time": 110.0 + i, "event": "epoch", "epoch": i, "step": 8 * i, "loss": 2 / (i + 1)}
        | {"val_loss": 2.2 / (i + 1), EVIL: None if i == 0 else 0.1 * i}
        for i in range(4)
    ]
    return [
        {"time": 100.0, "event": "run_started", "command": "train", "model": "sequential"},
        *epochs,
        {
            "time": 120.0,
            "event": "exported",
            "path": "x",
            "metric": "val_loss",
            "value": 0.55,
            "epoch": 3,
        },
    ]


@pytest.fixture(scope="package")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    root = tmp_path_factory.mktemp("a project #1")
    sections = [section("validation"), section("test", 80)]
    config = {"epochs": 4, "project_name": EVIL, "model_builder": {"n_filters": 512, "opts": {}}}
    reports = write_reports(
        UPath(root / "runs" / "base line"),
        UPath(root / "eval_reports"),
        project="digits",
        run="base line",
        config=config,
        events=events(),
        sections=sections,
    )
    return Written(root, reports, sections)
