# SPDX-License-Identifier: Apache-2.0
"""Programs that have no package name: llm.c and nccl-tests, where the user has them.

    make test-programs LLMC=FOLDER NCCL_TESTS=FOLDER

Both are built with their own Makefiles, with MPI, and against the shared runtime: NVCC_APPEND_FLAGS="-cudart shared".
"""
import array
import os
import pathlib
import struct
import tempfile

from jobs import Job, truth

WORLD = 8192
START_S, HOST_BYTES = 5, 300 << 20  # of a rank of so many, the program's own with them
TOKENS_PER_RANK = 64
GPT = ("-i", "train_*.bin", "-j", "val_*.bin", "-e", "d12", "-b", "1", "-t", str(TOKENS_PER_RANK), "-x", "3", "-v", "250", "-m", "2")


def folder_of(name, program):
    """(folder, None), or (None, why there is none)."""
    given = os.environ.get(name)
    if not given:
        return None, f"no package has it; built from source: make test-programs {name}=FOLDER"
    path = pathlib.Path(given).resolve()
    return (path, None) if (path / program).exists() else (None, f"{path} has no {program}")


def write_tokens(folder):
    """Data in llm.c's form: a header of 256 words (magic, version, tokens), then 16 bits each."""
    tokens = array.array("H", (i * i % 50257 for i in range(WORLD * TOKENS_PER_RANK + 1)))
    for split in ("train", "val"):
        header = struct.pack("<256i", 20240520, 1, len(tokens), *[0] * 253)
        (folder / f"{split}_000000.bin").write_bytes(header + tokens.tobytes())


def llmc(world, *arguments):
    return lambda where: [where / "train_gpt2cu", *GPT, "-d", str(world * TOKENS_PER_RANK), *arguments]


def alone(programs, ranks, prepare=None):
    """Each of the ranks starts by itself, and ends soon after its virtual time has gone by: nccl-tests polls all the while."""

    def check(maquette, where):
        for line in programs(where):
            with tempfile.TemporaryDirectory(prefix="maq-program-") as folder:
                j = Job(maquette, line, folder, WORLD)
                if prepare:
                    prepare(j.folder)
                for rank in ranks:
                    x = j.report("run", "--world", WORLD, "--rank", rank)["ranks"][0]
                    assert x["status"] == 0 and x["collectives"] + x["messages"] > 0 and x["communicators"] > 0, (line, x)
                    assert x["wall_s"] - x["virtual_s"] < START_S and x["host_peak_bytes"] < HOST_BYTES, (line, x)

    return check


SIZES = ("-b", "8", "-e", "64M", "-f", "64")


def every_test(where):
    return [[path, *SIZES] for path in sorted((where / "build").glob("*_perf"))]


def one_test(name):
    return lambda where: [where / "build" / name, *SIZES]


LLMC, TESTS = ("LLMC", "train_gpt2cu"), ("NCCL_TESTS", "build/all_reduce_perf")

CASES = [
    ("llmc-alone", LLMC, alone(lambda where: [llmc(WORLD)(where)], (0, WORLD // 2 - 1), write_tokens)),
    ("llmc-captured", LLMC, truth((0, 5), llmc(8), write_tokens, world=8)),
    ("llmc-zero1-captured", LLMC, truth((0, 5), llmc(8, "-z", "1"), write_tokens, world=8)),
    ("nccl-tests-alone", TESTS, alone(every_test, (0, WORLD // 2 - 1))),
    ("nccl-tests-captured", TESTS, truth((0, 5), one_test("all_reduce_perf"), world=8)),
    ("nccl-tests-messages", TESTS, truth((0, 5), one_test("sendrecv_perf"), world=8)),
]
