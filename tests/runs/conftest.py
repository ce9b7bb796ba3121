from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from elasticdl.experiments.stages import Experiment
from runs.project_files import VARIANTS, write_project, write_run

pytestmark = pytest.mark.usefixtures("tensorflow")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path / "project")


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory, tensorflow: None) -> dict[str, Path]:
    """A run of each variant from its config to its report, by its directory; not to be changed."""
    root = write_project(tmp_path_factory.mktemp("finished") / "project")
    for variant in VARIANTS:
        write_run(root, variant, variant)
        Experiment(root, variant, mlflow=False, log_level="WARNING").run()
    return {variant: root / "runs" / variant for variant in VARIANTS}


@pytest.fixture(scope="session")
def rows() -> Callable[[Path], list[dict[str, str]]]:
    def read(path: Path) -> list[dict[str, str]]:
        with path.open(newline="") as file:
            return list(csv.DictReader(file))

    return read
