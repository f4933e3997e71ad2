# SPDX-License-Identifier: Apache-2.0
"""Whole jobs of PyTorch and Megatron-Core: all ranks at once are the truth, and what is captured from slices has to be the same.

For each job: `maquette run --all` runs every rank as a process; `maquette capture` runs them one after another; the captured job
of the slices has the same bytes as one made of the traces of the truth, and so the same records, classes, communicators and times.
Then ranks live among replayed ones, with and without a straggler, and end when the replay of the whole says, with the peak of memory
that they had in the truth.
"""
import json
import os
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def script(name, *arguments):
    """A program of this folder, given the interpreter."""
    return lambda python: [python, HERE / name, *arguments]


class Job:
    def __init__(self, maquette, program, folder, world, options=()):
        self.maquette, self.folder, self.world = str(maquette), pathlib.Path(folder), world
        self.program = ["--", *map(str, program)]
        self.options = list(options)
        self.environment = {"LC_ALL": "C"}

    def run(self, command, *arguments, program=True, timeout=7200):
        done = subprocess.run([self.maquette, command, *map(str, arguments), *(self.program if program else ())], cwd=self.folder,
                              env={**os.environ, **self.environment}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=timeout, check=False)
        assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stderr[-2500:]}"
        return done

    def report(self, command, *arguments):
        path = self.folder / f"{command}.json"
        self.run(command, "--json", "--output", path, *arguments)
        return json.loads(path.read_text())

    def all(self):
        """Ends and peaks of all ranks, and truth.mqt, the job made of their traces."""
        ranks = self.report("run", "--all", "--world", self.world, "--trace", "truth", *self.options)["ranks"]
        self.run("graph", "truth", "--check", "--write", "truth.mqt", program=False)
        return {r["rank"]: (r["virtual_s"], r["device_peak_bytes"]) for r in ranks}

    def capture(self, *arguments):
        return self.report("capture", "--world", self.world, "-o", "job.mqt", *self.options, *arguments)

    def emulate(self, ranks, *arguments):
        return {x["rank"]: x for x in self.report("emulate", "job.mqt", "--rank", ",".join(map(str, ranks)), *self.options,
                                                  *arguments)["live"]}


def truth(live, program, prepare=None, **job):
    """Slices of all ranks against all ranks at once; `prepare` puts into their folder what the program reads."""

    def check(maquette, where):
        with tempfile.TemporaryDirectory(prefix="maq-program-") as folder:
            j = Job(maquette, program(where), folder, **job)
            if prepare:
                prepare(j.folder)
            ranks = j.all()
            found = j.capture("--slices", j.world)
            assert found["stable"] and found["probed_ranks"] == j.world, {k: v for k, v in found.items() if k != "slices"}
            assert (j.folder / "job.mqt").read_bytes() == (j.folder / "truth.mqt").read_bytes(), "another job than all ranks at once"
            for rank, x in j.emulate(live).items():
                assert not x["differs"] and x["virtual_s"] == x["replayed_s"] == ranks[rank][0], (x, ranks[rank])
                assert x["device_peak_bytes"] == x["captured_peak_bytes"] == ranks[rank][1] > 0, (x, ranks[rank])
            for rank, x in j.emulate(live[:1], "--slow", f"rank:{live[1]}=4x").items():
                assert abs(x["virtual_s"] / x["replayed_s"] - 1) < 1e-3, ("straggler", x)
                assert x["virtual_s"] > ranks[rank][0], ("straggler", x, ranks[rank])

    return check


def at_once(program, **job):
    """All ranks together, and everything between them meets."""

    def check(maquette, where):
        with tempfile.TemporaryDirectory(prefix="maq-program-") as folder:
            ranks = Job(maquette, program(where), folder, **job).all()
            assert len(ranks) == job["world"] and all(end > 0 and peak > 0 for end, peak in ranks.values()), ranks

    return check


def inferred(most, program, **job):
    """A large job from a few ranks; one that never ran lives among the others."""

    def check(maquette, where):
        with tempfile.TemporaryDirectory(prefix="maq-program-") as folder:
            j = Job(maquette, program(where), folder, **job)
            found = j.capture("--jobs", 2)
            assert found["stable"] and found["unknown_ranks"] == 0 and found["verified_ranks"] == 2, found
            assert found["probed_ranks"] <= most < j.world, found["probed_ranks"]
            live = max(set(range(j.world)) - {x["rank"] for x in found["slices"]})
            for x in j.emulate([0, live], "--slow", f"rank:{live - 1}=1.5x").values():
                assert not x["differs"] and abs(x["virtual_s"] / x["replayed_s"] - 1) < 1e-3, x
                assert x["device_peak_bytes"] == x["captured_peak_bytes"] > 0, x

    return check


def on_the_host(kind):
    """gloo: all ranks at once; a rank alone begins with the same loss where it holds all weights; slices settle, and objects come over."""

    def losses(text):
        return [float(line.split()[1]) for line in text.splitlines() if line.startswith("loss ")]

    def check(maquette, python):
        with tempfile.TemporaryDirectory(prefix="maq-program-") as folder:
            j = Job(maquette, script("gloo.py", kind, "broadcast")(python), folder, 4)
            said = j.run("run", "--all", "--world", 4).stdout.splitlines()
            for rank in range(4):
                assert f"rank {rank} of 4 gathered {[rank % 2, rank % 2 + 2]} told by 0" in said, said
            alone = Job(maquette, script("gloo.py", kind)(python), folder, 1024).run("run", "--world", 1024, "--rank", 3).stdout
            assert "rank 3 of 1024 gathered [3, 3, 3, 3] told by 3" in alone, alone
            assert len(losses(alone)) == 3, alone
            if kind == "ddp":  # with the weights in shards the others' are this rank's own, which is another model
                assert losses(alone)[0] in [x for line in said for x in losses(line)], (said, alone)
                assert losses(alone) == sorted(losses(alone), reverse=True), alone
                j.environment["MALLOC_PERTURB_"] = "255"  # objects are padded with what nobody has set
                found = j.capture("--jobs", 2)
                assert found["stable"] and found["probed_ranks"] == 4, {k: v for k, v in found.items() if k != "slices"}

    return check


def megatron(world, live, *arguments, values=None):
    return truth(live, script("megatron_gpt.py", *arguments), world=world, options=("--values", HERE / values) if values else ())


CASES = [
    ("ddp-captured", "torch", inferred(20, script("ddp.py"), world=64)),
    ("example-captured", "torch", inferred(20, script("../../examples/train.py"), world=64)),
    ("fsdp2-captured", "torch", truth((0, 5), script("fsdp2.py"), world=8)),
    ("tp-captured", "torch", truth((0, 6), script("tp.py"), world=8)),
    ("pp-at-once", "torch", at_once(script("pp.py"), world=8)),
    ("pp-captured", "torch", truth((0, 7), script("pp.py"), world=8)),
    ("gloo-ddp", "torch", on_the_host("ddp")),
    ("gloo-fsdp", "torch", on_the_host("fsdp")),
    ("megatron-gpt", "megatron.core", megatron(8, (0, 5), "--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "2")),
    ("megatron-gpt-16", "megatron.core", megatron(16, (0, 13), "--tensor-model-parallel-size", "2", "--pipeline-model-parallel-size", "4")),
    ("megatron-moe", "megatron.core", megatron(8, (0, 6), "--expert-model-parallel-size", "4", "--num-experts", "8",
                                               values="megatron_moe.values")),
]
