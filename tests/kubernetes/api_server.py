"""An API server of Kubernetes as far as ElasticDL needs one: real HTTP, objects in memory.

It reads as a list of what we assume of Kubernetes. Objects are stored as the client sends them.
RayJobs are held against KubeRay's own schema. Nothing happens by itself: `kuberay.KubeRay` plays the
operator, and tests put pods, events and log lines where they want them.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
import ssl
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from aiohttp import WSMsgType, web
from crd import complaints

Object = dict[str, Any]
TOKEN = "a-token-of-the-tests"
KINDS = {
    "namespaces": ("v1", "Namespace"),
    "pods": ("v1", "Pod"),
    "secrets": ("v1", "Secret"),
    "events": ("v1", "Event"),
    "jobs": ("batch/v1", "Job"),
    "rayjobs": ("ray.io/v1", "RayJob"),
    "rayclusters": ("ray.io/v1", "RayCluster"),
}


@dataclass
class Log:
    """What a container prints: lines with their times, and whether there will be more."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    has_ended: bool = False
    breaks: int = 0
    """Grows when every connection that follows the log is to break."""


@dataclass
class Refusal:
    """An answer on demand, for the requests that fit."""

    answer: Callable[[], web.Response]
    method: str
    path: re.Pattern[str]
    times: int


class ApiServer:
    """The server, and what a test may do with it.

    Attributes:
      url: where it listens.
      asked: each request, as (method, path with its query).
      has_kuberay: whether it knows the kinds of ray.io.
      denied: (verb, resource) pairs that the user has no right to; SelfSubjectAccessReview tells so.
      on_read: called before a RayJob is read, with its name: an operator may act there.
      on_create: called after a RayJob was created.
      on_delete: called after a RayJob was deleted.
      mute: requests whose method and path it fits are done and never answered.
      on_exec: answers a command in a pod, with its exit code and its output.
      ports: where a pod's port is served in truth, on this machine.
    """

    def __init__(self, certificate: Path | None = None) -> None:
        self._certificate = certificate
        self.asked: list[tuple[str, str]] = []
        self.has_kuberay = True
        self.denied: set[tuple[str, str]] = set()
        self.mute = re.compile("(?!)")
        self.on_read: Callable[[str], None] = lambda name: None
        self.on_create: Callable[[str], None] = lambda name: None
        self.on_delete: Callable[[str], None] = lambda name: None
        self.on_exec: Callable[[str, list[str]], tuple[int, str]] = lambda pod, argv: (0, "")
        self.ports: dict[tuple[str, int], int] = {}
        self.url = ""
        self._objects: dict[tuple[str, str, str], Object] = {}
        self._logs: dict[str, Log] = {}
        self._refusals: list[Refusal] = []
        self._lock = threading.RLock()
        self._version = 0
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Event()
        self._sockets: set[web.WebSocketResponse] = set()
        self._thread = threading.Thread(target=self._run, name="api-server")
        self._ready = threading.Event()
        self.put("namespaces", {"metadata": {"name": "default"}})

    # For tests

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join()

    def put(self, plural: str, thing: Object, namespace: str = "default") -> Object:
        """Store an object, in place of one of the same name."""
        with self._lock:
            api_version, kind = KINDS[plural]
            stored = {"apiVersion": api_version, "kind": kind, **copy.deepcopy(thing)}
            meta = stored.setdefault("metadata", {})
            name = meta["name"]
            if plural == "namespaces":
                namespace = ""
            else:
                meta["namespace"] = namespace
            old = self._objects.get((plural, namespace, name), {}).get("metadata", {})
            self._version += 1
            meta["uid"] = old.get("uid") or str(uuid.uuid4())
            meta["creationTimestamp"] = old.get("creationTimestamp") or self.now()
            meta["resourceVersion"] = str(self._version)
            self._objects[plural, namespace, name] = stored
            return copy.deepcopy(stored)

    def get(self, plural: str, name: str, namespace: str = "default") -> Object:
        with self._lock:
            return copy.deepcopy(self._objects[plural, namespace, name])

    def all(self, plural: str, namespace: str = "default") -> list[Object]:
        with self._lock:
            keys = [key for key in self._objects if key[:2] == (plural, namespace)]
            return [copy.deepcopy(self._objects[key]) for key in keys]

    def remove(self, plural: str, name: str, namespace: str = "default") -> None:
        with self._lock:
            self._objects.pop((plural, namespace, name), None)

    def refuse(
        self, status: int, message: str, *, method: str = "", path: str = "", times: int = 10**6
    ) -> None:
        """Answer requests with an error: those of a method, and with a path that has a pattern in it."""
        self._refusals.append(
            Refusal(lambda: _status(status, message), method, re.compile(path), times)
        )

    def answer(
        self, status: int, body: bytes, *, kind: str = "text/html", path: str = "", **headers: str
    ) -> None:
        """Answer requests as no API server does: somebody stands in between."""
        told = {"Content-Type": kind, **headers}

        def answer() -> web.Response:
            return web.Response(status=status, body=body, headers=told)

        self._refusals.append(Refusal(answer, "", re.compile(path), 10**6))

    def accept(self) -> None:
        """Refuse nothing any more."""
        self._refusals.clear()

    def print(self, pod: str, *lines: str) -> None:
        """Let a pod print lines, all in the same instant."""
        instant = self.now()
        self._log(pod).lines += [(instant, line) for line in lines]
        self._notify()

    def end_log(self, pod: str) -> None:
        self._log(pod).has_ended = True
        self._notify()

    def break_logs(self, pod: str) -> None:
        """Cut every connection that follows a pod's log, in the middle of it."""
        self._log(pod).breaks += 1
        self._notify()

    def now(self) -> str:
        """A time that is later than all before, though the clock may stand still: one second a version."""
        with self._lock:
            self._version += 1
            start = datetime(2026, 1, 1, tzinfo=UTC)
            return (start + timedelta(seconds=self._version)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def kubeconfig(
        self,
        path: Path,
        *,
        token: str = TOKEN,
        namespace: str | None = None,
        authority: Path | None = None,
    ) -> Path:
        """Write a kubeconfig with two contexts: `tests`, which is this server, and `elsewhere`."""
        here = {"server": self.url}
        if authority:
            here["certificate-authority"] = str(authority)
        context = {"cluster": "tests", "user": "tests"}
        if namespace:
            context["namespace"] = namespace
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tests",
            "clusters": [
                {"name": "tests", "cluster": here},
                {"name": "elsewhere", "cluster": {"server": "http://127.0.0.1:1"}},
            ],
            "users": [{"name": "tests", "user": {"token": token}}],
            "contexts": [
                {"name": "tests", "context": context},
                {"name": "elsewhere", "context": {"cluster": "elsewhere", "user": "tests"}},
            ],
        }
        path.write_text(yaml.safe_dump(config))
        return path

    # The server

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _serve(self) -> None:
        self._stopped = asyncio.Event()
        app = web.Application(middlewares=[self._guard])
        app.add_routes(_routes(self))
        runner = web.AppRunner(app, shutdown_timeout=0.1, access_log=None)
        await runner.setup()
        trust = None
        if self._certificate is not None:
            trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            trust.load_cert_chain(self._certificate)
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=trust).start()
        scheme = "https" if trust else "http"
        self.url = f"{scheme}://127.0.0.1:{runner.addresses[0][1]}"
        self._ready.set()
        await self._stopped.wait()
        for log in self._logs.values():
            log.has_ended = True
        self._changed.set()
        for socket in list(self._sockets):
            await socket.close()
        await runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        self.asked.append((request.method, request.path_qs))
        for refusal in self._refusals:
            fits = request.method.startswith(refusal.method) and refusal.path.search(
                request.path_qs
            )
            if fits and refusal.times > 0:
                refusal.times -= 1
                return refusal.answer()
        if request.headers.get(
            "Authorization"
        ) != f"Bearer {TOKEN}" and not request.path.startswith("/version"):
            return _status(401, "Unauthorized")
        if request.path.startswith("/apis/ray.io") and not self.has_kuberay:
            return web.Response(status=404, text="404 page not found\n")
        try:
            response: web.StreamResponse = await handler(request)
        except KeyError as missing:
            return _status(404, str(missing.args[0]))
        if self.mute.search(f"{request.method} {request.path}"):
            await self._stopped.wait()
        return response

    def _notify(self) -> None:
        self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _log(self, pod: str) -> Log:
        with self._lock:
            return self._logs.setdefault(pod, Log())

    def _find(self, plural: str, namespace: str, name: str) -> Object:
        try:
            return self.get(plural, name, namespace)
        except KeyError:
            raise KeyError(f'{_resource(plural)} "{name}" not found') from None

    async def version(self, request: web.Request) -> web.Response:
        return web.json_response({"major": "1", "minor": "37", "gitVersion": "v1.37.0"})

    async def kinds(self, request: web.Request) -> web.Response:
        names = [{"name": plural} for plural in ("rayclusters", "rayjobs")]
        return web.json_response({"kind": "APIResourceList", "resources": names})

    async def review(self, request: web.Request) -> web.Response:
        body = await request.json()
        wanted = body["spec"]["resourceAttributes"]
        resource = "/".join(filter(None, (wanted["resource"], wanted.get("subresource"))))
        allowed = (wanted["verb"], resource) not in self.denied
        return web.json_response({**body, "status": {"allowed": allowed}}, status=201)

    async def namespace(self, request: web.Request) -> web.Response:
        return web.json_response(self._find("namespaces", "", request.match_info["name"]))

    async def list(self, request: web.Request) -> web.Response:
        plural, namespace = request.match_info["plural"], request.match_info["namespace"]
        if ("list", plural) in self.denied:
            return _forbidden("list", plural, namespace)
        selector = request.query.get("labelSelector", "")
        items = [thing for thing in self.all(plural, namespace) if _selects(selector, thing)]
        return web.json_response({"kind": "List", "metadata": {}, "items": items})

    async def create(self, request: web.Request) -> web.Response:
        plural, namespace = request.match_info["plural"], request.match_info["namespace"]
        body = await request.json()
        name = body["metadata"]["name"]
        if ("create", plural) in self.denied:
            return _forbidden("create", plural, namespace)
        self._find("namespaces", "", namespace)
        if plural == "rayjobs" and (refusal := _refusal(body)):
            return refusal
        with self._lock:
            if (plural, namespace, name) in self._objects:
                return _status(409, f'{_resource(plural)} "{name}" already exists', "AlreadyExists")
            if request.query.get("dryRun") == "All":
                return web.json_response(body, status=201)
            stored = self.put(plural, body, namespace)
        if plural == "rayjobs":
            self.on_create(name)
        return web.json_response(stored, status=201)

    async def read(self, request: web.Request) -> web.Response:
        plural, namespace, name = (
            request.match_info[key] for key in ("plural", "namespace", "name")
        )
        if ("get", plural) in self.denied:
            return _forbidden("get", plural, namespace)
        if plural == "rayjobs":
            self.on_read(name)
        return web.json_response(self._find(plural, namespace, name))

    async def patch(self, request: web.Request) -> web.Response:
        plural, namespace, name = (
            request.match_info[key] for key in ("plural", "namespace", "name")
        )
        if ("patch", plural) in self.denied:
            return _forbidden("patch", plural, namespace)
        stored, change = self._find(plural, namespace, name), await request.json()
        if request.content_type == "application/json-patch+json":
            changed = _json_patched(stored, change)
        elif request.content_type == "application/merge-patch+json":
            changed = _merged(stored, change)
        else:  # a strategic merge needs the kind's Go type: there is none of a custom resource
            return _status(
                415, f"the body of the request was in an unknown format: {request.content_type}"
            )
        if changed is None:
            return _status(422, "the server rejected our request due to an error in our request")
        return web.json_response(self.put(plural, changed, namespace))

    async def delete(self, request: web.Request) -> web.Response:
        plural, namespace, name = (
            request.match_info[key] for key in ("plural", "namespace", "name")
        )
        if ("delete", plural) in self.denied:
            return _forbidden("delete", plural, namespace)
        stored = self._find(plural, namespace, name)
        self.remove(plural, name, namespace)
        if plural == "rayjobs":
            self.on_delete(name)
        return web.json_response(stored)

    async def delete_all(self, request: web.Request) -> web.Response:
        """What a DELETE without a name means (deletecollection)."""
        plural, namespace = request.match_info["plural"], request.match_info["namespace"]
        for thing in self.all(plural, namespace):
            self.remove(plural, thing["metadata"]["name"], namespace)
        return web.json_response({"kind": "Status", "status": "Success"})

    async def log(self, request: web.Request) -> web.StreamResponse:
        """A pod's output. Times stand in front with `timestamps`; `follow` ends with the container."""
        pod = request.match_info["name"]
        status = self._find("pods", request.match_info["namespace"], pod).get("status", {})
        waiting = [
            each["state"]["waiting"]
            for each in status.get("containerStatuses", [])
            if "waiting" in each["state"]
        ]
        if waiting or status.get("phase") == "Pending":
            why = waiting[0]["reason"] if waiting else "PodInitializing"
            return _status(
                400, f'container in pod "{pod}" is waiting to start: {why}', "BadRequest"
            )
        log, shown = self._log(pod), 0
        breaks, follows = log.breaks, request.query.get("follow") == "true"
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        while True:
            changed = self._changed
            for time, line in log.lines[shown:]:
                stamp = f"{time} " if request.query.get("timestamps") == "true" else ""
                await response.write(f"{stamp}{line}\n".encode())
                shown += 1
            if log.breaks > breaks and request.transport:
                await response.write(b"2026-01-01T00:00:00Z half a li")
                request.transport.abort()
                return response
            if log.has_ended or not follows:
                return response
            await changed.wait()

    async def exec(self, request: web.Request) -> web.WebSocketResponse:
        """A command: its output on channel 1, how it ended on channel 3, then the socket is closed."""
        pod = request.match_info["name"]
        self._find("pods", request.match_info["namespace"], pod)
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        call = asyncio.to_thread(self.on_exec, pod, request.query.getall("command"))
        code, output = await call
        if output:
            await socket.send_bytes(b"\x01" + output.encode())
        ended: Object = {"status": "Success"}
        if code:
            cause = {"reason": "ExitCode", "message": str(code)}
            ended = {
                "status": "Failure",
                "reason": "NonZeroExitCode",
                "message": f"command terminated with non-zero exit code: {code}",
                "details": {"causes": [cause]},
            }
        await socket.send_bytes(b"\x03" + json.dumps(ended).encode())
        await socket.close()
        return socket

    async def portforward(self, request: web.Request) -> web.WebSocketResponse:
        """Bytes to and from a pod's port on channel 0, an error on channel 1; each begins with the port."""
        pod, port = request.match_info["name"], int(request.query["ports"])
        self._find("pods", request.match_info["namespace"], pod)
        socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
        await socket.prepare(request)
        self._sockets.add(socket)
        for channel in (0, 1):
            await socket.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
        try:
            await _carry(socket, self.ports[pod, port])
        except (KeyError, OSError) as error:
            await socket.send_bytes(
                b"\x01" + f"error forwarding port {port} to pod: {error}".encode()
            )
        self._sockets.discard(socket)
        await socket.close()
        return socket

    def break_forwards(self) -> None:
        """Cut every web socket that carries a port, without a word."""

        def cut() -> None:
            for socket in self._sockets:
                if (request := socket._req) is not None and request.transport is not None:
                    request.transport.abort()

        self._loop.call_soon_threadsafe(cut)


def _routes(server: ApiServer) -> list[web.RouteDef]:
    routes = [
        web.get("/version", server.version),
        web.get("/version/", server.version),
        web.get("/apis/ray.io/v1", server.kinds),
        web.get("/api/v1/namespaces/{name}", server.namespace),
        web.post("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", server.review),
        web.get("/api/v1/namespaces/{namespace}/pods/{name}/log", server.log),
        web.get("/api/v1/namespaces/{namespace}/pods/{name}/exec", server.exec),
        web.get("/api/v1/namespaces/{namespace}/pods/{name}/portforward", server.portforward),
    ]
    for group, plurals in (
        ("api/v1", "pods|secrets|events"),
        ("apis/ray.io/v1", "rayjobs|rayclusters"),
        ("apis/batch/v1", "jobs"),
    ):
        all_of_them = f"/{group}/namespaces/{{namespace}}/{{plural:{plurals}}}"
        one = f"{all_of_them}/{{name}}"
        routes += [web.post(all_of_them, server.create)]
        for same in (all_of_them, f"{all_of_them}/"):  # slashes at the end mean nothing
            routes += [web.get(same, server.list), web.delete(same, server.delete_all)]
        routes += [web.get(one, server.read), web.patch(one, server.patch)]
        routes += [web.delete(one, server.delete)]
    return routes


async def _carry(socket: web.WebSocketResponse, port: int) -> None:
    """Bytes both ways between a web socket and a port of this machine, until one of them ends."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def up() -> None:
        async for message in socket:
            if message.type == WSMsgType.BINARY and message.data[:1] == b"\x00":
                writer.write(message.data[1:])
                await writer.drain()

    async def down() -> None:
        while data := await reader.read(65536):
            await socket.send_bytes(b"\x00" + data)

    tasks = [asyncio.ensure_future(up()), asyncio.ensure_future(down())]
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    writer.close()


def _status(status: int, message: str, reason: str = "") -> web.Response:
    """An error, in the form that Kubernetes gives it."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": status}
    return web.json_response({**body, "message": message, "reason": reason}, status=status)


def _forbidden(verb: str, plural: str, namespace: str) -> web.Response:
    what = f'{_resource(plural)} is forbidden: User "tests" cannot {verb} resource "{plural}"'
    return _status(403, f'{what} in the namespace "{namespace}"', "Forbidden")


def _resource(plural: str) -> str:
    return f"{plural}.ray.io" if plural.startswith("ray") else plural


def _refusal(body: Object) -> web.Response | None:
    """Why a RayJob is refused: fields that are not known (asked for as Strict), or wrong values."""
    wrong = complaints(body)
    unknown = [place for place, words in wrong if words == "unknown field"]
    if unknown:
        listed = ", ".join(f'unknown field "{place}"' for place in unknown)
        words = 'RayJob in version "v1" cannot be handled as a RayJob: strict decoding error: '
        return _status(400, words + listed, "BadRequest")
    if wrong:
        listed = ", ".join(f"{place}: Invalid value: {words}" for place, words in wrong)
        name = body["metadata"]["name"]
        return _status(422, f'RayJob.ray.io "{name}" is invalid: {listed}', "Invalid")
    return None


def _selects(selector: str, thing: Object) -> bool:
    """Whether an object has the labels of a selector of the form `a=b,c=d`."""
    labels = thing["metadata"].get("labels", {})
    wanted = [part.split("=", 1) for part in selector.split(",") if part]
    return all(labels.get(name) == value for name, value in wanted)


def _merged(stored: Any, change: Any) -> Any:
    """A JSON merge patch (RFC 7386): dicts are merged, None takes away, the rest is replaced."""
    if not isinstance(change, dict):
        return change
    out = dict(stored) if isinstance(stored, dict) else {}
    for key, value in change.items():
        if value is None:
            out.pop(key, None)
        else:
            out[key] = _merged(out.get(key), value)
    return out


def _json_patched(stored: Object, steps: list[Object]) -> Object | None:
    """A JSON patch (RFC 6902) as far as it is used: test, add and replace of what is in a dict."""
    out = copy.deepcopy(stored)
    for step in steps:
        *parents, last = step["path"].strip("/").split("/")
        place: Any = out
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place[part]
        if step["op"] == "test" and place.get(last) != step["value"]:
            return None
        if step["op"] in ("add", "replace"):
            place[last] = step["value"]
    return out


@contextmanager
def api_server(certificate: Path | None = None) -> Iterator[ApiServer]:
    """A running server.

    Args:
      certificate: a PEM file with a certificate and its key; without it there is no TLS.
    """
    server = ApiServer(certificate)
    server.start()
    try:
        yield server
    finally:
        server.stop()
