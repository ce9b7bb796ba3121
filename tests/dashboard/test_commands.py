"""`elasticdl top`, `compare`, `plot`, `status` and `dashboard`, and the page that a command has while it runs."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import psutil
import pytest
from shown_runs import ended, train_events, write
from upath import UPath

import elasticdl
from elasticdl.artifacts.hold import Hold
from elasticdl.cli import page
from elasticdl.cli.main import main
from elasticdl.runtime.showing import show, showing

NOW = 1_794_780_000.0


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs that ended, and one that goes on."""
    root = tmp_path / "elasticdl_runs"
    write(root / "digits-1", ended(train_events(NOW)), learning_rate=0.1)
    write(root / "digits-2", ended(train_events(NOW + 500, rate=90)), minibatch_size=128)
    return root


@pytest.fixture
def live(runs: Path) -> Iterator[Path]:
    run = write(runs / "digits-3", train_events(NOW + 900, steps=150), num_epochs=6)
    hold = Hold(UPath(run))
    hold.take()
    yield run
    hold.release()


# --- looking at runs in the terminal ---


def test_compare_marks_the_best_and_shows_options_that_differ(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "digits-1", str(runs / "digits-2")]) == 0
    shown = capsys.readouterr().out
    best = re.search(r"^validation accuracy +([\d.]+) \* +([\d.]+)$", shown, re.M)
    assert best and float(best[1]) > float(best[2])
    assert re.search(r"^minibatch_size +64 +128$", shown, re.M)
    assert "num_epochs" not in shown, "it is the same"
    assert main(["compare", "digits-1", "digits-2", "--all"]) == 0
    assert re.search(r"^num_epochs +3 +3$", capsys.readouterr().out, re.M)


def test_compare_gives_the_same_as_json(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "digits-1", "digits-2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["name"] for run in found["runs"]] == ["digits-1", "digits-2"]
    differing = {row["key"]: row["values"] for row in found["config"] if row["differs"]}
    assert "minibatch_size" in differing and "num_epochs" not in differing
    assert {metric["name"]: metric["best"] for metric in found["metrics"]}["val_accuracy"] == 0


def test_compare_wants_two_runs_that_are_there(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", "digits-1"]) == 2
    assert "Name two runs or more" in capsys.readouterr().err
    assert main(["compare", "digits-1", "digits-7"]) == 2
    assert "There is no run 'digits-7'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("suffix", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_plot_draws_the_curves_of_runs(runs: Path, suffix: str, magic: bytes) -> None:
    assert main(["plot", "digits-1", "digits-2", "-o", f"curves.{suffix}"]) == 0
    assert Path(f"curves.{suffix}").read_bytes().startswith(magic)


def test_plot_has_a_panel_for_each_metric_and_a_colour_for_each_run(runs: Path) -> None:
    from matplotlib.image import imread

    for name, given in (("one.png", ["digits-1"]), ("two.png", ["digits-1", "digits-2"])):
        assert main(["plot", *given, "-o", name]) == 0
    blue, orange = np.array([0, 0x72, 0xB2]) / 255, np.array([0xD5, 0x5E, 0]) / 255
    for name, has_orange in (("one.png", False), ("two.png", True)):
        picture = imread(io.BytesIO(Path(name).read_bytes()))[..., :3]
        assert picture.shape[1] > 1.5 * picture.shape[0], "loss and accuracy side by side"
        for half in (picture[:, : picture.shape[1] // 2], picture[:, picture.shape[1] // 2 :]):
            assert _has(half, blue)
            assert _has(half, orange) == has_orange


def _has(picture: Any, colour: Any) -> bool:
    return bool((np.abs(picture - colour).max(axis=-1) < 0.02).any())


def test_plot_keeps_a_file_and_refuses_what_is_no_picture(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("mine.png").write_text("mine")
    assert main(["plot", "digits-1", "-o", "mine.png"]) == 2
    assert Path("mine.png").read_text() == "mine" and "--overwrite" in capsys.readouterr().err
    assert main(["plot", "digits-1", "-o", "curves.pngg"]) == 2
    assert "Did you mean '.png'?" in capsys.readouterr().err
    write(runs / "early-1", [])
    assert main(["plot", "early-1", "-o", "early.png"]) == 2
    assert "no step is told of yet" in capsys.readouterr().err
    assert main(["plot", "digits-1", "-o", "mine.png", "--overwrite"]) == 0


def test_plot_says_the_pip_line_without_matplotlib(runs: Path) -> None:
    blocked = "import sys; sys.modules['matplotlib'] = None; from elasticdl.cli.main import main; "
    code = f"{blocked} sys.exit(main(['plot', 'digits-1', '-o', 'a.png']))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "pip install matplotlib" in done.stderr


def test_status_is_that_of_jobs(live: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = []
    for command in (["status"], ["jobs", "status"]):
        assert main([*command, "digits-3", "--json"]) == 0
        told.append(json.loads(capsys.readouterr().out))
    assert told[0] == told[1] and told[0]["status"] == "running"


def test_top_prints_the_running_runs_once_where_there_is_no_terminal(
    live: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top"]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.startswith("run ") and line.startswith("digits-3 ")
    assert "150" in line and "%" in line
    assert main(["top", "--all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


def test_top_knows_how_far_a_prediction_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = {"time": NOW, "event": "run_started", "command": "predict", "records": 400}
    told = {"time": NOW + 10, "event": "prediction_progress", "records": 100, "total": 400}
    run = write(tmp_path / "runs" / "predict", [began, told], command="predict")
    hold = Hold(UPath(run))
    hold.take()
    try:
        assert main(["top"]) == 0
        line = capsys.readouterr().out.splitlines()[1]
        assert line.startswith("predict ") and " 25% " in line and line.endswith("30 s")
    finally:
        hold.release()


def test_top_says_when_nothing_runs(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top"]) == 0
    assert capsys.readouterr().out == "Nothing runs in elasticdl_runs and runs.\n"


@pytest.mark.parametrize("key", [b"q", b"\x03"])
def test_top_on_a_terminal_shows_the_runs_until_a_key(live: Path, key: bytes) -> None:
    with _top_on_a_terminal() as (top, terminal):
        terminal.write(key)
        _read_until(terminal.fileno(), b"\x1b[?1049l")  # the screen is as it was
        assert top.wait(timeout=30) == 0


def test_top_ends_when_its_terminal_is_gone(live: Path) -> None:
    """Also where nobody is told of it, as under nohup."""
    with _top_on_a_terminal(ignored=[signal.SIGHUP]) as (top, terminal):
        terminal.close()
        assert top.wait(timeout=30) == 1


@contextlib.contextmanager
def _top_on_a_terminal(
    ignored: Sequence[signal.Signals] = (),
) -> Iterator[tuple[psutil.Process, io.FileIO]]:
    """Its process, and the other end of its terminal, on which it shows a run."""
    command = [sys.executable, "-m", "elasticdl", "top", "--interval=0.1"]
    pid, terminal = pty.fork()
    if not pid:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background ignores it
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
        os.execve(sys.executable, command, {**os.environ, "TERM": "xterm", "COLUMNS": "160"})
    top = psutil.Process(pid)
    with io.FileIO(terminal, "r+") as shown:
        try:
            _read_until(terminal, b"digits-3")
            yield top, shown
        finally:
            with contextlib.suppress(psutil.NoSuchProcess):
                top.kill()
                top.wait(timeout=30)


def _read_until(terminal: int, wanted: bytes) -> None:
    seen = b""
    while wanted not in seen:
        assert select.select([terminal], [], [], 30)[0], seen.decode(errors="replace")
        seen += os.read(terminal, 65536)


HOSTILE = "bad\x1b[2J\x1b]0;title\x07\x9b31m\nstatus  completed"


@pytest.fixture
def hostile(runs: Path) -> str:
    """A run whose texts command the terminal."""
    metrics = {"time": NOW + 5, "event": "evaluation", "step": 5, "metrics": {HOSTILE: 0.5}}
    warned = {"time": NOW + 6, "event": "warning", "message": HOSTILE}
    began = [*train_events(NOW)[:2], metrics, warned]
    name = "evil" + HOSTILE.replace("/", "")
    write(runs / name, ended(began, "failed", error=HOSTILE), minibatch_size=HOSTILE)
    return name


@pytest.mark.parametrize("command", ["status", "compare", "top", "list", "logs", "wait"])
def test_texts_of_runs_do_not_command_the_terminal(
    runs: Path, hostile: str, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    given = {
        "status": ["status", hostile],
        "compare": ["compare", hostile, "digits-1"],
        "top": ["top", "--all"],
        "list": ["jobs", "list"],
        "logs": ["jobs", "logs", hostile],
        "wait": ["jobs", "wait", hostile],
    }[command]
    main(given)
    shown = "".join(capsys.readouterr())
    assert r"bad\x1b[2J\x1b]0;title" in shown
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert not re.search(r"^status  completed", shown, re.M), "no line is forged"


def test_top_on_a_terminal_shows_texts_that_command_it(hostile: str) -> None:
    command = [sys.executable, "-m", "elasticdl", "top", "--all"]
    pid, terminal = pty.fork()
    if not pid:
        os.execve(sys.executable, command, {**os.environ, "TERM": "xterm", "COLUMNS": "400"})
    try:
        _read_until(terminal, rb"evilbad\x1b[2J")
        os.write(terminal, b"q")
        _read_until(terminal, b"\x1b[?1049l")
        os.waitpid(pid, 0)
    finally:
        os.close(terminal)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--interval=inf"], "Invalid --interval inf: give seconds from 0.1 to 3600."),
        (["--interval=nan"], "Invalid --interval nan"),
        (["--interval=0"], "Invalid --interval 0.0"),
        (["nope"], "There is no directory nope"),
        (["elasticdl_runs/digits-1/job.json"], "is no directory"),
    ],
)
def test_top_refuses_what_cannot_be(
    runs: Path, capsys: pytest.CaptureFixture[str], given: list[str], said: str
) -> None:
    assert main(["top", *given]) == 2
    assert said in capsys.readouterr().err


def test_status_of_a_clock_that_went_back_is_not_below_zero(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    end = {"time": NOW - 7200, "event": "run_ended", "status": "completed", "step": 5}
    write(runs / "back-1", [*train_events(NOW)[:2], end])
    assert main(["status", "back-1"]) == 0
    told = capsys.readouterr().out
    assert not re.search(r"^(duration +|ended .*, after )-", told, re.M)
    assert main(["compare", "back-1", "digits-1"]) == 0
    assert not re.search(r"^duration +-\d", capsys.readouterr().out, re.M)


# --- the page ---


def test_dashboard_serves_the_runs_of_directories_until_ctrl_c(runs: Path) -> None:
    command = [sys.executable, "-m", "elasticdl", "dashboard", str(runs)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            assert server.stdout is not None and server.stderr is not None
            line = server.stdout.readline()
            assert line.startswith("Dashboard: http://127.0.0.1:")
            found = _get(line.split()[1] + "api/runs")
            assert {run["name"] for run in found["runs"]} == {"digits-1", "digits-2"}
            server.send_signal(signal.SIGINT)
            assert server.wait(30) == 130
            assert server.stderr.read() == "Ctrl-C ends it.\n"
        finally:
            server.kill()


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--port=99999"], "from 1 to 65535"),
        (["--port=x"], "port"),
        (["--token=short"], "at least 16"),
        (["nowhere"], "There is no directory nowhere"),
        (["/etc/passwd"], "/etc/passwd is no directory"),
    ],
)
def test_dashboard_refuses_what_cannot_be(
    runs: Path, capsys: pytest.CaptureFixture[str], flags: list[str], said: str
) -> None:
    assert main(["dashboard", *flags]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_dashboard_that_cannot_print_its_address_says_so(runs: Path) -> None:
    command = [sys.executable, "-m", "elasticdl", "dashboard", str(runs)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: Cannot print the address of the dashboard")
    assert "--resume" not in done.stderr and done.stderr.count("\n") == 1


@pytest.fixture
def wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(page.VARIABLE)


@pytest.mark.usefixtures("wanted")
def test_each_run_of_a_command_has_its_page_for_as_long_as_the_command_runs(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with page.page("INFO", is_off=False):
        for name in ("digits-1", "digits-2"):
            show(UPath(runs / name))
        lines = capsys.readouterr().err.splitlines()
        for name, line in zip(("digits-1", "digits-2"), lines, strict=True):
            assert line.startswith("Dashboard: http://127.0.0.1:")
            url = line.split()[1]
            assert _get(url.replace("/run/", "/api/runs/"))["name"] == name
        assert lines[0].partition("/run/")[0] == lines[1].partition("/run/")[0], "one page for all"
    with pytest.raises(OSError):
        _get(url.replace("/run/", "/api/runs/"))


WITHOUT_PACKAGES = """
import sys
sys.modules["fastapi"] = None
from upath import UPath
from elasticdl.cli import page
from elasticdl.cli.main import main
from elasticdl.runtime.showing import show
with page.page("INFO", is_off=False):
    show(UPath("elasticdl_runs/digits-1"))
sys.exit(main(["dashboard"]))
"""


@pytest.mark.usefixtures("wanted")
def test_a_page_that_is_open_sees_the_end_of_the_run(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    has_ended, after = threading.Event(), []

    def look(url: str) -> None:
        _get(url)
        looked.set()
        has_ended.wait(30)
        after.append(_get(url)["name"])

    looked = threading.Event()
    with page.page("INFO", is_off=False):
        show(UPath(runs / "digits-1"))
        url = capsys.readouterr().err.split()[1].replace("/run/", "/api/runs/")
        looking = threading.Thread(target=look, args=(url,))
        looking.start()
        assert looked.wait(30)
        has_ended.set()
    looking.join()
    assert after == ["digits-1"]


def test_only_who_asks_for_a_page_hears_that_packages_are_missing(runs: Path) -> None:
    command = [sys.executable, "-c", WITHOUT_PACKAGES]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.count("\n") == 1 and "pip install 'elasticdl[dashboard]'" in done.stderr


@pytest.mark.parametrize(
    ("level", "is_off", "variables"),
    [
        ("INFO", True, {}),
        ("WARNING", False, {}),
        ("ERROR", False, {}),
        ("INFO", False, {page.VARIABLE: "0"}),
        ("INFO", False, {"ELASTICDL_IMAGE": "registry/mine"}),
    ],
)
@pytest.mark.usefixtures("wanted")
def test_there_is_no_page_where_none_is_wanted(
    runs: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    level: str,
    is_off: bool,
    variables: dict[str, str],
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with page.page(level, is_off=is_off):
        show(UPath(runs / "digits-1"))
    assert capsys.readouterr().err == ""


def _get(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.load(answer)


# --- what runs tell who shows them ---


class Looker:
    """Is told of runs that begin, and reads what they tell, also when the directory is gone by then."""

    def __init__(self) -> None:
        self.directories: list[Path] = []
        self.jobs: list[dict[str, Any]] = []
        self._files: list[TextIO] = []

    def show(self, directory: UPath) -> None:
        here = Path(str(directory))
        self.directories.append(here)
        self.jobs.append(json.loads((here / "job.json").read_text()))
        self._files.append((here / "events.jsonl").open())

    def events(self) -> list[dict[str, Any]]:
        """Those of the last one."""
        with self._files[-1] as file:
            return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def points() -> tuple[Any, Any]:
    x = np.random.default_rng(0).random((400, 2))
    return x, x.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, points: Any, tensorflow: None) -> Path:
    import keras

    output = tmp_path_factory.mktemp("trained") / "run"
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    looker = Looker()
    with showing(looker.show):
        elasticdl.train(
            model, points, loss="mse", optimizer="sgd", output=str(output), log_level="ERROR"
        )
    assert looker.directories == [output]
    assert [event["event"] for event in looker.events()][::4] == ["run_started", "run_ended"]
    return output


def test_an_evaluation_has_a_directory_while_somebody_looks(trained: Path, points: Any) -> None:
    looker = Looker()
    with showing(looker.show):
        elasticdl.evaluate(trained_model=str(trained), data=points, loss="mse", log_level="ERROR")
    assert looker.jobs[0]["command"] == "evaluate"
    first, *_, last = looker.events()
    assert first["event"] == "run_started" and first["command"] == "evaluate"
    assert (last["event"], last["records"], last["total"]) == ("evaluation_progress", 400, 400)
    assert not looker.directories[0].parent.exists(), "it is gone with the command"


def test_a_prediction_has_a_directory_while_somebody_looks(trained: Path, points: Any) -> None:
    looker = Looker()
    with showing(looker.show):
        elasticdl.predict(trained_model=str(trained), data=points[0], log_level="ERROR")
    last = looker.events()[-1]
    assert (last["event"], last["records"], last["total"]) == ("prediction_progress", 400, 400)
    assert not looker.directories[0].parent.exists()


def test_who_shows_only_what_lasts_is_not_told_of_evaluations(trained: Path, points: Any) -> None:
    looker = Looker()
    with showing(looker.show, only_lasting=True):
        elasticdl.evaluate(trained_model=str(trained), data=points, loss="mse", log_level="ERROR")
    assert looker.directories == []


def test_nothing_is_left_or_made_where_nobody_looks(
    trained: Path, points: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    elasticdl.predict(trained_model=str(trained), data=points[0], log_level="ERROR")
    assert not list(tmp_path.glob("elasticdl-page-*"))
