"""Addresses of MLflow: which are taken, what is said of others, and that nothing secret is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from elasticdl.errors import InvalidValue
from elasticdl.storage import place
from elasticdl.tracking.mlflow import MlflowSink, default_tracking_uri
from elasticdl.tracking.mlflow_address import checked_address, hide_secrets, secrets_of, shown


def test_default_is_a_database_in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    assert default_tracking_uri(Path("a")) == f"sqlite:///{Path.cwd() / 'a' / 'mlflow.db'}"


def test_environment_wins_over_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "https://mlflow.example.com")
    assert default_tracking_uri(Path("a")) == "https://mlflow.example.com"


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:5000",
        "https://me:secret@host/team",
        "postgresql+psycopg2://me:secret@host/db",
        "databricks",
        "databricks://profile",
    ],
)
def test_address_of_a_known_kind_is_taken_as_it_is(address: str) -> None:
    assert checked_address(address) == address


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("file:///data/mlruns", "Write sqlite:////data/mlruns/mlflow.db instead"),
        ("file:/data/mlruns", "Write sqlite:////data/mlruns/mlflow.db instead"),
        ("/data/mlruns", "Write sqlite:////data/mlruns/mlflow.db instead"),
        ("./mlruns", "MLflow 3 no longer keeps runs in plain directories"),
        ("", "no longer keeps runs in plain directories"),
        ("localhost:5000", "Write http://localhost:5000 instead"),
        ("sqlite://", "a database in memory is gone"),
        ("sqlite:///:memory:", "a database in memory is gone"),
        ("http://", "it names no host"),
        ("htpp://host", "Did you mean 'http'?"),
        ("htpp://me:secret@host", "'htpp://host'"),
    ],
)
def test_address_that_cannot_be_used_is_refused_with_one_that_can(address: str, said: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        checked_address(address)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_sink_refuses_a_bad_address_before_anything_is_started() -> None:
    with pytest.raises(InvalidValue, match="no longer keeps runs"):
        MlflowSink(place("run"), Path("e"), "mlruns", "mnist", "first", {}, {}, print)


@pytest.mark.parametrize(
    "address",
    [
        "https://me:s3cret@host:5000/team",
        "https://s3cret@host:5000/team",
        "https://me:a/s3cret@host:5000/team",
        "https://me:a?s3cret@host:5000/team",
        "https://host:5000/team?token=s3cret",
    ],
)
def test_nothing_secret_is_shown_of_an_address(address: str) -> None:
    assert shown(address) == "https://host:5000/team"
    assert "s3cret" not in hide_secrets(f"Cannot reach {address}", secrets_of(address))
