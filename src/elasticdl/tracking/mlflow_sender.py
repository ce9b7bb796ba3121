"""The process that sends to MLflow, so that a training need not wait: `python -m elasticdl.tracking.mlflow_sender`.

On its stdin it is told, a JSON object a line, first what is tracked, then that there are new events, then that
it is the end; when the training was killed its stdin just ends. On its stdout it answers with what it has
done. It ends by itself.
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
from elasticdl.tracking.mlflow_store import Store, prepare_environment

__all__ = ["main"]

NICE = 19
RETRY_S = (2.0, 5.0, 10.0, 30.0)


class _Answers:
    """Lines to the training's process, which may be gone; what MLflow says without anything secret."""

    def __init__(self, secrets: list[str]) -> None:
        self._secrets = secrets
        self._out = _own_stdout()

    def tell(self, **fields: Any) -> None:
        with contextlib.suppress(OSError):
            print(json.dumps(fields), file=self._out, flush=True)

    def quote(self, kind: str, text: str) -> None:
        self.tell(**{kind: hide_secrets(text, self._secrets)})


class _Session:
    """The attempts to send, and when the next one is due."""

    def __init__(self, tracked: Tracked, answers: _Answers) -> None:
        self._tracked = tracked
        self._address = prepare_environment(tracked.address)
        self._answers = answers
        self._secrets = secrets_of(tracked.address)
        self._replay: Replay | None = None
        self._failures = 0
        self._due = 0.0

    @property
    def wait_s(self) -> float | None:
        """Until the next attempt is due; None when nothing is left to send."""
        return max(0.0, self._due - time.monotonic()) if self._failures else None

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
        self._answers.tell(run_id=self._replay.run_id, url=self._replay.url)

    def finish(self) -> None:
        self._answers.tell(ended=True)

    def _note(self, text: str) -> None:
        self._answers.quote("note", text)


def main() -> None:
    os.nice(NICE)
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    tracked = Tracked.from_json(sys.stdin.readline())
    session = _Session(tracked, _Answers(secrets_of(tracked.address)))
    words: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_listen, args=(words,), daemon=True).start()
    is_end = False
    while not is_end:
        is_end = _is_end(_all(words, session.wait_s))
        if is_end or not session.wait_s:
            session.attempt(is_end=is_end)
    session.finish()


def _listen(words: queue.Queue[str]) -> None:
    for line in sys.stdin:
        words.put(line)
    words.put("")


def _all(words: queue.Queue[str], wait_s: float | None) -> list[str]:
    """All that was said since, after something was or the time is over."""
    heard = []
    try:
        heard.append(words.get(timeout=wait_s))
        while True:
            heard.append(words.get_nowait())
    except queue.Empty:
        return heard


def _is_end(heard: list[str]) -> bool:
    return any(not line or json.loads(line).get("end") for line in heard)


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
