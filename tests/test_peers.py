#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that mpirun starts share the variants of `maquette plan` and `maquette serve`: the report of one process is that of several, to the byte.

maq-test: no sanitizer
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import Tap  # noqa: E402

PROGRAM = os.environ.get("MAQ", "build/maquette")
MODULE = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT", "build")) / "src/base/mpi/libmaquette-mpi.so"
SWEEP = """
model: gpt2
cluster: 'a100-80gb:8'
workload: {seq: 1024, gbs: 64}
search: {tp: [1, 2], cp: 1, pp: [1, 2], vp: 1, vary: {gpus: '8..32:x2', gpu: [a100-80gb, h100-sxm], gbs: [64, 128], seq: [512, 1024]}}
"""


SERVED = ("--model", "llama-3.1-8b", "--cluster", "h100-sxm:8", "--isl", "500", "--osl", "50", "--num-requests", "60", "--slo", "tpot_mean<9ms",
          "--vary", "rate=1..64:x4", "--vary", "tp=1,2,3,8", "--vary", "weights=bf16,fp8")


def run(arguments, processes=0, command="plan"):
    # Open MPI refuses root and more processes than cores unless told.
    launcher = ["mpirun", "--oversubscribe", "-n", str(processes)] if processes else []
    # What MPI leaves behind at its end is no leak of ours.
    env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0" if processes else os.environ.get("ASAN_OPTIONS", ""), OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", LC_ALL="C")
    done = subprocess.run([*launcher, PROGRAM, command, *arguments], env=env, capture_output=True, text=True, timeout=120,
                          check=False)
    return done.returncode, done.stdout, done.stderr


def same_report(job):
    code, alone, _ = run([job, "--json"])
    assert code == 0 and alone.count('"gpus"') == 24, (code, alone[:200])
    for processes in (2, 3, 5):
        code, shared, words = run([job, "--json"], processes)
        assert code == 0, words
        assert shared == alone, processes


def same_served(_):
    code, alone, _ = run([*SERVED, "--json"], command="serve")
    assert code == 0 and alone.count('"values"') == 32, (code, alone[:200])
    for processes in (2, 3, 5):
        code, shared, words = run([*SERVED, "--json"], processes, "serve")
        assert code == 0, words
        assert shared == alone, processes
    code, out, words = run([*SERVED[:-1], "weights=fp9"], 3, "serve")
    assert code != 0 and out == "" and words.count("error[MAQ1802]") == 1, words


def one_voice(job):
    """A fault that all meet is told once."""
    code, out, words = run([job, "--vary", "gpus=12"], 3)
    assert code != 0 and out == "", (code, out)
    assert words.count("error[MAQ1624]: 12 devices are not whole nodes of 8") == 1, words


def nothing_to_share(_):
    code, _, words = run(["--model", "gpt2", "--cluster", "a100-80gb:8", "--gbs", "64"], 2)
    assert code != 0 and words.count("error[MAQ1803]") == 1, words


def main():
    tap = Tap()
    why = None if shutil.which("mpirun") else "there is no mpirun"
    why = why or (None if MODULE.exists() else "it was built without MPI")
    with tempfile.TemporaryDirectory(prefix="maq-test-") as folder:
        job = pathlib.Path(folder) / "sweep.yaml"
        job.write_text(SWEEP)
        for check in (same_report, same_served, one_voice, nothing_to_share):
            name = check.__name__.replace("_", " ")
            if why:
                tap.skip(name, why)
                continue
            try:
                check(str(job))
                tap.result(True, name)
            except (AssertionError, subprocess.SubprocessError) as error:
                tap.result(False, name, str(error))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
