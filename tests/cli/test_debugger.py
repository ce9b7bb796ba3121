"""A real debugger, spoken to as an editor does: breakpoints in the user's file are hit."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

WAIT_S = 60

MODEL = """\
import keras
import tensorflow as tf

def custom_model():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])  # stop: model

def dataset_fn(dataset, mode):
    def parse(row):
        numbers = tf.strings.to_number(row[:4])  # stop: map
        return numbers, tf.cast(tf.strings.length(row[4]) % 3, tf.int32)
    return dataset.map(parse)  # stop: dataset

def loss(labels, output):
    return tf.reduce_mean(  # stop: loss
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=output))

def optimizer():
    return keras.optimizers.SGD(0.1)
"""


class Editor:
    """Enough of the Debug Adapter Protocol to set breakpoints and to be told where it stopped."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT_S)
        self._stream = self._socket.makefile("rb")
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._sent = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while header := self._stream.readline():
            if header.lower().startswith(b"content-length"):
                self._stream.readline()
                size = int(header.split(b":")[1])
                self._messages.put(json.loads(self._stream.read(size)))
        self._messages.put(None)

    def send(self, command: str, **arguments: Any) -> None:
        self._sent += 1
        message = {"seq": self._sent, "type": "request", "command": command}
        body = json.dumps({**message, "arguments": arguments}).encode()
        self._socket.sendall(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def wait_for(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any] | None:
        while (message := self._messages.get(timeout=WAIT_S)) is not None:
            if wanted(message):
                return message
        return None

    def stops(self) -> Iterator[tuple[str, int]]:
        """(function, line) of each stop, until the program ends."""
        events = ("stopped", "terminated")
        while message := self.wait_for(lambda m: m.get("event") in events):
            if message["event"] == "terminated":
                return
            thread = message["body"]["threadId"]
            self.send("stackTrace", threadId=thread, levels=1)
            answer = self.wait_for(lambda m: m.get("command") == "stackTrace")
            assert answer is not None
            frame = answer["body"]["stackFrames"][0]
            yield frame["name"], frame["line"]
            self.send("continue", threadId=thread)

    def close(self) -> None:
        self.send("disconnect", terminateDebuggee=True)
        self.wait_for(lambda m: m.get("command") == "disconnect")
        self._reader.join(WAIT_S)
        self._stream.close()
        self._socket.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def editor(tmp_path: Path) -> Iterator[Editor]:
    (tmp_path / "mine.py").write_text(MODEL)
    (tmp_path / "data.csv").write_text("a,b,c,d,e\n" + "1,2,3,4,xy\n" * 40)
    port = free_port()
    stderr = (tmp_path / "stderr").open("w")
    program = subprocess.Popen(
        [
            *(sys.executable, "-Xfrozen_modules=off", "-m", "debugpy"),
            *("--listen", f"127.0.0.1:{port}", "--wait-for-client"),
            *("-m", "elasticdl.python.elasticdl.client", "train", "--debug"),
            *("--model_zoo", str(tmp_path), "--model_def", "mine.custom_model"),
            *("--training_data", str(tmp_path / "data.csv")),
            *("--minibatch_size", "3", "--num_minibatches_per_task", "1"),
            *("--max_step", "2", "--output", str(tmp_path / "run")),
        ],
        stderr=stderr,
        start_new_session=True,
    )
    stderr.close()
    connected = None
    while connected is None:
        assert program.poll() is None, (tmp_path / "stderr").read_text()
        try:
            connected = Editor(port)
        except ConnectionRefusedError:
            threading.Event().wait(0.05)
    yield connected
    connected.close()
    os.killpg(program.pid, signal.SIGKILL)  # the debugger has a process of its own
    program.wait()
    print((tmp_path / "stderr").read_text())


def test_breakpoints_in_the_users_file_are_hit(editor: Editor, tmp_path: Path) -> None:
    lines = {
        number: re.search(r"# stop: (\w+)", text)[1]
        for number, text in enumerate(MODEL.splitlines(), 1)
        if "# stop:" in text
    }
    editor.send("initialize", adapterID="test")
    editor.send("attach", justMyCode=True)
    editor.wait_for(lambda m: m.get("event") == "initialized")
    path = str(tmp_path / "mine.py")
    editor.send("setBreakpoints", source={"path": path}, breakpoints=[{"line": n} for n in lines])
    editor.send("configurationDone")
    places = set()
    for _, line in editor.stops():
        places.add(lines[line])
        if places == set(lines.values()):
            break
    assert places == {"model", "map", "dataset", "loss"}
