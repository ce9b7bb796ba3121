"""The notebook magic, in a real IPython."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from elasticdl.errors import ElasticDLError, StatementError, UnknownName
from elasticdl.sql.api import SqlResult
from elasticdl.sql.magic import SqlMagic

from .fake_session import FakeSession


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InteractiveShell]:
    """One for all: IPython keeps it until the process ends."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        yield InteractiveShell.instance(config=Config({"HistoryManager": {"enabled": False}}))


@pytest.fixture
def magic() -> Iterator[SqlMagic]:
    made = SqlMagic(FakeSession)
    yield made
    made.close()


def run(shell: InteractiveShell, cell: str) -> Any:
    return shell.run_cell(cell, store_history=False)


@pytest.mark.parametrize("name", ["elasticdl", "elasticdl.sql.magic"])
def test_the_extension_gives_a_line_and_a_cell_magic(shell: InteractiveShell, name: str) -> None:
    assert run(shell, f"%load_ext {name}").success
    assert "elasticdl" in shell.magics_manager.magics["line"]
    assert "elasticdl" in shell.magics_manager.magics["cell"]
    run(shell, f"%unload_ext {name}")


def test_a_cell_gives_rows_and_shows_what_happens(
    magic: SqlMagic, capsys: pytest.CaptureFixture[str]
) -> None:
    result = magic.run("", "SELECT * FROM t TRAIN m;\nSELECT 1 AS a, NULL AS b")
    assert isinstance(result, SqlResult)
    assert list(result) == [{"a": 1, "b": None}]
    assert capsys.readouterr().out.splitlines() == [
        "The label is salary, the last selected column.",
        "epoch 1/2 done  loss 0.5000",
        "epoch 2/2 done  loss 0.2500",
    ]
    html = result._repr_html_()
    assert "Trained m, version 1." in html and "<table>" in html


def test_one_session_serves_the_cells_until_the_options_change(
    magic: SqlMagic, tmp_path: Path
) -> None:
    magic.run("CREATE VIEW v AS SELECT 3 AS x")
    result = magic.run("", "SELECT * FROM v")
    assert result is not None and list(result) == [{"x": 3}]
    db = tmp_path / "my shop.db"
    magic.run(f'--db "{db}" CREATE VIEW w AS SELECT 4 AS y')
    again = magic.run("", "SELECT * FROM w")
    assert again is not None and list(again) == [{"y": 4}]
    assert db.exists()
    assert magic.run(f"--db='{db}' --models m") is None
    third = magic.run("SELECT * FROM w -- with a comment")
    assert third is not None and len(third) == 1


def test_closing_lets_go_of_the_database(magic: SqlMagic) -> None:
    magic.run("CREATE VIEW v AS SELECT 3 AS x")
    result = magic.run("--close SELECT 1 AS one")
    assert result is not None and list(result) == [{"one": 1}]
    with pytest.raises(Exception, match="v does not exist"):
        magic.run("SELECT * FROM v")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--dbb x", "Did you mean 'db'"),
        ("--db", "has no value"),
        ("--db --models x", "has no value"),
    ],
)
def test_a_wrong_option_is_told(magic: SqlMagic, line: str, words: str) -> None:
    with pytest.raises(UnknownName, match=words):
        magic.run(line)


def test_an_error_is_shown_without_a_traceback(
    shell: InteractiveShell, magic: SqlMagic, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.register_magic_function(magic.run, "line_cell", "fake_sql")
    done = run(shell, "%%fake_sql\nBREAK")
    assert isinstance(done.error_in_exec, StatementError)
    assert isinstance(done.error_in_exec, ElasticDLError)
    shown = capsys.readouterr().out
    assert shown.startswith("Error: line 1, column 1:\n  BREAK\n  ^^^^^")
    assert "Traceback" not in shown


def test_braces_and_dollars_belong_to_the_sql(shell: InteractiveShell) -> None:
    assert run(shell, "%load_ext elasticdl.sql.magic").success
    shell.user_ns["x"] = "changed"
    done = run(shell, "r = %elasticdl SELECT '{x} $x' AS text")
    assert done.success
    assert list(shell.user_ns["r"]) == [{"text": "{x} $x"}]
    run(shell, "%elasticdl --close")


def test_the_environment_says_where_when_no_option_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELASTICDL_DB", str(tmp_path / "x.duckdb"))
    monkeypatch.setenv("ELASTICDL_MODELS", str(tmp_path / "kept"))
    opened: list[dict[str, Any]] = []

    def open_session(**options: Any) -> FakeSession:
        opened.append(options)
        return FakeSession()

    made = SqlMagic(open_session)
    made.run("SELECT 1")
    made.run("--db=other.duckdb SELECT 1")
    made.close()
    assert [options["db"] for options in opened] == [str(tmp_path / "x.duckdb"), "other.duckdb"]
    assert [options["models"] for options in opened] == [str(tmp_path / "kept")] * 2
