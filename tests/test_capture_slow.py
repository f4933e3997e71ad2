#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette emulate` of captured jobs among slow ranks; what programs of a job take to start, and its communicators of memory."""
# maq-test: long
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from capture_case import JOB, needs_device, run_cases  # noqa: E402


def stragglers(*kind):
    """A live rank among a slow one ends when the replay of the whole says."""

    def case(s):
        needs_device()
        s.capture("--world", 8, "--", *JOB, *kind)
        alike = s.emulate("0,5", "--", *JOB, *kind)
        for edit in ("rank:2=1.5x", "node:0=1.3x,rank:3=2x"):
            slow = s.emulate("0,5", "--slow", edit, "--", *JOB, *kind)
            for rank, x in slow.items():
                assert abs(x["virtual_s"] / x["replayed_s"] - 1) < 1e-3, (edit, x)
                assert x["virtual_s"] > alike[rank]["virtual_s"] * 1.005, (edit, x, alike[rank])

    case.__name__ = f"stragglers {' '.join(kind)}"
    return case


def startup(s):
    """Rank 0 and rank 4,095 of 8,192 start with less than 300 MB beyond the program's own, which is some 15 MB of Python here."""
    needs_device()
    for rank in (0, 4095):
        code, _, err = s.run("run", "--world", 8192, "--rank", rank, "--json", "--output", "run.json", "--", *JOB, "3d", "--tp", "8", "--pp", "16")
        x = json.loads((s.path / "run.json").read_text())["ranks"][0]
        assert code == 0 and x["host_peak_bytes"] < 300e6 and x["communicators"] == 4 and x["host_cpu_s"] < 5, (x, err)


def memory_of_communicators(s):
    """Four communicators of two ranks on one node: by the rule, by a profile, and not counted; a line that is none is shown."""
    needs_device()

    def peak(*options):
        code, _, err = s.run("run", "--all", "--world", 2, "--json", "--output", "run.json", *options, "--", *JOB, "tp", "--tp", "2")
        assert code == 0, err
        return json.loads((s.path / "run.json").read_text())["ranks"][0]["device_peak_bytes"]

    none, mib = peak("--nccl-memory", "none"), 1 << 20
    # all, tensor, data (of one rank) and pipeline (of one): two of two ranks begin, and the tensor group communicates
    assert peak() - none == (2 * (2 + 32 * 6) + 24 * 12) * mib, (peak() - none) / mib
    (s.path / "profile").write_text("# seen\ninit 2 node 1048576\ncollective any node 7340032\n")
    assert peak("--nccl-memory", "profile") - none == (2 * 1 + 7) * mib
    (s.path / "profile").write_text("init 2 node 1048576\ncollective two node 7\n")
    code, _, err = s.run("run", "--world", 2, "--nccl-memory", "profile", "--", *JOB, "tp")
    assert code == 3 and "MAQ1680" in err and "profile:2:1" in err, (code, err)
    code, _, err = s.run("run", "--world", 2, "--nccl-memory", "nowhere", "--", *JOB, "tp")
    assert code == 4 and "nowhere" in err, (code, err)


CASES = [stragglers("pp", "--pp", "4"), stragglers("ep"), startup, memory_of_communicators]

if __name__ == "__main__":
    sys.exit(run_cases(CASES))
