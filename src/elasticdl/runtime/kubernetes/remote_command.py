"""A command inside of a pod: started over a web socket, heard until it ends."""

from __future__ import annotations

import json
import queue
import threading
from typing import Any

from elasticdl.runtime.kubernetes.access import import_kubernetes

__all__ = ["COMMAND_S", "run_in_pod"]

COMMAND_S = 60.0
"""How long a command may take: it asks something of a running job, it is no work of its own."""

STATUS = 3  # the channel on which the server tells how the command ended


Answer = tuple[int, str]


def run_in_pod(
    configuration: Any, pod: dict[str, Any], argv: list[str], timeout_s: float = COMMAND_S
) -> Answer:
    """The exit code of a command in a pod's first container, and what it printed; 124 when it takes too long."""
    answers: queue.SimpleQueue[Answer | BaseException] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(_run(configuration, pod, argv, timeout_s))
        except BaseException as error:
            answers.put(error)

    # In a thread: the client waits for ever for a node that does not let it in.
    threading.Thread(target=ask, name="remote-command", daemon=True).start()
    try:
        answer = answers.get(timeout=timeout_s + 1)
    except queue.Empty:
        return _too_long("", timeout_s)
    if isinstance(answer, BaseException):
        raise answer
    return answer


def _run(configuration: Any, pod: dict[str, Any], argv: list[str], timeout_s: float) -> Answer:
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
            socket.run_forever(timeout=timeout_s)
            has_ended = not socket.is_open()
            status = socket.read_channel(STATUS) if has_ended else ""
            output: str = socket.read_all()
        finally:
            socket.close()
            socket.sock.shutdown()  # one that the server has closed would stay open here
    finally:
        client.close()
    if not has_ended:
        return _too_long(output, timeout_s)
    return _exit_code(status, output)


def _too_long(output: str, timeout_s: float) -> Answer:
    return 124, f"{output}\nThe command did not end within {timeout_s:g} seconds.".lstrip()


def _exit_code(status: str, output: str) -> Answer:
    try:
        told: dict[str, Any] = json.loads(status)
    except ValueError:
        told = {"message": "The connection broke."}
    if told.get("status") == "Success":
        return 0, output
    causes = told.get("details", {}).get("causes", [])
    codes = [cause["message"] for cause in causes if cause.get("reason") == "ExitCode"]
    if codes:
        return int(codes[0]), output
    return 126, f"{output}\n{told.get('message', '')}".strip()  # it could not even be started
