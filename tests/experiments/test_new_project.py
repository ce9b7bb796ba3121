"""`elasticdl new`: a project that runs at once."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import jsonschema
import numpy as np
import pytest
import tensorflow as tf
import yaml

from elasticdl.cli.main import main
from elasticdl.errors import InvalidValue, OutputExists
from elasticdl.experiments.config import load_config
from elasticdl.experiments.new_project import PARTS, write_project
from elasticdl.experiments.project import Project
from elasticdl.experiments.stages import Experiment


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_project(tmp_path_factory.mktemp("projects") / "demo").directory


def test_the_config_is_checked_by_its_own_schema(demo: Path) -> None:
    text = (demo / "runs" / "baseline" / "config.yaml").read_text()
    first = text.splitlines()[0]
    assert first == "# yaml-language-server: $schema=../../config.schema.json"
    schema = json.loads((demo / "config.schema.json").read_text())
    given = load_config(Project.open(demo, "baseline").config_file).to_dict()
    jsonschema.Draft202012Validator(schema).validate(given)
    assert given["project_name"] == "demo"


def test_the_data_are_digits_in_three_parts(demo: Path) -> None:
    names: set[str] = set()
    for part, count in PARTS.items():
        with (demo / "data" / part / "labels.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == count
        assert set(Counter(row["label"] for row in rows)) == set("0123456789")
        names.update(row["image"] for row in rows)
        image = tf.io.decode_png((demo / "data" / part / rows[0]["image"]).read_bytes()).numpy()
        assert (image.shape, image.dtype) == ((28, 28, 1), np.uint8)
        assert image.max() > 200
        assert not image[:4].any()
    assert len(names) == sum(PARTS.values())


def test_it_runs_and_learns(demo: Path) -> None:
    result = Experiment(
        demo, "baseline", data_dir=demo / "data", mlflow=False, overrides=["epochs=4"]
    ).run()
    assert result.status == "completed"
    assert result.metrics["accuracy"] > 0.8
    assert (demo / "runs" / "baseline" / "report.html").is_file()


def test_what_a_run_writes_is_ignored_and_its_config_is_not(demo: Path) -> None:
    ignored = (demo / ".gitignore").read_text().split()
    assert {"/runs/*/*", "!/runs/*/*.yaml", "/mlflow.db"} <= set(ignored)


@pytest.mark.parametrize("name", ["it's: a test", "2024", "yes", "ü", 'say "so"'])
def test_a_project_may_have_any_name(name: str, tmp_path: Path) -> None:
    write_project(tmp_path / name)
    config = (tmp_path / name / "runs" / "baseline" / "config.yaml").read_text()
    assert yaml.safe_load(config)["project_name"] == name
    assert (tmp_path / name / "README.md").read_text().startswith(f"# {name}\n")


def test_a_directory_that_is_not_empty_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OutputExists, match="not empty"):
        write_project(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert main(["new", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("Error: ")


def test_an_empty_directory_is_filled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "demo").mkdir()
    assert main(["new", "demo"]) == 0
    said = capsys.readouterr().out
    assert "elasticdl run --run_name baseline --data_dir data" in said
    assert (tmp_path / "demo" / "src" / "models.py").is_file()


def test_an_address_is_refused() -> None:
    with pytest.raises(InvalidValue, match="a directory on this machine"):
        write_project("s3://bucket/project")
