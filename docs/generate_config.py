"""Writes docs/reference/experiment_config.md from the config itself: `python docs/generate_config.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from elasticdl.experiments.config import SECTIONS, ExportConfig, RunConfig
from elasticdl.experiments.faults import Give

PAGE = Path(__file__).parent / "reference" / "experiment_config.md"

HEAD = """\
# The config of an experiment

This page is made by `python docs/generate_config.py` from `src/elasticdl/experiments/config.py`.

A run is configured by the one YAML file in its directory, `runs/<run_name>/config.yaml`:

```bash
elasticdl new digits
cat digits/runs/baseline/config.yaml
```

The whole file is checked before anything is loaded, and all faults are told at once. A key that is not on this page
is refused, with the nearest one that is. `1e-4` is a number. `elasticdl schema` prints the JSON schema by which an
editor completes and checks a config; `elasticdl new` writes it beside the project.

```bash
elasticdl schema
```

`--set key=value` replaces a value for one run, the value in YAML: `--set epochs=2`, `--set model_builder.n_filters=32`.

## Keys

| key | value | default | meaning |
|---|---|---|---|
"""

EXPORT = """
## export

The epoch that is exported is the one with the best value of a metric. Any that an epoch logs will do: `loss`, the
names of the compiled metrics, and each of them with `val_` before it.

| key | value | default | meaning |
|---|---|---|---|
"""

SECTION = """
## Sections of your own

What is in these is free. Each class reads what it needs of the whole config, as attributes:
`config.model_builder.n_filters`. A key that is not there is an error that names the section and the nearest key.

| section | meaning |
|---|---|
"""


def page() -> str:
    """The whole page."""
    own = {name: field for name, field in _fields(RunConfig).items() if name not in SECTIONS}
    free = {name: field for name, field in _fields(RunConfig).items() if name in SECTIONS}
    sections = [f"| `{name}` | {field.description} |" for name, field in free.items()]
    parts = [HEAD, *_rows(own), EXPORT, *_rows(_fields(ExportConfig)), SECTION]
    return "".join(parts) + "".join(f"{line}\n" for line in sections)


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return model.model_fields


def _rows(fields: dict[str, FieldInfo]) -> list[str]:
    return [
        f"| `{name}` | {_value(field)} | {_default(field)} | {field.description} |\n"
        for name, field in fields.items()
    ]


def _value(field: FieldInfo) -> str:
    what = next(one.what for one in field.metadata if isinstance(one, Give))
    return f"{what}: `{_yaml(field.examples[0])}`" if field.examples else f"[{what}](#export)"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    if field.default is None or isinstance(field.default, BaseModel):
        return ""
    return f"`{_yaml(field.default)}`"


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
