"""What can be asked of jobs, wherever they run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Protocol

from elasticdl.errors import InvalidValue
from elasticdl.runtime.jobs.account import Account

__all__ = ["Accounts", "Jobs", "Left", "Say", "Steps", "Workers", "jobs_at", "left_with", "quiet"]

Say = Callable[[str], None]
Steps = tuple[tuple[str, str], ...]
"""What to try next: (what for, command)."""
Workers = tuple[int, int]
Accounts = list[Account]


class Left(KeyboardInterrupt):
    """Ctrl-C when something had been asked of a job: what became of it, in words."""


@contextmanager
def left_with(words: str) -> Iterator[None]:
    """What Ctrl-C in the block means."""
    try:
        yield
    except KeyboardInterrupt:
        raise Left(words) from None


def quiet(line: str) -> None:
    """Says nothing."""


class Jobs(Protocol):
    """Jobs of one kind. A job is named as users name it; one that is unknown raises, with the nearest name."""

    def list(self, places: Sequence[str]) -> Accounts: ...

    def account(self, job: str, say: Say = quiet) -> Account:
        """What takes long is said."""

    def next_steps(self, account: Account) -> Steps: ...

    def logs(
        self, job: str, say: Say, show: Say, *, worker: str | None, tail: int | None, follow: bool
    ) -> None:
        """Shows its lines; what else there is to know is said."""

    def stop(self, job: str, say: Say, *, now: bool, waits: bool) -> Account | None:
        """None when it is not waited for.

        Raises:
          Left: Ctrl-C after it was asked to stop.
        """

    def scale(self, job: str, workers: Workers, say: Say) -> None: ...

    def wait(self, job: str, timeout_s: float | None) -> Account | None:
        """None when it takes longer."""


@contextmanager
def jobs_at(cluster: str | None, namespace: str | None) -> Iterator[Jobs]:
    """The jobs in run directories, or those of a Kubernetes cluster.

    Args:
      cluster: `kubernetes` or `kubernetes:CONTEXT`.
      namespace: of the cluster; the context's own by default.

    Raises:
      InvalidValue: the cluster is none, or a namespace was given without one.
    """
    if cluster is not None:
        with _connected(cluster, namespace) as jobs:
            yield jobs
        return
    if namespace is not None:
        raise InvalidValue(
            f"The namespace {namespace!r} has no cluster. Give --cluster=kubernetes too."
        )
    from elasticdl.runtime.jobs.run_directories import RunDirectories

    yield RunDirectories()


@contextmanager
def _connected(cluster: str, namespace: str | None) -> Iterator[Jobs]:
    from elasticdl.runtime.kubernetes.request import parse_cluster

    context = parse_cluster(cluster)
    from elasticdl.runtime.jobs.on_kubernetes import ClusterJobs
    from elasticdl.runtime.kubernetes.client import connect

    with closing(connect(context, namespace)) as connection:
        yield ClusterJobs(connection)
