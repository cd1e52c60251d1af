"""A client of gpu-scheduler: jobs on shared GPUs, arrays, output, models, and functions that run
on a GPU.

    from gpu_scheduler import Client

    client = Client()
    job = client.submit(["python3", "train.py"], gpus=2, name="train")
    for line in client.logs(job):
        print(line)
"""

from .aio import AsyncClient
from .client import Client
from .config import Config
from .errors import (ApiError, BadRequest, ConfigError, Conflict, ConnectionFailed, Error,
                     JobFailed, NotAllowed, NotFound, NotSignedIn, RemoteError, TooManyRequests,
                     Unavailable, WaitTimeout)
from .packing import PackError
from .remote import Future, RemoteFunction
from .resources import Job, Lease, Model, Node, Resource, Tenant, mib

__version__ = "1.0.0"

__all__ = [
    "ApiError", "AsyncClient", "BadRequest", "Client", "Config", "ConfigError", "Conflict",
    "ConnectionFailed", "Error", "Future", "Job", "JobFailed", "Lease", "Model", "Node",
    "NotAllowed", "NotFound", "NotSignedIn", "PackError", "RemoteError", "RemoteFunction",
    "Resource", "Tenant", "TooManyRequests", "Unavailable", "WaitTimeout", "mib",
]
