#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette capture`: a few ranks say what thousands do."""
# maq-test: long
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from capture_case import JOB, needs_device, run_cases  # noqa: E402


def inferred(s):
    """Six ranks of 16 run; the others are inferred, and the job's times are those of all 16 at once."""
    needs_device()
    kind = ("3d", "--tp", "2", "--pp", "4")
    code, _, err = s.run("run", "--all", "--world", 16, "--json", "--output", "all.json", "--", *JOB, *kind)
    assert code == 0, err
    ends = {r["rank"]: r["virtual_s"] for r in json.loads((s.path / "all.json").read_text())["ranks"]}
    found = s.capture("--world", 16, "--slices", 8, "--tp", 2, "--pp", 4, "--verify", 2, "--", *JOB, *kind)
    assert found["probed_ranks"] < 16 and found["verified_ranks"] == 2 and found["unknown_ranks"] == 0 and found["stable"], found
    assert (found["classes"], found["communicators"]) == (4, 1 + 8 + 8 + 4), found
    ran = {x["rank"] for x in found["slices"]}
    others = [r for r in range(16) if r not in ran][:2]
    live = s.emulate(",".join(map(str, [0, *others])), "--", *JOB, *kind)
    assert all(x["virtual_s"] == x["replayed_s"] == ends[r] for r, x in live.items()) and len(live) == 3, (live, ends)


def by_ids(s):
    """Groups that are known by ids and sizes alone, over several nodes: a few ranks say where all groups lie, and times are those of all at once."""
    needs_device()
    kind = ("3d", "--tp", "2", "--pp", "4", "--ids")
    code, _, err = s.run("run", "--all", "--world", 64, "--json", "--output", "all.json", "--", *JOB, *kind)
    assert code == 0, err
    truth = {r["rank"]: (r["virtual_s"], r["device_peak_bytes"]) for r in json.loads((s.path / "all.json").read_text())["ranks"]}
    found = s.capture("--world", 64, "--slices", 12, "--tp", 2, "--pp", 4, "--jobs", 2, "--", *JOB, *kind)
    assert found["probed_ranks"] <= 24 and found["unknown_ranks"] == 0 and found["stable"], found
    assert (found["classes"], found["communicators"]) == (4, 1 + 32 + 8 + 16 + 8), found
    others = [r for r in range(64) if r not in {x["rank"] for x in found["slices"]}]
    live = s.emulate(",".join(map(str, [0, others[0], others[-1]])), "--", *JOB, *kind)
    for r, x in live.items():
        assert (x["replayed_s"], x["captured_peak_bytes"]) == truth[r], (x, truth[r])
        assert x["virtual_s"] == x["replayed_s"] and x["device_peak_bytes"] == truth[r][1] and not x["differs"], (x, truth[r])


def large(s):
    """4,096 ranks of three axes from a few, and one that never ran lives among the others."""
    needs_device()
    kind = ("3d", "--tp", "8", "--pp", "4")
    found = s.capture("--world", 4096, "--tp", 8, "--pp", 4, "--jobs", 2, "--", *JOB, *kind)
    assert found["probed_ranks"] < 40 and found["unknown_ranks"] == 0 and found["verified_ranks"] == 2, found
    assert (found["classes"], found["communicators"]) == (4, 1 + 512 + 32 + 1024), found
    live = s.emulate("0,4093", "--slow", "rank:2048=1.4x", "--", *JOB, *kind)
    assert all(abs(x["virtual_s"] / x["replayed_s"] - 1) < 1e-3 and not x["differs"] for x in live.values()), live


CASES = [inferred, by_ids, large]

if __name__ == "__main__":
    sys.exit(run_cases(CASES))
