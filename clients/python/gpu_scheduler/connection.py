"""The connection of the synchronous client: HTTP/1.1 from the standard library, kept open."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
import time
import urllib.parse
from typing import Dict, Iterator, Optional

from .config import Config
from .errors import ConfigError, ConnectionFailed, Unavailable, TooManyRequests
from .messages import Request, Response, error_of

CONNECT_TIMEOUT_S = 10.0
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
USER_AGENT = "gpu-scheduler-python/1.0"


def tls_context(config: Config) -> ssl.SSLContext:
    """Verifies the server by the CA of the configuration, or by the system's."""
    try:
        return ssl.create_default_context(cafile=config.ca)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"cannot read the CA file {config.ca}: {error}") from None


def split_server(config: Config) -> urllib.parse.SplitResult:
    """The parts of the service's address."""
    parts = urllib.parse.urlsplit(config.server if "://" in config.server
                                  else "http://" + config.server)
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in ("http", "https") or not parts.hostname or port == -1:
        raise ConfigError(f"invalid server '{config.server}': expected http://HOST:PORT")
    return parts


def headers_of(config: Config, request: Request) -> Dict[str, str]:
    headers = {"Accept": "application/json", "User-Agent": USER_AGENT}
    if config.token:
        headers["Authorization"] = "Bearer " + config.token
    if request.body is not None:
        headers["Content-Type"] = "application/json"
    headers.update(request.headers)
    return headers


def pauses() -> Iterator[float]:
    """Pauses between repetitions, growing."""
    pause = FIRST_PAUSE_S
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE_S)


def may_repeat(request: Request, error: Exception) -> bool:
    """A request that was refused for now may be sent again; one that was lost on the way, if it
    does no harm twice."""
    if isinstance(error, (Unavailable, TooManyRequests)):
        return getattr(error, "code", "") != "budget_exceeded"
    return isinstance(error, ConnectionFailed) and request.repeatable


class Connection:
    """Connections to one service, one for each thread."""

    def __init__(self, config: Config, retry_s: float):
        self._config = config
        self._retry_s = retry_s
        self._parts = split_server(config)
        self._tls = tls_context(config) if self._parts.scheme == "https" else None
        self._local = threading.local()
        self._all: "set[http.client.HTTPConnection]" = set()
        self._lock = threading.Lock()

    def _new(self, timeout_s: float) -> http.client.HTTPConnection:
        host, port = self._parts.hostname, self._parts.port
        made: http.client.HTTPConnection
        if self._tls:
            made = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._tls)
        else:
            made = http.client.HTTPConnection(host, port, timeout=timeout_s)
        with self._lock:
            self._all.add(made)
        return made

    def _drop(self, connection: Optional[http.client.HTTPConnection]) -> None:
        if connection is not None:
            with self._lock:
                self._all.discard(connection)
            connection.close()

    @contextlib.contextmanager
    def _sent(self, connection: http.client.HTTPConnection,
              request: Request) -> Iterator[http.client.HTTPResponse]:
        try:
            if connection.sock is None:
                connection.timeout = CONNECT_TIMEOUT_S
                connection.connect()
                connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.sock.settimeout(request.timeout_s)
            connection.request(request.method, self._parts.path.rstrip("/") + request.target,
                               body=request.payload(), headers=headers_of(self._config, request))
            yield connection.getresponse()
        except (OSError, http.client.HTTPException) as error:
            raise ConnectionFailed(f"cannot reach {self._config.server}: "
                                   f"{error or type(error).__name__}") from error

    def _once(self, request: Request) -> Response:
        connection = getattr(self._local, "connection", None)
        self._local.connection = None
        if connection is None:
            connection = self._new(request.timeout_s)
        try:
            with self._sent(connection, request) as answer:
                body = answer.read()
                response = Response(answer.status,
                                    {k.lower(): v for k, v in answer.getheaders()}, body)
                keeps = not answer.will_close
        except BaseException:
            self._drop(connection)
            raise
        if keeps:
            self._local.connection = connection
        else:
            self._drop(connection)
        if response.status >= 400 and response.status not in request.accepts:
            raise error_of(response)
        return response

    def send(self, request: Request) -> Response:
        """The answer. Raises ApiError for a status of 400 or more. What may be repeated is
        repeated for a while if the service cannot be reached or is not ready."""
        end = time.monotonic() + self._retry_s
        was_kept = getattr(self._local, "connection", None) is not None
        for pause in pauses():
            try:
                return self._once(request)
            except (ConnectionFailed, Unavailable, TooManyRequests) as error:
                if was_kept and isinstance(error, ConnectionFailed) and request.repeatable:
                    was_kept = False  # the service closed it while it was idle
                    continue
                pause = max(pause, getattr(error, "retry_after_s", None) or 0)
                if not may_repeat(request, error) or time.monotonic() + pause > end:
                    raise
            time.sleep(pause)
        raise AssertionError

    @contextlib.contextmanager
    def stream(self, request: Request) -> Iterator[Iterator[bytes]]:
        """The body as it comes, on a connection of its own."""
        connection = self._new(request.timeout_s)
        try:
            with self._sent(connection, request) as answer:
                if answer.status >= 400:
                    raise error_of(Response(answer.status,
                                            {k.lower(): v for k, v in answer.getheaders()},
                                            answer.read()))
                yield self._chunks(answer)
        finally:
            self._drop(connection)

    def _chunks(self, answer: http.client.HTTPResponse) -> Iterator[bytes]:
        while True:
            try:
                data = answer.read1(65536)
            except (OSError, http.client.HTTPException) as error:
                raise ConnectionFailed(f"the connection to {self._config.server} ended: "
                                       f"{error or type(error).__name__}") from error
            if not data:
                return
            yield data

    def close(self) -> None:
        """Closes the connections of all threads."""
        with self._lock:
            every, self._all = list(self._all), set()
        for connection in every:
            connection.close()
