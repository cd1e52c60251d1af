"""openapi.json is what the service does: every answer is of a shape that it describes."""

import json
import random
import re
import string
import urllib.parse

import pytest

SKIPPED = {"/api/v1/stream"}  # a WebSocket; see test_stream.py


@pytest.fixture(scope="module")
def service(shared_scheduler):
    return shared_scheduler


@pytest.fixture(scope="module")
def description(service):
    answer = service.get("/openapi.json")
    assert answer.status == 200
    return answer.json()


class Shapes:
    """Checks values against schemas, as far as the description uses them."""

    def __init__(self, description):
        self.schemas = description["components"]["schemas"]

    def resolve(self, schema):
        while "$ref" in schema:
            schema = self.schemas[schema["$ref"].rpartition("/")[2]]
        return schema

    TYPES = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict,
             "null": type(None), "number": (int, float)}

    def wrong(self, value, schema, where="answer"):
        """What is wrong, or None."""
        schema = self.resolve(schema)
        if "anyOf" in schema:
            reasons = [self.wrong(value, choice, where) for choice in schema["anyOf"]]
            return None if None in reasons else reasons[0]
        types = schema.get("type")
        types = [types] if isinstance(types, str) else types or list(self.TYPES)
        fits = [t for t in types if isinstance(value, self.TYPES[t]) and
                not (isinstance(value, bool) and t in ("integer", "number"))]
        if not fits:
            return f"{where} is {value!r}, not {types}"
        if "enum" in schema and value not in schema["enum"]:
            return f"{where} is {value!r}, not of {schema['enum']}"
        if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
            return f"{where} is {value!r}, not like {schema['pattern']}"
        if isinstance(value, list):
            return self.wrong_items(value, schema, where)
        if isinstance(value, dict):
            return self.wrong_members(value, schema, where)
        return None

    def wrong_items(self, value, schema, where):
        for i, item in enumerate(value):
            if reason := self.wrong(item, schema.get("items", {}), f"{where}[{i}]"):
                return reason
        return None

    def wrong_members(self, value, schema, where):
        for name in schema.get("required", []):
            if name not in value:
                return f"{where} lacks {name}"
        known = schema.get("properties")
        for name, member in value.items():
            if known is not None and name not in known and "additionalProperties" not in schema:
                return f"{where}.{name} is not described"
            if known and name in known:
                if reason := self.wrong(member, known[name], f"{where}.{name}"):
                    return reason
        return None


def check(answer, operation, shapes):
    """The status is described, and the body of its shape."""
    described = operation["responses"].get(str(answer.status))
    assert described is not None, f"{answer} is not described"
    content = described.get("content", {})
    kind = (answer.headers["content-type"] or "").partition(";")[0]
    if not answer.body:
        return
    assert kind in content, f"{kind} is not described: {answer}"
    if kind == "application/json":
        reason = shapes.wrong(answer.json(), content[kind]["schema"])
        assert reason is None, reason


class Maker:
    """Values that a schema allows, and now and then ones that it does not."""

    def __init__(self, shapes, seed):
        self.shapes, self.random = shapes, random.Random(seed)

    def anything(self):
        return self.random.choice([None, True, -1, 0, 1.5, 10**30, "", "x" * 300, "\u2603", [], {},
                                   [1], {"a": 1}, "tenant-1", "job-1", "2030-01-01T00:00:00Z"])

    def value(self, schema, depth=0):
        schema = self.shapes.resolve(schema)
        if self.random.random() < 0.05 or depth > 4:
            return self.anything()
        if "anyOf" in schema:
            return self.value(self.random.choice(schema["anyOf"]), depth)
        if "enum" in schema:
            return self.random.choice(schema["enum"])
        types = schema.get("type", [])
        kind = self.random.choice(types if isinstance(types, list) and types else [types or "null"])
        if kind == "object":
            return {name: self.value(member, depth + 1)
                    for name, member in schema.get("properties", {}).items()
                    if self.random.random() < (0.9 if name in schema.get("required", []) else 0.2)}
        if kind == "array":
            return [self.value(schema.get("items", {}), depth + 1)
                    for _ in range(self.random.randrange(4))]
        if kind in ("integer", "number"):
            least, most = int(schema.get("minimum", -5)), int(schema.get("maximum", 50))
            number = self.random.choice([least, most, least + 1, self.random.randint(least, min(most, least + 40))])
            return number + 0.5 if kind == "number" and self.random.random() < 0.2 else number
        if kind == "boolean":
            return self.random.random() < 0.5
        if kind == "string":
            if "pattern" in schema:
                return self.random.choice(["1-3", "2-9%2", "job-1", "tenant-1", "x"])
            return "".join(self.random.choice(string.ascii_letters + " \u00e9\u4e2d")
                           for _ in range(self.random.randrange(1, 12)))
        return None


def test_every_schema_that_is_named_is_there(description):
    shapes = Shapes(description)
    text = str(description)
    for name in re.findall(r"#/components/schemas/(\w+)", text):
        assert name in shapes.schemas


def operations(description):
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            if path not in SKIPPED:
                yield path, method, operation


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_as_described(service, description, seed):
    shapes = Shapes(description)
    maker = Maker(shapes, seed)
    service.post("/api/v1/tenants", {"name": f"openapi-{seed}"})
    service.post("/api/v1/jobs", {"tenant_id": f"openapi-{seed}", "command": ["true"]})
    service.post("/api/v1/models", {"name": f"m-{seed}", "tenant_id": 1, "gpu_memory_mb": 100})
    todo = list(operations(description)) * 3
    maker.random.shuffle(todo)
    for path, method, operation in todo:
        query = []
        for parameter in operation.get("parameters", []):
            if parameter["in"] == "path":
                known = {"jobs": "job-1", "tenants": "tenant-1", "models": "model-1"}
                collection = (path.split("/") + [""])[3]
                chosen = known.get(collection, "x") if maker.random.random() < 0.7 else "nothing"
                path = re.sub(r"{\w+}", chosen, path)
            elif parameter["in"] == "query" and maker.random.random() < 0.3:
                value = urllib.parse.quote(str(maker.value(parameter["schema"])))
                query.append(f"{parameter['name']}={value}")
        if "leases" in path and method == "post":
            query = [part for part in query if not part.startswith("wait")]
        body = None
        if "requestBody" in operation:
            content = operation["requestBody"]["content"]
            if "application/json" in content:
                body = json.dumps(maker.value(content["application/json"]["schema"])).encode()
            else:
                body = maker.random.randbytes(maker.random.randrange(1000))
        target = path + ("?" + "&".join(query) if query else "")
        answer = service.request(method.upper(), target, body)
        try:
            check(answer, operation, shapes)
        except AssertionError as error:
            raise AssertionError(f"{method.upper()} {target} {body!r}: {error}") from error
        assert answer.status != 500
    assert service.get("/health").status == 200
