"""Errors of the client. Each carries the sentence of the service."""

from __future__ import annotations

from typing import Optional


class Error(Exception):
    """The base class of all errors of this package."""


class ConfigError(Error):
    """The address, the token or the configuration file cannot be used."""


class ConnectionFailed(Error):
    """The service cannot be reached, or the connection ended too early."""


class ApiError(Error):
    """The service refused a request."""

    def __init__(self, status: int, message: str, code: str = "", request_id: str = "",
                 retry_after_s: Optional[float] = None):
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.request_id = request_id
        self.retry_after_s = retry_after_s


class BadRequest(ApiError):
    """400, 413 or 422: the request is malformed, too large or impossible."""


class NotSignedIn(ApiError):
    """401: the token is missing, wrong or expired."""


class NotAllowed(ApiError):
    """403: the caller may not do this, or the tenant's limit can never allow it."""


class NotFound(ApiError):
    """404: it does not exist, or the caller may not see it."""


class Conflict(ApiError):
    """409: the state of the resource does not permit this."""


class TooManyRequests(ApiError):
    """429: a rate limit or a budget."""


class Unavailable(ApiError):
    """503: the queue is full, the store cannot commit, or another scheduler leads."""


class JobFailed(Error):
    """A job ended in another way than success."""

    def __init__(self, job):
        reason = job.message or job.state
        super().__init__(f"{job.id} {job.state}: {reason}" if reason != job.state
                         else f"{job.id} {job.state}")
        self.job = job


class WaitTimeout(Error, TimeoutError):
    """A job or a model was not ready in time."""


class RemoteError(Error):
    """A function raised an exception on the node. `remote_traceback` is its traceback there; the
    exception itself is the cause, if it could be sent."""

    def __init__(self, message: str, remote_traceback: str):
        super().__init__(message)
        self.remote_traceback = remote_traceback

    def __str__(self) -> str:
        return f"{self.args[0]}\n\n{self.remote_traceback}"


_BY_STATUS = {400: BadRequest, 401: NotSignedIn, 403: NotAllowed, 404: NotFound, 409: Conflict,
              413: BadRequest, 422: BadRequest, 429: TooManyRequests, 503: Unavailable}


def api_error(status: int, message: str, code: str = "", request_id: str = "",
              retry_after_s: Optional[float] = None) -> ApiError:
    """The error for a status of HTTP."""
    kind = _BY_STATUS.get(status, ApiError)
    return kind(status, message, code, request_id, retry_after_s)
