"""GPUs as NVIDIA's library tells of them: here a stand-in that says what a file says."""

import os
import pathlib
import subprocess

import pytest

WHOLE = "GPU-57000000-0000-0000-0000-000000000000"
PARENT = "GPU-57000000-0000-0000-0000-000000000001"
INSTANCES = [f"MIG-57000000-0000-0000-0000-0000000000a{i}" for i in range(2)]


def gpus(cluster):
    return {gpu["uuid"]: gpu for gpu in cluster.scheduler.get("/api/v1/gpus").json()["gpus"]}


def test_instances_have_memory_of_their_own_and_their_gpu_has_none(cluster, tmp_path):
    nvml = tmp_path / "nvml"
    lines = [f"gpu {WHOLE} 81920 100000 0", f"gpu {PARENT} 81920 100000 0"]
    lines += [f"mig {PARENT} {uuid} 20096" for uuid in INSTANCES]
    nvml.write_text("\n".join(lines) + "\n")
    cluster.agent(gpus=None, nvml=nvml)
    seen = gpus(cluster)
    assert set(seen) == {WHOLE, PARENT, *INSTANCES}
    assert seen[PARENT]["mig_mode"] and not seen[PARENT]["available"]
    assert all(seen[uuid]["mig_parent"] == PARENT for uuid in INSTANCES)
    assert all(seen[uuid]["total_memory"] == 20096 for uuid in INSTANCES)
    # Three that fill what there is, an instance each or the other GPU; a fourth has to wait.
    jobs = [cluster.submit("sleep 1000", gpu_memory_mb=20000) for _ in range(2)]
    jobs.append(cluster.submit("sleep 1000", gpu_memory_mb=70000))
    for job in jobs:
        cluster.await_state(job, "running")
    places = [cluster.job(job)["allocated_gpus"][0] for job in jobs]
    assert places[2] == WHOLE and set(places[:2]) == set(INSTANCES)
    last = cluster.submit("true", gpu_memory_mb=40000)
    assert cluster.job(last)["state"] == "pending"


def test_time_slices_are_names_of_one_gpu(cluster, tmp_path):
    nvml, plugin = tmp_path / "nvml", tmp_path / "plugin.yaml"
    nvml.write_text(f"gpu {WHOLE} 81920 100000 0\n")
    plugin.write_text(
        "version: v1\nsharing:\n  timeSlicing:\n    resources:\n"
        "    - name: nvidia.com/gpu\n      replicas: 4\n"
    )
    cluster.agent(gpus=None, nvml=nvml, arguments=["--device-plugin-config", str(plugin)])
    seen = gpus(cluster)
    assert list(seen) == [WHOLE] and seen[WHOLE]["aliases"] == 4
    first = cluster.submit("sleep 1000", gpu_memory_mb=50000)
    cluster.await_state(first, "running")
    second = cluster.submit("true", gpu_memory_mb=50000)
    assert cluster.job(second)["state"] == "pending"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can limit devices")
@pytest.mark.parametrize("fields", [{}, {"gpu_memory_mb": 1000}], ids=["without GPUs", "with a GPU"])
def test_a_task_opens_no_device_that_it_was_not_given(cluster, tmp_path, fields):
    # A stand-in for the device of a GPU. Its driver, if there is one, lets everyone open it.
    device = pathlib.Path(f"/dev/gpu-scheduler-test-{os.getpid()}")
    subprocess.run(["mknod", "-m", "0666", device, "c", "10", "237"], check=True)
    try:
        nvml = tmp_path / "nvml"
        nvml.write_text(f"gpu {WHOLE} 81920 100000 0\n")
        cluster.agent(gpus=None, nvml=nvml)
        job = cluster.submit(f": </dev/null && echo fine; : <{device} && echo opened", **fields)
        cluster.await_state(job, "completed", "failed")
        written = cluster.logs(job)
        assert "fine" in written and "opened" not in written
        assert "Operation not permitted" in written
    finally:
        device.unlink()


def test_a_gpu_is_hot_5_degrees_below_the_temperature_at_which_its_driver_slows_it_down(
    cluster, tmp_path
):
    nvml = tmp_path / "nvml"

    def heat(degrees):
        nvml.write_text(
            f"gpu {WHOLE} 81920 100000 0 {degrees} 87\n"
            f"gpu {PARENT} 81920 100000 0 {degrees}\n"
        )

    def available():
        return {uuid: gpu["available"] for uuid, gpu in gpus(cluster).items()}

    # 82 degrees on one GPU; 75 on the other, whose driver does not say.
    heat(74)
    cluster.agent(gpus=None, nvml=nvml)
    cluster.wait(lambda: available() == {WHOLE: True, PARENT: True})
    heat(81)
    cluster.wait(lambda: available() == {WHOLE: True, PARENT: False})
    heat(82)
    cluster.wait(lambda: available() == {WHOLE: False, PARENT: False})
    heat(77)
    cluster.wait(lambda: available() == {WHOLE: True, PARENT: False})
    heat(70)
    cluster.wait(lambda: available() == {WHOLE: True, PARENT: True})
