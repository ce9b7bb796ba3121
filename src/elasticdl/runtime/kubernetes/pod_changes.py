"""A user's Python file that may change each pod: `cluster.with_pod(pod)`, by the official client's classes."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from elasticdl.errors import ContractError, MissingPackage, NotFound

__all__ = ["load_pod_changes"]


def load_pod_changes(path: str | None) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """What changes the metadata and the spec of a pod, as plain data.

    Raises:
      NotFound: there is no such file.
      ContractError: it has no `cluster` with a method `with_pod`, or that returns no pod.
    """
    if path is None:
        return lambda pod: pod
    file = Path(path).expanduser()
    if not file.is_file():
        raise NotFound(
            f"The cluster_spec {path!r} is not a file. Give a Python file with an object `cluster` that has a method "
            "`with_pod(pod)`."
        )
    with_pod = getattr(getattr(_run(file), "cluster", None), "with_pod", None)
    if not callable(with_pod):
        raise ContractError(
            f"The cluster_spec {path!r} has no `cluster` with a method `with_pod(pod)`. Define a class with it, and "
            "`cluster = YourClass()`."
        )
    return lambda pod: _changed(with_pod, pod, path)


def _run(file: Path) -> ModuleType:
    """The user's own file, run for them as their model files are."""
    spec = importlib.util.spec_from_file_location("cluster_spec", file)
    if spec is None or spec.loader is None:
        raise ContractError(
            f"The cluster_spec {str(file)!r} is not a Python file: it must end in .py."
        )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _changed(with_pod: Callable[[Any], Any], pod: dict[str, Any], path: str) -> dict[str, Any]:
    try:
        from kubernetes import client
    except ImportError as error:
        raise MissingPackage(
            "A cluster_spec is given pods of the package kubernetes, which is not installed. "
            "Install it with: pip install 'elasticdl[kubernetes]'"
        ) from error
    given = client.V1Pod.from_dict({"apiVersion": "v1", "kind": "Pod", **pod})
    changed = with_pod(given)
    if not isinstance(changed, client.V1Pod):
        raise ContractError(
            f"The with_pod of the cluster_spec {path!r} returned {type(changed).__name__}. Return the pod."
        )
    api: Any = client.ApiClient()
    if changed.spec is None or not changed.spec.containers or changed.metadata is None:
        raise ContractError(
            f"The with_pod of the cluster_spec {path!r} returned a pod without metadata or containers. Change the pod "
            "that is given, and return it."
        )
    plain = api.sanitize_for_serialization(changed)
    return {key: plain[key] for key in ("metadata", "spec") if key in plain}
