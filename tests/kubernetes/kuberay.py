"""KubeRay as the tests need it: it makes pods of RayJobs and tells how they do, one step at a time.

A step is a method: `starts`, `runs`, `completes`, `fails`, and those for pods in trouble. A test calls
them itself, or gives a list of them to `plays`: then each reading of the RayJob makes the next step
happen, so that whoever polls sees them all, in order, and nobody waits for a clock.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from api_server import ApiServer

Object = dict[str, Any]
LABELS = {"app.kubernetes.io/managed-by": "elasticdl"}
IMAGE = "registry.example.com/zoo:1"


def rayjob(
    name: str = "mnist", *, workers: int = 2, image: str = IMAGE, **annotations: str
) -> Object:
    """A small RayJob with a head and one group of workers."""
    labels = {**LABELS, "elasticdl/job": name}

    def template(container: str) -> Object:
        limits = {"cpu": "1", "memory": "2Gi"}
        one = {
            "name": container,
            "image": image,
            "resources": {"limits": limits, "requests": limits},
        }
        return {"metadata": {"labels": labels}, "spec": {"containers": [one]}}

    group = {
        "groupName": "workers",
        "replicas": workers,
        "minReplicas": workers,
        "maxReplicas": workers,
        "rayStartParams": {},
        "template": template("worker"),
    }
    told = {"elasticdl/command": "train", "elasticdl/num_workers": str(workers)}
    told |= {f"elasticdl/{key}": value for key, value in annotations.items()}
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name, "labels": labels, "annotations": told},
        "spec": {
            "entrypoint": "elasticdl train",
            "submissionMode": "K8sJobMode",
            "shutdownAfterJobFinishes": True,
            "rayClusterSpec": {
                "rayVersion": "2.60.0",
                "headGroupSpec": {"rayStartParams": {}, "template": template("head")},
                "workerGroupSpecs": [group],
            },
        },
    }


class KubeRay:
    """The operator of one namespace."""

    def __init__(self, server: ApiServer, namespace: str = "default") -> None:
        self.server, self.namespace = server, namespace
        self._steps: dict[str, list[Callable[[], object]]] = {}
        server.on_read = self._next_step
        server.on_delete = self._take_away

    def plays(self, name: str, steps: Iterable[Callable[[], object]]) -> None:
        """Make one step happen at each reading of a RayJob."""
        self._steps[name] = list(steps)

    def usual(self, name: str, *lines: str) -> list[Callable[[], object]]:
        """The steps of a job with which all goes well, and what its driver prints."""
        return [
            lambda: None,
            lambda: self.starts(name),
            lambda: self.runs(name),
            lambda: self.prints(name, *lines),
            lambda: self.completes(name),
        ]

    # A job's way

    def waits(self, name: str) -> None:
        """It is suspended, as Kueue does with a job until there is room."""
        job = self.server.get("rayjobs", name, self.namespace)
        job["spec"]["suspend"] = True
        self.server.put("rayjobs", job, self.namespace)
        self._status(name, jobDeploymentStatus="Suspended")

    def starts(self, name: str) -> None:
        """The Ray cluster and its pods are there, and do not run yet."""
        job = self.server.get("rayjobs", name, self.namespace)
        if job["spec"].pop("suspend", None):
            self.server.put("rayjobs", job, self.namespace)
        spec = job["spec"]["rayClusterSpec"]
        self.server.put(
            "rayclusters", {"metadata": {"name": f"{name}-abcde"}, "spec": spec}, self.namespace
        )
        self._pod(self.head(name), spec["headGroupSpec"]["template"], name, "head")
        for group in spec["workerGroupSpecs"]:
            for index in range(group["replicas"]):
                pod = f"{name}-abcde-{group['groupName']}-{index}"
                self._pod(pod, group["template"], name, "worker")
        self._status(
            name,
            jobDeploymentStatus="Initializing",
            rayClusterName=f"{name}-abcde",
            startTime=self.server.now(),
        )

    def runs(self, name: str) -> None:
        """All pods run, and a Kubernetes Job shows the driver's output."""
        for pod in self.pods(name):
            self.pod_runs(pod)
        submitter = self.submitter(name)
        template = {
            "metadata": {"labels": {"job-name": name}},
            "spec": {"containers": [{"name": "submitter", "image": IMAGE}]},
        }
        self.server.put("jobs", {"metadata": {"name": name}}, self.namespace)
        self._pod(submitter, template, name, None)
        self.pod_runs(submitter)
        url = f"{name}-abcde-head-svc.{self.namespace}.svc.cluster.local:8265"
        self._status(
            name,
            jobDeploymentStatus="Running",
            jobStatus="RUNNING",
            jobId=f"{name}-xyz",
            dashboardURL=url,
        )

    def prints(self, name: str, *lines: str) -> None:
        self.server.print(self.submitter(name), *lines)

    def completes(self, name: str) -> None:
        self._ends(name, "Succeeded", jobDeploymentStatus="Complete", jobStatus="SUCCEEDED")

    def fails(
        self,
        name: str,
        message: str = "Job entrypoint command failed with exit code 1",
        reason: str = "AppFailed",
    ) -> None:
        self._ends(
            name,
            "Failed",
            jobDeploymentStatus="Failed",
            jobStatus="FAILED",
            message=message,
            reason=reason,
        )

    def is_stopped(self, name: str) -> None:
        self._ends(
            name,
            "Failed",
            jobDeploymentStatus="Failed",
            jobStatus="STOPPED",
            message="Job was intentionally stopped.",
        )

    def tries_again(self, name: str) -> None:
        """It has failed, and has a backoffLimit: the pods go, others will come."""
        self.server.end_log(self.submitter(name))
        for pod in [*self.pods(name), self.submitter(name)]:
            self.server.remove("pods", pod, self.namespace)
        self._status(name, jobDeploymentStatus="Retrying", jobStatus="FAILED")

    def _ends(self, name: str, phase: str, **status: str) -> None:
        pod = self.server.get("pods", self.submitter(name), self.namespace)
        pod["status"]["phase"] = phase
        self.server.put("pods", pod, self.namespace)
        self._status(name, endTime=self.server.now(), **status)
        self.server.end_log(self.submitter(name))
        for ended in self.pods(name):  # shutdownAfterJobFinishes
            self.server.remove("pods", ended, self.namespace)

    # Pods

    def head(self, name: str) -> str:
        return f"{name}-abcde-head"

    def worker(self, name: str, index: int = 0) -> str:
        return f"{name}-abcde-workers-{index}"

    def submitter(self, name: str) -> str:
        return f"{name}-submit"

    def pods(self, name: str) -> list[str]:
        """The pods of the job's Ray cluster."""
        pods = self.server.all("pods", self.namespace)
        return [
            pod["metadata"]["name"]
            for pod in pods
            if pod["metadata"]["labels"].get("ray.io/cluster") == f"{name}-abcde"
        ]

    def pod_runs(self, name: str) -> None:
        self._pod_status(name, {"running": {}}, phase="Running")

    def cannot_pull(self, name: str, reason: str = "ImagePullBackOff") -> None:
        """The image cannot be pulled: the registry's words are in the event before the back-off."""
        said = f'Failed to pull image "{IMAGE}": rpc error: manifest for {IMAGE} not found: manifest unknown'
        self.event(name, "Failed", said)
        message = f'Back-off pulling image "{IMAGE}"'
        if reason == "ErrImagePull":
            message = said.split(": ", 1)[1]
        self._pod_status(name, {"waiting": {"reason": reason, "message": message}})

    def cannot_schedule(
        self, name: str, message: str = "0/3 nodes are available: 3 Insufficient cpu."
    ) -> None:
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "message": message,
        }
        self._pod_status(name, None, conditions=[condition])
        self.event(name, "FailedScheduling", message)

    def is_killed_for_memory(self, name: str) -> None:
        """The container was killed, and waits to be started again."""
        last = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
        waiting = {
            "waiting": {
                "reason": "CrashLoopBackOff",
                "message": "back-off 10s restarting failed container",
            }
        }
        self._pod_status(name, waiting, phase="Running", last=last)

    def crashes(self, name: str, exit_code: int = 1) -> None:
        last = {
            "terminated": {
                "reason": "Error",
                "exitCode": exit_code,
                "message": "No module named 'elasticdl'",
            }
        }
        waiting = {
            "waiting": {
                "reason": "CrashLoopBackOff",
                "message": "back-off 10s restarting failed container",
            }
        }
        self._pod_status(name, waiting, phase="Running", last=last)

    def is_evicted(self, name: str, message: str = "The node was low on resource: memory.") -> None:
        self._pod_status(name, None, phase="Failed", reason="Evicted", message=message)

    def event(self, about: str, reason: str, message: str, kind: str = "Pod") -> None:
        count = len(self.server.all("events", self.namespace))
        self.server.put(
            "events",
            {
                "metadata": {"name": f"{about}.{count}"},
                "involvedObject": {"kind": kind, "name": about},
                "type": "Warning",
                "reason": reason,
                "message": message,
                "lastTimestamp": self.server.now(),
            },
            self.namespace,
        )

    # Inside

    def _pod(self, pod: str, template: Object, job: str, node_type: str | None) -> None:
        labels = dict(template.get("metadata", {}).get("labels", {}))
        if node_type:
            labels |= {"ray.io/cluster": f"{job}-abcde", "ray.io/node-type": node_type}
        made = {
            "metadata": {"name": pod, "labels": labels},
            "spec": copy.deepcopy(template["spec"]),
        }
        self.server.put("pods", {**made, "status": {"phase": "Pending"}}, self.namespace)

    def _pod_status(
        self,
        name: str,
        state: Object | None,
        phase: str = "Pending",
        last: Object | None = None,
        **more: Any,
    ) -> None:
        pod = self.server.get("pods", name, self.namespace)
        pod["status"] = {"phase": phase, **more}
        if state is not None:
            container = pod["spec"]["containers"][0]
            one = {
                "name": container["name"],
                "image": container["image"],
                "state": state,
                "restartCount": 1 if last else 0,
            }
            pod["status"]["containerStatuses"] = [{**one, "lastState": last or {}}]
        self.server.put("pods", pod, self.namespace)

    def _status(self, name: str, **status: str) -> None:
        job = self.server.get("rayjobs", name, self.namespace)
        job["status"] = {**job.get("status", {}), **status}
        self.server.put("rayjobs", job, self.namespace)

    def _next_step(self, name: str) -> None:
        if steps := self._steps.get(name):
            steps.pop(0)()

    def _take_away(self, name: str) -> None:
        self._steps.pop(name, None)
        for pod in [*self.pods(name), self.submitter(name)]:
            self.server.end_log(pod)
            self.server.remove("pods", pod, self.namespace)
        self.server.remove("rayclusters", f"{name}-abcde", self.namespace)
