"""Where to work when nobody says it: what the environment names, the same for Python, notebooks and the shell."""

from __future__ import annotations

import os

__all__ = ["DEFAULT_MODELS", "database_address", "models_address"]

DEFAULT_MODELS = "models"


def database_address(given: str | os.PathLike[str] | None) -> str | None:
    """The address of the database: what was given, else ELASTICDL_DB, else None for DuckDB in memory."""
    return os.environ.get("ELASTICDL_DB") or None if given is None else os.fspath(given)


def models_address(given: str | os.PathLike[str] | None) -> str:
    """Where models are kept: what was given, else ELASTICDL_MODELS, else the directory `models`."""
    return (
        os.environ.get("ELASTICDL_MODELS") or DEFAULT_MODELS if given is None else os.fspath(given)
    )
