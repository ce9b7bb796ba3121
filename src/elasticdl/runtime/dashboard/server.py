"""uvicorn as a part of somebody else's process: no log lines, no signals, no work while nobody asks."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import anyio.to_thread
import uvicorn

__all__ = ["Server"]

THREADS = 4
"""So many answers are made at a time: the training has the rest."""


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
                http="h11",
                ws="none",
                server_header=False,
                date_header=False,
                proxy_headers=False,
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
