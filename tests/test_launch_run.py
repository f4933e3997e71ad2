#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette run`: what a program is told, who answers it, how it ends, and that nothing of it is left."""
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import ROOT, Tap  # noqa: E402

PROGRAM = os.environ.get("MAQ", "build/maquette")
RANK = [sys.executable, "-S", str(ROOT / "tests/victims/rank.py")]


class Scratch(tempfile.TemporaryDirectory):
    """A TMPDIR of its own, which has to be empty after each run."""

    def __init__(self):
        super().__init__(prefix="maq-test-")
        self.tmp = pathlib.Path(self.name) / "tmp"
        self.tmp.mkdir()
        self.env = dict(os.environ, TMPDIR=str(self.tmp), LC_ALL="C")

    def __enter__(self):
        return self

    def run(self, *arguments):
        done = subprocess.run([PROGRAM, "run", *map(str, arguments)], env=self.env, capture_output=True, text=True, timeout=100,
                              cwd=self.name, check=False)
        assert not list(self.tmp.iterdir()), list(self.tmp.iterdir())
        return done

    def shell(self, options, script):
        return self.run(*shlex.split(options), "--libraries", "none", "--", "sh", "-c", script)


def alive(mark):
    """Processes that have `mark` on their command line."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


def gone(mark):
    until = time.monotonic() + 20
    while alive(mark) and time.monotonic() < until:
        time.sleep(0.02)
    return not alive(mark)


def environment(s):
    done = s.shell("--world 20 --rank 17", "env; cat $MAQUETTE_RUN; exit 3")
    assert done.returncode == 3, done
    want = ("RANK=17 WORLD_SIZE=20 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4 GROUP_RANK=2 MASTER_ADDR=127.0.0.1 OMPI_COMM_WORLD_RANK=17 "
            "OMPI_COMM_WORLD_SIZE=20 OMPI_COMM_WORLD_LOCAL_RANK=1 PMI_RANK=17 SLURM_PROCID=17 SLURM_NTASKS=20 SLURM_NNODES=3 "
            "TORCHELASTIC_USE_AGENT_STORE=True").split()
    lines = done.stdout.splitlines()
    assert not [w for w in want if w not in lines], [w for w in want if w not in lines]
    card = dict(line.split(" ", 1) for line in lines if re.match(r"[a-z_0-9]+ \S", line))
    assert (card["world"], card["rank"], card["local"], card["per_node"], card["mode"]) == ("20", "17", "1", "8", "alone"), card
    assert card["sms"] == "132" and card["capability"] == "90" and card["launch_ns"] == "4000", card
    # What programs make of clock and width is the bandwidth of the memory.
    assert abs(2e3 * float(card["memory_khz"]) * float(card["bus_bits"]) / 8 / 3.35e12 - 1) < 1e-5, card


def device_and_memory(s):
    done = s.shell("--world 8 --device a100-80gb --memory 40GiB --per-node 4", "cat $MAQUETTE_RUN")
    assert f"memory {40 << 30}\n" in done.stdout and "capability 80\n" in done.stdout and "per_node 4\n" in done.stdout, done.stdout


def libraries(s):
    probe = ("--", "sh", "-c", 'echo "$LD_PRELOAD"; for f in "${LD_LIBRARY_PATH%%:*}"/libcuda*; do readlink -f "$f"; done')
    for major in ("13", "12"):
        done = s.run("--world", 2, "--libraries", major, *probe)
        if "MAQ1682" in done.stderr:
            return "the zero-GPU device was not built"
        assert f"libcudart.so.{major}:" in done.stdout and f"libmaquette-vgpu-{major}.so" in done.stdout, done
    assert "libcudart.so.13" in s.run("--world", 2, *probe).stdout  # what says nothing gets the newest
    return None


def nothing_left(s):
    mark = f"{os.getpid()}.25"
    done = s.shell("--world 2", f"sleep 9{mark} & setsid sleep 8{mark} & exit 0")
    assert done.returncode == 0 and gone(mark), (done, alive(mark))


def killed(s):
    """maquette itself is killed: what it ran goes as well, and its folder."""
    mark = f"{os.getpid()}.5"
    run = subprocess.Popen([PROGRAM, "run", "--world", "2", "--libraries", "none", "--", "sh", "-c", f"setsid sleep 7{mark} & sleep 6{mark}"],
                           env=s.env)
    until = time.monotonic() + 20
    while len(alive(f"sleep\0007{mark}")) < 1 and time.monotonic() < until:
        time.sleep(0.02)
    run.send_signal(signal.SIGKILL)
    run.wait()
    assert gone(mark), alive(mark)
    while list(s.tmp.iterdir()) and time.monotonic() < until:
        time.sleep(0.02)
    assert not list(s.tmp.iterdir()), list(s.tmp.iterdir())


def ends(s):
    done = s.shell("--world 2 --timeout 1", "sleep 50")
    assert done.returncode == 5 and "MAQ1685" in done.stderr and "signal 15" in done.stderr, done
    run = subprocess.Popen([PROGRAM, "run", "--world", "2", "--libraries", "none", "--", "sh", "-c",
                            "trap 'echo heard; exit 9' TERM; echo ready; while :; do sleep 0.1; done"],
                           env=s.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.stdout.readline() == "ready\n"
    run.send_signal(signal.SIGTERM)
    out, err = run.communicate(timeout=50)
    assert out == "heard\n" and "exit status 9" in err and run.returncode == 5, (out, err, run.returncode)
    assert s.shell("--world 2", "kill -9 $$").returncode == 137


def refusals(s):
    for options, code, status in (("--world 8 --rank 8", 1680, 2), ("--world 8 --memory 40", 1680, 2), ("--world 8 --device nonesuch", 1200, 3),
                                  ("--cluster h100-sxm:8 --world 16", 1680, 2), ("--world 4096 --all", 1680, 2)):
        done = s.shell(options, "exit 0")
        assert f"MAQ{code}" in done.stderr and done.returncode == status, (options, done)
    done = s.run("--world", 8, "--libraries", "none", "--", "nonesuch")
    assert "MAQ1681" in done.stderr and done.returncode == 3, done
    done = s.run("--world", 8, "--libraries", "none", "--", s.name)
    assert "MAQ1681" in done.stderr and done.returncode == 3, done
    for program in (["torchrun", "--nproc-per-node", "8", "train.py"], ["/usr/bin/mpirun", "-n", "8", "x"], ["accelerate", "launch", "train.py"],
                    ["python3", "-u", "-m", "torch.distributed.run", "train.py"], ["python", "-X", "dev", "-mtorch.distributed.launch", "x"]):
        done = s.run("--world", 8, "--libraries", "none", "--", *program)
        assert "MAQ1681" in done.stderr and "starts ranks" in done.stderr and done.returncode == 2, (program, done)
    own = pathlib.Path(s.name) / "own-runtime"  # kernels, and no libcudart among what it needs
    built = subprocess.run(["cc", "-xc", "-", "-o", own], input='__attribute__((section(".nv_fatbin"))) int x = 1; int main(void) { return x - 1; }',
                           text=True, check=False)
    done = s.run("--world", 8, "--", own)
    assert built.returncode == 0 and "MAQ1681" in done.stderr and "-cudart shared" in done.stderr and done.returncode != 0, (built, done)
    assert s.run("--world", 8, "--libraries", "none", "--", own).returncode == 0
    for program in (["python3", "-c", "pass", "-m", "torch.distributed.run"], ["python3", "-m", "this"]):
        assert s.run("--world", 8, "--libraries", "none", "--", *program).returncode == 0, program


def report(s):
    """A rank that asks and records: counts, prices, memory; one distinct operator is asked once."""
    trace = pathlib.Path(s.name) / "kept.trace"
    done = s.run("--world", 8192, "--rank", 4095, "--libraries", "none", "--json", "--output", "out.json", "--trace", "kept.trace", "--", *RANK,
                 "--tp", 8, "--pp", 4, "--steps", 3)
    assert done.returncode == 0 and done.stdout == "", done
    out = json.loads((pathlib.Path(s.name) / "out.json").read_text())
    rank = out["ranks"][0]
    assert out["world"] == 8192 and rank["rank"] == 4095 and rank["trace_bytes"] == trace.stat().st_size, out
    # p = 1 of 4: a message in and out, a product, two all-reduces and a wait a step; two allocations, one freed, an exchange, an end
    assert (rank["launches"], rank["collectives"], rank["messages"], rank["calls"]) == (3, 6, 6, 3 * 6 + 3 + 1 + 1), rank
    assert rank["device_peak_bytes"] == (1 << 30) + (2 << 20) and rank["communicators"] == 4 and rank["operators"] == 1, rank
    rows = {row["name"] + str(row.get("ranks", "")): row for row in out["operators"]}
    assert set(rows) == {"gemm", "all-reduce8", "all-reduce256"} and {r["launches"] for r in rows.values()} == {3}, rows
    assert rows["gemm"]["provider"] in ("fitted", "analytical") and 1e3 < rows["gemm"]["ns"] < 1e6, rows
    assert rows["all-reduce256"]["ns"] > rows["all-reduce8"]["ns"] > 0, rows
    total = sum(r["ns"] * r["launches"] for r in rows.values()) + 6 * (2000 + (1 << 20) // 1000)
    assert abs(rank["device_s"] * 1e9 - total) < 1, (rank, total)
    assert rank["virtual_s"] > rank["device_s"] > 0, rank
    slow = s.run("--world", 8192, "--rank", 4095, "--libraries", "none", "--device", "v100-32gb", "--json", "--output", "slow.json", "--", *RANK,
                 "--tp", 8, "--pp", 4, "--steps", 3)
    assert slow.returncode == 0, slow
    assert json.loads((pathlib.Path(s.name) / "slow.json").read_text())["ranks"][0]["device_s"] > rank["device_s"]


def same_bytes(s):
    traces = []
    for name in ("a.trace", "b.trace"):
        assert s.run("--world", 64, "--rank", 9, "--libraries", "none", "--trace", name, "--", *RANK, "--tp", 2, "--pp", 4).returncode == 0
        traces.append((pathlib.Path(s.name) / name).read_bytes())
    assert traces[0] == traces[1]


def torn(s):
    """A trace that ends inside a record is read up to there; one that is none is a fault of the program's."""
    head = r"maqrank\n\001\0\0\0\100\0\0\0\002\0\0\0\0\0\0\0\010\0\0\0"
    done = s.shell("--world 2", f"t=$(sed -n 's/^trace //p' $MAQUETTE_RUN); printf '{head}' >$t; head -c 36 /dev/zero >>$t; printf '\\004' >>$t; head -c 41 /dev/zero >>$t")
    assert done.returncode == 0 and "MAQ1671" in done.stderr, done
    done = s.shell("--world 2", ": >$(sed -n 's/^trace //p' $MAQUETTE_RUN); kill -9 $$")  # killed before it wrote anything
    assert done.returncode == 137 and "MAQ16" not in done.stderr and "used no device" in done.stderr, done
    done = s.shell("--world 2", "echo nonsense >$(sed -n 's/^trace //p' $MAQUETTE_RUN)")
    assert done.returncode == 3 and "MAQ1670" in done.stderr, done


def all_ranks(s):
    """All at once: each is itself, and the store is one."""
    done = s.run("--world", 4, "--all", "--libraries", "none", "--trace", "traces", "--json", "--output", "all.json", "--", *RANK, "--tp", 2)
    assert done.returncode == 0, done
    out = json.loads((pathlib.Path(s.name) / "all.json").read_text())
    assert [(r["rank"], r["status"], r["launches"]) for r in out["ranks"]] == [(r, 0, 2) for r in range(4)], out
    assert out["store_keys_invented"] == 0, out
    assert {f.name for f in (pathlib.Path(s.name) / "traces").iterdir()} == {f"rank-{r}.trace" for r in range(4)}
    done = s.shell("--world 4 --all --trace one", "cat $MAQUETTE_RUN | grep -E '^(mode|rank|meet)'; test -s $(sed -n 's/^meet //p' $MAQUETTE_RUN)")
    assert sorted(re.findall(r"^rank (\d)", done.stdout, re.M)) == list("0123") and done.stdout.count("mode meet\n") == 4, done
    assert done.returncode == 0, done


GLOO = """
import os, socket, struct
store = socket.create_connection(("127.0.0.1", int(os.environ["MASTER_PORT"])))
text = lambda b: struct.pack("<Q", len(b)) + b
own = text(b"host") + text(struct.pack("<H134x", socket.AF_INET)) + struct.pack("<4q", 0, 1, 2, 3)
store.sendall(b"\\0" + struct.pack("<I", 0x3C85F7CE) + b"\\1" + text(b"g/1") + text(own))
store.sendall(b"\\6" + struct.pack("<Q", 1) + text(b"g/3"))
assert store.recv(1) == b"\\0"
"""


def gloo(s):
    """With the program's own libraries nobody answers for ranks of gloo that are not there, and that is said."""
    for libraries, said in (("none", 1), ("13", 0)):
        done = s.run("--world", 4, "--rank", 1, "--libraries", libraries, "--", sys.executable, "-S", "-c", GLOO)
        if libraries != "none" and "MAQ1682" in done.stderr:
            continue  # a build with sanitizers has no device
        assert done.returncode == 0 and done.stderr.count("warning[MAQ1690]") == said, done.stderr


def main():
    tap = Tap()
    for case in (environment, device_and_memory, libraries, nothing_left, killed, ends, refusals, report, same_bytes, torn, all_ranks, gloo):
        with Scratch() as scratch:
            try:
                why = case(scratch)
                if why:
                    tap.skip(case.__name__, why)
                else:
                    tap.result(True, case.__name__)
            except (AssertionError, OSError, ValueError, subprocess.SubprocessError) as fault:
                tap.result(False, case.__name__, f"{type(fault).__name__}: {fault}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
