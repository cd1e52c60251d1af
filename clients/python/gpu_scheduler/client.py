"""The synchronous client."""

from __future__ import annotations

import codecs
import contextlib
import time
from typing import (Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union)

from . import api
from .api import JobId, Steps, T, job_id
from .config import Config, load
from .connection import Connection, pauses
from .errors import Conflict, ConnectionFailed, NotFound, Unavailable
from .messages import Pause, Request, segment
from .remote import RemoteFunction, remote_function
from .resources import Job, Lease, Model, Node, Tenant

_FOLLOW_TIMEOUT_S = 3600.0
_START_POLL_S = 1.0


class Client:
    """A connection to gpu-scheduler. Arguments that are left out come from the environment and
    the context of gpu-cli. Threads may share a client.

    `retry_s`: how long a request is repeated while the service cannot be reached or is not ready;
    what could happen twice is not repeated."""

    def __init__(self, server: Optional[str] = None, *, token: Optional[str] = None,
                 token_file: Optional[str] = None, ca: Optional[str] = None,
                 tenant: Optional[str] = None, context: Optional[str] = None,
                 gateway: Optional[str] = None, retry_s: float = 30.0):
        self.config: Config = load(server, token, token_file, ca, tenant, context)
        self._connection = Connection(self.config, retry_s)
        self._retry_s = retry_s
        self._gateway = gateway

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._connection.close()

    def _run(self, steps: Steps[T]) -> T:
        answer = None
        try:
            while True:
                wish = steps.send(answer)
                if isinstance(wish, Pause):
                    time.sleep(wish.seconds)
                    answer = None
                else:
                    answer = self._connection.send(wish)
        except StopIteration as end:
            return end.value

    def _with_tenant(self, fields: Dict[str, Any]) -> Dict[str, Any]:
        if self.config.tenant and fields.get("tenant") is None and "tenant_id" not in fields:
            fields["tenant"] = self.config.tenant
        return fields

    # Jobs

    def submit(self, command: Optional[Sequence[str]] = None, **fields: Any) -> str:
        """Submits a job, and returns its id once it is on disk.

        Fields: script, name, gpus (below 1: a part of a GPU), gpu_memory (MiB or '20G'; without
        gpus a part of one GPU), cpus, memory, tenant, depends_on, and every field of the REST
        interface, such as environment, image, priority, tasks, max_runtime_minutes."""
        body = api.job_request(command, **self._with_tenant(fields))
        return self._run(api.submit(body))[0]

    def submit_array(self, array: str, command: Optional[Sequence[str]] = None,
                     **fields: Any) -> List[str]:
        """Submits an array such as '0-99%8', and returns the ids of its elements."""
        body = api.job_request(command, array=array, **self._with_tenant(fields))
        return self._run(api.submit(body))

    def submit_many(self, jobs: Iterable[Mapping[str, Any]], *, all_or_none: bool = False
                    ) -> List[Any]:
        """Submits many jobs in one request: dictionaries with the arguments of submit. Returns
        for each its id, or the ApiError that refused it."""
        bodies = [api.job_request(**self._with_tenant(dict(one))) for one in jobs]
        return self._run(api.submit_many(bodies, all_or_none))

    def job(self, id: JobId) -> Job:
        """A job as it is now."""
        return self._run(api.job(job_id(id)))

    def jobs(self, **filters: Any) -> List[Job]:
        """All jobs that match: state, tenant_id, name (a prefix), label, limit, ..."""
        return self._run(api.jobs(self._filter(filters)))

    def _filter(self, filters: Dict[str, Any]) -> Dict[str, Any]:
        if "tenant" in filters:
            filters["tenant_id"] = filters.pop("tenant")
        return filters

    def wait(self, job: JobId, timeout_s: Optional[float] = None, *, check: bool = False) -> Job:
        """Waits for the end of a job. With `check`, raises JobFailed if it did not succeed."""
        return self._run(api.wait(job_id(job), timeout_s, check))

    def wait_all(self, jobs: Iterable[JobId], timeout_s: Optional[float] = None, *,
                 check: bool = False) -> List[Job]:
        """Waits for the ends of all."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        return [self.wait(one, None if end is None else max(0.0, end - time.monotonic()),
                          check=check) for one in jobs]

    def run(self, command: Optional[Sequence[str]] = None, **fields: Any) -> str:
        """Runs a job to its end and returns its output. Raises JobFailed if it failed. An
        interruption (Ctrl-C) cancels the job."""
        id = self.submit(command, **fields)
        try:
            self.wait(id, check=True)
        except (KeyboardInterrupt, SystemExit):
            self.cancel(id)
            raise
        return self.output(id)

    def cancel(self, job: JobId) -> None:
        """Cancels a job that has not ended."""
        self._run(api.call("DELETE", f"/api/v1/jobs/{segment(job_id(job))}", {}, None))

    def hold(self, job: JobId) -> None:
        """Keeps a waiting job from starting."""
        self._act(job, "hold")

    def release(self, job: JobId) -> None:
        """Lets a job on hold start."""
        self._act(job, "release")

    def suspend(self, job: JobId) -> None:
        """Moves a running job's GPU memory to host memory, until it is resumed."""
        self._act(job, "suspend")

    def resume(self, job: JobId) -> None:
        """Lets a job resume that was suspended by suspend()."""
        self._act(job, "resume")

    def requeue(self, job: JobId) -> None:
        """Stops a running job and queues it again."""
        self._act(job, "requeue")

    def _act(self, job: JobId, verb: str) -> None:
        self._run(api.post(f"/api/v1/jobs/{segment(job_id(job))}/{verb}"))

    def why(self, job: JobId) -> Dict[str, Any]:
        """Why a job waits, or where it went and why: sentences and figures."""
        return self.get(f"/api/v1/jobs/{segment(job_id(job))}/why")

    def events(self, job: JobId) -> List[Dict[str, Any]]:
        """The history of a job."""
        return self.get(f"/api/v1/jobs/{segment(job_id(job))}/events")["events"]

    # Output

    def output(self, job: JobId, *, task: Optional[int] = None, tail: Optional[int] = None,
               run: Any = None) -> str:
        """The output of a job so far, or the last `tail` bytes of it."""
        request = api.logs_request(job_id(job), follow=False, task=task, tail=tail, run=run,
                                   offset=None, timeout_s=120)
        return self._connection.send(request).body.decode(errors="replace")

    def logs_bytes(self, job: JobId, *, follow: bool = True, task: Optional[int] = None,
                   run: Any = None) -> Iterator[bytes]:
        """The output as it comes. Goes on where it was after a restart of the service."""
        id, seen = job_id(job), 0
        wait = pauses()
        while True:
            request = api.logs_request(id, follow=follow, task=task, tail=None, run=run,
                                       offset=seen or None, timeout_s=_FOLLOW_TIMEOUT_S)
            try:
                with self._connection.stream(request) as chunks:
                    for data in chunks:
                        seen += len(data)
                        wait = pauses()
                        yield data
                return
            except (Conflict, NotFound) as error:  # the task has not started, or only just
                if not follow:
                    raise
                if self.job(id).is_finished:
                    if isinstance(error, NotFound):
                        raise
                    return
                pause = min(next(wait), _START_POLL_S)
            except (ConnectionFailed, Unavailable):
                pause = next(wait)
                if not follow or pause >= self._retry_s:
                    raise
                time.sleep(pause)

    def logs(self, job: JobId, *, follow: bool = True, task: Optional[int] = None,
             run: Any = None) -> Iterator[str]:
        """The lines of the output, as they come."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        rest = ""
        for data in self.logs_bytes(job, follow=follow, task=task, run=run):
            *lines, rest = (rest + decoder.decode(data)).split("\n")
            yield from lines
        rest += decoder.decode(b"", True)
        if rest:
            yield rest

    # Functions

    def function(self, function=None, **fields: Any):
        """A decorator: calls of the function run as jobs, on the GPUs that are asked for.

        @client.function(gpus=1)
        def train(rate): ..."""
        if function is not None:
            return remote_function(self, function, fields)
        return lambda wrapped: remote_function(self, wrapped, fields)

    # Models

    def models(self) -> List[Model]:
        return self._run(api.listing(Model, "/api/v1/models", "models", {}))

    def model(self, name: str) -> Model:
        return self._run(api.get(Model, f"/api/v1/models/{segment(name)}"))

    def acquire(self, model: str, *, wait_s: float = 600, lease_s: Optional[float] = None
                ) -> Lease:
        """Takes a place in a slot of the model, which is loaded first if need be. To be given
        back with give_back(); otherwise it expires."""
        return self._run(api.lease(model, wait_s, lease_s))

    def renew(self, lease: Lease, lease_s: Optional[float] = None) -> Lease:
        """Keeps a lease for longer."""
        return Lease(self._run(api.call(
            "POST", f"/api/v1/leases/{segment(lease.id)}/renew",
            {"lease": None if lease_s is None else f"{lease_s:g}s"}, {})))

    def give_back(self, lease: Lease, *, failed: bool = False) -> None:
        """Gives a place back. `failed`: the model's server did not answer."""
        self._run(api.give_back(lease.id, failed))

    @contextlib.contextmanager
    def lease(self, model: str, *, wait_s: float = 600, lease_s: Optional[float] = None
              ) -> Iterator[Lease]:
        """A place in a slot of the model for the time of a with statement."""
        lease = self.acquire(model, wait_s=wait_s, lease_s=lease_s)
        try:
            yield lease
        finally:
            self.give_back(lease)

    @contextlib.contextmanager
    def _model_server(self, model: str, wait_s: float) -> Iterator[Connection]:
        """A connection to what answers for a model: the gateway, or the slot of a lease."""
        with contextlib.ExitStack() as stack:
            if self._gateway:
                config = Config(self._gateway.rstrip("/"), self.config.token, self.config.ca)
            else:
                lease = stack.enter_context(self.lease(model, wait_s=wait_s))
                config = Config(lease.address.rstrip("/"), lease.key, self.config.ca)
            connection = Connection(config, 0)
            stack.callback(connection.close)
            yield connection

    def chat(self, model: str, messages: Union[str, Sequence[Mapping[str, Any]]], *,
             wait_s: float = 600, **options: Any) -> str:
        """The answer of a model to a conversation, or to one message. Options are those of the
        chat interface, such as max_tokens and temperature."""
        body = api.chat_body(model, messages, options)
        with self._model_server(model, wait_s) as server:
            answer = server.send(Request("POST", "/v1/chat/completions", body=body,
                                         timeout_s=wait_s)).json()
        return answer["choices"][0]["message"].get("content") or ""

    def chat_stream(self, model: str, messages: Union[str, Sequence[Mapping[str, Any]]], *,
                    wait_s: float = 600, **options: Any) -> Iterator[str]:
        """As chat, piece by piece as the model writes."""
        body = api.chat_body(model, messages, {**options, "stream": True})
        with self._model_server(model, wait_s) as server:
            request = Request("POST", "/v1/chat/completions", body=body, timeout_s=wait_s,
                              headers={"Accept": "text/event-stream"})
            with server.stream(request) as chunks:
                for event in api.event_data(_lines(chunks)):
                    for choice in event.get("choices", []):
                        piece = choice.get("delta", {}).get("content")
                        if piece:
                            yield piece

    # The cluster

    def tenants(self) -> List[Tenant]:
        return self._run(api.listing(Tenant, "/api/v1/tenants", "tenants", {}))

    def nodes(self) -> List[Node]:
        return self._run(api.listing(Node, "/api/v1/nodes", "nodes", {}))

    def gpus(self) -> List[Dict[str, Any]]:
        return self._run(api.listing(dict, "/api/v1/gpus", "gpus", {}))

    def status(self) -> Dict[str, Any]:
        """Figures of the whole cluster."""
        return self.get("/api/v1/cluster/status")

    # Anything else

    def get(self, path: str, **query: Any) -> Any:
        """The answer of any route of REST."""
        return self._run(api.call("GET", path, query, None))

    def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """As get, with any method and a body."""
        return self._run(api.call(method.upper(), path, query, body))


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    rest = b""
    for data in chunks:
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r").decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


__all__ = ["Client", "RemoteFunction"]
