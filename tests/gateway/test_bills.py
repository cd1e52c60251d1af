"""Prices, budgets, limits, names of models, and what is told of tokens afterwards."""

import json
import sys

import pytest

from cluster import Cluster, FixedScheduler
from gateway_parts import MOCK, Gateway, await_true


class Site(Cluster):
    """A scheduler that wants a sign-in, a node, a gateway, and two tenants: one has models, the
    other asks them."""

    def __init__(self, directory):
        self.directory = directory
        self.agents = []
        self.scheduler = FixedScheduler(directory / "scheduler", starts=False,
                                        sections={"auth": {"enable": True}})
        self.scheduler.write_config()
        made = self.scheduler.run("token", "create")
        assert made.returncode == 0, made.stderr
        self.scheduler.token = made.stdout.strip()
        self.scheduler.start()
        self.port = self.scheduler.grpc_port = self.scheduler.grpc.rpartition(":")[2]
        self.owner, self.asker = (self.make_tenant(name) for name in ("owner", "asker"))
        node = self.token(role="agent")
        file = directory / "node.token"
        file.write_text(node["token"])
        self.agent(gpus="1x80G", arguments=["--token-file", str(file)])
        self.gateways = [self.gateway("g1")]

    def token(self, **fields):
        answer = self.scheduler.post("/api/v1/tokens", fields)
        assert answer.status == 201, answer
        return answer.json()

    def gateway(self, name):
        file = self.directory / f"{name}.token"
        file.write_text(self.token(role="gateway", node=name)["token"])
        gateway = Gateway(self.directory / name, "--scheduler", f"127.0.0.1:{self.port}",
                          "--token-file", file, "--name", name)
        await_true(lambda: gateway.request("GET", "/health").status == 200)
        return gateway

    def stop(self):
        for gateway in self.gateways:
            gateway.kill()
        super().stop()

    def model(self, name, **fields):
        answer = self.scheduler.post("/api/v1/models", {
            "name": name, "tenant_id": self.owner, "runtime": "custom", "gpu_memory_mb": 20000,
            "command": f"exec {sys.executable} {MOCK} {{port}}", "max_concurrency": 8, "shared": True,
            **fields})
        assert answer.status == 201, answer
        return answer.json()["id"]

    def chat(self, key, model="m", gateway=None, **more):
        return (gateway or self.gateways[0]).chat(
            model, headers={"authorization": f"Bearer {key['token']}"}, **more)

    def knows(self, key, model="m"):
        """Waits until the gateway knows the key, and by it the model."""
        headers = {"authorization": f"Bearer {key['token']}"}
        await_true(lambda: self.gateways[0].request("GET", f"/v1/models/{model}",
                                                    headers=headers).status == 200)
        return key

    def tenant_of(self, name):
        return self.scheduler.get(f"/api/v1/tenants/{name}").json()

    def tokens(self, query=""):
        return self.scheduler.get(f"/api/v1/reports/tokens?from=2020-01-01{query}").json()


@pytest.fixture
def site(tmp_path):
    site = Site(tmp_path)
    yield site
    site.stop()


def error_of(answer):
    return json.loads(answer.body)["error"]


def test_tokens_are_charged_to_who_asks_and_credited_to_whose_model_it_is(site):
    site.model("m", price_per_million_input=1000, price_per_million_cached=500,
               price_per_million_output=2000, aliases=["nickname"], adapters=["poet"])
    key = site.token(role="inference", tenant_id=site.asker)
    own = site.token(role="inference", tenant_id=site.owner)
    site.knows(key)
    for name in ("m", "nickname", "m:poet"):
        assert site.chat(key, name, mock={"prompt_tokens": 100, "tokens": 10}).status == 200
    # A tenant does not pay for its own models.
    assert site.chat(own, mock={"prompt_tokens": 100, "tokens": 10}).status == 200
    await_true(lambda: sum(line["requests"] for line in site.tokens()["lines"]) == 4)

    lines = {(line["tenant"], line["adapter"]): line for line in site.tokens()["lines"]}
    asked = lines["asker", ""]
    assert (asked["requests"], asked["prompt_tokens"], asked["completion_tokens"]) == (2, 200, 20)
    assert asked["key"] == key["id"] and asked["model"] == "m"
    assert asked["cost"] == pytest.approx(0.24)
    assert lines["asker", "poet"]["cost"] == pytest.approx(0.12)
    assert lines["owner", ""]["cost"] == 0
    assert site.tokens()["total_cost"] == pytest.approx(0.36)
    assert len(site.tokens("&tenant_id=owner")["lines"]) == 1
    assert site.tokens("&to=2021-01-01")["lines"] == []

    asker, owner = site.tenant_of("asker"), site.tenant_of("owner")
    assert asker["month_cost"] == asker["tokens_cost"] == pytest.approx(0.36)
    assert owner["tokens_credit"] == pytest.approx(0.36) and owner["tokens_cost"] == 0
    bill = site.scheduler.get("/api/v1/reports/billing?from=2020-01-01").json()
    billed = {line["tenant"]: line for line in bill["tenants"]}
    assert billed["asker"]["requests"] == 3 and billed["asker"]["prompt_tokens"] == 300
    assert billed["asker"]["tokens_cost"] == bill["total_tokens_cost"] == pytest.approx(0.36)
    assert billed["owner"]["tokens_credit"] == pytest.approx(0.36)
    listed = site.scheduler.get("/api/v1/tokens").json()["tokens"]
    assert next(token for token in listed if token["id"] == key["id"])["month_cost"] == pytest.approx(0.36)
    metrics = site.scheduler.get("/metrics").body.decode()
    assert 'gpu_scheduler_model_tokens_total{tenant="asker",model="m",kind="completion"} 30' in metrics
    assert 'gpu_scheduler_model_requests_total{tenant="owner",model="m"} 1' in metrics

    # It is all there after SIGKILL, once.
    before = site.tokens()["lines"]
    site.scheduler.kill()
    site.scheduler.start()
    assert site.tokens()["lines"] == before
    assert site.tenant_of("asker")["tokens_cost"] == pytest.approx(0.36)


def test_a_budget_that_is_used_up_is_told_before_the_queue(site):
    site.model("m", price_per_million_output=1_000_000)
    poor = site.token(role="inference", tenant_id=site.asker, budget_per_month=0.000005)
    rich = site.token(role="inference", tenant_id=site.asker)
    site.knows(rich)
    assert site.chat(poor, mock={"tokens": 5}).status == 200
    await_true(lambda: site.chat(poor).status == 429)
    assert error_of(site.chat(poor))["code"] == "budget_exceeded"
    assert "this token" in error_of(site.chat(poor))["message"]
    assert site.chat(rich, mock={"tokens": 5}).status == 200
    assert site.scheduler.put(f"/api/v1/tenants/{site.asker}", {"budget_per_month": 1}).status == 200
    await_true(lambda: site.chat(rich).status == 429)
    assert "tenant asker" in error_of(site.chat(rich))["message"]
    assert site.scheduler.put(f"/api/v1/tenants/{site.asker}", {"budget_per_month": None}).status == 200
    await_true(lambda: site.chat(rich).status == 200)


def test_limits_of_a_token_and_a_tenant_hold_and_are_divided_among_gateways(site):
    site.model("m")
    key = site.token(role="inference", tenant_id=site.asker, requests_per_minute=2)
    free = site.token(role="inference", tenant_id=site.asker)
    site.knows(free)
    # Limits may come a moment after the token.
    answers = [site.chat(key) for _ in range(5)]
    refused = [answer for answer in answers if answer.status == 429]
    assert [answer.status for answer in answers].count(200) in (2, 3), answers
    assert error_of(refused[0])["code"] == "rate_limit_exceeded"
    assert "token allows 2 requests a minute" in error_of(refused[0])["message"]
    assert refused[0].getheader("retry-after")
    assert "2" in [answer.getheader("x-ratelimit-limit-requests") for answer in answers]
    assert site.scheduler.put(f"/api/v1/tenants/{site.asker}", {"requests_per_minute": 40}).status == 200

    def part(gateway):
        answer = site.chat(free, gateway=gateway)
        return answer.getheader("x-ratelimit-limit-requests")
    await_true(lambda: part(site.gateways[0]) == "40")
    site.gateways.append(site.gateway("g2"))
    await_true(lambda: [part(gateway) for gateway in site.gateways] == ["20", "20"])


def test_a_fallback_answers_for_a_model_that_cannot_be_loaded(site):
    site.model("broken", command="exit 1", fallbacks=["m"])
    site.model("m")
    key = site.knows(site.token(role="inference", tenant_id=site.asker))
    answer = site.chat(key, "broken")
    assert answer.status == 200 and json.loads(answer.body)["model"] == "m"
