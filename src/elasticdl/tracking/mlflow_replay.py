"""From events.jsonl to MLflow: what is not there yet, in order, and how far that came."""

from __future__ import annotations

import posixpath
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from upath import UPath

from elasticdl.storage import is_local, place
from elasticdl.tracking.mlflow_address import secrets_of, shown
from elasticdl.tracking.mlflow_lines import Lines
from elasticdl.tracking.mlflow_reason import reason_of
from elasticdl.tracking.mlflow_records import Record
from elasticdl.tracking.mlflow_state import State, Tracked, read_run_id, read_state, write_state
from elasticdl.tracking.mlflow_store import KEY_TAG, Store

__all__ = ["Replay"]

REFUSALS = ("INVALID_PARAMETER_VALUE", "BAD_REQUEST")


class Replay:
    """Brings one run's events to MLflow, from where the last attempt left off."""

    def __init__(self, tracked: Tracked, store: Store, note: Callable[[str], None]) -> None:
        self._tracked = tracked
        self._directory = tracked.directory
        self._store = store
        self._note = note
        self._lines = Lines(Path(tracked.events))
        self._state: State | None = None
        self.url: str | None = None

    @property
    def run_id(self) -> str:
        return self._state.run_id if self._state else ""

    def send(self) -> None:
        """Send all that is new. Raises what MLflow raises when it takes nothing now."""
        self._lines.read()
        if not len(self._lines):
            return
        if self._state is None:
            self._state = self._take_up()
        while self._state.lines_sent < len(self._lines):
            part = self._lines.part(self._state.lines_sent)
            try:
                self._send(self._state, part.records)
            except Exception as error:
                if not _is_refusal(error):
                    raise
                if not self._store.is_active(self._state.run_id):  # somebody deleted it just now
                    self._state = self._take_up()
                    continue
                self._note(
                    f"MLflow does not take a part of {self._tracked.run_name}: {self._reason(error)}."
                )
            self._keep(replace(self._state, lines_sent=part.num_lines))

    def end(self) -> None:
        """The run's process is gone. One that did not say how it ended was killed."""
        if self._state is not None and self._lines.is_open:
            self._store.set_status(self._state.run_id, "KILLED", round(1000 * time.time()))

    def _take_up(self) -> State:
        """The run of an earlier time, or a new one."""
        experiment, was_deleted = self._store.experiment(self._tracked.experiment)
        if was_deleted:
            self._note(
                f"The MLflow experiment {self._tracked.experiment!r} had been deleted. It is restored."
            )
        state = self._earlier_state()
        if state.run_id and not self._store.is_active(state.run_id):
            self._note(
                f"The MLflow run {state.run_id} of {self._tracked.run_name} was deleted. A new one is made, "
                "with all that the run has written down."
            )
            state = self._new_state()
        if not state.run_id:
            write_state(
                self._directory, state
            )  # its key, before there is something to be found by it
            name, tags = self._tracked.run_name, self._tags("training", state.key)
            state = replace(state, run_id=self._store.make_run(experiment, name, tags))
            write_state(self._directory, state)
        self._describe(state.run_id)
        self.url = self._store.url(experiment, state.run_id)
        return state

    def _earlier_state(self) -> State:
        new, earlier = self._new_state(), read_state(self._directory)
        if earlier is not None:
            return earlier if earlier.is_about_the_same(new) else new
        run_id = read_run_id(self._directory)  # of a program that wrote down no more than this
        return replace(new, run_id=run_id if run_id and self._store.is_active(run_id) else "")

    def _new_state(self) -> State:
        tracked, first = self._tracked, self._lines.first_event
        return State(shown(tracked.address), tracked.experiment, tracked.run_name, first)

    def _tags(self, session: str, key: str) -> dict[str, str]:
        return {**self._tracked.tags, "session_type": session, KEY_TAG: key}

    def _keep(self, state: State) -> None:
        write_state(self._directory, state)
        self._state = state

    def _send(self, state: State, records: Sequence[Record]) -> None:
        for record in records:
            if record.is_evaluation:
                self._log(self._evaluation_run(state, record), records)
                return
        self._log(state.run_id, records)

    def _evaluation_run(self, state: State, record: Record) -> str:
        """A run below that of the training, which all evaluations share."""
        run_id, key = state.evaluation_run_id, f"{state.key}-evaluation"
        if not run_id or not self._store.is_active(run_id):
            key += f"-{record.time_ms}" if run_id else ""
            tags = {**self._tags("evaluation", key), "mlflow.parentRunId": state.run_id}
            experiment, _ = self._store.experiment(self._tracked.experiment)
            run_id = self._store.make_run(experiment, f"{self._tracked.run_name}_evaluation", tags)
            self._keep(replace(state, evaluation_run_id=run_id))
        self._describe(run_id)
        return run_id

    def _describe(self, run_id: str) -> None:
        try:
            self._store.set_params(run_id, self._tracked.params)
            self._store.set_tags(run_id, self._tracked.tags)
        except Exception as error:
            if not _is_refusal(error):
                raise
            self._note(
                f"MLflow does not take all parameters of {self._tracked.run_name}: {self._reason(error)}."
            )

    def _reason(self, error: Exception) -> str:
        return reason_of(error, secrets_of(self._tracked.address))

    def _log(self, run_id: str, records: Sequence[Record]) -> None:
        if any(not record.is_epoch and record.metrics for record in records):
            known = self._store.last_metrics(run_id)
            records = [record if record.is_epoch else record.without(known) for record in records]
        self._store.log_metrics(run_id, records)
        for record in records:
            self._store.set_tags(run_id, record.tags)
            for source, folder in self._files(record):
                self._store.upload(run_id, source, folder)
            if record.status:
                self._store.set_status(run_id, record.status, record.time_ms)

    def _files(self, record: Record) -> Iterator[tuple[UPath, str]]:
        """What is to be uploaded, and to which folder: below it, things lie as in the run directory."""
        root = f"{self._directory}/"
        for path in record.files:
            found = self._found(path)
            if found is None:
                self._note(f"{path} is no longer there: MLflow is not given it.")
                continue
            is_inside = str(found).startswith(root)
            below = posixpath.dirname(str(found).removeprefix(root)) if is_inside else ""
            yield found, posixpath.join(record.folder, below).rstrip("/")

    def _found(self, path: str) -> UPath | None:
        """Where it was written down; or in the run directory, which may have been moved since."""
        written = place(path)
        candidates = (
            written.absolute() if is_local(written) else written,
            self._directory / written.name,
        )
        return next((where for where in candidates if where.exists()), None)


def _is_refusal(error: Exception) -> bool:
    """MLflow answered, and will answer the same the next time."""
    return getattr(error, "error_code", "") in REFUSALS
