#!/usr/bin/env python3
"""`maquette capture`: slices say what all ranks at once say, to the byte; a killed capture goes on; ranks that do not fit are told.

The truth is `maquette run --all`: every rank a process, meeting in a segment of memory.
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import ROOT, Tap  # noqa: E402

PROGRAM = os.environ.get("MAQ", "build/maquette")
DEVICE = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT") or pathlib.Path(PROGRAM).resolve().parent) / "shim/libmaquette-vgpu-13.so"
JOB = [sys.executable, "-S", str(ROOT / "tests/victims/job.py")]
RANK = [sys.executable, "-S", str(ROOT / "tests/victims/rank.py")]


class Skip(Exception):
    pass


class Scratch(tempfile.TemporaryDirectory):
    def __init__(self):
        super().__init__(prefix="maq-test-")
        self.path = pathlib.Path(self.name)
        (self.path / "tmp").mkdir()
        self.env = dict(os.environ, TMPDIR=f"{self.name}/tmp", LC_ALL="C")

    def __enter__(self):
        return self

    def start(self, *arguments):
        return subprocess.Popen([PROGRAM, *map(str, arguments)], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                cwd=self.name)

    def run(self, *arguments):
        run = self.start(*arguments)
        out, err = run.communicate(timeout=200)
        assert not list((self.path / "tmp").iterdir())
        return run.returncode, out, err

    def capture(self, *arguments, name="job.mqt"):
        code, out, err = self.run("capture", "-o", name, "--json", "--output", "capture.json", *arguments)
        assert code == 0 and out == "", (code, err)
        return json.loads((self.path / "capture.json").read_text())

    def last_traces(self, world, name="job.mqt"):
        """The trace of each rank in its last pass."""
        found = {}
        for file in (self.path / f"{name}.slices").glob("p*-r*.trace"):
            pass_, rank = (int(word[1:]) for word in file.stem.split("-"))
            found[rank] = max(found.get(rank, (-1, None)), (pass_, file))
        assert sorted(found) == list(range(world)), sorted(found)
        return [found[rank][1].read_bytes() for rank in range(world)]


def needs_device():
    if not DEVICE.exists():
        raise Skip("the zero-GPU device was not built")


def truth(world, *kind):
    """All ranks at once, and slices: the same traces, of two passes after rank 0's first."""

    def case(s):
        needs_device()
        options = ("--world", world, "--memory", "4GiB")
        code, out, err = s.run("run", "--all", "--trace", "all", "--json", "--output", "all.json", *options, "--", *JOB, *kind)
        assert code == 0, err
        found = s.capture("--keep", *options, "--", *JOB, *kind)
        want = [(s.path / f"all/rank-{r}.trace").read_bytes() for r in range(world)]
        got = s.last_traces(world)
        assert [r for r in range(world) if want[r] != got[r]] == [], "traces of these ranks differ"
        assert found["stable"] and found["passes"] == 3 and found["probed_ranks"] == world and found["unknown_ranks"] == 0, found
        peaks = [r["device_peak_bytes"] for r in json.loads((s.path / "all.json").read_text())["ranks"]]
        assert all(p > 90 << 20 for p in peaks), peaks
        if "--grow" in kind:  # out of memory in the same call: the line that each rank prints says in which
            said = [max((s.path / "job.mqt.slices").glob(f"p*-r{r}.log")).read_text() for r in range(world)]
            assert sorted(out.splitlines()) == sorted("".join(said).splitlines()) and len(out.splitlines()) == world, (out, said)
            assert max(peaks) <= 4 << 30 < min(peaks) + (1 << 30) + (8 << 20), peaks

    case.__name__ = f"truth {world} {' '.join(kind)}"
    return case


def resumes(s):
    """Killed in the middle, and called again: the same bytes as in one go, and finished slices are not run again."""
    job = ("--world", 12, "--libraries", "none", "--", *RANK, "--tp", "2", "--pp", "3")
    s.capture(*job, name="whole.mqt")
    run = s.start("capture", "-o", "job.mqt", *job)
    until = time.monotonic() + 60
    while len(list(s.path.glob("job.mqt.slices/*.done"))) < 4 and time.monotonic() < until:
        time.sleep(0.005)
    run.send_signal(signal.SIGKILL)
    run.communicate()
    while list((s.path / "tmp").iterdir()) and time.monotonic() < until:
        time.sleep(0.02)  # the keeper cleans up
    assert not (s.path / "job.mqt").exists() or run.returncode == -signal.SIGKILL, run.returncode
    done = len(list(s.path.glob("job.mqt.slices/*.done")))
    found = s.capture(*job)
    assert sum(x["resumed"] for x in found["slices"]) == done >= 4, (done, found["slices"])
    for suffix in ("", ".peers"):
        assert (s.path / f"job.mqt{suffix}").read_bytes() == (s.path / f"whole.mqt{suffix}").read_bytes(), suffix
    assert not (s.path / "job.mqt.slices").exists()


def other_job(s):
    """A work folder of another program, device or world is not gone on with."""
    s.capture("--world", 4, "--keep", "--libraries", "none", "--", *RANK)
    for change in (("--world", 8), ("--world", 4, "--device", "a100-80gb")):
        code, _, err = s.run("capture", "-o", "job.mqt", *change, "--libraries", "none", "--", *RANK)
        assert code == 2 and "MAQ1689" in err, (code, err)


def failing(s):
    code, _, err = s.run("capture", "-o", "job.mqt", "--world", 4, "--libraries", "none", "--", *RANK, "--fail", "2")
    assert code == 3 and "MAQ1686" in err and "rank 2 has exit status 7" in err and "does not like it here" in err, (code, err)
    assert not (s.path / "job.mqt").exists()


def same_for_jobs(s):
    """Several slices at a time change nothing."""
    job = ("--world", 8, "--libraries", "none", "--", *RANK, "--tp", "2", "--pp", "2")
    s.capture(*job, name="a.mqt")
    s.capture("--jobs", 3, *job, name="b.mqt")
    for suffix in ("", ".peers"):
        assert (s.path / f"a.mqt{suffix}").read_bytes() == (s.path / f"b.mqt{suffix}").read_bytes(), suffix


CASES = [truth(8, "dp"), truth(8, "zero"), truth(8, "tp", "--tp", "4"), truth(8, "pp", "--pp", "4"), truth(8, "ep"),
         truth(16, "3d", "--tp", "2", "--pp", "4"), truth(16, "zero"), truth(8, "3d", "--tp", "2", "--pp", "2", "--grow"), resumes, other_job,
         failing, same_for_jobs]


def main():
    tap = Tap()
    for case in CASES:
        with Scratch() as scratch:
            try:
                case(scratch)
                tap.result(True, case.__name__)
            except Skip as why:
                tap.skip(case.__name__, why)
            except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as fault:
                tap.result(False, case.__name__, f"{type(fault).__name__}: {fault}"[:2000])
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
