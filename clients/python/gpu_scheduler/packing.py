"""Packs a function, what it uses and its arguments into a script that a plain Python 3.8 or newer
runs on a node, and reads the result from the output of the job.

What is sent: the source of the function and of the functions and classes of the user's own
modules that it uses; the names of other modules, which the node imports itself; global values and
arguments, pickled. The result comes back on one line of the output."""

from __future__ import annotations

import __future__
import ast
import base64
import inspect
import pickle
import sys
import sysconfig
import textwrap
import types
import zlib
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from .errors import Error, RemoteError

PICKLE_PROTOCOL = 4
RESULT_BYTES_MAX = 8 << 20
MARK = "\x1egpu-scheduler-result:"

Call = Tuple[Tuple[Any, ...], Dict[str, Any]]

# Runs on the node. Keep it to what Python 3.8 has.
_RUNNER = r'''
import base64, os, pickle, sys, traceback, types, zlib
MARK, RESULT_BYTES_MAX, PICKLE_PROTOCOL = {mark!r}, {result_bytes_max}, {pickle_protocol}


def load(text):
    return pickle.loads(zlib.decompress(base64.b64decode(text)))


def report(word, value):
    data = zlib.compress(pickle.dumps((word, value), PICKLE_PROTOCOL))
    if len(data) > RESULT_BYTES_MAX:
        raise ValueError("the result has %d MiB, at most %d can be returned: save it to a file "
                         "and return its path" % (len(data) >> 20, RESULT_BYTES_MAX >> 20))
    sys.stdout.flush()
    sys.stderr.flush()
    line = "\n" + MARK + base64.b64encode(data).decode() + "\n"
    data = line.encode()
    while data:
        data = data[os.write(1, data):]


def module(name):
    if name == "__main__":
        return sys.modules["__main__"]
    parent, _, last = name.rpartition(".")
    made = sys.modules.get(name)
    if made is None:
        made = sys.modules[name] = types.ModuleType(name)
        made.__path__ = []
        if parent:
            setattr(module(parent), last, made)
    return made


def main():
    import importlib
    pack = load(PACK)
    for step, name, *rest in pack["steps"]:
        space = module(name).__dict__
        if step == "source":
            text, place, flags = rest
            exec(compile(text, place, "exec", flags, True), space)
        elif step == "import":
            alias, wanted, attribute = rest
            found = importlib.import_module(wanted)
            for part in attribute.split(".") if attribute else ():
                found = getattr(found, part)
            space[alias] = found
        else:
            alias, data = rest
            space[alias] = pickle.loads(data)
    function = module(pack["module"])
    for part in pack["function"].split("."):
        function = getattr(function, part)
    calls = pack["calls"]
    index = 0
    if pack["array"]:
        text = os.environ.get("GPU_SCHEDULER_ARRAY_INDEX")
        if text is None:
            raise RuntimeError("GPU_SCHEDULER_ARRAY_INDEX is not set: the agent of this node is "
                               "too old for map()")
        index = int(text)
    arguments, named = pickle.loads(calls[index])
    return function(*arguments, **named)


if __name__ == "__main__":
    try:
        report("result", main())
    except BaseException as error:
        where = traceback.format_exc()
        sys.stderr.write(where)
        if isinstance(error, SystemExit) and error.code in (None, 0):
            report("result", None)
            sys.exit(0)
        text = "%s: %s" % (type(error).__name__, error)
        try:
            report("error", (text, where, pickle.dumps(error, PICKLE_PROTOCOL)))
        except Exception:
            report("error", (text, where, None))
        sys.exit(1)
'''


class PackError(Error):
    """A function cannot be sent."""


def _is_installed(name: str) -> bool:
    """True if a module comes with Python or from site-packages, so that the node has its own."""
    module = sys.modules.get(name)
    if name == "__main__" or module is None:
        return False
    if name.partition(".")[0] in getattr(sys, "stdlib_module_names", ()):
        return True
    file = getattr(module, "__file__", None)
    if file is None:
        return True
    paths = sysconfig.get_paths()
    return ("site-packages" in file or "dist-packages" in file or
            file.startswith((paths["stdlib"], paths["platstdlib"])))


class _Source:
    """The source of a function or class: its text, where it stands, and the names it uses. The
    decorators of a function are left out, those of a class belong to it."""

    def __init__(self, thing: Any, name: str, flags: int):
        try:
            lines, line = inspect.getsourcelines(thing)
            text = textwrap.dedent("".join(lines))
            tree = ast.parse(text)
        except (OSError, TypeError, SyntaxError) as error:
            raise PackError(f"cannot send {name}: its source cannot be read ({error})") from None
        node = tree.body[0]
        if not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            raise PackError(f"cannot send {name}: use a function made with 'def'")
        first = node.lineno
        if isinstance(node, ast.ClassDef):
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        else:
            node.decorator_list = []
        self.flags = flags & __future__.annotations.compiler_flag
        if self.flags:
            _Unannotated().visit(node)
        # Empty lines before it, so that tracebacks name the right lines.
        self.text = "\n" * (line + first - 2) + "".join(
            text.splitlines(keepends=True)[first - 1:])
        self.file = inspect.getsourcefile(thing) or "<function>"
        self.names = sorted({one.id for one in ast.walk(node) if isinstance(one, ast.Name)})


class _Unannotated(ast.NodeTransformer):
    """Takes out annotations, which are not evaluated where they are only texts."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        self.generic_visit(node)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.annotation = ast.Constant(None)
        self.generic_visit(node)
        return node


class _Pack:
    """The steps that make the function on the node: what is needed comes first."""

    def __init__(self) -> None:
        self.steps: List[Tuple[Any, ...]] = []
        self.seen: "set[Tuple[str, str]]" = set()

    def _add_source(self, thing: Any, module: str, name: str, flags: int) -> None:
        source = _Source(thing, name, flags)
        space = sys.modules[module].__dict__
        for used in source.names:
            if used in space and used != name:
                self._add_global(module, used, space[used])
        self.steps.append(("source", module, source.text, source.file, source.flags))

    def add_class(self, kind: type) -> None:
        """A class of the user's own modules."""
        module, name = kind.__module__, kind.__qualname__
        if (module, name) in self.seen or _is_installed(module):
            return
        self.seen.add((module, name))
        if "." in name:
            raise PackError(f"cannot send the class {name}: define it at the top of a module")
        flags = 0
        if sys.modules[module].__dict__.get("annotations") is __future__.annotations:
            flags = __future__.annotations.compiler_flag
        self._add_source(kind, module, name, flags)

    def add_function(self, function: types.FunctionType) -> None:
        """A function of the user's own modules."""
        module, name = function.__module__, function.__name__
        if (module, name) in self.seen:
            return
        self.seen.add((module, name))
        if name == "<lambda>":
            raise PackError("cannot send a lambda: use a function made with 'def'")
        if function.__closure__:
            free = ", ".join(function.__code__.co_freevars)
            raise PackError(f"cannot send {name}: it uses {free} of the function around it; "
                            "pass them as arguments")
        self._add_source(function, module, name, function.__code__.co_flags)

    def _classes_of(self, value: Any) -> None:
        """Sends the user's classes whose objects are in a value."""
        class Finder(pickle.Pickler):
            def reducer_override(finder, thing):  # noqa: N805
                if isinstance(thing, type) and not _is_installed(thing.__module__):
                    self.add_class(thing)
                elif isinstance(thing, types.FunctionType) and not _is_installed(thing.__module__):
                    self.add_function(thing)
                return NotImplemented

        class Nowhere:
            def write(self, _data):
                return None

        try:
            Finder(Nowhere(), PICKLE_PROTOCOL).dump(value)
        except PackError:
            raise
        except Exception as error:
            raise PackError(f"cannot send {type(value).__name__} {value!r:.60}: {error}") from None

    def pickled(self, value: Any) -> bytes:
        self._classes_of(value)
        return pickle.dumps(value, PICKLE_PROTOCOL)

    def _add_global(self, module: str, alias: str, value: Any) -> None:
        from .remote import RemoteFunction
        if (module, alias + "=") in self.seen:
            return
        self.seen.add((module, alias + "="))
        if isinstance(value, RemoteFunction):
            value = value.local
        if isinstance(value, types.ModuleType):
            if not _is_installed(value.__name__):
                raise PackError(f"cannot send the module {value.__name__}: import functions "
                                "from it by name, or install it on the nodes")
            self.steps.append(("import", module, alias, value.__name__, None))
        elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
            if not _is_installed(value.__module__):
                self.add_class(value) if isinstance(value, type) else self.add_function(value)
            if value.__module__ != module or value.__name__ != alias:
                self.steps.append(("import", module, alias, value.__module__,
                                   value.__qualname__))
        else:
            self.steps.append(("value", module, alias, self.pickled(value)))


def pack(function: Callable[..., Any], calls: Sequence[Call], array: bool,
         python: str = "python3") -> str:
    """The script that calls the function; with `array`, the element of an array makes the call of
    its index."""
    if not isinstance(function, types.FunctionType):
        raise PackError(f"cannot send {function!r}: use a function made with 'def'")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise PackError(f"cannot send {function.__name__}: it must return a plain result")
    made = _Pack()
    made.add_function(function)
    pickled = [made.pickled(call) for call in calls]
    content = {
        "steps": made.steps, "module": function.__module__, "function": function.__name__,
        "calls": pickled, "array": array,
    }
    data = base64.b64encode(zlib.compress(pickle.dumps(content, PICKLE_PROTOCOL))).decode()
    runner = (_RUNNER.replace("{mark!r}", repr(MARK))
              .replace("{result_bytes_max}", str(RESULT_BYTES_MAX))
              .replace("{pickle_protocol}", str(PICKLE_PROTOCOL)))
    return f"#!/usr/bin/env {python}\nPACK = {data!r}\n{runner}"


def result_of(output: str) -> Any:
    """The result on the last line of the output. Raises RemoteError if the function raised, and
    LookupError if there is no result."""
    at = output.rfind(MARK)
    if at < 0:
        raise LookupError("no result in the output")
    line = output[at + len(MARK):].split("\n", 1)[0]
    word, value = pickle.loads(zlib.decompress(base64.b64decode(line)))
    if word == "result":
        return value
    text, where, data = value
    error = RemoteError(text, where)
    cause = None
    if data is not None:
        try:
            cause = pickle.loads(data)
        except Exception:  # its class is only known there
            cause = None
    raise error from (cause if isinstance(cause, BaseException) else None)


def without_result(lines):
    """The lines of the output without the one that carries the result, and the empty one before."""
    held: Optional[str] = None
    for line in lines:
        if line.startswith(MARK):
            held = None
            continue
        if held is not None:
            yield held
        held = line
    if held is not None:
        yield held
