"""The RayJob that is made of a command, held against KubeRay's own schema."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from crd import complaints

from elasticdl.errors import ContractError, InvalidValue, NotFound, UnknownName
from elasticdl.job.config import JobConfig
from elasticdl.runtime.kubernetes.command import job_task
from elasticdl.runtime.kubernetes.manifest import JobPlan, ray_job, ray_secret
from elasticdl.runtime.kubernetes.pod_changes import load_pod_changes
from elasticdl.runtime.kubernetes.request import ClusterRequest

IMAGE = "registry.example.com/team/mnist@sha256:" + "a" * 64
MODEL_ZOO = str(Path(__file__).resolve().parents[2] / "model_zoo")
NEEDED = {
    "cluster": "kubernetes",
    "image_name": IMAGE,
    "model_def": "mnist.mnist_functional.custom_model",
    "training_data": "s3://bucket/train",
    "output": "s3://bucket/run",
}


def made(
    command: str = "train",
    *,
    with_pod: Any = lambda pod: pod,
    secrets: dict[str, str] | None = None,
    **values: Any,
) -> dict[str, Any]:
    config = JobConfig.parse(command, {**NEEDED, **values})
    request = ClusterRequest.of(config)
    task = job_task(config, request)
    plan = JobPlan(
        name="mnist",
        command=command,
        argv=task.argv,
        image=IMAGE,
        ray_version="2.60.0",
        output=task.output,
        with_pod=with_pod,
        secrets=secrets or {},
        secret_name="mnist-secret",
    )
    return ray_job(request, plan)


def groups(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    specs = manifest["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    return {group["groupName"]: group for group in specs}


def sizes(manifest: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {
        name: (group["minReplicas"], group["maxReplicas"])
        for name, group in groups(manifest).items()
    }


def pods(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    spec = manifest["spec"]
    found = {
        "submitter": spec["submitterPodTemplate"],
        "master": spec["rayClusterSpec"]["headGroupSpec"]["template"],
    }
    return found | {name: group["template"] for name, group in groups(manifest).items()}


def container(template: dict[str, Any]) -> dict[str, Any]:
    (only,) = template["spec"]["containers"]
    assert isinstance(only, dict)
    return only


def as_kubernetes_reads(text: str) -> str:
    """What a container gets: two dollars are one, and one with a name in parentheses is a variable."""
    assert not re.search(r"(?<!\$)(?:\$\$)*\$\(", text), "a variable"
    return text.replace("$$", "$")


EVERYTHING = {
    "num_workers": "2:6",
    "namespace": "team-a",
    "volume": "claim_name=data,mount_path=/data;host_path=/mnt,mount_path=/fast",
    "envs": "A=1,B=$$two",
    "spot": True,
    "worker_pod_priority": "high=0.5",
    "master_pod_priority": "high",
    "worker_resource_request": "cpu=2,memory=8Gi,gpu=1,disk=10Gi",
    "worker_resource_limit": "memory=16Gi",
    "master_resource_request": "cpu=500m",
    "image_pull_policy": "Always",
    "restart_policy": "Never",
}


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"num_workers": 3},
        {"num_workers": 3, "queue": "team-queue"},
        {"num_workers": "1:4", "spot": True},
        EVERYTHING,
    ],
)
def test_manifests_are_what_kuberays_schema_wants(values: dict[str, Any], crd: Path) -> None:
    assert complaints(made(**values)) == []


def test_the_schema_notices_a_misspelt_field(crd: Path) -> None:
    manifest = made()
    manifest["spec"]["rayClusterSpec"]["workerGroupSpec"] = []
    assert ("spec.rayClusterSpec.workerGroupSpec", "unknown field") in complaints(manifest)


def test_the_command_is_the_one_that_was_given_with_the_clusters_ray() -> None:
    manifest = made(num_epochs=3, model_params="units=[1, 2]; name='it''s'", num_workers=2)
    assert shlex.split(manifest["spec"]["entrypoint"]) == [
        "elasticdl",
        "train",
        "--model_zoo=/model_zoo",
        "--model_def=mnist.mnist_functional.custom_model",
        "--model_params=units=[1, 2]; name='its'",
        "--output=s3://bucket/run",
        "--training_data=s3://bucket/train",
        "--num_epochs=3",
        "--distribution_strategy=AllreduceStrategy",
        "--num_workers=2",
        "--worker_resource_request=cpu=1",
        "--ray_address=auto",
    ]


@pytest.mark.parametrize("command", ["train", "evaluate", "predict"])
def test_the_command_in_the_pod_is_the_job_that_was_asked_for(command: str) -> None:
    """What differs after the round trip is what the cluster's side says anew."""
    values: dict[str, Any] = {
        "model_params": {"a": [1, "x, y"], "b": {"c": None}},
        "data_reader_params": "columns=['a', 'b']; sep=','",
        "minibatch_size": 32,
        "seed": 0,
    }
    values["model_def"] = "it's.$(HOME).$$x"
    if command == "train":
        values |= {"global_batch_size": 64, "shuffle_tasks": False, "minibatch_size": None}
    if command != "train":
        values["training_data"] = None
        values["trained_model"] = "s3://bucket/model"
        values["data"] = "s3://bucket/data"
    if command == "evaluate":
        values["output"] = None
    asked = JobConfig.parse(
        command, {k: v for k, v in {**NEEDED, **values}.items() if v is not None}
    )
    manifest = made(command, **values)
    words = shlex.split(as_kubernetes_reads(manifest["spec"]["entrypoint"]))
    assert words[:2] == ["elasticdl", command]
    given = dict(word.removeprefix("--").split("=", 1) for word in words[2:])
    there = JobConfig.parse(command, given).to_json()
    ours = {
        "cluster": None,
        "image_name": None,
        "model_zoo": "/model_zoo",
        "distribution_strategy": "AllreduceStrategy",
        "num_workers": "1",
        "worker_resource_request": "cpu=1",
        "ray_address": "auto",
    }
    expected = {k: v for k, v in {**asked.to_json(), **ours}.items() if v is not None}
    assert there == expected


def test_each_worker_pod_has_room_for_one_worker_and_the_head_for_none() -> None:
    manifest = made(worker_resource_request="cpu=1500m,gpu=1", num_workers=2)
    spec = manifest["spec"]["rayClusterSpec"]
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert groups(manifest)["workers"]["rayStartParams"] == {"num-cpus": "2", "num-gpus": "1"}
    assert "--worker_resource_request=cpu=2,gpu=1" in manifest["spec"]["entrypoint"]


def test_a_range_of_workers_is_the_autoscalers() -> None:
    spec = made(num_workers="2:6")["spec"]["rayClusterSpec"]
    assert spec["enableInTreeAutoscaling"] is True
    assert sizes(made(num_workers="2:6")) == {"workers": (2, 6)}
    assert "enableInTreeAutoscaling" not in made(num_workers=3)["spec"]["rayClusterSpec"]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"num_workers": 3, "spot": True}, {"workers": (3, 3)}),
        ({"num_workers": "1:4", "spot": True}, {"workers": (1, 1), "workers-spot": (0, 3)}),
        (
            {"num_workers": "2:6", "worker_pod_priority": "high=0.5"},
            {"workers": (1, 3), "workers-priority": (1, 3)},
        ),
        (
            {"num_workers": 1, "worker_pod_priority": "high=0.5"},
            {"workers-priority": (1, 1)},
        ),
        (
            {"num_workers": "2:6", "spot": True, "worker_pod_priority": "high=0.5"},
            {
                "workers": (1, 1),
                "workers-spot": (0, 2),
                "workers-priority": (1, 1),
                "workers-priority-spot": (0, 2),
            },
        ),
    ],
)
def test_workers_are_divided_into_groups(
    values: dict[str, Any], expected: dict[str, tuple[int, int]]
) -> None:
    manifest = made(**values)
    assert sizes(manifest) == expected
    assert (
        sum(least for least, _ in expected.values())
        == ClusterRequest.of(JobConfig.parse("train", {**NEEDED, **values})).workers[0]
    )
    for name, group in groups(manifest).items():
        spec = group["template"]["spec"]
        assert spec.get("priorityClassName") == ("high" if "priority" in name else None)
        is_spot = "spot" in values and (name.endswith("-spot") or values["num_workers"] == 3)
        assert ("tolerations" in spec) == is_spot


def test_workers_on_spot_nodes_tolerate_and_prefer_them() -> None:
    template = groups(made(num_workers="1:2", spot=True))["workers-spot"]["template"]["spec"]
    keys = {toleration["key"] for toleration in template["tolerations"]}
    assert {"cloud.google.com/gke-spot", "kubernetes.azure.com/scalesetpriority"} <= keys
    assert "nodeAffinity" in template["affinity"]


def test_all_that_is_said_of_pods_is_in_them() -> None:
    manifest = made(**EVERYTHING)
    assert manifest["metadata"]["namespace"] == "team-a"
    for role, template in pods(manifest).items():
        one = container(template)
        assert one["image"] == IMAGE and one["imagePullPolicy"] == "Always"
        assert template["metadata"]["labels"]["elasticdl/job"] == "mnist"
        if role == "submitter":
            continue
        env = {each["name"]: each["value"] for each in one["env"]}
        assert env == {"ELASTICDL_IMAGE": IMAGE, "A": "1", "B": "$$$$two"}
        assert template["spec"]["restartPolicy"] == "Never"
        assert [mount["mountPath"] for mount in one["volumeMounts"]] == ["/data", "/fast"]
        assert [next(iter(v.keys() - {"name"})) for v in template["spec"]["volumes"]] == [
            "persistentVolumeClaim",
            "hostPath",
        ]
    worker = container(pods(manifest)["workers"])["resources"]
    assert worker["requests"]["nvidia.com/gpu"] == worker["limits"]["nvidia.com/gpu"] == "1"
    assert worker["limits"]["memory"] == "16384Mi"
    assert container(pods(manifest)["master"])["resources"]["requests"]["cpu"] == "500m"
    assert pods(manifest)["master"]["spec"]["priorityClassName"] == "high"


def test_a_worker_is_drained_before_its_pod_ends() -> None:
    template = pods(made())["workers"]["spec"]
    command = container({"spec": template})["lifecycle"]["preStop"]["exec"]["command"]
    assert command[:3] == ["python", "-m", "elasticdl.runtime.kubernetes.drain"]
    assert template["terminationGracePeriodSeconds"] > int(command[3])


def test_a_queue_is_a_label() -> None:
    assert made(queue="team")["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team"


def test_secrets_are_only_named_in_the_job() -> None:
    manifest = made(secrets={"ELASTICDL_DB": "postgresql://me:hunter2@db/shop"})
    assert "hunter2" not in str(manifest)
    env = {each["name"]: each for each in container(pods(manifest)["master"])["env"]}
    reference = env["ELASTICDL_DB"]["valueFrom"]["secretKeyRef"]
    assert reference == {"name": "mnist-secret", "key": "ELASTICDL_DB"}
    plan = JobPlan(
        name="mnist",
        command="sql",
        argv=("x",),
        image="i",
        secrets={"A": "hunter2"},
        secret_name="mnist-secret",
    )
    secret = ray_secret(ClusterRequest.of(JobConfig.parse("train", NEEDED)), plan)
    assert secret is not None and secret["stringData"] == {"A": "hunter2"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"output": None}, "An output must be given with --cluster"),
        ({"output": "/tmp/x"}, "Invalid output '/tmp/x': pods do not see it."),
        ({"output": "file:///x/y"}, "each pod would have something else there"),
        ({"training_data": None}, "No data was given. Give it with --training_data=PATH."),
        ({"model_def": None}, "No model was given."),
        ({"training_data": "data/train"}, "Invalid training_data 'data/train': it is a path of"),
        ({"output": "runs/1"}, "Invalid output 'runs/1': it is a path of this machine"),
        (
            {"training_data": "/home/me/train", "image_name": None, "model_zoo": MODEL_ZOO},
            "Invalid training_data '/home/me/train': pods do not see it.",
        ),
        (
            {
                "training_data": "/data/a,/home/b",
                "volume": "claim_name=c,mount_path=/data",
                "image_name": None,
            },
            "Invalid training_data '/home/b': pods do not see it. Put it into a bucket (s3://..., gs://...), or "
            "below the mount_path of a --volume (now: /data).",
        ),
        ({"model_zoo": "zoo"}, "the image has its own. Give the whole path in the image"),
    ],
)
def test_what_only_this_machine_has_is_refused(values: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        made(**values)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("model_def", "error", "said"),
    [
        ("nope.custom_model", NotFound, "is not in the model zoo: there is no"),
        ("mnist.mnist_functional.custom_modl", UnknownName, "Did you mean 'custom_model'?"),
    ],
)
def test_a_model_that_is_not_there_is_refused_before_an_image_is_built(
    model_def: str, error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as refused:
        made(image_name=None, model_zoo=MODEL_ZOO, model_def=model_def)
    assert said in str(refused.value)


SPEC = """
class Cluster:
    def with_pod(self, pod):
        from kubernetes import client
        pod.spec.service_account_name = "trainer"
        if pod.metadata.labels["elasticdl/role"] == "worker":
            pod.spec.node_selector = {"disk": "ssd"}
            pod.spec.containers[0].env.append(client.V1EnvVar(name="MORE", value="1"))
        return pod

cluster = Cluster()
"""


def test_a_users_file_may_change_each_pod(tmp_path: Path, crd: Path) -> None:
    file = tmp_path / "spec.py"
    file.write_text(SPEC)
    manifest = made(with_pod=load_pod_changes(str(file)), **EVERYTHING)
    assert complaints(manifest) == []
    plain = made(**EVERYTHING)
    for role, template in pods(manifest).items():
        assert template["spec"]["serviceAccountName"] == "trainer"
        is_worker = role.startswith("workers")
        assert template["spec"].get("nodeSelector") == ({"disk": "ssd"} if is_worker else None)
        # What it did not touch is as it was.
        before = container(pods(plain)[role])
        assert container(template)["resources"] == before["resources"]
        assert container(template).get("lifecycle") == before.get("lifecycle")


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        (None, NotFound, "is not a file. Give a Python file with an object `cluster`"),
        ("x = 1", ContractError, "has no `cluster` with a method `with_pod(pod)`"),
        (
            "class C:\n    def with_pod(self, pod):\n        pod.metadata = None\n        return pod\ncluster = C()",
            ContractError,
            "returned a pod without metadata or containers",
        ),
        (
            "class C:\n    def with_pod(self, pod): pass\ncluster = C()",
            ContractError,
            "returned NoneType. Return the pod.",
        ),
    ],
)
def test_a_users_file_that_does_not_fit_is_told(
    text: str | None, error: type[Exception], said: str, tmp_path: Path
) -> None:
    file = tmp_path / "spec.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(error) as refused:
        made(with_pod=load_pod_changes(str(file)))
    assert said in str(refused.value)
