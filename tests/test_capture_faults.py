#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette capture`: killed and called again, other jobs, programs that fail, move or never settle; several slices at a time."""
# maq-test: long
import json
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from capture_case import RANK, run_cases  # noqa: E402


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
    # the message is one line of the program's; the rest is in the file that the hint names
    loud = "import sys; print('first line'); print('the reason\\t\x1b[31mis this'); print(); sys.exit(9)"
    code, _, err = s.run("capture", "-o", "loud.mqt", "--world", 1, "--libraries", "none", "--", sys.executable, "-S", "-c", loud)
    error = [line for line in err.splitlines() if "error" in line]
    assert code == 3 and len(error) == 1 and error[0].endswith("has exit status 9; the last it said: the reason  [31mis this"), (code, err)
    assert "first line" not in err and "\\n" not in err, err
    log = next(word for word in err.replace(";", " ").split() if word.endswith(".log"))
    assert "first line" in (s.path / log).read_text(), log
    code, _, err = s.run("capture", "-o", "mute.mqt", "--world", 1, "--libraries", "none", "--", "false")
    assert code == 3 and "has exit status 1 and said nothing" in err, err


def mended(s):
    """A program that failed, mistyped or not yet right, is in nobody's way when it is called again."""
    script = s.path / "later.py"
    for attempt in ("missing.py", "later.py"):
        script.write_text("import sys; sys.exit(3)\n")
        job = ("--world", 2, "--libraries", "none", "--", sys.executable, "-S")
        code, _, err = s.run("capture", "-o", "job.mqt", *job, s.path / attempt)
        assert code == 3 and "MAQ1686" in err and list((s.path / "job.mqt.slices").glob("*.log")), (code, err)
        script.write_text(f"import os\nos.execv({RANK[0]!r}, {RANK!r})\n")
        s.capture(*job, script)
        assert not (s.path / "job.mqt.slices").exists()


def out_of_time(s):
    """--timeout is of the whole: what runs is ended, and the same command goes on with what is done."""
    slow = s.path / "slow"
    slow.write_text("100")
    job = ("--world", 2, "--libraries", "none", "--", "sh", "-c", 'sleep $(cat slow); exec "$@"', "sh", *RANK)
    code, _, err = s.run("capture", "-o", "job.mqt", "--timeout", 1, *job)
    assert code == 5 and "MAQ1685" in err and "pass 0 was not done in 1 s: 0 of 1 slices" in err, (code, err)
    slow.write_text("0")
    assert s.capture("--timeout", 100, *job)["stable"]


def elsewhere(s):
    """A program that changes its folder leaves its trace where it belongs."""
    found = s.capture("--world", 2, "--libraries", "none", "--", "sh", "-c", 'cd / && exec "$@"', "sh", *RANK)
    assert found["stable"] and found["unknown_ranks"] == 0, found


def never(s):
    """Ranks that say something else in every run: after six passes a warning names them, and the last pass counts."""
    code, _, err = s.run("capture", "-o", "job.mqt", "--json", "--output", "capture.json", "--world", 4, "--libraries", "none", "--", *RANK,
                         "--clock", "2")
    assert code == 0 and "MAQ1688" in err and "after 6 passes ranks still tell each other something new: 2\n" in err, (code, err)
    assert not json.loads((s.path / "capture.json").read_text())["stable"]


def same_for_jobs(s):
    """Several slices at a time change nothing."""
    job = ("--world", 8, "--libraries", "none", "--", *RANK, "--tp", "2", "--pp", "2")
    s.capture(*job, name="a.mqt")
    s.capture("--jobs", 3, *job, name="b.mqt")
    for suffix in ("", ".peers"):
        assert (s.path / f"a.mqt{suffix}").read_bytes() == (s.path / f"b.mqt{suffix}").read_bytes(), suffix


CASES = [resumes, other_job, failing, mended, out_of_time, elsewhere, never, same_for_jobs]

if __name__ == "__main__":
    sys.exit(run_cases(CASES))
