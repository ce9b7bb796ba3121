"""Labels of rows that a model was not trained on: whether it knows them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elasticdl.errors import DataError
from elasticdl.tabular.arrays import to_arrays
from elasticdl.tabular.plan import FeaturePlan

__all__ = ["LabelCheck"]


class LabelCheck:
    """Refuses batches with a label that is missing, or that is no class of the model."""

    def __init__(self, plan: FeaturePlan) -> None:
        assert plan.label is not None
        self._label = plan.label
        self._columns = plan.label_columns
        classes = plan.label.classes
        self._known = {one.encode() if isinstance(one, str) else one for one in classes}

    def __call__(self, batch: pa.RecordBatch) -> None:
        name = self._label.name
        column = batch.column(name)
        if nulls := column.null_count:
            raise DataError(
                f"The label '{name}' is NULL in {nulls} rows: leave them out with WHERE {name} IS NOT NULL."
            )
        if not self._known or not batch.num_rows:
            return
        values = to_arrays(batch.select([name]), self._columns)[name]
        unknown = [one for one in np.unique(values).tolist() if one not in self._known]
        if unknown:
            shown = (
                unknown[0].decode(errors="replace") if isinstance(unknown[0], bytes) else unknown[0]
            )
            classes = ", ".join(str(one) for one in self._label.classes[:10])
            count = pc.sum(pc.equal(column.cast(pa.string()), str(shown))).as_py()
            rows = f" in {count} rows" if count else ""
            raise DataError(
                f"The label '{name}' is {shown!r}{rows}, which is no class of the model ({classes}). Leave such rows "
                "out with WHERE, or train a new model."
            )
