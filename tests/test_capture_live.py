#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette emulate` of captured jobs: live ranks that poll, among stragglers, that are not who was captured; and what they take to start."""
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
                assert x["virtual_s"] > alike[rank]["virtual_s"] * 1.01, (edit, x, alike[rank])

    case.__name__ = f"stragglers {' '.join(kind)}"
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


CASES = [polls("dp"), polls("3d", "--tp", "2", "--pp", "2"), stragglers("pp", "--pp", "4"), stragglers("ep"), odd_one, without_device, startup,
         memory_of_communicators]

if __name__ == "__main__":
    sys.exit(run_cases(CASES))
