"""`sqlflow.elasticdl_input_function`: records of tables, read by the schema that lies beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from elasticdl.contract.tables import STANDARD_INPUT
from elasticdl.data.paths import expand
from elasticdl.errors import DataError, InvalidValue, NotFound
from elasticdl.job.config import DATA_OF, JobConfig
from elasticdl.storage import place, storage_errors
from elasticdl.tabular.plan import FeaturePlan

__all__ = ["SCHEMA", "with_schema"]

SCHEMA = "schema.json"


def with_schema(config: JobConfig, objects: Mapping[str, Any]) -> JobConfig:
    """The job with the plan that its data came with, when it asks for the standard input function."""
    if config.dataset_fn != STANDARD_INPUT:
        return config
    if config.feature_plan is None:
        config = replace(config, feature_plan=_plan_beside(config, objects))
    # The plan says it all from here on; as the name of a function it would be looked up in the zoo.
    return replace(config, dataset_fn=None)


def _plan_beside(config: JobConfig, objects: Mapping[str, Any]) -> dict[str, Any]:
    name = DATA_OF[config.command]
    data = getattr(config, name)
    if not isinstance(data, str) or name in objects:
        raise InvalidValue(f"{STANDARD_INPUT} reads files. Name them with --{name}=PATH.")
    path = place(expand(data)[0].url).parent / SCHEMA
    with storage_errors(path, doing="read"):
        if not path.is_file():
            raise NotFound(
                f"{STANDARD_INPUT} needs the schema of the records: there is no {path}. Write records with their "
                'schema with: elasticdl sql export "SELECT ..." --output DIR'
            )
        text = path.read_text(encoding="utf-8")
    try:
        plan = json.loads(text)["plan"]
        return FeaturePlan.from_json(plan).to_json()
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{path} is no schema of ours: {error!r}. Export the data again."
        ) from error
