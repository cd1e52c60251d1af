"""Single sign-on: a real provider of OpenID Connect (node-oidc-provider) signs people in with a
browser and with device codes; and a provider that lies about everything."""

import base64
import hashlib
import http.client
import http.server
import json
import os
import subprocess
import threading
import time
import urllib.parse

import pytest

from calls import base64url, jwt, wait_for
from identity import HERE, SECRET, Browser, Key, Setting, free_port, needs_node, settings


@pytest.fixture
def setting(start, tmp_path):
    one = Setting(start, tmp_path)
    yield one
    one.provider.end()


@needs_node
def test_a_browser_signs_in_and_out(setting):
    browser, answer, back = setting.sign_in("alice")
    assert answer.status == 303 and answer.headers["location"] == setting.url("/"), answer.text
    session = next(line for line in browser.set_cookies if line.startswith("gpu-scheduler="))
    for word in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert word in session
    status, who = setting.ask(browser, "/api/v1/session")
    assert status == 200 and who["user"] == "alice" and who["tenant"] == "vision", who
    assert who["role"] == "tenant" and who["single_sign_on"] and who["expires_at"]
    # The same answer of the provider does not sign in a second time.
    assert browser.send("GET", back).status == 403
    assert Browser().send("GET", back).status == 403
    # The session is in the list of tokens and in the audit log, and lasts over a restart.
    listed = setting.scheduler.get("/api/v1/tokens").json()["tokens"]
    assert [one["user"] for one in listed if one.get("user")] == ["alice"]
    entries = setting.scheduler.get("/api/v1/audit").json()["entries"]
    assert [(one["who"], one["action"]) for one in entries][0] == ("user alice", "sign in")
    setting.scheduler.stop()
    setting.scheduler.ports["http"] = urllib.parse.urlsplit(setting.redirect).port
    setting.scheduler.start()
    assert setting.ask(browser, "/api/v1/session")[0] == 200
    status, out = setting.ask(browser, "/api/v1/logout", "POST", Origin=setting.url(""))
    assert status == 200, out
    assert out["provider_url"].startswith(f"{setting.provider.issuer}/session/end?"), out
    assert setting.ask(browser, "/api/v1/session")[0] == 401
    assert browser.send("GET", out["provider_url"]).status == 200


@needs_node
def test_groups_decide_what_people_may_do(setting):
    browser, answer, _ = setting.sign_in("root")
    assert setting.ask(browser, "/api/v1/session")[1]["role"] == "admin", answer.text
    assert setting.ask(browser, "/api/v1/tokens")[0] == 200
    browser, answer, _ = setting.sign_in("audrey")
    assert setting.ask(browser, "/api/v1/session")[1]["role"] == "viewer", answer.text
    assert setting.ask(browser, "/api/v1/tokens")[0] == 403
    browser, answer, _ = setting.sign_in("eve")
    assert answer.status == 403 and "eve is in no group that may sign in here" in answer.text
    assert setting.ask(browser, "/api/v1/session")[0] == 401
    assert setting.scheduler.delete(f"/api/v1/tenants/{setting.tenant}").status == 200
    browser, answer, _ = setting.sign_in("bob")
    assert answer.status == 403 and "does not exist" in answer.text


@needs_node
def test_the_cookie_serves_pages_of_this_service_alone(setting):
    browser, _, _ = setting.sign_in("alice")
    own = setting.url("").rstrip("/")
    job = json.dumps({"name": "x", "gpu_count": 1, "command": ["true"]})

    def submit(**headers):
        parts = urllib.parse.urlsplit(own)
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        cookie = "; ".join(f"{k}={v}" for k, v in browser.cookies[parts.netloc].items())
        connection.request("POST", "/api/v1/jobs", job, {"Cookie": cookie} | headers)
        answer = connection.getresponse()
        answer.read()
        connection.close()
        return answer.status

    assert submit(Origin=own) in (200, 201, 202)
    assert submit(**{"Sec-Fetch-Site": "same-origin"}) in (200, 201, 202)
    assert submit() == 401
    assert submit(Origin="http://127.0.0.1:1") in (401, 403)
    assert submit(**{"Sec-Fetch-Site": "same-site"}) == 401
    assert submit(**{"Sec-Fetch-Site": "cross-site"}) == 401
    assert setting.ask(browser, "/api/v1/session", **{"Sec-Fetch-Site": "cross-site"})[0] == 401


@needs_node
def test_a_device_signs_in(setting):
    device = setting.device()
    assert setting.poll(device).json() == {"status": "pending"}
    browser = Browser()
    came = browser.sign_in(device["verification_uri_complete"], "bob", "nowhere")
    assert came[1].status == 200, came[1].text
    answer = wait_for(lambda: (one := setting.poll(device)).status == 200 and one)
    made = answer.json()
    assert made["user"] == "bob" and made["role"] == "tenant" and made["tenant_id"]
    assert setting.scheduler.get("/api/v1/session", token=made["token"]).json()["user"] == "bob"
    # The code is good for one session.
    assert setting.poll(device).status == 403
    # Revoked by an administrator, it ends at once.
    assert setting.scheduler.delete(f"/api/v1/tokens/{made['id']}").status == 200
    assert setting.scheduler.get("/api/v1/session", token=made["token"]).status == 401


@needs_node
def test_gpu_cli_signs_in_and_out(setting, tmp_path):
    cli = HERE.parent.parent / "bin" / "gpu-cli"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GPU_SCHEDULER_")}
    environment["GPU_SCHEDULER_CONFIG"] = str(tmp_path / "cli" / "config.yaml")
    login = subprocess.Popen([cli, "login", "lab", "--server", setting.url(""), "--sso"],
                             env=environment, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    said = ""
    while "/device?user_code=" not in said:
        line = login.stderr.readline()
        assert line, said
        said += line
    url = next(word for word in said.split() if "/device?user_code=" in word)
    came = Browser().sign_in(url, "alice", "nowhere")
    assert came[1].status == 200, came[1].text
    output, errors = login.communicate(timeout=120)
    assert login.returncode == 0 and "Signed in as alice." in errors, output + errors
    token = (tmp_path / "cli" / "lab.token")
    assert token.stat().st_mode & 0o777 == 0o600

    def run(*arguments):
        return subprocess.run([cli, *arguments], env=environment, text=True, capture_output=True,
                              timeout=60)

    submitted = run("submit", "--name", "mine", "--gpus", "1", "--", "true")
    assert submitted.returncode == 0, submitted.stderr
    assert "mine" in run("list", "--mine").stdout
    out = run("logout")
    assert out.returncode == 0 and "is signed out" in out.stdout, out.stderr
    assert not token.exists()
    assert run("list").returncode != 0


@needs_node
def test_new_keys_of_the_provider_are_found(setting, tmp_path):
    assert setting.sign_in("alice")[1].status == 303
    setting.provider.end()
    setting.provider.begin(Key(tmp_path, "second"))
    # Keys are fetched again at most once a second.
    wait_for(lambda: setting.sign_in("alice")[1].status == 303)


@needs_node
def test_a_provider_that_is_gone_is_an_error_with_a_reason(setting):
    setting.provider.end()
    answer = Browser().send("GET", setting.url("/api/v1/login/start"))
    assert answer.status == 502 and "provider" in answer.text
    assert setting.scheduler.get("/api/v1/session").status == 200
    setting.provider.begin(setting.key)
    assert setting.sign_in("alice")[1].status == 303


class Liar(http.server.ThreadingHTTPServer):
    """A provider that gives the ID token that the test wants, at any code."""

    def __init__(self, key):
        self.key, self.id_token, self.discovery, self.asked = key, None, {}, []
        super().__init__(("127.0.0.1", 0), LiarHandler)
        self.issuer = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def claims(self, nonce, **more):
        now = int(time.time())
        return {"iss": self.issuer, "aud": "gpu-scheduler", "sub": "u-1", "nonce": nonce,
                "preferred_username": "mallory", "groups": ["gpu-admins"], "iat": now,
                "exp": now + 300} | more


class LiarHandler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, what):
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        server = self.server
        if self.path.endswith("openid-configuration"):
            self.answer({"issuer": server.issuer,
                         "authorization_endpoint": f"{server.issuer}/auth",
                         "token_endpoint": f"{server.issuer}/token",
                         "jwks_uri": f"{server.issuer}/keys"} | server.discovery)
        else:
            self.answer({"keys": [server.key.jwk]})

    def do_POST(self):
        size = int(self.headers["Content-Length"])
        self.server.asked.append((self.headers, urllib.parse.parse_qs(self.rfile.read(size).decode())))
        self.answer({"access_token": "x", "token_type": "Bearer", "id_token": self.server.id_token})


class Attack:
    def __init__(self, start, directory):
        port = free_port()
        self.redirect = f"http://127.0.0.1:{port}/api/v1/login/callback"
        self.key = Key(directory, "k")
        self.liar = Liar(self.key)
        self.scheduler = start(sections=settings(self.liar.issuer, self.redirect), http=port)

    def begin(self):
        browser = Browser()
        answer = browser.send("GET", self.scheduler.url.rstrip("/") + "/api/v1/login/start")
        assert answer.status == 303, answer.text
        return browser, {k: v[0] for k, v in urllib.parse.parse_qs(
            urllib.parse.urlsplit(answer.headers["location"]).query).items()}

    def end(self, browser, **query):
        return browser.send("GET", f"{self.redirect}?{urllib.parse.urlencode(query)}")

    def try_token(self, make):
        """Signs in with the token that `make` gives for a nonce; the status of the answer."""
        browser, asked = self.begin()
        self.liar.id_token = make(asked["nonce"])
        answer = self.end(browser, code="c", state=asked["state"])
        who = browser.send("GET", self.scheduler.url.rstrip("/") + "/api/v1/session")
        assert (who.status == 200) == (answer.status == 303), answer.text
        return answer.status


@pytest.fixture
def attack(start, tmp_path):
    one = Attack(start, tmp_path)
    yield one
    one.liar.shutdown()
    one.liar.server_close()


def change(token):
    """Another character in its signature."""
    return f"{token[:-20]}{'x' if token[-20] != 'x' else 'y'}{token[-19:]}"


def test_forged_expired_and_replayed_tokens_are_refused(attack, tmp_path):
    liar, key, other = attack.liar, attack.key, Key(tmp_path, "other")
    header = {"alg": "RS256", "kid": "k"}

    def signed(nonce, by=key, head=header, **more):
        return jwt(liar.claims(nonce) | more, header=head, sign=by.sign)

    assert attack.try_token(signed) == 303
    old = liar.id_token
    forged = {
        "another key": lambda nonce: signed(nonce, by=other),
        "no signature": lambda nonce: jwt(liar.claims(nonce), header={"alg": "none"},
                                          sign=lambda text: b""),
        "none by its name": lambda nonce: jwt(liar.claims(nonce),
                                              header={"alg": "none", "kid": "k"},
                                              sign=lambda text: b"x"),
        "the public key as a secret": lambda nonce: jwt(
            liar.claims(nonce), key.public, header={"alg": "HS256", "kid": "k"}),
        "the client's secret": lambda nonce: jwt(liar.claims(nonce), SECRET,
                                                 header={"alg": "HS256"}),
        "a key of its own": lambda nonce: signed(nonce, by=other, head={
            "alg": "RS256", "kid": "k", "jwk": other.jwk}),
        "changed": lambda nonce: change(signed(nonce)),
        "expired": lambda nonce: signed(nonce, exp=int(time.time()) - 60),
        "without an end": lambda nonce: signed(nonce, exp=None),
        "another issuer": lambda nonce: signed(nonce, iss="http://127.0.0.1:1"),
        "another audience": lambda nonce: signed(nonce, aud="another"),
        "another party": lambda nonce: signed(nonce, azp="another"),
        "replayed": lambda nonce: old,
        "without a nonce": lambda _: signed(None),
        "nothing": lambda nonce: "",
        "the name of an API token": lambda nonce: signed(
            nonce, preferred_username="t-20df1e19dc55"),
    }
    let_in = [name for name, make in forged.items() if attack.try_token(make) == 303]
    assert let_in == []


def test_the_code_and_the_secret_go_to_the_provider_alone(attack):
    attack.try_token(lambda nonce: "")
    headers, form = attack.liar.asked[-1]
    pair = base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode()
    assert pair == f"gpu-scheduler:{urllib.parse.quote(SECRET)}"
    assert form["redirect_uri"] == [attack.redirect] and form["code"] == ["c"]
    browser, asked = attack.begin()
    attack.end(browser, code="c", state=asked["state"])
    verifier = attack.liar.asked[-1][1]["code_verifier"][0]
    digest = hashlib.sha256(verifier.encode()).digest()
    assert asked["code_challenge"] == base64url(digest)
    assert asked["code_challenge_method"] == "S256"
    text = attack.scheduler.errors.read_text()
    assert SECRET not in text and verifier not in text and asked["state"] not in text


def test_a_sign_in_that_this_browser_did_not_begin_is_refused(attack):
    good = {"alg": "RS256", "kid": "k"}
    browser, asked = attack.begin()
    attack.liar.id_token = jwt(attack.liar.claims(asked["nonce"]), header=good,
                               sign=attack.key.sign)
    other, others = attack.begin()
    before = len(attack.liar.asked)
    assert attack.end(other, code="c", state=asked["state"]).status == 403
    assert attack.end(Browser(), code="c", state=asked["state"]).status == 403
    assert attack.end(browser, code="c", state="x").status == 403
    assert attack.end(browser, code="c").status == 403
    assert attack.end(browser, code="c", state=asked["state"], iss="http://evil").status == 403
    answer = attack.end(browser, error="access_denied", state=asked["state"],
                        error_description="<script>")
    assert answer.status == 403 and "<script>" not in answer.text
    assert len(attack.liar.asked) == before, "the provider was asked for a refused sign-in"
    assert attack.end(browser, code="c", state=asked["state"]).status == 303


def test_a_provider_that_is_not_the_configured_one_is_refused(attack):
    attack.liar.discovery = {"issuer": "http://127.0.0.1:1"}
    answer = Browser().send("GET", attack.scheduler.url.rstrip("/") + "/api/v1/login/start")
    assert answer.status == 502 and "oidc.issuer" in answer.text
    attack.liar.discovery = {"token_endpoint": "http://example.org/token"}
    answer = Browser().send("GET", attack.scheduler.url.rstrip("/") + "/api/v1/login/start")
    assert answer.status == 502 and "https://" in answer.text


def test_settings_that_let_nobody_or_anybody_in_are_refused(start, tmp_path):
    good = settings("http://127.0.0.1:1", "http://127.0.0.1:2/api/v1/login/callback")
    wrong = {
        "issuer": "http://example.org", "client_id": "", "groups": ["admins=boss"],
        "redirect_url": "http://example.org/api/v1/login/callback",
        "ca_path": "/nowhere/at/all",
    }
    for key, value in wrong.items():
        sections = good | {"oidc": good["oidc"] | {key: value}}
        one = start(sections=sections, starts=False)
        one.start(waits=False)
        assert one.process.wait(60) != 0, key
        assert key in one.errors.read_text() or str(value) in one.errors.read_text(), key
    one = start(sections=good | {"auth": {"enable": False}}, starts=False)
    one.start(waits=False)
    assert one.process.wait(60) != 0


def test_without_a_provider_nobody_signs_in_so(scheduler):
    assert scheduler.get("/api/v1/login").json() == {"provider": None, "browser": False}
    assert scheduler.get("/api/v1/login/start").status == 404
    assert scheduler.post("/api/v1/login/device", {}).status == 404
    assert scheduler.post("/api/v1/logout").status == 409
