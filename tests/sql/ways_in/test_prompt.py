"""The prompt, on a terminal."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .terminal import Terminal

HERE = Path(__file__).parent

START = """
import signal, sys
from fake_session import FakeSession
from elasticdl.cli.sql_run import Settings, present
from elasticdl.errors import ElasticDLError
from elasticdl.sql.prompt import Prompt

with FakeSession(tell=print) as session:
    def run(text):
        try:
            present(session.run(text), Settings())
        except KeyboardInterrupt:
            print("Stopped.")
        except ElasticDLError as error:
            print(f"Error: {error}")
    sys.exit(Prompt(session, run).run())
"""


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(HERE),
        "XDG_STATE_HOME": str(tmp_path / "state"),
    }
    with Terminal([sys.executable, "-c", START], tmp_path, environment) as made:
        made.expect("\\q to leave.")
        made.expect("sql>")
        yield made


def leave(terminal: Terminal) -> int:
    """To be called when the last answer was seen: the prompt is also shown again with what was typed."""
    terminal.expect("sql>")
    terminal.send("\x04")
    return terminal.wait()


def test_a_statement_is_run_at_its_semicolon_over_several_lines(terminal: Terminal) -> None:
    terminal.send("SELECT 41\r")
    terminal.expect("...>")
    terminal.send("+ 1 AS answer;\r")
    terminal.expect("42 │")
    assert leave(terminal) == 0


def test_the_next_prompt_comes_when_a_statement_fails(terminal: Terminal) -> None:
    terminal.send("BREAK;\r")
    terminal.expect("Unknown word.")
    assert leave(terminal) == 0
    assert "Traceback" not in terminal.seen


def test_tables_columns_models_and_help_are_shown(terminal: Terminal) -> None:
    terminal.send("CREATE TABLE staff AS SELECT 1 AS age, 'x' AS role;\r")
    terminal.expect("Done.")
    for keys, shown in [
        ("\\d", "staff"),
        ("\\d staff", "age\nrole"),
        ("\\d stafff", "Error: There is no table 'stafff'. Did you mean 'staff'?"),
        ("\\models", "my_model"),
        ("\\h", "Ctrl-C stops what is running"),
        ("help", "Ctrl-C stops what is running"),
        ("HELP;", "Ctrl-C stops what is running"),
        ("\\x", "Error: Unknown command"),
    ]:
        terminal.expect("sql>")
        terminal.send(f"{keys}\r")
        terminal.expect(f"\n{shown}")
    assert leave(terminal) == 0


def test_tab_completes_words_tables_and_columns(terminal: Terminal) -> None:
    terminal.send("CREATE TABLE staff AS SELECT 7 AS seniority;\r")
    terminal.expect("Done.")
    terminal.expect("sql>")
    for typed, added in [("SEL", "ECT"), (" 77 AS total FROM sta", "ff"), (" WHERE senio", "rity")]:
        terminal.send(f"{typed}\t")
        terminal.expect(added)
    terminal.send(" = 7;\r")
    terminal.expect("total │")
    terminal.expect("77 │")
    assert leave(terminal) == 0


def test_ctrl_c_clears_the_line_and_stops_what_runs(terminal: Terminal) -> None:
    terminal.send("SELECT 'half")
    terminal.expect("half")
    terminal.send("\x03")
    terminal.expect("sql>")
    terminal.send("HANG;\r")
    terminal.expect("It hangs.")
    terminal.send("\x03")
    terminal.expect("Stopped.")
    terminal.expect("sql>")
    terminal.send("SELECT 5 AS still_here;\r")
    terminal.expect("5 │")
    assert leave(terminal) == 0


@pytest.mark.parametrize("word", ["\\q", "quit", "exit;"])
def test_a_word_leaves(terminal: Terminal, word: str) -> None:
    terminal.send(f"{word}\r")
    assert terminal.wait() == 0


def test_the_history_is_kept_for_its_owner_alone(terminal: Terminal, tmp_path: Path) -> None:
    terminal.send("SELECT 123 AS remembered;\r")
    terminal.expect("123 │")
    assert leave(terminal) == 0
    history = tmp_path / "state" / "elasticdl" / "sql_history"
    assert "SELECT 123 AS remembered;" in history.read_text()
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
