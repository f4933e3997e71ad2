# SPDX-License-Identifier: Apache-2.0
"""What the tests of `maquette capture` share: a folder for each case, the programs that are captured, and cases side by side."""
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

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


def run_cases(cases):
    """All of them, two at a time: ranks wait for each other half of the time."""
    tap = Tap()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for case, (held, words) in zip(cases, pool.map(outcome, cases)):
            if held is None:
                tap.skip(case.__name__, words)
            else:
                tap.result(held, case.__name__, words)
    return tap.done()
