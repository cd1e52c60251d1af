"""Requests that pass through a gateway: bytes, errors, cancels, waiting, usage."""

import base64
import hashlib
import json
import os
import socket
import threading

from gateway_parts import await_true


def test_an_answer_is_that_of_the_server_and_the_body_is_the_clients(gateway, mock):
    body = b'{"unknown": [1.50e3, "\\u00e9"],  "model" : "m", "messages": []}'
    answer = gateway.request("POST", "/v1/chat/completions", body)
    assert answer.status == 200
    assert json.loads(answer.body)["sha256"] == hashlib.sha256(body).hexdigest()
    assert mock.state()["last"]["sha256"] == hashlib.sha256(body).hexdigest()


def test_a_page_may_ask_and_the_server_does_not_see_its_site(gateway, mock):
    asks = {"origin": "http://localhost:8080", "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,content-type"}
    answer = gateway.request("OPTIONS", "/v1/chat/completions", headers=asks)
    assert (answer.status, answer.getheader("access-control-allow-origin")) == (204, "*")
    assert answer.getheader("access-control-allow-headers") == "authorization,content-type"
    answer = gateway.chat(headers={"origin": "http://localhost:8080"})
    assert answer.status == 200 and answer.headers.get_all("access-control-allow-origin") == ["*"]
    assert "origin" not in mock.state()["last"]["headers"]
    assert gateway.chat().getheader("access-control-allow-origin") is None


def test_a_page_of_another_site_may_not_ask_where_nobody_signs_in(gateway):
    assert gateway.chat(headers={"origin": "https://elsewhere.example"}).status == 403


def test_an_alias_becomes_the_name_and_nothing_else_changes(gateway, mock):
    gateway.request("POST", "/v1/chat/completions", b'{"a": 1,"model":"alias", "messages":[]}')
    assert mock.state()["last"]["text"] == '{"a": 1,"model":"m", "messages":[]}'


def test_an_image_of_20_mb_arrives_as_it_was_sent(gateway, mock):
    image = base64.b64encode(os.urandom(15 << 20)).decode()
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64," + image}}]}]}).encode()
    assert len(body) > 20_000_000
    assert gateway.request("POST", "/v1/chat/completions", body).status == 200
    assert mock.state()["last"]["sha256"] == hashlib.sha256(body).hexdigest()


def test_a_form_is_passed_by_its_field(gateway, mock):
    body = (b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\nm\r\n'
            b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\n'
            + os.urandom(100_000) + b"\r\n--x--\r\n")
    answer = gateway.request("POST", "/v1/audio/transcriptions", body,
                             {"content-type": "multipart/form-data; boundary=x"})
    assert json.loads(answer.body) == {"text": "heard"}
    assert mock.state()["last"]["sha256"] == hashlib.sha256(body).hexdigest()


def events(answer):
    return [line[6:] for line in answer.body.decode().split("\n") if line.startswith("data: ")]


def test_usage_is_taken_out_of_a_stream_that_did_not_ask_for_it(gateway, mock):
    answer = gateway.chat(stream=True, mock={"tokens": 5})
    assert answer.getheader("content-type").startswith("text/event-stream")
    assert events(answer)[-1] == "[DONE]" and len(events(answer)) == 7
    assert "include_usage" in mock.state()["last"]["text"]
    asked = gateway.chat(stream=True, stream_options={"include_usage": True}, mock={"tokens": 5})
    assert json.loads(events(asked)[-2])["usage"]["completion_tokens"] == 5
    assert gateway.metric("completion_tokens_total") == 10


def test_errors_have_the_shape_of_the_path(gateway):
    openai = gateway.chat("none")
    assert openai.status == 404
    assert json.loads(openai.body)["error"]["code"] == "model_not_found"
    anthropic = gateway.request("POST", "/v1/messages", {"model": "none"})
    assert json.loads(anthropic.body)["error"]["type"] == "not_found_error"
    ollama = gateway.request("POST", "/api/chat", {"model": "none"})
    assert isinstance(json.loads(ollama.body)["error"], str)
    assert gateway.request("POST", "/sleep").status == 404
    assert gateway.request("POST", "/v1/chat/completions", b'{"model":"m","model":"x"}').status == 400
    assert gateway.chat(mock={"status": 418}).status == 418


def test_a_server_that_resets_is_tried_three_times(gateway, mock):
    answer = gateway.chat(mock={"reset": True})
    assert answer.status == 502 and json.loads(answer.body)["error"]["code"] == "upstream_failed"
    assert mock.state()["requests"] == 3


def test_a_replica_that_is_gone_is_passed_over(make_gateway, mock):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{taken.getsockname()[1]}"
        gateway = make_gateway(routes=[{"name": "m", "slots": [dead, mock.address]}])
        assert [gateway.chat().status for _ in range(10)] == [200] * 10


def test_a_stream_that_waits_says_so_and_ends_with_an_error(gateway):
    answer = gateway.chat("cold", stream=True)
    assert answer.status == 200
    text = answer.body.decode()
    assert text.startswith(": waiting: model cold")
    assert json.loads(events(answer)[-1])["error"]["code"] == "model_loading"


def test_a_request_that_waits_gets_nothing_before_its_deadline(gateway):
    answer = gateway.chat("cold")
    assert answer.status == 504 and answer.getheader("retry-after")
    assert gateway.chat("cold", headers={"x-queue-timeout": "1"}).status == 504


def test_a_client_that_hangs_up_ends_the_work(gateway, mock):
    for more in ({"mock": {"delay": 60}}, {"stream": True, "mock": {"tokens": 1000, "gap": 0.05}}):
        before = mock.state()["closed_early"]
        client = socket.create_connection(("127.0.0.1", gateway.port))
        body = json.dumps({"model": "m", "messages": [], **more}).encode()
        client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
                       b"content-length: %d\r\n\r\n%s" % (len(body), body))
        await_true(lambda: mock.state()["active"] == 1)
        client.close()
        await_true(lambda: mock.state()["closed_early"] == before + 1)
        await_true(lambda: gateway.metric("in_flight") == 0)


def test_a_server_that_cuts_a_stream_is_seen_by_the_client(gateway):
    client = socket.create_connection(("127.0.0.1", gateway.port))
    body = json.dumps({"model": "m", "stream": True, "mock": {"tokens": 9, "cut": 3}}).encode()
    client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
                   b"content-length: %d\r\n\r\n%s" % (len(body), body))
    client.settimeout(60)
    received = b""
    while data := client.recv(65536):
        received += data
    client.close()
    assert received.count(b"data: ") == 3 and not received.endswith(b"0\r\n\r\n")


def test_a_slow_reader_holds_up_nobody_else(gateway, mock):
    slow = socket.create_connection(("127.0.0.1", gateway.port))
    body = json.dumps({"model": "m", "stream": True, "mock": {"tokens": 2000, "pad": 20000}}).encode()
    slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n"
                 b"content-length: %d\r\n\r\n%s" % (len(body), body))
    await_true(lambda: mock.state()["active"] == 1)
    assert gateway.chat().status == 200
    # The other one has ended, and the server waits for the reader: 40 MB are held nowhere.
    await_true(lambda: mock.state()["active"] == 1)
    slow.close()
    await_true(lambda: mock.state()["active"] == 0)


def test_sigterm_waits_for_the_last_stream(gateway):
    answers = []
    thread = threading.Thread(
        target=lambda: answers.append(gateway.chat(stream=True, mock={"tokens": 10, "gap": 0.1})))
    thread.start()
    await_true(lambda: gateway.metric("in_flight") == 1)
    gateway.stop()
    thread.join(60)
    assert events(answers[0])[-1] == "[DONE]"
