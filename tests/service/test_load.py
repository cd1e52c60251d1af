"""Ordinary load generators, for a moment: every answer is right, and nothing is lost."""

import json
import re
import shutil
import subprocess

import pytest

BODY = {"name": "load", "gpu_count": 1, "command": ["true"]}


def needs(program):
    return pytest.mark.skipif(not shutil.which(program), reason=f"{program} is not installed")


@pytest.fixture
def body(scheduler):
    tenant = scheduler.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
    return json.dumps(BODY | {"tenant_id": tenant})


def total(scheduler):
    return scheduler.get("/api/v1/jobs?limit=1").json()["total"]


@needs("wrk")
def test_wrk_submits_over_http1(scheduler, body, tmp_path):
    script = tmp_path / "submit.lua"
    script.write_text(
        'wrk.method = "POST"\n'
        f"wrk.body = {json.dumps(body)}\n"
        'wrk.headers["Content-Type"] = "application/json"\n'
        "function done(summary)\n"
        '  io.write(string.format("%d requests %d wrong\\n", summary.requests,\n'
        "    summary.errors.status + summary.errors.read + summary.errors.write\n"
        "    + summary.errors.timeout))\n"
        "end\n"
    )
    done = subprocess.run(
        ["wrk", "-t1", "-c32", "-d2s", "-s", script, f"http://127.0.0.1:{scheduler.port}/api/v1/jobs"],
        capture_output=True, text=True, timeout=60, check=True,
    )
    requests, wrong = map(int, re.search(r"(\d+) requests (\d+) wrong", done.stdout).groups())
    assert wrong == 0, done.stdout
    # What was under way when time was up was still done.
    assert requests <= total(scheduler) <= requests + 32


@needs("h2load")
def test_h2load_submits_over_http2(scheduler, body, tmp_path):
    data = tmp_path / "body.json"
    data.write_text(body)
    done = subprocess.run(
        ["h2load", "-n2000", "-c8", "-m16", "-d", data, "-H", "content-type: application/json",
         f"http://127.0.0.1:{scheduler.port}/api/v1/jobs"],
        capture_output=True, text=True, timeout=60, check=True,
    )
    assert "2000 succeeded, 0 failed, 0 errored, 0 timeout" in done.stdout, done.stdout
    assert "status codes: 2000 2xx" in done.stdout, done.stdout
    assert total(scheduler) == 2000
