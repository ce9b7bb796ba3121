"""A job from its submission to its end, as its user sees it: how it is, its dashboard, its output."""

from __future__ import annotations

import contextlib
import queue
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from elasticdl.errors import RunError, UnknownName
from elasticdl.runtime.kubernetes.coming_back import Detached, detached, goes_on, heard_sigterm
from elasticdl.runtime.kubernetes.driver_log import DriverLog
from elasticdl.runtime.kubernetes.forward import forward
from elasticdl.runtime.kubernetes.refusals import Refused, Unreachable, is_passing
from elasticdl.runtime.kubernetes.words import State, told

if TYPE_CHECKING:
    from elasticdl.runtime.kubernetes.client import Cluster

__all__ = ["Detached", "follow"]

Say = Callable[[str], None]

DASHBOARD_PORT = 8265
POLL_S = 2.0
PATIENCE_S = 600.0
"""How long a cluster may be silent before we give up to follow: the job itself goes on."""

UNSEEN_S = 30.0
"""After so long it is said where to look for a KubeRay that does not look at the job."""

LAST_LINES_S = 10.0
"""How long the last lines of a job that has ended may take to come."""


def follow(
    cluster: Cluster,
    name: str,
    say: Say,
    *,
    until_running: bool = False,
    show: Say | None = None,
    poll_s: float = POLL_S,
    patience_s: float = PATIENCE_S,
) -> State:
    """Tell how a job does until it is over.

    Args:
      cluster: where it is.
      name: the job.
      say: called with a line for each change: a new phase, the dashboard's address, a pod in trouble.
      until_running: return as soon as it runs, without its dashboard and output.
      show: called with each line that the job prints; it goes to the standard output if not given.
      poll_s: how often the cluster is asked.
      patience_s: for how long it may not answer.

    Raises:
      Detached: Ctrl-C or SIGTERM; the job goes on.
      UnknownName: there is no such job.
      RunError: the cluster does not answer any more, or does not accept the credentials.
    """
    with contextlib.ExitStack() as held, heard_sigterm():
        follower = _Follower(cluster, name, say, show or _print, held, poll_s, patience_s)
        try:
            return follower.run(until_running)
        except KeyboardInterrupt as stopped:
            raise detached(goes_on(cluster, name), stopped) from None
        except (Refused, Unreachable) as error:
            error.add_note(goes_on(cluster, name))
            raise


class _Follower:
    def __init__(
        self,
        cluster: Cluster,
        name: str,
        say: Say,
        show: Say,
        held: contextlib.ExitStack,
        poll_s: float,
        patience_s: float,
    ) -> None:
        self._cluster, self._name, self._say, self._show = cluster, name, say, show
        self._poll_s, self._patience_s = poll_s, patience_s
        self._held = held
        self._output: _Output | None = None
        self._phase = ""
        self._began = time.monotonic()
        self._said: set[str] = set()
        self._silent_since: float | None = None

    def run(self, until_running: bool) -> State:
        while True:
            state = self._look()
            if state is not None:
                self._tell(state)
                if state.is_over:
                    self._show_lines(LAST_LINES_S)
                    return state
                if state.phase == "running":
                    if until_running:
                        return state
                    self._attend()
                elif self._output is not None and self._output.has_ended:
                    self._leave()  # KubeRay tries again, with other pods
            self._show_lines(self._poll_s)

    def _look(self) -> State | None:
        """How the job is; None while the cluster does not answer."""
        try:
            seen = self._cluster.look(self._name)
        except UnknownName:
            if not self._phase:
                raise
            return State("stopped", "It was deleted.", is_over=True, succeeded=False)
        except (Unreachable, Refused) as error:
            self._bear(error)
            return None
        if self._silent_since is not None:
            self._silent_since = None
            self._say("The cluster answers again.")
        return told(seen.job, seen.pods, seen.events)

    def _bear(self, error: Unreachable | Refused) -> None:
        """Go on without an answer for a while, unless no other will come."""
        now = time.monotonic()
        if not is_passing(error):
            raise error
        if self._silent_since is None:
            self._silent_since = now
            self._say(f"{error} The job goes on; trying again.")
        if now - self._silent_since >= self._patience_s:
            raise error

    def _tell(self, state: State) -> None:
        if state.phase != self._phase:
            self._phase = state.phase
            self._say(_sentence(self._name, state))
        if state.phase == "submitted" and time.monotonic() - self._began >= UNSEEN_S:
            self._say_once(
                "KubeRay has still not looked at the job. Does it run? See with: kubectl get pods -n ray-system"
            )
        for trouble in state.troubles:
            if not state.is_over:
                self._say_once(trouble)

    def _say_once(self, line: str) -> None:
        key = line.split(":")[0]  # what comes then are details, which change all the time
        if key not in self._said:
            self._said.add(key)
            self._say(line)

    def _attend(self) -> None:
        """Open the dashboard's way, and listen to the job's output."""
        if self._output is not None:
            return
        self._open_dashboard()
        self._output = self._held.enter_context(_Output(self._cluster, self._name, self._poll_s))

    def _leave(self) -> None:
        self._held.close()
        self._output = None

    def _open_dashboard(self) -> None:
        try:
            head = self._cluster.head_pod(self._name)
            if head is None:
                return
            if not self._cluster.may("get", "pods", subresource="portforward"):
                self._say("The dashboard cannot be shown: you have no right to pods/portforward.")
                return
        except RunError:
            return  # the job's state is what matters: whether the cluster answers is seen there
        url = self._held.enter_context(
            forward(self._cluster, head["metadata"]["name"], DASHBOARD_PORT)
        )
        self._say(f"Dashboard: {url} (as long as this command runs)")

    def _show_lines(self, for_s: float) -> None:
        """Show what the job prints for a while; less long if its output ends."""
        if self._output is None or self._output.has_ended:
            if self._phase not in ("completed", "failed", "stopped"):
                time.sleep(for_s)
            return
        until = time.monotonic() + for_s
        while (left := until - time.monotonic()) > 0:
            line = self._output.next_line(left)
            if line is None:
                break
            self._show(line)
        if error := self._output.take_error():
            self._say(f"The job's output cannot be shown: {error}")


class _Output:
    """The lines of a job's driver, read by a thread of their own."""

    def __init__(self, cluster: Cluster, name: str, again_s: float) -> None:
        self._log = DriverLog(cluster, name, again_s)
        self._lines: queue.Queue[str | None] = queue.Queue(maxsize=10_000)
        self._error: RunError | None = None
        self.has_ended = False
        self._thread = threading.Thread(target=self._read, name=f"output-{name}", daemon=True)

    def __enter__(self) -> _Output:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()
        while self._thread.is_alive():
            with contextlib.suppress(queue.Empty):  # it may wait for room
                self._lines.get_nowait()
            self._thread.join(0.01)

    def next_line(self, timeout_s: float) -> str | None:
        """The next line; None if none comes in time, or no more will."""
        if self.has_ended:
            return None
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            return None
        self.has_ended = line is None
        return line

    def take_error(self) -> RunError | None:
        """Why there are no lines, once."""
        error, self._error = (self._error, None) if self.has_ended else (None, self._error)
        return error

    def _read(self) -> None:
        try:
            for line in self._log.lines(follow=True):
                self._lines.put(line)
        except RunError as error:
            self._error = error
        finally:
            self._lines.put(None)


def _sentence(name: str, state: State) -> str:
    if state.is_over:
        return f"The job {name} {'was' if state.phase == 'stopped' else 'has'} {state.phase}."
    message = "" if state.troubles else state.message
    return f"The job {name} is {state.phase}. {message}".rstrip()


def _print(line: str) -> None:
    print(line, flush=True)
