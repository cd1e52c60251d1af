"""A real Prometheus reads the metrics, and promtool finds nothing to say about them."""

import json
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest

pytestmark = pytest.mark.skipif(
    not shutil.which("prometheus") or not shutil.which("promtool"),
    reason="Prometheus is not installed",
)


def submit(scheduler):
    tenant = scheduler.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
    job = {"tenant_id": tenant, "name": "train", "gpu_count": 1, "command": ["true"]}
    assert scheduler.post("/api/v1/jobs", job).status == 201


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return server.getsockname()[1]


@pytest.fixture
def prometheus(tmp_path):
    """Starts one that scrapes a target each second; gives a function that queries it."""
    started = []

    def start(target):
        port = free_port()
        config = tmp_path / "prometheus.yml"
        config.write_text(
            "scrape_configs:\n- job_name: gpu-scheduler\n  scrape_interval: 1s\n"
            f"  static_configs:\n  - targets: ['{target}']\n"
        )
        subprocess.run(["promtool", "check", "config", config], check=True, capture_output=True)
        started.append(
            subprocess.Popen(
                ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'db'}",
                 f"--web.listen-address=127.0.0.1:{port}"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        )

        def query(expression):
            address = f"http://127.0.0.1:{port}/api/v1/query?query={expression}"
            with urllib.request.urlopen(address, timeout=60) as answer:
                return json.load(answer)["data"]["result"]

        return query

    yield start
    for one in started:
        one.terminate()
        one.wait(60)


def test_promtool_accepts_the_metrics(scheduler):
    submit(scheduler)
    text = scheduler.get("/metrics").body
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert checked.stdout + checked.stderr == b""


def test_prometheus_reads_what_waits(scheduler, prometheus):
    submit(scheduler)
    query = prometheus(f"127.0.0.1:{scheduler.port}")
    for _ in range(150):
        try:
            result = query("gpu_scheduler_queue_size")
        except OSError:
            result = []
        if result:
            break
        time.sleep(0.2)
    assert [row["value"][1] for row in result] == ["1"]
    assert query("up")[0]["value"][1] == "1"
