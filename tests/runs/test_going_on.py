"""What was cut off goes on: the same epoch and step, the same numbers, bit for bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from elasticdl.errors import InvalidValue, NotFound
from elasticdl.experiments.stages import Experiment
from elasticdl.tracking.events import read_events
from runs.project_files import VARIANTS, write_project, write_run

EPOCHS = 40
SCRIPT = Path(__file__).with_name("kill_and_go_on.py")


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_killed_run_ends_with_the_same_bits(tmp_path: Path, variant: str) -> None:
    root = write_project(tmp_path / "project", models=WAITING_MODEL)
    for name in ("whole", "killed"):
        write_run(root, name, variant, epochs=EPOCHS)
    experiment = Experiment(root, "whole", mlflow=False, log_level="WARNING")
    experiment.run()
    command = ["run", "--run_name=killed", f"--project_root={root}", "--no_mlflow"]
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "5", "3", str(root / "runs" / "killed"), *command],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["code"] == 0, done.stderr
    assert outcome["kills"] == 3
    _assert_same(root / "runs" / "whole", root / "runs" / "killed")


def _assert_same(one: Path, other: Path) -> None:
    first, second = (load_file(run / "exported" / "params.safetensors") for run in (one, other))
    assert first.keys() == second.keys()
    for name in first:
        assert first[name].tobytes() == second[name].tobytes(), name
    logged = [
        {e["epoch"]: {k: v for k, v in e.items() if k != "time"} for e in _epochs(run)}
        for run in (one, other)
    ]
    assert logged[0] == logged[1]
    assert _epochs(other)[-1]["step"] == _epochs(one)[-1]["step"]


def _epochs(run: Path) -> list[dict]:
    return [e for e in read_events(run / "events.jsonl") if e["event"] == "epoch"]


WAITING_MODEL = """
import keras
from abstractions import ModelBuilderBase


class Builder(ModelBuilderBase):
    def get_compiled_model(self):
        model = keras.Sequential([
            keras.Input((6,)),
            keras.layers.Dense(8, "relu"),
            keras.layers.Dropout(0.3),
            keras.layers.BatchNormalization(),
            keras.layers.Dense(3, "softmax"),
        ])
        model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
        return model

    def get_callbacks(self):
        return [keras.callbacks.EarlyStopping(patience=30, restore_best_weights=True)]
"""


def test_an_epoch_more_goes_on_from_the_last_one(project: Path) -> None:
    write_run(project)
    first = Experiment(project, "one", mlflow=False, log_level="WARNING")
    assert first.train().steps == 21
    longer = Experiment(
        project, "one", mlflow=False, log_level="WARNING", overrides=["epochs=4"]
    ).train()
    assert longer.steps == 28 and len(longer.history["loss"]) == 4


def test_training_is_skipped_when_there_is_an_export(project: Path) -> None:
    run = write_run(project)
    Experiment(project, "one", mlflow=False, log_level="WARNING").run()
    before = (run / "exported" / "params.safetensors").stat().st_mtime_ns
    (run / "report.html").unlink()
    result = Experiment(project, "one", mlflow=False, log_level="WARNING").run()
    assert result.steps == 0 and (run / "report.html").exists()
    assert (run / "exported" / "params.safetensors").stat().st_mtime_ns == before
    assert result.test_metrics["ce"] > 0


def test_overwrite_begins_anew(project: Path) -> None:
    run = write_run(project)
    Experiment(project, "one", mlflow=False, log_level="WARNING").run()
    again = Experiment(project, "one", mlflow=False, log_level="WARNING", overwrite=True).run()
    assert again.steps == 21 and (run / "config.yaml").exists()
    assert len(_epochs(run)) == 3


def test_each_stage_alone(project: Path) -> None:
    run = write_run(project)

    def experiment() -> Experiment:
        return Experiment(project, "one", mlflow=False, log_level="WARNING")

    with pytest.raises(NotFound, match="train first"):
        experiment().export()
    with pytest.raises(NotFound, match="nothing to evaluate"):
        experiment().evaluate()
    experiment().train()
    assert not (run / "exported").exists()
    exported = experiment().export()
    assert exported.model_path is not None and (run / "exported" / "savedmodel").is_dir()
    assert experiment().evaluate().test_metrics["loss"] > 0
    _assert_equal_to_whole(project, run)


def _assert_equal_to_whole(project: Path, run: Path) -> None:
    """Stages one by one make what a whole run makes."""
    whole = write_run(project, "whole")
    Experiment(project, "whole", mlflow=False, log_level="WARNING").run()
    first, second = (load_file(r / "exported" / "params.safetensors") for r in (whole, run))
    assert all(first[name].tobytes() == second[name].tobytes() for name in first)


def test_another_seed_cannot_go_on(project: Path) -> None:
    write_run(project)
    Experiment(project, "one", mlflow=False, log_level="WARNING").train()
    other = Experiment(project, "one", mlflow=False, log_level="WARNING", overrides=["seed=7"])
    with pytest.raises(InvalidValue, match="seed"):
        other.train()
