"""From a config to a report, in both variants: what is written, and that the numbers are Keras' own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
import yaml

import elasticdl
from elasticdl.experiments.stages import Experiment
from elasticdl.tracking.events import read_events
from runs.project_files import TEST, TRAINING, VALIDATION, VARIANTS, write_project, write_run

Rows = Callable[[Path], list[dict[str, str]]]


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_point_is_in_its_report_once(
    finished: dict[str, Path], rows: Rows, variant: str
) -> None:
    run = finished[variant]
    report = rows(run.parent.parent / "eval_reports" / "points" / variant / "eval_report.csv")
    assert [row["data_id"] for row in report] == [f"t{i}.png" for i in range(TEST)]
    report = rows(run / "validation_report.csv")
    assert [row["data_id"] for row in report] == [f"v{i}" for i in range(VALIDATION)]
    assert list(report[0]) == ["data_id", "ce", "hit"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_report_holds_what_keras_predicts(
    finished: dict[str, Path], rows: Rows, variant: str
) -> None:
    run = finished[variant]
    data = np.load(run.parent.parent / "data" / "points.npz")
    model = keras.models.load_model(run / "exported" / "model.keras")
    predicted = model.predict(data["test_x"] / 2, verbose=0)
    ce = -np.log(predicted[np.arange(TEST), data["test_y"]])
    report = rows(run.parent.parent / "eval_reports" / "points" / variant / "eval_report.csv")
    np.testing.assert_allclose([float(row["ce"]) for row in report], ce, rtol=1e-5)
    served = tf.saved_model.load(str(run / "exported" / "savedmodel")).signatures["serving_default"]
    (outputs,) = served(tf.constant(data["test_x"] / 2)).values()
    np.testing.assert_allclose(outputs, predicted, rtol=1e-5)


@pytest.mark.parametrize("variant", VARIANTS)
def test_validation_numbers_equal_evaluate(finished: dict[str, Path], variant: str) -> None:
    run = finished[variant]
    data = np.load(run.parent.parent / "data" / "points.npz")
    model = keras.models.load_model(run / "exported" / "model.keras")
    wanted = model.evaluate(
        data["validation_x"] / 2, data["validation_y"], verbose=0, return_dict=True
    )
    events = read_events(run / "events.jsonl")
    (report,) = [e for e in events if e["event"] == "report" and e["name"] == "validation"]
    assert report["metrics"]["loss"] == pytest.approx(wanted["loss"], rel=1e-5)
    assert report["metrics"]["accuracy"] == pytest.approx(wanted["accuracy"])
    best = min(e["val_loss"] for e in events if e["event"] == "epoch")
    assert report["metrics"]["loss"] == pytest.approx(best, rel=1e-5)


def test_training_equals_fit(tmp_path: Path, finished: dict[str, Path]) -> None:
    """The same seed, the same datasets: `fit` logs the same, but for dropout, which this model has not."""
    root = write_project(tmp_path / "project", models=PLAIN_MODEL)
    write_run(root, variant="datasets")
    result = Experiment(root, "one", mlflow=False, log_level="WARNING").train()

    from elasticdl.experiments.parts import Parts

    components = Experiment(root, "one", mlflow=False)._load()
    parts = Parts(components, warn=print)
    model = parts.model
    keras.utils.set_random_seed(components.config.seed)
    training, validation = components.training(), components.validation()
    history = model.fit(
        training.batches,
        steps_per_epoch=training.num_batches,
        epochs=3,
        validation_data=validation.batches,
        validation_steps=validation.num_batches,
        shuffle=False,
        verbose=0,
    ).history
    assert set(result.history) == set(history)
    for name, values in history.items():
        np.testing.assert_allclose(result.history[name], values, rtol=1e-4, err_msg=name)


PLAIN_MODEL = """
import keras
from abstractions import ModelBuilderBase


class Builder(ModelBuilderBase):
    def get_compiled_model(self):
        model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(3, "softmax")])
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model
"""


def test_events_account_for_every_batch(finished: dict[str, Path]) -> None:
    events = read_events(finished["datasets"] / "events.jsonl")
    audits = [e for e in events if e["event"] == "epoch_audit"]
    assert [a["examples"] for a in audits] == [TRAINING] * 3
    assert events[-1]["event"] == "run_ended" and events[-1]["status"] == "completed"
    (exported,) = [e for e in events if e["event"] == "exported"]
    assert exported["metric"] == "val_loss"


def test_export_is_the_best_epoch_and_carries_its_config(finished: dict[str, Path]) -> None:
    run = finished["generators"]
    config = yaml.safe_load((run / "exported" / "config.yaml").read_text())
    assert config["model_builder"] == {"units": 8} and config["epochs"] == 3
    events = read_events(run / "events.jsonl")
    values = {e["epoch"]: e["val_loss"] for e in events if e["event"] == "epoch"}
    (exported,) = [e for e in events if e["event"] == "exported"]
    assert exported["epoch"] == min(values, key=lambda epoch: values[epoch])


@pytest.mark.parametrize("variant", VARIANTS)
def test_predict_from_the_export_alone(
    finished: dict[str, Path], rows: Rows, tmp_path: Path, variant: str
) -> None:
    run = finished[variant]
    result = elasticdl.predict(
        trained_model=str(run / "exported"), output=str(tmp_path / "p.csv"), log_level="WARNING"
    )
    assert result.records == TEST
    predicted = rows(tmp_path / "p.csv")
    assert [row["data_id"] for row in predicted] == [f"t{i}.png" for i in range(TEST)]
    model = keras.models.load_model(run / "exported" / "model.keras")
    data = np.load(run.parent.parent / "data" / "points.npz")
    wanted = model.predict(data["test_x"] / 2, verbose=0)
    found = [[float(row[f"prediction_{i}"]) for i in range(3)] for row in predicted]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_features_go_to_the_export_as_to_any_model(finished: dict[str, Path]) -> None:
    features = np.ones((5, 6), "float32")
    result = elasticdl.predict(
        trained_model=str(finished["datasets"] / "exported"), data=features, log_level="WARNING"
    )
    assert result.predictions.shape == (5, 3)


def test_curves_are_in_logs(finished: dict[str, Path]) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    names = {}
    for part in ("train", "validation"):
        curves = EventAccumulator(str(finished["datasets"] / "logs" / part))
        curves.Reload()
        names[part] = set(curves.Tags()["tensors"])
    assert {"loss", "accuracy"} <= names["train"] and {"loss", "accuracy"} <= names["validation"]


def test_report_page_is_self_contained(finished: dict[str, Path]) -> None:
    page = (finished["datasets"] / "report.html").read_text()
    assert "data:image/png;base64," in page and "http://" not in page and "https://" not in page
