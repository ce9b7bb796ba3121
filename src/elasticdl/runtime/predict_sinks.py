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
        """Hold the output from now on."""
        self._opened.enter_context(self._output.files.holding())
        try:
            self.begin_held()
        except BaseException:
            self._opened.close()
            raise

    def begin_held(self) -> None:
        """Where another process holds the output: one of those that write parts begins it."""
        self._output.files.begin(self._job, self._config.to_json(), resume=self._config.resume)

    def join(self, token: str) -> None:
        """As `begin_held`, at any time, by any of those that have the token."""
        config = self._config
        self._output.files.join(self._job, config.to_json(), resume=config.resume, token=token)

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
    """The user's `PredictionOutputsProcessor`: called once a minibatch.

    Again, for a lease that another worker died in: what it does with a prediction should not mind that.

    Args:
      worker_id: which of the job's workers this is, from 0.
    """

    def __init__(self, processor: Any, form: OutputForm, worker_id: int = 0) -> None:
        self._processor = processor
        self._form = form
        self._worker_id = worker_id

    @contextmanager
    def part(self, number: int) -> Iterator[Take]:
        yield self._take

    def _take(self, block: Block) -> None:
        for columns in block.minibatches():
            shown = {name: _shown(values) for name, values in columns.items()}
            self._processor.process(self._form.packed(shown), self._worker_id)


class MemorySink(_Plain):
    """For the caller, who gets the whole of it at the end, in the order of the leases.

    Blocks that other processes made are taken there and added here; they and an empty sink can be pickled.
    """

    def __init__(self, form: OutputForm, schema: Mapping[str, ArraySpec]) -> None:
        self._form = form
        self._schema = schema
        self._blocks: dict[int, list[Block]] = {}

    @contextmanager
    def part(self, number: int) -> Iterator[Take]:
        blocks: list[Block] = []
        yield blocks.append
        self.add(number, blocks)

    def add(self, number: int, blocks: list[Block]) -> None:
        """The predictions of a lease. Those of one that was done twice count once."""
        self._blocks[number] = blocks

    def take(self, number: int) -> list[Block]:
        """The predictions of a lease, which are not kept here any longer."""
        return self._blocks.pop(number)

    def predictions(self) -> Any:
        """As the model structures its outputs; a list of rows where their lengths vary."""
        return self._form.packed({name: self._column(name) for name in self._schema})

    def _column(self, name: str) -> Any:
        in_order = (block for number in sorted(self._blocks) for block in self._blocks[number])
        pieces = [block.columns[name] for block in in_order]
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
