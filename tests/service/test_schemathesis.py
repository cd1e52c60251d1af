"""A fuzzer that knows nothing of the service but its openapi.json finds nothing: every
request that the description forbids is refused, every answer is as described, nothing is
done for those who have not signed in."""

import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FUZZER = ROOT / "build" / "python" / "bin" / "schemathesis"
SECONDS = os.environ.get("FUZZ_API_SECONDS", "")
SETTINGS = pathlib.Path(__file__).with_name("schemathesis.toml")

pytestmark = pytest.mark.skipif(
    not FUZZER.exists(), reason="schemathesis is not there; scripts/python-tools installs it"
)


def fuzz(service, *arguments):
    done = subprocess.run(
        [FUZZER, "--config-file", SETTINGS, "run", f"http://127.0.0.1:{service.port}/openapi.json",
         "--header", f"Authorization: Bearer {service.token}", "--seed", "1", "--no-color",
         # A WebSocket; see test_stream.py.
         "--exclude-path", "/api/v1/stream", *arguments],
        cwd=service.directory, capture_output=True, text=True, timeout=300,
    )
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    assert " generated" in done.stdout


def furnish(service):
    """Something for ids to name."""
    tenant = service.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
    assert service.post("/api/v1/jobs", {"tenant_id": tenant, "command": ["true"]}).status == 201
    model = {"tenant_id": tenant, "name": "m", "runtime": "custom",
             "command": ["serve"], "gpu_memory_mb": 1000}
    assert service.post("/api/v1/models", model).status == 201


def test_each_boundary_of_each_field(signed_in):
    furnish(signed_in)
    fuzz(signed_in, "--phases", "coverage")
    assert signed_in.get("/health").status == 200


@pytest.mark.skipif(not SECONDS, reason="what it comes to depends on its time: make fuzz-api")
def test_random_requests_in_random_orders(signed_in):
    furnish(signed_in)
    fuzz(signed_in, "--phases", "fuzzing,stateful", "--max-time", SECONDS)
    assert signed_in.get("/health").status == 200
