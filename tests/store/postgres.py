"""A private PostgreSQL server for tests, from the system's package."""

import os
import pathlib
import shutil
import subprocess
import tempfile


def programs():
    """The folder of the newest server that is installed."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not found:
        raise RuntimeError("PostgreSQL is not installed: run scripts/install-packages test")
    return found[-1].parent


def ordinary(arguments):
    """The command as an ordinary user: the server refuses to run as root."""
    if os.geteuid() != 0:
        return arguments
    return ["runuser", "-u", "postgres", "--", *arguments]


class Server:
    """Runs until stop(); listens on a socket in its own folder and on 127.0.0.1."""

    def __init__(self, port=None):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="gs-pg-"))
        self.folder.chmod(0o755)
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres")
        self.port = port
        self.run("initdb", "-D", self.data, "-U", "postgres", "-A", "trust", "--no-sync")
        self.start()

    @property
    def data(self):
        return str(self.folder / "data")

    @property
    def database(self):
        return f"host={self.folder} user=postgres dbname=postgres"

    def run(self, program, *arguments):
        subprocess.run(
            ordinary([str(programs() / program), *map(str, arguments)]),
            check=True,
            stdout=subprocess.DEVNULL,
            cwd="/",
        )

    def start(self):
        listen = f"-h 127.0.0.1 -p {self.port}" if self.port else "-h ''"
        options = f"-k {self.folder} {listen} -c max_wal_size=4GB"
        self.run("pg_ctl", "-D", self.data, "-l", self.folder / "log", "-o", options, "-w", "start")

    def stop(self):
        try:
            self.run("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def sql(self, statement):
        """The rows of a statement, each a list of texts."""
        port = ["-p", str(self.port)] if self.port else []
        answer = subprocess.run(
            ["psql", "-h", str(self.folder), *port, "-U", "postgres", "-qAtX", "-F", "\t"]
            + ["-v", "ON_ERROR_STOP=1", "-c", statement],
            check=True,
            capture_output=True,
            text=True,
        )
        return [line.split("\t") for line in answer.stdout.splitlines()]

    def clear(self):
        self.sql("SET client_min_messages = error; DROP SCHEMA public CASCADE; CREATE SCHEMA public")
