"""Who takes predictions: files, the user's processor, or the memory of the caller.

The last sink of a run decides which leases are done; the ones before it are told of every block on the way.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from elasticdl.data.source import ArraySpec
from elasticdl.engine.outputs import OutputForm
from elasticdl.engine.predictor import Block
from elasticdl.job.config import JobConfig
from elasticdl.storage import storage_errors

if TYPE_CHECKING:
    from elasticdl.runtime.predict_job import Output

__all__ = ["FileSink", "MemorySink", "ProcessorSink", "Sink"]

WORKER_ID = 0
"""There is one worker when a job runs in this process."""

Take = Callable[[Block], None]


class Sink(Protocol):
    """Takes the predictions of one lease after the other."""

    def begin(self) -> None: ...

    def done(self) -> set[int]:
        """The numbers of the leases that it has from before."""

    def part(self, number: int) -> AbstractContextManager[Take]:
        """Takes the blocks of a lease; they count at a clean end."""

    @property
    def faults(self) -> Sequence[str]:
        """What a user should know of what was done before."""

    def complete(self, num_parts: int) -> None: ...

    def end(self) -> None: ...


class _Plain:
    """A sink that keeps nothing from before."""

    faults: Sequence[str] = ()

    def begin(self) -> None:
        pass

    def done(self) -> set[int]:
        return set()

    def complete(self, num_parts: int) -> None:
        pass

    def end(self) -> None:
        pass


class FileSink:
    """Parts of a file or a directory."""

    def __init__(
        self,
        output: Output,
        job: Mapping[str, Any],
        config: JobConfig,
        schema: Mapping[str, ArraySpec],
    ) -> None:
        self._output = output
        self._job = job
        self._config = config
        self._schema = schema
        self._opened = contextlib.ExitStack()

    def begin(self) -> None:
        held = self._output.files.held(
            self._job, self._config.to_json(), resume=self._config.resume
        )
        self._opened.enter_context(held)

    def done(self) -> set[int]:
        return self._output.files.done()

    @property
    def faults(self) -> Sequence[str]:
        return self._output.files.faults

    @contextmanager
    def part(self, number: int) -> Iterator[Take]:
        place = self._output.place
        with self._output.files.part(number) as file:
            with storage_errors(place):
                writer = self._output.format.open(file, self._schema)

            def take(block: Block) -> None:
                with storage_errors(place):
                    writer.write(block.columns)

            try:
                yield take
            except BaseException:
                with contextlib.suppress(Exception):  # the file is thrown away
                    writer.close()
                raise
            with storage_errors(place):
                writer.close()

    def complete(self, num_parts: int) -> None:
        self._output.files.complete(num_parts)

    def end(self) -> None:
        self._opened.close()


class ProcessorSink(_Plain):
    """The user's `PredictionOutputsProcessor`: called once a minibatch."""

    def __init__(self, processor: Any, form: OutputForm) -> None:
        self._processor = processor
        self._form = form

    @contextmanager
    def part(self, number: int) -> Iterator[Take]:
        yield self._take

    def _take(self, block: Block) -> None:
        for columns in block.minibatches():
            shown = {name: _shown(values) for name, values in columns.items()}
            self._processor.process(self._form.packed(shown), WORKER_ID)


class MemorySink(_Plain):
    """For the caller, who gets the whole of it at the end."""

    def __init__(self, form: OutputForm, schema: Mapping[str, ArraySpec]) -> None:
        self._form = form
        self._schema = schema
        self._blocks: list[Block] = []

    @contextmanager
    def part(self, number: int) -> Iterator[Take]:
        blocks: list[Block] = []
        yield blocks.append
        self._blocks += blocks

    def predictions(self) -> Any:
        """As the model structures its outputs; a list of rows where their lengths vary."""
        return self._form.packed({name: self._column(name) for name in self._schema})

    def _column(self, name: str) -> Any:
        pieces = [block.columns[name] for block in self._blocks]
        spec = self._schema[name]
        if None in spec.shape:
            return [row for piece in pieces for row in piece]
        fixed = [n for n in spec.shape if n is not None]
        return np.concatenate([np.empty((0, *fixed), spec.dtype), *pieces])


class _Array(np.ndarray[Any, Any]):
    """An array that also answers as the tensor which processors were given once."""

    def numpy(self) -> np.ndarray[Any, Any]:
        return np.asarray(self)


def _shown(values: Any) -> Any:
    return values.view(_Array) if isinstance(values, np.ndarray) else values
