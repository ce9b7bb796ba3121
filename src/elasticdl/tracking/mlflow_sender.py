"""The process that sends to MLflow, so that a training need not wait: `python -m elasticdl.tracking.mlflow_sender`.

It loads MLflow first. On its stdin it is told, a JSON object a line, first what is tracked, then that there are new
events, then that it is the end; when the training was killed its stdin just ends. On its stdout it answers with what
it has done. It ends by itself.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import queue
import sys
import threading
import time
import warnings
from typing import Any, TextIO

from elasticdl.tracking.mlflow_address import hide_secrets, secrets_of
from elasticdl.tracking.mlflow_reason import reason_of
from elasticdl.tracking.mlflow_replay import Replay
from elasticdl.tracking.mlflow_state import Tracked
from elasticdl.tracking.mlflow_store import Store, load_mlflow, log_in

__all__ = ["main"]

NICE = 19
REST_S = 2.0
"""Epochs may be shorter than a request is worth: what happens in this time is sent together."""
RETRY_S = (2.0, 5.0, 10.0, 30.0)


class _Answers:
    """Lines to the training's process, which may be gone; what MLflow says without anything secret."""

    def __init__(self, secrets: list[str], out: TextIO) -> None:
        self._secrets = secrets
        self._out = out

    def tell(self, **fields: Any) -> None:
        with contextlib.suppress(OSError):
            print(json.dumps(fields), file=self._out, flush=True)

    def quote(self, kind: str, text: str) -> None:
        self.tell(**{kind: hide_secrets(text, self._secrets)})


class _Session:
    """The attempts to send, and when the next one is due."""

    def __init__(self, tracked: Tracked, answers: _Answers) -> None:
        self._tracked = tracked
        self._address = log_in(tracked.address)
        self._answers = answers
        self._secrets = secrets_of(tracked.address)
        self._replay: Replay | None = None
        self._failures = 0
        self._due = 0.0

    @property
    def has_failed(self) -> bool:
        """Whether something is left to send that was tried."""
        return self._failures > 0

    @property
    def wait_s(self) -> float:
        """Until the next attempt is due."""
        return max(0.0, self._due - time.monotonic())

    def attempt(self, *, is_end: bool) -> None:
        try:
            if self._replay is None:
                self._replay = Replay(self._tracked, Store(self._address), self._note)
            self._replay.send()
            if is_end:
                self._replay.end()
        except Exception as error:
            self._due = time.monotonic() + RETRY_S[min(self._failures, len(RETRY_S) - 1)]
            self._failures += 1
            self._answers.quote("failing", reason_of(error, self._secrets))
            return
        self._failures = 0
        self._due = time.monotonic() + REST_S
        self._answers.tell(run_id=self._replay.run_id, url=self._replay.url)

    def finish(self) -> None:
        self._answers.tell(ended=True)

    def _note(self, text: str) -> None:
        self._answers.quote("note", text)


def main() -> None:
    os.nice(NICE)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    stdout = _own_stdout()
    with contextlib.suppress(Exception):  # what is wrong with it is told when it is used
        load_mlflow()
    greeting = sys.stdin.readline()
    if not greeting:
        return
    tracked = Tracked.from_json(greeting)
    session = _Session(tracked, _Answers(secrets_of(tracked.address), stdout))
    words: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(words,), daemon=True).start()
    is_end = False
    while not is_end:
        is_end = _is_end(words, session)
        session.attempt(is_end=is_end)
    session.finish()


def _listen(words: queue.Queue[str]) -> None:
    for line in sys.stdin:
        words.put(line)
    words.put("")


def _is_end(words: queue.Queue[str], session: _Session) -> bool:
    """Whether it is the end; otherwise it is time for the next attempt, and there is something to send."""
    has_news = session.has_failed
    while not (has_news and not session.wait_s):
        try:
            line = words.get(timeout=session.wait_s if has_news else None)
        except queue.Empty:
            continue
        if not line or json.loads(line).get("end"):
            return True
        has_news = True
    return False


def _own_stdout() -> TextIO:
    """Stdout for answers alone: what MLflow prints goes nowhere."""
    mine = os.fdopen(os.dup(1), "w", encoding="utf-8")
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return mine


if __name__ == "__main__":
    main()
    os._exit(0)  # all is sent; to take MLflow apart would take a while, and stdin may still be read
