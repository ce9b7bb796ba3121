"""`--debug`: the user's code runs eagerly, in Python, where a debugger can stop."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["debugging"]


@contextmanager
def debugging(enabled: bool) -> Iterator[None]:
    """While it is entered, models, losses and dataset functions run eagerly, if `enabled`."""
    import tensorflow as tf
    from tensorflow.python.data.ops import debug_mode  # the public switch only turns on

    before = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(enabled)
    debug_mode.toggle_debug_mode(enabled)
    try:
        if enabled:
            with _functions_kept(), _threads_followed():
                yield
        else:
            yield
    finally:
        tf.config.run_functions_eagerly(before)
        debug_mode.toggle_debug_mode(False)


@contextmanager
def _functions_kept() -> Iterator[None]:
    """Keep Python functions of datasets that are made inside of others, as `flat_map` does.

    TensorFlow makes these in threads of its own and ties the functions to something that ends with the
    thread: they would be gone when their records are read.
    """
    from tensorflow.python.ops import script_ops

    registry = script_ops._py_funcs
    weak = registry._funcs
    registry._funcs = dict(weak)
    try:
        yield
    finally:
        weak.update(registry._funcs)
        registry._funcs = weak


@contextmanager
def _threads_followed() -> Iterator[None]:
    """Let debugpy stop in dataset functions too.

    TensorFlow calls them from threads of its own, which a debugger does not know unless it is told
    (before Python 3.12, which watches all threads by itself).
    """
    from tensorflow.python.ops import script_ops

    if "debugpy" not in sys.modules:
        yield
        return
    known = threading.local()
    original = script_ops.EagerFunc.__call__

    def call(self: Any, *arguments: Any) -> Any:
        if not hasattr(known, "followed"):
            known.followed = True
            sys.modules["debugpy"].debug_this_thread()
        return original(self, *arguments)

    script_ops.EagerFunc.__call__ = call
    try:
        yield
    finally:
        script_ops.EagerFunc.__call__ = original
