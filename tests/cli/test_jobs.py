"""Whole jobs through the command line: what is printed, where, and the exit code."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from elasticdl.cli.main import main
from elasticdl.tracking.events import read_events
from processes import start_elasticdl

ROOT = Path(__file__).parents[2]
IRIS = ROOT / "model_zoo/data/iris.csv"
COLUMNS = (
    "columns=['sepal.length', 'sepal.width', 'petal.length', 'petal.width', 'variety']; sep=','"
)
IRIS_FLAGS = [
    f"--model_zoo={ROOT / 'model_zoo'}",
    "--model_def=odps_iris_dnn_model.odps_iris_dnn_model.custom_model",
    f"--data_reader_params={COLUMNS}",
    f"--validation_data={IRIS}",
]

keras_copies = pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")
"""Keras' variables warn when NumPy copies them."""

MODEL = """
import keras
import tensorflow as tf

def custom_model():
    return keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])

def dataset_fn(dataset, mode):
    def parse(row):
        numbers = tf.strings.to_number(row)
        return numbers[:2], numbers[2:]
    return dataset.map(parse)

def loss(labels, output):
    return tf.reduce_mean((labels - output) ** 2)

def optimizer():
    return keras.optimizers.SGD(0.01)
"""


def test_the_documented_command_runs_to_the_letter(tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *[sys.executable, "-m", "elasticdl.python.elasticdl.client", "train"],
            *IRIS_FLAGS,
            f"--training_data={IRIS}",
            "--num_epochs=2",
            "--minibatch_size=64",
            "--num_minibatches_per_task=20",
            "--distribution_strategy=Local",
            "--job_name=test-odps-iris",
            "--evaluation_steps=20",
            "--output=iris_dnn_model",
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "completed" in done.stdout
    assert "elasticdl evaluate" in done.stdout
    assert "oneDNN" not in done.stderr
    assert (tmp_path / "iris_dnn_model" / "model").is_dir()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_ends_with_a_code_of_its_own_and_says_how_to_go_on(
    tmp_path: Path, number: signal.Signals, code: int
) -> None:
    flags = [f"--training_data={IRIS}", "--num_epochs=1000000", "--output=run"]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    env = {**os.environ, "TMPDIR": str(temporary)}
    process = start_elasticdl("train", *IRIS_FLAGS, *flags, cwd=tmp_path, env=env)
    assert process.stderr is not None
    assert "epoch" in process.stderr.readline()
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    assert "--resume --output=run" in out
    assert "Traceback" not in err
    assert not any(temporary.iterdir()), "TensorFlow's translation of dataset_fn is gone, too"


def test_a_training_outlives_its_terminal(tmp_path: Path) -> None:
    """Who shields it from SIGHUP wants it to; what it would show is dropped."""
    terminal, other_end = pty.openpty()
    flags = [f"--training_data={IRIS}", "--num_epochs=1000000", "--output=run"]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), other_end)
    process = start_elasticdl("train", *IRIS_FLAGS, *flags, cwd=tmp_path, **streams)
    os.close(other_end)
    try:
        with open(terminal, "rb", buffering=0) as shown:
            seen = b""
            while b"loss" not in seen:
                seen += shown.read(65536)
        events = tmp_path / "run" / "events.jsonl"
        epochs, end = count_epochs(events), time.monotonic() + 60
        while count_epochs(events) < epochs + 100 and process.poll() is None:
            assert time.monotonic() < end
            time.sleep(0.1)
        process.terminate()
        assert process.wait(60) == 143
    finally:
        process.kill()
        process.wait(60)
    assert read_events(events)[-1]["status"] == "preempted"


def count_epochs(events: Path) -> int:
    return sum(event["event"] == "epoch" for event in read_events(events))


STUCK = """
import threading
import time
from pathlib import Path

import keras
import elasticdl

class Reader(elasticdl.AbstractDataReader):
    def read_records(self, task):
        for i in range(task.start, task.end):
            if i == 900:
                Path("stuck").touch()
                threading.Event().wait()
            yield b"x"

    def create_shards(self):
        return {"one": (0, 1000)}

def custom_data_reader(data_origin, **_):
    return Reader()

def custom_model():
    return keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])

def dataset_fn(dataset, mode):
    return dataset.map(lambda record: ([1.0], [1.0]))

def loss(labels, output):
    return keras.losses.mean_squared_error(labels, output)

def optimizer():
    return keras.optimizers.SGD(0.1)
"""


def start_stuck(tmp_path: Path, model: str) -> subprocess.Popen[str]:
    """A training whose reader is stuck."""
    (tmp_path / "stuck_model.py").write_text(model)
    flags = ["--training_data=nowhere", "--minibatch_size=10", "--output=run"]
    process = start_elasticdl("train", "--model_def=stuck_model.custom_model", *flags, cwd=tmp_path)
    while not (tmp_path / "stuck").exists():
        assert process.poll() is None, process.communicate()
        threading.Event().wait(0.05)
    return process


@pytest.mark.parametrize("record", [20, 900])
def test_a_second_ctrl_c_ends_a_run_that_waits_for_data(tmp_path: Path, record: int) -> None:
    process = start_stuck(tmp_path, STUCK.replace("900", str(record)))
    try:
        threading.Event().wait(2.0)  # for its steps
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        said = ""
        while line := process.stderr.readline():
            said += line
            if "Another Ctrl-C stops at once" in line:
                process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "Stopped" in said or "--resume --output=run" in out  # where it was not yet waiting
    assert "Traceback" not in said


SLOW = """
import time

class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        Path("stepped").touch()
        time.sleep(0.3)

def callbacks():
    return [Slow()]
"""


def test_one_ctrl_c_ends_a_run_whose_reader_is_stuck_while_it_has_data(tmp_path: Path) -> None:
    process = start_stuck(tmp_path, STUCK + SLOW)
    try:
        while not (tmp_path / "stepped").exists():
            assert process.poll() is None, process.communicate()
            threading.Event().wait(0.05)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "--resume --output=run" in out
    assert "Traceback" not in err


@pytest.fixture
def zoo(tmp_path: Path) -> Path:
    rows = "\n".join(f"{i},{i + 1},{i + 2}" for i in range(8))
    (tmp_path / "rows.csv").write_text(f"a,b,c\n{rows}\n")
    (tmp_path / "linear.py").write_text(MODEL)
    return tmp_path


def train(zoo: Path, *more: str) -> int:
    return main(
        [
            "train",
            f"--model_zoo={zoo}",
            "--model_def=linear.custom_model",
            f"--data={zoo / 'rows.csv'}",
            f"--output={zoo / 'run'}",
            *more,
        ]
    )


@keras_copies
def test_a_working_model_ends_with_0(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(zoo, "--num_workers=2") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("status         completed\n")
    assert captured.err.startswith("Note: --num_workers has no effect")


@keras_copies
def test_an_output_that_exists_is_one_message(
    zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert train(zoo) == 0
    capsys.readouterr()
    assert train(zoo) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("Error: ")
    assert "--overwrite" in captured.err
    assert captured.out == ""


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        (
            "return tf.reduce_mean((labels",
            "return tf.reduce_mean((label",
            "NameError: name 'label'",
        ),
        ("return numbers[:2], numbers[2:]", "return tf.constant({})", "TypeError"),
        ("keras.layers.Dense(1)", "keras.layers.Dens(1)", "AttributeError"),
        ("keras.optimizers.SGD(0.01)", "1 / 0", "ZeroDivisionError: division by zero"),
        ("import keras", "import keras_of_mine", "ModuleNotFoundError"),
        ("def loss(labels, output):", "def loss(labels output):", "SyntaxError"),
        (
            "tf.strings.to_number(row)",
            "tf.strings.to_number(row + 'x')",
            "could not correctly convert string: 0x",
        ),
        (
            "keras.Input((2,))",
            "keras.Input((3,))",
            "expected axis -1 of input shape to have value 3",
        ),
        ("** 2)", "** 2) + tf.ones((2, 3)) @ tf.ones((2, 3))", "Matrix size-incompatible"),
    ],
)
def test_a_broken_model_shows_its_own_line_and_nothing_of_ours(
    zoo: Path, capsys: pytest.CaptureFixture[str], right: str, wrong: str, message: str
) -> None:
    assert right in MODEL
    (zoo / "linear.py").write_text(MODEL.replace(right, wrong))
    assert train(zoo) in (1, 2)
    captured = capsys.readouterr()
    assert message in captured.err
    assert "bug of ElasticDL" not in captured.err
    for machinery in ("/src/elasticdl/", "/site-packages/", "__autograph_generated"):
        assert machinery not in captured.err


def test_the_whole_traceback_is_shown_when_the_log_level_is_debug(
    zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (zoo / "linear.py").write_text(MODEL.replace("keras.optimizers.SGD(0.01)", "1 / 0"))
    assert train(zoo, "--log_level=DEBUG") == 1
    assert "/src/elasticdl/" in capsys.readouterr().err


def test_data_is_prepared_and_inspected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    raw, shards = tmp_path / "raw", tmp_path / "shards"
    raw.mkdir()
    for number in range(5):
        (raw / f"{number}.txt").write_text(f"line {number}")
    (tmp_path / "words.py").write_text(
        MODEL + "\ndef prepare_data_for_a_single_file(filename):\n"
        "    with open(filename, 'rb') as file:\n        return file.read()\n"
    )
    model = [f"--model_zoo={tmp_path}", "--model_def=words.custom_model"]
    where = [f"--input={raw}", f"--output={shards}", "--records-per-shard=2", "--num_workers=1"]
    assert main(["data", "prepare", *model, *where]) == 0
    captured = capsys.readouterr()
    assert f"Wrote 5 records of 5 files to {shards}, in 3 shards." in captured.out
    assert f"--training_data={shards}" in captured.out
    assert captured.err.endswith("prepared 5 of 5 files\n")
    assert main(["data", "inspect", str(shards), "--num_records=1", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["num_records"], found["records"]) == (5, ["line 0"])
    assert [shard["num_records"] for shard in found["shards"]] == [2, 2, 1]
    assert main(["data", "inspect", str(shards), "--num_records=1"]) == 0
    assert capsys.readouterr().out.endswith("record 0\n  line 0\n")
    assert main(["data", "inspect", str(shards), "--num_records=-1"]) == 2


def test_preparing_fails_kindly_when_the_model_has_no_function_for_it(
    zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = [f"--input={zoo / 'rows.csv'}", f"--output={zoo / 'shards'}"]
    model = [f"--model_zoo={zoo}", "--model_def=linear.custom_model"]
    assert main(["data", "prepare", *model, *where]) == 2
    assert "has no prepare_data_for_a_single_file" in capsys.readouterr().err


def test_data_is_shown_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "inspect", str(IRIS), "--num_records=1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "CSV: 150 records in 1 shard, 3.8 kB"
    assert lines[3].split() == [str(IRIS), "150"]
    assert "  variety       Versicolor" in lines


def test_data_that_is_not_there_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "inspect", "no/such.csv"]) == 2
    assert capsys.readouterr().err.startswith("Error: ")


def test_the_models_of_a_zoo_are_listed(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo", "list", f"--model_zoo={zoo}"]) == 0
    header, row = capsys.readouterr().out.splitlines()
    assert header.split() == ["model", "form", "parameters", "description"]
    assert row.split() == ["linear.custom_model", "functions", "-"]
    assert main(["zoo", "list", f"--model_zoo={zoo}", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "linear.custom_model"


def test_an_empty_zoo_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["zoo", "list", f"--model_zoo={tmp_path}"]) == 0
    assert "There is no model" in capsys.readouterr().out
