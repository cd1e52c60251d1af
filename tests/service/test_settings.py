"""Settings that reach the parts that they are for: sign-in, TLS, rates, origins, limits."""

import base64
import hashlib
import hmac
import json
import socket
import ssl
import subprocess
import time

import pytest

from scheduler import Scheduler


def encode(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def web_token(secret, key_id=None, **claims):
    """A JSON web token, signed with HS256."""
    head = {"alg": "HS256", "typ": "JWT"} | ({"kid": key_id} if key_id else {})
    claims = {"exp": int(time.time()) + 600, "sub": "test"} | claims
    signed = encode(json.dumps(head).encode()) + b"." + encode(json.dumps(claims).encode())
    return (signed + b"." + encode(hmac.digest(secret.encode(), signed, hashlib.sha256))).decode()


def test_with_sign_in_only_those_with_a_token_are_let_in(signed_in):
    assert signed_in.get("/api/v1/tenants").status == 200
    assert signed_in.get("/api/v1/tenants", headers={"Authorization": "Bearer x"}).status == 401
    assert signed_in.get("/api/v1/tenants", headers={"Authorization": ""}).status == 401
    assert signed_in.get("/health", headers={"Authorization": ""}).status == 200


def test_with_sign_in_and_plaintext_allowed_it_may_listen_to_all(tmp_path):
    one = Scheduler(tmp_path / "one", "--listen", "0.0.0.0",
                    sections={"auth": {"enable": True}, "api": {"allow_plaintext": True}})
    one.url = one.url.replace("0.0.0.0", "127.0.0.1")
    assert one.get("/api/v1/tenants").status == 401
    one.stop()


def test_settings_with_secrets_that_all_can_read_are_told_of_or_refused(tmp_path):
    sections = {"auth": {"enable": True, "jwt_secret": "0123456789abcdef0123456789abcdef"},
                "api": {"allow_plaintext": True}}
    one = Scheduler(tmp_path / "one", sections=sections, starts=False)
    one.write_config()
    one.config.chmod(0o644)
    one.start()
    line = one.await_log("every user of this machine can read secrets of the settings: chmod 640")
    assert line["settings"] == f"auth.jwt_secret in {one.config}"
    assert "0123456789abcdef" not in one.errors.read_text()
    one.stop()
    refused = one.run("--listen", "0.0.0.0", "--check-config")
    assert refused.returncode == 2 and "chmod 640" in refused.stderr, refused.stderr
    one.config.chmod(0o640)
    assert one.run("--listen", "0.0.0.0", "--check-config").returncode == 0
    keys = tmp_path / "keys"
    keys.write_text("main:" + base64.b64encode(bytes(32)).decode())
    keys.chmod(0o644)
    one.environment = {"GPU_SCHEDULER_STORE_SECRET_KEYS_FILE": str(keys)}
    refused = one.run("--listen", "0.0.0.0", "--check-config")
    assert refused.returncode == 2 and f"store.secret_keys in {keys}" in refused.stderr
    keys.chmod(0o600)
    assert one.run("--listen", "0.0.0.0", "--check-config").returncode == 0


def test_without_sign_in_no_tenant_is_given_a_unix_user(start):
    one = start()
    refused = one.post("/api/v1/tenants", {"name": "lab", "unix_user": "postgres"})
    assert refused.status == 403 and "auth.allow_open_unix_user" in refused.json()["error"]
    assert one.post("/api/v1/tenants", {"name": "lab"}).status == 201
    assert one.put("/api/v1/tenants/lab", {"unix_user": "postgres"}).status == 403
    one.sections = {"auth": {"allow_open_unix_user": True}}
    one.reload()
    one.await_log("the settings were read again")
    assert one.put("/api/v1/tenants/lab", {"unix_user": "postgres"}).status == 200
    one.sections = {}
    one.stop()
    one.start()
    assert one.put("/api/v1/tenants/lab", {"max_gpus": 1}).status == 200, "what is there stays"
    assert one.put("/api/v1/tenants/lab", {"unix_user": "daemon"}).status == 403
    assert one.put("/api/v1/tenants/lab", {"unix_user": None}).status == 200


def test_tokens_outlive_the_process(signed_in):
    for _ in range(2):
        signed_in.stop()
        signed_in.start()
        assert signed_in.get("/api/v1/tenants").status == 200


@pytest.mark.parametrize("role", ["viewer", "gateway", "inference"])
def test_the_role_of_a_token_is_listed(signed_in, role):
    lab = signed_in.post("/api/v1/tenants", {"name": f"lab-{role}"}).json()["id"]
    bound = {} if role == "gateway" else {"tenant_id": lab}
    made = signed_in.post("/api/v1/tokens", {"role": role} | bound)
    assert made.status == 201, made
    [found] = [one for one in signed_in.get("/api/v1/tokens").json()["tokens"]
               if one["id"] == made.json()["id"]]
    assert found["role"] == role


def test_web_tokens_are_accepted_by_the_keys_that_are_configured(start, tmp_path):
    secret = "0123456789abcdef0123456789abcdef"
    other = "abcdef0123456789abcdef0123456789"
    (tmp_path / "other").write_text(other + "\n")
    one = start(
        environment={"GPU_SCHEDULER_AUTH_JWT_SECRET": secret},
        sections={"auth": {"enable": True, "jwt_audience": "gpu",
                           "jwt_keys": [f"other:HS256:{tmp_path}/other"]}},
    )
    good = web_token(secret, aud="gpu", role="admin")
    assert one.get("/api/v1/tenants", token=good).status == 200
    assert one.get("/api/v1/tenants", token=web_token(other, "other", aud="gpu", role="admin")).status == 200
    assert one.get("/api/v1/tenants", token=web_token(other, aud="gpu", role="admin")).status == 401
    assert one.get("/api/v1/tenants", token=web_token(secret, aud="x", role="admin")).status == 401
    assert secret not in one.errors.read_text()
    one.sections["auth"] = {"enable": True}
    one.reload()
    one.await_log("the settings were read again")
    assert one.get("/api/v1/tenants", token=web_token(other, "other", aud="gpu", role="admin")).status == 401


def test_rates_and_origins_change_on_sighup(scheduler):
    origin = {"Origin": "https://a.example"}
    assert scheduler.get("/health", headers=origin).headers["Access-Control-Allow-Origin"] is None
    scheduler.sections = {"api": {"cors_origins": ["https://a.example"]}}
    scheduler.reload()
    scheduler.await_log("the settings were read again")
    answer = scheduler.get("/health", headers=origin)
    assert answer.headers["Access-Control-Allow-Origin"] == "https://a.example"
    scheduler.sections = {"api": {"rate_limit_rps": 1, "rate_limit_burst": 2}}
    scheduler.reload()
    deadline = time.monotonic() + 60
    while (answer := scheduler.get("/api/v1/tenants")).status != 429:
        assert time.monotonic() < deadline
    assert int(answer.headers["Retry-After"]) >= 1


def test_a_body_over_the_limit_is_refused(start):
    one = start(sections={"limits": {"body_bytes": 2048}})
    assert one.post("/api/v1/tenants", {"name": "a", "email": "x" * 4096}).status == 413


def make_certificate(folder, name):
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
         "-nodes", "-days", "2", "-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True,
    )


def served_certificate(port):
    unchecked = ssl._create_unverified_context()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        with unchecked.wrap_socket(connection) as secure:
            return secure.getpeercert(binary_form=True)


def test_tls_is_served_and_the_certificate_read_again(start, tmp_path):
    make_certificate(tmp_path, "first")
    paths = {"tls_cert_path": str(tmp_path / "cert.pem"), "tls_key_path": str(tmp_path / "key.pem")}
    one = start(sections={"api": {"enable_tls": True} | paths})
    assert one.url.startswith("https://")
    assert one.get("/health").status == 200
    first = served_certificate(one.port)
    make_certificate(tmp_path, "second")
    one.reload()
    one.await_log("the settings were read again")
    assert served_certificate(one.port) != first
    (tmp_path / "cert.pem").write_text("broken")
    one.reload()
    one.await_log("the certificate stays as it was")
    assert one.get("/health").status == 200


def test_secrets_are_sealed_with_the_configured_key(start, tmp_path):
    key = "k1:" + base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
    (tmp_path / "keys").write_text(key + "\n")
    job = {"command": ["true"], "secret_environment": {"API_KEY": "very-secret-value"}}
    one = start()
    tenant = one.post("/api/v1/tenants", {"name": "lab"}).json()["id"]
    assert one.post("/api/v1/jobs", job | {"tenant_id": tenant}).status >= 400
    one.stop()
    one.sections = {"store": {"secret_keys_file": str(tmp_path / "keys")}}
    one.start()
    assert one.post("/api/v1/jobs", job | {"tenant_id": tenant}).status == 201
    one.stop()
    for path in one.directory.rglob("*"):
        assert not path.is_file() or b"very-secret-value" not in path.read_bytes(), path


def test_requests_in_flight_are_answered_before_it_ends(scheduler):
    """A request whose body comes slowly is under way when the signal comes."""
    body = json.dumps({"name": "late"}).encode()
    with socket.create_connection(("127.0.0.1", scheduler.port), timeout=60) as client:
        client.sendall(b"POST /api/v1/tenants HTTP/1.1\r\nHost: localhost\r\n"
                       b"Content-Type: application/json\r\n"
                       b"Content-Length: %d\r\n\r\n" % len(body) + body[:5])
        time.sleep(1)
        scheduler.process.terminate()
        time.sleep(1)
        client.sendall(body[5:])
        answer = client.recv(65536)
    assert answer.startswith(b"HTTP/1.1 201 "), answer
    scheduler.stop()
    scheduler.start()
    names = [tenant["name"] for tenant in scheduler.get("/api/v1/tenants").json()["tenants"]]
    assert names == ["late"]


@pytest.mark.parametrize("field, value", [
    ("notify_webhook", "file:///etc/passwd"),
    ("notify_webhook", "https://"),
    ("notify_webhook", "gopher://example.org/"),
    ("notify_webhook", "https://user:secret@example.org/"),
    ("notify_webhook", "https://example.org/\r\nX: y"),
    ("notify_webhook", "http://127.0.0.1:8080/"),
    ("notify_webhook", "http://127.1/"),
    ("notify_webhook", "http://0x7f000001/"),
    ("notify_webhook", "http://[::1]/"),
    ("notify_webhook", "http://[::ffff:10.0.0.1]/"),
    ("notify_webhook", "http://169.254.169.254/latest/meta-data"),
    ("notify_webhook", "http://localhost/"),
    ("notify_email", "a@b\r\nBCC: x@example.org"),
    ("email", "a@b\r\nBCC: x@example.org"),
    ("notify_email", "a@example.org,b@example.org"),
    ("notify_email", "nobody"),
    ("notify_email", True),
])
def test_what_cannot_be_notified_is_refused_at_once(shared_scheduler, field, value):
    refused = shared_scheduler.post("/api/v1/tenants", {"name": "lab", field: value})
    assert refused.status == 400 and field in refused.json()["error"], refused
    assert shared_scheduler.get("/api/v1/tenants/lab").status == 404


def test_webhooks_and_addresses_that_are_good_are_taken(shared_scheduler):
    made = shared_scheduler.post("/api/v1/tenants", {
        "name": "told", "notify_webhook": "https://hooks.example.org/x?y=z", "notify_email": True,
        "email": "name@example.org"})
    assert made.status == 201, made
