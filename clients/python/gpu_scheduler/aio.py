"""The asynchronous client. Its methods are those of Client."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
from typing import (Any, AsyncIterator, Dict, Iterable, List, Mapping, Optional, Sequence, Union)

from . import api
from .aio_connection import AsyncConnection
from .api import JobId, Steps, T, job_id
from .config import Config, load
from .connection import pauses
from .errors import Conflict, ConnectionFailed, NotFound, Unavailable
from .messages import Pause, Request, segment
from .resources import Job, Lease, Model, Node, Tenant

_FOLLOW_TIMEOUT_S = 3600.0
_START_POLL_S = 1.0


class AsyncClient:
    """As Client, for asyncio. Functions on GPUs (Client.function) are for the other one."""

    def __init__(self, server: Optional[str] = None, *, token: Optional[str] = None,
                 token_file: Optional[str] = None, ca: Optional[str] = None,
                 tenant: Optional[str] = None, context: Optional[str] = None,
                 gateway: Optional[str] = None, retry_s: float = 30.0):
        self.config: Config = load(server, token, token_file, ca, tenant, context)
        self._connection = AsyncConnection(self.config, retry_s)
        self._retry_s = retry_s
        self._gateway = gateway

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._connection.close()

    async def _run(self, steps: Steps[T]) -> T:
        answer = None
        try:
            while True:
                wish = steps.send(answer)
                if isinstance(wish, Pause):
                    await asyncio.sleep(wish.seconds)
                    answer = None
                else:
                    answer = await self._connection.send(wish)
        except StopIteration as end:
            return end.value

    def _with_tenant(self, fields: Dict[str, Any]) -> Dict[str, Any]:
        if self.config.tenant and fields.get("tenant") is None and "tenant_id" not in fields:
            fields["tenant"] = self.config.tenant
        return fields

    # Jobs

    async def submit(self, command: Optional[Sequence[str]] = None, **fields: Any) -> str:
        body = api.job_request(command, **self._with_tenant(fields))
        return (await self._run(api.submit(body)))[0]

    async def submit_array(self, array: str, command: Optional[Sequence[str]] = None,
                           **fields: Any) -> List[str]:
        body = api.job_request(command, array=array, **self._with_tenant(fields))
        return await self._run(api.submit(body))

    async def submit_many(self, jobs: Iterable[Mapping[str, Any]], *, all_or_none: bool = False
                          ) -> List[Any]:
        bodies = [api.job_request(**self._with_tenant(dict(one))) for one in jobs]
        return await self._run(api.submit_many(bodies, all_or_none))

    async def job(self, id: JobId) -> Job:
        return await self._run(api.job(job_id(id)))

    async def jobs(self, **filters: Any) -> List[Job]:
        if "tenant" in filters:
            filters["tenant_id"] = filters.pop("tenant")
        return await self._run(api.jobs(filters))

    async def wait(self, job: JobId, timeout_s: Optional[float] = None, *,
                   check: bool = False) -> Job:
        return await self._run(api.wait(job_id(job), timeout_s, check))

    async def wait_all(self, jobs: Iterable[JobId], timeout_s: Optional[float] = None, *,
                       check: bool = False) -> List[Job]:
        return list(await asyncio.gather(
            *(self.wait(one, timeout_s, check=check) for one in jobs)))

    async def run(self, command: Optional[Sequence[str]] = None, **fields: Any) -> str:
        id = await self.submit(command, **fields)
        try:
            await self.wait(id, check=True)
        except asyncio.CancelledError:
            await self.cancel(id)
            raise
        return await self.output(id)

    async def cancel(self, job: JobId) -> None:
        await self._run(api.call("DELETE", f"/api/v1/jobs/{segment(job_id(job))}", {}, None))

    async def hold(self, job: JobId) -> None:
        await self._act(job, "hold")

    async def release(self, job: JobId) -> None:
        await self._act(job, "release")

    async def suspend(self, job: JobId) -> None:
        await self._act(job, "suspend")

    async def resume(self, job: JobId) -> None:
        await self._act(job, "resume")

    async def requeue(self, job: JobId) -> None:
        await self._act(job, "requeue")

    async def _act(self, job: JobId, verb: str) -> None:
        await self._run(api.post(f"/api/v1/jobs/{segment(job_id(job))}/{verb}"))

    async def why(self, job: JobId) -> Dict[str, Any]:
        return await self.get(f"/api/v1/jobs/{segment(job_id(job))}/why")

    async def events(self, job: JobId) -> List[Dict[str, Any]]:
        return (await self.get(f"/api/v1/jobs/{segment(job_id(job))}/events"))["events"]

    # Output

    async def output(self, job: JobId, *, task: Optional[int] = None, tail: Optional[int] = None,
                     run: Any = None) -> str:
        request = api.logs_request(job_id(job), follow=False, task=task, tail=tail, run=run,
                                   offset=None, timeout_s=120)
        return (await self._connection.send(request)).body.decode(errors="replace")

    async def logs_bytes(self, job: JobId, *, follow: bool = True, task: Optional[int] = None,
                         run: Any = None) -> AsyncIterator[bytes]:
        id, seen = job_id(job), 0
        wait = pauses()
        while True:
            request = api.logs_request(id, follow=follow, task=task, tail=None, run=run,
                                       offset=seen or None, timeout_s=_FOLLOW_TIMEOUT_S)
            try:
                async with self._connection.stream(request) as chunks:
                    async for data in chunks:
                        seen += len(data)
                        wait = pauses()
                        yield data
                return
            except (Conflict, NotFound) as error:  # the task has not started, or only just
                if not follow:
                    raise
                if (await self.job(id)).is_finished:
                    if isinstance(error, NotFound):
                        raise
                    return
                pause = min(next(wait), _START_POLL_S)
            except (ConnectionFailed, Unavailable):
                pause = next(wait)
                if not follow or pause >= self._retry_s:
                    raise
                await asyncio.sleep(pause)

    async def logs(self, job: JobId, *, follow: bool = True, task: Optional[int] = None,
                   run: Any = None) -> AsyncIterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        rest = ""
        async for data in self.logs_bytes(job, follow=follow, task=task, run=run):
            *lines, rest = (rest + decoder.decode(data)).split("\n")
            for line in lines:
                yield line
        rest += decoder.decode(b"", True)
        if rest:
            yield rest

    # Models

    async def models(self) -> List[Model]:
        return await self._run(api.listing(Model, "/api/v1/models", "models", {}))

    async def model(self, name: str) -> Model:
        return await self._run(api.get(Model, f"/api/v1/models/{segment(name)}"))

    async def acquire(self, model: str, *, wait_s: float = 600, lease_s: Optional[float] = None
                      ) -> Lease:
        return await self._run(api.lease(model, wait_s, lease_s))

    async def renew(self, lease: Lease, lease_s: Optional[float] = None) -> Lease:
        return Lease(await self._run(api.call(
            "POST", f"/api/v1/leases/{segment(lease.id)}/renew",
            {"lease": None if lease_s is None else f"{lease_s:g}s"}, {})))

    async def give_back(self, lease: Lease, *, failed: bool = False) -> None:
        await self._run(api.give_back(lease.id, failed))

    @contextlib.asynccontextmanager
    async def lease(self, model: str, *, wait_s: float = 600, lease_s: Optional[float] = None
                    ) -> AsyncIterator[Lease]:
        lease = await self.acquire(model, wait_s=wait_s, lease_s=lease_s)
        try:
            yield lease
        finally:
            await self.give_back(lease)

    @contextlib.asynccontextmanager
    async def _model_server(self, model: str, wait_s: float) -> AsyncIterator[AsyncConnection]:
        async with contextlib.AsyncExitStack() as stack:
            if self._gateway:
                config = Config(self._gateway.rstrip("/"), self.config.token, self.config.ca)
            else:
                lease = await stack.enter_async_context(self.lease(model, wait_s=wait_s))
                config = Config(lease.address.rstrip("/"), lease.key, self.config.ca)
            connection = AsyncConnection(config, 0)
            stack.push_async_callback(connection.close)
            yield connection

    async def chat(self, model: str, messages: Union[str, Sequence[Mapping[str, Any]]], *,
                   wait_s: float = 600, **options: Any) -> str:
        body = api.chat_body(model, messages, options)
        async with self._model_server(model, wait_s) as server:
            answer = (await server.send(Request("POST", "/v1/chat/completions", body=body,
                                                timeout_s=wait_s))).json()
        return answer["choices"][0]["message"].get("content") or ""

    async def chat_stream(self, model: str, messages: Union[str, Sequence[Mapping[str, Any]]], *,
                          wait_s: float = 600, **options: Any) -> AsyncIterator[str]:
        body = api.chat_body(model, messages, {**options, "stream": True})
        async with self._model_server(model, wait_s) as server:
            request = Request("POST", "/v1/chat/completions", body=body, timeout_s=wait_s,
                              headers={"Accept": "text/event-stream"})
            async with server.stream(request) as chunks:
                rest = b""
                async for data in chunks:
                    *lines, rest = (rest + data).split(b"\n")
                    for event in api.event_data(
                            line.rstrip(b"\r").decode(errors="replace") for line in lines):
                        for choice in event.get("choices", []):
                            piece = choice.get("delta", {}).get("content")
                            if piece:
                                yield piece

    # The cluster

    async def tenants(self) -> List[Tenant]:
        return await self._run(api.listing(Tenant, "/api/v1/tenants", "tenants", {}))

    async def nodes(self) -> List[Node]:
        return await self._run(api.listing(Node, "/api/v1/nodes", "nodes", {}))

    async def gpus(self) -> List[Dict[str, Any]]:
        return await self._run(api.listing(dict, "/api/v1/gpus", "gpus", {}))

    async def status(self) -> Dict[str, Any]:
        return await self.get("/api/v1/cluster/status")

    # Anything else

    async def get(self, path: str, **query: Any) -> Any:
        return await self._run(api.call("GET", path, query, None))

    async def request(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        return await self._run(api.call(method.upper(), path, query, body))


__all__ = ["AsyncClient"]
