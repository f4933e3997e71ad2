#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette capture`: a few ranks say what thousands do, and late ones are heard."""
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


def not_run_again(s):
    """A slice that would be told what it was told before is not run again, and the captured job is the same to the byte."""
    needs_device()
    job = ("--world", 256, "--jobs", 2, "--", *JOB, "3d", "--tp", "8", "--pp", "4")
    some = s.capture(*job, name="some.mqt")
    every = s.capture("--every-pass", *job, name="every.mqt")
    ran, repeats = ([x for x in some["slices"] if x["repeats"] == r] for r in (False, True))
    assert not any(x["repeats"] for x in every["slices"]) and len(ran) + len(repeats) == len(every["slices"]), (ran, every)
    assert len(repeats) >= len(every["slices"]) // 4, (len(repeats), len(every["slices"]))
    # where it was run after all, it left the same trace as before
    told = {(x["pass"], x["rank"]) for x in repeats}
    assert not any(x["changed"] for x in every["slices"] if (x["pass"], x["rank"]) in told), every
    for suffix in ("", ".peers"):
        assert (s.path / f"some.mqt{suffix}").read_bytes() == (s.path / f"every.mqt{suffix}").read_bytes(), suffix


def newcomers(s):
    """Ranks that speak late say what was supposed of them: those who had heard that are not run again, and the job is the same."""
    needs_device()
    job = ("--world", 32, "--slices", 12, "--tp", 2, "--pp", 4, "--jobs", 2, "--", *JOB, "3d", "--tp", "2", "--pp", "4", "--ids", "--tell")
    some = s.capture(*job, name="some.mqt")
    ran = [x for x in some["slices"] if not x["repeats"]]
    first = {x["rank"] for x in ran if x["pass"] == 1}
    late = {x["rank"] for x in ran} - first
    assert some["stable"] and some["unknown_ranks"] == 0 and len(first) == 12 and len(late) >= 3, some
    assert all(x["pass"] <= 2 for x in ran if x["rank"] in first), ran
    assert len(ran) <= 1 + 2 * len(first) + 2 * len(late), (len(ran), first, late)
    every = s.capture("--every-pass", *job, name="every.mqt")
    assert len(every["slices"]) == len(some["slices"]) >= 2 * len(ran), (len(ran), len(every["slices"]))
    for suffix in ("", ".peers"):
        assert (s.path / f"some.mqt{suffix}").read_bytes() == (s.path / f"every.mqt{suffix}").read_bytes(), suffix


def along(s):
    """What goes along a pipeline and back takes a pass for each stage, and is heard in the end; who would hear the same again does not run again."""
    needs_device()
    job = ("--world", 8, "--", *JOB, "pp", "--pp", "8", "--along")
    code, _, err = s.run("run", "--all", "--trace", "all", *job)
    assert code == 0, err
    code, _, err = s.run("graph", "all", "--check", "--write", "truth.mqt")
    assert code == 0, err
    found = s.capture("--jobs", 2, *job)
    assert found["stable"] and found["probed_ranks"] == 8, found
    assert (s.path / "job.mqt").read_bytes() == (s.path / "truth.mqt").read_bytes(), "another job than all ranks at once"
    ran = [x for x in found["slices"] if not x["repeats"]]
    # rank 0 first, a pass until members of the pipeline know of each other, 7 stages that hear from the one in front, 7 from the one behind
    assert max(x["pass"] for x in ran) == 15, sorted((x["pass"], x["rank"], x["status"]) for x in ran)
    assert all(1 < sum(x["rank"] == r for x in ran) <= 5 for r in range(8)), ran


CASES = [inferred, by_ids, large, not_run_again, newcomers, along]

if __name__ == "__main__":
    sys.exit(run_cases(CASES))
