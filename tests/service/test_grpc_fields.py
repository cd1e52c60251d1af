"""Fields of jobs and tenants by gRPC: refused where REST refuses, in the same words."""

import json
import pathlib
import sys
import time

import grpc
import pytest
from google.protobuf import duration_pb2, timestamp_pb2

from calls import scheduler_pb2, scheduler_pb2_grpc
from crowd import Crowd
from scheduler import ROOT, Scheduler, make_tenant

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "parity"))

from values import canonical, from_message, to_message

INT32 = range(-2**31, 2**31)


def table_of(name):
    tables = json.loads((ROOT / "build/release/src/resource/resources.json").read_text())
    return next(one["fields"] for one in tables if one["name"] == name)


JOB = [field for field in table_of("job") if "request" in field["proto"]]


class Lab:
    def __init__(self, directory):
        self.service = Scheduler(directory)
        self.tenant = make_tenant(self.service, "lab")
        self.channel = grpc.insecure_channel(self.service.grpc)
        self.stub = scheduler_pb2_grpc.SchedulerServiceStub(self.channel)

    def count(self):
        return self.service.get("/api/v1/jobs").json()["total"]

    def refused_by_rest(self, **values):
        answer = self.service.post("/api/v1/jobs", {"tenant_id": self.tenant, "command": ["true"]} | values)
        assert answer.status == 400, (values, answer)
        return answer.json()["error"]

    def refused(self, call, request):
        with pytest.raises(grpc.RpcError) as error:
            call(request, timeout=60)
        assert error.value.code() == grpc.StatusCode.INVALID_ARGUMENT, error.value
        return error.value.details()

    def request(self, **values):
        request = scheduler_pb2.SubmitJobRequest(tenant_id=self.tenant)
        if "command" not in values:
            request.command.append("true")
        for name, value in values.items():
            to_message(request, next(one for one in JOB if one["name"] == name), value)
        return request


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("service"))
    yield lab
    lab.channel.close()
    lab.service.stop()


def bad_values(field):
    """Values that the row refuses and that a message can hold."""
    kind, most, items = field["kind"], field.get("most"), field.get("items")
    if kind == "integer":
        narrow = field["proto"].get("type") == "int32"
        return [one for one in (min(field["least"], 0) - 1, most + 1) if not narrow or one in INT32]
    if kind == "decimal":
        return [-1.5, most / 10**field["digits"] * 2, 0.12345, 1e300]
    if kind == "word":
        return ["nonsense"]
    if kind == "text" and most:
        return ["/" + "x" * most]
    if kind == "words":
        return [["nonsense"]]
    if kind == "texts":
        return [["x"] * (items + 1)]
    if kind == "map":
        return [{f"NAME{i}": "x" for i in range(items + 1)}]
    if kind == "list":
        return [[{"job": "nonsense"}], [{"job": "job-1", "condition": "never"}],
                [{"job": "job-1"}] * (items + 1)]
    return []


CASES = [(field["name"], value) for field in JOB for value in bad_values(field)]


@pytest.mark.parametrize("name, value", CASES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(CASES)])
def test_a_value_out_of_range_is_refused_in_the_words_of_rest(lab, name, value):
    before = lab.count()
    said = lab.refused(lab.stub.SubmitJob, lab.request(**{name: value}))
    assert said == lab.refused_by_rest(**{name: value})
    assert name in said
    assert lab.count() == before


def test_every_kind_of_field_has_a_value_that_is_refused():
    refused = {name for name, _ in CASES}
    # Any number that the message holds is a priority.
    others = {field["name"] for field in JOB if field["kind"] in ("flag", "id", "duration", "time")}
    assert {field["name"] for field in JOB} == refused | others | {"priority"}


def test_times_and_durations_that_cannot_be_are_refused(lab):
    before = lab.count()
    for duration in (duration_pb2.Duration(seconds=-5), duration_pb2.Duration(seconds=2**62),
                     duration_pb2.Duration(seconds=1, nanos=-7)):
        said = lab.refused(lab.stub.SubmitJob, scheduler_pb2.SubmitJobRequest(
            tenant_id=lab.tenant, command=["true"], max_runtime=duration))
        assert said == lab.refused_by_rest(max_runtime="-5s")
    for moment in (timestamp_pb2.Timestamp(seconds=-1), timestamp_pb2.Timestamp(seconds=2**62)):
        said = lab.refused(lab.stub.SubmitJob, scheduler_pb2.SubmitJobRequest(
            tenant_id=lab.tenant, command=["true"], deadline=moment))
        assert said == lab.refused_by_rest(deadline="soon")
    assert lab.count() == before


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_is_refused(lab, value):
    for name in ("gpu_fraction", "cpu_cores", "estimated_runtime_minutes"):
        said = lab.refused(lab.stub.SubmitJob, lab.request(**{name: value}))
        assert said == lab.refused_by_rest(**{name: -1})


def test_a_field_in_both_of_its_forms_is_refused(lab):
    request = scheduler_pb2.SubmitJobRequest(tenant_id=lab.tenant, command=["true"], cpu_cores=1,
                                             cpu_cores_decimal=1.5)
    assert lab.refused(lab.stub.SubmitJob, request) == \
        "cpu_cores and cpu_cores_decimal are two forms of one field: give one of them"
    request = scheduler_pb2.SubmitJobRequest(tenant_id=lab.tenant, command=["true"], gpu_memory_mb=1,
                                             gpu_memory_mb_each=[1, 2])
    assert "gpu_memory_mb_each" in lab.refused(lab.stub.SubmitJob, request)


def test_each_gpu_of_a_job_may_have_an_amount_of_its_own(lab):
    request = lab.request(gpu_memory_mb=[4000, 2000])
    job = lab.stub.SubmitJob(request, timeout=60).job_id
    assert lab.service.get(f"/api/v1/jobs/{job}").json()["gpu_memory_mb"] == [4000, 2000]
    status = lab.stub.GetJobStatus(scheduler_pb2.GetJobStatusRequest(job_id=job), timeout=60)
    assert list(status.job.gpu_memory_mb) == [4000, 2000]


def test_a_list_shows_whole_jobs_on_request(lab):
    lab.stub.SubmitJob(lab.request(labels={"a": "b"}, tasks=3), timeout=60)
    brief = lab.stub.ListJobs(scheduler_pb2.ListJobsRequest(tenant_id="lab"), timeout=60)
    assert not any(one.HasField("job") for one in brief.jobs)
    whole = lab.stub.ListJobs(scheduler_pb2.ListJobsRequest(tenant_id="lab", full=True), timeout=60)
    rest = lab.service.get("/api/v1/jobs?tenant_id=lab&limit=50").json()["jobs"]
    fields = table_of("job")
    assert [from_message(fields, one.job) for one in whole.jobs] == \
        [canonical(fields, one) for one in rest]


def test_a_page_of_whole_jobs_stays_below_what_clients_accept(lab):
    for _ in range(8):
        lab.stub.SubmitJob(lab.request(script="#" * 500000, labels={"large": "yes"}), timeout=60)
    total, seen = lab.count(), []
    while len(seen) < total:
        page = lab.stub.ListJobs(scheduler_pb2.ListJobsRequest(
            tenant_id="lab", full=True, limit=1000, offset=len(seen)), timeout=60)
        assert page.jobs and page.ByteSize() < 4 << 20
        seen += [one.job_id for one in page.jobs]
    assert len(set(seen)) == total


def test_a_tenant_is_changed_by_the_rules_of_rest(lab):
    update = scheduler_pb2.UpdateTenantQuotaRequest
    changed = lab.stub.UpdateTenantQuota(
        update(tenant_id="lab", max_gpus=5, quota_gpus=1.5, allow_preemption=False,
               email="lab@example.org", notify_on=["failed"]), timeout=60)
    shown = lab.service.get("/api/v1/tenants/lab").json()
    assert (shown["max_gpus"], shown["quota_gpus"], shown["allow_preemption"]) == (5, 1.5, False)
    assert shown["email"] == "lab@example.org" and shown["notify_on"] == ["failed"]
    fields = table_of("tenant")
    assert from_message(fields, changed.tenant) == canonical(fields, shown)
    lab.stub.UpdateTenantQuota(update(tenant_id="lab", max_gpus=-1, max_queued_jobs=3,
                                      budget_per_month=10.5), timeout=60)
    again = lab.service.get("/api/v1/tenants/lab").json()
    assert (again["max_gpus"], again["max_queued_jobs"], again["quota_gpus"]) == (None, 3, 1.5)
    lab.stub.UpdateTenantQuota(update(tenant_id="lab", max_queued_jobs=-1, budget_per_month=-1),
                               timeout=60)
    again = lab.service.get("/api/v1/tenants/lab").json()
    assert (again["max_queued_jobs"], again["budget_per_month"]) == (None, None)


def test_a_tenant_is_not_changed_by_what_rest_refuses(lab):
    before = lab.service.get("/api/v1/tenants/lab").json()
    update = scheduler_pb2.UpdateTenantQuotaRequest
    for values in ({"max_gpus": -7}, {"fair_share_weight": -1.0}, {"priority_tier": "nonsense"},
                   {"notify_webhook": "nonsense"}, {"notify_on": ["nonsense"]},
                   {"quota_gpus": float("nan")}):
        said = lab.refused(lab.stub.UpdateTenantQuota, update(tenant_id="lab", max_memory_mb=77, **values))
        name, value = next(iter(values.items()))
        if value == value:
            answer = lab.service.put("/api/v1/tenants/lab", values)
            assert answer.status == 400 and answer.json()["error"] == said
        assert name in said
    assert lab.service.get("/api/v1/tenants/lab").json() == before


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def nodes(lab):
    crowd = Crowd(lab.service.grpc, 2, gpus=4)
    wait_for(lambda: len([one for one in lab.service.get("/api/v1/nodes").json()["nodes"]
                          if one["reported"]]) == 2)
    yield crowd.nodes
    crowd.close()


def test_a_window_has_the_fields_and_the_rules_of_rest(lab, nodes):
    fields = table_of("window")
    settable = {field["name"]: field for field in fields if "request" in field["proto"]}
    ahead = "2035-01-31T12:00:00Z"
    values = [
        {"reason": "fans", "maintenance": True, "start": ahead, "length": "1h0m0s", "repeat": "weekly",
         "nodes": [nodes[0].name], "evict": True, "grace": "1m0s", "lead": "2h0m0s"},
        {"tenant_id": lab.tenant, "start": ahead, "length": "1h0m0s", "gpus": [nodes[1].uuid(1)]},
        {"start": ahead, "length": "1h0m0s", "gpu_count": 2, "gpu_model": "NVIDIA H100 80GB"},
    ]
    assert {name for one in values for name in one} | {"name"} == set(settable)
    for number, one in enumerate(values):
        request = scheduler_pb2.CreateWindowRequest(name=f"window-{number}")
        for name, value in one.items():
            to_message(request, settable[name], value)
        made = lab.stub.CreateWindow(request, timeout=60).window
        shown = lab.service.get(f"/api/v1/windows/window-{number}").json()
        assert from_message(fields, made) == canonical(fields, shown)
        assert all(shown[name] == value for name, value in one.items()
                   if name not in ("start", "gpu_count", "gpu_model")), (shown, one)
        again = lab.stub.GetWindow(scheduler_pb2.GetWindowRequest(name=f"window-{number}"), timeout=60)
        assert again.window == made
    assert len(lab.service.get("/api/v1/windows/window-2").json()["gpus"]) == 2
    listed = lab.stub.ListWindows(scheduler_pb2.ListWindowsRequest(), timeout=60).windows
    assert [one.name for one in listed] == ["window-0", "window-1", "window-2"]
    said = lab.refused(lab.stub.CreateWindow, scheduler_pb2.CreateWindowRequest(
        name="a b", gpu_count=1, length=duration_pb2.Duration(seconds=60)))
    answer = lab.service.post("/api/v1/windows", {"name": "a b", "gpu_count": 1, "length": "1m"})
    assert answer.status == 400 and answer.json()["error"] == said
    for one in listed:
        assert lab.stub.DeleteWindow(scheduler_pb2.DeleteWindowRequest(name=one.name), timeout=60).success
    assert lab.service.get("/api/v1/windows").json()["total"] == 0
    with pytest.raises(grpc.RpcError) as error:
        lab.stub.DeleteWindow(scheduler_pb2.DeleteWindowRequest(name="window-0"), timeout=60)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    entry = lab.service.get("/api/v1/audit").json()["entries"][0]
    assert (entry["action"], entry["object"]) == ("remove_window", "/api/v1/windows/window-2")


def test_a_model_is_evicted(lab, nodes):
    made = lab.service.post("/api/v1/models", {"name": "small", "tenant_id": lab.tenant, "runtime": "vllm",
                                               "gpu_memory_mb": 1000, "min_replicas": 1})
    assert made.status == 201, made
    wait_for(lambda: [one["status"] for one in lab.service.get("/api/v1/scheduler/slots").json()] == ["ready"])
    evict = scheduler_pb2.EvictModelRequest
    done = lab.stub.EvictModel(evict(model="small", now=True), timeout=60)
    assert done.success and done.replicas == 1 and "stopped" in done.message
    with pytest.raises(grpc.RpcError) as error:
        lab.stub.EvictModel(evict(model="large"), timeout=60)
    assert error.value.code() == grpc.StatusCode.NOT_FOUND
    assert lab.service.delete(f"/api/v1/models/{made.json()['id']}").status == 200
