"""SIGKILL at any point, then --resume: the same bits, and every record once an epoch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from elasticdl.data.recordio import RecordWriter

from .kill_and_resume import Outcome, kill_and_resume

HERE = Path(__file__).parent
KILLS = 10
RECORDS = 300
FLAGS = [
    f"--model_zoo={HERE / 'zoo'}",
    *["--data=data.recordio", "--validation_data=data.recordio", "--minibatch_size=10"],
    *["--num_minibatches_per_task=4", "--num_epochs=4", "--seed=7", "--checkpoint_steps=2"],
    *["--export_metric=val_mae", "--log_level=WARNING"],
]


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "data.recordio").open("wb") as file, RecordWriter(file, "none") as writer:
        for row in np.random.default_rng(0).normal(size=(RECORDS, 4)):
            writer.write(",".join(f"{value:.4f}" for value in row).encode())
    return tmp_path


def run(model: str, output: str, *, kills: int, seed: int = 0) -> Outcome:
    """Train to the end, with so many kills on the way."""
    first = ["train", *FLAGS, f"--model_def=hard_to_replay.{model}", f"--output={output}"]
    then = ["train", "--resume", "--log_level=WARNING", f"--output={output}"]
    outcome = kill_and_resume(Path(output), first, then, seed=seed, kills=kills)
    assert outcome.code == 0, outcome.said
    return outcome


def events(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(output, "events.jsonl").read_text().splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("model", ["functional", "Subclassed"])
def test_training_that_is_killed_again_and_again_ends_with_the_same_bits(
    directory: Path, model: str
) -> None:
    run(model, "whole", kills=0)
    outcome = run(model, "cut", kills=KILLS, seed=len(model))
    for name in ("model", "model_last"):
        expected = Path("whole", name, "params.safetensors").read_bytes()
        assert Path("cut", name, "params.safetensors").read_bytes() == expected, outcome
    assert outcome.kills >= KILLS / 2, "the training was over too soon"
    told = events("cut")
    audits = {e["epoch"]: e for e in told if e["event"] == "epoch_audit"}
    assert {epoch: audit["applied_once"] for epoch, audit in audits.items()} == dict.fromkeys(
        range(4), True
    )
    assert [audit["records"] for audit in audits.values()] == [RECORDS] * 4
    epochs = {e["epoch"]: e["loss"] for e in told if e["event"] == "epoch"}
    assert epochs == {e["epoch"]: e["loss"] for e in events("whole") if e["event"] == "epoch"}
    assert not [path for path in Path("cut").rglob(".*.tmp")], "nothing half is left"
