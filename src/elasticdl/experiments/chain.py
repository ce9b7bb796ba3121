"""The chain of calls that makes batches: load, augment, preprocess; each answer is looked at."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from elasticdl.errors import ContractError, DataError
from elasticdl.experiments.theirs import call, file_of

__all__ = ["NAMES", "STEPS", "Data", "SourceWrapper", "make", "validation_index"]

NAMES = ("training", "validation", "test")
STEPS = ("add_image_preprocess", "add_label_preprocess", "batchify")

SourceWrapper = Callable[[Any, int], Any]


@dataclass(frozen=True)
class Data:
    """Batches as the user's preprocessor made them.

    Attributes:
      batches: a `tf.data.Dataset`, an iterator or another iterable; may go on for ever.
      num_batches: how many of them cover the data once.
      num_points: how many data points that are.
      kind: "dataset", "iterator" or "iterable".
      name: "training", "validation" or "test".
    """

    batches: Any
    num_batches: int
    num_points: int
    kind: str
    name: str


def make(
    name: str,
    loader: Any,
    augment: Callable[[Any], Any] | None,
    preprocessor: Any,
    source_wrapper: SourceWrapper | None = None,
) -> Data:
    """Make the batches of a part of the data.

    Args:
      source_wrapper: called with (iterator, number of data points) when the data loader gave a Python
        iterator; what it returns goes on in the iterator's place.
    """
    create = getattr(loader, f"create_{name}_generator")
    generator, num_points = _pair(create, call(create), "generator, num_data_points")
    if num_points < 1:
        raise DataError(
            f"{_shown(create)} found {num_points} data points. Check data_dir and how it is read."
        )
    if source_wrapper is not None and isinstance(generator, Iterator):
        generator = source_wrapper(generator, num_points)
    if augment is not None:
        generator = _generator(augment, call(augment, generator))
    batches, num_batches = _preprocess(preprocessor, generator, num_points)
    return Data(batches, num_batches, num_points, _kind(batches), name)


def validation_index(loader: Any, num_points: int) -> list[Any] | None:
    """The ids of the validation data, one a data point; None when the loader has none."""
    get = getattr(loader, "get_validation_index", None)
    found = call(get) if get is not None else None
    if found is None:
        return None
    if isinstance(found, str | bytes) or not _is_iterable(found):
        raise ContractError(
            f"{_shown(get)} returned {_describe(found)}. Return a list of the data points' ids."
        )
    index = [item.item() if hasattr(item, "item") else item for item in found]
    if len(index) != num_points:
        raise ContractError(
            f"{_shown(get)} returned {len(index)} ids, but create_validation_generator said that there are "
            f"{num_points} data points. Return one id a data point, in their order."
        )
    return index


def _preprocess(preprocessor: Any, generator: Any, num_points: int) -> tuple[Any, int]:
    whole = getattr(preprocessor, "add_preprocess", None)
    if whole is None:
        for step in ("add_image_preprocess", "add_label_preprocess", "add_weight_preprocess"):
            if (add := getattr(preprocessor, step, None)) is not None:
                generator = _generator(add, call(add, generator))
        whole = preprocessor.batchify
    returned = call(whole, generator, num_points)
    if getattr(whole, "__module__", "").startswith("abstractions."):
        whole = preprocessor.batchify  # it passes on what the user's method returns
    batches, num_batches = _pair(whole, returned, "generator, n_iter")
    if num_batches < 1:
        raise ContractError(
            f"{_shown(whole)} returned n_iter {num_batches} for {num_points} data points. Return how many "
            "batches hold all of them: -(-n_data_points // batch_size)."
        )
    return batches, num_batches


def _pair(function: Any, returned: Any, form: str) -> tuple[Any, int]:
    """A generator and a whole number, or an error that says what came instead."""
    if not isinstance(returned, tuple | list) or len(returned) != 2:
        raise ContractError(f"{_shown(function)} returned {_describe(returned)}. Return {form}.")
    generator, number = returned
    try:
        if isinstance(number, bool):
            raise TypeError
        whole = operator.index(number)
    except TypeError:
        raise ContractError(
            f"{_shown(function)} returned {_describe(number)} as its second value. Return {form}, the "
            "number as an int."
        ) from None
    return _generator(function, generator), whole


def _generator(function: Any, value: Any) -> Any:
    if _is_iterable(value) and not isinstance(value, str | bytes | dict):
        return value
    hint = " Call it." if callable(value) else " Is a return missing?" if value is None else ""
    raise ContractError(
        f"{_shown(function)} returned {_describe(value)} where a generator belongs.{hint} Return a "
        "generator, a tf.data.Dataset or another iterable."
    )


def _is_iterable(value: Any) -> bool:
    return any(hasattr(type(value), name) for name in ("__iter__", "__next__", "__getitem__"))


def _kind(batches: Any) -> str:
    tensorflow = sys.modules.get("tensorflow")  # without it nothing is a dataset of its
    if tensorflow is not None and isinstance(batches, tensorflow.data.Dataset):
        return "dataset"
    return "iterator" if isinstance(batches, Iterator) else "iterable"


def _describe(value: Any) -> str:
    """Short, and never the content of somebody's data."""
    if isinstance(value, tuple | list):
        inside = ", ".join(type(item).__name__ for item in value[:5])
        more = ", ..." if len(value) > 5 else ""
        return f"a {type(value).__name__} of {len(value)} ({inside}{more})"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    name = getattr(value, "__name__", None) if callable(value) else None
    return f"the function {name}" if name else f"a value of type {type(value).__name__}"


def _shown(method: Any) -> str:
    """`DataLoader.create_training_generator (dataset.py, line 12)`, for messages."""
    code = getattr(getattr(method, "__func__", method), "__code__", None)
    owner = type(getattr(method, "__self__", method))
    where = f"{code.co_filename}, line {code.co_firstlineno}" if code else file_of(owner)
    return f"{owner.__name__}.{getattr(method, '__name__', '')} ({where})"
