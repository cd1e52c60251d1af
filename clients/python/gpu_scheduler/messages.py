"""Requests and answers of HTTP as values, without any connection."""

from __future__ import annotations

import dataclasses
import json
import urllib.parse
from typing import Any, Dict, FrozenSet, Mapping, Optional

from .errors import ConnectionFailed, api_error

# What a request may repeat by itself after a connection that failed.
_REPEATABLE = frozenset({"GET", "PUT", "DELETE"})


@dataclasses.dataclass(frozen=True)
class Request:
    """One request. `body` is sent as JSON. `repeat`: it may be sent again after a failure
    (None: as its method says)."""

    method: str
    path: str
    query: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)
    timeout_s: float = 60.0
    repeat: Optional[bool] = None
    accepts: FrozenSet[int] = frozenset()  # statuses from 400 that are answers too

    @property
    def repeatable(self) -> bool:
        return self.method in _REPEATABLE if self.repeat is None else self.repeat

    @property
    def target(self) -> str:
        """The path with its query."""
        pairs = []
        for key, value in self.query.items():
            if value is None:
                continue
            if isinstance(value, bool):
                value = "true" if value else "false"
            pairs.append((key, str(value)))
        return self.path + ("?" + urllib.parse.urlencode(pairs) if pairs else "")

    def payload(self) -> Optional[bytes]:
        if self.body is None:
            return None
        return json.dumps(self.body, separators=(",", ":")).encode()


@dataclasses.dataclass(frozen=True)
class Pause:
    """A wish to wait, in seconds."""

    seconds: float


@dataclasses.dataclass(frozen=True)
class Response:
    """One answer. Header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        try:
            return json.loads(self.body) if self.body else {}
        except ValueError:
            raise ConnectionFailed("the answer is not JSON: is this the address of the service?") from None


def segment(text: Any) -> str:
    """A part of a path."""
    return urllib.parse.quote(str(text), safe="")


def error_of(response: Response):
    """The error that an answer of 400 or more describes."""
    message, code = f"HTTP status {response.status}", ""
    try:
        said: Dict[str, Any] = json.loads(response.body)
        fault = said.get("error", message)
        if isinstance(fault, dict):  # as OpenAI's interface says it
            code, message = str(fault.get("code") or ""), str(fault.get("message", message))
        else:
            message, code = str(fault), str(said.get("code", ""))
    except (ValueError, AttributeError):
        pass
    retry = response.headers.get("retry-after")
    try:
        retry_s = float(retry) if retry else None
    except ValueError:
        retry_s = None
    return api_error(response.status, message, code, response.headers.get("x-request-id", ""),
                     retry_s)
