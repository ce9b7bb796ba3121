"""Workers are forks of a process that has TensorFlow loaded, and start by themselves where it is gone."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from elasticdl.runtime.elastic.nursery import FORKS, Nursery
from processes import run_python

pytestmark = pytest.mark.skipif(not FORKS, reason="workers are not forks here")

ACTOR = """
import json, os, sys
import psutil
from elasticdl.runtime.elastic.cluster import ray_cluster

def new_actor():
    import ray

    @ray.remote(num_cpus=0)
    class Actor:
        def facts(self):
            import numpy as np

            was_loaded = "tensorflow" in sys.modules
            import tensorflow as tf  # a fork can use it

            return {
                "pid": os.getpid(),
                "parent": os.getppid(),
                "was_loaded": was_loaded,
                "sum": int(tf.reduce_sum(tf.range(5))),
                "drawn": float(np.random.random()),
                "variable": os.environ.get("GIVEN"),
                "first_to_go": open("/proc/self/oom_score_adj").read().strip(),
            }

    return Actor.remote()

def opened():
    return ray_cluster(None, num_cpus=1, runtime_env={"env_vars": {"GIVEN": "yes"}})
"""

KILLED = f"""{ACTOR}
import ray

with opened():
    one, other = new_actor(), new_actor()
    both = ray.get([one.facts.remote(), other.facts.remote()])
    os.kill(both[0]["parent"], 9)
    after = ray.get([one.facts.remote(), other.facts.remote()])
    later = ray.get(new_actor().facts.remote())
print(json.dumps([both, after, later]))
"""

WAITS = f"""{ACTOR}
import ray

with opened():
    facts = ray.get(new_actor().facts.remote())
    print(json.dumps(facts), flush=True)
    input()
"""


def test_workers_are_forks_and_others_come_when_the_nursery_is_gone() -> None:
    done = run_python("-c", KILLED, fork=False)
    assert done.returncode == 0, done.stderr
    both, after, later = json.loads(done.stdout)
    one, other = both
    assert one["parent"] == other["parent"]
    assert one["pid"] != other["pid"]
    assert one["drawn"] != other["drawn"]
    for facts in both:
        assert facts["was_loaded"]
        assert facts["variable"] == "yes"
        assert facts["first_to_go"] == "1000"
    assert [facts["pid"] for facts in after] == [one["pid"], other["pid"]]
    assert not later["was_loaded"]
    assert [facts["sum"] for facts in (*both, *after, later)] == [10] * 5


def test_a_directory_may_have_any_name(tmp_path: Path) -> None:
    directory = tmp_path / "a b; $(c)"
    directory.mkdir()
    nursery = Nursery(directory, {})
    nursery.end()
    assert shlex.split(nursery.command)[-1] == str(directory / "n")


@pytest.fixture
def waiting() -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", WAITS]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, text=True, **pipes) as process:  # type: ignore[call-overload]
        yield process
        process.kill()


def test_nothing_is_left_when_the_command_is_killed(waiting: subprocess.Popen[str]) -> None:
    assert waiting.stdout is not None
    facts = json.loads(waiting.stdout.readline())
    worker, nursery = psutil.Process(facts["pid"]), psutil.Process(facts["parent"])
    assert "elasticdl.runtime.elastic.nursery" in nursery.cmdline()
    directory = Path(nursery.cmdline()[-1]).parent
    waiting.send_signal(signal.SIGKILL)
    _, alive = psutil.wait_procs([worker, nursery], timeout=30)
    assert not alive
    # Ray ends its own processes when it misses the one that started them.
    left = [p for p in psutil.process_iter(["cmdline"]) if str(directory) in str(p.info)]
    _, alive = psutil.wait_procs(left, timeout=60)
    assert not alive
