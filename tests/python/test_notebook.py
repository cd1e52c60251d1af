"""The notebook of the Python client: its cells run, and print what the notebook shows, with any
number where a number is shown."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# Runs cells as Jupyter does: in one namespace, with sources that can be found again.
RUNNER = r'''
import contextlib, io, json, linecache, sys

printed = []
for number, source in enumerate(json.load(sys.stdin)):
    name = "<cell %d>" % number
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(source, name, "exec"), globals())
    printed.append(said.getvalue())
json.dump(printed, sys.stdout)
'''


def without_numbers(text):
    return "".join("0" if letter.isdigit() else letter for letter in text)


def test_the_notebook_prints_what_it_shows(cluster, tmp_path):
    notebook = json.loads((ROOT / "clients/python/examples/tour.ipynb").read_text())
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    done = subprocess.run(
        [sys.executable, "-c", RUNNER], text=True, capture_output=True, timeout=300,
        input=json.dumps(["".join(cell["source"]) for cell in cells]),
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "clients/python"),
             "HOME": str(tmp_path), "GPU_SCHEDULER_URL": cluster.scheduler.url,
             "GPU_SCHEDULER_TENANT": "physics"})
    assert done.returncode == 0, done.stderr
    for cell, said in zip(cells, json.loads(done.stdout)):
        shown = "".join(line for output in cell["outputs"] for line in output["text"])
        assert without_numbers(said) == without_numbers(shown)
