"""A fork that tests start in the place of a process is as the process would be."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from processes import Fork, python, run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux only")

PROGRAMS = {
    "argv": "import sys; print(sys.argv[1:], sys.path[0] == '', __name__)",
    "code": "import sys; print('to stderr', file=sys.stderr); sys.exit(3)",
    "message": "raise SystemExit('that is why')",
    "error": "1 / 0",
    "killed": "import os; os.kill(os.getpid(), 9)",
    "stdin": "print(input().upper())",
    "environment": "import os; print(os.environ['MINE'], os.getcwd(), 'OPENBLAS_NUM_THREADS' in os.environ)",
    "at exit": "import atexit; atexit.register(print, 'last')",
    "thread": "import threading; threading.Timer(0.1, print, ['from a thread']).start()",
    "signals": "import signal; print(signal.getsignal(2), signal.getsignal(15), signal.getsignal(17))",
    "pipe": "import os, signal; os.write(1, b'x'); print(signal.getsignal(signal.SIGPIPE))",
}


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS)
def test_fork_does_and_says_what_a_process_does(code: str, tmp_path: Path) -> None:
    env = {**os.environ, "MINE": "äöü"}
    real, forked = (
        run_python("-c", code, "a", "b c", input="typed\n", env=env, cwd=tmp_path, fork=fork)
        for fork in (False, True)
    )
    assert (forked.returncode, forked.stdout) == (real.returncode, real.stdout)
    assert forked.stderr.splitlines()[-1:] == real.stderr.splitlines()[-1:]


def test_module_and_script_start_as_the_main_program(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("import sys; print(__name__, sys.argv[1:], sys.path[0])\n")
    (tmp_path / "beside.py").write_text("import own, sys; print(__name__, sys.argv)\n")
    for words in (["-m", "own", "x"], [str(tmp_path / "beside.py"), "y"]):
        real, forked = (run_python(*words, cwd=tmp_path, fork=fork) for fork in (False, True))
        assert real.returncode == 0, real.stderr
        assert forked.stdout == real.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signal_reaches_the_fork_and_is_its_end(number: signal.Signals) -> None:
    # Whoever started the tests in the background may have had them ignore Ctrl-C.
    code = "import signal, time; signal.signal(2, signal.default_int_handler); "
    code += "print('begun', flush=True); time.sleep(100)"
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with python("-c", code, **streams, text=True) as process:
        assert isinstance(process, Fork)
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.communicate(timeout=0.01)
        assert process.poll() is None
        process.send_signal(number)
        _, said = process.communicate()
    assert process.returncode == -number
    assert ("KeyboardInterrupt" in said) == (number is signal.SIGINT)


def test_session_of_its_own_is_given_when_asked_for() -> None:
    code = "import os; print(os.getsid(0) == os.getpid())"
    assert run_python("-c", code).stdout == "False\n"
    assert run_python("-c", code, start_new_session=True).stdout == "True\n"


def test_fork_runs_tensorflow_in_threads_of_its_own() -> None:
    code = "import tensorflow as tf; print(len(list(tf.data.Dataset.range(9).prefetch(1))))"
    done = run_python("-c", code)
    assert (done.stdout, done.stderr) == ("9\n", "")


def test_no_fork_where_a_module_may_read_another_environment() -> None:
    with python("-c", "", env={**os.environ, "TF_ENABLE_ONEDNN_OPTS": "0"}) as process:
        assert not isinstance(process, Fork)
    with python("-c", "", env={**os.environ, "MINE": "0"}) as process:
        assert isinstance(process, Fork)


def test_fork_has_read_the_environment_when_a_test_changed_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KERAS_MAX_EPOCHS", "7")
    code = "import keras; print(keras.config.max_epochs())"
    with python("-c", code, stdout=subprocess.PIPE, text=True) as process:
        assert isinstance(process, Fork)
        assert process.communicate()[0] == "7\n"
