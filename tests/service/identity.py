"""A real provider of OpenID Connect for tests (node-oidc-provider), its keys, and browsers."""

import html.parser
import http.client
import json
import pathlib
import shutil
import socket
import subprocess
import urllib.parse

import pytest

from calls import base64url

HERE = pathlib.Path(__file__).resolve().parent
MODULES = HERE.parent.parent / "build" / "node" / "node_modules"
SECRET = "the secret of the client at the provider"
GROUPS = ["gpu-admins=admin", "cn=ml,ou=teams=tenant:vision", "auditors=viewer"]
PEOPLE = {"root": ["gpu-admins"], "alice": ["staff", "cn=ml,ou=teams"], "bob": ["cn=ml,ou=teams"],
          "eve": ["staff"], "audrey": ["auditors"]}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def openssl(*arguments, data=b""):
    return subprocess.run(["openssl", *arguments], input=data, capture_output=True,
                          check=True).stdout


class Key:
    """A key pair of the provider, by openssl."""

    def __init__(self, directory, kid):
        self.kid, self.path = kid, directory / f"{kid}.pem"
        openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out",
                str(self.path))
        self.public = openssl("pkey", "-in", str(self.path), "-pubout").decode()
        modulus = openssl("rsa", "-in", str(self.path), "-noout", "-modulus").decode()
        number = bytes.fromhex(modulus.strip().split("=")[1])
        self.jwk = {"kty": "RSA", "kid": kid, "use": "sig", "alg": "RS256",
                    "n": base64url(number), "e": "AQAB"}

    def sign(self, text):
        return openssl("dgst", "-sha256", "-sign", str(self.path), data=text)

    def private_jwk(self):
        """For node, which reads JWKs."""
        made = subprocess.run(
            ["node", "-e", "const c=require('crypto');console.log(JSON.stringify("
             "c.createPrivateKey(require('fs').readFileSync(process.argv[1])).export("
             "{format:'jwk'})))", str(self.path)], capture_output=True, check=True)
        return json.loads(made.stdout) | {"kid": self.kid, "use": "sig", "alg": "RS256"}


class Provider:
    """node-oidc-provider. It can end and begin again on its port, with other keys."""

    def __init__(self, directory, key, redirect, secret=SECRET):
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        home = redirect.removesuffix("api/v1/login/callback")
        self.given = {"port": self.port, "secret": secret, "accounts": PEOPLE,
                      "algorithm": "RS256", "redirects": [redirect], "homes": [home]}
        self.program = directory / "provider.mjs"
        shutil.copy(HERE / "provider.mjs", self.program)
        (directory / "node_modules").symlink_to(MODULES)
        self.begin(key)

    def begin(self, key):
        given = json.dumps(self.given | {"keys": [key.private_jwk()]})
        self.process = subprocess.Popen(["node", str(self.program), given], text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.process.stdout.readline() == "ready\n"

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Form(html.parser.HTMLParser):
    """The first form of a page, with the values of its fields."""

    def __init__(self, page):
        super().__init__()
        self.action, self.fields, self.text = None, {}, page
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "form" and self.action is None:
            self.action = given.get("action")
        elif tag == "input" and given.get("name") and self.action is not None:
            self.fields.setdefault(given["name"], given.get("value") or "")


class Browser:
    """Keeps cookies by host and port, as browsers should, and follows links and forms."""

    def __init__(self):
        self.cookies, self.set_cookies = {}, []

    def send(self, method, url, form=None, headers=None):
        parts = urllib.parse.urlsplit(url)
        jar = self.cookies.setdefault(parts.netloc, {})
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        headers = dict(headers or {})
        if jar:
            headers["Cookie"] = "; ".join(f"{k}={v}" for k, v in jar.items())
        body = None
        if form is not None:
            body = urllib.parse.urlencode(form)
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, (parts.path or "/") + ("?" + parts.query if parts.query else ""),
                           body, headers)
        answer = connection.getresponse()
        answer.text = answer.read().decode()
        connection.close()
        for line in answer.headers.get_all("set-cookie") or []:
            self.set_cookies.append(line)
            name, _, value = line.split(";")[0].partition("=")
            gone = "max-age=0" in line.lower().replace(" ", "") or not value
            if gone:
                jar.pop(name, None)
            else:
                jar[name] = value
        return answer

    def go(self, url, until):
        """Follows redirects until one leads to an address that begins so, which is given."""
        for _ in range(12):
            if url.startswith(until):
                return url
            answer = self.send("GET", url)
            if answer.status not in (302, 303):
                return url, answer
            url = urllib.parse.urljoin(url, answer.headers["location"])
        raise AssertionError("the redirects do not end")

    def sign_in(self, url, name, until):
        """Fills in the provider's pages; where they send the browser back to, or the address and
        the answer of a page without a form."""
        came = self.go(url, until)
        for _ in range(8):
            if isinstance(came, str):
                return came
            at, answer = came
            form = Form(answer.text)
            if form.action is None:
                return came
            fields = form.fields
            if "login" in fields:
                fields |= {"login": name, "password": "any"}
            url = urllib.parse.urljoin(at, form.action)
            answer = self.send("POST", url, fields)
            came = (url, answer)
            if answer.status in (302, 303):
                came = self.go(urllib.parse.urljoin(url, answer.headers["location"]), until)
        raise AssertionError("the provider's pages do not end")


def settings(issuer, redirect, **more):
    return {"auth": {"enable": True},
            "oidc": {"issuer": issuer, "name": "Example ID", "client_id": "gpu-scheduler",
                     "client_secret": SECRET, "groups": GROUPS, "redirect_url": redirect} | more}


class Setting:
    """A scheduler and its provider."""

    def __init__(self, start, directory, **more):
        port = free_port()
        self.redirect = f"http://127.0.0.1:{port}/api/v1/login/callback"
        self.key = Key(directory, "first")
        self.provider = Provider(directory, self.key, self.redirect)
        self.scheduler = start(sections=settings(self.provider.issuer, self.redirect, **more),
                               http=port, starts=False)
        self.scheduler.write_config()
        made = self.scheduler.run("token", "create")
        assert made.returncode == 0, made.stderr
        self.scheduler.token = made.stdout.strip()
        self.scheduler.start()
        made = self.scheduler.post("/api/v1/tenants", {"name": "vision"})
        assert made.status == 201, made
        self.tenant = made.json()["id"]

    def url(self, path):
        return self.scheduler.url.rstrip("/") + path

    def ask(self, browser, path, method="GET", **headers):
        answer = browser.send(method, self.url(path), headers=headers)
        return answer.status, json.loads(answer.text) if answer.text else None

    def sign_in(self, name, browser=None):
        """By a browser; it has the session afterwards."""
        browser = browser or Browser()
        back = browser.sign_in(self.url("/api/v1/login/start"), name, self.redirect)
        assert isinstance(back, str), back
        answer = browser.send("GET", back)
        return browser, answer, back

    def device(self):
        answer = self.scheduler.request("POST", "/api/v1/login/device", {},
                                        headers={"Authorization": ""})
        assert answer.status == 200, answer
        return answer.json()

    def poll(self, device):
        return self.scheduler.request("POST", "/api/v1/login/device/token",
                                      {"device_code": device["device_code"]})


needs_node = pytest.mark.skipif(not shutil.which("node") or not (MODULES / "oidc-provider").is_dir(),
                                reason="npm could not fetch the provider of the tests")
