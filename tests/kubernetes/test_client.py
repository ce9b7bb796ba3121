"""Talking to a cluster: what is checked before a submission, and what can be asked of a job."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from api_server import ApiServer
from kuberay import KubeRay

from elasticdl.errors import InvalidValue, NotFound, RunError, UnknownName
from elasticdl.runtime.kubernetes.client import Cluster, connect
from elasticdl.runtime.kubernetes.coming_back import Detached
from elasticdl.runtime.kubernetes.refusals import Refused, Unreachable

Manifest = Callable[..., dict[str, Any]]


def test_check_passes_where_a_job_can_be_submitted(cluster: Cluster) -> None:
    cluster.check("mnist")
    assert cluster.context == "tests"
    assert cluster.namespace == "default"


def test_connect_without_kubeconfig_says_where_one_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(NotFound, match=r"no kubeconfig at .*nowhere.*export KUBECONFIG="):
        connect()


def test_connect_finds_the_kubeconfig_in_the_home_directory(
    server: ApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".kube").mkdir()
    server.kubeconfig(tmp_path / ".kube" / "config", namespace="team")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with connect() as cluster:
        assert (cluster.context, cluster.namespace) == ("tests", "team")
    with connect(namespace="mine") as cluster:
        assert cluster.namespace == "mine"


def test_connect_to_an_unknown_context_gives_the_nearest(kubeconfig: Path) -> None:
    with pytest.raises(UnknownName, match=r"Unknown context 'elswhere'.*Did you mean 'elsewhere'"):
        connect("elswhere")
    with pytest.raises(UnknownName, match=r"Known: elsewhere, tests"):
        connect("zzz")


def test_connect_without_a_current_context_lists_them(kubeconfig: Path) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    del config["current-context"]
    kubeconfig.write_text(yaml.safe_dump(config))
    with pytest.raises(UnknownName, match=r"no current context.*Known: elsewhere, tests\."):
        connect()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "it holds nothing"),
        ("just words", "it holds plain text, and not `clusters:`"),
        ("[]", "it holds a list"),
        ("contexts: words", "`contexts:` is no list"),
        ("contexts: [{name: a}]\ncurrent-context: a", "its context 'a' names no cluster"),
        ("a: 1\nb: [", "it is no YAML: line 2, column"),
        ("a: \x00", "it is no text"),
    ],
)
def test_connect_with_a_broken_kubeconfig_says_what_is_wrong(
    kubeconfig: Path, text: str, said: str
) -> None:
    kubeconfig.write_text(text)
    with pytest.raises(InvalidValue, match=f"{kubeconfig} cannot be used: {re.escape(said)}"):
        connect()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("server: http://127.0.0.1:1\n", "server: notaurl\n", "'notaurl' is no address"),
        ("server: http://127.0.0.1:1\n", "server: ''\n", "the server '' is no address"),
        ("server: http://127.0.0.1:1\n", "server: http://a:b@c:d\n", "'http://c:d' is no"),
        ("cluster: elsewhere\n", "cluster: nowhere\n", "names the cluster 'nowhere', which is"),
        ("user: tests\n", "user: me\n", "the context 'elsewhere' names the user 'me', which is"),
    ],
)
def test_connect_to_a_context_that_leads_nowhere_says_why(
    kubeconfig: Path, old: str, new: str, said: str
) -> None:
    assert old in kubeconfig.read_text()
    kubeconfig.write_text(kubeconfig.read_text().replace(old, new))
    with pytest.raises(InvalidValue, match=re.escape(said)):
        connect("elsewhere")


def test_a_password_in_the_servers_address_is_in_no_message(kubeconfig: Path) -> None:
    text = kubeconfig.read_text().replace("http://127.0.0.1:1\n", "http://me:secret@127.0.0.1:1\n")
    kubeconfig.write_text(text)
    with (
        connect("elsewhere") as cluster,
        pytest.raises(Unreachable, match=r"http://127.0.0.1:1 ") as told,
    ):
        cluster.check("mnist")
    assert "secret" not in str(told.value)


def test_a_token_is_in_no_message(kubeconfig: Path, server: ApiServer) -> None:
    text = kubeconfig.read_text().replace("current-context: tests", "current-context: [tests")
    kubeconfig.write_text(text)
    with pytest.raises(InvalidValue) as told:
        connect()
    assert "a-token-of-the-tests" not in str(told.value)


def test_a_plugin_for_credentials_that_is_not_installed_is_named(kubeconfig: Path) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such-plugin"}
    config["users"][0]["user"] = {"exec": {**plugin, "interactiveMode": "Never"}}
    kubeconfig.write_text(yaml.safe_dump(config))
    with pytest.raises(RunError, match=r"'tests' cannot be had: .*no-such-plugin.*install it"):
        connect()


def test_a_plugin_that_prints_a_token_is_used(kubeconfig: Path, tmp_path: Path) -> None:
    config = yaml.safe_load(kubeconfig.read_text())
    token = config["users"][0]["user"]["token"]
    version = "client.authentication.k8s.io/v1"
    answer = {"apiVersion": version, "kind": "ExecCredential", "status": {"token": token}}
    plugin = {"apiVersion": version, "command": "echo", "args": [json.dumps(answer)]}
    config["users"][0]["user"] = {"exec": {**plugin, "interactiveMode": "Never"}}
    kubeconfig.write_text(yaml.safe_dump(config))
    with connect() as cluster:
        cluster.check("mnist")


def test_a_plugin_that_hangs_is_told_of_and_ended(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("elasticdl.runtime.kubernetes.exec_plugin.ALONE_S", 0.5)
    monkeypatch.setattr("elasticdl.runtime.kubernetes.exec_plugin.NOTICED_S", 0.0)
    config = yaml.safe_load(kubeconfig.read_text())
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sleep", "args": ["600"]}
    config["users"][0]["user"] = {"exec": {**plugin, "interactiveMode": "Never"}}
    kubeconfig.write_text(yaml.safe_dump(config))
    with pytest.raises(RunError, match=r"cannot be had: .*sleep did not end within 0.5 seconds"):
        connect()
    assert capfd.readouterr().err == "Waiting for the kubeconfig's command 'sleep' ...\n"


def test_without_the_package_its_pip_line_is_given(kubeconfig: Path) -> None:
    code = (
        "import sys; sys.modules['kubernetes'] = None\n"
        "from elasticdl.runtime.kubernetes.client import connect\n"
        "try: connect()\n"
        "except ImportError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install 'elasticdl[kubernetes]'" in done.stdout


def test_a_pod_of_the_cluster_without_its_account_is_told_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "nowhere"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(RunError, match=r"service account"):
        connect()


def test_check_of_a_cluster_that_refuses_connections_ends_at_once(kubeconfig: Path) -> None:
    with (
        connect("elsewhere") as cluster,
        pytest.raises(
            Unreachable, match=r"http://127.0.0.1:1 does not answer: Connection refused\."
        ),
    ):
        cluster.check("mnist")


def test_check_of_a_cluster_without_a_name_says_so(kubeconfig: Path) -> None:
    kubeconfig.write_text(kubeconfig.read_text().replace("127.0.0.1:1", "no-such-host.invalid:1"))
    with (
        connect("elsewhere") as cluster,
        pytest.raises(Unreachable, match=r"no-such-host.invalid:1 does not answer"),
    ):
        cluster.check("mnist")


def test_check_of_a_server_that_speaks_no_tls_says_that_it_is_not_trusted(
    server: ApiServer, kubeconfig: Path
) -> None:
    kubeconfig.write_text(kubeconfig.read_text().replace("http://", "https://"))
    with (
        connect("tests") as cluster,
        pytest.raises(Unreachable, match=r"is not trusted: it speaks no TLS"),
    ):
        cluster.check("mnist")


def test_check_of_a_server_that_never_answers_has_an_end(
    kubeconfig: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elasticdl.runtime.kubernetes.client.ANSWER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        kubeconfig.write_text(
            kubeconfig.read_text().replace("127.0.0.1:1\n", f"127.0.0.1:{port}\n")
        )
        with (
            connect("elsewhere") as cluster,
            pytest.raises(Unreachable, match=r"does not answer.*timed out"),
        ):
            cluster.check("mnist")


def test_check_prints_nothing_of_the_http_library(kubeconfig: Path) -> None:
    code = (
        "from elasticdl.runtime.kubernetes.client import connect\n"
        "try: connect('elsewhere').check('mnist')\n"
        "except Exception as error: print(type(error).__name__)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ
    )
    assert (done.stdout, done.stderr) == ("Unreachable\n", "")


def test_check_with_expired_credentials_says_to_log_in_again(
    server: ApiServer, kubeconfig: Path
) -> None:
    server.kubeconfig(kubeconfig, token="old")
    with (
        connect() as cluster,
        pytest.raises(Refused, match=r"does not accept the credentials.*expired.*Log in again"),
    ):
        cluster.check("mnist")


def test_check_of_a_missing_namespace_gives_the_command_that_makes_it(kubeconfig: Path) -> None:
    with (
        connect(namespace="team") as cluster,
        pytest.raises(UnknownName, match=r"no namespace 'team'.*kubectl create namespace team"),
    ):
        cluster.check("mnist")


@pytest.mark.parametrize(
    "path", ["/namespaces/default$", "/version", "/apis/ray.io/v1$", "selfsubjectaccessreviews"]
)
def test_check_goes_on_where_one_may_not_ask(
    server: ApiServer, cluster: Cluster, path: str
) -> None:
    server.refuse(403, "forbidden", path=path)
    cluster.check("mnist")


def test_check_without_kuberay_says_how_to_install_it(server: ApiServer, cluster: Cluster) -> None:
    server.has_kuberay = False
    with pytest.raises(RunError, match=r"KubeRay is not installed.*kubectl create .*ray-operator"):
        cluster.check("mnist")
    for ask in (cluster.list, lambda: cluster.get("mnist"), lambda: list(cluster.logs("mnist"))):
        with pytest.raises(RunError, match="KubeRay is not installed"):
            ask()


def test_check_without_the_right_to_create_says_whom_to_ask(
    server: ApiServer, cluster: Cluster
) -> None:
    server.denied.add(("create", "rayjobs"))
    with pytest.raises(RunError, match=r"deploy/rbac.yaml.*can-i create rayjobs.ray.io -n default"):
        cluster.check("mnist")


def test_check_of_a_taken_name_says_how_to_free_it(cluster: Cluster, manifest: Manifest) -> None:
    cluster.create(manifest("mnist"))
    words = r"take the old one away when it has ended with: elasticdl jobs stop --now mnist .*kubectl delete"
    with pytest.raises(InvalidValue, match=rf"'mnist'.*--job_name.*{words} rayjob mnist"):
        cluster.check("mnist")


@pytest.mark.parametrize(
    "name", ["", "Mnist", "1st", "a_b", "a-", "-a", "a.b", "ä", "a" * 48, "a\n"]
)
def test_check_of_a_name_that_kuberay_refuses(cluster: Cluster, name: str) -> None:
    with pytest.raises(InvalidValue, match=r"Invalid job_name"):
        cluster.check(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "A", "a,b", "a\n", "-a"])
def test_what_can_be_no_name_is_asked_of_nobody(
    server: ApiServer, cluster: Cluster, manifest: Manifest, name: str
) -> None:
    cluster.create(manifest("mnist"))
    asked = len(server.asked)
    calls: list[Callable[[str], object]] = [
        cluster.get,
        cluster.find,
        cluster.delete,
        cluster.pods,
        cluster.look,
        cluster.submitter_pod,
        lambda name: cluster.patch(name, {}),
        lambda name: list(cluster.logs(name)),
    ]
    for call in calls:
        with pytest.raises(InvalidValue, match="Invalid job "):
            call(name)
    assert len(server.asked) == asked
    assert cluster.has_job("mnist")


@pytest.mark.parametrize("name", ["", ".", "a/b", "A", "a.b", "a" * 64])
def test_what_can_be_no_namespace_is_refused(kubeconfig: Path, name: str) -> None:
    with pytest.raises(InvalidValue, match="Invalid namespace"):
        connect(namespace=name)


def test_check_takes_the_longest_name(cluster: Cluster) -> None:
    cluster.check("a" * 47)


def test_a_failing_server_is_told_with_its_words(server: ApiServer, cluster: Cluster) -> None:
    server.refuse(500, "etcdserver: leader changed")
    with pytest.raises(Refused, match=r"etcdserver: leader changed"):
        cluster.check("mnist")


@pytest.mark.parametrize(
    ("status", "said"),
    [(429, "try again in a minute"), (503, "trouble of its own: try again"), (500, "tell whoever")],
)
def test_what_passes_is_told_with_what_to_do(
    server: ApiServer, cluster: Cluster, status: int, said: str
) -> None:
    server.refuse(status, "no")
    with pytest.raises(Refused, match=said):
        cluster.list()


PAGE = b"<!DOCTYPE html>\n<html>\n<title>Sign in</title>\n" + b"<p>Please sign in</p>\n" * 50


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (PAGE, "text/html", r"\(HTML\)"),
        (b'{"items": [{"meta', "application/json", r"\(no JSON\)"),
        (bytes(range(128, 256)), "application/octet-stream", r"\(no JSON\)"),
        (b"", "application/json", r"\(no JSON\)"),
        (b"[]", "application/json", r"\(JSON without \w+\)"),
        (b"{}", "application/json", r"\(JSON without \w+\)"),
        (b'{"items": 3, "metadata": 3}', "application/json", r"\(JSON without \w+\)"),
    ],
)
def test_an_answer_that_is_no_kubernetes_api_says_so(
    server: ApiServer, cluster: Cluster, body: bytes, kind: str, said: str
) -> None:
    server.answer(200, body, kind=kind)
    for call in (cluster.list, lambda: cluster.get("mnist"), lambda: cluster.look("mnist")):
        with pytest.raises(Unreachable, match=f"as a Kubernetes API {said}: is a proxy") as told:
            call()
        assert "sign in" not in str(told.value)


def test_a_page_instead_of_a_log_is_not_printed(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, manifest: Manifest
) -> None:
    cluster.create(manifest("mnist"))
    kuberay.starts("mnist")
    kuberay.runs("mnist")
    server.answer(200, PAGE, path="/log")
    with pytest.raises(Unreachable, match=r"as a Kubernetes API \(HTML\)"):
        list(cluster.logs("mnist"))


@pytest.mark.parametrize("status", [401, 403, 404, 502])
def test_a_page_instead_of_a_refusal_is_not_printed(
    server: ApiServer, cluster: Cluster, status: int
) -> None:
    server.answer(status, PAGE, path="/pods")
    with pytest.raises(Refused, match=f"{status} .*as HTML: is a proxy") as told:
        cluster.pods("mnist")
    assert len(str(told.value).splitlines()) == 1
    assert "sign in" not in str(told.value)


def test_a_redirect_is_told_with_where_it_leads(server: ApiServer, cluster: Cluster) -> None:
    server.answer(302, b"", Location="https://me:secret@login.example.com/x?token=secret")
    with pytest.raises(Unreachable, match=r"\(a redirect to https://login.example.com\)") as told:
        cluster.list()
    assert "secret" not in str(told.value)


def test_a_rule_of_the_cluster_is_no_lack_of_rights(
    server: ApiServer, cluster: Cluster, manifest: Manifest
) -> None:
    said = 'admission webhook "images.example.com" denied the request: unsigned image'
    server.refuse(403, said, method="POST")
    with pytest.raises(Refused, match=r"unsigned image. A rule of the cluster forbids it") as told:
        cluster.create(manifest("mnist"))
    assert "rbac" not in str(told.value)


def test_create_stores_the_job_and_list_finds_it(
    server: ApiServer, cluster: Cluster, manifest: Manifest
) -> None:
    cluster.create(manifest("one"))
    cluster.create(manifest("two"))
    server.put("rayjobs", {"metadata": {"name": "of-others"}})
    assert [job["metadata"]["name"] for job in cluster.list()] == ["one", "two"]
    assert cluster.get("one")["metadata"]["uid"]


def test_create_with_dry_run_stores_nothing(
    server: ApiServer, cluster: Cluster, manifest: Manifest
) -> None:
    cluster.create(manifest("mnist"), dry_run=True)
    assert server.all("rayjobs") == []


@pytest.fixture
def mute(server: ApiServer, cluster: Cluster, manifest: Manifest) -> None:
    """The server creates jobs, and never says so."""
    cluster.create(manifest("first"))  # it takes longer: KubeRay's schema is read
    server.mute = re.compile("POST .*/rayjobs$")


@pytest.mark.usefixtures("mute")
def test_create_without_an_answer_looks_whether_the_job_is_there(
    server: ApiServer, cluster: Cluster, manifest: Manifest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elasticdl.runtime.kubernetes.client.CREATE_S", 0.5)
    assert cluster.create(manifest("mnist"))["metadata"]["uid"]
    server.on_create = lambda name: server.remove("rayjobs", name)
    with pytest.raises(Unreachable, match="timed out") as told:
        cluster.create(manifest("other"))
    assert told.value.__notes__ == ["The job is not there."]
    server.refuse(503, "no", method="GET")
    with pytest.raises(Unreachable) as told:
        cluster.create(manifest("third"))
    assert "not known whether the job 'third' was created" in told.value.__notes__[0]


@pytest.mark.usefixtures("mute")
@pytest.mark.parametrize("is_there", [True, False])
def test_ctrl_c_while_a_job_is_created_says_whether_it_was(
    server: ApiServer,
    cluster: Cluster,
    manifest: Manifest,
    is_there: bool,
    ctrl_c: Callable[[str], None],
) -> None:
    def on_create(name: str) -> None:
        if not is_there:
            server.remove("rayjobs", name)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    server.on_create = on_create
    with pytest.raises(Detached) as left:
        cluster.create(manifest("mnist"))
    expected = "was created already. The job 'mnist' goes on.\n" if is_there else "was not created."
    assert expected in str(left.value)


def test_create_of_a_taken_name_is_refused(cluster: Cluster, manifest: Manifest) -> None:
    cluster.create(manifest("mnist"))
    with pytest.raises(InvalidValue, match=r"has a RayJob of this name"):
        cluster.create(manifest("mnist"))


def test_create_with_a_misspelt_field_shows_the_servers_words(
    crd: Path, cluster: Cluster, manifest: Manifest
) -> None:
    job = manifest("mnist")
    job["spec"]["rayClusterSpec"]["headGroupSpec"]["templat"] = {}
    with pytest.raises(
        InvalidValue, match=r'unknown field "spec.rayClusterSpec.headGroupSpec.templat"'
    ):
        cluster.create(job)


def test_create_with_a_wrong_value_shows_the_servers_words(
    crd: Path, cluster: Cluster, manifest: Manifest
) -> None:
    job = manifest("mnist")
    job["spec"]["backoffLimit"] = "three"
    with pytest.raises(
        InvalidValue, match=r"refuses the RayJob 'mnist'.*spec.backoffLimit.*'three'"
    ):
        cluster.create(job)


def test_create_that_is_forbidden_shows_the_servers_words(
    server: ApiServer, cluster: Cluster, manifest: Manifest
) -> None:
    server.denied.add(("create", "rayjobs"))
    with pytest.raises(
        Refused, match=r'You may not create the RayJob.*cannot create resource "rayjobs"'
    ):
        cluster.create(manifest("mnist"))


def test_get_of_an_unknown_job_gives_the_nearest(cluster: Cluster, manifest: Manifest) -> None:
    cluster.create(manifest("mnist"))
    with pytest.raises(UnknownName, match=r"Unknown job 'minst'.*Did you mean 'mnist'"):
        cluster.get("minst")


def test_delete_takes_the_job_away(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, manifest: Manifest
) -> None:
    cluster.create(manifest("mnist"))
    kuberay.starts("mnist")
    cluster.delete("mnist")
    assert server.all("rayjobs") == []
    assert cluster.pods("mnist") == []
    with pytest.raises(UnknownName):
        cluster.delete("mnist")


def test_create_secret_stores_it(server: ApiServer, cluster: Cluster) -> None:
    cluster.create_secret({"metadata": {"name": "envs"}, "stringData": {"KEY": "value"}})
    assert server.get("secrets", "envs")["stringData"] == {"KEY": "value"}


def test_pods_are_the_head_the_workers_and_the_submitter(
    cluster: Cluster, kuberay: KubeRay, manifest: Manifest
) -> None:
    for name in ("mnist", "other"):
        cluster.create(manifest(name))
        kuberay.starts(name)
        kuberay.runs(name)
    names = [pod["metadata"]["name"] for pod in cluster.pods("mnist")]
    workers = [kuberay.worker("mnist", index) for index in range(2)]
    assert names == [kuberay.head("mnist"), *workers, kuberay.submitter("mnist")]


def test_pods_whose_labels_a_user_replaced_are_found(
    cluster: Cluster, kuberay: KubeRay, manifest: Manifest
) -> None:
    job = manifest("mnist")
    job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["metadata"] = {"labels": {"a": "b"}}
    cluster.create(job)
    kuberay.starts("mnist")
    head = cluster.head_pod("mnist")
    assert head is not None and head["metadata"]["name"] == kuberay.head("mnist")


def test_events_are_those_of_the_job(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, manifest: Manifest
) -> None:
    cluster.create(manifest("mnist"))
    kuberay.starts("mnist")
    kuberay.cannot_pull(kuberay.worker("mnist"))
    kuberay.event("somebody-else", "Failed", "not ours")
    assert [event["reason"] for event in cluster.events("mnist")] == ["Failed"]
    server.denied.add(("list", "events"))
    assert cluster.events("mnist") == []


def test_logs_are_the_drivers_lines(cluster: Cluster, kuberay: KubeRay, manifest: Manifest) -> None:
    cluster.create(manifest("mnist"))
    with pytest.raises(RunError, match=r"no log now"):
        list(cluster.logs("mnist"))
    kuberay.starts("mnist")
    kuberay.runs("mnist")
    kuberay.prints("mnist", "epoch 1", "", "größer")
    assert list(cluster.logs("mnist")) == ["epoch 1", "", "größer"]
    with pytest.raises(UnknownName):
        list(cluster.logs("minst"))


def test_logs_of_a_submitter_that_is_not_up_yet_say_so(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, manifest: Manifest
) -> None:
    cluster.create(manifest("mnist"))
    kuberay.starts("mnist")
    kuberay.runs("mnist")
    kuberay.cannot_pull(kuberay.submitter("mnist"))
    with pytest.raises(RunError, match=r"no log now"):
        list(cluster.logs("mnist"))


def test_logs_that_are_followed_end_with_the_driver(
    cluster: Cluster, kuberay: KubeRay, manifest: Manifest
) -> None:
    cluster.create(manifest("mnist"))
    kuberay.starts("mnist")
    kuberay.runs("mnist")
    kuberay.prints("mnist", "one")
    lines = cluster.logs("mnist", follow=True)
    assert next(lines) == "one"
    kuberay.prints("mnist", "two")
    assert next(lines) == "two"
    kuberay.completes("mnist")
    assert list(lines) == []


def test_logs_that_break_go_on_without_repeating_a_line(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, manifest: Manifest
) -> None:
    cluster.create(manifest("mnist"))
    kuberay.starts("mnist")
    kuberay.runs("mnist")
    kuberay.prints("mnist", "one", "same", "same")
    lines = cluster.logs("mnist", follow=True)
    assert [next(lines) for _ in range(3)] == ["one", "same", "same"]
    server.break_logs(kuberay.submitter("mnist"))
    kuberay.prints("mnist", "same", "two")
    assert [next(lines) for _ in range(2)] == ["same", "two"]
    kuberay.completes("mnist")
    assert list(lines) == []


def test_exec_in_head_gives_the_exit_code_and_the_output(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, manifest: Manifest
) -> None:
    cluster.create(manifest("mnist"))
    with pytest.raises(RunError, match=r"no head pod"):
        cluster.exec_in_head("mnist", ["true"])
    kuberay.starts("mnist")
    kuberay.runs("mnist")
    server.on_exec = lambda pod, argv: (0, f"{pod} {argv}")
    head = kuberay.head("mnist")
    assert cluster.exec_in_head("mnist", ["a", "b c"]) == (0, f"{head} ['a', 'b c']")
    server.on_exec = lambda pod, argv: (3, "x" * 100_000)
    assert cluster.exec_in_head("mnist", ["fail"]) == (3, "x" * 100_000)


def test_exec_in_a_head_that_does_not_answer_has_an_end(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, manifest: Manifest
) -> None:
    ended = threading.Event()
    server.on_exec = lambda pod, argv: (0, str(ended.wait()))
    cluster.create(manifest("mnist"))
    kuberay.starts("mnist")
    try:
        code, said = cluster.exec_in_head("mnist", ["true"], 0.1)
    finally:
        ended.set()
    assert (code, said) == (124, "The command did not end within 0.1 seconds.")


def test_exec_that_is_forbidden_says_so(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, manifest: Manifest
) -> None:
    cluster.create(manifest("mnist"))
    kuberay.starts("mnist")
    server.refuse(403, "pods/exec is forbidden", path="/exec")
    with pytest.raises(
        Refused, match=r"You may not run a command in the pod.*pods/exec is forbidden"
    ):
        cluster.exec_in_head("mnist", ["true"])


def test_scale_group_changes_the_ray_cluster(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, manifest: Manifest
) -> None:
    cluster.create(manifest("mnist", workers=2))
    with pytest.raises(RunError, match=r"no Ray cluster now"):
        cluster.scale_group("mnist", "workers", 3, 5)
    kuberay.starts("mnist")
    cluster.scale_group("mnist", "workers", 3, 5)
    (group,) = cluster.worker_groups("mnist")
    assert [group[key] for key in ("minReplicas", "replicas", "maxReplicas")] == [3, 5, 5]
    cluster.scale_group("mnist", "workers", 1, 1)
    (group,) = cluster.worker_groups("mnist")
    assert [group[key] for key in ("minReplicas", "replicas", "maxReplicas")] == [1, 1, 1]
    assert group["template"]  # the rest is as it was
    job = manifest("auto", workers=2)
    job["spec"]["rayClusterSpec"]["enableInTreeAutoscaling"] = True
    cluster.create(job)
    kuberay.starts("auto")
    cluster.scale_group("auto", "workers", 3, 5)  # who chooses is the autoscaler
    assert cluster.worker_groups("auto")[0]["replicas"] == 3
    with pytest.raises(UnknownName, match=r"Did you mean 'workers'"):
        cluster.scale_group("mnist", "worker", 1, 1)


def test_patch_merges_into_the_job(cluster: Cluster, manifest: Manifest) -> None:
    cluster.create(manifest("mnist"))
    cluster.patch("mnist", {"metadata": {"annotations": {"elasticdl/num_workers": "3"}}})
    annotations = cluster.get("mnist")["metadata"]["annotations"]
    assert annotations == {"elasticdl/command": "train", "elasticdl/num_workers": "3"}


def test_a_cluster_may_be_used_from_several_threads(cluster: Cluster, manifest: Manifest) -> None:
    cluster.create(manifest("mnist"))
    found: list[str] = []

    def ask() -> None:
        found.extend(cluster.get("mnist")["metadata"]["name"] for _ in range(5))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["mnist"] * 20
