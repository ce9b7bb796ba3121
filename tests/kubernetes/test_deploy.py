"""The manifests of `deploy/`: Kubernetes would take them, and whoever has their rights can do all that we offer."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from api_server import ApiServer
from kuberay import KubeRay

from elasticdl.cli.main import main
from elasticdl.runtime.jobs import on_kubernetes
from elasticdl.runtime.kubernetes.checks import INSTALL_KUBERAY
from elasticdl.runtime.kubernetes.client import connect
from elasticdl.runtime.kubernetes.follow import DASHBOARD_PORT, follow
from elasticdl.runtime.kubernetes.forward import forward
from elasticdl.runtime.kubernetes.manifest import SPOT
from elasticdl.runtime.kubernetes.request import parse_priority, parse_volumes

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
GUIDE = (ROOT / "docs" / "guides" / "kubernetes.md").read_text(encoding="utf-8")
README = (DEPLOY / "README.md").read_text(encoding="utf-8")
FILES = sorted(file for file in DEPLOY.glob("*.yaml") if file.name != "kustomization.yaml")
Right = tuple[str, str, str]
"""A verb, a group and a resource."""

KUEUE_FIELDS = {
    "ResourceFlavor": {"nodeLabels", "nodeTaints", "tolerations", "topologyName"},
    "ClusterQueue": {"namespaceSelector", "resourceGroups", "cohortName", "preemption"},
    "LocalQueue": {"clusterQueue"},
}
"""Of v1beta2, as far as we may need them: Kueue's kinds are none of the official client's."""

OPEN_TO_ALL = re.compile(r"/version/?|/apis/ray\.io/v1|.*/selfsubjectaccessreviews")
"""What Kubernetes answers to everybody who is logged in."""


def objects(*names: str) -> list[dict[str, Any]]:
    files = [DEPLOY / name for name in names] or FILES
    return [one for file in files for one in yaml.safe_load_all(file.read_text())]


def named(kind: str) -> set[str]:
    return {one["metadata"]["name"] for one in objects() if one["kind"] == kind}


# --- what Kubernetes takes ---


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_manifests_are_what_the_official_client_knows(file: Path) -> None:
    client = pytest.importorskip("kubernetes.client")
    for one in objects(file.name):
        if one["apiVersion"].startswith("kueue"):
            assert one["apiVersion"] == "kueue.x-k8s.io/v1beta2"
            assert one.get("spec", {}).keys() <= KUEUE_FIELDS[one["kind"]]
            continue
        read = getattr(client, f"V1{one['kind']}").from_dict(one)
        # Fields that it does not know it drops without a word.
        assert client.ApiClient().sanitize_for_serialization(read) == one


def test_what_is_applied_by_itself_needs_no_choice() -> None:
    kustomization = yaml.safe_load((DEPLOY / "kustomization.yaml").read_text())
    assert kustomization["kind"] == "Kustomization"
    applied = objects(*kustomization["resources"])
    kinds = {one["kind"] for one in applied}
    assert kinds == {"Namespace", "Role", "RoleBinding", "PriorityClass"}


def test_names_agree_with_each_other() -> None:
    (namespace,) = named("Namespace")
    of_a_namespace = ("Role", "RoleBinding", "PersistentVolumeClaim", "LocalQueue")
    for one in objects():
        given = one["metadata"].get("namespace")
        assert given == (namespace if one["kind"] in of_a_namespace else None)
    (binding,) = (one for one in objects() if one["kind"] == "RoleBinding")
    assert {binding["roleRef"]["name"]} == named("Role")
    (queue,) = (one for one in objects() if one["kind"] == "LocalQueue")
    assert {queue["spec"]["clusterQueue"]} == named("ClusterQueue")


def test_spot_nodes_are_those_that_spot_workers_tolerate() -> None:
    flavors = {one["metadata"]["name"]: one for one in objects() if one["kind"] == "ResourceFlavor"}
    taints = flavors["spot"]["spec"]["nodeTaints"]
    assert {(taint["key"], taint["value"]) for taint in taints} == set(SPOT)
    assert {taint["effect"] for taint in taints} == {"NoSchedule"}
    (queue,) = (one for one in objects() if one["kind"] == "ClusterQueue")
    (group,) = queue["spec"]["resourceGroups"]
    assert [flavor["name"] for flavor in group["flavors"]] == ["spot", "on-demand"]
    for flavor in group["flavors"]:
        assert [each["name"] for each in flavor["resources"]] == group["coveredResources"]


@pytest.mark.parametrize("text", [GUIDE, README], ids=["guide", "README"])
def test_pages_use_names_and_files_that_are_there(text: str) -> None:
    for volume in set(re.findall(r'--volume="([^"]+)"', text)):
        assert {one.claim for one in parse_volumes(volume)} <= named("PersistentVolumeClaim")
    assert set(re.findall(r"--queue=(\w+)", text)) <= named("LocalQueue")
    assert set(re.findall(r"--namespace=([\w-]+)", text)) <= named("Namespace")
    for wish in re.findall(r"_pod_priority=([\w=.]+\w)", text):
        assert parse_priority("a priority", wish)[0] in named("PriorityClass")
    for target in set(re.findall(r"\bkubectl apply -[kf] (deploy\S*?)[`\s]", text)):
        assert (ROOT / target).exists()


@pytest.mark.parametrize("text", [GUIDE, README], ids=["guide", "README"])
def test_pages_install_the_kuberay_that_errors_name(text: str) -> None:
    for command in INSTALL_KUBERAY.split("; "):
        assert command in text


def test_guide_explains_words_that_are_said() -> None:
    table = GUIDE.partition("\n## When something goes wrong\n")[2].partition("\n## ")[0]
    words = re.findall(r"^\| `(.+?)` \|", table, re.MULTILINE)
    assert len(words) > 10
    sources = (ROOT / "src" / "elasticdl" / "runtime" / "kubernetes").glob("*.py")
    # Without the ends of lines inside of a text.
    said = re.sub(r'"\s*\n\s*f?"', "", "".join(file.read_text() for file in sources))
    for each in words:
        assert each in said


# --- rights ---


def granted() -> set[Right]:
    (role,) = (one for one in objects("rbac.yaml") if one["kind"] == "Role")
    return {
        (verb, group, resource)
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def wanted(method: str, path: str) -> set[Right]:
    """The rights that a request needs, by the rules of Kubernetes' API server."""
    path = path.partition("?")[0]
    if OPEN_TO_ALL.fullmatch(path):
        return set()
    found = re.fullmatch(
        r"/api(?:s/([^/]+))?/v1/namespaces/[^/]+/([^/]+)(?:/([^/]+)(?:/([^/]+))?)?", path
    )
    assert found, f"which right does {method} {path} need?"
    group, resource, name, below = found.groups(default="")
    verb = {"POST": "create", "PATCH": "patch", "DELETE": "delete"}.get(
        method, "get" if name else "list"
    )
    if below in ("exec", "portforward"):  # `create` too since Kubernetes 1.35
        return {(each, group, f"{resource}/{below}") for each in (verb, "create")}
    return {(verb, group, f"{resource}/{below}" if below else resource)}


@pytest.fixture
def submitter(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[KubeRay]:
    """A cluster as `deploy/` makes it, and a user who has no other rights than those of the Role."""
    (namespace,) = named("Namespace")
    server.put("namespaces", {"metadata": {"name": namespace}})
    server.refuse(403, "forbidden", path=r"^/api/v1/namespaces/[^/]+$")  # not one of them
    server.on_exec = lambda pod, argv: (0, "{}")
    path = server.kubeconfig(tmp_path / "kubeconfig", namespace=namespace)
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.setattr(on_kubernetes, "POLL_S", 0.01)
    monkeypatch.setitem(follow.__kwdefaults__ or {}, "poll_s", 0.01)
    yield KubeRay(server, namespace)


def elasticdl(*words: str) -> None:
    assert main([*words, "--cluster=kubernetes"]) == 0


def train(name: str, *flags: str) -> None:
    elasticdl(
        *("train", "--model_def=mnist.custom_model", "--training_data=s3://bucket/train"),
        *(f"--output=s3://bucket/{name}", "--image_name=registry.example.com/zoo:1"),
        *(f"--job_name={name}", "--num_workers=2", *flags),
    )


def use_everything(kuberay: KubeRay) -> None:
    """Each thing that can be done with a job on a cluster."""
    train("checked", "--dry_run")
    kuberay.plays("first", kuberay.usual("first", "epoch 1/1 done"))
    train("first")
    train("second", "--detach")
    kuberay.starts("second")
    kuberay.runs("second")
    with (
        connect() as cluster,
        forward(cluster, kuberay.head("second"), DASHBOARD_PORT) as url,
        pytest.raises(OSError),  # nobody is behind it
    ):
        urllib.request.urlopen(url, timeout=5)
    elasticdl("jobs", "list")
    elasticdl("jobs", "status", "second")
    elasticdl("jobs", "logs", "second")
    elasticdl("jobs", "scale", "second", "--num_workers=3")
    kuberay.plays("second", [lambda: None] * 3 + [lambda: kuberay.fails("second")])
    elasticdl("jobs", "stop", "second")
    secret = "--db=postgresql://someone:password@database/shop"
    elasticdl(
        *("sql", "SHOW MODELS;", secret, "--models=s3://bucket/models", "--detach"),
        *("--image_name=registry.example.com/zoo:1", "--job_name=third"),
    )
    elasticdl("jobs", "stop", "third", "--now")


def test_role_has_the_rights_that_are_used_and_no_other(
    server: ApiServer, submitter: KubeRay
) -> None:
    use_everything(submitter)
    used = set().union(
        *(wanted(method, path) for method, path in server.asked if not _of_a_namespace(path))
    )
    assert used == granted()


def _of_a_namespace(path: str) -> bool:
    """What was refused above, and asked for only to say more of a name that is not there."""
    return bool(re.fullmatch(r"/api/v1/namespaces/[^/]+", path))
