#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette emulate` of captured jobs: live ranks that poll, and that are not who was captured."""
# maq-test: long
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from capture_case import JOB, RANK, needs_device, run_cases  # noqa: E402


def polls(*kind):
    """Ranks that wait by asking: how often is nobody's time, and where a slice finds done what the truth waits for, the job is the same."""

    def case(s):
        needs_device()
        code, _, err = s.run("run", "--all", "--world", 8, "--trace", "all", "--json", "--output", "all.json", "--", *JOB, *kind, "--poll")
        assert code == 0, err
        code, _, err = s.run("graph", "all", "--check", "--write", "truth.mqt")
        assert code == 0, err
        found = s.capture("--world", 8, "--jobs", 2, "--", *JOB, *kind, "--poll")
        assert found["stable"] and found["probed_ranks"] == 8, found
        assert (s.path / "job.mqt").read_bytes() == (s.path / "truth.mqt").read_bytes(), "another job than all ranks at once"
        ends = {r["rank"]: r["virtual_s"] for r in json.loads((s.path / "all.json").read_text())["ranks"]}
        live = s.emulate("0,5", "--", *JOB, *kind, "--poll")
        # the last wait is that for the device now, so what the host does between the two (one call) is no longer behind the first
        assert all(x["virtual_s"] == ends[r] and not x["differs"] for r, x in live.items()), (live, ends)
        assert all(0 <= x["virtual_s"] - x["replayed_s"] < 1.5e-6 for x in live.values()), live

    case.__name__ = f"polls {' '.join(kind)}"
    return case


def odd_one(s):
    """A live program that is not the captured one is told so."""
    needs_device()
    s.capture("--world", 8, "--", *JOB, "zero", "--steps", "3")
    run = s.start("emulate", "job.mqt", "--rank", "1", "--json", "--output", "emulate.json", "--", *JOB, "zero", "--steps", "2")
    _, err = run.communicate(timeout=150)
    x = json.loads((s.path / "emulate.json").read_text())["live"][0]
    assert x["differs"] and x["records"] < x["captured_records"] and "MAQ1688" in err, (x, err)


def without_device(s):
    """A live program that uses no device is not what was captured. (It fails, so that nobody waits for what it would have done.)"""
    s.capture("--world", 4, "--libraries", "none", "--", *RANK)
    job = ("emulate", "job.mqt", "--rank", "1", "--libraries", "none", "--output", "report")
    code, _, _ = s.run(*job, "--json", "--", "sh", "-c", "exit 3")
    x = json.loads((s.path / "report").read_text())["live"][0]
    assert code == 3 and x["compared"] and x["differs"] and x["records"] == 0 < x["captured_records"], (code, x)
    s.run(*job, "--", "sh", "-c", "exit 3")
    assert "differs" in (s.path / "report").read_text()


CASES = [polls("dp"), polls("3d", "--tp", "2", "--pp", "2"), odd_one, without_device]

if __name__ == "__main__":
    sys.exit(run_cases(CASES))
