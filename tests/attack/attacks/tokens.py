"""Forged tokens, and good ones used for more than they are for."""

import base64
import hashlib
import hmac
import http.client
import json
import subprocess

from attack import attack, defeat
from calls import base64url
from target import AUDIENCE, ISSUER, JWT_SECRET


def enters(site, token, path="/api/v1/jobs"):
    """Whether a token lets its holder in."""
    return site.scheduler.get(path, headers={"Authorization": f"Bearer {token}"}).status < 400


def try_all(site, tokens):
    """Decides for the enemy where one of the tokens, by name, is accepted."""
    for name, token in tokens.items():
        defeat(enters(site, token), f"accepted: {name}")
    assert enters(site, site.jwt()), "a good token is refused too: the attack proves nothing"
    return f"{len(tokens)} forged tokens got 401: {', '.join(tokens)}"


def openssl_sign(site, key, *options):
    def sign(text):
        return subprocess.run(["openssl", "dgst", "-sha256", "-sign", site.directory / key,
                               *options], input=text, check=True, capture_output=True).stdout
    return sign


@attack("anonymous", "a forger signs with no algorithm at all")
def none_algorithm(world):
    words = ["none", "None", "NONE", "nOnE", "", None, 0, ["none"]]
    tokens = {f"alg {word!r}": world.site.jwt(header={"alg": word}, sign=lambda text: b"")
              for word in words}
    tokens["no alg"] = world.site.jwt(header={"typ": "JWT"}, sign=lambda text: b"")
    tokens["no signature part"] = world.site.jwt().rpartition(".")[0]
    tokens["an empty signature"] = world.site.jwt().rpartition(".")[0] + "."
    return try_all(world.site, tokens)


@attack("anonymous", "a forger uses the public RSA or EC key as the secret of HS256")
def confused_algorithm(world):
    tokens = {}
    for name in ("rsa", "ec"):
        public = (world.site.directory / f"{name}-public.pem").read_text()
        for text in (public, public.strip(), public + "\n"):
            for header in ({"alg": "HS256"}, {"alg": "HS256", "kid": name}):
                tokens[f"{name} {len(text)} {sorted(header)}"] = world.site.jwt(
                    secret=text, header=header)
    tokens["HS256 named RS256"] = world.site.jwt(header={"alg": "RS256"})
    tokens["HS256 named ES256 of ec"] = world.site.jwt(header={"alg": "ES256", "kid": "ec"})
    return try_all(world.site, tokens)


@attack("anonymous", "a forger has a signature of RSA that is not PKCS #1 v1.5 with SHA-256")
def other_padding(world):
    site, header = world.site, {"alg": "RS256", "kid": "rsa"}
    pss = openssl_sign(site, "rsa.pem", "-sigopt", "rsa_padding_mode:pss")
    good = openssl_sign(site, "rsa.pem")
    tokens = {
        "PSS": site.jwt(header=header, sign=pss),
        "PSS as PS256": site.jwt(header={**header, "alg": "PS256"}, sign=pss),
        "named RS512": site.jwt(header={**header, "alg": "RS512"}, sign=good),
        "all zero": site.jwt(header=header, sign=lambda text: bytes(256)),
        "a leading zero": site.jwt(header=header, sign=lambda text: b"\0" + good(text)),
        "of another text": site.jwt(header=header, sign=lambda text: good(text + b" ")),
    }
    return try_all(site, tokens)


@attack("anonymous", "a forger has a signature of ECDSA that is degenerate or in another form")
def degenerate_ecdsa(world):
    site, header = world.site, {"alg": "ES256", "kid": "ec"}
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    numbers = {"0": 0, "1": 1, "n": order, "n-1": order - 1, "max": (1 << 256) - 1}
    tokens = {f"r={r} s={s}": site.jwt(
        header=header, sign=lambda text, r=r, s=s: numbers[r].to_bytes(32, "big")
        + numbers[s].to_bytes(32, "big")) for r in numbers for s in numbers}
    tokens["DER"] = site.jwt(header=header, sign=openssl_sign(site, "ec.pem"))
    tokens["one byte"] = site.jwt(header=header, sign=lambda text: b"\1")
    return try_all(site, tokens)


@attack("anonymous", "a forger names a key by a path, a query or a number")
def key_traversal(world):
    kids = ["../../../../dev/null", "/dev/null", "rsa-public.pem", "' OR 1=1 --", "RSA", "rsa ",
            "rsa\u0000", "", None, 0, ["rsa"], "x" * 5000]
    tokens = {f"kid {str(kid)[:20]!r}": world.site.jwt(secret="", header={"alg": "HS256", "kid": kid})
              for kid in kids}
    tokens["jku"] = world.site.jwt(secret="x" * 40, header={
        "alg": "HS256", "jku": f"http://127.0.0.1:{world.site.http.port}/keys"})
    tokens["jwk"] = world.site.jwt(secret="x" * 40, header={
        "alg": "HS256", "jwk": {"kty": "oct", "k": base64url(b"x" * 40)}})
    return try_all(world.site, tokens)


@attack("token thief", "a token that expired, is not valid yet or never expires is used")
def times(world):
    site = world.site
    tokens = {"expired": site.jwt(seconds=-3600), "early": site.jwt(nbf=4e9)}
    odd = {"none": None, "text": "9999999999", "list": [9e9], "true": True, "negative": -1,
           "minus zero": -0.0}
    for name, value in odd.items():
        tokens[f"exp {name}"] = site.jwt(exp=value)
    for raw in ("1e999", "-1e999", "1E400", "NaN", "Infinity", "0x7fffffff", "99999999999999999999999"):
        tokens[f"exp {raw}"] = raw_jwt(f'{{"role":"admin","aud":"{AUDIENCE}","iss":"{ISSUER}","exp":{raw}}}')
    return try_all(site, tokens)


def raw_jwt(claims_text, header_text='{"alg":"HS256"}'):
    """A token with these very texts, signed properly."""
    text = f"{base64url(header_text.encode())}.{base64url(claims_text.encode())}"
    signature = hmac.new(JWT_SECRET.encode(), text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64url(signature)}"


@attack("token thief", "a token made for another service is used here")
def audiences(world):
    site = world.site
    tokens = {}
    for name, value in {"another": "another", "none": None, "a list without it": ["x", "y"],
                        "a prefix": "gpu", "longer": "gpu-scheduler-2", "upper": "GPU-SCHEDULER",
                        "an object": {"gpu-scheduler": 1}, "true": True}.items():
        tokens[f"aud {name}"] = site.jwt(aud=value)
    for value in ("https://evil.example", None, ISSUER + "/", ISSUER.upper(), [ISSUER], 7):
        tokens[f"iss {value}"] = site.jwt(iss=value)
    return try_all(site, tokens)


@attack("anonymous", "a token is read in two ways: members twice, extensions, padding, other alphabets")
def ambiguous(world):
    site, good = world.site, world.site.jwt()
    head, body, signature = good.split(".")
    claims_text = f'"aud":"{AUDIENCE}","iss":"{ISSUER}","exp":9999999999'
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    other = last[last.index(signature[-1]) ^ 1]
    tokens = {
        "crit": site.jwt(header={"alg": "HS256", "crit": ["exp"]}),
        "an empty crit": site.jwt(header={"alg": "HS256", "crit": []}),
        "b64 false": site.jwt(header={"alg": "HS256", "b64": False, "crit": ["b64"]}),
        "role twice": raw_jwt('{"role":"viewer","role":"admin",%s}' % claims_text),
        "alg twice": raw_jwt('{"role":"admin",%s}' % claims_text, '{"alg":"none","alg":"HS256"}'),
        "padding": f"{good}=", "padding inside": f"{head}=.{body}.{signature}",
        "a changed last character": good[:-1] + other,
        "a space": good[:20] + " " + good[20:], "a fourth part": good + ".x",
        "standard base64": f"{head}.{body}.{base64.b64encode(b'x' * 32).decode()}",
        "a trailing dot": good + ".", "text after the claims": raw_jwt('{"role":"admin",%s} x' % claims_text),
        "claims in a list": raw_jwt('[{"role":"admin",%s}]' % claims_text),
        "JSON by itself": json.dumps({"role": "admin"}),
    }
    return try_all(site, tokens)


@attack("tenant", "a signed token names a role, tenant or node that gives more than was meant")
def roles(world):
    site = world.site
    wrong = {"role root": {"role": "root"}, "role Admin": {"role": "Admin"},
             "role list": {"role": ["admin"]}, "role null": {"role": None},
             "role admin with NUL": {"role": "admin\u0000x"}, "role empty": {"role": ""}}
    tokens = {name: site.jwt(**fields) for name, fields in wrong.items()}
    for value in (None, "", "*", ["enemy"], "enemy\u0000", True):
        tokens[f"tenant {value!r}"] = site.jwt("tenant", tenant=value)
    return try_all(site, tokens)


@attack("anonymous", "a stranger signs in by a header that only looks like a token")
def odd_headers(world):
    site, good = world.site, world.site.admin.token
    values = ["Basic " + base64.b64encode(b"admin:").decode(), f"Token {good}", good,
              f"Bearer  {good[:-1]}", f"Bearer {good[:-1]}", f"Bearer {good}x", "Bearer",
              "Bearer ", f"Bearer {good.upper()}", f"Bearer {good[:10]}%", "Bearer gst_" + "A" * 43,
              "Bearer gst_" + "A" * 100000, "Bearer " + "." * 1000, f"Bearer {good},{good}"]
    for value in values:
        answer = site.http.ask(b"GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close"
                               b"\r\nAuthorization: " + value.encode() + b"\r\n\r\n")
        defeat(answer.startswith(b"HTTP/1.1 200"), f"{value[:40]} was let in")
    twice = site.http.ask(f"GET /api/v1/jobs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                          f"Authorization: Bearer nonsense\r\nAuthorization: Bearer {good}"
                          f"\r\n\r\n".encode())
    defeat(b" 200 " in twice[:20], "a second Authorization header was believed")
    for query in (f"?token={good}", f"?access_token={good}", f"?authorization=Bearer%20{good}"):
        answer = site.scheduler.get(f"/api/v1/jobs{query}", headers={"Authorization": "x"})
        defeat(answer.status == 200, "a token in the query, where logs keep it, is let in")
    return f"{len(values) + 4} headers and queries got 401, 400 or 431"


@attack("tenant", "a tenant, a viewer or a node makes itself an administrator's token")
def make_tokens(world):
    site = world.site
    people = [site.enemy, site.person(site.enemy.tenant, role="viewer"), site.node_token()]
    for person in people:
        for body in ({"role": "admin"}, {"role": "tenant", "tenant_id": site.victim.tenant},
                     {"role": "agent"}, {"role": "viewer"}):
            answer = person.post("/api/v1/tokens", body)
            defeat(answer.status in (200, 201), f"{body} made by {answer}")
        for method, path in (("GET", "/api/v1/tokens"), ("GET", "/api/v1/audit"),
                             ("DELETE", f"/api/v1/tokens/{site.victim.token_id}")):
            defeat(person.ask(method, path).status < 400, f"{method} {path} is allowed")
    defeat(site.victim.get("/api/v1/session").status != 200, "the victim's token was revoked")
    return "3 roles: 12 tokens refused, lists, audit and revocation too"


@attack("token thief", "the token of a tenant that was deleted still signs in")
def deleted_tenant(world):
    site = world.site
    person = site.tenant_person("short-lived")
    assert person.get("/api/v1/session").status == 200
    assert site.admin.delete(f"/api/v1/tenants/{person.tenant}").status in (200, 204)
    answers = [person.get("/api/v1/session").status, person.get("/api/v1/jobs").status,
               site.jwt_person("tenant", tenant=person.tenant).get("/api/v1/jobs").status,
               site.jwt_person("tenant", tenant="tenant-99999").get("/api/v1/jobs").status]
    defeat(any(status < 400 for status in answers), f"answers: {answers}")
    return f"API token, JWT of the tenant, JWT of none: {answers}"


@attack("anonymous", "forged tokens lock out others who come from the same address or proxy")
def lock_out(world):
    """As fast as it can, one client sends forged tokens. Another has a good one, not seen before."""
    site = world.site
    connection = http.client.HTTPConnection("127.0.0.1", site.scheduler.port, timeout=20)
    for number in range(400):
        token = site.jwt(secret="x" * 40, sub=str(number))
        connection.request("GET", "/api/v1/jobs", headers={"Authorization": f"Bearer {token}"})
        connection.getresponse().read()
    fresh = site.jwt_person("tenant", tenant=site.victim.tenant, sub="fresh").get("/api/v1/jobs")
    connection.close()
    defeat(fresh.status != 200, f"a good token that is new gets {fresh}")
    return "after 400 forged tokens a good one is let in at once"


@attack("anonymous", "somebody tries thousands of tokens, and no log or metric tells")
def unseen_guesses(world):
    site = world.site
    before = len(site.scheduler.errors.read_text())
    metrics = site.admin.get("/metrics").body.decode()
    for number in range(40):
        site.scheduler.get("/api/v1/jobs", headers={"Authorization": f"Bearer gst_{number:043d}"})
    said = site.scheduler.errors.read_text()[before:]
    after = site.admin.get("/metrics").body.decode()
    counted = [line for line in after.splitlines() if line not in metrics
               and any(word in line for word in ("sign", "auth", "token"))]
    logged = [line for line in said.splitlines() if "127.0.0.1" in line or "sign" in line]
    defeat(not counted and not logged, "40 failed sign-ins: no line in the log, no metric")
    return f"log: {len(logged)} lines, metrics: {json.dumps(counted[:2])}"
