"""The evaluation of an experiment: each data point once through the exported model and the user's functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from elasticdl.engine.evaluator import Evaluator
from elasticdl.experiments.parts import check_fits, one_pass
from elasticdl.reports.confusion import ConfusionCounter
from elasticdl.reports.section import Section
from elasticdl.reports.table import PointTable

if TYPE_CHECKING:
    from elasticdl.experiments.session import Session

__all__ = ["Points", "evaluate"]


class Points:
    """Hands minibatches to the user's functions, point by point."""

    def __init__(
        self, functions: dict[str, Callable[[Any, Any], Any]] | None, ids: list[Any] | None
    ) -> None:
        self.table = PointTable(functions or {})
        self.confusion = ConfusionCounter()
        self._ids = ids
        """Those of the validation data, in their order; the test data brings its own."""

    def add(self, element: Any, outputs: Any, *, with_ids: bool) -> None:
        """A minibatch, and what the model makes of it."""
        labels, third = element[1], element[2:]
        done = len(self.table)
        count = int(_num_rows(outputs))
        if with_ids and third:
            ids = third[0]
        else:
            ids = self._ids[done : done + count] if self._ids else range(done, done + count)
        self.table.add(ids, labels, outputs)
        self.confusion.add(labels, outputs)

    def warn_of_names(self, name: str, warn: Callable[[str], None]) -> None:
        if self.table.duplicates:
            warn(
                f"{self.table.duplicates} data points of the {name} data have a name that another one has: "
                f"{', '.join(self.table.repeated_ids())}."
            )


def evaluate(session: Session, name: str) -> Section | None:
    """A section of the report; None when it was interrupted."""
    stream, components = session.parts.reported(name), session.components
    with_ids = name == "test"
    ids = None if with_ids else components.validation_index(stream.num_points)
    points = Points(components.evaluation_functions(), ids)
    evaluator = Evaluator(session.model, stream, lambda: one_pass(stream), with_ids=with_ids)
    check_fits(session.model, stream)

    def tell(done: int, total: int) -> None:
        session.tell("evaluation_progress", records=done, total=total)

    evaluation = evaluator.evaluate(
        tell,
        session.interrupt.is_set,
        lambda element, outputs: points.add(element, outputs, with_ids=with_ids),
    )
    if evaluation is None:
        return None
    points.warn_of_names(name, session.warn)
    return Section(name, points.table, points.confusion.confusion(), metrics=evaluation.metrics)


def _num_rows(outputs: Any) -> Any:
    import tensorflow as tf

    return tf.shape(tf.nest.flatten(outputs)[0])[0]
