"""The official client, which is an extra: imported when it is needed."""

from __future__ import annotations

import importlib
from typing import Any

from elasticdl.errors import MissingPackage

__all__ = ["import_kubernetes"]


def import_kubernetes(module: str = "client") -> Any:
    """A module of the official client, or how to get it."""
    try:
        return importlib.import_module(f"kubernetes.{module}")
    except ImportError as error:
        raise MissingPackage(
            "Jobs on Kubernetes need the package kubernetes, which is not installed. "
            "Install it with: pip install 'elasticdl[kubernetes]'"
        ) from error
