"""TLS: old versions, plain text, stalled handshakes, certificates that are not the scheduler's."""

import socket
import ssl
import subprocess
import time

from stub import Agent

from attack import attack, defeat


def handshake(site, *words):
    """Exit status and words of openssl's client."""
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{site.http.port}", *words],
        input=b"", capture_output=True, timeout=30)
    return done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")


@attack("anonymous", "an old version of TLS or a weak cipher is agreed on", quick=False)
def old_versions(world):
    site = world.tls
    for words in (["-tls1"], ["-tls1_1"], ["-tls1_2", "-cipher", "NULL:eNULL:@SECLEVEL=0"],
                  ["-tls1_2", "-cipher", "RC4:3DES:DES:EXPORT:@SECLEVEL=0"],
                  ["-tls1_2", "-cipher", "aNULL:ADH:@SECLEVEL=0"]):
        said = handshake(site, *words)
        agreed = "Cipher is" in said and "Cipher is (NONE)" not in said
        defeat(agreed, f"{words}: {said[-200:]}")
    assert "Cipher is (NONE)" not in handshake(site, "-tls1_3")
    return "TLS 1.0, 1.1, no encryption, no sign of who it is, old ciphers: refused; 1.3 is spoken"


@attack("anonymous", "a request in plain text is answered on the port of TLS")
def plain_text(world):
    answer = world.tls.http.ask(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    defeat(b"HTTP/1.1 200" in answer, answer[:100])
    grpc_answer = world.tls.rpc.ask(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
    defeat(b"\0\0\0\4" in grpc_answer[:12], "HTTP/2 in plain text is answered")
    return "both ports answer nothing but an alert"


@attack("anonymous", "records that are no TLS, or cut in the middle, break the service")
def broken_records(world):
    cases = [b"\x16\x03\x01\xff\xff" + b"x" * 1000, b"\x16\x03\x01\x00\x00" * 100, b"\x80" * 500,
             b"\x14\x03\x03\x00\x01\x01", b"\x15\x03\x03\x00\x02\x01\x00", b"\x17\x03\x03\x40\x01" + bytes(16385),
             b"\x18\x03\x02\x00\x03\x01\x40\x00"]
    for data in cases:
        with world.tls.http.connect() as client:
            client.sendall(data)
            client.settimeout(0.3)
            try:
                answer = client.recv(65536)
            except OSError:
                answer = b""
        defeat(len(answer) > 1000, f"{data[:6]!r} was answered with {len(answer)} bytes")
    context = ssl._create_unverified_context()
    for _ in range(30):
        with world.tls.http.connect() as plain:
            client = context.wrap_socket(plain, do_handshake_on_connect=True)
            client.sendall(b"GET /health HTTP/1.1\r\nHost: loc")
    return f"{len(cases)} kinds of records, and 30 connections cut off after the handshake"


@attack("anonymous", "stalled handshakes hold connections for as long as they like", quick=False)
def stalled_handshakes(world):
    clients = [world.tls.http.connect(30) for _ in range(100)]
    for client in clients:
        client.sendall(b"\x16\x03\x01\x02\x00\x01")
    began = time.monotonic()
    for client in clients:
        try:
            assert client.recv(100) == b""
        except (ConnectionResetError, AssertionError):
            pass
        except socket.timeout:
            defeat(True, "a connection is open 30 s after half a hello")
        client.close()
    return f"100 were closed within {time.monotonic() - began:.0f} s, handshake_ms is 10 s"


@attack("anonymous", "renegotiation or tickets let one client do the work of many", quick=False)
def renegotiation(world):
    done = subprocess.run(
        ["openssl", "s_client", "-tls1_2", "-connect", f"127.0.0.1:{world.tls.http.port}"],
        input=b"R\nR\nR\n", capture_output=True, timeout=30)
    said = done.stdout + done.stderr
    defeat(said.count(b"RENEGOTIATING") > 0 and b"verify return" in said.split(b"RENEGOTIATING")[-1]
           and b"error" not in said.split(b"RENEGOTIATING")[-1], said[-200:])
    return "renegotiation is refused"


@attack("anonymous", "an agent gives its token to a scheduler whose certificate it does not know")
def false_scheduler(world):
    """An agent that trusts the system's authorities alone meets a self-made certificate."""
    site = world.tls
    name = "distrustful"
    done, path = site.enroll(name, "--ca-file", str(site.authority.certificate))
    assert done.returncode == 0, done.stderr
    agent = Agent(site.port, site.directory / name, name, arguments=["--tls", "--token-file", str(path)])
    log = site.directory / f"{name}.log"
    try:
        site.wait(lambda: "certificate" in log.read_text())
        known = site.node(name)
    finally:
        agent.kill()
    defeat(known, "the agent connected")
    return "the agent says that the certificate is not trusted"
