"""Addresses of a Ray: which are understood, and what is said when nobody is there."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from jobs import Job, write_records

import processes
from elasticdl.errors import InvalidValue, RunError
from elasticdl.runtime.elastic import cluster
from elasticdl.runtime.elastic.cluster import ray_cluster

ray = pytest.importorskip("ray")


@pytest.mark.parametrize(
    "address", ["http://host:1", "nowhere", "host:port", "ray://", ":6379", "me@host:1", "h:1/x"]
)
def test_an_address_is_refused_when_it_is_of_no_known_form(address: str) -> None:
    with (
        pytest.raises(InvalidValue, match=r"Invalid ray_address .* Give auto, host:port or"),
        ray_cluster(address, num_cpus=1, runtime_env=None, log_level="INFO"),
    ):
        pass


@pytest.mark.parametrize("scheme", ["", "ray://"])
def test_an_address_where_nobody_answers_is_named(scheme: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"{scheme}127.0.0.1:{taken.getsockname()[1]}"
        with (
            pytest.raises(RunError, match=f"No Ray answers at {address}: Connection refused"),
            ray_cluster(address, num_cpus=1, runtime_env=None, log_level="INFO"),
        ):
            pass


def test_an_address_of_something_else_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "ANSWER_S", 0.3)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        with (
            pytest.raises(RunError, match=f"{address}: what listens there is something else"),
            ray_cluster(address, num_cpus=1, runtime_env=None, log_level="INFO"),
        ):
            pass


@dataclass(frozen=True)
class Theirs:
    """A cluster of two nodes that somebody else started."""

    address: str
    client_port: int
    """Of Ray's client server."""


@pytest.fixture(scope="module")
def theirs() -> Iterator[Theirs]:
    program = """
import os, sys, tempfile
from ray.cluster_utils import Cluster

os.makedirs("/tmp/ray", exist_ok=True)  # a Cluster writes its address there, and takes it for granted
with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp", ignore_cleanup_errors=True) as directory:
    node = {"num_cpus": 1, "include_dashboard": False, "temp_dir": directory}
    node["ray_client_server_port"] = int(sys.argv[1])
    cluster = Cluster(initialize_head=True, head_node_args=node)
    cluster.add_node(num_cpus=1)
    print(cluster.address, flush=True)
    sys.stdin.readline()
    cluster.shutdown()
"""
    with tempfile.TemporaryDirectory() as home:
        port = _free_port()
        env = {**os.environ, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
        with subprocess.Popen(
            [sys.executable, "-c", program, str(port)],
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL},
            text=True,
            env={**env, "HOME": home},
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            yield Theirs(process.stdout.readline().strip(), port)
            process.stdin.write("\n")


@pytest.mark.slow
@pytest.mark.parametrize("by_name", [False, True])
def test_a_cluster_that_is_there_is_attached_to_and_left(
    theirs: Theirs, by_name: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    address = theirs.address
    monkeypatch.setenv("RAY_ADDRESS", address)  # where `auto` leads
    env = {"env_vars": {"FROM_THE_JOB": "1"}}
    with ray_cluster("auto" if by_name else address, num_cpus=9, runtime_env=env) as attached:
        assert (attached.is_own, attached.address) == (False, address)
        assert [cpus for _, cpus in attached.nodes()] == [1.0, 1.0]
        assert attached.node in [name for name, _ in attached.nodes()]
        assert ray.get(ray.remote(lambda: os.environ["FROM_THE_JOB"]).remote()) == "1"
    assert not ray.is_initialized()
    host, _, port = address.partition(":")
    socket.create_connection((host, int(port)), timeout=5).close()


@pytest.mark.slow
def test_no_node_is_taken_for_this_machine_behind_rays_client(theirs: Theirs) -> None:
    """Processes of a node that is another machine must not be looked for, and ended, here."""
    program = """
import sys
from elasticdl.runtime.elastic.cluster import ray_cluster
with ray_cluster(sys.argv[1], num_cpus=1) as attached:
    print(len(attached.nodes()), attached.node)
"""
    words = ("-c", program, f"ray://127.0.0.1:{theirs.client_port}")
    done = processes.run_python(*words, env={"RAY_AUTH_MODE": "disabled"})
    assert done.stdout.splitlines()[-1:] == ["2 None"], done.stderr


@pytest.mark.slow
def test_a_job_by_rays_client_replaces_its_workers_and_is_stopped(
    theirs: Theirs, tmp_path: Path
) -> None:
    flags = (
        "--model_def=net.custom_model",
        f"--training_data={write_records(tmp_path / 'train', 400)}",
        "--minibatch_size=8",
        "--num_epochs=1000",
        "--num_workers=2",
        f"--ray_address=ray://127.0.0.1:{theirs.client_port}",
    )
    with Job(tmp_path / "run", *flags, env={"RAY_AUTH_MODE": "disabled"}) as job:
        job.wait_for_workers(2)
        first = job.workers
        job.kill([*first][:1])
        job.wait_until(lambda: len(job.events("worker_joined")) == 3, "another worker")
        job.wait_for_workers(2)
        epochs = len(job.events("epoch_audit"))
        job.wait_until(lambda: len(job.events("epoch_audit")) > epochs, "an epoch of both")
        alive = [psutil.Process(pid) for pid in job.workers.values()]
        job.process.send_signal(signal.SIGINT)
        job.end(130)
    assert job.check_audits(400) > 0
    assert [event["worker"] for event in job.events("worker_lost")] == [*first][:1]
    _, left = psutil.wait_procs(alive, timeout=30)  # their raylets end them, which are not ours
    assert len(alive) == 2 and not left


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize(
    ("error", "printed", "said"),
    [
        (ConnectionError("Could not find any"), "", "there is no Ray on this machine. Start one"),
        (RuntimeError("Version mismatch: 2.1 is not 2.2"), "", "Install the same ones here and"),
        (RuntimeError("x"), "W gcs_client.cc: Unauthenticated: RPC", "needs the cluster's token"),
        (ImportError("grpc"), "", "pip install 'ray[client]'"),
        (RuntimeError("It is\n broken."), "", "Cannot attach to the Ray at auto: It is broken."),
    ],
)
def test_what_ray_says_is_explained(error: Exception, printed: str, said: str) -> None:
    assert said in str(cluster._explained("auto", error, printed))
