"""What can be asked of the service, as steps without a connection: a generator yields requests
and pauses, receives answers, and returns the result. The clients run them, one with blocking
calls, one with asyncio."""

from __future__ import annotations

import json
import time
import uuid
from typing import (Any, Dict, Generator, Iterable, List, Mapping, Optional, Sequence, TypeVar,
                    Union)

from .errors import ApiError, JobFailed, WaitTimeout
from .messages import Pause, Request, Response, error_of, segment
from .resources import Job, Lease, mib

T = TypeVar("T")
Steps = Generator[Union[Request, Pause], Optional[Response], T]

# A service that writes much to disk may take this long with a large array.
_SUBMIT_TIMEOUT_S = 120.0
_FIRST_POLL_S = 0.05
_LONGEST_POLL_S = 2.0
_PAGE = 1000
_LEASE_WAIT_S = 25

JobId = Union[str, Job]


def job_id(job: JobId) -> str:
    return job if isinstance(job, str) else job.id


def job_request(command: Union[Sequence[str], None] = None, *, script: Optional[str] = None,
                gpus: Union[int, float, None] = None,
                gpu_memory: Union[int, str, Sequence[Union[int, str]], None] = None,
                cpus: Optional[float] = None, memory: Union[int, str, None] = None,
                tenant: Optional[str] = None,
                depends_on: Optional[Iterable[Union[JobId, Mapping[str, Any]]]] = None,
                **fields: Any) -> Dict[str, Any]:
    """The body of a submission. `gpus` below 1 is a part of a GPU; sizes are MiB or texts such as
    '20G'; other fields are those of the service (docs/fields.md)."""
    if isinstance(command, (str, bytes)):
        raise TypeError("command must be a list of words, such as ['python3', 'train.py']; "
                        "for a line of shell use script='#!/bin/sh\\n...'")
    body: Dict[str, Any] = dict(fields)
    if command is not None:
        body["command"] = [str(word) for word in command]
    if script is not None:
        body["script"] = script
    if gpus is not None:
        if 0 < gpus < 1:
            body["gpu_fraction"] = gpus
        elif gpus != int(gpus):
            raise ValueError(f"invalid gpus {gpus}: expected a whole number, or a part below 1")
        else:
            body["gpu_count"] = int(gpus)
    if gpu_memory is not None:
        is_list = not isinstance(gpu_memory, (int, float, str))
        body["gpu_memory_mb"] = [mib(size) for size in gpu_memory] if is_list else mib(gpu_memory)
    if cpus is not None:
        body["cpu_cores"] = cpus
    if memory is not None:
        body["memory_mb"] = mib(memory)
    if tenant is not None:
        body["tenant_id"] = tenant
    if depends_on is not None:
        body["depends_on"] = [dict(one) if isinstance(one, Mapping) and not isinstance(one, Job)
                              else job_id(one) for one in depends_on]
    return body


def submit(body: Mapping[str, Any]) -> Steps[List[str]]:
    """The ids of the new job, or of all elements of an array. Sent again after a lost answer, it
    does not create a second one."""
    key = body.get("idempotency_key") or f"python-{uuid.uuid4()}"
    answer = yield Request("POST", "/api/v1/jobs", body=dict(body), repeat=True,
                           headers={"Idempotency-Key": key}, timeout_s=_SUBMIT_TIMEOUT_S)
    said = answer.json()
    first = said["job_id"]
    if "array" not in body or int(said.get("count") or 1) <= 1:
        return [first]
    prefix, _, number = first.rpartition("-")
    return [f"{prefix}-{int(number) + i}" for i in range(int(said["count"]))]


def submit_many(bodies: Sequence[Mapping[str, Any]], all_or_none: bool) -> Steps[List[Any]]:
    """For each its id, or the ApiError that refused it."""
    if not bodies:
        return []
    request = Request("POST", "/api/v1/jobs", {"mode": "all" if all_or_none else None},
                      body=[dict(body) for body in bodies], repeat=True,
                      headers={"Idempotency-Key": f"python-{uuid.uuid4()}"},
                      timeout_s=_SUBMIT_TIMEOUT_S, accepts=frozenset({400, 403, 404, 409, 422}))
    answer = yield request
    said = answer.json()
    if "jobs" not in said:
        raise error_of(answer)
    results: List[Any] = []
    for one in said["jobs"]:
        if one.get("job_id"):
            results.append(one["job_id"])
        else:
            reason = one.get("error") or said.get("error") or one["status"]
            results.append(ApiError(answer.status, reason, one.get("code", "")))
    return results


def get(kind: type, path: str) -> Steps[Any]:
    answer = yield Request("GET", path)
    return kind(answer.json())


def job(id: str) -> Steps[Job]:
    return (yield from get(Job, f"/api/v1/jobs/{segment(id)}"))


def jobs(filters: Mapping[str, Any]) -> Steps[List[Job]]:
    """All that match, page by page."""
    found: List[Job] = []
    query = dict(filters)
    limit = query.pop("limit", None)
    while True:
        left = _PAGE if limit is None else min(_PAGE, limit - len(found))
        answer = yield Request("GET", "/api/v1/jobs", {**query, "limit": left})
        page = answer.json()
        found.extend(Job(one) for one in page["jobs"])
        after = page.get("next_after")
        if not after or not page["jobs"] or (limit is not None and len(found) >= limit):
            return found
        query["after"] = after


def wait(id: str, timeout_s: Optional[float], check: bool) -> Steps[Job]:
    """The finished job. With `check`, JobFailed if it did not succeed."""
    end = None if timeout_s is None else time.monotonic() + timeout_s
    pause, tag, latest = _FIRST_POLL_S, None, None
    while True:
        answer = yield Request("GET", f"/api/v1/jobs/{segment(id)}",
                               headers={"If-None-Match": tag} if tag else {})
        if answer.status != 304:
            latest, tag = Job(answer.json()), answer.headers.get("etag")
        assert latest is not None
        if latest.is_finished:
            if check and not latest.succeeded:
                raise JobFailed(latest)
            return latest
        if end is not None and time.monotonic() + pause > end:
            raise WaitTimeout(f"{id} is still {latest.state} after {timeout_s:g} s")
        yield Pause(pause)
        pause = min(1.5 * pause, _LONGEST_POLL_S)


def post(path: str, body: Any = None) -> Steps[Any]:
    answer = yield Request("POST", path, body={} if body is None else body)
    return answer.json()


def call(method: str, path: str, query: Mapping[str, Any], body: Any) -> Steps[Any]:
    answer = yield Request(method, path, query, body)
    return answer.json()


def listing(kind: type, path: str, member: str, query: Mapping[str, Any]) -> Steps[List[Any]]:
    answer = yield Request("GET", path, query)
    said = answer.json()
    rows = said.get(member, []) if isinstance(said, dict) else said
    return [kind(row) for row in rows]


def lease(model: str, wait_s: float, lease_s: Optional[float]) -> Steps[Lease]:
    """A place in a slot; waits while the model loads."""
    end = time.monotonic() + wait_s
    while True:
        left = max(0.0, end - time.monotonic())
        part = min(left, _LEASE_WAIT_S)
        query = {"wait": f"{part:.3f}s" if part > 0 else None,
                 "lease": None if lease_s is None else f"{lease_s:g}s"}
        try:
            answer = yield Request("POST", f"/api/v1/models/{segment(model)}/leases", query,
                                   body={}, timeout_s=part + 30)
            return Lease(answer.json())
        except ApiError as error:
            if error.status != 503 or time.monotonic() >= end:
                raise
        yield Pause(0.1)


def give_back(id: str, failed: bool) -> Steps[None]:
    yield Request("DELETE", f"/api/v1/leases/{segment(id)}", {"failed": failed or None})


def logs_request(id: str, *, follow: bool, task: Optional[int], tail: Optional[int], run: Any,
                 offset: Optional[int], timeout_s: float) -> Request:
    return Request("GET", f"/api/v1/jobs/{segment(id)}/logs",
                   {"follow": follow or None, "task": task, "tail": tail, "run": run,
                    "offset": offset}, timeout_s=timeout_s)


def chat_body(model: str, messages: Union[str, Sequence[Mapping[str, Any]]],
              options: Mapping[str, Any]) -> Dict[str, Any]:
    """The body of a chat; a text is one message of the user."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    return {"model": model, "messages": [dict(one) for one in messages], **options}


def event_data(lines: Iterable[str]) -> Generator[Dict[str, Any], None, None]:
    """The objects of a stream of server-sent events."""
    for line in lines:
        if line.startswith("data:"):
            text = line[5:].strip()
            if text == "[DONE]":
                return
            yield json.loads(text)

