"""What the tests of the service share: the real scheduler, and databases for it."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "store"))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "agent"))

import postgres
from scheduler import Scheduler


@pytest.fixture
def start(tmp_path):
    """Starts schedulers that end with the test, gracefully where they still run:
    start('--verbosity', 3, sections={'api': {'rate_limit_rps': 5}})."""
    running = []

    def start_one(*arguments, **options):
        directory = options.pop("directory", tmp_path / f"scheduler-{len(running)}")
        running.append(Scheduler(directory, *arguments, **options))
        return running[-1]

    yield start_one
    for one in running:
        if one.process and one.process.poll() is None:
            one.stop()


@pytest.fixture
def scheduler(start):
    """One that is open, for a test of its own."""
    return start()


@pytest.fixture(scope="module")
def shared_scheduler(tmp_path_factory):
    """One for all tests of a file, which leave each other's things alone."""
    one = Scheduler(tmp_path_factory.mktemp("scheduler"))
    yield one
    one.stop()


@pytest.fixture
def signed_in(tmp_path):
    """One that wants a sign-in; its requests carry an administrator's token."""
    one = Scheduler(tmp_path / "scheduler", sections={"auth": {"enable": True}}, starts=False)
    one.write_config()
    made = one.run("token", "create")
    assert made.returncode == 0, made.stderr
    one.token = made.stdout.strip()
    one.start()
    yield one
    one.stop()


@pytest.fixture(scope="module")
def postgres_server():
    running = postgres.Server()
    yield running
    running.stop()
