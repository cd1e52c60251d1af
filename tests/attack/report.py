"""What came of the attacks: a table for people, and a file for programs."""

import dataclasses
import json
import os

from memory import Flood

HELD, SUCCEEDED, SKIPPED, BROKEN = "held", "succeeded", "skipped", "broken"
COLUMNS = "{:>3}  {:<11}  {:<10}  {:<9}  {}"


@dataclasses.dataclass
class Result:
    number: int
    kind: str
    enemy: str
    wants: str
    outcome: str
    evidence: str
    seconds: float
    floods: list[Flood]


def one_line(text, most=160):
    line = " ".join(str(text).split())
    return line if len(line) <= most else line[: most - 3] + "..."


def print_row(result):
    print(COLUMNS.format(result.number, result.enemy, result.kind, result.outcome, result.wants))
    print(COLUMNS.format("", "", "", f"{result.seconds:.1f} s", "  " + one_line(result.evidence)),
          flush=True)


def print_head():
    print(COLUMNS.format("no.", "enemy", "class", "outcome", "attack, and the evidence"))


def print_floods(results):
    rows = [(result, flood) for result in results for flood in result.floods]
    if not rows:
        return
    print("\nMemory of the scheduler during floods, in MiB resident")
    line = "{:>3}  {:>7}  {:>7}  {:>8}  {:<34}  {}"
    print(line.format("no.", "before", "peak", "allowed", "by", "flood"))
    for result, flood in rows:
        print(line.format(result.number, f"{flood.before_mib:.0f}", f"{flood.peak_mib:.0f}",
                          f"+{flood.limit_mib:.0f}", flood.bound, result.wants))


def print_sums(results):
    count = {outcome: sum(1 for result in results if result.outcome == outcome)
             for outcome in (HELD, SUCCEEDED, SKIPPED, BROKEN)}
    print(f"\n{len(results)} attacks: {count[HELD]} held, {count[SUCCEEDED]} succeeded, "
          f"{count[SKIPPED]} skipped, {count[BROKEN]} could not be judged")
    for result in results:
        if result.outcome in (SUCCEEDED, BROKEN):
            print(f"FAILED {result.number}: {result.wants}: {one_line(result.evidence, 400)}")
    failed = count[SUCCEEDED] + count[BROKEN]
    print(f"{count[HELD]} passed, {failed} failed", flush=True)
    return failed


def write(results, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        json.dump([dataclasses.asdict(result) for result in results], file, indent=1)
        file.write("\n")
