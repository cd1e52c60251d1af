"""The workflow of the user guide, as people type it: curl and jq."""

import json
import subprocess

import pytest

SCRIPT = r"""
set -euo pipefail
TENANT_ID=$(curl -s -X POST $URL/api/v1/tenants -H "Content-Type: application/json" -d '{
    "name": "Data Science Team", "max_gpus": 12, "max_gpu_memory_mb": 150000,
    "max_cpu_cores": 48, "max_memory_mb": 400000, "max_concurrent_jobs": 10 }' | jq -r '.id')
echo "tenant $TENANT_ID"
submit() {
    curl -s -X POST $URL/api/v1/jobs -H "Content-Type: application/json" -d "$1" |
        jq -r '"\(.job_id) \(.status) \(.message)"'
}
submit "{\"name\": \"Production Model Training\", \"tenant_id\": \"$TENANT_ID\", \"gpu_count\": 8,
    \"priority\": 2000, \"command\": [\"python\", \"train_production.py\"],
    \"image\": \"pytorch:2.0-cuda11.8\", \"gpu_memory_mb\": 80000, \"cpu_cores\": 32,
    \"memory_mb\": 128000}"
submit "{\"name\": \"Research Experiment\", \"tenant_id\": \"$TENANT_ID\", \"gpu_count\": 2,
    \"priority\": 500, \"command\": [\"python\", \"experiment.py\"], \"image\": \"tensorflow:2.13-gpu\"}"
submit "{\"name\": \"Data Preprocessing\", \"tenant_id\": \"$TENANT_ID\", \"gpu_count\": 1,
    \"priority\": 100, \"command\": [\"python\", \"preprocess.py\"], \"image\": \"cuda:11.8-base\"}"
submit "{\"name\": \"Training Job\", \"tenant_id\": \"$TENANT_ID\", \"priority\": 1000,
    \"gpu_count\": 4, \"gpu_memory_mb\": 40000, \"cpu_cores\": 16, \"memory_mb\": 64000,
    \"command\": [\"python\", \"train.py\"], \"args\": [\"--epochs\", \"100\"],
    \"image\": \"pytorch:2.0\", \"environment\": {\"CUDA_VISIBLE_DEVICES\": \"0,1,2,3\"},
    \"gang_scheduling\": true, \"max_runtime_minutes\": 1440}"
curl -s $URL/api/v1/jobs | jq -r '.jobs | sort_by(-.priority) | .[] |
    "\(.priority) | \(.name) | \(.gpu_count) GPUs | \(.state)"'
curl -s $URL/api/v1/cluster/status |
    jq -r '"\(.total_nodes) \(.online_nodes) \(.total_gpus) \(.available_gpus) \(.total_jobs) \(.running_jobs) \(.pending_jobs)"'
curl -s $URL/api/v1/tenants | jq -r '.tenants[].name'
curl -s $URL/api/v1/jobs/job-1 | jq -r '"\(.job_id) \(.state) \(.queue_position)"'
curl -s -X DELETE $URL/api/v1/jobs/job-1 | jq -r .message
curl -s $URL/api/v1/jobs/job-1 | jq -r .state
curl -s $URL/health | jq -r .status
curl -s $URL/api/v1/health | jq -r .status
"""


def test_the_workflow_of_the_user_guide_works(scheduler):
    done = subprocess.run(["bash", "-c", SCRIPT], env={"URL": scheduler.url, "PATH": "/usr/bin:/bin"},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    message = "submitted Job submitted successfully"
    assert done.stdout.splitlines() == [
        "tenant tenant-1",
        f"job-1 {message}", f"job-2 {message}", f"job-3 {message}", f"job-4 {message}",
        "2000 | Production Model Training | 8 GPUs | pending",
        "1000 | Training Job | 4 GPUs | pending",
        "500 | Research Experiment | 2 GPUs | pending",
        "100 | Data Preprocessing | 1 GPUs | pending",
        "0 0 0 0 4 0 4",
        "Data Science Team",
        "job-1 pending 1",
        "Job cancelled successfully",
        "cancelled",
        "healthy",
        "healthy",
    ]


def test_errors_are_sentences_with_a_code(scheduler):
    tenant = scheduler.post("/api/v1/tenants", {"name": "team", "max_gpus": 4}).json()
    too_many = scheduler.post("/api/v1/jobs", {"tenant_id": tenant["id"], "gpu_count": 8,
                                                 "command": ["true"]})
    assert too_many.status == 403
    assert too_many.json()["code"] == "forbidden"
    assert "GPUs requested=8, quota=4, current=0" in too_many.json()["error"]
    string = scheduler.post("/api/v1/jobs", {"tenant_id": tenant["id"], "command": "python x.py"})
    assert string.status == 400
    assert "command must be an array" in string.json()["error"]


@pytest.mark.parametrize("path", ["/api/v1/jobs", "/health"])
def test_http2_is_spoken_too(scheduler, path):
    got = subprocess.run(["curl", "-s", "--http2-prior-knowledge", "-w", "%{http_version}",
                          scheduler.url + path], capture_output=True, text=True, timeout=30)
    body, version = got.stdout[:-1], got.stdout[-1]
    assert version == "2"
    json.loads(body)
