"""Arrays in memory, and readers that users write."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from elasticdl.data.readers.custom import AbstractDataReader, Task
from elasticdl.data.registry import open_source
from elasticdl.data.source import ArraySpec
from elasticdl.errors import ContractError, DataError, InvalidValue

from .conftest import plain, read, read_all

X, Y = np.arange(12.0).reshape(6, 2), np.arange(6)


class Frame:
    """What of a pandas DataFrame is used: `columns`, and columns by name with `to_numpy`."""

    def __init__(self, **columns: Any) -> None:
        self._columns = columns
        self.columns = list(columns)

    def __getitem__(self, name: str) -> Any:
        return SimpleNamespace(to_numpy=lambda: np.asarray(self._columns[name]))


@pytest.mark.parametrize(
    "data",
    [
        X,
        (X, Y),
        {"x": X, "y": Y},
        ({"x": X}, Y),
        ({"x": X, "z": Y}, {"y": Y}, Y),
        X.tolist(),
        (X, (Y, Y)),
        ({"x": (X, Y)}, [Y, Y.tolist()]),
    ],
    ids=["array", "tuple", "dict", "dict+array", "dicts+array", "list", "nested", "deep"],
)
def test_every_range_of_arrays_is_a_slice(data: Any) -> None:
    source = open_source(data)
    [shard] = source.shards
    assert (shard.name, shard.num_records) == ("memory", 6)
    whole = read_all(source)
    assert len(whole) == 6
    for start in range(7):
        for end in range(start, 7):
            assert read(source, "memory", start, end) == whole[start:end]


def test_structure_of_nested_arrays_nests() -> None:
    source = open_source(({"x": X.astype("float32")}, Y))
    x, y = ArraySpec(np.dtype("float32"), (2,)), ArraySpec(np.dtype("int64"))
    assert source.structure == ({"x": x}, y)


def test_tuples_and_lists_of_arrays_nest_and_lists_of_numbers_do_not() -> None:
    y = ArraySpec(np.dtype("int64"))
    assert open_source((Y, (Y, Y))).structure == (y, (y, y))
    assert open_source((Y, [Y, Y])).structure == (y, (y, y))
    assert open_source((Y.tolist(), tuple(Y.tolist()))).structure == (y, y)
    pair = ArraySpec(np.dtype("int64"), (2,))
    assert open_source(([[1, 2]] * 6, Y)).structure == (pair, y)


def test_tensors_have_the_form_of_the_arrays() -> None:
    source = open_source(({"x": X, "s": ["a", "b"] * 3}, Y))
    features, labels = source.tensors  # type: ignore[attr-defined]
    assert features["s"].numpy().tolist() == [b"a", b"b"] * 3
    assert labels.shape == (6,)


def test_data_frame_is_a_dict_of_columns() -> None:
    days = np.array(["1970-01-03", "1970-01-04"], dtype="datetime64[D]")
    source = open_source(Frame(a=[1, 2], s=np.array(["x", None], dtype=object), day=days))
    assert source.metadata.column_names == ("a", "s", "day")
    assert read_all(source) == [{"a": 1, "s": b"x", "day": 2}, {"a": 2, "s": b"", "day": 3}]


def test_strings_become_bytes_with_their_zeros() -> None:
    objects = np.array([b"a\0", "ü"], dtype=object)
    assert read_all(open_source(objects)) == [b"a\0", "ü".encode()]
    assert read_all(open_source(np.array([["a", "b"]]))) == [[b"a", b"b"]]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((X, Y[:5]), "array 0 has 6, array 1 has 5"),
        ({"x": X, "y": Y[:5]}, "'x' has 6, 'y' has 5"),
        ((X, (Y, Y[:5])), r"array 1\.0 has 6, array 1\.1 has 5"),
        ((X, [[1], [1, 2]]), "item 1: its rows are not of one shape"),
        (X[:0], "no records"),
        ({}, "no columns"),
        ((), "no arrays"),
        (5, "of type int, as records"),
        (np.array([{}, {}]), "among its values is {}"),
    ],
)
def test_arrays_that_make_no_records_are_refused(data: Any, words: str) -> None:
    with pytest.raises(DataError, match=words):
        open_source(data)


def test_reader_params_are_refused_with_arrays() -> None:
    with pytest.raises(InvalidValue, match="no meaning for data in memory"):
        open_source(X, {"sep": ","})


class Squares(AbstractDataReader):
    """Two shards, the second starting at record 100."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.tasks: list[Task] = []

    def create_shards(self) -> dict[str, tuple[int, int]]:
        return {"a": (0, 1000), "b": (100, 20), "none": (0, 0)}

    def read_records(self, task: Task) -> Iterator[bytes]:
        self.tasks.append(task)
        for i in range(task.start, task.end):
            yield b"%s %d" % (task.shard_name.encode(), i * i)


def test_custom_reader_is_given_origin_and_parameters() -> None:
    seen = {}

    def custom_data_reader(
        data_origin: str, records_per_task: int | None = None, **kwargs: Any
    ) -> Any:
        seen.update(kwargs, origin=data_origin, records_per_task=records_per_task)
        return Squares()

    open_source("somewhere", {"a": 1}, custom_data_reader, 128)
    assert seen == {"origin": "somewhere", "records_per_task": 128, "a": 1}


def test_custom_reader_reads_ranges_from_the_start_of_its_shard() -> None:
    source = open_source("x", custom_reader=lambda origin: Squares())
    assert [(s.name, s.num_records) for s in source.shards] == [("a", 1000), ("b", 20)]
    assert read(source, "b", 3, 5) == [b"b 10609", b"b 10816"]
    assert len(read(source, "a", 0, 1000)) == 1000
    assert source.structure == ArraySpec(np.dtype(object))


def reader_of(records: list[Any], types: Any = None) -> Any:
    return SimpleNamespace(
        create_shards=lambda: {"s": (0, len(records))},
        read_records=lambda task: iter(records[task.start : task.end]),
        records_output_types=types,
        metadata=SimpleNamespace(column_names=["a", "b"]),
    )


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([["1", "x"], ["2", "yy\0"]], [[b"1", b"x"], [b"2", b"yy\0"]]),
        ([1, 2], [1, 2]),
        ([np.zeros(2), np.ones(2)], [[0, 0], [1, 1]]),
        ([(b"x", 1), (b"y", 2)], [(b"x", 1), (b"y", 2)]),
        ([{"a": "x", "b": 1.5}], [{"a": b"x", "b": 1.5}]),
        ([({"a": [1, 2]}, 0)], [({"a": [1, 2]}, 0)]),
    ],
)
def test_records_of_a_custom_reader_may_have_any_form(records: Any, expected: Any) -> None:
    source = open_source("x", custom_reader=lambda _: reader_of(records))
    [chunk] = source.read("s", 0, len(records))
    assert plain(chunk) == expected
    assert list(source.metadata.column_names or ()) == ["a", "b"]


def test_output_types_of_a_custom_reader_decide_the_type() -> None:
    import tensorflow as tf

    reader = reader_of([(b"x", 1)], (tf.string, tf.float32))
    source = open_source("x", custom_reader=lambda _: reader)
    assert source.structure == (ArraySpec(np.dtype(object)), ArraySpec(np.dtype("float32")))


@pytest.mark.parametrize(
    "records", [[[1], [1, 2]], [b"x", 1], [{"a": 1}, {"b": 1}], [(1,), (1, 2)]]
)
def test_uneven_records_of_a_custom_reader_are_refused(records: Any) -> None:
    source = open_source("x", custom_reader=lambda _: reader_of(records))
    with pytest.raises(DataError, match="make no array"):
        list(source.read("s", 0, 2))


@pytest.mark.parametrize("surplus", [-1, 1])
def test_custom_reader_that_miscounts_is_told(surplus: int) -> None:
    reader = SimpleNamespace(
        create_shards=lambda: {"s": (0, 10)},
        read_records=lambda task: iter([b"x"] * (task.end - task.start + surplus)),
    )
    source = open_source("x", custom_reader=lambda _: reader)
    with pytest.raises(DataError, match=r"asked for the 5 records \[2, 7\) of shard 's'"):
        list(source.read("s", 2, 7))


@pytest.mark.parametrize("shards", [None, {"s": 3}, {"s": (0, -1)}])
def test_custom_reader_with_wrong_shards_is_refused(shards: Any) -> None:
    reader = SimpleNamespace(create_shards=lambda: shards, read_records=lambda task: iter(()))
    with pytest.raises(ContractError, match=r"create_shards\(\)"):
        open_source("x", custom_reader=lambda _: reader)


def test_custom_reader_without_a_method_is_refused() -> None:
    with pytest.raises(ContractError, match="without a method 'create_shards'"):
        open_source("x", custom_reader=lambda _: object())


def test_custom_reader_is_not_given_what_it_does_not_take() -> None:
    with pytest.raises(ContractError, match="takes no parameter 'tabel'"):
        open_source("x", {"tabel": 1}, lambda origin, table=None: Squares())


@pytest.mark.parametrize(
    "function",
    [
        lambda **kw: Squares(o=kw["data_origin"]),
        lambda *, data_origin: Squares(o=data_origin),
        lambda records_per_task, data_origin: Squares(o=data_origin),
        lambda *args: Squares(o=args[0]),
        lambda origin, /: Squares(o=origin),
    ],
)
def test_custom_reader_is_given_its_origin_by_place_or_by_name(function: Any) -> None:
    made: list[Squares] = []

    @functools.wraps(function)
    def custom_data_reader(*args: Any, **kwargs: Any) -> Squares:
        made.append(function(*args, **kwargs))
        return made[0]

    open_source("here", custom_reader=custom_data_reader)
    assert made[0]._kwargs == {"o": "here"}


@pytest.mark.parametrize("function", [lambda: Squares(), lambda a, b: Squares(), lambda *, a: a, 3])
def test_custom_reader_with_a_signature_that_does_not_fit_is_told_the_right_one(
    function: Any,
) -> None:
    with pytest.raises(ContractError, match=r"custom_data_reader\(data_origin, records_per_task"):
        open_source("here", custom_reader=function)


def test_error_of_a_custom_reader_is_its_own() -> None:
    def fail(task: Task) -> Iterator[bytes]:
        yield b"x"
        raise KeyError("theirs")

    reader = SimpleNamespace(create_shards=lambda: {"s": (0, 10)}, read_records=fail)
    source = open_source("x", custom_reader=lambda _: reader)
    with pytest.raises(KeyError, match="theirs"):
        list(source.read("s", 0, 10))
