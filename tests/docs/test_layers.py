"""The layers of the core: docs/architecture.md says what scripts/check-includes holds and what the
tree has."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FILES_IN_A_DIRECTORY = 40


def layers_of(directory):
    """As scripts/check-includes has them, lowest first."""
    text = (ROOT / "scripts/check-includes").read_text()
    table = re.search(r"^declare -A layers=\((.*?)^\)", text, re.MULTILINE | re.DOTALL)[1]
    return re.search(rf'\[{directory}\]="([^"]*)"', table)[1].split()


def rows_of(directory):
    """The table in docs/architecture.md: each layer with the files that it names."""
    rows = re.findall(rf"^\| `({directory}(?:/\w+)?)` \| [^|]* \| ([^|]*) \|$",
                      (ROOT / "docs/architecture.md").read_text(), re.MULTILINE)
    return {path: set(re.findall(r"`(\w+)`", files)) for path, files in rows}


def modules_in(path):
    return {file.stem for file in (ROOT / "src" / path).glob("*.[ch]")}


def test_layers_are_listed_lowest_first():
    layers = ["core" if layer == "." else f"core/{layer}" for layer in layers_of("core")]
    assert list(rows_of("core")) == layers


def test_the_table_names_every_file_of_a_layer():
    for path, files in rows_of("core").items():
        assert files == modules_in(path) - {"state"}, path


def test_no_directory_of_the_core_is_crowded():
    for directory in [ROOT / "src/core", *(ROOT / "src/core").glob("**/")]:
        files = [file for file in directory.iterdir() if file.is_file()]
        assert len(files) <= FILES_IN_A_DIRECTORY, directory
