"""A value for each field that is not its default, and how each interface says it."""

import datetime

from google.protobuf import duration_pb2, timestamp_pb2

# Where the kind of a field does not make a value that is valid, or that shows.
VALUES = {
    "job": {
        "gpu_fraction": 0.25,
        "gpu_compute": 0.5,
        "cpu_cores": 1.5,
        "command": ["sleep", "1"],
        "script": "echo parity\n",
        "working_directory": "/tmp",
        "submit_directory": "/tmp",
        "checkpoint_path": "/tmp/saved",
        "array": "1-3%2",
        "preemptible": False,
        "gpu_model": "A100|H100",
        "gpu_count": 8,
        "min_available": 2,
        "resources": {"parity": "1"},
        "notify": ["parity@example.org"],
        "notify_on": ["started", "failed"],
        "spread": {"node": "1"},
        "apart": {"node": "parity"},
        "together": {"rack": "parity"},
    },
    "tenant": {
        "email": "parity@example.org",
        "notify_email": "notify@example.org",
        "notify_webhook": "https://parity.example.org/hook",
        "notify_on": ["failed"],
        "priority_tier": "high",
        "max_gpus": 3,
        "max_cpu_cores": 3,
        "allow_preemption": False,
        "can_preempt_others": False,
    },
}
# What a field needs beside it to be valid or to show.
COMPANIONS = {
    "min_available": {"tasks": 3},
    "closeness_required": {"closeness": "node"},
    "spread": {"group": "parity"},
    "notify_on": {"notify": ["parity@example.org"]},
    "gang_scheduling": {"gpu_count": 8},
    "gpu_compute": {"gpu_memory_mb": 1000},
    "gpu_processes": {"gpu_memory_mb": 1000, "gpu_compute": 0.5},
}
# Fields of which no two may be the same.
UNIQUE = {"idempotency_key", "name"}
# What a field takes the place of.
REPLACES = {"script": "command"}


def value_of(field, context):
    """Something that differs from the default. `context` has the ids that values refer to."""
    name, kind = field["name"], field["kind"]
    if name in VALUES[context["resource"]]:
        return VALUES[context["resource"]][name]
    if kind == "id" and field["refers"] == "tenant":
        return context["other_tenant"]
    if name == "depends_on":
        return [{"job": context["job"], "condition": "any"}]
    by_kind = {
        "integer": max(field.get("least", 0), 0) + 3,
        "decimal": 2.5,
        "flag": field.get("initial") != "true",
        "text": f"parity-{context['interface']}" if name in UNIQUE else "parity",
        "word": (field.get("words") or [None])[-1],
        "duration": "1h30m",
        "time": "2090-01-31T12:00:00.000Z",
        "texts": ["one", "two"],
        "map": {"PARITY": "yes"},
    }
    return by_kind[kind]


def unix_ms(text):
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return round(moment.timestamp() * 1000)


def seconds(text):
    """Of a duration such as 1h2m3s."""
    total, number = 0.0, ""
    for letter in text:
        if letter.isdigit() or letter == ".":
            number += letter
        else:
            total += float(number) * {"d": 86400, "h": 3600, "m": 60, "s": 1}[letter]
            number = ""
    return total


def to_message(request, field, value):
    """Sets a field of a request of gRPC: in the further field, where the published one is too
    narrow for the value."""
    proto, kind = field["proto"], field["kind"]
    names = {one.number: one.name for one in request.DESCRIPTOR.fields}
    narrow = isinstance(value, list) and kind == "integer" or \
        isinstance(value, float) and proto.get("type") == "int32"
    name = names[proto["extra"] if narrow else proto["request"]]
    if kind == "duration":
        getattr(request, name).CopyFrom(duration_pb2.Duration(seconds=int(seconds(value))))
    elif kind == "time":
        getattr(request, name).CopyFrom(timestamp_pb2.Timestamp(seconds=unix_ms(value) // 1000))
    elif kind == "map":
        getattr(request, name).update(value)
    elif kind == "list":
        for one in value:
            getattr(request, name).add(**one)
    elif isinstance(value, list):
        getattr(request, name).extend(value)
    else:
        setattr(request, name, value)


def from_message(fields, message):
    """The fields of a reply of gRPC as REST has them."""
    shown = {}
    descriptors = {one.number: one for one in message.DESCRIPTOR.fields}
    for field in fields:
        number = field["proto"].get("reply")
        if number in descriptors:
            shown[field["name"]] = shown_value(field, message, descriptors[number])
    return shown


def shown_value(field, message, descriptor):
    value, kind = getattr(message, descriptor.name), field["kind"]
    if descriptor.label == descriptor.LABEL_REPEATED:
        if kind == "map":
            return dict(value)
        if kind == "list":
            return [from_message(field["nested"]["fields"], one) for one in value]
        return list(value)
    if descriptor.message_type or descriptor.containing_oneof:
        if not message.HasField(descriptor.name):
            return None
    if kind == "object":
        return from_message(field["nested"]["fields"], value)
    if kind == "time":
        return value.seconds * 1000 + value.nanos // 1000000
    if kind == "duration":
        return value.seconds + value.nanos / 1e9
    return value


# What a message has for a field that is not set, if not None.
EMPTY = {"text": "", "word": "", "id": "", "texts": [], "words": [], "list": [], "map": {}}


def canonical(fields, shown):
    """What REST shows, as from_message() has it."""
    made = {}
    for field in fields:
        if "reply" not in field["proto"]:
            continue
        value, kind = shown.get(field["name"]), field["kind"]
        if value is None:
            value = "" if "shown_as" in field else EMPTY.get(kind)
        elif kind == "time":
            value = unix_ms(value)
        elif kind == "duration":
            value = seconds(value)
        elif kind == "object":
            value = canonical(field["nested"]["fields"], value)
        elif kind == "list":
            value = [canonical(field["nested"]["fields"], one) for one in value]
        elif kind == "integer" and "list" in field.get("also", []) and not isinstance(value, list):
            value = [value]
        made[field["name"]] = value
    return made


def lies_between(value, before, after):
    """True if a value of gRPC is what REST said before or after it, or a number between."""
    if value in (before, after):
        return True
    if isinstance(value, dict) and isinstance(before, dict) and isinstance(after, dict):
        return all(lies_between(value[name], before[name], after[name]) for name in value)
    if isinstance(value, list) and isinstance(before, list) and isinstance(after, list):
        return len(value) == len(before) == len(after) and \
            all(map(lies_between, value, before, after))
    if isinstance(value, (int, float)) and None not in (before, after):
        return min(before, after) <= value <= max(before, after)
    return False


def to_options(field, value, directory):
    """The options of gpu-cli that give a field; None: the row says why there are none."""
    option, kind = field["option"], field["kind"]
    if "name" not in option:
        return None
    name = option["name"]
    if kind == "flag" and "argument" in option:
        return [name, "yes" if value else "no"]
    if kind == "flag":
        return [name if value else option["negative"]]
    if kind in ("words", "texts"):
        return [word for one in value for word in (name, one)]
    if kind == "map":
        return [word for pair in value.items() for word in (name, "=".join(pair))]
    if kind == "list":
        return [word for one in value for word in (name, f"{one['job']}:{one['condition']}")]
    if option["argument"] == "FILE":
        (directory / "script").write_text(value)
        return [name, directory / "script"]
    suffix = {"MiB": "M", "min": "m"}.get(field.get("unit"), "")
    return [name, f"{value}{suffix}"]
