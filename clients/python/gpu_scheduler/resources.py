"""What the service answers: dictionaries of its fields (docs/fields.md) with the usual ones as
attributes."""

from __future__ import annotations

import datetime
import re
from typing import Any, Dict, List, Optional, Union

FINAL_STATES = frozenset({"completed", "failed", "cancelled"})

_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:(Mi?B?|Gi?B?|Ti?B?)|)\s*$", re.IGNORECASE)
_MIB = {"": 1, "m": 1, "g": 1024, "t": 1024 * 1024}


def mib(size: Union[int, float, str]) -> int:
    """MiB from a number of MiB, or from a text such as '20G' (GiB, as gpu-cli reads it)."""
    if isinstance(size, (int, float)) and not isinstance(size, bool):
        return int(size)
    found = _SIZE.match(size) if isinstance(size, str) else None
    if not found:
        raise ValueError(f"invalid size {size!r}: expected MiB, or a text such as '20G'")
    return int(float(found[1]) * _MIB[(found[2] or "")[:1].lower()])


def time_of(text: Optional[str]) -> Optional[datetime.datetime]:
    """A time of the service, which is in UTC."""
    if not text:
        return None
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


class Resource(Dict[str, Any]):
    """The fields of one resource, by name."""

    @property
    def id(self) -> str:
        return self["id"]

    @property
    def name(self) -> str:
        return self.get("name", "")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.get('id')} {self.get('name', '')!r}>"


class Job(Resource):
    """A job as it was when the service answered."""

    @property
    def state(self) -> str:
        return self["state"]

    @property
    def message(self) -> str:
        return self.get("message") or ""

    @property
    def exit_code(self) -> Optional[int]:
        return self.get("exit_code")

    @property
    def is_finished(self) -> bool:
        return self.state in FINAL_STATES

    @property
    def succeeded(self) -> bool:
        return self.state == "completed"

    @property
    def node(self) -> Optional[str]:
        return self.get("node_name")

    @property
    def gpus(self) -> List[str]:
        """The UUIDs of the GPUs that it has or had."""
        return self.get("allocated_gpus") or []

    @property
    def submitted_at(self) -> Optional[datetime.datetime]:
        return time_of(self.get("submitted_at"))

    @property
    def started_at(self) -> Optional[datetime.datetime]:
        return time_of(self.get("started_at"))

    @property
    def completed_at(self) -> Optional[datetime.datetime]:
        return time_of(self.get("completed_at"))

    def __repr__(self) -> str:
        return f"<Job {self.get('id')} {self.name!r} {self.get('state')}>"


class Tenant(Resource):
    """A team, with its quota, its limits and what it uses."""


class Model(Resource):
    """A model that can be served."""


class Node(Resource):
    """A machine with an agent."""


class Lease(Resource):
    """A place in a slot of a model, for one request at a time."""

    @property
    def id(self) -> str:
        return self["lease_id"]

    @property
    def address(self) -> str:
        """Where the model's server listens."""
        return self["address"]

    @property
    def key(self) -> Optional[str]:
        """The key that the server asks for, if it asks for one."""
        return self.get("key")
