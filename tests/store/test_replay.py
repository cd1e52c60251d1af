"""What a scheduler did is done again, from its journal and a backup, to the same end."""

import contextlib
import sqlite3
import subprocess
import time

import world


def replay(programs, *arguments):
    answer = subprocess.run(
        [str(programs / "sim" / "gpu-sim"), "replay", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.returncode, answer.stdout + answer.stderr


def compare(programs, journal, folder):
    """Every stored decision is made again; one that is changed in the store is found."""
    arguments = ["--journal", journal, "--compare", folder / "db"]
    status, text = replay(programs, *arguments)
    assert status == 0, text
    same, _, *rest = text.splitlines()[1].split()
    assert int(same) > 10 and rest[-2:] == ["0", "not"]
    status, text = replay(programs, *arguments, "--from", folder / "backup")
    assert status == 0, text
    with contextlib.closing(sqlite3.connect(folder / "db")) as connection:
        connection.execute("UPDATE decisions SET tasks = tasks + 1 WHERE id = 3")
        connection.commit()
    status, text = replay(programs, *arguments)
    assert status == 1
    assert ", 1 not" in text and "stored: " in text and "now:    " in text


def test_a_journal_is_replayed_from_the_beginning_and_upon_a_backup(programs, tmp_path):
    path, journal, database = tmp_path / "socket", tmp_path / "journal", tmp_path / "db"
    people = world.World(3, [str(path)])
    process = world.Process(programs / "store_driver", database, "a", path, journal)
    try:
        process.wait_for("leading")
        time.sleep(0.5)
        with contextlib.closing(sqlite3.connect(database)) as connection:
            connection.execute(f"VACUUM INTO '{tmp_path}/backup'")
        time.sleep(0.3)
        people.stop()
        process.kill()
        status, whole = replay(programs, journal)
        assert status == 0, whole
        assert replay(programs, journal) == (0, whole)
        status, rest = replay(programs, journal, tmp_path / "backup")
        assert status == 0, rest
        assert 0 < int(rest.split()[0]) < int(whole.split()[0])
        status, text = replay(programs, "-v", journal)
        assert " submit now_ms=" in text and "put job id=1 " in text
        assert replay(programs, tmp_path / "nothing")[0] == 1
        compare(programs, journal, tmp_path)
    finally:
        people.over = True
        process.kill()
