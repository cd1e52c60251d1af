"""cost_report.py DRIVER GUARD_RUN LIBRARY [EARLIER_GUARD_RUN EARLIER_LIBRARY] - what an allocation and
its free cost without the guard, under it, and under an earlier build of it, in turns."""

import json
import statistics
import subprocess
import sys

TURNS = 7


def measure(*command):
    out = subprocess.run([*command, "times", "100000"], capture_output=True, text=True, check=True).stdout
    return json.loads(next(line for line in out.splitlines() if line.startswith("{")))


def main():
    driver, *guards = sys.argv[1:]
    ways = {"without the guard": [driver]}
    for name, run, library in zip(("under the guard", "under the guard before"), guards[::2], guards[1::2]):
        ways[name] = [run, "--quiet", "--library", library, "--limit", "20G", driver]
    seen = {name: [] for name in ways}
    for _ in range(TURNS):
        for name, command in ways.items():
            seen[name].append(measure(*command))
    print(f"| ns for an allocation and its free, best and median of {TURNS} | 100,000 of 4 KiB | 2,000 of "
          "4 MiB | 100,000 of 4 KiB from a pool |\n|---|---|---|---|")
    for name, results in seen.items():
        cells = [f"{min(one[key] for one in results)}, {statistics.median(one[key] for one in results):.0f}"
                 for key in ("small_ns", "large_ns", "pool_ns")]
        print(f"| {name} | {' | '.join(cells)} |")


main()
