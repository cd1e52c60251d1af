"""The store's own tests on PostgreSQL, and a PostgreSQL that fails at every point."""

import os
import re
import subprocess

import pytest

import proxy

# Fails at the row that is due, whatever becomes of the transaction: what sequences
# have counted is not rolled back. The next is due after a gap that grows, so that
# any batch is written in the end; or never.
FAULTS = """
CREATE SCHEMA faults;
CREATE SEQUENCE faults.rows;
CREATE SEQUENCE faults.due;
CREATE SEQUENCE faults.gap INCREMENT 37;
CREATE TABLE faults.plan (again boolean, how text);
CREATE FUNCTION faults.strike() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE plan faults.plan; rows bigint := nextval('faults.rows');
BEGIN
    IF rows = (SELECT last_value FROM faults.due) THEN
        SELECT * INTO plan FROM faults.plan;
        IF plan.again THEN
            PERFORM setval('faults.due', rows + nextval('faults.gap'));
        END IF;
        IF plan.how = 'terminate' THEN
            PERFORM pg_terminate_backend(pg_backend_pid());
        ELSE
            RAISE EXCEPTION 'struck' USING ERRCODE = plan.how;
        END IF;
    END IF;
    RETURN NEW;
END $$;
CREATE FUNCTION faults.arm() RETURNS event_trigger LANGUAGE plpgsql AS $$
DECLARE made record;
BEGIN
    FOR made IN SELECT * FROM pg_event_trigger_ddl_commands()
                WHERE command_tag = 'CREATE TABLE' AND schema_name = 'public' LOOP
        EXECUTE format('CREATE TRIGGER strike BEFORE INSERT OR UPDATE ON %s '
                       'FOR EACH ROW EXECUTE FUNCTION faults.strike()', made.object_identity);
        EXECUTE format('CREATE CONSTRAINT TRIGGER late AFTER INSERT ON %s DEFERRABLE '
                       'INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION faults.strike()',
                       made.object_identity);
    END LOOP;
END $$;
CREATE EVENT TRIGGER arm ON ddl_command_end EXECUTE FUNCTION faults.arm();
"""


def drive(programs, database, direct, steps, seed=1):
    """Runs a workload; how many failures it saw."""
    answer = subprocess.run(
        [str(programs / "workload_driver"), database, direct, str(seed), str(steps)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    found = re.match(r"same after (\d+) failures", answer.stdout)
    assert found, answer.stdout + answer.stderr
    return int(found[1])


@pytest.mark.parametrize("program", ["store_store_test", "store_keep_test", "store_writer_test",
                                     "store_usage_test"])
def test_the_tests_of_the_store_pass_on_postgresql(programs, server, tmp_path, program):
    environment = os.environ | {"STORE_TEST_POSTGRES": server.database, "TMPDIR": str(tmp_path)}
    answer = subprocess.run(
        [str(programs / program)], env=environment, capture_output=True, text=True, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr


# Out of disk, out of memory, and a backend that dies.
KINDS = ["53100", "53200", "terminate"]


@pytest.fixture(name="faults")
def faults_fixture(server):
    """Plans when rows fail, on an empty database."""

    def plan(nth, again, how):
        server.clear()
        server.sql(
            "SELECT setval('faults.rows', 1, false), setval('faults.gap', 1, false),"
            f"setval('faults.due', {nth}); DELETE FROM faults.plan;"
            f"INSERT INTO faults.plan VALUES ({again}, '{how}')"
        )

    server.clear()
    server.sql(FAULTS)
    yield plan
    server.sql("DROP EVENT TRIGGER arm; DROP SCHEMA faults CASCADE")


@pytest.mark.parametrize("how", KINDS)
def test_an_error_at_every_so_many_rows_loses_nothing(programs, server, faults, how):
    faults(20, "true", how)
    assert drive(programs, server.database, server.database, 300) >= 10


@pytest.mark.skipif("FAULTS_ALL" not in os.environ, reason="takes minutes: make faults")
@pytest.mark.parametrize("how", KINDS)
def test_an_error_at_any_row_or_at_the_commit_loses_nothing(programs, server, faults, how):
    nth, seen = 1, 1
    while seen:
        faults(nth, "false", how)
        seen = drive(programs, server.database, server.database, 40)
        nth += 1
    assert nth > 100, "too few rows were written to mean anything"


def test_a_connection_that_breaks_after_any_piece_loses_nothing(programs, server):
    server.clear()
    way = proxy.Proxy(server.folder / proxy.SOCKET)
    try:
        way.break_after(first=1, most=150)
        failures = drive(programs, way.database, server.database, 300)
        assert failures >= 30, "too few connections broke to mean anything"
        print(f"{failures} failures")
    finally:
        way.stop()
