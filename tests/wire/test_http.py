"""HTTP/1.1 and HTTP/2 as ordinary clients speak them."""

import gzip
import json
import shutil
import subprocess

import pytest

from conftest import read_all, read_until

VERSIONS = ["--http1.1", "--http2", "--http2-prior-knowledge"]


def curl(server, path, *arguments, **options):
    """curl's output; a failure of curl is one of the test."""
    words = ["curl", "-sS", "--max-time", "20", *map(str, arguments), server.url + path]
    result = subprocess.run(words, capture_output=True, timeout=30, **options)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("version", VERSIONS)
def test_a_body_comes_back_as_it_was_sent(server, version):
    body = bytes(range(256)) * 5000
    assert curl(server, "/echo", version, "--data-binary", "@-", input=body) == body


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_may_come_from_another_thread(server, version):
    assert curl(server, "/later", version, "-d", "from afar") == b"from afar"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_large_answer_arrives_whole(server, version):
    data = curl(server, "/big?bytes=20000001", version)
    assert len(data) == 20000001
    assert data[:26] == b"abcdefghijklmnopqrstuvwxyz" and data[26:52] == data[:26]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [1, 1000, 60000])
def test_an_answer_in_parts_arrives_whole(start, version, size):
    server = start(output_bytes=65536)
    assert curl(server, f"/flow?parts=500&size={size}", version) == b"x" * 500 * size


@pytest.mark.parametrize("version", VERSIONS)
def test_a_streamed_body_is_seen_to_its_end(server, version):
    body = b"y" * 20000000
    assert curl(server, "/upload", version, "--data-binary", "@-", input=body) == b"20000000"


def test_a_chunked_body_is_put_together(server):
    words = ["-H", "Transfer-Encoding: chunked", "-H", "Expect:", "--data-binary", "@-"]
    assert curl(server, "/echo", "--http1.1", *words, input=b"z" * 300000) == b"z" * 300000


@pytest.mark.parametrize("version", VERSIONS)
def test_what_was_asked_is_understood_alike(server, version):
    path = "/describe/a%2Fb/%C3%A9?limit=5&name=x+y%26z&empty="
    odd = "X-Odd: some value" if version == VERSIONS[2] else "X-Odd:  some value\t "
    told = json.loads(curl(server, path, version, "-H", odd))
    assert told["method"] == "GET"
    assert told["segments"] == ["describe", "a/b", "é"]
    assert told["query"] == {"limit": "5", "name": "x y&z", "empty": ""}
    assert told["authority"] == f"127.0.0.1:{server.port}"
    assert told["peer"] == "127.0.0.1"
    assert told["protocol"] == ("HTTP/2" if version == VERSIONS[2] else "HTTP/1")
    assert ["x-odd", "some value"] in told["headers"]


@pytest.mark.parametrize("version", VERSIONS)
def test_answers_are_compressed_for_those_who_ask(server, version):
    plain = curl(server, "/big?bytes=100000", version)
    assert len(plain) == 100000
    packed = curl(server, "/big?bytes=100000", version, "-H", "Accept-Encoding: br, gzip;q=0.5")
    assert len(packed) < 2000 and gzip.decompress(packed) == plain
    for refused in ("gzip;q=0", "br", "identity"):
        assert curl(server, "/big?bytes=3000", version, "-H", f"Accept-Encoding: {refused}") == plain[:3000]
    assert len(curl(server, "/big?bytes=100", version, "-H", "Accept-Encoding: gzip")) == 100
    assert curl(server, "/big?bytes=3000&plain=1", version, "-H", "Accept-Encoding: gzip") == plain[:3000]


@pytest.mark.parametrize("version", VERSIONS)
def test_head_has_the_length_and_no_body(server, version):
    told = curl(server, "/big?bytes=5000&plain=1", version, "-I").lower()
    assert b"content-length: 5000" in told
    assert told.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_may_come_before_the_body(server, version):
    body = b"x" * 5000000
    told = curl(server, "/secret", version, "--data-binary", "@-", "-H", "Expect:", input=body)
    assert json.loads(told) == {"error": "this is not for you", "code": "unauthorized"}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_body_over_the_limit_is_refused_in_words(server, version):
    body = b"x" * 9000000
    words = [version, "-w", "%{http_code}", "--data-binary", "@-"]
    told = curl(server, "/echo", *words, input=body)
    assert told.endswith(b"413") and b'"code":"too_large"' in told
    told = curl(server, "/small", *words, input=b"12345678901")
    assert told.endswith(b"413") and b"may be 10 at most" in told
    assert curl(server, "/small", *words, input=b"1234567890").endswith(b"1234567890200")


def test_expectations_are_met(server):
    with server.connect() as client:
        client.sendall(
            b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
        )
        assert read_until(client, b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(b"abc")
        assert read_until(client, b"abc").startswith(b"HTTP/1.1 200 OK\r\n")


def test_requests_in_one_go_are_answered_in_their_order(server):
    wanted = [b"/later", b"/echo"] * 100
    requests = b"".join(
        b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\nbody%04d" % (path, i)
        for i, path in enumerate(wanted)
    )
    requests += b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answers = server.ask(requests)
    bodies = [answers.index(b"body%04d" % i) for i in range(len(wanted))]
    assert bodies == sorted(bodies)
    assert answers.count(b"HTTP/1.1 200 OK") == 201
    assert answers.endswith(b"\r\n\r\nhello\n")


def test_more_requests_than_may_wait_are_answered_all_the_same(start):
    server = start(pipeline=4)
    request = b"POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok"
    last = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert server.ask(request * 5000 + last).count(b"200 OK") == 5001


def test_a_request_byte_by_byte_is_a_request(server):
    request = b"POST /echo?a=b HTTP/1.1\r\nHost: x\r\nX-Empty:\r\nContent-Length: 5\r\n\r\nhello"
    with server.connect() as client:
        for i in range(len(request)):
            client.sendall(request[i : i + 1])
        assert read_until(client, b"hello").startswith(b"HTTP/1.1 200 OK\r\n")


def test_a_folded_header_is_refused_even_byte_by_byte(server):
    request = b"GET /echo HTTP/1.1\r\nHost: x\r\nX-Folded:\r\n more\r\n\r\n"
    with server.connect() as client:
        for i in range(len(request)):
            client.sendall(request[i : i + 1])
        assert b"HTTP/1.1 400 " in read_all(client)


def test_http_1_0_is_closed_unless_it_asks_not_to_be(server):
    answer = server.ask(b"GET /flow?parts=3&size=5 HTTP/1.0\r\n\r\n")
    assert answer.endswith(b"\r\n\r\n" + b"x" * 15)
    assert b"transfer-encoding" not in answer and b"connection: close" in answer
    with server.connect() as client:
        client.sendall(b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        assert b"connection: keep-alive" in read_until(client, b"hello\n")
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert read_all(client).endswith(b"hello\n")


def test_a_client_that_closes_its_side_still_gets_its_answers(server):
    with server.connect() as client:
        client.sendall(b"POST /later HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nok" * 3)
        client.shutdown(1)
        assert read_all(client).count(b"\r\n\r\nok") == 3


def test_an_absolute_target_names_the_host(server):
    answer = server.ask(
        b"GET http://other:81/describe?x=1 HTTP/1.1\r\nHost: other:81\r\nConnection: close\r\n\r\n"
    )
    told = json.loads(answer.split(b"\r\n\r\n", 1)[1])
    assert told["authority"] == "other:81"
    assert told["path"] == "/describe" and told["query"] == {"x": "1"}


def test_an_answer_that_is_given_up_ends_in_an_error(server):
    assert server.ask(b"GET /abort HTTP/1.1\r\nHost: x\r\n\r\n") == b""
    result = subprocess.run(
        ["curl", "-sS", "--http2-prior-knowledge", server.url + "/abort"], capture_output=True
    )
    assert result.returncode != 0


def test_a_header_value_cannot_begin_another_header(server):
    told = curl(server, "/inject?value=a", "-i")
    assert b"x-given: a\r\n" in told
    # Controls cannot come by the query at all; that they are harmless is a unit test.
    answer = server.ask(b"GET /inject?value=a%0d%0aX-Evil:%201 HTTP/1.0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400 ") and b"X-Evil" not in answer


@pytest.mark.skipif(not shutil.which("h2load"), reason="nghttp2-client is not installed")
def test_many_streams_at_once_are_all_answered(server):
    words = ["h2load", "-n", "20000", "-c", "10", "-m", "100", server.url + "/later"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert "20000 succeeded, 0 failed" in result.stdout


@pytest.mark.skipif(not shutil.which("wrk"), reason="wrk is not installed")
def test_many_connections_at_once_are_all_answered(server):
    words = ["wrk", "-t", "1", "-c", "200", "-d", "1", server.url + "/"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert "Requests/sec" in result.stdout
    assert "Non-2xx" not in result.stdout and "Socket errors" not in result.stdout
    assert server.counters()["exchanges"] == 1
