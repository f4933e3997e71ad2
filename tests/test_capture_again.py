#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette capture`: who runs again and who does not. A slice that would hear what it heard before, ranks that speak late, news along a pipeline."""
# maq-test: long
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from capture_case import JOB, needs_device, run_cases  # noqa: E402


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
    first = {x["rank"] for x in ran if x["pass"] <= 1}
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


CASES = [not_run_again, newcomers, along]

if __name__ == "__main__":
    sys.exit(run_cases(CASES))
