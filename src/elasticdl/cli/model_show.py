"""`elasticdl model show`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from elasticdl.cli.table import columns

if TYPE_CHECKING:
    from elasticdl.artifacts.stored_model import StoredModel

__all__ = ["pairs", "show", "table", "tensors"]

_TRAINED_ON = (
    ("training data", "training_data"),
    ("validation data", "validation_data"),
    ("reader parameters", "data_reader_params"),
    ("epochs", "num_epochs"),
    ("minibatch size", "minibatch_size"),
    ("seed", "seed"),
)
_PRODUCTS = {
    "python": "Python",
    "tensorflow": "TensorFlow",
    "keras": "Keras",
    "numpy": "NumPy",
}


@click.command()
@click.argument("path")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def show(path: str, as_json: bool) -> None:
    """Show what a trained model is.

    PATH is the --output of a training, or the model/ directory of it, here or elsewhere: its
    inputs and outputs, how it was trained, its metrics and its files. Of a Keras file or a SavedModel
    it shows what can be known without loading it.
    """
    from elasticdl.artifacts.stored_model import find_trained_model, is_bare

    if is_bare(path):
        from elasticdl.artifacts.bare_look import look_at
        from elasticdl.cli.model_show_bare import bare_text

        found = look_at(path)
        click.echo(json.dumps(found, indent=2) if as_json else bare_text(found))
        return
    stored = find_trained_model(path)
    click.echo(json.dumps(_plain(stored), indent=2) if as_json else _text(stored))


def _plain(stored: StoredModel) -> dict[str, Any]:
    import dataclasses

    values = dataclasses.asdict(stored.message)
    return {
        "path": str(stored.directory),
        **values,
        "job": stored.job,
        "signature": stored.signature,
        "num_parameters": stored.num_parameters,
        "missing": stored.missing,
    }


def _text(stored: StoredModel) -> str:
    message = stored.message
    parts = [
        pairs([*_identity(stored), *_training(stored)]),
        table("metric", {name: [f"{value:.6g}"] for name, value in message.metrics.items()}, [""]),
        tensors("input", stored.signature.get("inputs", {})),
        tensors("output", stored.signature.get("outputs", {})),
        _files(stored),
    ]
    return "\n\n".join(part for part in parts if part)


def _identity(stored: StoredModel) -> list[tuple[str, str]]:
    message = stored.message
    return [
        ("trained model", str(stored.directory)),
        ("model", message.model_def or _origin(stored.job)),
        ("model parameters", message.model_def_params),
        ("variables", f"{stored.num_parameters:,} numbers" if stored.num_parameters else ""),
        ("version kept", message.chosen),
        ("trained for", f"{message.steps:,} steps"),
        ("made", message.created),
    ]


def _origin(job: dict[str, Any]) -> str:
    """Whose model it is, where no name of it was given."""
    experiment = job.get("experiment")
    if experiment:
        whose = f"project {experiment['project']}, run {experiment['run']}"
    else:
        whose = "given as a Python object"
    return f"{job.get('model', '')} ({whose})"


def _training(stored: StoredModel) -> list[tuple[str, str]]:
    message, job = stored.message, stored.job
    versions = [f"ElasticDL {message.elasticdl_version}"]
    versions += [f"{_PRODUCTS.get(n, n)} {v}" for n, v in sorted(message.versions.items())]
    return [
        ("made with", ", ".join(versions)),
        ("dataset function", message.input_function),
        ("loss", message.loss),
        ("optimizer", message.optimizer),
        *((label, _shown(job.get(name))) for label, name in _TRAINED_ON),
        ("columns", ", ".join(message.columns)),
    ]


def _shown(value: Any) -> str:
    return "" if value is None else str(value)


def pairs(labelled: list[tuple[str, str]]) -> str:
    known = [(label, value) for label, value in labelled if value]
    width = max(len(label) for label, _ in known)
    return "\n".join(f"{label:<{width}}  {value}" for label, value in known)


def tensors(kind: str, named: dict[str, Any]) -> str:
    rows = {
        name: [tensor["dtype"], "unknown" if tensor["shape"] is None else _shape(tensor["shape"])]
        for name, tensor in named.items()
    }
    return table(kind, rows, ["type", "shape"])


def _shape(shape: list[int | None]) -> str:
    return f"[{', '.join('any' if size is None else str(size) for size in shape)}]"


def table(kind: str, rows: dict[str, list[str]], header: list[str]) -> str:
    if not rows:
        return ""
    return columns([kind, *header], [[name, *cells] for name, cells in rows.items()])


def _files(stored: StoredModel) -> str:
    missing = stored.missing
    rows = {name: ["missing" if name in missing else ""] for name in sorted(stored.message.files)}
    return table("file", rows, [""])
