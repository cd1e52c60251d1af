"""The scripts of make lint that check text find what they look for."""

import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent


def run(script, *arguments):
    return subprocess.run([script, *map(str, arguments)], capture_output=True, text=True, timeout=60)


def check_words(folder, name, text):
    file = folder / name
    file.write_text(text)
    return run(ROOT / "scripts" / "check-words", file)


@pytest.mark.parametrize("name, text, phrase", [
    ("a.md", "The job goes on.\n", "goes on"),
    ("a.md", "The job\ngoes on.\n", "goes on"),
    ("a.c", "/* Built anew. */\n", "anew"),
    ("a.c", "/* It is over: nothing is left. */\n", "is over"),
    ("a.c", "/* All that\n * is\n * over. */\n", "is over"),
    ("a.c", 'say("it is "\n    "over, and done");\n', "is over"),
    ("a.h", "/* The same, for slots. */\nint slot(void);\n", "The same"),
    ("a.tsx", "const sign = <p>The neighbour of a job</p>;\n", "neighbour"),
    ("a.py", "# The same for nodes.\n", "The same"),
    ("script", "# Retries in vain.\n", "in vain"),
])
def test_a_banned_phrase_is_found_where_people_read(tmp_path, name, text, phrase):
    done = check_words(tmp_path, name, text)
    assert done.returncode == 1
    assert f"'{phrase}'" in done.stdout


@pytest.mark.parametrize("name, text", [
    ("a.md", "The field `neighbour` keeps its name.\n"),
    ("a.c", '#include "api/catalogue.h"\nint books = colour;\nput("utilisation");\n'),
    ("a.c", "/* One loop. The same holds for slots. */\n"),
    ("a.md", "The job continues until its time limit.\n"),
])
def test_names_and_plain_english_pass(tmp_path, name, text):
    done = check_words(tmp_path, name, text)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.fixture
def checkout(tmp_path):
    """A copy of what check-layers reads: the table, the scripts and the names of the sources."""
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "architecture.md", tmp_path / "docs")
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for source in (ROOT / "src").rglob("*.[ch]"):
        copy = tmp_path / source.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.touch()
    return tmp_path


def test_the_table_of_layers_is_that_of_the_tree(checkout):
    done = run(checkout / "scripts" / "check-layers")
    assert (done.returncode, done.stdout) == (0, "")


def test_a_directory_without_a_row_is_found(checkout):
    (checkout / "src" / "api" / "attic").mkdir()
    (checkout / "src" / "cellar").mkdir()
    done = run(checkout / "scripts" / "check-layers")
    assert done.returncode == 1
    assert "src/api/attic/" in done.stdout and "src/cellar/" in done.stdout


def test_a_row_without_a_directory_is_found(checkout):
    shutil.rmtree(checkout / "src" / "wire" / "net")
    done = run(checkout / "scripts" / "check-layers")
    assert done.returncode == 1
    assert "src/wire/net" in done.stdout


def test_layers_in_another_order_than_the_include_rules_are_found(checkout):
    page = checkout / "docs" / "architecture.md"
    lines = page.read_text().splitlines(keepends=True)
    row = next(number for number, line in enumerate(lines) if line.startswith("| | `net` |"))
    lines[row], lines[row - 1] = lines[row - 1], lines[row]
    page.write_text("".join(lines))
    done = run(checkout / "scripts" / "check-layers")
    assert done.returncode == 1
    assert "wire net text ." in done.stdout


@pytest.fixture
def sources(tmp_path):
    """A checkout with the directories that check-sources counts in."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for name in ("core/a.c", "node/a.c", "server/engine.c", "server/inbox.c", "server/delivery.c",
                 "server/librarian.c", "server/timekeeper.c"):
        (tmp_path / "src" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "src" / name).write_text("\tINVARIANT(true);\n")
    return tmp_path


def check_sources(checkout):
    return run(checkout / "scripts" / "check-sources")


def test_sources_that_keep_the_rules_pass(sources):
    for name in "bcd":
        (sources / "src" / "core" / f"{name}.c").write_text("static int find(int a,\n\tint b)\n{\n}\n")
    done = check_sources(sources)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_function_name_in_four_files_is_found(sources):
    for name in "bcde":
        (sources / "src" / "core" / f"{name}.c").write_text("static int find(int a,\n\tint b)\n{\n}\n")
    done = check_sources(sources)
    assert done.returncode == 1
    assert "find() is defined in 4 files" in done.stdout


def test_a_directory_of_41_files_is_found(sources):
    for number in range(41):
        (sources / "src" / "node" / f"{number}.h").touch()
    done = check_sources(sources)
    assert done.returncode == 1
    assert "src/node has 42 files" in done.stdout


def test_too_few_assertions_are_found(sources):
    (sources / "src" / "node" / "b.c").write_text("\n" * 200)
    done = check_sources(sources)
    assert done.returncode == 1
    assert "node: 1 invariants asserted in 201 lines" in done.stdout
