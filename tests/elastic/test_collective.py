"""TensorFlow's collectives between real processes on this machine, whose members change and die."""

from __future__ import annotations

import inspect
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from elasticdl.runtime.elastic import collective
from processes import python

PROGRAM = Path(__file__).with_name("collective_peer.py")
START_S, SOON_S = 120.0, 20.0
"""Until something must have happened; it takes much less."""


class Peer:
    def __init__(self, index: int) -> None:
        self.index = index
        streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = python(
            str(PROGRAM), str(index), stderr=subprocess.DEVNULL, text=True, bufsize=1, **streams
        )

        self._said: queue.Queue[str] = queue.Queue()
        self._ear = threading.Thread(target=self._listen, daemon=True)
        self._ear.start()

    def begin(self) -> None:
        self.address = self.hear(START_S)["address"]

    def tell(self, do: str, **arguments: Any) -> None:
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")

    def hear(self, seconds: float = SOON_S) -> dict[str, Any]:
        try:
            line = self._said.get(timeout=seconds)
        except queue.Empty:
            raise AssertionError(f"peer {self.index} says nothing") from None
        assert line, f"peer {self.index} has ended"
        return json.loads(line)

    def is_silent(self) -> bool:
        return self._said.empty()

    def _listen(self) -> None:
        while line := self._process.stdout.readline():
            self._said.put(line)
        self._said.put("")

    def signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    def end(self) -> None:
        self._process.kill()
        self._ear.join()
        self._process.communicate()


Start = Callable[[int], list[Peer]]


@pytest.fixture
def start() -> Iterator[Start]:
    peers: list[Peer] = []

    def start(count: int) -> list[Peer]:
        new = [Peer(len(peers) + i) for i in range(count)]
        peers.extend(new)
        for peer in new:
            peer.begin()
        return new

    yield start
    for peer in peers:
        peer.end()


def form(number: int, peers: list[Peer]) -> None:
    members = {str(peer.index): peer.address for peer in peers}
    for peer in peers:
        peer.tell("form", number=number, members=members)
    for peer in peers:
        assert peer.hear() == {"formed": number}


def ask(number: int, size: int, peers: list[Peer]) -> None:
    for peer in peers:
        peer.tell("sum", value=10.0**peer.index, keys=[number, size])


def sums(number: int, peers: list[Peer]) -> set[float]:
    ask(number, len(peers), peers)
    return {peer.hear()["sum"] for peer in peers}


def test_members_sum_and_form_again_with_others(start: Start) -> None:
    a, b = start(2)
    form(1, [a, b])
    assert sums(1, [a, b]) == {11.0}
    assert sums(1, [a, b]) == {11.0}
    (c,) = start(1)
    form(2, [a, b, c])
    assert sums(2, [a, b, c]) == {111.0}
    for peer in (a, b, c):
        peer.tell("row", seed=peer.index, count=300, keys=[2, 3])
    assert [peer.hear() for peer in (a, b, c)] == [{"right": 300}] * 3, "one sum is not another"
    form(3, [c, a])
    assert sums(3, [a, c]) == {101.0}
    form(4, [c])
    ask(4, 1, [c])
    assert c.hear() == {"sum": 100.0, "traced": 1}, "one graph for all memberships"
    c.tell("fail")
    assert c.hear() == {"kept": True}, "what the user's graph raises is not the group's"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such filter")
def test_other_machines_do_not_reach_members_on_this_one(start: Start) -> None:
    a, b = start(2)
    for number in (1, 2):  # TensorFlow keeps its server when members change
        form(number, [a, b])
        assert sums(number, [a, b]) == {11.0}
        port = int(a.address.rpartition(":")[2])
        socket.create_connection(("127.0.0.1", port), timeout=SOON_S).close()
        # TensorFlow listens for IPv6 as well, and what comes by it is not from 127.0.0.0/8.
        with pytest.raises(TimeoutError):
            socket.create_connection(("::1", port), timeout=1.5)


def test_a_peer_that_is_killed_is_noticed_and_the_others_go_on(start: Start) -> None:
    a, b, c = start(3)
    form(1, [a, b, c])
    assert sums(1, [a, b, c]) == {111.0}
    ask(1, 3, [b, c])
    a.signal(signal.SIGKILL)  # the group's leader
    assert "broken" in b.hear() and "broken" in c.hear()
    form(2, [b, c])
    assert sums(2, [b, c]) == {110.0}


@pytest.mark.parametrize("size", [2, 3])
def test_sums_in_one_call_are_met_by_who_has_nothing_to_add(start: Start, size: int) -> None:
    """TensorFlow knows a sum by the pass of the loop, too: in another graph the others would wait for ever."""
    peers = start(size)
    form(1, peers)
    for count in (1, 5):
        for peer in peers:
            peer.tell("loop", value=float(peer.index), count=count, keys=[1, size])
        total = count * sum(range(size))
        assert [peer.hear() for peer in peers] == [{"total": total}] * size


def test_of_a_call_that_is_broken_all_know_how_many_sums_there_were(start: Start) -> None:
    a, b, c = start(3)
    form(1, [a, b, c])
    assert sums(1, [a, b, c]) == {111.0}
    for peer in (a, b, c):
        peer.tell("loop", value=1.0, count=10_000_000, keys=[1, 3])
    c.tell("passes")
    assert c.hear()["passes"] > 0
    a.signal(signal.SIGKILL)
    told = [b.hear(), c.hear()]
    assert all(one["total"] == 3.0 * one["passes"] > 0 for one in told), "no pass is half taken"
    passes = [one["passes"] for one in told]
    assert abs(passes[0] - passes[1]) <= 1
    form(2, [b, c])
    assert sums(2, [b, c]) == {110.0}


def test_who_waits_for_a_peer_that_hangs_is_freed_by_an_ordered_abort(start: Start) -> None:
    a, b, c = start(3)
    form(1, [a, b, c])
    assert sums(1, [a, b, c]) == {111.0}
    b.signal(signal.SIGSTOP)
    ask(1, 3, [a, c])
    for peer in (a, c):
        peer.tell("abort", number=0)
        assert peer.hear() == {"aborted": 0}
        assert peer.is_silent(), "an abort of another group changes nothing"
    for peer in (a, c):
        peer.tell("abort", number=1)
        answers = [peer.hear(), peer.hear()]
        assert {"aborted": 1} in answers
        assert any("broken" in answer for answer in answers)
    form(2, [a, c])
    assert sums(2, [a, c]) == {101.0}
    b.signal(signal.SIGCONT)  # it comes back late, to nobody
    assert sums(2, [a, c]) == {101.0}


# --- what is relied on in TensorFlow ---


def test_the_private_interface_is_as_it_was_when_this_was_written(tensorflow: None) -> None:
    import tensorflow as tf
    from tensorflow.core.protobuf import cluster_pb2, tensorflow_server_pb2
    from tensorflow.python.eager import context

    found = context.context()
    for name, parameters in (
        ("configure_collective_ops", ["collective_leader"]),
        ("enable_collective_ops", ["server_def"]),
        ("abort_collective_ops", ["code", "message"]),
        ("ensure_initialized", []),
    ):
        taken = list(inspect.signature(getattr(found, name)).parameters)
        assert taken[: len(parameters)] == parameters, name
    assert set(inspect.signature(tf.raw_ops.CollectiveReduceV2).parameters) >= {
        "input",
        "group_size",
        "group_key",
        "instance_key",
        "ordering_token",
        "merge_op",
        "final_op",
        "communication_hint",
        "timeout_seconds",
    }
    cluster = cluster_pb2.ClusterDef()
    cluster.job.add(name="worker").tasks[7] = "127.0.0.1:1"
    server = tensorflow_server_pb2.ServerDef(
        cluster=cluster, job_name="worker", task_index=7, protocol="grpc", port=1
    )
    server.default_session_config.experimental.collective_group_leader = "leader"
    assert tf.errors.UNAVAILABLE == collective._UNAVAILABLE


def test_the_installed_tensorflow_is_one_that_this_was_tried_with(tensorflow: None) -> None:
    import tensorflow as tf

    version = ".".join(tf.__version__.split(".")[:2])
    assert version in collective.TESTED, "run these tests, then add it to TESTED"
