"""Runs the attacks against a real service: run.py [--slice] [--list] [WORD...]. A word keeps the
attacks with it in their class or sentence. The last line is 'N passed, M failed'."""

import argparse
import importlib
import os
import pathlib
import pkgutil
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# The wire's conftest is the one that is meant by `import conftest`.
for directory in ("agent", "service", "wire"):
    sys.path.insert(0, str(HERE.parent / directory))
sys.path.insert(0, str(HERE))
os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # what hostile calls come back with is not news

import attacks
import report
from attack import ATTACKS, Skipped, Succeeded
from world import World


def find(words, quick):
    """The attacks that were asked for, class by class."""
    for module in sorted(pkgutil.iter_modules(attacks.__path__), key=lambda one: one.name):
        importlib.import_module(f"attacks.{module.name}")
    return [one for one in ATTACKS
            if (one.quick or not quick)
            and (not words or any(word in f"{one.kind} {one.wants}" for word in words))]


def judge(attack, world):
    """Outcome and evidence. An attack also succeeds if anything is ill afterwards."""
    try:
        outcome, evidence = report.HELD, attack.run(world)
        assert evidence, "the attack returned no evidence"
    except Succeeded as error:
        outcome, evidence = report.SUCCEEDED, str(error)
    except Skipped as error:
        return report.SKIPPED, str(error)
    except Exception as error:  # an attack that breaks proves nothing
        outcome, evidence = report.BROKEN, f"{type(error).__name__}: {error}"
        if os.environ.get("ATTACK_TRACE"):
            import traceback
            traceback.print_exc()
    if ill := world.illness():
        return report.SUCCEEDED, f"{ill} ({evidence})"
    return outcome, evidence


def perform(number, attack, world):
    world.floods = []
    began = time.monotonic()
    outcome, evidence = judge(attack, world)
    if outcome in (report.SUCCEEDED, report.BROKEN):
        world.revive()
    world.tidy()
    result = report.Result(number, attack.kind, attack.enemy, attack.wants, outcome, evidence,
                           time.monotonic() - began, world.floods)
    report.print_row(result)
    return result


def check_stores(number, world):
    """The last row: what the attacks left behind in the databases."""
    faults = world.close()
    outcome = report.SUCCEEDED if faults else report.HELD
    return report.Result(number, "store", "tenant", "the attacks leave damage in what is stored",
                         outcome, faults or "gpu-scheduler check is clean", 0, [])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--slice", action="store_true", help="those that ./test runs")
    parser.add_argument("--list", action="store_true", help="say which there are")
    parser.add_argument("words", nargs="*")
    options = parser.parse_args()
    chosen = find(options.words, options.slice)
    if options.list:
        for number, one in enumerate(chosen, 1):
            print(f"{number:>3}  {one.enemy:<11}  {one.kind:<10}  {one.wants}")
        return 0
    if os.geteuid() != 0:
        print("Skipped: the attacks need root, as agents become other users.")
        print("0 passed, 0 failed")
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was started is ended
    world = World(options.slice)
    results = []
    report.print_head()
    try:
        world.site  # starts before the first attack is timed
        for number, one in enumerate(chosen, 1):
            results.append(perform(number, one, world))
    finally:
        results.append(check_stores(len(chosen) + 1, world))
    report.print_row(results[-1])
    report.print_floods(results)
    report.write(results, ROOT / "build" / "attack.json")
    return 1 if report.print_sums(results) else 0


if __name__ == "__main__":
    sys.exit(main())
