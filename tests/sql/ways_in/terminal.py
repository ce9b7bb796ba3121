"""A terminal with nobody before it: what a program shows, and keys for it."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

ANSI = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[()][A-Z0-9]|\x1b[=>]|\x1b\][^\x07]*\x07")


# Makes stdin the terminal of the session, else Ctrl-C reaches nobody. Not in a `preexec_fn`: that forks, which gRPC's
# threads in this process do not survive.
LAUNCH = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


class Terminal:
    """Runs a command on a pseudo-terminal.

    with Terminal(["elasticdl", "sql"], cwd, environment) as terminal:
        terminal.expect("sql> ")
        terminal.send("SELECT 1;\\r")
    """

    def __init__(self, command: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        os.set_blocking(self._master, False)
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCH, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=cwd,
            env={
                **environment,
                "TERM": "xterm",
                "COLUMNS": "120",
                "LINES": "40",
                "PROMPT_TOOLKIT_NO_CPR": "1",
            },
            start_new_session=True,
        )
        os.close(slave)
        self._unread = ""
        self.seen = ""

    def send(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def expect(self, text: str, timeout_s: float = 20) -> str:
        """What was shown up to the text, which must come. Of what is typed a terminal gets changes only."""
        deadline = time.monotonic() + timeout_s
        while text not in self._unread:
            assert self._read(deadline - time.monotonic()), f"no {text!r} in {self.seen!r}"
        before, _, self._unread = self._unread.partition(text)
        return before

    def wait(self, timeout_s: float = 20) -> int:
        """The exit code; what is shown until then is taken."""
        deadline = time.monotonic() + timeout_s
        while self._read(deadline - time.monotonic()):
            pass
        return self.process.wait(timeout_s)

    def _read(self, timeout_s: float) -> bool:
        if timeout_s <= 0 or not select.select([self._master], [], [], timeout_s)[0]:
            return False
        try:
            read = os.read(self._master, 65536).decode(errors="replace")
        except OSError:  # the program has closed its side
            return False
        plain = ANSI.sub("", read).replace("\r", "")
        self._unread += plain
        self.seen += plain
        return bool(read)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._master)
