"""What was cut off goes on: the same epoch and step, the same numbers, bit for bit."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from safetensors.numpy import load_file

from elasticdl.errors import DataError, InvalidValue, NotFound
from elasticdl.experiments.stages import Experiment
from elasticdl.tracking.events import read_events
from processes import start_elasticdl
from runs.kill_and_go_on import kill_and_go_on
from runs.project_files import DATASET, VARIANTS, write_project, write_run

EPOCHS = 40


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_killed_run_ends_with_the_same_bits(tmp_path: Path, variant: str) -> None:
    root = write_project(tmp_path / "project", models=WAITING_MODEL)
    for name in ("whole", "killed"):
        write_run(root, name, variant, epochs=EPOCHS)
    experiment = Experiment(root, "whole", mlflow=False, log_level="WARNING")
    experiment.run()
    command = ["run", "--run_name=killed", f"--project_root={root}", "--no_mlflow"]
    outcome = kill_and_go_on(root / "runs" / "killed", *command, seed=5, kills=3)
    assert (outcome.code, outcome.kills) == (0, 3), outcome.said
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


@pytest.fixture(scope="module")
def trained_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose run `one` is trained, and no more; to be copied."""
    root = write_project(tmp_path_factory.mktemp("trained") / "project")
    write_run(root)
    assert Experiment(root, "one", mlflow=False, log_level="WARNING").train().steps == 21
    return root


@pytest.fixture(scope="module")
def done_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One whose run `one` is exported and evaluated too."""
    root = write_project(tmp_path_factory.mktemp("done") / "project")
    write_run(root)
    Experiment(root, "one", mlflow=False, log_level="WARNING").run()
    return root


@pytest.fixture
def trained(trained_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained_once, tmp_path / "project"))


@pytest.fixture
def done(done_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(done_once, tmp_path / "project"))


def test_an_epoch_more_goes_on_from_the_last_one(trained: Path) -> None:
    longer = Experiment(
        trained, "one", mlflow=False, log_level="WARNING", overrides=["epochs=4"]
    ).train()
    assert longer.steps == 28 and len(longer.history["loss"]) == 4


def test_training_is_skipped_when_there_is_an_export(done: Path) -> None:
    run = done / "runs" / "one"
    before = (run / "exported" / "params.safetensors").stat().st_mtime_ns
    (run / "report.html").unlink()
    result = Experiment(done, "one", mlflow=False, log_level="WARNING").run()
    assert result.steps == 0 and (run / "report.html").exists()
    assert (run / "exported" / "params.safetensors").stat().st_mtime_ns == before
    assert result.test_metrics["ce"] > 0


def test_overwrite_begins_anew(done: Path) -> None:
    run = done / "runs" / "one"
    again = Experiment(done, "one", mlflow=False, log_level="WARNING", overwrite=True).run()
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


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("seed=7", "began with the seed 101 and cannot go on with 7"),
        ("batch_size=16", "had 7 batches when it began and has 4 now"),
    ],
)
def test_what_would_be_another_training_cannot_go_on(
    trained: Path, override: str, message: str
) -> None:
    run = trained / "runs" / "one"
    before = sorted(path.name for path in (run / "checkpoints").iterdir())
    other = Experiment(trained, "one", mlflow=False, log_level="WARNING", overrides=[override])
    with pytest.raises(InvalidValue, match=message) as caught:
        other.train()
    assert "--overwrite" in str(caught.value)
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == before


def test_another_model_cannot_go_on(trained: Path) -> None:
    other = Experiment(
        trained, "one", mlflow=False, log_level="WARNING", overrides=["model_builder.units=9"]
    )
    with pytest.raises(DataError, match="another model") as caught:
        other.train()
    assert "--overwrite" in caught.value.__notes__[-1]


def test_fewer_epochs_than_were_done_cut_nothing_off(trained: Path) -> None:
    run = trained / "runs" / "one"
    result = Experiment(
        trained, "one", mlflow=False, log_level="ERROR", overrides=["epochs=1"]
    ).run()
    assert result.steps == 21 and (run / "exported").is_dir()


def test_export_by_another_rule_chooses_among_what_was_kept(trained: Path) -> None:
    run = trained / "runs" / "one"
    for _ in range(2):
        Experiment(
            trained, "one", mlflow=False, log_level="ERROR", overrides=["export.mode=max"]
        ).export()
    values = {e["epoch"]: e["val_loss"] for e in _epochs(run)}
    events = read_events(run / "events.jsonl")
    exported = [e for e in events if e["event"] == "exported"][-1]
    kept = {int(path.name[5:]) // 7 - 1 for path in (run / "checkpoints").iterdir()}
    assert exported["epoch"] == max(kept, key=lambda epoch: values[epoch])
    assert exported["value"] == values[exported["epoch"]]
    assert any("another export metric" in e.get("message", "") for e in events)


def test_export_that_lacks_a_file_is_written_anew(done: Path) -> None:
    run = done / "runs" / "one"
    shutil.rmtree(run / "exported" / "savedmodel")
    result = Experiment(done, "one", mlflow=False, log_level="WARNING").run()
    assert result.status == "completed" and (run / "exported" / "savedmodel").is_dir()


@pytest.mark.parametrize("stage", ["export", "evaluate"])
def test_overwriting_what_a_stage_needs_is_refused(done: Path, stage: str) -> None:
    run = done / "runs" / "one"
    again = Experiment(done, "one", mlflow=False, log_level="WARNING", overwrite=True)
    with pytest.raises(InvalidValue, match="nothing to"):
        getattr(again, stage)()
    assert (run / "exported" / "model.keras").exists() and (run / "checkpoints").is_dir()


def test_what_to_type_to_go_on_has_all_that_was_given(project: Path) -> None:
    write_run(project)
    experiment = Experiment(
        project,
        "one",
        data_dir=project / "data",
        eval_reports_dir="reports",
        mlflow_tracking_uri="http://user:s3cret@127.0.0.1:9",
        overrides=["epochs=2", "project_name=two words"],
    )
    command = experiment._command()
    assert "--eval_reports_dir=reports" in command and "--set epochs=2" in command
    assert "--set 'project_name=two words'" in command and "s3cret" not in command


@pytest.mark.parametrize(("number", "fork"), [(signal.SIGINT, True), (signal.SIGTERM, False)])
def test_a_stuck_generator_does_not_keep_a_run_that_was_asked_to_stop(
    tmp_path: Path, number: signal.Signals, fork: bool
) -> None:
    root = write_project(tmp_path / "p", dataset=DATASET + STUCK)
    run = write_run(root, data_loader_class="dataset.Stuck", epochs=50)
    command = ["run", "--run_name=one", "--no_mlflow", f"--project_root={root}"]
    process = start_elasticdl(*command, stderr=subprocess.STDOUT, fork=fork)
    while not (root / "data" / "stuck").exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    try:
        said, _ = process.communicate(timeout=5)
    except subprocess.TimeoutExpired:  # the step itself waits for data: a second one stops at once
        process.send_signal(number)
        said, _ = process.communicate(timeout=15)
        assert "Another Ctrl-C stops at once" in said
    assert process.returncode == 128 + number
    assert (run / "checkpoints").is_dir()


STUCK = """

class Stuck(Generators):
    def create_training_generator(self):
        generator, n = super().create_training_generator()
        return self._until(generator), n

    def _until(self, generator):
        import time

        for number, point in enumerate(generator):
            if number == 200:
                (self.data_dir / "stuck").touch()
                time.sleep(1000)
            yield point
"""


def test_data_that_takes_too_long_to_read_again_is_told(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from elasticdl.data import training_stream

    run = trained / "runs" / "one"
    monkeypatch.setattr(training_stream, "REPLAY_S", 0.0)
    result = Experiment(
        trained, "one", mlflow=False, log_level="ERROR", overrides=["epochs=5"]
    ).train()
    assert result.steps == 35 and len(result.history["loss"]) == 5
    messages = [e.get("message", "") for e in read_events(run / "events.jsonl")]
    assert any("in the order of epoch 2" in message for message in messages)
