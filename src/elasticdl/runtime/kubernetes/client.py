"""The API server's side: every call to a cluster goes through `Cluster`, and each has an end in time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from elasticdl.errors import InvalidValue, RunError, UnknownName, nearest
from elasticdl.runtime.kubernetes import checks
from elasticdl.runtime.kubernetes.access import (
    Access,
    find_access,
    import_kubernetes,
    without_password,
)
from elasticdl.runtime.kubernetes.creation import created
from elasticdl.runtime.kubernetes.driver_log import DriverLog
from elasticdl.runtime.kubernetes.refusals import Refused, no_api, spoken
from elasticdl.runtime.kubernetes.remote_command import COMMAND_S, run_in_pod
from elasticdl.runtime.kubernetes.worker_groups import change_of_group

__all__ = ["Cluster", "Look", "Object", "connect"]

Object = dict[str, Any]
"""An object of Kubernetes, as its JSON."""
Objects = list[Object]

ANSWER_S = 10.0
"""How long the server may take to answer."""
CREATE_S = 60.0
"""The same for a new job: others may have a say in it (admission webhooks)."""


@dataclass(frozen=True)
class Look:
    """A RayJob, its pods, and what Kubernetes tells of them: what `words.told` takes."""

    job: Object
    pods: Objects
    events: Objects


OURS = "app.kubernetes.io/managed-by=elasticdl"


def connect(context: str | None = None, namespace: str | None = None) -> Cluster:
    """A cluster to talk to. Nothing is asked of it yet.

    Args:
      context: a context of the kubeconfig; None takes the current one, or the pod's own cluster.
      namespace: where the jobs are; None takes the context's.

    Raises:
      MissingPackage: the package kubernetes is not installed.
      NotFound: there is no kubeconfig.
      UnknownName: the kubeconfig has no such context.
    """
    return Cluster(find_access(context), namespace)


class Cluster:
    """A namespace of a cluster, and the jobs in it.

    Attributes:
      namespace: where the jobs are.
      context: the kubeconfig's context; None inside of a cluster.
      host: the API server's address, without a password.

    Every method may raise Unreachable, and Refused with the server's words.
    """

    def __init__(self, access: Access, namespace: str | None = None) -> None:
        self.context = access.context
        self.namespace = access.namespace if namespace is None else namespace
        checks.check_namespace_name(self.namespace)
        self.host: str = without_password(access.configuration.host)
        self.configuration = access.configuration
        kubernetes = import_kubernetes()
        if not self.configuration.verify_ssl:  # the user's own choice in the kubeconfig
            urllib3 = import_kubernetes("client.rest").urllib3
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
        self._client = kubernetes.ApiClient(self.configuration)
        self.core = kubernetes.CoreV1Api(self._client)
        self._custom = kubernetes.CustomObjectsApi(self._client)
        self._kubernetes = kubernetes

    def close(self) -> None:
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def flag(self) -> str:
        """The value of --cluster that leads here."""
        return f"kubernetes:{self.context}" if self.context else "kubernetes"

    # Before a job is submitted

    def check(self, name: str) -> None:
        """Refuse a submission that cannot work, with the command that mends it.

        Raises:
          InvalidValue: the job's name is of the wrong form, or taken.
          UnknownName: the namespace does not exist.
          RunError: no answer, no trust, bad credentials, no KubeRay, or no right to create RayJobs.
        """
        checks.check_submission(self, name)

    def version(self) -> str:
        """The version of the server's Kubernetes."""
        api = self._kubernetes.VersionApi(self._client)
        return str(self._ask("ask for the version", api.get_code).get("gitVersion", ""))

    def has_namespace(self) -> bool:
        doing = f"read the namespace {self.namespace!r}"
        return self._is_there(doing, self.core.read_namespace, self.namespace)

    def has_kuberay(self) -> bool:
        return self._is_there(
            "list the kinds of ray.io", self._custom.get_api_resources, "ray.io", "v1"
        )

    def may(self, verb: str, resource: str, *, group: str = "", subresource: str = "") -> bool:
        """Whether the user has a right in this namespace."""
        wanted = {"namespace": self.namespace, "verb": verb, "resource": resource, "group": group}
        if subresource:
            wanted["subresource"] = subresource
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": wanted},
        }
        api = self._kubernetes.AuthorizationV1Api(self._client)
        answer = self._ask("ask for rights", api.create_self_subject_access_review, review)
        return bool(answer.get("status", {}).get("allowed"))

    # Jobs

    def create(self, manifest: Mapping[str, Any], dry_run: bool = False) -> Object:
        """Create a RayJob, or let the server look at it only.

        Raises:
          InvalidValue: the server refuses what is in it, or has a RayJob of this name.
        """
        name = manifest["metadata"]["name"]
        checks.check_job(name)
        try:
            if dry_run:
                return self._create(manifest, dry_run="All")
            return created(self, manifest, lambda: self._create(manifest))
        except Refused as error:
            if error.status == 409:
                raise checks.name_taken(name, self) from error
            if error.status in (400, 422):
                raise InvalidValue(
                    f"The cluster refuses the RayJob {name!r}: {error.said}"
                ) from error
            raise

    def _create(self, manifest: Mapping[str, Any], **options: str) -> Object:
        return self._ask(
            f"create the RayJob {manifest['metadata']['name']!r}",
            self._custom.create_namespaced_custom_object,
            *self._rayjobs,
            dict(manifest),
            has="metadata",
            # Strict: a misspelt field would be dropped without a word.
            field_validation="Strict",
            _request_timeout=CREATE_S,
            **options,
        )

    def get(self, name: str) -> Object:
        """A RayJob.

        Raises:
          InvalidValue: it can be no name.
          UnknownName: there is none of this name.
        """
        job = self.find(name)
        if job is None:
            known = [job["metadata"]["name"] for job in self.list()]
            raise UnknownName(
                f"Unknown job {name!r} in the namespace {self.namespace!r}. {nearest(name, known)}".rstrip()
            )
        return job

    def find(self, name: str) -> Object | None:
        """A RayJob; None where there is none of this name."""
        checks.check_job(name)
        call = self._custom.get_namespaced_custom_object
        try:
            return self._ask(
                f"read the RayJob {name!r}", call, *self._rayjobs, name, has="metadata"
            )
        except Refused as error:
            if error.status != 404:
                raise
            return None

    def has_job(self, name: str) -> bool:
        return self.find(name) is not None

    def list(self) -> Objects:
        """All RayJobs that ElasticDL has submitted, oldest first.

        Raises:
          RunError: the cluster has no KubeRay.
        """
        call = self._custom.list_namespaced_custom_object
        try:
            answer = self._ask(
                "list RayJobs", call, *self._rayjobs, has="items", label_selector=OURS
            )
        except Refused as error:
            if error.status == 404:
                raise checks.no_kuberay(self) from error
            raise
        return sorted(answer["items"], key=_age)

    def delete(self, name: str) -> None:
        """Take a RayJob away, with its pods.

        Raises:
          UnknownName: there is none of this name.
        """
        self.get(name)
        call = self._custom.delete_namespaced_custom_object
        self._ask(
            f"delete the RayJob {name!r}",
            call,
            *self._rayjobs,
            name,
            propagation_policy="Foreground",
        )

    def patch(self, name: str, change: Mapping[str, Any]) -> Object:
        """Merge a change into a RayJob."""
        checks.check_job(name)
        call = self._custom.patch_namespaced_custom_object
        return self._ask(f"change the RayJob {name!r}", call, *self._rayjobs, name, dict(change))

    def create_secret(self, manifest: Mapping[str, Any]) -> Object:
        name = manifest["metadata"]["name"]
        call = self.core.create_namespaced_secret
        return self._ask(f"create the Secret {name!r}", call, self.namespace, dict(manifest))

    # What a job consists of

    def pods(self, name: str) -> Objects:
        """The pods of a job, oldest first: head, workers, and the one that shows the driver's output."""
        return self._pods(self.find(name) or {"metadata": {"name": name}})

    def _pods(self, job: Object) -> Objects:
        """By the labels of ElasticDL, which a user's `with_pod` may have taken away, of KubeRay and of Kubernetes."""
        name = job["metadata"]["name"]
        selectors = [f"elasticdl/job={name}", f"job-name={name}"]
        if ray_cluster := (job.get("status") or {}).get("rayClusterName"):
            selectors.append(f"ray.io/cluster={ray_cluster}")
        found: dict[str, Object] = {}
        for selector in selectors:
            found |= {pod["metadata"]["name"]: pod for pod in self._pods_with(selector)}
        return sorted(found.values(), key=_age)

    def _pods_with(self, labels: str) -> Objects:
        call = self.core.list_namespaced_pod
        answer = self._ask("list pods", call, self.namespace, has="items", label_selector=labels)
        return sorted(answer["items"], key=_age)

    def head_pod(self, name: str) -> Object | None:
        """The newest head pod of a job."""
        heads = [pod for pod in self.pods(name) if _label(pod, "ray.io/node-type") == "head"]
        return heads[-1] if heads else None

    def submitter_pod(self, name: str) -> Object | None:
        """The newest pod that shows the driver's output."""
        checks.check_job(name)
        found = self._pods_with(f"job-name={name}")
        return found[-1] if found else None

    def pod(self, pod: str) -> Object | None:
        """A pod as it is now; None when it is gone."""
        try:
            return self._ask(
                f"read the pod {pod!r}", self.core.read_namespaced_pod, pod, self.namespace
            )
        except Refused as error:
            if error.status != 404:
                raise
            return None

    def look(self, name: str) -> Look:
        """A job as it is now, with all that tells how it is.

        Raises:
          UnknownName: there is none of this name.
        """
        job = self.get(name)
        pods = self._pods(job)
        about = {name, (job.get("status") or {}).get("rayClusterName", name)}
        return Look(job, pods, self._events(about | {pod["metadata"]["name"] for pod in pods}))

    def events(self, name: str) -> Objects:
        """What Kubernetes tells of a job and its pods, oldest first; nothing where it may not be read."""
        return self.look(name).events

    def _events(self, about: set[str]) -> Objects:
        try:
            call = self.core.list_namespaced_event
            items = self._ask("list events", call, self.namespace, has="items")["items"]
        except Refused as error:
            if error.status != 403:
                raise
            return []
        return sorted(
            (event for event in items if event.get("involvedObject", {}).get("name") in about),
            key=lambda event: str(event.get("lastTimestamp") or event.get("eventTime") or ""),
        )

    def logs(self, name: str, follow: bool = False) -> Iterator[str]:
        """The lines that the driver has printed; with `follow` until it ends.

        Raises:
          UnknownName: there is no such job.
          RunError: it has printed nothing yet, or its log is gone with its pod.
        """
        self.get(name)
        with DriverLog(self, name) as log:
            yield from log.lines(follow)

    def exec_in_head(
        self, name: str, argv: Sequence[str], timeout_s: float = COMMAND_S
    ) -> tuple[int, str]:
        """Run a command in a job's head pod: its exit code, and what it printed."""
        head = self.head_pod(name)
        if head is None:
            raise RunError(
                f"The job {name!r} has no head pod to run a command in: it is not running."
            )
        with spoken(self.host, f"run a command in the pod {head['metadata']['name']!r}"):
            return run_in_pod(self.configuration, head, list(argv), timeout_s)

    # Workers

    def worker_groups(self, name: str) -> Objects:
        """The groups of workers of a running job, as they are now."""
        groups: Objects = self._ray_cluster(name)["spec"].get("workerGroupSpecs", [])
        return groups

    def scale_group(self, name: str, group: str, minimum: int, maximum: int) -> None:
        """Set how many workers a group of a running job may have.

        KubeRay does not look at the RayJob again: the change goes to its RayCluster.

        Raises:
          UnknownName: there is no such job or group.
          RunError: the job has no Ray cluster now.
        """
        ray_cluster = self._ray_cluster(name)
        self._ask(
            f"change the RayCluster of {name!r}",
            self._custom.patch_namespaced_custom_object,
            "ray.io",
            "v1",
            self.namespace,
            "rayclusters",
            ray_cluster["metadata"]["name"],
            change_of_group(ray_cluster, name, group, minimum, maximum),
            _content_type="application/json-patch+json",
        )

    def _ray_cluster(self, name: str) -> Object:
        ray_cluster = (self.get(name).get("status") or {}).get("rayClusterName")
        if not ray_cluster:
            raise RunError(f"The job {name!r} has no Ray cluster now: it is not running.")
        return self._ask(
            f"read the RayCluster {ray_cluster!r}",
            self._custom.get_namespaced_custom_object,
            "ray.io",
            "v1",
            self.namespace,
            "rayclusters",
            ray_cluster,
            has="spec",
        )

    # Calls

    @property
    def _rayjobs(self) -> tuple[str, str, str, str]:
        return "ray.io", "v1", self.namespace, "rayjobs"

    def _ask(
        self, doing: str, call: Any, *arguments: Any, has: str | None = None, **options: Any
    ) -> Object:
        """The answer as plain JSON: the client's own classes refuse fields that they do not know.

        Args:
          has: a field that every such answer of a Kubernetes API has.
        """
        options = {"_preload_content": False, "_request_timeout": ANSWER_S, **options}
        with spoken(self.host, doing):
            said: bytes = call(*arguments, **options).data
        try:
            answer: Object = json.loads(said)
        except ValueError:
            raise no_api(self.host, said) from None
        if not isinstance(answer, dict) or (has and not isinstance(answer.get(has), dict | list)):
            raise no_api(self.host, f"JSON without {has or 'fields'}")
        return answer

    def _is_there(self, doing: str, call: Any, *arguments: Any) -> bool:
        try:
            self._ask(doing, call, *arguments)
        except Refused as error:
            if error.status != 404:
                raise
            return False
        return True


def _label(thing: Object, name: str) -> str | None:
    value: str | None = thing["metadata"].get("labels", {}).get(name)
    return value


def _age(thing: Object) -> tuple[str, str]:
    return thing["metadata"].get("creationTimestamp") or "", thing["metadata"]["name"]
