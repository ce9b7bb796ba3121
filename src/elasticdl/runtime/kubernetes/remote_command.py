"""A command inside of a pod: started over a web socket, heard until it ends."""

from __future__ import annotations

import json
from typing import Any

from elasticdl.runtime.kubernetes.access import import_kubernetes

__all__ = ["run_in_pod"]

COMMAND_S = 60.0
"""How long a command may take: it asks something of a running job, it is no work of its own."""

STATUS = 3  # the channel on which the server tells how the command ended


def run_in_pod(configuration: Any, pod: dict[str, Any], argv: list[str]) -> tuple[int, str]:
    """The exit code of a command in a pod's first container, and what it printed."""
    kubernetes, stream = import_kubernetes(), import_kubernetes("stream")
    client = kubernetes.ApiClient(configuration)  # `stream` changes its client: one of its own
    try:
        socket = stream.stream(
            kubernetes.CoreV1Api(client).connect_get_namespaced_pod_exec,
            pod["metadata"]["name"],
            pod["metadata"]["namespace"],
            container=pod["spec"]["containers"][0]["name"],
            command=argv,
            stdin=False,
            stdout=True,
            stderr=True,
            tty=False,
            _preload_content=False,
        )
        try:
            socket.run_forever(timeout=COMMAND_S)
            has_ended = not socket.is_open()
            status = socket.read_channel(STATUS) if has_ended else ""
            output: str = socket.read_all()
        finally:
            socket.close()
            socket.sock.shutdown()  # one that the server has closed would stay open here
    finally:
        client.close()
    if not has_ended:
        return 124, f"{output}\nThe command did not end within {COMMAND_S:g} seconds.".lstrip()
    return _exit_code(status, output)


def _exit_code(status: str, output: str) -> tuple[int, str]:
    told: dict[str, Any] = json.loads(status or '{"message": "The connection broke."}')
    if told.get("status") == "Success":
        return 0, output
    causes = told.get("details", {}).get("causes", [])
    codes = [cause["message"] for cause in causes if cause.get("reason") == "ExitCode"]
    if codes:
        return int(codes[0]), output
    return 126, f"{output}\n{told.get('message', '')}".strip()  # it could not even be started
