"""gRPC as Python's grpcio speaks it, and frames that it would not send."""

import time

import grpc
import pytest

RAW = {"request_serializer": None, "response_deserializer": None}


@pytest.fixture
def channel(server):
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as one:
        yield one


def unary(channel, method="Unary"):
    return channel.unary_unary(f"/echo.Echo/{method}", **RAW)


@pytest.mark.parametrize("method", ["Unary", "Later"])
@pytest.mark.parametrize("size", [0, 1, 1000, 1000000, 4 << 20])
def test_a_message_comes_back(server, method, size):
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{server.port}", options=options) as channel:
        message = bytes(i % 251 for i in range(size))
        assert unary(channel, method)(message, timeout=60) == message


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
def test_compressed_messages_are_understood(channel, compression):
    message = b"again and again " * 10000
    assert unary(channel)(message, timeout=10, compression=compression) == message


def test_a_stream_goes_both_ways(channel):
    stream = channel.stream_stream("/echo.Echo/Stream", **RAW)
    messages = [b"%d" % i * (i * 10) for i in range(300)]
    assert list(stream(iter(messages), timeout=60)) == messages


def test_a_stream_answers_while_it_is_open(channel):
    stream = channel.stream_stream("/echo.Echo/Stream", **RAW)
    answers = []

    def messages():
        for i in range(5):
            while len(answers) < i:
                time.sleep(0.001)
            yield b"%d" % i

    for answer in stream(messages(), timeout=60):
        answers.append(answer)
    assert answers == [b"0", b"1", b"2", b"3", b"4"]


def test_a_status_has_its_text_in_any_language(channel):
    with pytest.raises(grpc.RpcError) as failure:
        unary(channel, "Nothing")(b"", timeout=60)
    assert failure.value.code() == grpc.StatusCode.UNIMPLEMENTED
    assert failure.value.details() == "there is no such method: 100% sure, é"


def test_a_deadline_is_kept_by_the_server_too(server, channel):
    with pytest.raises(grpc.RpcError) as failure:
        unary(channel, "Wait")(b"", timeout=0.3)
    assert failure.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    server.await_counter("exchanges", 1)


def test_a_call_that_is_cancelled_is_gone(server, channel):
    call = unary(channel, "Wait").future(b"")
    server.await_counter("exchanges", 2)
    call.cancel()
    server.await_counter("exchanges", 1)


def test_a_message_over_the_limit_is_refused(start):
    server = start(message_bytes=1000)
    with grpc.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        assert unary(channel)(b"x" * 1000, timeout=60)
        for size in (1001, 100000):
            with pytest.raises(grpc.RpcError) as failure:
                unary(channel)(b"x" * size, timeout=60)
            assert failure.value.code() == grpc.StatusCode.RESOURCE_EXHAUSTED
        # A small message that becomes a large one.
        with pytest.raises(grpc.RpcError) as failure:
            unary(channel)(b"x" * 100000, timeout=10, compression=grpc.Compression.Gzip)
        assert failure.value.code() == grpc.StatusCode.INTERNAL


def test_an_unknown_compression_is_unimplemented(server):
    import h2.connection

    client, answers = talk_http2(server, b"\x01\0\0\0\x03abc", encoding="zstd")
    assert answers["grpc-status"] == "12"
    client.close()
    assert h2.connection


@pytest.mark.parametrize(
    "body",
    [b"", b"\0\0\0", b"\0\0\0\0\x05abc", b"\x02\0\0\0\0", b"\0\0\0\0\0\0\0\0\0\0", b"\x01\0\0\0\x03abc"],
)
def test_bytes_that_are_no_message_end_the_call(server, body):
    client, answers = talk_http2(server, body, encoding="gzip")
    assert answers["grpc-status"] == "13"
    client.close()


def talk_http2(server, body, encoding):
    """One call with these bytes; the headers and trailers of its answer."""
    import h2.config
    import h2.connection
    import h2.events

    connection = h2.connection.H2Connection(h2.config.H2Configuration(header_encoding="utf-8"))
    connection.initiate_connection()
    connection.send_headers(
        1,
        [
            (":method", "POST"),
            (":scheme", "http"),
            (":authority", "x"),
            (":path", "/echo.Echo/Unary"),
            ("content-type", "application/grpc"),
            ("te", "trailers"),
            ("grpc-encoding", encoding),
        ],
    )
    connection.send_data(1, body, end_stream=True)
    client = server.connect()
    client.sendall(connection.data_to_send())
    answers = {}
    while True:
        for event in connection.receive_data(client.recv(65536)):
            if isinstance(event, (h2.events.ResponseReceived, h2.events.TrailersReceived)):
                answers.update(event.headers)
            if isinstance(event, (h2.events.StreamEnded, h2.events.StreamReset)):
                return client, answers
        client.sendall(connection.data_to_send())
