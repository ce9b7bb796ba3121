"""Where predictions go: parts that appear whole, and the one file that is made of them.

<output>/                  a directory of parts, or for a file <output>.parts/ until all are there
  .prediction.json         what is predicted, with which model: the parts belong to it
  part-00000.parquet       the predictions of the first lease; its name says that it is whole
  .part-00000.json         its size and checksum
  ...

A part is written under a hidden name, synced and renamed. So a prediction that was killed goes on with the
parts that are not there or are no longer what was written, and no record is predicted twice or left out.

One process holds the output, begins and completes it. Parts may come from others too: two that make the same part, one
taken for dead, do not disturb each other.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Protocol

from upath import UPath

from elasticdl.artifacts.hold import Hold
from elasticdl.artifacts.part_sums import Sum, alone, fault_of, read_sums, sum_of, write_sum
from elasticdl.errors import CorruptData, InvalidValue, NotFound, OutputExists
from elasticdl.storage import children, is_local, remove, storage_errors, write_file

__all__ = ["Format", "Predictions"]

STATE = ".prediction.json"
VERSION = 1
_OURS = ("part-", ".part-", STATE)
_LEFT_BEHIND = (".lock", f".{STATE}.tmp")
"""What a process that is killed as it begins may leave, beside nothing."""


class Format(Protocol):
    """What is asked of a format: how its files end, and how several become one."""

    @property
    def name(self) -> str: ...

    @property
    def suffix(self) -> str: ...

    def join(self, parts: Iterable[IO[bytes]], file: IO[bytes]) -> None: ...


class Predictions:
    """The output of a prediction, held by one process at a time: of who only makes parts, there may be many.

    Args:
      output: the file or the directory.
      format: what its files are.
      is_file: whether the output is one file.
    """

    def __init__(self, output: UPath, format: Format, *, is_file: bool) -> None:
        self.output = output
        self._format = format
        self._is_file = is_file
        self.parts = output.with_name(f"{output.name}.parts") if is_file else output
        self._hold = Hold(self.parts)
        self._sums: dict[int, Sum] = {}
        self.faults: list[str] = []
        """What a user should know of parts that are made again."""

    @property
    def _state(self) -> UPath:
        return self.parts / STATE

    def check(self, *, resume: bool, overwrite: bool) -> None:
        """Refuse, before anything is loaded, an output that holds something worth keeping."""
        with storage_errors(self.output, doing="look into"):
            begun = self._state.exists()
            exists = self.output.exists()
            names = [c.name for c in children(self.parts) if c.name not in _LEFT_BEHIND]
            is_directory = self.output.is_dir()
        if exists and is_directory == self._is_file:
            what, other = ("directory", "file") if is_directory else ("file", "directory")
            raise OutputExists(
                f"The output {self.output} is a {what}, and by its name it should be a {other}. "
                "Give another --output."
            )
        if resume and not begun:
            if exists and self._is_file:
                raise OutputExists(
                    f"The prediction in {self.output} is complete: there is nothing to resume. Make it "
                    "anew with --overwrite."
                )
            raise NotFound(
                f"There is no prediction to resume in {self.output}. Leave --resume out."
            )
        if resume or overwrite:
            self._refuse_foreign(begun, names)
        elif begun or (exists and (self._is_file or names)):
            held = self._held_now(begun, names)
            raise OutputExists(
                f"The output {self.output} {held}. {self._advice(begun)}or give another --output."
            )

    def _held_now(self, begun: bool, names: list[str]) -> str:
        if not begun:
            return "exists" if self._is_file else f"holds other files ({', '.join(names[:5])})"
        return (
            "holds a prediction" if self.read().get("completed") else "holds a part of a prediction"
        )

    def _advice(self, begun: bool) -> str:
        if begun:
            return "Go on with it with --resume, replace it with --overwrite, "
        if self._is_file:
            return "Replace it with --overwrite, "
        return "Give a directory that is empty, "

    def _refuse_foreign(self, begun: bool, names: list[str]) -> None:
        """What we did not write is not ours to remove."""
        foreign = [name for name in names if not name.startswith(_OURS)]
        if foreign or (names and not begun and not self._is_file):
            shown = ", ".join((foreign or names)[:5])
            raise OutputExists(
                f"{self.parts} holds files that are no prediction's ({shown}). Give another --output, or "
                "move them away."
            )

    def read(self) -> dict[str, Any]:
        """What the state says."""
        with storage_errors(self._state, doing="read"):
            content = self._state.read_bytes()
        try:
            state = dict(json.loads(content))
        except ValueError as error:
            raise CorruptData(
                f"{self._state} cannot be read: {error}. It was altered: start anew with --overwrite."
            ) from error
        if state.get("version") != VERSION:
            raise InvalidValue(
                f"{self._state} is of version {state.get('version')!r}, this ElasticDL writes {VERSION}. "
                "Go on with the one that began it, or start anew with --overwrite."
            )
        return state

    @contextmanager
    def held(
        self, job: Mapping[str, Any], options: Mapping[str, Any], *, resume: bool
    ) -> Iterator[None]:
        """Hold the output and begin."""
        with self.holding():
            self.begin(job, options, resume=resume)
            yield

    @contextmanager
    def holding(self) -> Iterator[None]:
        """No other prediction writes here. What there is stays as it is."""
        with storage_errors(self.parts):
            is_new = is_local(self.parts) and not self.parts.exists()
            if is_local(self.parts):
                self.parts.mkdir(parents=True, exist_ok=True)
            self._hold.take()
        try:
            yield
        finally:
            self._hold.release()
            if is_new:  # and perhaps nothing was begun
                with contextlib.suppress(OSError):
                    self.parts.rmdir()

    def begin(self, job: Mapping[str, Any], options: Mapping[str, Any], *, resume: bool) -> None:
        """What an earlier prediction left is kept when it is resumed, else removed.

        Called once, while this process or another one holds the output, and before there are new parts.
        """
        if resume:
            self._check_same(self.read()["job"], json.loads(json.dumps(job)))
            self._remove_unfinished()
            return
        for child in children(self.parts):
            if child.name.startswith(_OURS):
                remove(child)
        self._write_state(job, options)

    def join(
        self, job: Mapping[str, Any], options: Mapping[str, Any], *, resume: bool, token: str
    ) -> None:
        """As `begin`, for what several processes make: what another one of them has begun stays as it is.

        Args:
          token: by which those know each other that belong together.
        """
        with storage_errors(self._state, doing="look into"):
            state = self.read() if self._state.exists() else {}
        if state.get("token") == token:
            self._check_same(state["job"], json.loads(json.dumps(job)))
            return
        self.begin(job, options, resume=resume)
        self._write_state(job, state["options"] if resume else options, token=token)

    def _remove_unfinished(self) -> None:
        """What processes that died were writing. From afar there is none of it: they write on their own disks."""
        if is_local(self.parts):
            for file in Path(str(self.parts)).glob(".part-*.tmp"):
                file.unlink(missing_ok=True)

    def _check_same(self, began: dict[str, Any], now: dict[str, Any]) -> None:
        for name, value in now.items():
            if began.get(name) != value:
                raise InvalidValue(
                    f"The parts in {self.parts} are of another prediction: its {name} was "
                    f"{began.get(name)} and is now {value}. Go on with what it was begun with, or start "
                    "anew with --overwrite."
                )

    def _write_state(self, job: Mapping[str, Any], options: Mapping[str, Any], **more: Any) -> None:
        state = {"version": VERSION, "job": job, "options": options, **more}
        write_file(self._state, json.dumps(state, indent=2, default=str).encode() + b"\n")

    def done(self) -> set[int]:
        """The numbers of the parts that are there and are what was written; `faults` tells of the others."""
        with storage_errors(self.parts, doing="look into"):
            names = [child.name for child in children(self.parts)]
            numbers = (n.removeprefix("part-").removesuffix(self._format.suffix) for n in names)
            there = [int(number) for number in numbers if number.isdigit()]
            self._sums = read_sums(self.parts, there)
            faults = {n: self._fault(n, thoroughly=True) for n in there}
        wrong = {number: fault for number, fault in faults.items() if fault}
        self._sums = {n: value for n, value in self._sums.items() if n not in wrong}
        self.faults = [
            f"{self._part(number)} was altered: {fault}. It is made again."
            for number, fault in wrong.items()
        ]
        return set(there) - set(wrong)

    def _fault(self, number: int, *, thoroughly: bool) -> str | None:
        return fault_of(self._part(number), self._sums.get(number), thoroughly=thoroughly)

    @contextmanager
    def part(self, number: int) -> Iterator[IO[bytes]]:
        """A file that becomes part `number` at a clean end, unless another process has made that meanwhile."""

        def settle(file: Path, put: Callable[[], None]) -> None:
            made = sum_of(file)
            with alone(self.parts, number) as known:
                if known is not None and self._is_whole(number, known):
                    self._sums[number] = known
                    return
                write_sum(self.parts, number, made)
                put()
            self._sums[number] = made

        with _new_file(self._part(number), settle, mark=f".{secrets.token_hex(4)}") as file:
            yield file

    def _is_whole(self, number: int, written: Sum) -> bool:
        part = self._part(number)
        return part.exists() and fault_of(part, written, thoroughly=True) is None

    def _part(self, number: int) -> UPath:
        return self.parts / f"part-{number:05}{self._format.suffix}"

    def complete(self, num_parts: int) -> None:
        """All parts are there: make the one file of them, or say so in the state."""
        if not self._is_file:
            state = self.read()
            self._write_state(state["job"], state["options"], completed=True)
            self._remove_unfinished()
            return
        self._check_sizes(num_parts)
        parts = (self._part(number) for number in range(num_parts))
        with _new_file(self.output) as file, storage_errors(self.output):
            self._format.join(_opened(parts), file)
        # The state goes first: parts without one are in nobody's way.
        remove(self._state)
        self._hold.release()
        remove(self.parts)

    def _check_sizes(self, num_parts: int) -> None:
        with storage_errors(self.parts, doing="read"):  # of parts that other processes made
            unknown = [number for number in range(num_parts) if number not in self._sums]
            self._sums |= read_sums(self.parts, unknown)
        for number in range(num_parts):
            with storage_errors(self.parts, doing="read"):
                fault = self._fault(number, thoroughly=False)
            if fault:
                raise CorruptData(
                    f"{self._part(number)} was altered while the others were made: {fault}. Make it again "
                    "with --resume."
                )


def _opened(parts: Iterable[UPath]) -> Iterator[IO[bytes]]:
    for part in parts:
        with part.open("rb") as file:
            yield file


@contextmanager
def _new_file(
    final: UPath,
    settle: Callable[[Path, Callable[[], None]], None] | None = None,
    *,
    mark: str = "",
) -> Iterator[IO[bytes]]:
    """A local file to write to, which at a clean end is put in the place of `final`.

    What the body raises is its own.

    Args:
      settle: gets the file and what puts it there, instead of that being done.
      mark: tells files apart that several processes write to be the same one.
    """
    with storage_errors(final):
        file, put = _aside(final, mark)
    try:
        yield file
        with storage_errors(final):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            put() if settle is None else settle(Path(file.name), put)
    finally:
        with contextlib.suppress(OSError):  # a full disk refuses the rest once more
            file.close()
        Path(file.name).unlink(missing_ok=True)


def _aside(final: UPath, mark: str) -> tuple[IO[bytes], Callable[[], None]]:
    """An open file, and what makes it the final one."""
    if not is_local(final):
        temporary = tempfile.NamedTemporaryFile(prefix="elasticdl-", delete=False)  # noqa: SIM115
        return temporary, lambda: final.fs.put_file(temporary.name, final.path)
    target = Path(str(final))
    if not mark:  # the place of parts is there as long as they are wanted
        target.parent.mkdir(parents=True, exist_ok=True)
    file = target.with_name(f".{target.name}{mark}.tmp").open("wb")

    def rename() -> None:
        Path(file.name).replace(target)
        handle = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    return file, rename
