"""Nodes of a cluster are lost and come, and the training goes on with what there is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs import Job, write_records

pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """
import sys, tempfile
from ray.cluster_utils import Cluster

with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp", ignore_cleanup_errors=True) as directory:
    head = {"num_cpus": 0, "include_dashboard": False, "temp_dir": directory}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line == "lose\\n":
            cluster.remove_node(nodes.pop(), allow_graceful=False)
        elif line == "add\\n":
            nodes.append(cluster.add_node(num_cpus=1))
        else:
            break
        print("done", flush=True)
    cluster.shutdown()
"""
ENVIRONMENT = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


class Nodes:
    """A cluster of nodes on this machine, in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None and process.stdout is not None
        self._said, self._heard = process.stdin, process.stdout
        self.address = self._heard.readline().strip()

    def tell(self, order: str) -> None:
        self._said.write(f"{order}\n")
        self._said.flush()
        assert self._heard.readline() == "done\n"


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[Nodes]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={
            **os.environ,
            **ENVIRONMENT,
            "HOME": str(tmp_path),
            "DIGESTS": str(tmp_path / "run-digests"),
        },
    ) as process:
        yield Nodes(process)
        assert process.stdin is not None
        process.stdin.close()


def test_a_node_is_lost_and_another_one_comes(tmp_path: Path, nodes: Nodes) -> None:
    data = write_records(tmp_path / "train", 2_000)
    job = Job(
        tmp_path / "run",
        "--model_def=net.custom_model",
        f"--training_data={data}",
        "--minibatch_size=16",
        "--num_epochs=500",
        "--num_workers=1:2",
        "--worker_resource_request=cpu=1",
        f"--ray_address={nodes.address}",
        env=ENVIRONMENT,
    )
    try:
        job.wait_for_workers(2)
        job.wait_for_steps(10)
        nodes.tell("lose")
        job.wait_for_workers(1)
        job.wait_for_steps(10)
        nodes.tell("add")
        job.wait_for_workers(2)
        job.wait_for_steps(10)
        job.process.send_signal(2)
        job.end(130)
    finally:
        job.process.kill()
    job.check_replicas()
    assert job.check_audits(2_000) > 0
    joined = {event["worker"] for event in job.events("worker_joined")}
    assert len(joined & {event["worker"] for event in job.events("worker_lost")}) == 1
