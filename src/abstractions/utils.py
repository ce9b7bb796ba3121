"""Configs and loggers, for exploring with the components of a project."""

from __future__ import annotations

import logging
import os
import pathlib
import sys
from typing import Any

from elasticdl.experiments.struct import ConfigStruct, Struct

__all__ = [
    "ConfigStruct",
    "Struct",
    "check_for_config_file",
    "get_logger",
    "load_config_as_dict",
    "load_config_file",
]


def load_config_file(path: str | os.PathLike[str]) -> ConfigStruct:
    """A config of a YAML file, whatever keys it has: for exploring. A run checks it.

    >>> load_config_file("runs/baseline/config.yaml").model_builder            # doctest: +SKIP
    """
    return ConfigStruct(**load_config_as_dict(path))


def load_config_as_dict(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The mapping in a YAML file."""
    from elasticdl.errors import InvalidValue, NotFound
    from elasticdl.experiments.config import read_config
    from elasticdl.storage import place

    where = place(path)
    if not where.is_file():
        raise NotFound(f"There is no config {where}. Give a YAML file.")
    given = read_config(where)
    if odd := [key for key in given if not isinstance(key, str)]:
        raise InvalidValue(f"The config {where} has the key {odd[0]!r}, which is no text.")
    return given


def check_for_config_file(run_dir: str | os.PathLike[str]) -> pathlib.Path:
    """The one YAML file of a run directory."""
    from elasticdl.experiments.project import find_config
    from elasticdl.storage import place

    return pathlib.Path(str(find_config(place(run_dir))))


def get_logger(name: str) -> logging.Logger:
    """A logger that writes to stderr; however often it is asked for, each line is written once."""
    logger = logging.getLogger(name)
    if not logger.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False
    return logger
