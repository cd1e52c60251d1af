"""The connection of the asynchronous client: HTTP/1.1 on asyncio's streams."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from typing import AsyncIterator, Dict, List, Optional, Tuple

from .config import Config
from .connection import (CONNECT_TIMEOUT_S, headers_of, may_repeat, pauses, split_server,
                         tls_context)
from .errors import ConnectionFailed, TooManyRequests, Unavailable
from .messages import Request, Response, error_of

_HEAD_BYTES_MAX = 65536
_IDLE_MAX = 8

Streams = Tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncConnection:
    """A pool of connections to one service."""

    def __init__(self, config: Config, retry_s: float):
        self._config = config
        self._retry_s = retry_s
        self._parts = split_server(config)
        self._tls: Optional[ssl.SSLContext] = (
            tls_context(config) if self._parts.scheme == "https" else None)
        self._idle: List[Streams] = []

    def _failed(self, error: BaseException) -> ConnectionFailed:
        return ConnectionFailed(f"cannot reach {self._config.server}: "
                                f"{error or type(error).__name__}")

    async def _open(self) -> Streams:
        port = self._parts.port or (443 if self._tls else 80)
        return await asyncio.wait_for(
            asyncio.open_connection(self._parts.hostname, port, ssl=self._tls,
                                    limit=_HEAD_BYTES_MAX), CONNECT_TIMEOUT_S)

    def _head(self, request: Request, payload: Optional[bytes]) -> bytes:
        host = self._parts.netloc.rpartition("@")[2]
        lines = [f"{request.method} {self._parts.path.rstrip('/')}{request.target} HTTP/1.1",
                 f"Host: {host}"]
        for name, value in headers_of(self._config, request).items():
            if "\r" in value or "\n" in value:
                raise ValueError(f"the header {name} has a line break")
            lines.append(f"{name}: {value}")
        if payload is not None or request.method in ("POST", "PUT"):
            lines.append(f"Content-Length: {len(payload or b'')}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    async def _begin(self, streams: Streams, request: Request) -> Tuple[int, Dict[str, str]]:
        reader, writer = streams
        payload = request.payload()
        writer.write(self._head(request, payload) + (payload or b""))
        await writer.drain()
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            first, *lines = head.decode("latin-1").split("\r\n")
            words = first.split(" ", 2)
            if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdigit():
                raise ConnectionFailed("the answer is not HTTP")
            headers = {}
            for line in filter(None, lines):
                name, _, value = line.partition(":")
                headers[name.strip().lower()] = value.strip()
            if not words[1].startswith("1"):
                return int(words[1]), headers

    async def _body(self, reader: asyncio.StreamReader, status: int,
                    headers: Dict[str, str]) -> AsyncIterator[bytes]:
        if status in (204, 304):
            return
        if "chunked" in headers.get("transfer-encoding", "").lower():
            while True:
                size = int((await reader.readuntil(b"\r\n")).split(b";")[0], 16)
                left = size
                while left:
                    data = await reader.read(min(left, 65536))
                    if not data:
                        raise asyncio.IncompleteReadError(b"", left)
                    left -= len(data)
                    yield data
                if not size:
                    while await reader.readuntil(b"\r\n") != b"\r\n":
                        pass  # a trailer
                    return
                await reader.readexactly(2)
        elif "content-length" in headers:
            left = int(headers["content-length"])
            while left:
                data = await reader.read(min(left, 65536))
                if not data:
                    raise asyncio.IncompleteReadError(b"", left)
                left -= len(data)
                yield data
        else:
            while True:
                data = await reader.read(65536)
                if not data:
                    return
                yield data

    async def _once(self, request: Request, fresh: bool) -> Response:
        streams = None
        try:
            streams = await self._open() if fresh or not self._idle else self._idle.pop()
            status, headers = await asyncio.wait_for(self._begin(streams, request),
                                                     request.timeout_s)

            async def collect() -> bytes:
                return b"".join([data async for data in
                                 self._body(streams[0], status, headers)])

            body = await asyncio.wait_for(collect(), request.timeout_s)
        except BaseException as error:
            if streams:
                streams[1].close()
            if isinstance(error, (OSError, EOFError, ValueError, asyncio.TimeoutError,
                                  asyncio.LimitOverrunError)):
                raise self._failed(error) from error
            raise
        ends = headers.get("connection", "").lower() == "close" or not (
            "content-length" in headers or "transfer-encoding" in headers or status in (204, 304))
        if ends or len(self._idle) >= _IDLE_MAX:
            streams[1].close()
        else:
            self._idle.append(streams)
        response = Response(status, headers, body)
        if status >= 400 and status not in request.accepts:
            raise error_of(response)
        return response

    async def send(self, request: Request) -> Response:
        """As Connection.send."""
        end = time.monotonic() + self._retry_s
        was_kept = bool(self._idle)
        fresh = False
        for pause in pauses():
            try:
                return await self._once(request, fresh)
            except (ConnectionFailed, Unavailable, TooManyRequests) as error:
                if was_kept and isinstance(error, ConnectionFailed) and request.repeatable:
                    was_kept, fresh = False, True
                    continue
                pause = max(pause, getattr(error, "retry_after_s", None) or 0)
                if not may_repeat(request, error) or time.monotonic() + pause > end:
                    raise
            await asyncio.sleep(pause)
        raise AssertionError

    @contextlib.asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[AsyncIterator[bytes]]:
        """The body as it comes, on a connection of its own."""
        streams = None
        try:
            try:
                streams = await self._open()
                status, headers = await asyncio.wait_for(self._begin(streams, request),
                                                         request.timeout_s)
                if status >= 400:
                    body = b"".join([data async for data in
                                     self._body(streams[0], status, headers)])
                    raise error_of(Response(status, headers, body))
            except (OSError, EOFError, ValueError, asyncio.TimeoutError,
                    asyncio.LimitOverrunError) as error:
                raise self._failed(error) from error
            yield self._chunks(streams[0], status, headers, request.timeout_s)
        finally:
            if streams:
                streams[1].close()

    async def _chunks(self, reader: asyncio.StreamReader, status: int, headers: Dict[str, str],
                      timeout_s: float) -> AsyncIterator[bytes]:
        body = self._body(reader, status, headers)
        while True:
            try:
                data = await asyncio.wait_for(body.__anext__(), timeout_s)
            except StopAsyncIteration:
                return
            except (OSError, EOFError, ValueError, asyncio.TimeoutError) as error:
                raise self._failed(error) from error
            yield data

    async def close(self) -> None:
        """Closes what is idle."""
        idle, self._idle = self._idle, []
        for _, writer in idle:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
