"""A run's events to MLflow, without the training waiting for it.

MLflow is loaded and spoken to in a process of its own (`mlflow_sender`), which reads events.jsonl. What it could not
send is sent with the next run: `mlflow.json` in the run directory knows how far it came.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from upath import UPath

from elasticdl.storage import is_local
from elasticdl.tracking.mlflow_address import checked_address, default_tracking_uri, shown
from elasticdl.tracking.mlflow_state import Tracked

__all__ = ["MlflowSender", "MlflowSink", "checked_address", "default_tracking_uri"]

SENDER = "elasticdl.tracking.mlflow_sender"
TOLD = ("run_started", "epoch", "exported", "report", "run_ended")


class MlflowSender:
    """The process that sends. It loads MLflow, which takes seconds, from when it is made: make it early.

    One that no sink took is to be ended with `end_unused`.
    """

    def __init__(self) -> None:
        self.is_used = False
        self.process: subprocess.Popen[bytes] | None = None
        self.problem: str | None = None
        if not _is_installed():
            self.problem = (
                "MLflow is not installed: nothing is sent to it. Install it with: "
                "pip install 'elasticdl[mlflow]'"
            )
            return
        try:
            # A session of its own, so that Ctrl-C does not end it before the last word is sent; -P, so
            # that it imports no file of the user's that is named like a package.
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", SENDER],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self.problem = f"The process that sends to MLflow cannot be started: {error}."

    def close(self) -> None:
        """The last word: it sends what is left and ends."""
        if self.process is not None and self.process.stdin is not None:
            self.process.stdin.close()

    def end_unused(self) -> None:
        """End one that was never told what to track; any other ends by itself."""
        if self.process is not None and not self.is_used:
            self.process.kill()
            self.process.communicate()


class MlflowSink:
    """Tells MLflow of a run: an `EventSink`, to be used beside the `EventFile` of `events`.

    `warn` is called from a thread of the sink's own and from `close`, never from `receive`; once when MLflow
    takes nothing, and once for each thing that was mended.
    """

    patience_s = 30.0
    """How long `close` waits for what is left to be sent."""

    def __init__(
        self,
        run_directory: UPath,
        events: Path,
        tracking_uri: str,
        experiment: str,
        run_name: str,
        params: Mapping[str, str],
        tags: Mapping[str, str],
        warn: Callable[[str], None],
        sender: MlflowSender | None = None,
    ) -> None:
        self.run_id: str | None = None
        self.run_url: str | None = None
        self._warn = warn
        self._tracked = Tracked(
            run_directory=str(
                run_directory.absolute() if is_local(run_directory) else run_directory
            ),
            events=str(Path(events).absolute()),
            address=checked_address(tracking_uri),
            experiment=experiment,
            run_name=run_name,
            params={str(name): str(value) for name, value in params.items()},
            tags={str(name): str(value) for name, value in tags.items()},
        )
        self._is_told = False
        self._has_ended = False
        self._sender = sender or MlflowSender()
        self._sender.is_used = True
        self._is_greeted = threading.Event()
        self._has_begun = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mlflow", daemon=True)
        self._thread.start()

    def receive(self, event: Mapping[str, Any]) -> None:
        self._has_begun.set()
        if event["event"] in TOLD:
            self._say({})

    def close(self) -> None:
        """Wait for what is left to be sent, for as long as `patience_s`."""
        self._has_begun.set()
        if self._is_greeted.wait(self.patience_s):
            self._say({"end": True})
            self._sender.close()
        self._thread.join(self.patience_s)
        if self._thread.is_alive():
            self._tell_once(
                f"{self._where} has not taken all of {self._tracked.run_name} in {self.patience_s:.0f} s. "
                "The rest is sent in the background, or with the next run."
            )

    @property
    def _where(self) -> str:
        return f"MLflow at {shown(self._tracked.address)}"

    def _say(self, word: Mapping[str, Any]) -> None:
        """A word to the sender. It never waits: the sender reads the events in their file."""
        process = self._sender.process
        stdin = process.stdin if process is not None else None
        if stdin is None or stdin.closed or not self._is_greeted.is_set():
            return
        # The sender is gone, of which its thread tells; or `close` has closed it in this very moment.
        with contextlib.suppress(OSError, ValueError):
            stdin.write(json.dumps(word).encode() + b"\n")

    def _run(self) -> None:
        """The sink's own thread: greets the sender and hears its answers, to its end."""
        process = self._sender.process
        try:
            if process is not None:
                self._greet(process)
        finally:
            self._is_greeted.set()
        if process is None:
            self._tell_once(self._sender.problem or "")
            return
        self._say({})  # of what happened before it was greeted
        assert process.stdout is not None
        with process.stdout as answers:
            for line in answers:
                self._hear(json.loads(line))
        code = process.wait()
        if not self._has_ended:
            self._tell_once(
                f"The process that sends to MLflow has ended (exit code {code}). The training goes on. What "
                f"was not sent is sent with the next run of {self._tracked.run_name}."
            )

    def _greet(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        message = self._tracked.to_json().encode() + b"\n"
        with contextlib.suppress(OSError):
            while message:
                message = message[process.stdin.write(message) or 0 :]
        os.set_blocking(process.stdin.fileno(), False)

    def _hear(self, answer: Mapping[str, Any]) -> None:
        if answer.get("run_id"):
            self.run_id, self.run_url = answer["run_id"], answer["url"]
        if "ended" in answer:
            self._has_ended = True
        if "note" in answer:
            self._tell(answer["note"])
        if "failing" in answer:
            self._tell_once(
                f"{self._where} takes nothing: {answer['failing']}. The run goes on. What is not sent is "
                f"sent when it answers, or with the next run of {self._tracked.run_name}."
            )

    def _tell_once(self, text: str) -> None:
        if not self._is_told:
            self._is_told = True
            self._tell(text)

    def _tell(self, text: str) -> None:
        self._has_begun.wait()  # whoever is told may not be there before the run is
        with contextlib.suppress(Exception):  # a full disk is told of by those who need it
            self._warn(text)


def _is_installed() -> bool:
    try:
        return importlib.util.find_spec("mlflow") is not None
    except ValueError:
        return False
