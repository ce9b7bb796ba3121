"""uvicorn as a part of somebody else's process: no log lines, no signals, no work while nobody asks."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import anyio.to_thread
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["Server"]

MOST_CONNECTIONS = 64
"""One more is told to come later. A browser has six for each page."""
HEADERS_S = 10.0
"""So long a client may take to say what it wants."""

THREADS = 4
"""So many answers are made at a time: the training has the rest."""


class Connection(H11Protocol):
    """A connection whose client must say what it wants: else a few silent ones would keep all others out."""

    _due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._watch(is_over=True)
        super().connection_lost(exc)

    def _watch(self, *, is_over: bool = False) -> None:
        if is_over or not self._is_waiting:
            if self._due is not None:
                self._due.cancel()
            self._due = None
        elif self._due is None:
            self._due = self.loop.call_later(HEADERS_S, self._give_up)

    @property
    def _is_waiting(self) -> bool:
        """For the rest of a question; in between two of them uvicorn has a time limit of its own."""
        return self.cycle is None or self.cycle.response_complete

    def _give_up(self) -> None:
        self._due = None
        if self._is_waiting and not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """Runs in the thread that calls `run_on`; any other may stop it."""

    def __init__(self, app: Any) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                log_config=None,
                log_level="critical",
                access_log=False,
                lifespan="off",
                loop="asyncio",
                http=Connection,
                ws="none",
                server_header=False,
                date_header=False,
                proxy_headers=False,
                limit_concurrency=MOST_CONNECTIONS,
                timeout_keep_alive=15,
                timeout_graceful_shutdown=1,
            )
        )
        self._end = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def run_on(self, listening: socket.socket) -> None:
        asyncio.run(self._run_on(listening))

    async def _run_on(self, listening: socket.socket) -> None:
        self._loop = asyncio.get_running_loop()
        anyio.to_thread.current_default_thread_limiter().total_tokens = THREADS
        if not self.should_exit:
            await self.serve(sockets=[listening])

    async def main_loop(self) -> None:
        """Wait, instead of looking at the clock ten times a second."""
        if not self.should_exit:
            await self._end.wait()

    def stop(self) -> None:
        self.should_exit = True
        if self._loop is not None and not self._loop.is_closed():
            try:
                self._loop.call_soon_threadsafe(self._end.set)
            except RuntimeError:  # it has just ended by itself
                return
