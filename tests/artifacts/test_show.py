"""`elasticdl model show`: what a trained model is, at once."""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

from elasticdl.artifacts.message import decode, encode
from elasticdl.cli.main import main

from .conftest import Trained


def test_model_is_shown_in_words(trained: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "show", str(trained.run)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    for part in (
        "model shop.model.custom_model",
        "model parameters units=6, lr=0.02",
        "version kept last",
        "trained for 12 steps",
        "loss loss",
        "dataset function dataset_fn",
        f"training data {trained.data}",
        "epochs 2",
        "minibatch size 20",
        "columns width, height, colour, price",
        "val_mae",
        "colour string [any]",
        "size float32 [any, 2]",
        "output_0 float32 [any, 1]",
        "zoo/shop/words/colours.txt",
    ):
        assert part in shown
    assert "missing" not in shown


def test_model_is_shown_as_json(trained: Trained, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "show", str(trained.model), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["path"] == str(trained.model)
    assert shown["signature"]["inputs"]["size"] == {"dtype": "float32", "shape": [None, 2]}
    assert shown["job"]["model_params"] == "units=6, lr=0.02"
    assert shown["steps"] == 12
    assert shown["missing"] == []


def test_export_of_an_experiment_is_shown_with_its_project_and_run(
    copied: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = copied / "trained_model.pb"
    metrics = {name: 0.5 for name in ("val_z", "loss", "b", "val_loss", "a", "mae")}
    job = {"model": "Builder", "experiment": {"project": "digits", "run": "baseline"}}
    message = decode(file.read_bytes(), "it")
    file.write_bytes(encode(replace(message, model_def="", job=json.dumps(job), metrics=metrics)))
    assert main(["model", "show", str(copied)]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "model Builder (project digits, run baseline)" in lines
    first = lines.index("metric") + 1
    assert [line.split()[0] for line in lines[first : first + 6]] == sorted(metrics)
    assert main(["model", "show", str(copied), "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)["metrics"]) == sorted(metrics)


def test_file_that_is_gone_is_marked(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copied / "model.keras").unlink()
    (copied / "params.safetensors").write_bytes(b"\xff" * 20)
    assert main(["model", "show", str(copied)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if line.endswith("missing")] == [
        ["model.keras", "missing"]
    ]


@pytest.fixture
def bare(tensorflow: None) -> None:
    """`bare.keras`, `code.keras` and `saved/`."""
    import keras

    inputs = {name: keras.Input((2,), name=name) for name in ("width", "height")}
    model = keras.Model(
        inputs, keras.layers.Dense(1)(keras.layers.Concatenate()([*inputs.values()]))
    )
    model.compile("sgd", "mse")
    code = keras.Sequential([keras.Input((2,)), keras.layers.Lambda(lambda x: x + 1)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Keras' own, when it saves
        model.save("bare.keras")
        code.save("code.keras")
        model.export("saved", verbose=False)


def test_bare_models_are_shown_without_being_loaded(
    bare: None, capsys: pytest.CaptureFixture[str]
) -> None:
    def shown(path: str) -> str:
        assert main(["model", "show", path]) == 0
        return " ".join(capsys.readouterr().out.split())

    text = shown("bare.keras")
    for part in (
        "model bare.keras",
        "class Functional",
        "made with Keras 3",
        "loss mse",
        "optimizer sgd",
        "code none",
        "width float32 [any, 2]",
        "height float32 [any, 2]",
    ):
        assert part in text
    assert "code a Lambda layer, which is run with --trust only" in shown("code.keras")
    text = shown("saved")
    assert "format SavedModel" in text
    assert "saved_model_cli show --all --dir saved" in text
    assert "variables/variables.index" in text
    assert main(["model", "show", "saved", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert int(found["fingerprint"], 16)
    assert found["size"] == sum(found["files"].values())


def test_file_that_is_only_called_a_model_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("text.keras").write_text("hello")
    assert main(["model", "show", "text.keras"]) == 2
    assert "text.keras is not a whole Keras file" in capsys.readouterr().err


def test_what_is_no_model_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "show", "nowhere"]) == 2
    assert "There is no trained model in nowhere: it does not exist." in capsys.readouterr().err


def test_showing_loads_no_tensorflow(trained: Trained) -> None:
    program = (
        "import sys; from elasticdl.cli.main import main; main(sys.argv[1:]); "
        "sys.exit(sorted({'tensorflow', 'keras', 'numpy'} & set(sys.modules)) or 0)"
    )
    command = [sys.executable, "-c", program, "model", "show", str(trained.run)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
