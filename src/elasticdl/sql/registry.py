"""The registry: trained models by name and version, in a directory here or at any fsspec address.

    models/
      salary/
        1/        a run directory, as every training writes it
        1.json    its card, written last: a version without a card does not exist

A version is made whole or not at all: what a killed training leaves has no card, is never found, and is removed by the
next training of that name.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from upath import UPath

from elasticdl.errors import DataError, InvalidValue, StorageFailure, UnknownName, nearest
from elasticdl.storage import children, is_local, place, remove, storage_errors, write_file

__all__ = ["Registry", "Version", "check_name", "split_reference"]

_NAME = re.compile(r"[^\W\d][\w.:-]{0,99}")
_CARD = re.compile(r"(\d+)\.json")


@dataclass(frozen=True)
class Version:
    """One version of a model.

    Attributes:
      name, number: what it is called, and how often the name had been trained.
      path: the run directory.
      card: what is known of it: statement, model, label, metrics, plan, ...
    """

    name: str
    number: int
    path: UPath
    card: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        return f"{self.name}@{self.number}"


class Registry:
    """The models of one place.

    >>> registry = Registry("memory://models")
    >>> registry.names()
    []
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = place(root)
        if is_local(self.root):
            self.root = place(os.path.abspath(str(self.root)))
        self._locks: dict[tuple[str, int], IO[str]] = {}

    def names(self) -> list[str]:
        """The models that there are, sorted."""
        with storage_errors(self.root, doing="read"):
            return [one.name for one in children(self.root) if self._numbers(one.name)]

    def versions(self, name: str) -> list[Version]:
        """All versions of a name, the oldest first."""
        return [self._read(name, number) for number in self._numbers(name)]

    def find(self, reference: str) -> Version:
        """`name`, the newest version; or `name@2`.

        Raises:
          UnknownName: there is none, with the nearest that there is.
        """
        name, number = split_reference(reference)
        known = self._numbers(name)
        if not known:
            names = self.names()
            there = nearest(name, names) if names else "There are no models yet."
            raise UnknownName(f"There is no model {name!r} in {self.root}. {there}".rstrip())
        if number is not None and number not in known:
            shown = ", ".join(f"{name}@{one}" for one in known)
            raise UnknownName(
                f"There is no version {number} of the model {name!r}. Known: {shown}."
            )
        return self._read(name, number or known[-1])

    def following(self, name: str) -> Version:
        """What the next training of a name would write."""
        number = max([0, *self._numbers(name)]) + 1
        return Version(name, number, self._directory(name) / str(number))

    def reserve(self, name: str) -> Version:
        """A version to write to, which does not exist before `commit`."""
        directory = self._directory(name)
        with storage_errors(directory):
            self._clean(name)
            taken = [int(one.name) for one in children(directory) if one.name.isdecimal()]
            number = max([0, *taken, *self._numbers(name)]) + 1
            if not is_local(directory):
                return Version(name, number, directory / str(number))
            directory.mkdir(parents=True, exist_ok=True)
            while not self._take(name, number):  # somebody else trains it just now
                number += 1
            (directory / str(number)).mkdir(exist_ok=True)
            return Version(name, number, directory / str(number))

    def commit(self, version: Version, card: Mapping[str, Any]) -> Version:
        """From now on the version exists."""
        whole = {"name": version.name, "version": version.number, **card}
        text = json.dumps(whole, indent=2, ensure_ascii=False)
        write_file(self._card(version.name, version.number), text.encode())
        self._release(version.name, version.number)
        return Version(version.name, version.number, version.path, whole)

    def abandon(self, version: Version) -> None:
        """Remove what was written to a version that is not to be."""
        with contextlib.suppress(StorageFailure):
            remove(version.path)
            self._release(version.name, version.number)
            self._remove_empty(version.name)

    def drop(self, reference: str) -> list[Version]:
        """Remove a version, or all of a name. The card goes first: what is left of a kill is not found."""
        name, number = split_reference(reference)
        found = [self.find(reference)] if number is not None else self.versions(name)
        if not found:
            self.find(reference)
        for version in found:
            remove(self._card(version.name, version.number))
        for version in found:
            remove(version.path)
        self._remove_empty(name)
        return found

    def _directory(self, name: str) -> UPath:
        check_name(name)
        return self.root / name

    def _card(self, name: str, number: int) -> UPath:
        return self._directory(name) / f"{number}.json"

    def _numbers(self, name: str) -> list[int]:
        if not _NAME.fullmatch(name):
            return []
        matches = [_CARD.fullmatch(one.name) for one in children(self.root / name)]
        return sorted(int(match[1]) for match in matches if match)

    def _read(self, name: str, number: int) -> Version:
        path = self._card(name, number)
        with storage_errors(path, doing="read"):
            text = path.read_text(encoding="utf-8")
        try:
            card = dict(json.loads(text))
        except ValueError as error:
            raise DataError(f"Cannot read {path}: {error}. It was altered; train anew.") from error
        return Version(name, number, self._directory(name) / str(number), card)

    def _clean(self, name: str) -> None:
        """Remove what killed trainings left. One that is still running has its number taken."""
        known = self._numbers(name)
        for one in children(self._directory(name)):
            if not is_local(one) or not one.name.isdecimal() or int(one.name) in known:
                continue
            if self._take(name, int(one.name)):
                shutil.rmtree(str(one), ignore_errors=True)
                self._release(name, int(one.name))

    def _take(self, name: str, number: int) -> bool:
        """A lock of the operating system, which ends with the process; whether it was free."""
        path = Path(str(self._directory(name)), f".{number}.lock")
        lock = path.open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
            return False
        self._locks[name, number] = lock
        return True

    def _release(self, name: str, number: int) -> None:
        if lock := self._locks.pop((name, number), None):
            Path(lock.name).unlink(missing_ok=True)
            lock.close()

    def _remove_empty(self, name: str) -> None:
        directory = self._directory(name)
        if is_local(directory):
            with contextlib.suppress(OSError):
                Path(str(directory)).rmdir()


def split_reference(reference: str) -> tuple[str, int | None]:
    """`name@2` as name and number."""
    name, at, number = reference.partition("@")
    check_name(name)
    if not at:
        return name, None
    if not number.isdecimal():
        raise InvalidValue(
            f"Invalid version {number!r} of {name!r}: give a number, for example {name}@2."
        )
    return name, int(number)


def check_name(name: str) -> None:
    """Refuse what is no name of a model: it becomes the name of a directory."""
    if not _NAME.fullmatch(name) or ".." in name:
        raise InvalidValue(
            f"Invalid model name {name!r}: begin with a letter or _ and use letters, digits, _ . : and -, at "
            "most 100 of them."
        )
