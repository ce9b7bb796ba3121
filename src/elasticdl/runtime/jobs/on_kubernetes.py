"""Jobs on Kubernetes: each is a RayJob. What only the run itself can do is asked of it in its head pod."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

from elasticdl.errors import InvalidValue, RunError, UnknownName
from elasticdl.job.parse import workers_text
from elasticdl.runtime.jobs.account import DONE, RUNNING, Account
from elasticdl.runtime.jobs.driver_logs import follow_driver, show_driver
from elasticdl.runtime.jobs.inside import progress_inside
from elasticdl.runtime.jobs.jobs import Accounts, Say, Steps, Workers, left_with, quiet
from elasticdl.runtime.jobs.ray_job import (
    STOPPED,
    WITH_CHECKPOINTS,
    account_of_job,
    head_runs,
    noted,
    resume_command,
)
from elasticdl.runtime.jobs.shares import Group, shared
from elasticdl.runtime.kubernetes.checks import check_namespace, is_ours
from elasticdl.runtime.kubernetes.client import Cluster, Look, Object
from elasticdl.runtime.kubernetes.coming_back import goes_on
from elasticdl.runtime.kubernetes.refusals import Refused, Unreachable, is_passing
from elasticdl.runtime.kubernetes.words import State, told

__all__ = ["ClusterJobs"]

POLL_S = 2.0
"""How often a job that is waited for is looked at."""
SILENCE_S = 600.0
"""For so long a cluster may be away while a job is waited for."""

DELETED = "deleted"
ENDS = (*DONE, "failed", "interrupted")


class ClusterJobs:
    """The jobs of a namespace.

    Args:
      cluster: where they are.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._wait = wait
        self._clock = clock
        self._where = f"namespace {cluster.namespace}"

    # --- looking ---

    def list(self, places: Sequence[str]) -> Accounts:
        found = []
        for job in self._cluster.list():
            is_over = told(job, [], []).is_over
            pods = [] if is_over else self._cluster.pods(job["metadata"]["name"])
            found.append(account_of_job(job, told(job, pods, []), pods, self._where))
        if not found:
            check_namespace(self._cluster)
        return sorted(found, key=lambda one: (one.started or 0.0, one.name), reverse=True)

    def account(self, job: str, say: Say = quiet) -> Account:
        seen, state = self._look(job)
        account = self._account(seen, state)
        output = noted(seen.job, "output")
        if output is None or account.command not in WITH_CHECKPOINTS:
            return account
        return progress_inside(self._cluster, account, output, say)

    def next_steps(self, account: Account) -> Steps:
        flags = f"--cluster={shlex.quote(self._cluster.flag)} --namespace={self._cluster.namespace}"
        if DELETED in (account.message, account.status):
            return ()
        if account.status not in ENDS:
            return (
                ("see what it says", f"elasticdl jobs logs {account.name} --follow {flags}"),
                ("stop it", f"elasticdl jobs stop {account.name} {flags}"),
            )
        said = ("see what it said", f"elasticdl jobs logs {account.name} {flags}")
        if account.status == "completed" or account.command not in WITH_CHECKPOINTS:
            return (said,)
        here = " (in the project's directory)" if account.command == "run" else ""
        job = self._cluster.get(account.name)
        return (said, (f"go on{here}", resume_command(job, flags)))

    def logs(
        self, job: str, say: Say, show: Say, *, worker: str | None, tail: int | None, follow: bool
    ) -> None:
        if worker is not None:
            for line in self._worker_log(job, worker, tail, follow):
                show(line)
        elif follow and not self._look(job)[1].is_over:
            follow_driver(self._cluster, job, say, show, tail, poll_s=POLL_S)
        else:
            show_driver(self._cluster, job, show, tail)

    def wait(self, job: str, timeout_s: float | None) -> Account | None:
        until = None if timeout_s is None else self._clock() + timeout_s
        found = self._get(job, until)
        while found is None or not told(found, [], []).is_over:
            if until is not None and self._clock() >= until:
                return None
            self._wait(POLL_S)
            before = found
            try:
                found = self._get(job, until)
            except UnknownName:
                if before is None:
                    raise
                return replace(self._account_of(before), status=DELETED, message=None, ended=None)
        with contextlib.suppress(UnknownName, Refused, Unreachable):
            return self._account(*self._look(job))  # its pods may say why
        return self._account_of(found)

    # --- changing ---

    def stop(self, job: str, say: Say, *, now: bool, waits: bool) -> Account | None:
        """With a checkpoint where there is a training that can write one; otherwise the job is deleted."""
        found = self._cluster.get(job)
        if not is_ours(found):
            raise InvalidValue(
                f"The RayJob {job!r} is not ElasticDL's: it lacks the label app.kubernetes.io/managed-by=elasticdl. "
                f"Delete it with: kubectl delete rayjob {job} -n {self._cluster.namespace}"
            )
        if now:
            return self._delete(job, found, say)
        seen, state = self._look(job)
        if state.is_over:
            raise InvalidValue(
                f"The job {job!r} has ended already: {state.phase}. Take it away with --now."
            )
        output = noted(seen.job, "output")
        if output is None or noted(seen.job, "command") not in WITH_CHECKPOINTS:
            return self._delete(job, found, say, ": it writes no checkpoints")
        if state.phase != RUNNING:
            return self._delete(
                job, found, say, ": it did not run yet, so there is nothing to save"
            )
        if not head_runs(seen.pods):
            raise RunError(
                f"The job {job!r} runs, but its head pod is not to be seen, which would write the checkpoint. Try "
                "again, or delete the job, without a checkpoint, with --now."
            )
        return self._stop_with_checkpoint(job, output, say, waits)

    def _delete(self, job: str, found: Object, say: Say, why: str = "") -> Account:
        with left_with(f"It is not known whether {job} was deleted."):
            self._cluster.delete(job)
        say(f"Deleted the job {job}{why}.")
        before = self._account_of(found)
        status = before.status if before.status in ENDS else "stopped"
        return replace(before, status=status, message=DELETED)

    def _stop_with_checkpoint(self, job: str, output: str, say: Say, waits: bool) -> Account | None:
        with left_with(f"It is not known whether {job} was asked to stop."):
            try:
                self._ask(job, ["elasticdl", "jobs", "stop", output, "--no_wait"])
            except RunError as error:
                error.add_note("Delete the job, without a checkpoint, with --now.")
                raise
        with left_with(f"{job} was asked to stop, and will."):
            self._note(job, {STOPPED: datetime.now().astimezone().isoformat(timespec="seconds")})
            say(f"Asked {job} to stop.")
            if not waits:
                return None
            say("Waiting for its checkpoint ...")
            return self.wait(job, None)

    def scale(self, job: str, workers: Workers, say: Say) -> None:
        """First there is room for workers, then the run hears of it; if it refuses, the room is as before."""
        seen, state = self._look(job)
        output = noted(seen.job, "output")
        if state.phase != RUNNING:
            raise InvalidValue(
                f"The job {job!r} does not run: {state.phase}. Only a running job can be scaled."
            )
        if output is None:
            raise InvalidValue(
                f"The job {job!r} has no run directory, where it could be told. Only trainings can be scaled."
            )
        before = [Group.of(group) for group in self._cluster.worker_groups(job)]
        wanted = workers_text(workers)
        self._set_groups(job, shared(workers, before))
        try:
            said = self._ask(job, ["elasticdl", "scale", output, f"--num_workers={wanted}"])
        except BaseException:
            self._set_groups(job, before)
            raise
        self._note(job, {"elasticdl/num_workers": wanted})
        say(said)

    def _set_groups(self, job: str, groups: Sequence[Group]) -> None:
        for group in groups:
            self._cluster.scale_group(job, group.name, group.least, group.most)

    # --- logs ---

    def _worker_log(self, job: str, worker: str, tail: int | None, follow: bool) -> Sequence[str]:
        if follow:
            raise InvalidValue(
                "A worker's log on Kubernetes cannot be followed. Leave --follow or --worker out."
            )
        output = noted(self._cluster.get(job), "output")
        if output is None:
            raise InvalidValue(f"The job {job!r} has no run directory, so no logs of workers.")
        tails = [] if tail is None else [f"--tail={tail}"]
        argv = ["elasticdl", "jobs", "logs", output, f"--worker={worker}", *tails]
        return self._ask(job, argv).splitlines()

    # --- asking ---

    def _look(self, job: str) -> tuple[Look, State]:
        seen = self._cluster.look(job)
        return seen, told(seen.job, seen.pods, seen.events)

    def _account(self, seen: Look, state: State) -> Account:
        return account_of_job(seen.job, state, seen.pods, self._where)

    def _account_of(self, job: Object) -> Account:
        """Without its pods."""
        return account_of_job(job, told(job, [], []), [], self._where)

    def _get(self, job: str, until: float | None) -> Object | None:
        """The job; None when the cluster does not answer until then. For a while it may be away."""
        away_until = self._clock() + SILENCE_S
        while True:
            try:
                return self._cluster.get(job)
            except (Refused, Unreachable) as error:
                if not is_passing(error) or self._clock() >= away_until:
                    error.add_note(goes_on(self._cluster, job))
                    raise
            if until is not None and self._clock() >= until:
                return None
            self._wait(POLL_S)

    def _ask(self, job: str, argv: Sequence[str]) -> str:
        """What a command in the head pod says.

        Raises:
          RunError: it failed, in its own words.
        """
        code, output = self._cluster.exec_in_head(job, argv)
        if code:
            said = output.strip().removeprefix("Error: ") or f"exit code {code}"
            raise RunError(f"`{shlex.join(argv)}` failed in the head pod of {job!r}: {said}")
        return output.strip()

    def _note(self, job: str, annotations: dict[str, str]) -> None:
        with contextlib.suppress(Refused, Unreachable):  # it is only for who lists jobs later
            self._cluster.patch(job, {"metadata": {"annotations": annotations}})
