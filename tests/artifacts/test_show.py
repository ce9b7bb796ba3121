"""`elasticdl model show`: what a trained model is, at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_file_that_is_gone_is_marked(copied: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copied / "model.keras").unlink()
    (copied / "params.safetensors").write_bytes(b"\xff" * 20)
    assert main(["model", "show", str(copied)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if line.endswith("missing")] == [
        ["model.keras", "missing"]
    ]


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
