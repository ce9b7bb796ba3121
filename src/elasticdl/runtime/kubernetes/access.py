"""How a cluster is reached: the kubeconfig, one of its contexts, or the service account of a pod."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from elasticdl.errors import InvalidValue, NotFound, RunError
from elasticdl.runtime.kubernetes.exec_plugin import load_with_plugin
from elasticdl.runtime.kubernetes.kubeconfig import choose, without_password
from elasticdl.runtime.kubernetes.package import import_kubernetes

__all__ = ["Access", "find_access", "import_kubernetes", "without_password"]

DEFAULT_FILE = "~/.kube/config"
POD_NAMESPACE_FILE = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"


@dataclass(frozen=True)
class Access:
    """What is needed to talk to a cluster.

    Attributes:
      configuration: the official client's, with the credentials.
      context: the context's name in the kubeconfig; None inside of a cluster.
      namespace: the namespace that the context names, or `default`.
    """

    configuration: Any
    context: str | None
    namespace: str


def find_access(context: str | None) -> Access:
    """The credentials for a cluster.

    Args:
      context: a context of the kubeconfig; None takes its current one.

    Raises:
      NotFound: there is no kubeconfig, and this is not a pod.
      UnknownName: the kubeconfig has no such context.
      InvalidValue: the kubeconfig cannot be read.
    """
    files = os.environ.get("KUBECONFIG") or DEFAULT_FILE
    found = [path for path in files.split(os.pathsep) if os.path.exists(os.path.expanduser(path))]
    if not found and context is None and "KUBERNETES_SERVICE_HOST" in os.environ:
        return _of_this_pod()
    if not found:
        raise NotFound(
            f"No cluster is known: there is no kubeconfig at {files}. Get one from whoever runs the "
            "cluster, or give the path of another with: export KUBECONFIG=PATH"
        )
    return _of_kubeconfig(found, context)


def _of_kubeconfig(files: list[str], name: str | None) -> Access:
    import_kubernetes()  # before it is looked for what only matters with it
    context = choose(files, name)
    where = os.pathsep.join(files)
    configuration = _new_configuration()
    try:
        with _heard_errors() as heard:
            if "exec" in context.user:
                load_with_plugin(where, context.name, configuration)
            else:
                config = import_kubernetes("config")
                config.load_kube_config(
                    where, context=context.name, client_configuration=configuration
                )
    except Exception as error:  # what a broken file makes of the client's loader has many types
        said = str(error).strip().splitlines() or [type(error).__name__]
        raise InvalidValue(
            f"The kubeconfig {where} cannot be used: {said[0]}. "
            "See what kubectl makes of it with: kubectl config view"
        ) from None  # the cause's traceback shows the file's lines, which have tokens in them
    if heard:
        raise RunError(
            f"The credentials for the context {context.name!r} cannot be had: {heard[0]}. The kubeconfig's command "
            "for them failed: install it or log in again, then try: kubectl auth whoami"
        )
    return Access(configuration, context.name, context.namespace)


@contextmanager
def _heard_errors() -> Iterator[list[str]]:
    """What the client logs: of a plugin that gives no credentials it only logs, and goes on without them."""
    heard: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    root = logging.getLogger()
    root.addHandler(handler)
    try:
        yield heard
    finally:
        root.removeHandler(handler)


def _of_this_pod() -> Access:
    configuration = _new_configuration()
    try:
        import_kubernetes("config").load_incluster_config(configuration)
        with open(POD_NAMESPACE_FILE) as file:
            namespace = file.read().strip()
    except Exception as error:
        raise RunError(
            f"This pod cannot talk to its cluster: {error}. Give it a service account that may "
            "create RayJobs (see deploy/rbac.yaml), or a kubeconfig with KUBECONFIG."
        ) from error
    return Access(configuration, None, namespace or "default")


def _new_configuration() -> Any:
    configuration = import_kubernetes().Configuration()
    configuration.retries = False  # urllib3 would try again for minutes, and print that it does
    return configuration
