"""What events say to MLflow, without MLflow, but for its own judgement of names."""

from __future__ import annotations

import pytest

from elasticdl.tracking.mlflow_records import Epochs, batches, mended, mended_names, record_of


@pytest.mark.parametrize(
    ("name", "as_mlflow_takes_it"),
    [
        ("loss", "loss"),
        ("_private", "_private"),
        ("val/top 5: é", "val/top 5: é"),
        ("precision@5", "precision_at_5"),
        ("f1 (macro)", "f1_macro"),
        ("error<0.5", "error_below_0.5"),
        ("accuracy, %", "accuracy_percent"),
        ("../a//b/", "a/b"),
        ("/a", "a"),
        ("a\nb", "a_b"),
        ("???", "_"),
        ("", "_"),
        ("x" * 300, "x" * 250),
    ],
)
def test_names_are_mended_readably(name: str, as_mlflow_takes_it: str) -> None:
    from mlflow.utils.validation import _validate_metric

    assert mended(name) == as_mlflow_takes_it
    _validate_metric(mended(name), 1.0, 0, 0)


def test_names_that_become_the_same_are_kept_apart() -> None:
    assert mended_names(["a?", "a!", "a"]) == ["a", "a_2", "a_3"]


def test_only_numbers_are_metrics() -> None:
    event = {"time": 1.5, "event": "epoch", "epoch": 3, "step": 9, "loss": 1.0, "count": 2}
    record = record_of({**event, "flag": True, "text": "x", "none": None, "nan": float("nan")})
    assert record is not None
    assert (record.time_ms, record.step) == (1500, 3)
    assert record.metrics == {"loss": 1.0, "count": 2.0}


def news(*events: dict[str, object]) -> list[bool]:
    epochs = Epochs()
    return [epochs.is_news(event) for event in events]


def started(step: int, command: str = "train") -> dict[str, object]:
    return {"event": "run_started", "command": command, "step": step}


def epoch(number: int, loss: float) -> dict[str, object]:
    return {"event": "epoch", "epoch": number, "loss": loss}


def test_epochs_that_are_trained_again_after_a_resume_are_no_news() -> None:
    resumed = news(started(0), epoch(0, 1.0), epoch(1, 0.5), started(5), epoch(1, 0.4), epoch(2, 0))
    assert resumed == [True, True, True, True, False, True]


def test_epochs_of_a_training_from_the_start_are_news_unless_they_are_the_same() -> None:
    anew = news(started(0), epoch(0, 1.0), epoch(1, 0.5), started(0), epoch(0, 1.0), epoch(1, 0.4))
    assert anew == [True, True, True, True, False, True]


def test_evaluation_does_not_start_a_training_anew() -> None:
    assert news(started(0), epoch(0, 1.0), started(0, "evaluate"), started(5), epoch(0, 0.9)) == [
        True,
        True,
        True,
        True,
        False,
    ]


def test_batches_are_of_a_number_and_a_size_that_mlflow_takes() -> None:
    many = {f"p{number}": "x" for number in range(250)}
    assert [len(part) for part in batches(many)] == [100, 100, 50]
    long = {f"p{number}": "é" * 6000 for number in range(60)}
    parts = list(batches(long))
    assert {name for part in parts for name in part} == set(long)
    assert max(sum(6 * len(value) for value in part.values()) for part in parts) < 1_000_000
