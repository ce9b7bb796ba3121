"""Between SQL and files: rows as RecordIO with a schema, and any model trained on them."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import elasticdl
from elasticdl.data.registry import open_source
from elasticdl.errors import DataError, InvalidValue, NotFound, OutputExists, UnknownName
from elasticdl.sql.export import export

from .conftest import ROWS, Company

SELECT = "SELECT name, role, age, salary FROM employee"
ZOO = Path(__file__).parents[2] / "model_zoo"
INPUT = "sqlflow.elasticdl_input_function"
PARAMS = "hidden_units=[10, 100, 20, 5], learning_rate=0.01"


@pytest.fixture(scope="module")
def exported(trained: Company, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two directories: rows to train on, and rows to predict."""
    directory = tmp_path_factory.mktemp("exported")
    database = f"duckdb:///{trained.path}"
    export(database, SELECT, str(directory / "train"), records_per_shard=100)
    without = "SELECT name, role, age FROM employee"
    export(database, without, str(directory / "predict"), has_label=False)
    return directory


@pytest.fixture(scope="module")
def git_zoo(tmp_path_factory: pytest.TempPathFactory) -> str:
    zoo = tmp_path_factory.mktemp("zoo")
    shutil.copy(ZOO / "regressor.py", zoo)
    (zoo / "requirements.txt").write_text("keras\n")
    author = ["-c", "user.name=A Modeler", "-c", "user.email=modeler@example.com"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "A regressor"]):
        subprocess.run(["git", *command], cwd=zoo, check=True)
    return f"file://{zoo}"


def test_records_are_examples_of_the_raw_values(exported: Path) -> None:
    source = open_source(str(exported / "train" / "*.recordio"))
    assert sum(shard.num_records for shard in source.shards) == ROWS
    assert len(source.shards) == 3
    (chunk, *_) = source.read(source.shards[0].name, 0, 2)
    features = tf.train.Example.FromString(chunk[1]).features.feature
    assert features["role"].bytes_list.value[0] == b"sales"
    assert features["salary"].float_list.value[0] == 50000 + 700
    schema = json.loads((exported / "train" / "schema.json").read_text())
    assert schema["select"] == SELECT
    assert schema["plan"]["label"]["name"] == "salary"


def test_the_seeds_training_and_prediction_run_on_them(
    exported: Path, git_zoo: str, trained: Company, tmp_path: Path
) -> None:
    output = str(tmp_path / "my_trained_model")
    result = elasticdl.train(
        model_zoo=git_zoo,
        model_def="regressor.DNN",
        input_fn=INPUT,
        params=PARAMS,
        data=str(exported / "train" / "*.recordio"),
        output=output,
        num_epochs=60,
        seed=1,
        log_level="ERROR",
    )
    assert result.history["loss"][-1] < result.history["loss"][0]
    predicted = elasticdl.predict(
        data=str(exported / "predict" / "*.recordio"),
        trained_model=output,
        output=str(tmp_path / "predicted.parquet"),
        log_level="ERROR",
    )
    assert predicted.records == ROWS
    rows = open_source(str(tmp_path / "predicted.parquet"))
    chunks = [c for s in rows.shards for c in rows.read(s.name, 0, s.num_records)]
    values = np.concatenate([chunk["prediction"] for chunk in chunks])[:, 0]
    truth = np.array([row["salary"] for row in trained.rows("SELECT salary FROM employee")])
    assert np.abs(values - truth).mean() < 5000  # where the mean as a guess gives 13,000
    metrics = elasticdl.evaluate(
        data=str(exported / "train" / "*.recordio"), trained_model=output, log_level="ERROR"
    ).metrics
    assert metrics["mae"] == pytest.approx(np.abs(values - truth).mean(), rel=1e-3)


def test_the_schema_must_be_there(exported: Path, tmp_path: Path) -> None:
    shutil.copytree(exported / "train", tmp_path / "train")
    (tmp_path / "train" / "schema.json").unlink()
    flags = {"model_zoo": str(ZOO), "model_def": "regressor.DNN", "input_fn": INPUT}
    data = str(tmp_path / "train")
    with pytest.raises(NotFound, match="elasticdl sql export"):
        elasticdl.train(data=data, output=str(tmp_path / "out"), **flags)
    (tmp_path / "train" / "schema.json").write_text("{}")
    with pytest.raises(DataError, match="no schema of ours"):
        elasticdl.train(data=data, output=str(tmp_path / "out"), **flags)


def test_what_is_wrong_is_told_and_nothing_is_written(trained: Company, tmp_path: Path) -> None:
    database, output = f"duckdb:///{trained.path}", str(tmp_path / "out")
    with pytest.raises(UnknownName, match="Did you mean 'salary'"):
        export(database, SELECT, output, label="salry")
    with pytest.raises(DataError, match="no rows"):
        export(database, f"{SELECT} WHERE age > 999", output)
    with pytest.raises(InvalidValue, match="must be a SELECT"):
        export(database, "DROP TABLE employee", output)
    assert len(trained.rows("FROM employee")) == ROWS
    assert not Path(output).exists()
    export(database, SELECT, output)
    with pytest.raises(OutputExists, match="already holds shards"):
        export(database, SELECT, output)


def test_files_may_go_anywhere(trained: Company) -> None:
    found = export(f"duckdb:///{trained.path}", SELECT, "memory://sql-export/rows")
    assert found.files[0].startswith("memory://sql-export/rows/data-00000")
    assert (
        sum(s.num_records for s in open_source("memory://sql-export/rows/*.recordio").shards)
        == ROWS
    )
