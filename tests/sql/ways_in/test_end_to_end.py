"""Train and predict for real: by the command and its prompt, and by SQLFlow's client of a server in a process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from .conftest import CLIENT, client_environment
from .terminal import Terminal

COMMAND = [sys.executable, "-m", "elasticdl", "sql"]
TRAIN = (
    "SELECT role, age, salary FROM employee TRAIN regressor.DNN "
    "WITH hidden_units=[8], learning_rate=0.01, train.epoch={epochs} INTO {name};"
)
ASK = """
import json, sys
import sqlflow
answer = sqlflow.Client().execute(sys.argv[1])
found = [] if answer is None else [answer.get(i) for i in range(answer.length())]
print(json.dumps([[rows.column_names(), list(rows.rows())] for rows in found], default=str))
"""


@pytest.fixture(scope="module")
def company(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("company")
    with duckdb.connect(str(directory / "company.db")) as connection:
        connection.sql(
            "CREATE TABLE employee AS SELECT ['engineer', 'sales'][1 + i % 2] AS role, 20 + i % 40 AS age, "
            "(30000 + (i % 2) * 20000 + (i % 40) * 100)::DOUBLE AS salary FROM range(200) t(i)"
        )
    return directory


@dataclass
class Served:
    process: subprocess.Popen[str]
    address: str


@pytest.fixture(scope="module")
def served(company: Path) -> Iterator[Served]:
    """`elasticdl sql serve` as it is started in a shell."""
    arguments = ["serve", "--port", "0", "--db", "duckdb:///company.db", "--models", "served"]
    with (
        (company / "server.log").open("w") as log,
        subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=company,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env={**os.environ, "ELASTICDL_SQL_TOKEN": "t0p"},
        ) as process,
    ):
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"Serving on (127\.0\.0\.1:\d+)\. Ctrl-C stops\.\n", line)
        assert found, line
        yield Served(process, found[1])
        process.kill()


def client(served: Served, text: str) -> subprocess.Popen[str]:
    if not CLIENT.is_dir():
        pytest.skip("the sqlflow client is not installed: see the Makefile")
    return subprocess.Popen(
        [sys.executable, "-u", "-W", "ignore", "-c", ASK, text],
        env=client_environment(served, SQLFLOW_USER_TOKEN="t0p"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ask(served: Served, text: str) -> str:
    with client(served, text) as process:
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        return out


def test_a_client_trains_with_messages_and_predicts(served: Served) -> None:
    said = ask(served, TRAIN.format(epochs=2, name="pay"))
    assert "The label is salary, the last selected column." in said
    assert re.search(r"^epoch 2/2 done  loss \d", said, re.MULTILINE)
    assert "Trained pay@1" in said
    answer = ask(
        served, "SELECT role, age FROM employee ORDER BY age LIMIT 3 TO PREDICT USING pay;"
    )
    [[names, rows]] = json.loads(answer.splitlines()[-1])
    assert names == ["role", "age", "predicted_salary"]
    assert len(rows) == 3 and all(10_000 < row[2] < 100_000 for row in rows)


def test_a_killed_client_frees_the_engine_for_the_one_who_waits(served: Served) -> None:
    with client(served, TRAIN.format(epochs=1_000_000, name="endless")) as first:
        assert first.stdout is not None
        assert any(line.startswith("epoch 1/") for line in first.stdout)
        with client(served, TRAIN.format(epochs=1, name="patient")) as second:
            assert second.stdout is not None
            assert any(line.startswith("Waiting for another") for line in second.stdout)
            # What needs no engine is answered meanwhile.
            assert json.loads(ask(served, "SELECT count(*) AS n FROM employee")) == [
                [["n"], [[200]]]
            ]
            first.kill()
            assert "Trained patient@1" in second.stdout.read()
    shown = json.loads(ask(served, "SHOW MODELS").splitlines()[-1])
    names = {row[0] for row in shown[0][1]}
    assert "patient" in names and "endless" not in names


def test_the_server_ends_when_it_is_asked_to(served: Served, company: Path) -> None:
    with client(served, TRAIN.format(epochs=1_000_000, name="endless")) as asking:
        assert asking.stdout is not None
        assert any(line.startswith("epoch 1/") for line in asking.stdout)
        served.process.send_signal(signal.SIGTERM)
        assert served.process.wait(60) == 143
        asking.communicate(timeout=60)
        assert asking.returncode != 0
    log = (company / "server.log").read_text()
    assert "t0p" not in log and "Traceback" not in log and "leaked" not in log


def test_the_command_trains_and_predicts_into_a_table(company: Path) -> None:
    text = TRAIN.format(epochs=1, name="typed") + (
        "CREATE TABLE result AS SELECT role, age FROM employee;"
        "SELECT role, age FROM result TO PREDICT result.pay USING typed;"
        "SELECT count(pay) AS filled FROM result"
    )
    done = subprocess.run(
        [*COMMAND, "--db", "duckdb:///company.db", "--models", "typed_models", text],
        cwd=company,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "Trained typed@1" in done.stdout
    assert done.stdout.split()[-3:] == ["filled", "------", "200"]
    assert "leaked" not in done.stderr


def test_ctrl_c_at_the_prompt_stops_the_training_and_not_the_prompt(company: Path) -> None:
    arguments = ["--db", "duckdb:///company.db", "--models", "prompted"]
    environment = {**os.environ, "XDG_STATE_HOME": str(company / "state")}
    with Terminal([*COMMAND, *arguments], company, environment) as terminal:
        terminal.expect("sql>")
        terminal.send(TRAIN.format(epochs=1_000_000, name="endless") + "\r")
        terminal.expect("loss", timeout_s=60)
        terminal.send("\x03")
        terminal.expect("stopped", timeout_s=60)
        terminal.expect("sql>")
        terminal.send("SELECT 40 + 2 AS answer;\r")
        terminal.expect("42 │")
        terminal.expect("sql>")
        terminal.send("\\q\r")
        assert terminal.wait() == 0
        assert "Traceback" not in terminal.seen and "leaked" not in terminal.seen
