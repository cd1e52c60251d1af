"""Every command in the documentation is run: the blocks of each page that are marked sh, in their
order, against a scheduler and a node with simulated GPUs of the page's own. A block of another
language is no command. One that cannot be run here has a comment before it that says why:
<!-- not run: reason -->. Output that is shown behind a block (marked text) must come, line by line,
with any number where a number is shown and anything where there is an ellipsis."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from cluster import Cluster

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")])
LANGUAGES = {"sh", "text", "console", "yaml", "json", "sql", "c", "http", "python", "ini", "js"}
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]*?) -->\n+)?```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL)


class Block:
    def __init__(self, page, found, text_of_page):
        self.page = page
        self.line = text_of_page.count("\n", 0, found.start("language")) + 1
        self.language = found["language"]
        self.text = found["text"]
        self.reason = found["reason"]
        self.begin, self.end = found.start(), found.end()
        self.output = None

    @property
    def place(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page):
    """Of one page, in their order; what a command prints is with the command."""
    text = page.read_text()
    blocks = [Block(page, found, text) for found in FENCE.finditer(text)]
    for block, after in zip(blocks, blocks[1:]):
        between = text[block.end:after.begin].strip()
        if block.language == "sh" and after.language == "text" and not between:
            block.output = after.text
    return blocks


def commands_of(page):
    return [block for block in blocks_of(page) if block.language == "sh" and not block.reason]


def pattern_of(line):
    """What a line of output has to look like."""
    pattern = re.escape(line.strip())
    pattern = re.sub(r"(?:\\ )+", r"\\s+", pattern)
    pattern = re.sub(r"\d+", r"\\d+", pattern)
    return pattern.replace("…", ".*").replace(r"\.\.\.", ".*")


def check_output(block, said):
    place = 0
    lines = said.splitlines()
    for line in filter(str.strip, block.output.splitlines()):
        pattern = re.compile(pattern_of(line))
        for at in range(place, len(lines)):
            if pattern.search(lines[at]):
                place = at + 1
                break
        else:
            pytest.fail(f"{block.place} does not print '{line}', but:\n{said}")


def here(text, cluster):
    """With the addresses of the page's own service for the usual ones."""
    http = cluster.scheduler.url.rpartition("/")[2]
    metrics = cluster.scheduler.metrics_url.split("/")[2]
    for usual, own in (("8080", http), ("9090", cluster.scheduler.grpc), ("9091", metrics)):
        text = re.sub(rf"(?:localhost|127\.0\.0\.1):{usual}\b", own, text)
    return text


@pytest.fixture
def place(tmp_path):
    """A directory that looks like the checkout, with a scheduler, a node and a tenant."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for entry in ROOT.iterdir():
        if entry.name not in ("data", ".git"):
            (folder / entry.name).symlink_to(entry)
    cluster = Cluster(tmp_path / "cluster")
    cluster.scheduler.post("/api/v1/tenants", {"name": "lab"})
    cluster.agent(f"docs-{os.getpid()}", gpus="8x80G")
    (folder / "data").symlink_to(cluster.scheduler.data)
    yield folder, cluster
    cluster.stop()


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)],
                         ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_of_the_page_do_what_it_says(page, place):
    folder, cluster = place
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GPU_", "XDG_"))}
    environment = kept | {
        "PATH": f"{ROOT / 'bin'}:{os.environ['PATH']}", "HOME": str(folder), "TERM": "dumb",
        "GPU_SCHEDULER_URL": cluster.scheduler.url, "GPU_SCHEDULER_TENANT": "lab"}
    blocks = commands_of(page)
    # Answers that are errors fail, as they would be noticed by a person.
    script = "set -eu -o pipefail\ncurl() { command curl -sS --fail-with-body \"$@\"; }\n"
    for number, block in enumerate(blocks):
        script += f"exec >{folder}/said-{number} 2>&1\n{here(block.text, cluster)}\n"
    done = subprocess.run(["bash", "-c", script], cwd=folder, env=environment,
                          stdin=subprocess.DEVNULL, timeout=120)
    for number, block in enumerate(blocks):
        said = folder / f"said-{number}"
        ran = said.exists()
        last = not (folder / f"said-{number + 1}").exists()
        assert ran and (done.returncode == 0 or not last), (
            f"{block.place} ends with {done.returncode}:\n{block.text}\n{said.read_text() if ran else ''}")
        if block.output is not None:
            check_output(block, said.read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_says_what_it_is(page):
    for block in blocks_of(page):
        assert block.language in LANGUAGES, f"{block.place} has no language"
        assert block.reason is None or len(block.reason) > 10, f"{block.place} gives no reason"
        if block.language == "console":
            assert block.reason, f"{block.place}: write commands in a block marked sh"


def test_commands_that_are_not_run_are_few(capsys):
    left_out = [block for page in PAGES for block in blocks_of(page)
                if block.language in ("sh", "console") and block.reason]
    with capsys.disabled():
        for block in left_out:
            print(f"\n  not run: {block.place}: {block.reason}", end="")
    run = [block for page in PAGES for block in commands_of(page)]
    assert len(left_out) < len(run)


LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors_of(page):
    heads = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", head.lower()) for head in heads)
    return {head.replace(" ", "-") for head in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for path, anchor in LINK.findall(page.read_text()):
        target = page.parent / path if path else page
        assert target.exists(), f"{page.name} links to {path}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), f"{page.name} links to {path}#{anchor}"


@pytest.mark.skipif(not shutil.which("man"), reason="there is no man here")
@pytest.mark.parametrize("page", ["gpu-cli.1", *(page.name for page in sorted(ROOT.glob("docs/man/*")))])
def test_pages_of_the_manual_are_set_without_a_warning(page, tmp_path):
    path = ROOT / "docs" / "man" / page
    if page == "gpu-cli.1":
        path = tmp_path / page
        path.write_bytes(subprocess.run([ROOT / "bin" / "gpu-cli", "help", "--man"], check=True,
                                        capture_output=True).stdout)
    done = subprocess.run(["man", "--warnings", "--local-file", "--encoding=UTF-8", path], text=True,
                          capture_output=True, env={**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80"})
    assert done.returncode == 0 and done.stderr == ""
    assert "NAME" in done.stdout and "SYNOPSIS" in done.stdout


def test_what_an_agent_is_told_in_the_guide_is_in_its_settings():
    """installing.md turns lines on in agent.env; they have to be there to be turned on."""
    settings = (ROOT / "deploy" / "debian" / "agent.env").read_text()
    for name in ("SCHEDULER", "TOKEN_FILE", "TLS"):
        assert re.search(rf"^#?GPU_AGENT_{name}=", settings, re.MULTILINE), name


def test_the_index_has_every_page():
    index = (ROOT / "docs" / "README.md").read_text()
    pages = {str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md")} - {"README.md"}
    assert not [page for page in pages if f"]({page})" not in index]


def test_messages_in_troubleshooting_are_those_of_the_programs():
    """Each heading there is a message, with … where something is filled in."""
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    sources = "\n".join(path.read_text(errors="replace") for pattern in ("src/**/*.c", "scripts/first-run", "run")
                        for path in ROOT.glob(pattern) if "/test/" not in str(path))
    # Sentences are split over lines of C, and have places for values.
    sources = re.sub(r'"\s*(?:PRI\w+\s*)?"', "", sources)
    messages = re.findall(r"^### `(.*)`$", page, re.MULTILINE)
    assert len(messages) >= 15
    missing = []
    for message in messages:
        parts = [part.strip() for part in re.split(r"…", message) if part.strip()]
        if not all(part in sources for part in parts):
            missing.append(message)
    assert not missing
