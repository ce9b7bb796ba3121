"""TensorFlow's collectives, with members that change while the process lives.

This is the one file that knows TensorFlow's private interface to them. What it relies on:

- A process keeps one task index and one port for its life; indices of a cluster may be sparse.
- `enable_collective_ops` may be called again with other members and the same port. Before all of them have
  done so nobody may run a collective.
- `CollectiveReduceV2` takes the group's key and size as tensors, so a graph is traced once for all memberships.
- A sum is known by its group, its instance, and the loop and the pass of it in which it stands. Members meet only where
  these are the same.
- A peer whose process is gone is noticed by its closed connection. For one that hangs, `abort_collective_ops` from
  another thread lets the waiting call fail at once. TensorFlow's own time-out is left out: once it has fired, forming
  a group anew can hang or crash the process.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from elasticdl.engine.group import GroupBroken
from elasticdl.errors import RunError
from elasticdl.runtime.elastic.own_machine_only import close_to_other_machines

__all__ = ["Collective"]

TESTED = ("2.21",)
"""The versions of TensorFlow that this was tried with."""

_NEVER_S = 0.0
"""Any other value makes TensorFlow start a thread for each collective, which sleeps until then: a leak of threads."""
_RING, _PAIR = 1, 2
"""A group makes one sum after the other. A new number for each would cost a call of the leader, and memory."""
_JOB = "worker"
_UNAVAILABLE = 14


class Collective:
    """This process's place in groups of TensorFlow tasks.

    It is made before anything else of TensorFlow is used: the names of devices depend on it.

    Args:
      index: the task's index, for its life.
      host: the address under which the others reach it. With one of 127.0.0.0/8, nobody else does.
    """

    def __init__(self, index: int, host: str) -> None:
        self.index = index
        self._port = _free_port()
        self.address = f"{host}:{self._port}"
        self.number = 0
        self._lock = threading.Lock()
        self._is_first = True
        self.form(0, {index: self.address})
        if host.startswith("127."):
            close_to_other_machines(self._port)

    @property
    def device(self) -> str:
        return f"/job:{_JOB}/replica:0/task:{self.index}/device:CPU:0"

    @property
    def remark(self) -> str | None:
        """What to tell the user of a TensorFlow that this was not tried with."""
        import tensorflow as tf

        if ".".join(tf.__version__.split(".")[:2]) in TESTED:
            return None
        return (
            f"Training with several workers was tried with TensorFlow {' and '.join(TESTED)}; this is "
            f"{tf.__version__}."
        )

    def form(self, number: int, members: Mapping[int, str]) -> None:
        """Take part in a group: addresses by task index."""
        context = _context()
        leader = f"/job:{_JOB}/replica:0/task:{min(members)}"
        with self._lock, _quiet():
            if self._is_first:
                context.configure_collective_ops(collective_leader=leader)
                self._is_first = False
            context.enable_collective_ops(self._server(members, leader))
            context.ensure_initialized()
            self.number = number

    def _server(self, members: Mapping[int, str], leader: str) -> Any:
        from tensorflow.core.protobuf import cluster_pb2, tensorflow_server_pb2

        cluster = cluster_pb2.ClusterDef()
        job = cluster.job.add(name=_JOB)
        for index, address in members.items():
            job.tasks[index] = address
        server = tensorflow_server_pb2.ServerDef(
            cluster=cluster,
            job_name=_JOB,
            task_index=self.index,
            protocol="grpc",
            port=self._port,
        )
        server.default_session_config.experimental.collective_group_leader = leader
        return server

    def abort(self, number: int, why: str) -> None:
        """From another thread: let what waits for a member of this group fail."""
        with self._lock:
            if number == self.number:
                _context().abort_collective_ops(_UNAVAILABLE, why)

    def reduce(self, buffer: Any, keys: Any) -> Any:
        """In a graph: the sum of the members' buffers. `keys`: the group's number, its size.

        Two send each other all they have: a ring of two sends as much, in two rounds.
        """
        import tensorflow as tf

        common = {
            "group_key": keys[0],
            "group_size": keys[1],
            "ordering_token": [],
            "communication_hint": "AUTO",
            "timeout_seconds": _NEVER_S,
        }

        def ring() -> Any:
            return tf.raw_ops.CollectiveReduceV2(
                input=buffer, instance_key=_RING, merge_op="Add", final_op="Id", **common
            )

        def pair() -> Any:
            both = tf.raw_ops.CollectiveGatherV2(
                input=buffer[tf.newaxis], instance_key=_PAIR, **common
            )
            return both[0] + both[1]

        return tf.cond(keys[1] == 2, pair, ring)

    @contextlib.contextmanager
    def guarded(self) -> Iterator[None]:
        """Inside, a graph with a collective runs: a peer that is gone is told as `GroupBroken`."""
        import tensorflow as tf

        try:
            yield
        except tf.errors.OpError as error:
            if not _is_of_peers(error):
                raise
            raise GroupBroken(error.message) from error


def _is_of_peers(error: Any) -> bool:
    """Whether a collective failed, and not the user's own part of the graph."""
    import tensorflow as tf

    kinds = (
        tf.errors.UnavailableError,
        tf.errors.CancelledError,
        tf.errors.AbortedError,
        tf.errors.DeadlineExceededError,
        tf.errors.InternalError,
        tf.errors.FailedPreconditionError,
    )
    return isinstance(error, kinds) and ("ollective" in str(error) or isinstance(error, kinds[:3]))


def _context() -> Any:
    from tensorflow.python.eager import context

    found = context.context()
    for name in ("configure_collective_ops", "enable_collective_ops", "abort_collective_ops"):
        if not hasattr(found, name):
            import tensorflow as tf

            raise RunError(
                f"TensorFlow {tf.__version__} cannot train with several workers: it has no {name}. "
                f"Install tensorflow=={TESTED[-1]}."
            )
    return found


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """TensorFlow warns of tensors made before: ours are on the same device as ever."""
    import logging

    logger = logging.getLogger("absl")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("", 0))
        return int(found.getsockname()[1])
