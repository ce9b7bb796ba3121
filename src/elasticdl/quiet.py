"""TensorFlow without its noise: what it prints while it loads does not reach the user. With memory that is kept."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["import_tensorflow", "load_tensorflow"]

M_TOP_PAD, M_MMAP_THRESHOLD = -2, -3
"""Of the C library's `mallopt`."""
KEPT = {M_TOP_PAD: 64 << 20, M_MMAP_THRESHOLD: 32 << 20}


def load_tensorflow(configure: Callable[[], None] | None = None) -> None:
    """Import TensorFlow and Keras silently. Cheap when they are loaded already.

    Args:
      configure: called before the first op, after which TensorFlow's settings are fixed.
    """
    if configure or not _is_loaded():
        with _said("Loading TensorFlow ..."), _stderr_held_back():
            import_tensorflow()
            import tensorflow as tf

            if configure:
                configure()
            # The first op prints once more, from C++.
            tf.constant(0)
    _drop_remarks_on_retracing()


def import_tensorflow() -> None:
    """Import TensorFlow and Keras, and run nothing: its first op would fix its settings and start threads."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("KERAS_BACKEND", "tensorflow")
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    _keep_freed_memory()
    import keras
    import tensorflow as tf

    if keras.backend.backend() != "tensorflow":
        from elasticdl.errors import InvalidValue

        raise InvalidValue(
            f"Keras is set to the {keras.backend.backend()!r} backend. ElasticDL trains with TensorFlow: "
            "set KERAS_BACKEND=tensorflow."
        )
    tf.get_logger().setLevel("ERROR")


def _keep_freed_memory() -> None:
    """What a step frees beside tensors stays in the process: as with those, the next one wants it again.

    Tensors are kept by TensorFlow itself, see `elasticdl/__init__.py`.
    """
    is_set = any(name.startswith("MALLOC_") for name in os.environ)
    if sys.platform != "linux" or is_set or "GLIBC_TUNABLES" in os.environ:
        return
    library = ctypes.CDLL(None)
    for parameter, size in KEPT.items() if hasattr(library, "mallopt") else ():
        library.mallopt(parameter, size)


def _is_loaded() -> bool:
    return "tensorflow" in sys.modules and "keras" in sys.modules


def _drop_remarks_on_retracing() -> None:
    """Each job traces functions of its own; TensorFlow takes several jobs for a slip."""
    logger = logging.getLogger("tensorflow")
    if _is_other_remark not in logger.filters:
        logger.addFilter(_is_other_remark)


def _is_other_remark(record: logging.LogRecord) -> bool:
    message = record.getMessage()
    return not ("tf.function retracing" in message and "elasticdl." in message)


@contextmanager
def _said(what: str) -> Iterator[None]:
    """Seconds pass: on a terminal say why, and wipe it away after."""
    if not sys.stderr.isatty():
        yield
        return
    print(what, end="\r", file=sys.stderr, flush=True)
    yield
    print(" " * len(what), end="\r", file=sys.stderr, flush=True)


@contextmanager
def _stderr_held_back() -> Iterator[None]:
    """Catch what C++ code writes to file descriptor 2; show it only if the import fails."""
    sys.stderr.flush()
    try:
        saved = os.dup(2)
    except OSError:  # there is no stderr
        yield
        return
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except Exception:
            held.seek(0)
            os.write(saved, held.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)
