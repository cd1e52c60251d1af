"""Alert rules and the Grafana dashboard, against the real service and a real Prometheus."""

import json
import pathlib
import re
import shutil
import socket
import subprocess
import time
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
DASHBOARD = ROOT / "deploy" / "grafana" / "gpu-scheduler.json"

needs_prometheus = pytest.mark.skipif(
    not shutil.which("prometheus") or not shutil.which("promtool"),
    reason="Prometheus is not installed")


def names_of_metrics(text):
    """Of metrics and of recorded sums, in expressions."""
    return set(re.findall(r"\b(gpu_scheduler(?:[_:][a-z0-9_:]+))", text))


def recorded():
    return set(re.findall(r"record: (\S+)", RULES.read_text()))


def expressions_of_dashboard():
    dashboard = json.loads(DASHBOARD.read_text())
    expressions = [target["expr"] for panel in dashboard["panels"]
                   for target in panel.get("targets", [])]
    expressions += [one["query"]["query"] for one in dashboard["templating"]["list"]
                    if one["type"] == "query"]
    expressions += [one["expr"] for one in dashboard["annotations"]["list"]]
    return expressions


def served_metrics(cluster):
    """With a sample of each GPU, which comes by itself."""
    text = cluster.wait(lambda: "gpu_power_watts{" in (
        text := cluster.scheduler.get("/metrics").body.decode()) and text)
    return set(re.findall(r"^(gpu_scheduler_[a-z0-9_]+)", text, re.MULTILINE))


def test_every_metric_in_dashboard_and_rules_is_served(cluster):
    cluster.make_tenant("bounded", quota_gpus=2, max_gpus=4)
    cluster.agent()
    cluster.await_state(cluster.submit("true", gpu_count=1), "completed")
    served = served_metrics(cluster)
    for text in (*expressions_of_dashboard(), RULES.read_text()):
        missing = names_of_metrics(text) - served - recorded()
        assert not missing, f"{missing} in {text[:200]}"


def test_the_dashboard_shows_every_metric_but_the_versions(cluster):
    cluster.agent()
    cluster.await_state(cluster.submit("true", gpu_count=1), "completed")
    shown = names_of_metrics(" ".join(expressions_of_dashboard()) + RULES.read_text())
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in served_metrics(cluster)}
    used = {re.sub(r"_(bucket|sum|count)$", "", name) for name in shown}
    assert families - used == {
        "gpu_scheduler_build_info", "gpu_scheduler_connections_total",
        "gpu_scheduler_notifications_total",
        "gpu_scheduler_scheduling_latency"}  # the older name of one that is shown


def test_panels_of_the_dashboard_have_places_of_their_own():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, panel["title"]
        taken |= cells


@needs_prometheus
def test_promtool_accepts_the_rules_and_they_fire_when_they_should():
    for words in (["check", "rules", RULES],
                  ["test", "rules", RULES.with_name("alerts_test.yaml")]):
        checked = subprocess.run(["promtool", *words], capture_output=True, text=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr


@needs_prometheus
def test_every_alert_is_tested_and_explained():
    alerts = set(re.findall(r"alert: (\S+)", RULES.read_text()))
    tested = set(re.findall(r"alertname: (\w+)", RULES.with_name("alerts_test.yaml").read_text()))
    assert alerts == tested
    explained = (ROOT / "docs" / "monitoring.md").read_text()
    assert not [alert for alert in alerts if f"`{alert}`" not in explained]


class Prometheus:
    """A real one, with our rules, which do not wait as long here as they do in use: what they
    wait for is tested by promtool."""

    def __init__(self, directory, target):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            self.port = server.getsockname()[1]
        rules = re.sub(r"\n    for: \w+", "\n    for: 1s", RULES.read_text())
        (directory / "alerts.yaml").write_text(rules)
        config = directory / "prometheus.yml"
        config.write_text(
            "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [alerts.yaml]\n"
            f"scrape_configs:\n- job_name: gpu-scheduler\n  static_configs: [{{targets: ['{target}']}}]\n")
        subprocess.run(["promtool", "check", "config", config], check=True, capture_output=True)
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'db'}",
             f"--web.listen-address=127.0.0.1:{self.port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(self, path):
        """What is behind data in the answer; None while it does not answer yet."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}", timeout=60) as answer:
                return json.load(answer)["data"]
        except OSError:
            return None

    def firing(self):
        alerts = (self.ask("alerts") or {"alerts": []})["alerts"]
        return {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}

    def await_firing(self, *names, seconds=60):
        deadline = time.monotonic() + seconds
        while not set(names) <= (seen := self.firing()):
            assert time.monotonic() < deadline, f"{names} do not fire, these do: {seen}"
            time.sleep(0.2)

    def await_calm(self, seconds=60):
        """Until it has the service's metrics, and nothing to say about them."""
        deadline = time.monotonic() + seconds
        while not (self.ask("query?query=gpu_scheduler_leading") or {}).get("result") or self.firing():
            assert time.monotonic() < deadline, self.firing()
            time.sleep(0.2)

    def stop(self):
        self.process.terminate()
        self.process.wait(60)


@needs_prometheus
def test_alerts_are_seen_firing_in_a_real_prometheus(make_cluster, tmp_path):
    """A GPU that is over and has strangers on it, one that is hot, a node that is silent and then
    lost, and a scheduler that is gone; none of them before."""
    cluster = make_cluster(sections={
        "scheduler": {"grace_ms": 1000},
        "agent": {"silent_ms": 1000, "lease_ms": 2000, "margin_ms": 0, "standing_ms": 1000}})
    agent = cluster.agent(gpus="2x80G")
    prometheus = Prometheus(tmp_path, cluster.scheduler.metrics_url.split("/")[2])
    try:
        cluster.submit("sleep 60", gpu_memory_mb=60000)
        prometheus.await_calm()
        agent.control("0 foreign 40000\n1 foreign 40000\n1 temperature 95\n")
        prometheus.await_firing("GpuOver", "GpuForeignMemory", "GpuHot")
        agent.kill()
        prometheus.await_firing("GpuNodeUnknown")
        prometheus.await_firing("GpuNodeLost")
        cluster.scheduler.kill()
        prometheus.await_firing("GpuSchedulerDown", "GpuSchedulerNobodyLeads")
    finally:
        prometheus.stop()
