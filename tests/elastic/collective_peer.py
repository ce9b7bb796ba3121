"""A process with a `Collective` that does what its input says, a line of JSON at a time, and answers so.

python collective_peer.py INDEX
"""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from typing import Any

from elasticdl.engine.group import GroupBroken
from elasticdl.runtime.elastic.collective import Collective


def main() -> None:
    collective = Collective(int(sys.argv[1]), "127.0.0.1")
    peer = Peer(collective)
    say(address=collective.address, device=collective.device)
    for line in sys.stdin:
        request = json.loads(line)
        do = getattr(peer, request.pop("do"))
        do(**request)


def say(**answer: Any) -> None:
    print(json.dumps(answer), flush=True)


class Peer:
    def __init__(self, collective: Collective) -> None:
        import tensorflow as tf

        self._collective = collective
        self.traced = 0

        def reduce(buffer: Any, keys: Any) -> Any:
            self.traced += 1
            return collective.reduce(buffer, keys)

        self._reduce = tf.function(reduce)
        with tf.device(collective.device):
            self._total = tf.Variable(0.0, trainable=False)
            self._passes = tf.Variable(0, trainable=False)
        self._loop = tf.function(self._looped)

    def form(self, number: int, members: dict[str, str]) -> None:
        self._collective.form(number, {int(index): at for index, at in members.items()})
        say(formed=number)

    def sum(self, value: float, keys: list[int]) -> None:
        """In a thread: it may wait for somebody who never comes."""
        threading.Thread(target=self._sum, args=(value, keys), daemon=True).start()

    def _sum(self, value: float, keys: list[int]) -> None:
        import tensorflow as tf

        try:
            with self._collective.guarded(), tf.device(self._collective.device):
                summed = self._reduce(tf.fill([1000], value), tf.constant(keys, tf.int32))
                say(sum=float(summed[999]), traced=self.traced)
        except GroupBroken as error:
            say(broken=str(error))

    def row(self, seed: int, count: int, keys: list[int]) -> None:
        """Many sums, each of another value, at a pace of its own."""
        import tensorflow as tf

        rng, right = random.Random(seed), 0
        with tf.device(self._collective.device):
            for value in range(count):
                time.sleep(rng.choice((0.0, 0.0, 0.002)))
                summed = self._reduce(
                    tf.fill([1000], float(value)), tf.constant(keys, tf.int32)
                ).numpy()
                right += bool((summed == value * keys[1]).all())
        say(right=right)

    def loop(self, value: float, count: int, keys: list[int]) -> None:
        """Many sums in one call. Who has the value 0 computes none."""
        threading.Thread(target=self._run_loop, args=(value, count, keys), daemon=True).start()

    def passes(self) -> None:
        """Wait until there are some."""
        while not (passes := int(self._passes)):
            time.sleep(0.01)
        say(passes=passes)

    def _run_loop(self, value: float, count: int, keys: list[int]) -> None:
        import tensorflow as tf

        self._total.assign(0.0)
        self._passes.assign(0)
        try:
            with self._collective.guarded(), tf.device(self._collective.device):
                self._loop(tf.constant(value), tf.constant(count), tf.constant(keys, tf.int32))
        except GroupBroken:
            say(passes=int(self._passes), total=float(self._total))
        else:
            say(total=float(self._total))

    def _looped(self, value: Any, count: Any, keys: Any) -> None:
        import tensorflow as tf

        def body(turn: Any) -> Any:
            given = tf.cond(value != 0.0, lambda: tf.fill([1000], value), lambda: tf.zeros([1000]))
            summed = self._collective.reduce(given, keys)[999]
            self._total.assign_add(summed)
            with tf.control_dependencies([summed]):
                self._passes.assign_add(1)
            return turn + 1

        tf.while_loop(lambda turn: turn < count, body, [0])

    def abort(self, number: int) -> None:
        self._collective.abort(number, "ordered")
        say(aborted=number)

    def fail(self) -> None:
        """An error of the user's own, in a graph that has no fault of the group."""
        import tensorflow as tf

        try:
            with self._collective.guarded():
                tf.debugging.Assert(False, ["the user's own"])
        except tf.errors.InvalidArgumentError:
            say(kept=True)


if __name__ == "__main__":
    main()
