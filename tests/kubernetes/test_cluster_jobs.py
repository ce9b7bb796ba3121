"""`elasticdl jobs --cluster=kubernetes`: what is asked of the cluster, and what of the run in its head pod.

Commands in the head pod are really run, on a run directory of this test.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from api_server import ApiServer
from kuberay import KubeRay

from elasticdl.artifacts.run_directory import RunDirectory
from elasticdl.cli.main import main
from elasticdl.errors import InvalidValue
from elasticdl.job.parse import workers_text
from elasticdl.runtime.elastic.scaling import ScaleWish
from elasticdl.runtime.jobs import inside, on_kubernetes
from elasticdl.runtime.jobs.jobs import Left
from elasticdl.runtime.jobs.ray_job import STOPPED, resume_command
from elasticdl.runtime.jobs.shares import Group, shared
from elasticdl.runtime.kubernetes.client import Cluster

Manifest = Callable[..., dict[str, Any]]

ON_CLUSTER = ["--cluster=kubernetes"]
JOB = {"command": "train", "distribution_strategy": "AllreduceStrategy", "num_workers": "2"}
STARTED = {"event": "run_started", "command": "train", "job": "mnist", "num_epochs": 3, "step": 0}
STEP = {"event": "step", "step": 25, "epoch": 1, "loss": 0.5, "examples_per_s": 10.0}


def jobs(*words: str) -> int:
    return main(["jobs", *words, *ON_CLUSTER])


def elasticdl(pod: str, argv: list[str]) -> tuple[int, str]:
    """The command as the head pod would run it."""
    assert argv[0] == "elasticdl"
    done = subprocess.run(
        [sys.executable, "-m", *argv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    return done.returncode, done.stdout


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """The run directory of a job, on a volume."""
    directory = RunDirectory(str(tmp_path / "volume/mnist"))
    directory.path.mkdir(parents=True)
    directory.job.write_text(json.dumps(JOB))
    tell(directory, STARTED, STEP)
    return directory


def tell(directory: RunDirectory, *events: dict[str, Any]) -> None:
    with Path(str(directory.events)).open("a") as file:
        file.writelines(json.dumps({"time": 1.0, **event}) + "\n" for event in events)


@pytest.fixture
def running(
    server: ApiServer,
    cluster: Cluster,
    kuberay: KubeRay,
    manifest: Manifest,
    run: RunDirectory,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[KubeRay]:
    """A cluster in which the job `mnist` trains with two workers."""
    cluster.create(manifest("mnist", output=str(run.path)))
    kuberay.starts("mnist")
    kuberay.runs("mnist")
    server.on_exec = elasticdl
    monkeypatch.setattr(on_kubernetes, "POLL_S", 0.01)
    yield kuberay


def test_jobs_of_a_namespace_are_listed(
    cluster: Cluster,
    kuberay: KubeRay,
    manifest: Manifest,
    running: KubeRay,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster.create(manifest("later", command="predict"))
    assert jobs("list") == 0
    _, *rows = capsys.readouterr().out.splitlines()
    later, mnist = (row.split() for row in rows)
    assert later[:2] == ["later", "predict"]
    assert mnist[:3] == ["mnist", "train", "running"]
    assert "2" in mnist
    kuberay.completes("mnist")
    assert jobs("list", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [(one["name"], one["status"]) for one in told][1] == ("mnist", "completed")
    assert told[1]["ended"] >= told[1]["started"] > 1.7e9


def test_an_empty_namespace_has_no_jobs(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jobs("list") == 0
    assert capsys.readouterr().out == "There are no jobs in this namespace.\n"


def test_a_namespace_that_is_not_there_is_no_empty_one(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jobs("list", "--namespace=nope") == 2
    assert "has no namespace 'nope'" in capsys.readouterr().err
    assert jobs("list", "--namespace=.") == 2
    assert "Invalid namespace '.'" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", ".", "a/b"])
def test_what_can_be_no_name_does_nothing_to_the_jobs_that_are_there(
    name: str, running: KubeRay, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["status"], ["logs"], ["stop"], ["wait"], ["scale", "--num_workers=2"]):
        assert jobs(words[0], name, *words[1:]) == 2
        assert f"Invalid job {name!r}" in capsys.readouterr().err
    assert jobs("stop", name, "--now") == 2
    assert cluster.has_job("mnist")


def test_status_has_the_progress_that_the_head_pod_reads(
    running: KubeRay, run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jobs("status", "mnist") == 0
    shown = capsys.readouterr().out
    assert "epoch 2/3, step 25" in shown
    assert "mnist-abcde-workers-0" in shown
    assert "elasticdl jobs stop mnist --cluster=kubernetes:tests --namespace=default" in shown


def test_a_head_pod_that_does_not_answer_is_told_and_not_waited_for(
    running: KubeRay, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = threading.Event()
    running.server.on_exec = lambda pod, argv: (0, str(ended.wait()))
    monkeypatch.setattr(inside, "ANSWER_S", 0.1)
    monkeypatch.setattr(inside, "NOTICED_S", 0.0)
    try:
        assert jobs("status", "mnist") == 0
    finally:
        ended.set()
    told = capsys.readouterr()
    assert "running" in told.out
    assert told.err.splitlines() == [
        "Asking its head pod how far it is ...",
        "Its head pod does not answer within 0.1 s, so its progress is not known.",
    ]


def test_numbers_that_are_none_are_shown_and_are_null_in_json(
    running: KubeRay, run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(run, {"event": "evaluation", "step": 25, "metrics": {"auc": float("nan")}})
    assert jobs("status", "mnist") == 0
    assert re.search(r"validation auc +nan", capsys.readouterr().out)
    assert jobs("status", "mnist", "--json") == 0
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["metrics"] == {
        "auc": None
    }


def test_status_tells_of_pods_that_cannot_start(
    cluster: Cluster,
    kuberay: KubeRay,
    manifest: Manifest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster.create(manifest("mnist"))
    kuberay.starts("mnist")
    kuberay.cannot_schedule(kuberay.worker("mnist"))
    assert jobs("status", "mnist") == 0
    shown = capsys.readouterr().out
    assert "starting" in shown
    assert "3 Insufficient cpu" in shown


def test_an_unknown_job_is_told_with_the_nearest(
    running: KubeRay, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["status"], ["logs"], ["stop"], ["wait"], ["scale", "--num_workers=2"]):
        assert jobs(words[0], "minst", *words[1:]) == 2
        assert "Unknown job 'minst'" in (said := capsys.readouterr().err)
        assert "Did you mean 'mnist'" in said


def test_logs_are_those_of_the_driver(running: KubeRay, capsys: pytest.CaptureFixture[str]) -> None:
    running.prints("mnist", "one", "two", "three")
    assert jobs("logs", "mnist", "--tail=2") == 0
    assert capsys.readouterr().out.splitlines() == ["two", "three"]
    assert jobs("logs", "mnist") == 0
    assert capsys.readouterr().out.splitlines() == ["one", "two", "three"]


@pytest.mark.parametrize("word", ["Dashboard: http://127.0.0.1", "three"])
def test_logs_are_followed_to_their_end_however_soon_it_comes(
    word: str, running: KubeRay, cluster: Cluster
) -> None:
    running.prints("mnist", "one", "two", "three")
    shown: list[str] = []

    def ends(line: str) -> None:
        if line.startswith(word):
            running.prints("mnist", "four")
            running.completes("mnist")

    def show(line: str) -> None:
        shown.append(line)
        ends(line)

    found = on_kubernetes.ClusterJobs(cluster)
    found.logs("mnist", ends, show, worker=None, tail=1, follow=True)
    assert shown == ["three", "four"]
    found.logs("mnist", print, show, worker=None, tail=1, follow=True)
    assert shown[2:] == ["four"]


def test_sigterm_ends_the_following_of_logs_as_ctrl_c_does(
    running: KubeRay, cluster: Cluster
) -> None:
    def terminate(line: str) -> None:
        signal.raise_signal(signal.SIGTERM)

    found = on_kubernetes.ClusterJobs(cluster)
    with pytest.raises(KeyboardInterrupt) as left:
        found.logs("mnist", terminate, print, worker=None, tail=None, follow=True)
    assert left.value.args == (signal.SIGTERM,)


def test_logs_are_waited_for_until_the_job_runs(
    cluster: Cluster,
    kuberay: KubeRay,
    manifest: Manifest,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(on_kubernetes, "POLL_S", 0.01)
    cluster.create(manifest("mnist"))
    kuberay.plays("mnist", kuberay.usual("mnist", "hello"))
    assert jobs("logs", "mnist", "--follow") == 0
    told = capsys.readouterr()
    assert told.out == "hello\n"
    assert "The job mnist is starting" in told.err


def test_logs_of_a_worker_come_from_the_run_directory(
    running: KubeRay, run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = run.path / "logs"
    logs.mkdir()
    (logs / "worker-1.log").write_text("a\nb\n")
    assert jobs("logs", "mnist", "--worker=1", "--tail=1") == 0
    assert capsys.readouterr().out == "b\n"
    assert jobs("logs", "mnist", "--worker=5") == 1
    assert "no log of a worker '5'" in capsys.readouterr().err
    assert jobs("logs", "mnist", "--worker=1", "--follow") == 2


def test_a_training_is_stopped_with_a_checkpoint(
    running: KubeRay, run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    holds, pause = threading.Event(), threading.Event()

    def train() -> None:
        with run.held(resume=True, job={}):
            holds.set()
            while not run.is_asked_to_stop():
                pause.wait(0.01)
        while STOPPED not in running.server.get("rayjobs", "mnist")["metadata"]["annotations"]:
            pause.wait(0.01)
        running.fails("mnist", "Job entrypoint command failed with exit code 130")

    training = threading.Thread(target=train)
    training.start()
    holds.wait()
    assert jobs("stop", "mnist") == 0
    training.join()
    told = capsys.readouterr()
    assert "Asked mnist to stop" in told.err
    assert told.out.startswith("mnist: interrupted\n")
    assert f"elasticdl train --resume --output={run.path} --image_name=registry" in told.out
    assert jobs("stop", "mnist") == 2
    assert "has ended already" in capsys.readouterr().err
    assert jobs("wait", "mnist") == 1


def test_a_run_that_refuses_to_stop_says_why(
    running: KubeRay, run: RunDirectory, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jobs("stop", "mnist") == 1
    said = capsys.readouterr().err
    assert "in the head pod of 'mnist'" in said
    assert "has ended already: ended without a word" in said
    assert said.endswith("Delete the job, without a checkpoint, with --now.\n")


@pytest.mark.parametrize("words", [["stop", "mnist", "--now"], ["stop", "other"]])
def test_a_job_is_deleted_at_once_or_when_it_has_nothing_to_save(
    words: list[str],
    running: KubeRay,
    cluster: Cluster,
    manifest: Manifest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster.create(manifest("other", output="s3://bucket/other"))
    assert jobs(*words) == 0
    assert f"Deleted the job {words[1]}" in capsys.readouterr().err
    assert not cluster.has_job(words[1])


@pytest.mark.parametrize("words", [[], ["--now"]])
def test_a_rayjob_of_others_is_not_deleted(
    words: list[str], running: KubeRay, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    job = running.server.get("rayjobs", "mnist")
    del job["metadata"]["labels"]
    running.server.put("rayjobs", job)
    assert jobs("stop", "mnist", *words) == 2
    assert "is not ElasticDL's" in (said := capsys.readouterr().err)
    assert "kubectl delete rayjob mnist -n default" in said
    assert cluster.has_job("mnist")


@pytest.mark.parametrize("is_there", [True, False])
def test_a_training_whose_head_is_not_seen_is_not_deleted(
    is_there: bool, running: KubeRay, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    if is_there:
        running.is_evicted(running.head("mnist"))
    else:
        running.server.remove("pods", running.head("mnist"))
    assert jobs("stop", "mnist") == 1
    assert "delete the job, without a checkpoint, with --now" in capsys.readouterr().err
    assert cluster.has_job("mnist")
    assert jobs("stop", "mnist", "--now") == 0
    assert not cluster.has_job("mnist")


def test_an_ended_job_is_taken_away_with_now(
    running: KubeRay, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    running.completes("mnist")
    assert jobs("stop", "mnist") == 2
    assert "has ended already: completed. Take it away with --now." in capsys.readouterr().err
    with pytest.raises(InvalidValue, match="take the old one away with: elasticdl jobs stop --now"):
        cluster.check("mnist")
    assert jobs("stop", "mnist", "--now") == 0
    assert "Deleted the job mnist." in capsys.readouterr().err
    cluster.check("mnist")


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_before_a_job_was_asked_to_stop_says_that_it_goes_on(
    running: KubeRay, capsys: pytest.CaptureFixture[str]
) -> None:
    def press(name: str) -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    running.server.on_read = press
    assert jobs("stop", "mnist") == 130
    assert capsys.readouterr().err == "\nmnist was not asked to stop: it goes on.\n"


def test_ctrl_c_after_a_job_was_asked_to_stop_says_that_it_will(
    running: KubeRay, cluster: Cluster, run: RunDirectory, ctrl_c: Callable[[str], None]
) -> None:
    with (
        run.held(resume=True, job={}),
        pytest.raises(Left, match=r"mnist was asked to stop, and will\."),
    ):
        on_kubernetes.ClusterJobs(cluster).stop("mnist", ctrl_c, now=False, waits=True)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (
            "train",
            "elasticdl train --resume --output=s3://b/o --image_name=registry.example.com/zoo:1 ",
        ),
        ("run", "elasticdl run --run_name=a --set=x=1 --image_name=registry.example.com/zoo:1 "),
    ],
)
def test_who_goes_on_has_what_the_job_had(command: str, told: str, manifest: Manifest) -> None:
    flags = "--worker_resource_request=cpu=4 '--envs=A=b c' --spot --num_workers=2 --namespace=x"
    job = manifest("mnist", command=command, output="s3://b/o", num_workers="3:5", flags=flags)
    job["spec"]["entrypoint"] = (
        "elasticdl run --run_name=a --project_root=/model_zoo --set=x=1 --num_workers=2 "
        "--distribution_strategy=AllreduceStrategy --worker_resource_request=cpu=4 --ray_address=auto"
    )
    more = "--num_workers=3:5 --worker_resource_request=cpu=4 '--envs=A=b c' --spot --cluster=here"
    assert resume_command(job, "--cluster=here") == told + more


def test_the_command_that_goes_on_makes_the_same_pods(
    server: ApiServer, cluster: Cluster, kuberay: KubeRay, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--cluster=kubernetes", "--image_name=reg/z:1", "--output=/data/run", "--detach"]
    asked = [
        "--worker_resource_request=cpu=4,memory=8Gi",
        "--master_resource_request=cpu=2,memory=4Gi",
        "--volume=claim_name=data,mount_path=/data",
        "--envs=A=b c",
        "--image_pull_policy=Always",
        "--num_workers=2:4",
        "--spot",
    ]
    model = ["--model_def=m.custom_model", "--training_data=/data/train", "--job_name=mnist"]
    assert main(["train", *model, *where, *asked]) == 0
    for step in (kuberay.starts, kuberay.runs, kuberay.fails):
        step("mnist")
    capsys.readouterr()
    assert jobs("status", "mnist") == 0
    command = capsys.readouterr().out.rpartition("To go on:\n")[2].strip()
    assert main([*shlex.split(command)[1:], "--job_name=again", "--detach"]) == 0
    first, second = (
        json.dumps(server.get("rayjobs", name)["spec"]["rayClusterSpec"]).replace(name, "x")
        for name in ("mnist", "again")
    )
    assert first == second


def test_an_experiment_that_was_stopped_is_told_how_to_go_on(
    cluster: Cluster, kuberay: KubeRay, manifest: Manifest, capsys: pytest.CaptureFixture[str]
) -> None:
    job = manifest("mnist", command="run", output="memory://runs/a")
    job["spec"]["entrypoint"] = "elasticdl run --run_name=a"
    cluster.create(job)
    for step in (kuberay.starts, kuberay.runs, kuberay.fails):
        step("mnist")
    assert jobs("status", "mnist") == 0
    shown = capsys.readouterr().out
    assert "To go on (in the project's directory):\n  elasticdl run --run_name=a --image" in shown


def test_scaling_makes_room_and_tells_the_run(
    running: KubeRay,
    run: RunDirectory,
    cluster: Cluster,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ended = threading.Event()

    def hear(wishes: ScaleWish) -> None:
        while not ended.wait(0.01):
            if wish := wishes.poll():
                tell(run, {"event": "scaled", "num_workers": workers_text(wish), "before": "2"})

    def told(pod: str, argv: list[str]) -> tuple[int, str]:
        hearing = threading.Thread(target=hear, args=[ScaleWish(run.path)])
        with run.held(resume=True, job={}):
            hearing.start()
            answer = elasticdl(pod, argv)
            ended.set()
            hearing.join()
        return answer

    running.server.on_exec = told
    assert jobs("scale", "mnist", "--num_workers=3:5") == 0
    assert capsys.readouterr().out == "scaling from 2 to 3:5 workers\n"
    (group,) = cluster.worker_groups("mnist")
    assert (group["minReplicas"], group["replicas"], group["maxReplicas"]) == (3, 5, 5)
    assert cluster.get("mnist")["metadata"]["annotations"]["elasticdl/num_workers"] == "3:5"


def test_a_run_that_cannot_be_scaled_leaves_the_cluster_as_it_was(
    running: KubeRay, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jobs("scale", "mnist", "--num_workers=4") == 1
    assert "has ended (ended without a word)" in capsys.readouterr().err
    (group,) = cluster.worker_groups("mnist")
    assert (group["minReplicas"], group["maxReplicas"]) == (2, 2)


def test_a_job_that_does_not_run_is_not_scaled(
    cluster: Cluster,
    kuberay: KubeRay,
    manifest: Manifest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster.create(manifest("mnist", output="s3://bucket/mnist"))
    kuberay.starts("mnist")
    assert jobs("scale", "mnist", "--num_workers=4") == 2
    assert "does not run: starting" in capsys.readouterr().err


def test_waiting_has_the_exit_codes_of_runs(
    running: KubeRay, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jobs("wait", "mnist", "--timeout=0") == 3
    running.plays("mnist", [lambda: None, lambda: running.completes("mnist")])
    assert jobs("wait", "mnist") == 0
    assert capsys.readouterr().out.startswith("mnist: completed")


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_cluster_that_fails_for_a_while_does_not_end_the_waiting(
    status: int, running: KubeRay, capsys: pytest.CaptureFixture[str]
) -> None:
    running.server.refuse(status, "no", path="rayjobs/mnist", times=3)
    running.plays("mnist", [lambda: None, lambda: running.completes("mnist")])
    assert jobs("wait", "mnist") == 0
    running.server.refuse(status, "no", path="rayjobs/mnist")
    assert jobs("wait", "mnist", "--timeout=0.01") == 3
    assert "mnist goes on after 0.01 s" in capsys.readouterr().err


def test_a_cluster_that_stays_away_ends_the_waiting_and_the_job_goes_on(
    running: KubeRay, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(on_kubernetes, "SILENCE_S", 0.0)
    running.server.refuse(503, "no leader", path="rayjobs/mnist")
    assert jobs("wait", "mnist") == 1
    assert "no leader" in (said := capsys.readouterr().err)
    assert "The job 'mnist' goes on." in said


def test_a_job_that_is_deleted_while_it_is_waited_for_says_so(
    running: KubeRay, capsys: pytest.CaptureFixture[str]
) -> None:
    server = running.server
    running.plays("mnist", [lambda: None, lambda: server.remove("rayjobs", "mnist")])
    assert jobs("wait", "mnist") == 1
    assert capsys.readouterr().out == "mnist: was deleted\n"


@pytest.mark.parametrize(
    ("workers", "before", "after"),
    [
        ((3, 5), [(2, 2)], [(3, 5)]),
        ((4, 4), [(1, 1), (1, 1)], [(2, 2), (2, 2)]),
        ((3, 6), [(2, 2), (0, 2)], [(3, 3), (0, 3)]),
        ((4, 8), [(2, 2), (0, 6)], [(2, 2), (2, 6)]),
        ((1, 1), [(1, 1), (1, 1)], [(1, 1), (0, 0)]),
        ((2, 3), [(0, 0)], [(2, 3)]),
    ],
)
def test_groups_keep_their_share(
    workers: tuple[int, int], before: list[tuple[int, int]], after: list[tuple[int, int]]
) -> None:
    groups = [Group(str(at), *numbers) for at, numbers in enumerate(before)]
    assert [(one.least, one.most) for one in shared(workers, groups)] == after
