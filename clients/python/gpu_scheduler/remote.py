"""Functions whose calls run as jobs."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Callable, Dict, Generic, Iterable, Iterator, List, Optional
from typing import TypeVar

from . import packing
from .errors import JobFailed
from .resources import Job

if TYPE_CHECKING:
    from .client import Client

R = TypeVar("R")

_RESULT_TAIL = 2 * packing.RESULT_BYTES_MAX


class Future(Generic[R]):
    """A call that runs as a job. Its result is read once from the output of the job."""

    def __init__(self, client: "Client", job_id: str):
        self.client = client
        self.job_id = job_id
        self._done = False
        self._result: Optional[R] = None

    def result(self, timeout_s: Optional[float] = None) -> R:
        """What the function returned. Raises RemoteError if it raised an exception, JobFailed if
        the job ended otherwise, and WaitTimeout if it takes longer."""
        if not self._done:
            job = self.client.wait(self.job_id, timeout_s)
            try:
                self._result = packing.result_of(
                    self.client.output(self.job_id, tail=_RESULT_TAIL))
            except LookupError:
                raise JobFailed(job) from None
            self._done = True
        return self._result  # type: ignore[return-value]

    def done(self) -> bool:
        return self._done or self.client.job(self.job_id).is_finished

    def job(self) -> Job:
        return self.client.job(self.job_id)

    def logs(self, *, follow: bool = True) -> Iterator[str]:
        """What the function prints, as it comes."""
        return packing.without_result(self.client.logs(self.job_id, follow=follow))

    def cancel(self) -> None:
        self.client.cancel(self.job_id)

    def __repr__(self) -> str:
        return f"<Future {self.job_id}>"


class RemoteFunction(Generic[R]):
    """A function whose calls run as jobs. `local` is the function itself."""

    def __init__(self, client: "Client", function: Callable[..., R], fields: Dict[str, Any]):
        functools.update_wrapper(self, function)
        self.client = client
        self.local = function
        self._fields = dict(fields)
        self._python = self._fields.pop("python", "python3")
        self._fields.setdefault("name", getattr(function, "__name__", "function"))

    def __call__(self, *arguments: Any, **named: Any) -> R:
        """Runs it as a job, and returns its result. The job is cancelled on Ctrl-C."""
        future = self.submit(*arguments, **named)
        try:
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def options(self, **fields: Any) -> "RemoteFunction[R]":
        """The same function with other fields of its jobs: train.options(gpus=2)(data)."""
        return RemoteFunction(self.client, self.local,
                              {"python": self._python, **self._fields, **fields})

    def submit(self, *arguments: Any, **named: Any) -> "Future[R]":
        """Submits a call, and returns at once."""
        script = packing.pack(self.local, [(arguments, named)], False, self._python)
        return Future(self.client, self.client.submit(script=script, **self._fields))

    def submit_map(self, *columns: Iterable[Any], at_once: Optional[int] = None
                   ) -> "List[Future[R]]":
        """Submits one call for each item, as an array of jobs; `at_once` of them run at a time."""
        calls = [(row, {}) for row in zip(*columns)]
        if not calls:
            return []
        if len(calls) == 1:
            return [self.submit(*calls[0][0])]
        script = packing.pack(self.local, calls, True, self._python)
        array = f"0-{len(calls) - 1}" + (f"%{at_once}" if at_once else "")
        ids = self.client.submit_array(array, script=script, **self._fields)
        return [Future(self.client, id) for id in ids]

    def map(self, *columns: Iterable[Any], at_once: Optional[int] = None,
            timeout_s: Optional[float] = None) -> Iterator[R]:
        """As the built-in map, with a job for each item: the results in the order of the items.
        The first call that fails cancels the others."""
        futures = self.submit_map(*columns, at_once=at_once)

        def results() -> Iterator[R]:
            for at, future in enumerate(futures):
                try:
                    yield future.result(timeout_s)
                except BaseException:
                    for other in futures[at:]:
                        if not other.done():
                            other.cancel()
                    raise
        return results()


def remote_function(client: "Client", function: Callable[..., R],
                    fields: Dict[str, Any]) -> RemoteFunction[R]:
    """What Client.function returns."""
    return RemoteFunction(client, function, fields)
