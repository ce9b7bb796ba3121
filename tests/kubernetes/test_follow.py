"""A job from its submission to its end, as its user sees it."""

from __future__ import annotations

import re
import signal
import threading
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from api_server import ApiServer
from kuberay import KubeRay

from elasticdl.cli.main import main
from elasticdl.errors import UnknownName
from elasticdl.runtime.kubernetes.client import Cluster
from elasticdl.runtime.kubernetes.follow import Detached, follow
from elasticdl.runtime.kubernetes.refusals import Refused, Unreachable
from elasticdl.runtime.kubernetes.words import State

FAST = 0.01


class Ears:
    """What was said, and what was shown of the job's output."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.shown: list[str] = []
        self.on_show: Callable[[str], None] = lambda line: None
        self.on_say: Callable[[str], None] = lambda line: None

    def say(self, line: str) -> None:
        self.said.append(line)
        self.on_say(line)

    def show(self, line: str) -> None:
        self.shown.append(line)
        self.on_show(line)

    def follow(self, cluster: Cluster, **options: Any) -> State:
        options = {"poll_s": FAST, "show": self.show, **options}
        return follow(cluster, "mnist", self.say, **options)


@pytest.fixture
def ears() -> Ears:
    return Ears()


@pytest.fixture
def job(cluster: Cluster, manifest: Callable[..., dict[str, Any]]) -> None:
    cluster.create(manifest("mnist"))


@pytest.mark.usefixtures("job")
def test_each_change_is_said_once_and_the_output_is_shown(
    cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    kuberay.plays("mnist", kuberay.usual("mnist", "epoch 1", "epoch 2"))
    state = ears.follow(cluster)
    assert (state.phase, state.succeeded) == ("completed", True)
    assert ears.shown == ["epoch 1", "epoch 2"]
    assert [line.split(". ")[0].rstrip(".") for line in ears.said if "Dashboard" not in line] == [
        "The job mnist is submitted",
        "The job mnist is starting",
        "The job mnist is running",
        "The job mnist has completed",
    ]


@pytest.mark.usefixtures("job")
def test_output_goes_to_stdout(
    cluster: Cluster, kuberay: KubeRay, ears: Ears, capsys: pytest.CaptureFixture[str]
) -> None:
    kuberay.plays("mnist", kuberay.usual("mnist", "epoch 1"))
    ears.follow(cluster, show=None)
    assert capsys.readouterr().out == "epoch 1\n"


@pytest.mark.usefixtures("job")
def test_until_running_returns_when_it_runs(cluster: Cluster, kuberay: KubeRay, ears: Ears) -> None:
    kuberay.plays("mnist", kuberay.usual("mnist", "epoch 1"))
    state = ears.follow(cluster, until_running=True)
    assert (state.phase, state.is_over) == ("running", False)
    assert ears.shown == []


@pytest.mark.usefixtures("job")
def test_the_dashboard_is_reached_while_the_job_runs(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"the dashboard")

        def log_message(self, *_: Any) -> None:
            pass

    pages: list[bytes] = []

    def on_say(line: str) -> None:
        if found := re.search(r"Dashboard: (\S+)", line):
            with urllib.request.urlopen(found[1], timeout=30) as answer:
                pages.append(answer.read())

    ears.on_say = on_say
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as http_server:
        thread = threading.Thread(target=http_server.serve_forever, args=(0.01,))
        thread.start()
        server.ports[kuberay.head("mnist"), 8265] = http_server.server_port
        kuberay.plays("mnist", kuberay.usual("mnist"))
        ears.follow(cluster)
        http_server.shutdown()
        thread.join()
    assert pages == [b"the dashboard"]


@pytest.mark.usefixtures("job")
def test_without_the_right_to_forward_the_job_is_followed_all_the_same(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    server.denied.add(("get", "pods/portforward"))
    kuberay.plays("mnist", kuberay.usual("mnist", "epoch 1"))
    assert ears.follow(cluster).succeeded
    assert any("pods/portforward" in line for line in ears.said)
    assert ears.shown == ["epoch 1"]


@pytest.mark.usefixtures("job")
def test_a_pod_that_cannot_start_is_said_once_and_waiting_goes_on(
    cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    worker = kuberay.worker("mnist")
    kuberay.plays(
        "mnist",
        [
            lambda: kuberay.starts("mnist"),
            lambda: kuberay.cannot_schedule(worker),
            lambda: None,
            lambda: kuberay.cannot_schedule(worker, "0/4 nodes are available: 4 Insufficient cpu."),
            lambda: kuberay.cannot_pull(worker, "ErrImagePull"),
            lambda: kuberay.cannot_pull(worker, "ImagePullBackOff"),
            lambda: kuberay.runs("mnist"),
            lambda: kuberay.completes("mnist"),
        ],
    )
    assert ears.follow(cluster).succeeded
    assert len([line for line in ears.said if "No node has room" in line]) == 1
    assert len([line for line in ears.said if "cannot be pulled" in line]) == 1


@pytest.mark.usefixtures("job")
def test_a_job_that_fails_is_returned_with_the_reason(
    cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    steps = kuberay.usual("mnist", "Traceback", "ValueError: no")[:-1]
    kuberay.plays("mnist", [*steps, lambda: kuberay.fails("mnist")])
    state = ears.follow(cluster)
    assert (state.phase, state.succeeded) == ("failed", False)
    assert state.message == "Job entrypoint command failed with exit code 1."
    assert ears.shown == ["Traceback", "ValueError: no"]


@pytest.mark.usefixtures("job")
def test_output_that_breaks_goes_on_without_repeating_a_line(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    submitter = kuberay.submitter("mnist")

    def on_show(line: str) -> None:
        if line in ("one", "two"):
            server.break_logs(submitter)
            kuberay.prints("mnist", {"one": "two", "two": "three"}[line])
        else:
            kuberay.completes("mnist")

    ears.on_show = on_show
    kuberay.plays("mnist", kuberay.usual("mnist", "one")[:-1])
    assert ears.follow(cluster).succeeded
    assert ears.shown == ["one", "two", "three"]


@pytest.mark.usefixtures("job")
def test_ctrl_c_leaves_the_job_and_says_how_to_come_back(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, ears: Ears, ctrl_c: Callable[[str], None]
) -> None:
    ears.on_show = ctrl_c
    kuberay.plays("mnist", kuberay.usual("mnist", "epoch 1")[:-1])
    with pytest.raises(Detached, match=r"goes on") as left:
        ears.follow(cluster)
    assert str(left.value).splitlines()[1:] == [
        "Come back with: elasticdl jobs logs -f mnist --cluster=kubernetes:tests --namespace=default",
        "Stop it with: elasticdl jobs stop mnist --cluster=kubernetes:tests --namespace=default",
    ]
    assert left.value.exit_code == 130
    assert [job["metadata"]["name"] for job in server.all("rayjobs")] == ["mnist"]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("output")]


@pytest.mark.usefixtures("ctrl_c", "kubeconfig")
def test_ctrl_c_after_a_submission_is_no_error(
    server: ApiServer, capsys: pytest.CaptureFixture[str]
) -> None:
    def press(name: str) -> None:
        if server.all("rayjobs"):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    server.on_read = press
    words = ["--model_def=m.custom_model", "--training_data=s3://b/d", "--output=s3://b/o"]
    pod = ["--cluster=kubernetes", "--image_name=reg/z:1", "--job_name=mnist"]
    assert main(["train", *words, *pod]) == 130
    err = capsys.readouterr().err
    assert "\nThe job 'mnist' goes on.\nCome back with: elasticdl jobs logs -f mnist" in err
    assert "Error" not in err


@pytest.mark.usefixtures("job")
def test_ctrl_c_before_it_runs_leaves_it_too(
    cluster: Cluster, ears: Ears, ctrl_c: Callable[[str], None]
) -> None:
    ears.on_say = ctrl_c
    with pytest.raises(Detached):
        ears.follow(cluster)


@pytest.mark.usefixtures("job")
def test_sigterm_leaves_it_with_the_same_words_and_its_own_exit_code(
    cluster: Cluster, ears: Ears
) -> None:
    ears.on_say = lambda line: signal.raise_signal(signal.SIGTERM)
    with pytest.raises(Detached, match="goes on") as left:
        ears.follow(cluster)
    assert left.value.exit_code == 143
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.usefixtures("job")
def test_a_job_that_kuberay_does_not_look_at_says_where_to_look_for_kuberay(
    cluster: Cluster, kuberay: KubeRay, ears: Ears, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("elasticdl.runtime.kubernetes.follow.UNSEEN_S", 0.0)
    kuberay.plays("mnist", [lambda: None, lambda: None, *kuberay.usual("mnist")])
    assert ears.follow(cluster).succeeded
    assert len([line for line in ears.said if "kubectl get pods -n ray-system" in line]) == 1


@pytest.mark.usefixtures("job")
def test_a_job_that_is_deleted_meanwhile_was_stopped(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    ears.on_show = lambda line: cluster.delete("mnist")
    kuberay.plays("mnist", kuberay.usual("mnist", "epoch 1")[:-1])
    state = ears.follow(cluster)
    assert (state.phase, state.message, state.is_over) == ("stopped", "It was deleted.", True)


def test_an_unknown_job_is_an_error(cluster: Cluster, ears: Ears) -> None:
    with pytest.raises(UnknownName, match="Unknown job 'mnist'"):
        ears.follow(cluster)


@pytest.mark.usefixtures("job")
def test_a_server_that_fails_for_a_while_is_said_once(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    def on_say(line: str) -> None:
        if "starting" in line:
            server.refuse(503, "apiserver is shutting down", path="rayjobs/mnist", times=3)

    ears.on_say = on_say
    kuberay.plays("mnist", kuberay.usual("mnist", "epoch 1"))
    assert ears.follow(cluster).succeeded
    assert len([line for line in ears.said if "apiserver is shutting down" in line]) == 1
    assert ears.said.count("The cluster answers again.") == 1


@pytest.mark.usefixtures("job")
def test_a_server_that_stays_away_ends_the_following(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    ears.on_say = lambda line: server.refuse(503, "no leader", path="rayjobs/mnist")
    with pytest.raises((Refused, Unreachable), match="no leader"):
        ears.follow(cluster, patience_s=0.05)


@pytest.mark.usefixtures("job")
def test_a_server_that_fails_at_the_first_look_is_borne(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    server.refuse(503, "apiserver is shutting down", path="rayjobs/mnist", times=1)
    kuberay.plays("mnist", kuberay.usual("mnist", "epoch 1"))
    assert ears.follow(cluster).succeeded


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize(("status", "path"), [(401, "rayjobs/mnist"), (403, "/pods")])
def test_who_may_not_look_hears_that_the_job_goes_on(
    server: ApiServer, cluster: Cluster, ears: Ears, status: int, path: str
) -> None:
    server.refuse(status, "no", path=path)
    with pytest.raises(Refused) as told:
        ears.follow(cluster)
    (note,) = told.value.__notes__
    assert "The job 'mnist' goes on.\nCome back with: elasticdl jobs logs -f mnist" in note


@pytest.mark.usefixtures("job")
def test_credentials_that_expire_end_the_following_at_once(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    ears.on_say = lambda line: server.refuse(401, "Unauthorized", path="rayjobs/mnist")
    with pytest.raises(Refused, match="does not accept the credentials"):
        ears.follow(cluster)


@pytest.mark.usefixtures("job")
def test_output_that_may_not_be_read_is_said_and_the_job_is_followed(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    server.refuse(403, "pods/log is forbidden", path="/log")

    def on_say(line: str) -> None:
        if "pods/log is forbidden" in line:
            kuberay.completes("mnist")

    ears.on_say = on_say
    kuberay.plays("mnist", kuberay.usual("mnist", "epoch 1")[:-1])
    assert ears.follow(cluster).succeeded
    assert ears.shown == []


@pytest.mark.usefixtures("job")
def test_a_second_try_of_kuberay_is_followed_too(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, ears: Ears
) -> None:
    def on_say(line: str) -> None:
        if "starting" in line and ears.shown:
            kuberay.plays(
                "mnist", [lambda: kuberay.runs("mnist"), lambda: kuberay.completes("mnist")]
            )

    ears.on_say = on_say
    kuberay.plays(
        "mnist", [*kuberay.usual("mnist", "first")[:-1], lambda: kuberay.tries_again("mnist")]
    )
    assert ears.follow(cluster).succeeded
    assert ears.shown == ["first"]
    assert len([line for line in ears.said if "is running" in line]) == 2
