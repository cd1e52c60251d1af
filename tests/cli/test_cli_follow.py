"""Following a job's output over a restart of the scheduler."""

import os
import time

from cli import Cli
from cluster import Cluster

# Longer than gpu-cli tries to read an answer that is refused.
AWAY_SECONDS = 8


def test_output_is_followed_over_a_restart_of_the_scheduler(tmp_path):
    cluster = Cluster(tmp_path / "cluster")
    follower = None
    try:
        cluster.agent(f"follow-{os.getpid()}", gpus="1x80G")
        cli = Cli(tmp_path, cluster.scheduler.url)
        flag, shown = tmp_path / "end", tmp_path / "shown"
        tmp_path.chmod(0o755)
        job = cli.submit("--", "sh", "-c",
                         f"i=0; while [ ! -e {flag} ]; do i=$((i + 1)); echo line $i; sleep 0.2; done; echo end")
        cluster.await_state(job, "running")
        with open(shown, "wb") as output:
            follower = cli.start("logs", "-f", job, stdout=output)
        cluster.wait(lambda: shown.read_text().count("\n") >= 3)
        cluster.scheduler.ports["http"] = cluster.scheduler.port
        cluster.scheduler.kill()
        time.sleep(AWAY_SECONDS)
        before = shown.read_text().count("\n")
        cluster.scheduler.start()
        cluster.wait(lambda: shown.read_text().count("\n") > before)
        flag.touch()
        assert follower.wait(timeout=60) == 0
        lines = shown.read_text().splitlines()
        assert lines == [f"line {i}" for i in range(1, len(lines))] + ["end"]
    finally:
        if follower and follower.poll() is None:
            follower.kill()
        cluster.stop()
