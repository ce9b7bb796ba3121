"""Random state beside the model's own: what Python, numpy and unseeded Keras functions draw from."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

__all__ = ["keras_seed_state", "restore_random_state", "save_random_state", "seed_everything"]

_PREFIX = "random/"


def seed_everything(seed: int) -> None:
    """Seed Python, numpy, TensorFlow and Keras."""
    import keras

    keras.utils.set_random_seed(seed & 0x7FFFFFFF)
    state = random.getstate()
    keras_seed_state()  # it is made when first asked for, with a number that Python's generator gives
    random.setstate(state)


def save_random_state() -> dict[str, np.ndarray[Any, Any]]:
    """The state of the generators of this process, as tensors for a checkpoint."""
    import numpy as np

    _, python, gauss = random.getstate()
    _, keys, position, has_gauss, cached = np.random.get_state(legacy=True)
    floats = [gauss if gauss is not None else np.nan, cached]
    return {
        f"{_PREFIX}python": np.array(python, np.uint32),
        f"{_PREFIX}numpy": np.array([*keys, position, has_gauss], np.uint32),
        f"{_PREFIX}gauss": np.array(floats, np.float64),
        f"{_PREFIX}keras": np.asarray(keras_seed_state().numpy()),
    }


def restore_random_state(
    tensors: Mapping[str, np.ndarray[Any, Any]], *, of_python: bool = True
) -> None:
    """Go on drawing where a checkpoint was made.

    Without `of_python`, Python's and numpy's generators are left alone.
    """
    import numpy as np

    keras_seed_state().assign(tensors[f"{_PREFIX}keras"])
    if not of_python:
        return
    python, numpy, floats = (tensors[f"{_PREFIX}{name}"] for name in ("python", "numpy", "gauss"))
    gauss = None if np.isnan(floats[0]) else float(floats[0])
    random.setstate((3, tuple(int(word) for word in python), gauss))
    *keys, position, has_gauss = numpy
    np.random.set_state(
        ("MT19937", np.array(keys, np.uint32), int(position), int(has_gauss), float(floats[1]))
    )


def keras_seed_state() -> Any:
    """Where `keras.random` functions without a seed keep their place."""
    from keras.src.random.seed_generator import global_seed_generator

    return global_seed_generator().state
