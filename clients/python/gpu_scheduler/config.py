"""Where the service is and how to sign in: arguments, the environment, or the context of gpu-cli.

The order is that of gpu-cli: an argument, then GPU_SCHEDULER_URL, GPU_SCHEDULER_TOKEN,
GPU_SCHEDULER_TOKEN_FILE, GPU_SCHEDULER_CA and GPU_SCHEDULER_TENANT, then the current context of
its configuration file (or the one that GPU_SCHEDULER_CONTEXT names)."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import re
import stat
from typing import Dict, Optional

from .errors import ConfigError

DEFAULT_SERVER = "http://127.0.0.1:8080"
_KEYS = ("server", "token", "token_file", "ca", "tenant")


@dataclasses.dataclass(frozen=True)
class Config:
    """What a client needs to connect."""

    server: str = DEFAULT_SERVER
    token: Optional[str] = dataclasses.field(default=None, repr=False)
    ca: Optional[str] = None
    tenant: Optional[str] = None


def config_path() -> Optional[pathlib.Path]:
    """The configuration file of gpu-cli, whether or not it exists."""
    said = os.environ.get("GPU_SCHEDULER_CONFIG")
    if said:
        return pathlib.Path(said)
    base = os.environ.get("XDG_CONFIG_HOME")
    if base:
        return pathlib.Path(base) / "gpu-scheduler" / "config.yaml"
    home = os.environ.get("HOME")
    return pathlib.Path(home) / ".config" / "gpu-scheduler" / "config.yaml" if home else None


_LINE = re.compile(r'( *)("(?:[^"\\]|\\.)*"|[^\s:#"]+):(?: +(.*?))? *$')


def _scalar(text: str, place: str) -> str:
    if text.startswith('"'):
        try:
            return json.loads(text)
        except ValueError:
            raise ConfigError(f"{place}: malformed text {text}") from None
    if text.startswith("'") and text.endswith("'") and len(text) >= 2:
        return text[1:-1].replace("''", "'")
    return text.split(" #")[0].strip()


def parse_contexts(text: str, name: str = "config.yaml"):
    """The current context and all contexts of a configuration file, which gpu-cli writes: two
    levels of YAML with plain or quoted text. Other YAML is refused with its line."""
    current = ""
    contexts: Dict[str, Dict[str, str]] = {}
    context: Optional[Dict[str, str]] = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#") or line.strip() == "---":
            continue
        place = f"{name}:{number}"
        found = _LINE.match(line)
        if not found:
            raise ConfigError(f"{place}: expected 'key: value'")
        depth, key, value = len(found[1]), _scalar(found[2], place), found[3] or ""
        if depth == 0:
            context = None
            if key == "current_context":
                current = _scalar(value, place)
            elif key != "contexts" or value not in ("", "{}"):
                raise ConfigError(f"{place}: unknown key '{key}'")
        elif depth == 2:
            context = contexts.setdefault(key, {})
            if value not in ("", "{}"):
                raise ConfigError(f"{place}: expected the keys of the context below it")
        elif context is None:
            raise ConfigError(f"{place}: unexpected indentation")
        elif key not in _KEYS:
            raise ConfigError(f"{place}: unknown key '{key}'")
        else:
            context[key] = _scalar(value, place)
    return current, contexts


def _context(name: Optional[str]) -> Dict[str, str]:
    path = config_path()
    try:
        text = path.read_text(encoding="utf-8") if path else ""
    except (FileNotFoundError, NotADirectoryError):
        text = ""
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    current, contexts = parse_contexts(text, str(path))
    wanted = name or current
    if not wanted:
        return {}
    if wanted not in contexts:
        if name:
            raise ConfigError(f"no context '{wanted}' in {path}")
        return {}
    return contexts[wanted]


def read_token(path: str) -> str:
    """The token in a file, which only its owner may be able to read."""
    try:
        with open(path, encoding="ascii") as file:
            mode = os.fstat(file.fileno()).st_mode
            token = file.read().strip()
    except OSError as error:
        raise ConfigError(f"cannot read the token file {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"the token file {path} holds something else than a token") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigError(f"the token file {path} is accessible to others: chmod 600 {path}")
    return token


def load(server: Optional[str] = None, token: Optional[str] = None,
         token_file: Optional[str] = None, ca: Optional[str] = None,
         tenant: Optional[str] = None, context: Optional[str] = None) -> Config:
    """The configuration, from the arguments, the environment and the context, in this order. The
    token of a context is used with the server of that context only."""
    env = os.environ
    said = _context(context or env.get("GPU_SCHEDULER_CONTEXT"))
    address = (server or env.get("GPU_SCHEDULER_URL") or said.get("server") or
               DEFAULT_SERVER).rstrip("/")
    if not token and not token_file:
        token, token_file = env.get("GPU_SCHEDULER_TOKEN"), env.get("GPU_SCHEDULER_TOKEN_FILE")
    if not token and not token_file and address == said.get("server", DEFAULT_SERVER).rstrip("/"):
        token, token_file = said.get("token"), said.get("token_file")
    if not token and token_file:
        token = read_token(token_file)
    if token and not all("!" <= letter <= "~" for letter in token):
        raise ConfigError("the token has characters that no token has")
    return Config(
        server=address, token=token or None,
        ca=ca or env.get("GPU_SCHEDULER_CA") or said.get("ca"),
        tenant=tenant or env.get("GPU_SCHEDULER_TENANT") or said.get("tenant"))
