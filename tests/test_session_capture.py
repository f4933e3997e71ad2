#!/usr/bin/env python3
"""`maquette capture`: slices say what all ranks at once say, to the byte; a killed capture goes on; ranks that do not fit are told.

The truth is `maquette run --all`: every rank a process, meeting in a segment of memory. `maquette emulate` has to give its times for ranks
that live among replayed ones, and the replay of the whole job as well.
"""
# maq-test: long
import concurrent.futures
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

    def emulate(self, ranks, *arguments, name="job.mqt"):
        code, out, err = self.run("emulate", name, "--rank", ranks, "--json", "--output", "emulate.json", *arguments)
        assert code == 0, (code, err, out)
        return {x["rank"]: x for x in json.loads((self.path / "emulate.json").read_text())["live"]}

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


def elsewhere(s):
    """A program that changes its folder leaves its trace where it belongs."""
    found = s.capture("--world", 2, "--libraries", "none", "--", "sh", "-c", 'cd / && exec "$@"', "sh", *RANK)
    assert found["stable"] and found["unknown_ranks"] == 0, found


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


def never(s):
    """Ranks that say something else in every run: after six passes a warning names them, and the last pass counts."""
    code, _, err = s.run("capture", "-o", "job.mqt", "--json", "--output", "capture.json", "--world", 4, "--libraries", "none", "--", *RANK,
                         "--clock", "2")
    assert code == 0 and "MAQ1688" in err and "after 6 passes ranks still tell each other something new: 2\n" in err, (code, err)
    assert not json.loads((s.path / "capture.json").read_text())["stable"]


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


def same_for_jobs(s):
    """Several slices at a time change nothing."""
    job = ("--world", 8, "--libraries", "none", "--", *RANK, "--tp", "2", "--pp", "2")
    s.capture(*job, name="a.mqt")
    s.capture("--jobs", 3, *job, name="b.mqt")
    for suffix in ("", ".peers"):
        assert (s.path / f"a.mqt{suffix}").read_bytes() == (s.path / f"b.mqt{suffix}").read_bytes(), suffix


CASES = [truth(8, "dp"), polls("dp"), polls("3d", "--tp", "2", "--pp", "2"), truth(8, "zero"), truth(8, "tp", "--tp", "4"), truth(8, "pp", "--pp", "4"), truth(8, "ep"),
         truth(16, "3d", "--tp", "2", "--pp", "4"), truth(16, "zero"), truth(8, "3d", "--tp", "2", "--pp", "2", "--grow"), stragglers("pp", "--pp", "4"),
         stragglers("ep"), inferred, by_ids, large, odd_one, without_device, startup, resumes, other_job, failing, elsewhere, not_run_again, newcomers, along, never, memory_of_communicators, same_for_jobs]


def outcome(case):
    """What to say of a case: whether it held, or why it was not looked at."""
    with Scratch() as scratch:
        try:
            case(scratch)
            return True, ""
        except Skip as why:
            return None, str(why)
        except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as fault:
            return False, f"{type(fault).__name__}: {fault}"[:2000]


def main():
    tap = Tap()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:  # ranks wait for each other half of the time
        for case, (held, words) in zip(CASES, pool.map(outcome, CASES)):
            if held is None:
                tap.skip(case.__name__, words)
            else:
                tap.result(held, case.__name__, words)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
