"""What DCGM tells: by an exporter, here a page that the test serves, and by its host engine, here
a stand-in for its library that says what a file says."""

import http.server
import subprocess
import threading

import pytest
from stub import KIND, ROOT, program

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


LIBRARY = ROOT / "build" / KIND / "src" / "agent" / "test" / "libdcgm_standin.so"
BY_ENGINE = ["--dcgm", "engine.example:5555", "--dcgm-library", str(LIBRARY)]
HEALTHY = f"value 7 54 s {UUID}\nvalue 7 230 i 0\nvalue 7 311 i 0\nvalue 7 395 i 0\n"
ACTIVE = "value 7 1002 d 0.625\nvalue 7 1005 d 0.25\n"
BLANK = "value 7 1002 d 140737488355330\nvalue 7 1005 d 0.25\n"


class Engine:
    """An agent that asks the stand-in for a host engine."""

    def __init__(self, cluster, tmp_path, monkeypatch, text):
        (tmp_path / "nvml").write_text(f"gpu {UUID} 16384 100000 50\n")
        self.file = tmp_path / "dcgm"
        self.say(text)
        monkeypatch.setenv("DCGM_STANDIN", str(self.file))
        self.cluster = cluster
        self.agent = cluster.agent(gpus=None, nvml=tmp_path / "nvml", arguments=BY_ENGINE)

    def say(self, text):
        new = self.file.with_suffix(".new")
        new.write_text(text)
        new.rename(self.file)

    def gpu(self):
        return self.cluster.scheduler.get("/api/v1/gpus").json()["gpus"][0]

    def log(self):
        with open(f"{self.agent.state}.log") as log:
            return log.read()


@pytest.fixture
def engine(cluster, tmp_path, monkeypatch):
    return lambda text: Engine(cluster, tmp_path, monkeypatch, text)


def test_profiling_counters_and_errors_come_from_the_host_engine(engine):
    asked = engine(HEALTHY + ACTIVE)
    asked.cluster.wait(lambda: asked.gpu().get("sm_active") == 0.625)
    assert asked.gpu()["dram_active"] == 0.25 and asked.gpu()["healthy"]
    asked.say(HEALTHY.replace("395 i 0", "395 i 1") + BLANK)
    asked.cluster.wait(lambda: not asked.gpu()["healthy"])
    asked.cluster.wait(lambda: "could not be remapped" in asked.gpu().get("health_reason", ""))


def test_gpus_that_cannot_be_profiled_have_their_errors_told(engine):
    asked = engine("unprofiled\n" + HEALTHY.replace("230 i 0", "230 i 79") + ACTIVE)
    asked.cluster.wait(lambda: asked.gpu().get("health_reason") == "DCGM tells of Xid 79")
    assert "sm_active" not in asked.gpu()
    assert "DCGM does not profile these GPUs" in asked.log()


def test_a_host_engine_that_is_away_is_asked_again(engine):
    asked = engine("away\n" + HEALTHY + ACTIVE)
    asked.cluster.wait(lambda: "engine.example:5555 does not answer: -21" in asked.log())
    assert asked.gpu()["healthy"] and "sm_active" not in asked.gpu()
    asked.say(HEALTHY + ACTIVE)
    asked.cluster.wait(lambda: asked.gpu().get("sm_active") == 0.625)


def test_values_of_another_layout_are_refused(engine):
    asked = engine("version 9\n" + HEALTHY + ACTIVE)
    asked.cluster.wait(lambda: "its values have another layout" in asked.log())
    assert asked.gpu()["healthy"] and "sm_active" not in asked.gpu()


def test_a_library_that_is_not_dcgms_is_refused_at_the_start(tmp_path):
    def refusal(*words):
        ended = subprocess.run([program(), "--state", tmp_path / "state", "--fake-gpus", "1x80G",
                                "--name", "refused", *words],
                               capture_output=True, text=True, timeout=30)
        assert ended.returncode != 0
        return ended.stderr

    nvml = LIBRARY.with_name("libnvml_standin.so")
    assert "it has no dcgmInit" in refusal("--dcgm", "localhost", "--dcgm-library", nvml)
    assert "cannot be loaded" in refusal("--dcgm", "localhost", "--dcgm-library", tmp_path / "none")
    assert "one of them is enough" in refusal("--dcgm", "localhost", "--dcgm-exporter", "http://x/m")
