"""`elasticdl run` and `elasticdl schema`: flags, and what is said of wrong ones. Whole runs are elsewhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elasticdl.cli.main import main
from elasticdl.cli.run import run
from elasticdl.experiments.config import json_schema

from .conftest import write

FLAGS = Path(__file__).parents[1] / "cli" / "fixtures" / "run_flags.txt"


def test_flags_are_those_of_the_frozen_list() -> None:
    flags = sorted(flag for param in run.params for flag in param.opts)
    frozen = FLAGS.read_text().split()
    assert flags == frozen, "a flag was added or lost: if that is meant, change the list"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ("", "Missing option '--run_name'"),
        ("--run_nme first", "'--run_name'"),
        ("--run_name --data_dir data", "The option --run_name has no value"),
        ("--run_name first stray", "Unexpected 'stray': 'elasticdl run' takes options only."),
        ("--run_name first --stage trian", "Invalid --stage 'trian'. Did you mean 'train'?"),
        ("--run_name first --stage nothing", "Give one of all, train, export, evaluate."),
        ("--run_name first --log_level loud", "Invalid --log_level 'LOUD'"),
        ("--run_name first --check --stage train", "Invalid --check with --stage train"),
        ("--run_name frist", "There is no run 'frist'"),
        ("--run_name first --project_root gone", "There is no project_root"),
        ("--run_name first --set epochs=none", "epochs: received 'none'"),
        ("--run_name first --set epoch=1", "Did you mean 'epochs'?"),
        ("--run-name first --data-dir data --set evaluator_class=a.B", "does not import"),
        ("--run_name first", "No data_dir was given"),
    ],
)
@pytest.mark.usefixtures("project", "tensorflow")
def test_what_is_wrong_is_said_before_anything_runs(
    args: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", *args.split()]) == 2
    captured = capsys.readouterr()
    assert said in captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""


@pytest.mark.usefixtures("tensorflow")
def test_an_error_in_the_users_code_is_shown_with_its_line_alone(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (project / "src" / "dataset.py").read_text()
    write(project / "src" / "dataset.py", text.replace("self.n = ", "self.n = 1 / 0 + "))
    assert main(["run", "--run_name=first", "--data_dir=data", "--check"]) == 1
    told = capsys.readouterr().err
    assert "src/dataset.py" in told
    assert "ZeroDivisionError: division by zero" in told
    assert told.count("File ") == 1


def test_the_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema()


def test_the_schema_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "-o", "config.schema.json"]) == 0
    assert json.loads((tmp_path / "config.schema.json").read_text()) == json_schema()
    assert "# yaml-language-server: $schema=config.schema.json" in capsys.readouterr().out
