"""gpu-sim predicates: kube-scheduler's cases, answered by the core."""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CASES = ROOT / "tests/kube/predicates.json"


def run(file):
    return subprocess.run([ROOT / "bin/gpu-sim", "predicates", str(file)],
                          capture_output=True, text=True, timeout=300, check=False)


def test_all_cases_with_default_features_pass():
    result = run(CASES)
    assert result.returncode == 0, result.stdout
    assert result.stdout.splitlines()[-1] == "195 passed, 0 failed"
    assert "2 left out" in result.stdout


def test_a_case_that_expects_something_else_fails(tmp_path):
    case = next(case for case in json.loads(CASES.read_text())
                if case["plugin"] == "TaintToleration"
                and any(e["code"] != "Success" for e in case["expect"].values()))
    for expect in case["expect"].values():
        expect["code"] = "Success"
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps([case]))
    result = run(wrong)
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "0 passed, 1 failed"
    assert "Success expected, UnschedulableAndUnresolvable found" in result.stdout


def test_what_is_no_file_of_cases_is_refused(tmp_path):
    other = tmp_path / "other.json"
    other.write_text("{}")
    result = run(other)
    assert result.returncode == 2
    assert "not an array of cases" in result.stderr
