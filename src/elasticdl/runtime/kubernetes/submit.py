"""A job on Kubernetes, from its options to its end: an image, a manifest, a submission, and what comes of it."""

from __future__ import annotations

import importlib.metadata
import re
import secrets
import shlex
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elasticdl.errors import ElasticDLError, InvalidValue, RunError, Stopped
from elasticdl.job.config import JobConfig, options
from elasticdl.runtime.kubernetes.checks import check_name
from elasticdl.runtime.kubernetes.coming_back import Detached
from elasticdl.runtime.kubernetes.command import Task, as_flag, job_task
from elasticdl.runtime.kubernetes.manifest import JobPlan, ray_job, ray_secret
from elasticdl.runtime.kubernetes.pod_changes import load_pod_changes
from elasticdl.runtime.kubernetes.request import ClusterRequest
from elasticdl.runtime.result import Result
from elasticdl.storage import storage_errors

if TYPE_CHECKING:
    from elasticdl.runtime.kubernetes.client import Cluster
    from elasticdl.runtime.kubernetes.image import ImagePlan

__all__ = ["run", "submit"]

Facts = tuple[tuple[str, str], ...]

STDOUT = "-"
BASE_NAME_MAX = 36
"""With what is added to it a name that KubeRay takes."""


def run(config: JobConfig, objects: Mapping[str, Any]) -> Result:
    """Of `train`, `evaluate` and `predict`.

    Raises:
      InvalidValue: what was asked for cannot be done there.
      RunError: the image, the submission or the job failed.
    """
    if objects:
        names = ", ".join(sorted(objects))
        raise InvalidValue(
            f"Invalid {names} with cluster: it is an object of this process, and pods have files alone. "
            "Put the model into a file of the model zoo and the data into a bucket or a volume."
        )
    request = ClusterRequest.of(config)
    return submit(config, request, job_task(config, request))


def submit(config: JobConfig, request: ClusterRequest, task: Task) -> Result:
    """Send a task to a cluster, and follow it to its end if nothing else is said."""
    return _Submission(config, request, task).run()


@dataclass(frozen=True)
class _Submission:
    config: JobConfig
    request: ClusterRequest
    task: Task

    def run(self) -> Result:
        config = self.config
        name = config.job_name or _fresh_name(self.task.base_name)
        check_name(name)
        with_pod = load_pod_changes(config.cluster_spec)
        if config.print_dockerfile:
            from elasticdl.runtime.kubernetes.image import dockerfile

            return self._result("printed", text=dockerfile(self._image_plan()))
        if config.yaml is not None:
            return self._written(self._plan(name, self._image(name), with_pod))
        from elasticdl.runtime.kubernetes.client import connect

        with connect(self.request.context, self.request.namespace) as cluster:
            cluster.check(name)
            self._check_secrets(cluster)
            if config.dry_run:
                image = self._known_image() or str(config.docker_image_repository)
                cluster.create(
                    ray_job(self.request, self._plan(name, image, with_pod)), dry_run=True
                )
                said = f"The cluster takes the job {name!r} (namespace {cluster.namespace}). Nothing was submitted."
                return self._result("checked", text=said)
            plan = self._plan(name, self._image(name), with_pod)
            self._create(cluster, plan)
            return self._follow(cluster, plan)

    # --- the image ---

    def _known_image(self) -> str | None:
        """The user's own, or the one that the model was trained in; None where one is to be built."""
        config = self.config
        if config.image_name is not None:
            return config.image_name
        if config.docker_image_repository is not None:
            from elasticdl.runtime.kubernetes.image import check_repository

            check_repository(config.docker_image_repository)
            return None
        if self.task.trained_in is not None:
            return _pullable(self.task.trained_in)
        raise InvalidValue(
            "Pods need an image. Give --docker_image_repository, a repository that one may be built for and pushed "
            f"to, or --image_name with one that has ElasticDL and the model files in it.{self._hint}"
        )

    def _image(self, name: str) -> str:
        config = self.config
        if (known := self._known_image()) is not None:
            return known
        plan = self._image_plan()
        assert config.docker_image_repository is not None
        from elasticdl.runtime.kubernetes.image import DockerEngine, build_and_push

        engine = DockerEngine(
            base_url=config.docker_base_url,
            tlscert=config.docker_tlscert,
            tlskey=config.docker_tlskey,
        )
        return build_and_push(plan, config.docker_image_repository, name, engine, _say)

    def _image_plan(self) -> ImagePlan:
        from elasticdl.runtime.kubernetes.image import ImagePlan, default_base

        config = self.config
        base = config.image_base or _pullable(self.task.trained_in or "") or default_base()
        return ImagePlan(
            base=base,
            zoo=self.task.zoo,
            extra_index=config.extra_pypi_index,
            include=tuple(filter(None, (config.image_include or "").split(","))),
        )

    @property
    def _hint(self) -> str:
        if self.task.command == "train" or self.config.trained_model is None:
            return ""
        return (
            " The trained model could not be read from here, or was trained outside of an image; one that was trained "
            "in a cluster names its image."
        )

    # --- the job ---

    def _plan(self, name: str, image: str, with_pod: Any) -> JobPlan:
        return JobPlan(
            name=name,
            command=self.task.command,
            argv=self.task.argv,
            image=image,
            ray_version=_ray_version() if self.config.image_name is None else None,
            output=self.task.output,
            flags=_flags(self.config),
            secrets=self.task.secrets,
            secret_name=f"{name}-{secrets.token_hex(3)}",
            with_pod=with_pod,
        )

    def _written(self, plan: JobPlan) -> Result:
        import yaml

        text = yaml.safe_dump(ray_job(self.request, plan), sort_keys=False, width=110)
        steps = self._next(plan)
        if self.config.yaml == STDOUT:
            for purpose, command in steps:
                _say(f"To {purpose}: {command}")
            return self._result("written", text=text)
        file = Path(str(self.config.yaml)).expanduser()
        with storage_errors(str(file)):
            file.write_text(text, encoding="utf-8")
        submit = ("submit it", f"kubectl create -f {shlex.quote(str(file))}")
        return self._result(
            "written", facts=(("manifest", str(file)),), next_steps=(*steps, submit)
        )

    def _next(self, plan: JobPlan) -> Facts:
        """What a manifest needs beside itself: secrets are never in a file."""
        if not plan.secrets:
            return ()
        given = " ".join(f"--from-literal={key}=..." for key in plan.secrets)
        namespace = f" -n {self.request.namespace}" if self.request.namespace else ""
        command = f"kubectl create secret generic {plan.secret_name}{namespace} {given}"
        return (("give it its secrets first", command),)

    def _check_secrets(self, cluster: Cluster) -> None:
        if self.task.secrets and not cluster.may("create", "secrets"):
            raise RunError(
                f"You may not create Secrets in the namespace {cluster.namespace!r}, and the job needs one for "
                f"{', '.join(self.task.secrets)}. Ask whoever runs the cluster for the rights in deploy/rbac.yaml."
            )

    def _create(self, cluster: Cluster, plan: JobPlan) -> None:
        secret = ray_secret(self.request, plan)
        if secret is None:
            cluster.create(ray_job(self.request, plan))
            return
        try:
            created = cluster.create(ray_job(self.request, plan))
        except Detached as stopped:  # it is there, and would wait for its Secret for ever
            _take_away(cluster, plan.name, stopped)
            raise Stopped(
                f"The job {plan.name} was taken away again: it had no Secret yet."
            ) from stopped
        owner = {
            "apiVersion": "ray.io/v1",
            "kind": "RayJob",
            "name": plan.name,
            "uid": created["metadata"]["uid"],
        }
        secret["metadata"]["ownerReferences"] = [owner]  # it goes with the job
        try:
            cluster.create_secret(secret)
        except BaseException as error:
            _take_away(cluster, plan.name, error)
            raise

    def _follow(self, cluster: Cluster, plan: JobPlan) -> Result:
        from elasticdl.runtime.kubernetes.follow import follow

        began = time.monotonic()
        _say(
            f"Submitted the job {plan.name} to {cluster.context or cluster.host}, namespace {cluster.namespace}."
        )
        steps = _come_back(plan.name, cluster)
        facts: Facts = (("job", plan.name), ("namespace", cluster.namespace), ("image", plan.image))
        if self.config.detach:
            return self._result("submitted", facts=facts, next_steps=steps)
        _say(f"Ctrl-C leaves it running. Come back with: {steps[0][1]}")
        state = follow(cluster, plan.name, _say)
        if not state.succeeded:
            more = f" See more with: {steps[0][1]}" if state.phase == "failed" else ""
            raise RunError(f"The job {plan.name} {state.phase}: {state.message}{more}")
        if plan.output is not None:
            facts = (*facts, ("output", plan.output))
        return self._result("completed", facts=facts, seconds=time.monotonic() - began)

    def _result(self, status: str, **more: Any) -> Result:
        return Result(command=self.task.command, status=status, elsewhere=True, **more)


_OF_THIS_TIME = (
    "cluster",
    "namespace",
    "yaml",
    "dry_run",
    "detach",
    "print_dockerfile",
    "image_name",
    "image_base",
    "image_include",
    "extra_pypi_index",
    "docker_image_repository",
    "docker_base_url",
    "docker_tlscert",
    "docker_tlskey",
)
"""Options for Kubernetes that another submission of the same job says anew."""


def _flags(config: JobConfig) -> tuple[str, ...]:
    """What was asked of the cluster, as it was."""
    return tuple(
        as_flag(option.name, getattr(config, option.name))
        for option in options("train")
        if option.name in config.given
        and (option.kubernetes or option.name in ("num_workers", "worker_resource_request"))
        and option.name not in _OF_THIS_TIME
    )


def _take_away(cluster: Cluster, name: str, error: BaseException) -> None:
    """Delete a job that cannot start; if that fails too, the error says so beside its own words."""
    try:
        cluster.delete(name)
    except ElasticDLError:
        error.add_note(
            f"The job {name} is there and cannot start. Take it away with: kubectl delete rayjob {name} "
            f"-n {cluster.namespace}"
        )


def _come_back(name: str, cluster: Cluster) -> tuple[tuple[str, str], ...]:
    where = f"{name} --cluster={shlex.quote(cluster.flag)} --namespace={cluster.namespace}"
    return (
        ("see its output", f"elasticdl jobs logs -f {where}"),
        ("see how it is", f"elasticdl jobs status {where}"),
        ("stop it", f"elasticdl jobs stop {where}"),
    )


def _fresh_name(base: str) -> str:
    """A name that is free, most likely: the model's, and something of its own."""
    plain = re.sub(r"[^a-z0-9]+", "-", base.lower()).strip("-")[:BASE_NAME_MAX].strip("-")
    if not plain or not plain[0].isalpha():
        plain = f"job-{plain}".strip("-")
    return f"{plain}-{secrets.token_hex(3)}"


def _pullable(image: str) -> str:
    """The name by which an engine pulls it; Kubernetes' own reports have a scheme before it."""
    return image.removeprefix("docker-pullable://")


def _ray_version() -> str | None:
    try:
        return importlib.metadata.version("ray")
    except importlib.metadata.PackageNotFoundError:
        return None


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
