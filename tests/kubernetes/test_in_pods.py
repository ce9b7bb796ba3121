"""The command of a manifest, on a Ray that is started as the manifest says: what pods would do, without the pods."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from elasticdl.job.config import JobConfig
from elasticdl.runtime.kubernetes.command import job_task
from elasticdl.runtime.kubernetes.drain import close_node, drain
from elasticdl.runtime.kubernetes.manifest import JobPlan, ray_job
from elasticdl.runtime.kubernetes.request import ClusterRequest
from elasticdl.tracking.events import read_events

pytest.importorskip("ray")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).resolve().parents[2]
ZOO = ROOT / "tests" / "elastic" / "zoo"
IMAGE = "registry.example.com/zoo@sha256:" + "b" * 64
PATIENCE_S = 150
PODS = """
import json, sys, tempfile
from ray.cluster_utils import Cluster

spec = json.loads(sys.argv[1])
with tempfile.TemporaryDirectory(prefix="t-", dir="/tmp", ignore_cleanup_errors=True) as directory:
    head = {"num_cpus": int(spec["headGroupSpec"]["rayStartParams"]["num-cpus"])}
    cluster = Cluster(
        initialize_head=True,
        head_node_args={**head, "include_dashboard": False, "temp_dir": directory},
    )
    for group in spec["workerGroupSpecs"]:
        for _ in range(group["maxReplicas"]):
            cluster.add_node(num_cpus=int(group["rayStartParams"]["num-cpus"]))
    print(cluster.address, flush=True)
    sys.stdin.read()
    cluster.shutdown()
"""
ENVIRONMENT = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}


@contextlib.contextmanager
def pods(spec: dict[str, Any], home: Path) -> Iterator[str]:
    """A Ray of as many nodes as there may be pods, on this machine; gives its address."""
    with subprocess.Popen(
        [sys.executable, "-c", PODS, json.dumps(spec)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **ENVIRONMENT, "HOME": str(home), "DIGESTS": str(home / "digests")},
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


def events(output: Path, kind: str) -> list[dict[str, Any]]:
    file = output / "events.jsonl"
    return [e for e in read_events(file) if e["event"] == kind] if file.exists() else []


def wait_for(what: Any, process: subprocess.Popen[bytes]) -> Any:
    until = time.monotonic() + PATIENCE_S
    while not (found := what()):
        assert process.poll() is None, "the job has ended"
        assert time.monotonic() < until
        time.sleep(0.1)
    return found


def test_the_command_trains_on_the_ray_it_describes_and_a_pod_that_ends_is_drained(
    tmp_path: Path,
) -> None:
    sys.path.insert(0, str(ROOT / "tests" / "elastic"))
    try:
        from jobs import write_records
    finally:
        sys.path.pop(0)
    data = write_records(tmp_path / "train", 2_000)
    output = tmp_path / "run"
    (tmp_path / "digests").mkdir()
    config = JobConfig.parse(
        "train",
        {
            "cluster": "kubernetes",
            "image_name": IMAGE,
            "model_zoo": str(ZOO),
            "model_def": "net.custom_model",
            "data": str(data),
            "output": str(output),
            "minibatch_size": 16,
            "num_epochs": 500,
            "num_workers": "2:3",
            "worker_resource_request": "cpu=500m",
        },
    )
    request = ClusterRequest.of(config)
    task = job_task(config, request)
    plan = JobPlan(name="net", command="train", argv=task.argv, image=IMAGE)
    spec = ray_job(request, plan)["spec"]
    program, *words = shlex.split(spec["entrypoint"])
    assert program == "elasticdl"
    log = tmp_path / "log"
    with pods(spec["rayClusterSpec"], tmp_path) as address, log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", "elasticdl", *words],
            env={
                **os.environ,
                **ENVIRONMENT,
                "RAY_ADDRESS": address,
                "DIGESTS": str(tmp_path / "digests"),
            },
            stdout=said,
            stderr=subprocess.STDOUT,
        )
        try:
            wait_for(lambda: len(events(output, "worker_joined")) == 3, process)
            joined = events(output, "worker_joined")
            assert len({event["node"] for event in joined}) == 3, "one worker in each pod"
            ends = joined[1]
            # What the pod's preStop does, seen from outside of it.
            assert close_node(60, f"--address={address}", f"--node-id={ends['node']}")
            assert drain([ends["pid"]], 60) == []
            wait_for(lambda: events(output, "worker_left"), process)
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 130, log.read_text()
        finally:
            process.kill()
            process.wait()
    assert [event["worker"] for event in events(output, "worker_left")] == [ends["worker"]]
    assert events(output, "worker_lost") == []
    later = [e["node"] for e in events(output, "worker_joined")[3:]]
    assert ends["node"] not in later, "nothing is started in a pod that ends"
    assert all(audit["applied_once"] for audit in events(output, "epoch_audit"))
