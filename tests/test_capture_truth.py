#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette capture`: slices say what all ranks at once say, to the byte.

The truth is `maquette run --all`: every rank a process, meeting in a segment of memory. `maquette emulate` has to give its times for ranks
that live among replayed ones, and the replay of the whole job as well.
"""
# maq-test: long
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from capture_case import JOB, needs_device, run_cases  # noqa: E402


def truth(world, *kind):
    """All ranks at once, and slices: the same traces, of two passes after rank 0's first."""

    def case(s):
        needs_device()
        options = ("--world", world, "--memory", "4GiB")
        code, out, err = s.run("run", "--all", "--trace", "all", "--json", "--output", "all.json", *options, "--", *JOB, *kind)
        assert code == 0, err
        found = s.capture("--keep", "--slices", world, *options, "--", *JOB, *kind)
        want = [(s.path / f"all/rank-{r}.trace").read_bytes() for r in range(world)]
        got = s.last_traces(world)
        assert [r for r in range(world) if want[r] != got[r]] == [], "traces of these ranks differ"
        assert max(x["pass"] for x in found["slices"] if not x["repeats"]) == 2, found  # two passes after rank 0's first
        assert found["stable"] and found["probed_ranks"] == world and found["unknown_ranks"] == 0, found
        peaks = [r["device_peak_bytes"] for r in json.loads((s.path / "all.json").read_text())["ranks"]]
        assert all(p > 90 << 20 for p in peaks), peaks
        ends = {r["rank"]: r["virtual_s"] for r in json.loads((s.path / "all.json").read_text())["ranks"]}
        live = s.emulate("1,6", "--memory", "4GiB", "--", *JOB, *kind)
        for rank, x in live.items():
            assert x["virtual_s"] == x["replayed_s"] == ends[rank], (x, ends[rank])
            assert not x["differs"] and x["device_peak_bytes"] == x["captured_peak_bytes"] == peaks[rank], x
        if "--grow" in kind:  # out of memory in the same call: the line that each rank prints says in which
            said = [max((s.path / "job.mqt.slices").glob(f"p*-r{r}.log")).read_text() for r in range(world)]
            assert sorted(out.splitlines()) == sorted("".join(said).splitlines()) and len(out.splitlines()) == world, (out, said)
            assert max(peaks) <= 4 << 30 < min(peaks) + (1 << 30) + (8 << 20), peaks

    case.__name__ = f"truth {world} {' '.join(kind)}"
    return case


CASES = [truth(8, "dp"), truth(8, "zero"), truth(8, "tp", "--tp", "4"), truth(8, "pp", "--pp", "4"), truth(8, "ep"),
         truth(16, "3d", "--tp", "2", "--pp", "4"), truth(16, "zero"), truth(8, "3d", "--tp", "2", "--pp", "2", "--grow")]

if __name__ == "__main__":
    sys.exit(run_cases(CASES))
