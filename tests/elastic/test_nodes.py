"""Nodes of a cluster are lost, come and are taken away, and the training goes on with what there is.

The cluster is what a manifest for Kubernetes describes, on this machine, and the job is the manifest's own command.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs import ZOO, Job, write_records

from elasticdl.job.config import JobConfig
from elasticdl.runtime.kubernetes.command import job_task
from elasticdl.runtime.kubernetes.drain import close_node, drain
from elasticdl.runtime.kubernetes.manifest import JobPlan, ray_job
from elasticdl.runtime.kubernetes.request import ClusterRequest

pytest.importorskip("ray")
pytestmark = pytest.mark.slow

PROGRAM = """
import json, os, sys, tempfile
from ray.cluster_utils import Cluster

os.makedirs("/tmp/ray", exist_ok=True)  # a Cluster writes its address there, and takes it for granted
spec = json.loads(sys.argv[1])
(group,) = spec["workerGroupSpecs"]
cpus = {name: int(part["rayStartParams"]["num-cpus"])
        for name, part in (("head", spec["headGroupSpec"]), ("worker", group))}
with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp", ignore_cleanup_errors=True) as directory:
    head = {"num_cpus": cpus["head"], "include_dashboard": False, "temp_dir": directory}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = [cluster.add_node(num_cpus=cpus["worker"]) for _ in range(group["maxReplicas"])]
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line == "lose\\n":
            cluster.remove_node(nodes.pop(), allow_graceful=False)
        elif line == "add\\n":
            nodes.append(cluster.add_node(num_cpus=cpus["worker"]))
        else:
            break
        print("done", flush=True)
    cluster.shutdown()
"""
GIVEN = ("--model_zoo=", "--output=", "--distribution_strategy=")
"""Flags that `Job` gives itself, with the same values."""
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


@contextlib.contextmanager
def nodes_of(spec: dict[str, Any], home: Path) -> Iterator[Nodes]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, json.dumps(spec)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={
            **os.environ,
            **ENVIRONMENT,
            "HOME": str(home),
            "DIGESTS": str(home / "run-digests"),
        },
    ) as process:
        assert process.stdin is not None
        try:
            yield Nodes(process)
        finally:
            process.stdin.close()


def manifest(data: Path, output: Path) -> dict[str, Any]:
    values = {
        "cluster": "kubernetes",
        "image_name": "an.image/with:all",
        "model_zoo": str(ZOO),
        "model_def": "net.custom_model",
        "training_data": str(data),
        "output": str(output),
        "volume": f"claim_name=shared,mount_path={output.parent}",
        "minibatch_size": 16,
        "num_epochs": 500,
        "num_workers": "1:2",
        "worker_resource_request": "cpu=500m",
    }
    config = JobConfig.parse("train", values)
    request = ClusterRequest.of(config)
    argv = job_task(config, request).argv
    return ray_job(request, JobPlan(name="net", command="train", argv=argv, image="an.image"))


def test_a_node_that_is_taken_away_is_drained_another_one_comes_and_is_lost(tmp_path: Path) -> None:
    data = write_records(tmp_path / "train", 2_000)
    spec = manifest(data, tmp_path / "run")["spec"]
    program, command, *flags = shlex.split(spec["entrypoint"])
    assert (program, command) == ("elasticdl", "train")
    own = [flag for flag in flags if not flag.startswith(GIVEN)]
    with nodes_of(spec["rayClusterSpec"], tmp_path) as nodes:
        env = {**ENVIRONMENT, "RAY_ADDRESS": nodes.address}
        with Job(tmp_path / "run", *own, env=env) as job:
            job.wait_for_workers(2)
            joined = job.events("worker_joined")
            assert len({event["node"] for event in joined}) == 2, "one in each"
            job.wait_for_steps(10)
            # What a pod does before it ends, seen from outside of it.
            ends = joined[1]
            where = (f"--address={nodes.address}", f"--node-id={ends['node']}")
            assert close_node(60, *where)
            assert drain([ends["pid"]], 60) == []
            job.wait_until(lambda: job.events("worker_left"), "a worker leaves")
            job.wait_for_workers(1)
            job.wait_for_steps(10)
            nodes.tell("add")
            job.wait_for_workers(2)
            job.wait_for_steps(10)
            nodes.tell("lose")
            job.wait_for_workers(1)
            job.wait_for_steps(10)
            job.process.send_signal(2)
            job.end(130)
    job.check_replicas()
    assert job.check_audits(2_000) > 0
    (left,) = job.events("worker_left")
    assert left["worker"] == ends["worker"]
    successor = job.events("worker_joined")[2]
    assert successor["node"] not in {event["node"] for event in joined}, "on the node that came"
    assert successor["worker"] in {event["worker"] for event in job.events("worker_lost")}
