"""Functions of the prepare tests, importable by worker processes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import IO, Any


def one(filename: str) -> bytes:
    with open(filename, "rb") as file:
        return file.read()


def several(filename: str) -> Iterator[bytes]:
    for i in range(len(one(filename)) % 5):
        yield b"%d " % i + one(filename)


def older(file_object: IO[bytes], filename: str) -> bytes:
    return filename.rsplit("/", 1)[-1].encode() + b":" + file_object.read()


class OwnError(Exception):
    """Does not survive pickling: its constructor wants two arguments."""

    def __init__(self, first: str, second: str) -> None:
        super().__init__(first + second)


def failing(filename: str) -> bytes:
    if filename.endswith("3.txt"):
        raise OwnError("cannot read ", "this")
    return b"x"


def leaving(filename: str) -> bytes:
    sys.exit(3)


def nothing(filename: str) -> None:
    return None


def texts(filename: str) -> list[str]:
    return ["x"]


def no_records(filename: str) -> list[bytes]:
    return []


def three(a: Any, b: Any, c: Any) -> bytes:
    return b""


def get(name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = globals()[name]
    return function
