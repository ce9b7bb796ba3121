"""The command of a kubeconfig that gives credentials (`exec`): one that hangs is ended, and waiting for it is told."""

from __future__ import annotations

import copy
import sys
from typing import Any

from elasticdl.runtime.kubernetes.package import import_kubernetes
from elasticdl.runtime.kubernetes.patience import NOTICED_S, said_after

__all__ = ["load_with_plugin"]

ALONE_S = 60.0
"""How long the command may take."""
TYPED_S = 300.0
"""The same at a terminal, where a user may be logging in."""

# The client starts the command itself, now and when the credentials expire, and waits for ever. So it starts this.
SUPERVISOR = """
import subprocess, sys
limit, command = float(sys.argv[1]), sys.argv[2:]
try:
    sys.exit(subprocess.run(command, timeout=limit).returncode)
except subprocess.TimeoutExpired:
    sys.exit(f"{command[0]} did not end within {limit:g} seconds")
except OSError as error:
    sys.exit(f"{command[0]}: {error.strerror}")
except KeyboardInterrupt:
    sys.exit(130)
"""


def load_with_plugin(files: str, context: str, configuration: Any) -> None:
    """Load a context whose user has an `exec` into a configuration of the client."""
    merged = copy.deepcopy(import_kubernetes("config.kube_config").KubeConfigMerger(files).config)
    contexts, users = (merged[plural] for plural in ("contexts", "users"))
    user = users.get_with_name(contexts.get_with_name(context)["context"]["user"])["user"]
    command = str(user["exec"]["command"])
    _supervise(user.value["exec"])
    config = import_kubernetes("config")
    with said_after(NOTICED_S, _say, f"Waiting for the kubeconfig's command {command!r} ..."):
        config.load_kube_config_from_dict(
            merged, context=context, client_configuration=configuration
        )


def _supervise(plugin: dict[str, Any]) -> None:
    limit = TYPED_S if sys.stdout.isatty() else ALONE_S
    given = [str(word) for word in (plugin["command"], *(plugin.get("args") or ()))]
    plugin["args"] = ["-I", "-S", "-c", SUPERVISOR, str(limit), *given]
    plugin["command"] = sys.executable


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
