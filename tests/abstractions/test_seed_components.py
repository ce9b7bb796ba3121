"""The classes of the document that describes this engine, as they are printed there, in both variants."""

from __future__ import annotations

import csv
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abstractions import ModelBuilderBase, Orchestrator, TFKerasTrainer
from abstractions.utils import ConfigStruct
from elasticdl.experiments.components import load_components
from elasticdl.experiments.config import load_config
from elasticdl.experiments.project import Project
from seeds import MISSING, config_of_notebook, notebook

CELLS = notebook()

pytestmark = [
    pytest.mark.skipif(not CELLS, reason=MISSING),
    pytest.mark.usefixtures("tensorflow"),
    # What Keras of today says of the document's model.
    pytest.mark.filterwarnings("ignore:Do not pass an `input_shape`"),
    pytest.mark.filterwarnings("ignore:.*received `from_logits=True`"),
]

HEADER = """\
import pathlib

import numpy as np
import pandas as pd
import skimage.io
import tensorflow as tf
import tensorflow.keras as tfk

from abstractions.utils import ConfigStruct

"""
VARIANTS = {"tf.data": "TF", "generators": ""}
TRAINING, HELD_OUT = 40, 20


def cells(*, classes: bool) -> Iterator[str]:
    """The cells that can be run, with digits of ours in the place of a download and a viewer."""
    for cell in CELLS:
        if cell.startswith("gen = self."):  # a part of a method, to be looked at
            continue
        if classes and "class " not in cell:
            continue
        cell = cell.replace("tfk.datasets.mnist.load_data()", "digits()").replace(
            "500", str(HELD_OUT)
        )
        yield cell.replace("from google.colab.patches import cv2_imshow\n", "")


PRELUDE = f"""\
import numpy as np


def digits():
    random = np.random.default_rng(0)
    sizes = {TRAINING}, {2 * HELD_OUT}
    return [(random.integers(0, 256, (n, 28, 28), np.uint8), np.arange(n) % 10) for n in sizes]


def cv2_imshow(image):
    assert image.shape[:2] == (28, 28)

"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images written by the document's own cell."""
    where = tmp_path_factory.mktemp("data")
    first = next(cells(classes=False))
    (where / "cell.py").write_text(PRELUDE + first.replace("'datasets'", repr(str(where))))
    runpy.run_path(str(where / "cell.py"))
    return where / "mnist"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The document's classes in the files that it names, and its config."""
    homes = {
        "DataLoader": "dataset",
        "Preproc": "preprocessing",
        "Model": "models",
        "Eval": "evaluation",
    }
    (tmp_path / "src").mkdir()
    for cell in cells(classes=True):
        home = next(file for base, file in homes.items() if f"({base}" in cell)
        with (tmp_path / "src" / f"{home}.py").open("a") as file:
            file.write(HEADER + cell + "\n\n")
    run = tmp_path / "runs" / "baseline"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text(config_of_notebook())
    return tmp_path


def of_variant(suffix: str) -> list[str]:
    return [
        f"data_loader_class=dataset.DataLoader{suffix}",
        f"preprocessor_class=preprocessing.Preprocessor{suffix}",
    ]


def test_every_cell_runs_in_its_order_without_a_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notebook.py").write_text(PRELUDE + "\n".join(cells(classes=False)))
    made = runpy.run_path(str(tmp_path / "notebook.py"))
    printed = capsys.readouterr().out
    assert printed.count("x batch shape: (8, 784)\ny batch shape: (8,)\nw batch shape: (8,)") == 2
    assert "data id: b'image_0.jpg'\n" in printed
    assert "data id: image_0.jpg\n" in printed
    assert made["model"].output_shape == (None, 10)
    assert (made["train_n"], made["n_iter_train"]) == (TRAINING, TRAINING // 8)
    functions = made["Evaluator"](None).get_eval_funcs()
    assert functions["sparse categorical ce"](3, np.full(10, 0.1)) == pytest.approx(np.log(10))


@pytest.mark.parametrize("suffix", VARIANTS.values(), ids=VARIANTS)
def test_the_components_are_loaded_by_the_documents_config(
    project: Path, data: Path, suffix: str
) -> None:
    opened = Project.open(project, "baseline")
    config = load_config(opened.config_file, of_variant(suffix))
    assert config.evaluator_class == "evaluation.Evaluator"
    loaded = load_components(opened, config, str(data))
    for part, count in ((loaded.training(), TRAINING), (loaded.validation(), HELD_OUT)):
        x, y, w = _first(part.batches)
        assert (x.shape, y.shape, w.shape) == ((8, 784), (8,), (8,))
        assert (part.num_points, part.num_batches) == (count, -(-count // 8))
    names = [f"image_{i}.jpg" for i in range(HELD_OUT)]
    assert loaded.validation_index(HELD_OUT) == names
    assert list(loaded.evaluation_functions() or ()) == ["sparse categorical ce"]


@pytest.mark.parametrize("suffix", VARIANTS.values(), ids=VARIANTS)
def test_an_experiment_goes_from_its_config_to_its_reports(
    project: Path, data: Path, suffix: str
) -> None:
    overrides = [*of_variant(suffix), "epochs=2", "model_builder.n_filters=16"]
    result = Orchestrator(
        "baseline", data_dir=data, project_root=project, mlflow=False, overrides=overrides
    ).run()
    assert (result.status, result.steps) == ("completed", 2 * TRAINING // 8)
    run = project / "runs" / "baseline"
    assert (run / "exported" / "savedmodel" / "saved_model.pb").is_file()
    names = [f"image_{i}.jpg" for i in range(HELD_OUT)]
    for report in (
        run / "validation_report.csv",
        project / "eval_reports" / "mnist" / "baseline" / "eval_report.csv",
    ):
        with report.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["data_id"] for row in rows] == names
        assert all(np.isfinite(float(row["sparse categorical ce"])) for row in rows)


def test_a_trainer_trains_and_exports_the_run_of_a_directory(project: Path, data: Path) -> None:
    run = project / "runs" / "baseline"
    options = {"mlflow": False, "overrides": ["epochs=1", "model_builder.n_filters=4"]}
    trainer = TFKerasTrainer(ConfigStruct(data_dir=str(data)), run, **options)
    assert trainer.train().steps == TRAINING // 8
    assert not trainer.check_for_exported()
    trainer.export()
    assert trainer.check_for_exported()
    assert trainer.train().steps == 0  # there is an export already
    loaded = _Builder().load(run / "exported")
    assert loaded.predict(np.zeros((3, 784)), verbose=0).shape == (3, 10)


class _Builder(ModelBuilderBase):
    def get_compiled_model(self) -> Any: ...


def _first(batches: Any) -> Any:
    return next(iter(batches))
