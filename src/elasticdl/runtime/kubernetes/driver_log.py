"""What a job's driver prints, from the pod that shows it: each line once, though the connection breaks."""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Generator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from elasticdl.errors import RunError
from elasticdl.runtime.kubernetes.refusals import (
    Refused,
    Unreachable,
    is_passing,
    no_api,
    spoken,
)

if TYPE_CHECKING:
    from elasticdl.runtime.kubernetes.client import Cluster

__all__ = ["DriverLog"]

CONNECT_S = 10.0
SILENCE_S = 120.0
"""How long a connection without a line is believed in: then it is made anew."""

MARGIN_S = 60
"""How much more than needed is asked for after a break: what was seen already is left out."""

STAMP = re.compile(r"(\S+?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d) ?(.*)", re.DOTALL)


class DriverLog:
    """The log of a job's driver.

    Args:
      cluster: where the job is.
      name: the job.
      again_s: how long to wait before a broken connection is made anew.
    """

    def __init__(self, cluster: Cluster, name: str, again_s: float = 1.0) -> None:
        self._cluster, self._name, self._again_s = cluster, name, again_s
        self._closed = threading.Event()
        self._response: Any = None
        self._seen = _Seen()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End `lines`, from another thread too."""
        self._closed.set()
        if (response := self._response) is not None:
            with contextlib.suppress(ValueError, RuntimeError, OSError):  # it has just ended
                response.shutdown()

    def lines(self, follow: bool = False) -> Iterator[str]:
        """The lines so far; with `follow` also those to come, until the driver ends.

        Raises:
          RunError: there is no log: nothing was printed yet, or it is gone with its pod.
        """
        pod = self._cluster.submitter_pod(self._name)
        if pod is None:
            raise self._no_log()
        name = pod["metadata"]["name"]
        while not self._closed.is_set():
            is_whole = yield from self._connection(name, follow)
            if is_whole and (not follow or self._has_ended(name)):
                return
            self._closed.wait(self._again_s)

    def _no_log(self) -> RunError:
        return RunError(
            f"The job {self._name!r} has no log now: it has not begun to run, "
            "or its pod was taken away after its end."
        )

    def _has_ended(self, pod: str) -> bool:
        try:
            now = self._cluster.pod(pod)
        except (Unreachable, Refused):
            return False
        return now is None or now.get("status", {}).get("phase") in ("Succeeded", "Failed")

    def _connection(self, pod: str, follow: bool) -> Generator[str, None, bool]:
        """The lines of one connection that were not seen before; then, whether the server has ended it."""
        try:
            with spoken(self._cluster.host, f"read the log of the pod {pod!r}"):
                self._response = self._cluster.core.read_namespaced_pod_log(
                    pod,
                    self._cluster.namespace,
                    follow=follow,
                    timestamps=True,
                    since_seconds=self._seen.since_s,
                    _preload_content=False,
                    _request_timeout=(CONNECT_S, SILENCE_S),
                )
                if "html" in self._response.headers.get("Content-Type", ""):  # no log is
                    raise no_api(self._cluster.host, "HTML")
                if self._closed.is_set():  # while it was opened
                    return True
                for line in _lines(self._response):
                    if (text := self._seen.new(line)) is not None:
                        yield text
            return True
        except Unreachable:
            if not follow:
                raise
            return False
        except Refused as error:
            is_absent = error.status in (400, 404)  # the container is not up yet; its pod is gone
            if is_absent and not follow:
                raise self._no_log() from error
            if not is_absent and not (follow and is_passing(error)):
                raise
            return error.status == 404
        finally:
            if (response := self._response) is not None:
                self._response = None
                response.close()


class _Seen:
    """Which lines were seen, by their times: the server can only be asked for the last seconds."""

    def __init__(self) -> None:
        self._last, self._at_last = "", 0
        self._same = 0  # lines with the last time, in this connection
        self._heard_at = 0.0

    @property
    def since_s(self) -> int | None:
        if not self._last:
            return None
        self._same = 0
        return int(time.monotonic() - self._heard_at) + MARGIN_S

    def new(self, line: str) -> str | None:
        """The line without its time, or None when it was seen before."""
        stamp, text = _split(line)
        if not stamp:
            return text
        if stamp < self._last:
            return None
        if stamp == self._last:
            self._same += 1
            if self._same <= self._at_last:
                return None
        else:
            self._last, self._same = stamp, 1
        self._at_last, self._heard_at = self._same, time.monotonic()
        return text


def _split(line: str) -> tuple[str, str]:
    """A line's time, in a form that sorts (the server leaves zeros at the end out), and its text."""
    found = STAMP.match(line)
    if found is None:
        return "", line
    return f"{found[1]}.{found[2] or '':0<9}{found[3]}", found[4]


def _lines(response: Any) -> Iterator[str]:
    rest = b""
    for part in response.stream(amt=None, decode_content=False):
        *whole, rest = (rest + part).split(b"\n")
        yield from (line.decode("utf-8", "replace") for line in whole)
    if rest:
        yield rest.decode("utf-8", "replace")
