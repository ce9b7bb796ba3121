"""Raw files to RecordIO shards, through the user's `prepare_data_for_a_single_file`.

Files are taken in runs. A worker process writes the records of a run to a part; this process joins
the parts, in the order of the input, into shards: memory stays flat, and the shards do not depend on
the number of workers. Shards get their names when all are written: a failure leaves nothing.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from traceback import StackSummary, TracebackException

from elasticdl.data import recordio
from elasticdl.data.files import File
from elasticdl.data.paths import expand
from elasticdl.data.prepare_call import PrepareFn, bind
from elasticdl.data.shard_writer import ShardWriter
from elasticdl.errors import DataError, ElasticDLError, InvalidValue, RunError

__all__ = ["Prepared", "prepare"]

_MAX_FILES_IN_RUN = 64
_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Prepared:
    """What was written."""

    num_files: int
    num_records: int
    shards: tuple[str, ...]


def prepare(
    inputs: str,
    output_dir: str,
    load: Callable[[], Callable[..., object]],
    *,
    records_per_shard: int = 4096,
    num_workers: int | None = None,
    compression: str = "snappy",
    on_progress: Callable[[int, int], None] | None = None,
) -> Prepared:
    """Turn files into RecordIO shards.

    Args:
        inputs: a file, a directory (with all below it) or a glob; several with commas.
        output_dir: where `data-00000-of-00012.recordio` and so on go.
        load: returns the user's function. It is called here first, for its errors, and in each
            worker process, so it must be picklable: a `functools.partial` of a module's function,
            for instance.
        num_workers: processes; 1 works in this one. Default: one a core.
        on_progress: called with the number of files done and of all files.

    Raises:
        OutputExists: the directory already holds shards.
        RunError: the user's code failed in a worker; with one worker its own exception is raised.
    """
    for name, value in (("records_per_shard", records_per_shard), ("num_workers", num_workers)):
        if value is not None and value < 1:
            raise InvalidValue(f"Invalid {name} {value}: give 1 or more.")
    files = expand(inputs, recursive=True)
    call = bind(load())
    workers = num_workers or os.cpu_count() or 1
    runs = _runs(files, workers)
    num_done = 0
    with (
        tempfile.TemporaryDirectory(prefix="elasticdl-prepare-") as directory,
        ShardWriter(output_dir, records_per_shard, compression) as writer,
        closing(_parts(runs, load, call, min(workers, len(runs)), Path(directory))) as parts,
    ):
        for run, part in zip(runs, parts, strict=True):
            for record in _records(part):
                writer.write(record)
            part.unlink()
            num_done += len(run)
            if on_progress is not None:
                on_progress(num_done, len(files))
        if not writer.num_records:
            raise DataError(f"No records came of the {len(files)} files of {inputs!r}.")
        shards = writer.commit()
    return Prepared(len(files), writer.num_records, shards)


def _runs(files: Sequence[File], workers: int) -> list[Sequence[File]]:
    """Enough runs that all workers are busy to the end, long enough that a run is worth a call."""
    size = max(1, min(_MAX_FILES_IN_RUN, len(files) // (4 * workers)))
    return [files[i : i + size] for i in range(0, len(files), size)]


def _parts(
    runs: Sequence[Sequence[File]],
    load: Callable[[], Callable[..., object]],
    call: PrepareFn,
    workers: int,
    directory: Path,
) -> Generator[Path, None, None]:
    """The part of each run, in order, written by this process or by workers."""
    paths = [directory / f"{number:06}.part" for number in range(len(runs))]
    if workers == 1:
        for run, path in zip(runs, paths, strict=True):
            _write_part(call, run, path)
            yield path
        return
    context = multiprocessing.get_context("spawn")  # a fork of a process with TensorFlow may hang
    pool = ProcessPoolExecutor(workers, context, initializer=_start_worker, initargs=(load,))
    waiting: deque[tuple[Path, Future[str | None]]] = deque()
    try:
        for run, path in zip(runs, paths, strict=True):
            waiting.append((path, pool.submit(_work, run, path)))
            if len(waiting) > 2 * workers:  # parts must not pile up on the disk
                yield _finished(*waiting.popleft())
        while waiting:
            yield _finished(*waiting.popleft())
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _finished(path: Path, future: Future[str | None]) -> Path:
    try:
        failure = future.result()
    except BrokenProcessPool as e:
        raise RunError(
            "A worker process ended without a word: it was killed or ran out of memory. "
            "Try again with --num_workers=1 to see the reason."
        ) from e
    if failure is not None:
        raise RunError(failure)
    return path


def _records(part: Path) -> Iterator[bytes]:
    with part.open("rb") as file:
        for chunk in recordio.index(file):
            yield from recordio.read_chunk(file, chunk)


def _write_part(call: PrepareFn, run: Sequence[File], path: Path) -> None:
    with path.open("wb") as file, recordio.RecordWriter(file, "none") as writer:
        for source in run:
            try:
                for record in call(source):
                    writer.write(record)
            except Exception as e:
                e.add_note(f"This happened while {source.url} was prepared.")
                raise


_call: PrepareFn | None = None
_load_failure: str | None = None


def _start_worker(load: Callable[[], Callable[..., object]]) -> None:
    """Load the user's function once a process; what it raises is told with the first run."""
    global _call, _load_failure
    try:
        _call = bind(load())
    except Exception as e:
        _load_failure = f"The model file cannot be loaded:\n\n{_told(e)}"


def _work(run: Sequence[File], path: Path) -> str | None:
    """Write a part; the user's failure is returned as text, since their exceptions may not travel."""
    if _call is None:
        return _load_failure
    try:
        _write_part(_call, run, path)
    except ElasticDLError:
        raise
    except (Exception, SystemExit) as e:
        return f"prepare_data_for_a_single_file failed:\n\n{_told(e)}"
    return None


def _told(error: BaseException) -> str:
    """The traceback of the user's code, without our frames above and between it."""
    summary = TracebackException.from_exception(error)
    _cut(summary)
    return "".join(summary.format()).rstrip()


def _cut(summary: TracebackException) -> None:
    theirs = [f for f in summary.stack if not Path(f.filename).is_relative_to(_PACKAGE)]
    summary.stack = StackSummary.from_list(theirs)
    for other in (summary.__cause__, summary.__context__):
        if other is not None:
            _cut(other)
