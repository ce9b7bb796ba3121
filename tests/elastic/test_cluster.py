"""A Ray of a job's own comes and goes without a trace, and one that is there is used and left."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import processes
from elasticdl.runtime.elastic import own_ray
from elasticdl.runtime.elastic.cluster import Cluster, ray_cluster
from elasticdl.runtime.elastic.zoo_files import zoo_environment

ray = pytest.importorskip("ray")


@pytest.fixture(scope="module")
def zoo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    zoo = tmp_path_factory.mktemp("zoo")
    (zoo / "model_of_the_zoo.py").write_text("VERSION = 7\n")
    return zoo


@pytest.fixture(scope="module")
def cluster(zoo: Path) -> Iterator[Cluster]:
    """One Ray for the tests that only look at it."""
    with (
        zoo_environment(zoo) as env,
        ray_cluster(None, num_cpus=3, runtime_env=env, log_level="INFO") as cluster,
    ):
        yield cluster


def look() -> Callable[[], dict[str, Any]]:
    """What a worker sees."""

    def there() -> dict[str, Any]:
        import model_of_the_zoo  # type: ignore[import-not-found]

        return {"names": os.listdir(), "version": model_of_the_zoo.VERSION, **os.environ}

    return there


@pytest.mark.slow
def test_a_ray_of_its_own_is_described(cluster: Cluster) -> None:
    assert cluster.is_own
    assert [cpus for _, cpus in cluster.nodes()] == [3.0]
    assert cluster.node in [name for name, _ in cluster.nodes()]
    assert cluster.runtime_env == {}
    if sys.platform == "linux":
        assert cluster.address.startswith("127.")


def test_a_ray_of_its_own_has_no_process_that_nobody_needs(cluster: Cluster) -> None:
    words = [word for p in psutil.Process().children() for word in p.cmdline()]
    assert any(word.endswith("/gcs_server") for word in words)
    assert not [word for word in words if word.endswith(("monitor.py", "dashboard.py"))]


@pytest.mark.slow
def test_workers_start_among_the_files_of_the_zoo(cluster: Cluster) -> None:
    seen = ray.get(ray.remote(look()).remote())
    assert seen["names"] == ["model_of_the_zoo.py"]
    assert seen["version"] == 7
    assert seen["TF_CPP_MIN_LOG_LEVEL"] == "3"


@pytest.mark.slow
def test_a_ray_that_is_there_is_used_and_left(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "model_of_the_zoo.py").write_text("VERSION = 8\n")
    with (
        zoo_environment(tmp_path) as env,
        ray_cluster(None, num_cpus=1, runtime_env=env, log_level="INFO") as same,
    ):
        assert not same.is_own
        assert same.nodes() == cluster.nodes()
        seen = ray.get(ray.remote(look()).options(runtime_env=same.runtime_env).remote())
        assert seen["version"] == 8
    assert ray.is_initialized()


LIFE = """
import os, signal, sys, tempfile
import psutil
from elasticdl.runtime.elastic import own_ray
from elasticdl.runtime.elastic.cluster import ray_cluster

way = sys.argv[1]
own_ray.FORKS = way == "ends"  # with a nursery and without
def processes():
    return psutil.Process().children(recursive=True)
other = __import__("subprocess").Popen([sys.executable, "-c", "input()"], stdin=-1)
before = dict(os.environ), signal.getsignal(signal.SIGTERM)
try:
    with ray_cluster(None, num_cpus=1, runtime_env=None, log_level="INFO") as cluster:
        assert before == (dict(os.environ), signal.getsignal(signal.SIGTERM))
        import ray

        @ray.remote(num_cpus=0, max_restarts=1, max_task_retries=-1)
        class Actor:
            def pid(self):
                print("a line of a worker")
                return os.getpid()

        actor = Actor.remote()
        first = ray.get(actor.pid.remote())
        os.kill(first, signal.SIGKILL)
        assert ray.get(actor.pid.remote()) != first
        started = processes()
        assert len(started) > 3
        if way == "fails":
            raise KeyError("theirs")
        if way == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)
            signal.pause()
except (KeyError, KeyboardInterrupt) as error:
    print(type(error).__name__)
assert [p.pid for p in processes()] == [other.pid], processes()
assert not [p for p in started if p.pid != other.pid and p.is_running()]
assert os.listdir(tempfile.gettempdir()) == [], os.listdir(tempfile.gettempdir())
other.communicate(b"\\n")
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "said"), [("ends", ""), ("fails", "KeyError\n"), ("interrupted", "KeyboardInterrupt\n")]
)
def test_nothing_is_said_and_nothing_is_left(way: str, said: str, short: Path) -> None:
    ended = processes.run_python(
        "-c", LIFE, way, fork=False, env={**os.environ, "TMPDIR": str(short)}
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, said, "")


@pytest.fixture
def short() -> Iterator[Path]:
    """A temporary directory with a name that is short enough for sockets."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as directory:
        yield Path(directory)


@pytest.mark.slow
def test_processes_are_ended_when_ray_is_interrupted_half_way(short: Path) -> None:
    program = """
import os, signal, sys, threading, time, tempfile
import psutil
from elasticdl.runtime.elastic.cluster import ray_cluster

def interrupt():
    while not any("raylet" in p.name() for p in psutil.Process().children()):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

threading.Thread(target=interrupt).start()
try:
    with ray_cluster(None, num_cpus=1, runtime_env=None, log_level="INFO"):
        print("it came up")
except KeyboardInterrupt:
    print("interrupted")
assert psutil.Process().children(recursive=True) == []
assert os.listdir(tempfile.gettempdir()) == []
"""
    ended = processes.run_python(
        "-c", program, fork=False, env={**os.environ, "TMPDIR": str(short)}
    )
    assert (ended.returncode, ended.stdout) == (0, "interrupted\n"), ended.stderr
    assert "Traceback" not in ended.stderr


def test_only_the_processes_that_know_the_directory_are_its_own(tmp_path: Path) -> None:
    with contextlib.ExitStack() as stack:
        started = []
        for word in (str(tmp_path), "another"):
            process = processes.python("-c", "input()", word, fork=False, stdin=-1)
            stack.callback(process.communicate, b"\n")
            started.append(process)
        found = own_ray._processes(tmp_path)
        assert [process.pid for process in found] == [started[0].pid]
        own_ray._end([])
        assert psutil.pid_exists(started[1].pid)
