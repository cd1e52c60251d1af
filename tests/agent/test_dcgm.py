"""What a dcgm-exporter tells: here a page that the test serves."""

import http.server
import threading

import pytest

UUID = "GPU-57000000-0000-0000-0000-000000000000"
LABELS = f'gpu="0",UUID="{UUID}",device="nvidia0",modelName="Stand-in"'


@pytest.fixture
def exporter():
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = self.server.page.encode()
            self.send_response(200 if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.page = (
        "# HELP DCGM_FI_PROF_SM_ACTIVE The ratio of cycles.\n"
        "# TYPE DCGM_FI_PROF_SM_ACTIVE gauge\n"
        f"DCGM_FI_PROF_SM_ACTIVE{{{LABELS}}} 0.625\n"
        f"DCGM_FI_PROF_DRAM_ACTIVE{{{LABELS}}} 0.25\n"
        f"DCGM_FI_DEV_XID_ERRORS{{{LABELS}}} 0\n"
    )
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()


def test_profiling_counters_and_health_come_from_the_exporter(cluster, exporter, tmp_path):
    nvml = tmp_path / "nvml"
    nvml.write_text(f"gpu {UUID} 16384 100000 50\n")
    url = f"http://127.0.0.1:{exporter.server_port}/metrics"
    cluster.agent(gpus=None, nvml=nvml, arguments=["--dcgm-exporter", url])

    def gpu():
        return cluster.scheduler.get("/api/v1/gpus").json()["gpus"][0]

    cluster.wait(lambda: gpu().get("sm_active") == 0.625)
    assert gpu()["dram_active"] == 0.25 and gpu()["healthy"] and "health_reason" not in gpu()
    metrics = cluster.scheduler.get("/metrics").body.decode()
    line = next(l for l in metrics.splitlines() if l.startswith("gpu_scheduler_gpu_sm_active{"))
    assert UUID in line and line.endswith(" 0.625")

    exporter.page += f'DCGM_EXP_GPU_HEALTH_STATUS{{{LABELS},health_watch="MEM"}} 20\n'
    cluster.wait(lambda: not gpu()["healthy"])
    cluster.wait(lambda: gpu().get("health_reason") == "DCGM says that it is failing: MEM")
    job = cluster.submit("true", gpu_memory_mb=1000)
    why = cluster.wait(lambda: cluster.scheduler.get(f"/api/v1/jobs/{job}/why").json()["why"])
    assert cluster.job(job)["state"] == "pending" and why
