"""Real clients through a gateway: openai (Python, Node.js), anthropic, ollama and curl, to a mock and to
the real server of llama.cpp on the CPU."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

import pytest

from gateway_parts import MOCK, ROOT, await_true
from test_session import make_model

CLIENTS = pathlib.Path(__file__).resolve().parent / "clients"
PYTHON = ROOT / "build" / "python" / "bin" / "python"

pytestmark = [
    pytest.mark.skipif(not list((ROOT / "build" / "python").glob("lib/*/site-packages/openai")),
                       reason="the clients are not there; scripts/python-tools installs them"),
]
needs_node = pytest.mark.skipif(not (ROOT / "build" / "node" / "node_modules" / "openai").exists(),
                                reason="openai for Node.js is not there; scripts/node-tools installs it")
WORDS = "word " * 3


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def do(client, gateway, model, *acts):
    if client == "npm":
        return json.loads(run("node", CLIENTS / "openai_client.mjs", gateway.url, model, *acts))
    return json.loads(run(PYTHON, CLIENTS / "real_clients.py", client, gateway.url, model, *acts))


@pytest.fixture(scope="module")
def llama():
    """The address of llama.cpp's server, with a tiny model."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    process = subprocess.Popen([PYTHON, CLIENTS / "llama_server.py", str(port)], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
    assert process.stdout.readline() == "ready\n"
    yield f"http://127.0.0.1:{port}"
    process.kill()
    process.wait(timeout=30)
    process.stdout.close()


def test_openai_for_python(gateway, mock):
    seen = do("openai", gateway, "m", "models", "chat", "stream", "usage", "tools", "embeddings", "image", "audio",
              "error")
    assert "m" in seen["models"]
    assert seen["chat"] == [WORDS, 3]
    assert seen["usage"] == 3
    # A client that did not ask for usage gets none, though the gateway did.
    assert seen["stream"][0] and seen["stream"][1] is False
    assert seen["tools"] and seen["image"] == WORDS and seen["audio"] == "heard"
    assert seen["embeddings"] == [0.5, 0.25]
    assert seen["error"] == ["model_not_found", "invalid_request_error"]


def test_anthropic(gateway):
    seen = do("anthropic", gateway, "m", "chat", "stream", "error")
    assert seen == {"chat": [WORDS, 3], "stream": [WORDS, 3], "error": "not_found_error"}


def test_ollama(gateway):
    seen = do("ollama", gateway, "o", "models", "chat", "stream", "embeddings", "error")
    assert "o" in seen.pop("models")
    assert seen == {"chat": [WORDS, 3], "stream": [WORDS, 3], "embeddings": [0.5], "error": 404}


@needs_node
def test_openai_for_node(gateway):
    seen = do("npm", gateway, "m", "chat", "stream", "error")
    assert seen["chat"] == [WORDS, 3] and seen["stream"]
    assert seen["error"] == [404, "model_not_found"]


def test_curl(gateway):
    body = json.dumps({"model": "m", "stream": True, "messages": []})
    text = run("curl", "-sSN", "--fail", gateway.url + "/v1/chat/completions", "-d", body)
    assert text.endswith("data: [DONE]\n\n") and text.count("data: ") == 5


@pytest.mark.parametrize("client", ["openai", "anthropic", pytest.param("npm", marks=needs_node)])
def test_a_client_that_closes_its_stream_ends_the_work(gateway, mock, client):
    do(client, gateway, "m", "cancel")
    await_true(lambda: mock.state()["active"] == 0)
    assert mock.state()["closed_early"] == 1


def test_the_server_of_llama_cpp(make_gateway, llama):
    gateway = make_gateway(routes=[{"name": "tiny", "runtime": "llama.cpp", "slots": [llama], "concurrency": 4}])
    for client in ("openai", "anthropic"):
        seen = do(client, gateway, "tiny", "chat", "stream")
        assert seen["chat"][1] == 8 and seen["chat"][0]
        assert seen["stream"][0]
    if (ROOT / "build" / "node" / "node_modules" / "openai").exists():
        assert do("npm", gateway, "tiny", "stream")["stream"]
    # What it told of tokens is what was counted: 8 for each answer.
    before = gateway.metric("completion_tokens_total")
    assert do("openai", gateway, "tiny", "usage")["usage"] == 8
    assert gateway.metric("completion_tokens_total") == before + 8


def test_the_first_chat_without_a_gpu_takes_two_commands(cluster, make_gateway, tmp_path):
    cluster.agent(gpus="1x80G")
    gateway = make_gateway("--scheduler", f"127.0.0.1:{cluster.port}")
    await_true(lambda: gateway.request("GET", "/health").status == 200)

    def cli(*words):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("GPU_SCHEDULER_")}
        done = subprocess.run([ROOT / "bin" / "gpu-cli", *words], capture_output=True, text=True, timeout=120,
                              env=environment | {"HOME": str(tmp_path), "GPU_SCHEDULER_URL": cluster.scheduler.url})
        assert done.returncode == 0, done.stderr
        return done.stdout
    cli("models", "create", "tiny", "-t", cluster.tenant, "--gpu-memory", "1g", "--runtime", "custom",
        "--command", f"{PYTHON} {CLIENTS / 'llama_server.py'} {{port}}")
    assert cli("ask", "tiny", "What is a GPU?", "--max-tokens", "8", "--gateway", gateway.url).strip()


def test_an_answer_of_llama_cpp_is_passed_byte_by_byte(make_gateway, llama):
    gateway = make_gateway(routes=[{"name": "tiny", "slots": [llama]}])
    body = json.dumps({"model": "tiny", "max_tokens": 8, "temperature": 0, "stream": True, "seed": 1,
                       "stream_options": {"include_usage": True},
                       "messages": [{"role": "user", "content": "abc"}]})

    def texts(url):
        out = run("curl", "-sSN", url + "/v1/chat/completions", "-d", body)
        return ["".join(choice["delta"].get("content") or "" for choice in json.loads(line[6:])["choices"])
                for line in out.splitlines() if line.startswith("data: {")]
    assert texts(gateway.url) == texts(llama)


def test_every_client_is_told_no_at_its_deadline(make_gateway):
    """600 s, scaled to 2: nothing is ever loaded. A second of grace holds where nobody else computes."""
    gateway = make_gateway("--keep-alive-ms", 300, "--queue-ms", 2000, routes=[
        {"name": "cold", "slots": []}, {"name": "cold-o", "runtime": "ollama", "slots": []}])
    grace = 1 if os.environ.get("GATEWAY_FULL") else 60
    clients = ["openai", "anthropic", "ollama"]
    if (ROOT / "build" / "node" / "node_modules" / "openai").exists():
        clients.append("npm")
    told = []

    def ask(client):
        told.append((client, do(client, gateway, "cold-o" if client == "ollama" else "cold", "late", "late_stream")))
    threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted(client for client, _ in told) == sorted(clients)
    for client, seen in told:
        for act in ("late", "late_stream"):
            text, seconds = seen[act]
            assert "cold" in text, (client, act, seen)
            assert 1.5 <= seconds <= 2 + grace, (client, act, seen)
    for stream in (False, True):
        began = time.monotonic()
        body = json.dumps({"model": "cold", "stream": stream, "messages": []})
        text = run("curl", "-sSN", gateway.url + "/v1/chat/completions", "-d", body)
        assert '"error"' in text and "cold" in text
        assert 1.5 <= time.monotonic() - began <= 2 + grace


# Seconds that a load takes: up to 600, scaled down.
LOADS = (0, 3, 10, 30, 60) if os.environ.get("GATEWAY_FULL") else (1,)


def test_the_first_request_of_every_client_is_held_while_its_model_is_loaded(cluster, make_gateway, tmp_path):
    cluster.agent(gpus="5x80G")
    # What the runtime ollama starts: the mock, as late as it is told.
    ollama = tmp_path / "bin" / "ollama"
    ollama.parent.mkdir()
    ollama.write_text(f'#!/bin/sh\nsleep "$LOAD"\nexec {sys.executable} {MOCK} "${{OLLAMA_HOST##*:}}"\n')
    ollama.chmod(0o755)
    gateway = make_gateway("--scheduler", f"127.0.0.1:{cluster.port}", "--keep-alive-ms", 300)
    await_true(lambda: gateway.request("GET", "/health").status == 200)
    clients = ["openai", "anthropic", "ollama", "curl"]
    if (ROOT / "build" / "node" / "node_modules" / "openai").exists():
        clients.append("npm")
    answered = []

    def ask(client, act, model):
        if client != "curl":
            return bool(do(client, gateway, model, act)[act])
        body = json.dumps({"model": model, "stream": act == "stream", "messages": []})
        text = run("curl", "-sSN", "--fail", gateway.url + "/v1/chat/completions", "-d", body)
        return "word" in text or "data: [DONE]" in text

    def ask_all(client):
        for load in LOADS:
            for act in ("chat", "stream"):
                model = f"{client}-{act}-{load}"
                if client == "ollama":
                    make_model(cluster, model, gpu_memory_mb=2000, runtime="ollama", command=None,
                               environment={"PATH": f"{ollama.parent}:/usr/bin:/bin", "LOAD": str(load)})
                else:
                    make_model(cluster, model, gpu_memory_mb=2000,
                               command=f"sleep {load}; exec {sys.executable} {MOCK} {{port}}")
                await_true(lambda name=model: name.encode() in gateway.request("GET", "/v1/models").body)
                answered.append((client, act, load, ask(client, act, model)))
    threads = [threading.Thread(target=ask_all, args=(client,)) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(900)
    assert sorted(answered) == sorted((client, act, load, True) for client in clients for load in LOADS
                                      for act in ("chat", "stream"))
