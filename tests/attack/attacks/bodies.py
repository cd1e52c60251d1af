"""JSON that is no JSON, and numbers that are no numbers."""

import http.client
import json

from test_hostile_requests import BODIES

from attack import attack, defeat

NUMBERS = ["-1", "-0", "0", "1e308", "-1e308", "1e999", "NaN", "Infinity", "9223372036854775807",
           "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1.5", "0.1e-400",
           "1" + "0" * 400, '"1"', "true", "null", "[]", "{}", "1e3", "00", "0x10", "1_000", "+1", ".5"]
EVERYWHERE = {"/api/v1/jobs": {"command": ["true"], "gpu_count": 900},
              "/api/v1/models": {"name": "n", "gpu_memory_mb": 1, "runtime": "vllm"}}


def fields_of(site, path):
    """The fields of what can be posted there, as the service describes it."""
    described = site.scheduler.get("/openapi.json").json()
    schema = described["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return sorted(properties(described, schema))


def properties(described, schema):
    found = set(schema.get("properties", {}))
    if "$ref" in schema:
        target = described
        for word in schema["$ref"].lstrip("#/").split("/"):
            target = target[word]
        found |= properties(described, target)
    for one in schema.get("oneOf", []) + schema.get("anyOf", []) + schema.get("allOf", []):
        found |= properties(described, one)
    return found


@attack("tenant", "a number that no integer holds is taken for another one")
def numbers(world):
    site, count = world.site, 0
    for path, base in EVERYWHERE.items():
        fields = [name for name in fields_of(site, path) if name not in base]
        for field in fields:
            for value in NUMBERS if not world.quick else NUMBERS[::7]:
                text = json.dumps(base)[:-1] + f', "{field}": {value}}}'
                answer = site.enemy.post(path, text.encode(),
                                         headers={"Content-Type": "application/json"})
                defeat(answer.status >= 500, f"{field}: {value[:20]}: {answer}")
                taken = answer.status == 201 and value in ("NaN", "Infinity", "00", "0x10", "1_000",
                                                           "+1", ".5")
                defeat(taken, f"{field}: {value} was taken: {answer}")
                if answer.status == 201 and "models" in path:
                    site.enemy.delete(f"/api/v1/models/{answer.json()['id']}")
                count += 1
    return f"{count} bodies: no 5xx, nothing taken that is no number"


@attack("tenant", "a body that is no JSON, or is too deep or too long, breaks the reader")
def no_json(world):
    site = world.site
    more = {"a byte order mark": b"\xef\xbb\xbf{}", "two values": b"{}{}", "a comment": b"{/*x*/}",
            "a comma too many": b'{"a":1,}', "single quotes": b"{'a':1}", "UTF-16": "{}".encode("utf-16"),
            "9 MiB of spaces": b" " * (9 << 20)}
    for path in ("/api/v1/jobs",) if world.quick else ("/api/v1/jobs", "/api/v1/models"):
        for what, body in {**BODIES, **more}.items():
            try:
                answer = site.enemy.post(path, body)
            except OSError:
                continue  # refused while it was being sent
            defeat(answer.status < 400 or answer.status >= 500, f"{path}, {what}: {answer}")
    return f"{len({**BODIES, **more})} bodies got 4xx or were cut off"


@attack("tenant", "a list of things that are no jobs is answered with a hundred times its size")
def amplified_list(world):
    site, count = world.site, 100000 if world.quick else 900000
    with world.flood(64, "an answer of at most 64 MiB to a body of 2 MB"):
        try:
            answer = site.enemy.post("/api/v1/jobs", b"[" + b"1," * (count - 1) + b"1]")
            size = len(answer.body)
        except (OSError, http.client.HTTPException):
            size = 0
    defeat(size > 20 << 20, f"{2 * count} bytes were answered with {size >> 20} MiB")
    return f"{2 * count} bytes were answered with {size} bytes, {world.floods[-1]}"


@attack("tenant", "a text that is odd is stored, and breaks what shows it")
def odd_texts(world):
    site = world.site
    texts = ["\u202e\u2066", "\U0001f600" * 50, "'; DROP TABLE jobs; --", "%s%n%x", "\ufeff", "${7*7}",
             "{{7*7}}", "../../etc", "a" * 255, "\x7f", "\t"]
    made = 0
    for text in texts:
        answer = site.enemy.post("/api/v1/jobs", {"name": text, "command": ["true", text],
                                                  "gpu_count": 900, "labels": {"l": text}})
        defeat(answer.status >= 500, f"{text!r}: {answer}")
        if answer.status == 201:
            shown = site.enemy.get(f"/api/v1/jobs/{answer.json()['job_id']}").json()
            defeat(shown["name"] != text or shown["labels"] != {"l": text}, f"{text!r} became {shown}")
            made += 1
    for path in ("/api/v1/jobs", "/metrics", "/api/v1/scheduler/queue", "/api/v1/scheduler/decisions"):
        defeat(site.enemy.get(path).status != 200, f"{path} does not answer any more")
    return f"{len(texts)} texts, {made} taken and shown as they were"


@attack("tenant", "queries with odd numbers or times break a list")
def queries(world):
    site, count = world.site, 0
    values = ["-1", "0", "99999999999999999999", "1e9", "%00", "", "x", "1%202", "9" * 300, "%ff"]
    paths = ["/api/v1/jobs?limit=", "/api/v1/jobs?offset=", "/api/v1/jobs?after=", "/api/v1/jobs?sort=",
             "/api/v1/jobs?state=", "/api/v1/jobs?label=", "/api/v1/gpus/history?from=",
             "/api/v1/scheduler/decisions?limit=", "/api/v1/nodes?after=",
             f"/api/v1/tenants/{site.enemy.tenant}/usage?from=",
             f"/api/v1/tenants/{site.enemy.tenant}/usage?to="]
    for path in paths:
        for value in values:
            answer = site.enemy.get(path + value)
            defeat(answer.status >= 500, f"{path}{value[:20]}: {answer}")
            count += 1
    return f"{count} queries: no 5xx"
