"""What `maquette train` says of a command line against what the program of that command line does.

Megatron-Core allocates as it would on a GPU: on the zero-GPU device PyTorch's allocator is the real one, so its peak is the truth
for the memory that `train` predicts (without the CUDA context and NCCL's buffers, which are not the allocator's).
"""
import json
import os
import pathlib
import re
import subprocess
import tempfile

SCRIPT = pathlib.Path(__file__).resolve().parent / "megatron_gpt.py"
WITHIN = 0.04  # of the peak; 0.031 is the most that was seen

# So many sequences in a micro batch that activations count beside the states, and the optimizer's step is not always the peak.
SEQUENCES = 8
SIZES = ("--num-layers 8 --hidden-size 2048 --num-attention-heads 16 --seq-length 1024 --vocab-size 51200 "
         f"--micro-batch-size {SEQUENCES}").split()
MICROBATCHES = 8
ROUTED = SEQUENCES * 1024 * 2  # tokens of a micro batch, to two experts each
# The kernels behind which it reads how many: of few tokens, of many (cub reduces these twice), for each expert and rank.
READ = "NonZeroOp 4 i32", "DeviceReduceSingleTileKernel 4 i32", "sum_functorIlllE * i64"
# What megatron_gpt.py sets itself, in the words of Megatron-LM, and what those have no word for.
SCRIPTED = ("--bf16 --use-distributed-optimizer --hidden-dropout 0 --attention-dropout 0 --max-position-embeddings 1024 "
            "--untie-embeddings-and-output-weights").split()
# Without Apex and Transformer Engine its Adam is PyTorch's, over lists of tensors.
LOCAL = [*"--attention-backend unfused --fused-kernels false --gradient-accumulation-fusion false".split(), "--framework",
         "{base: megatron-lm, optimizer: foreach}"]
EXPERTS = f"--moe-ffn-hidden-size {2 * 2048} --moe-router-topk 2 --disable-bias-linear".split()


def predicted(maquette, world, arguments, data_parallel):
    """Bytes of the allocator, for each pipeline stage."""
    line = [*SIZES, *arguments, *SCRIPTED, "--global-batch-size", str(SEQUENCES * MICROBATCHES * data_parallel)]
    if "--no-distributed-optimizer" in line:  # the script's own word: Megatron-LM has none without it
        line = [x for x in line if not x.endswith("-distributed-optimizer")]
    line += EXPERTS if "--num-experts" in line else []
    line += ["--sequence-parallel"] if "--tensor-model-parallel-size" in arguments else []
    done = subprocess.run([str(maquette), "train", "--json", "--cluster", f"h100-sxm:{world}", *LOCAL, "--", SCRIPT.name, *line],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return [stage["memory"]["allocated_bytes"] for stage in json.loads(done.stdout)["stages"]]


def measured(maquette, python, world, rank, arguments):
    """The peak that PyTorch counts, of one rank among virtual ones. A router deals its tokens alike (megatron_moe.values)."""
    with tempfile.TemporaryDirectory(prefix="maq-program-") as folder:
        values = pathlib.Path(folder) / "values"
        values.write_text("".join(f"after {kernel} share {ROUTED}\n" for kernel in READ))
        done = subprocess.run([str(maquette), "run", "--world", str(world), "--rank", str(rank), "--device", "h100-sxm", "--values",
                               str(values), "--", str(python), str(SCRIPT), *SIZES, "--num-microbatches", str(MICROBATCHES),
                               *arguments], env={**os.environ, "TORCH_DIST_USE_NCCL2": "0"}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=600, check=False)
    said = re.search(r"peak (\d+)", done.stdout)
    assert done.returncode == 0 and said, done.stderr[-2500:]
    return int(said[1])


def memory(world, ranks, arguments, data_parallel=1):
    def check(maquette, python):
        stages = predicted(maquette, world, arguments, data_parallel)
        for rank in ranks:
            truth, guess = measured(maquette, python, world, rank, arguments), stages[rank * len(stages) // world]
            print(f"# rank {rank} of {world}: allocated {truth / 2**30:.3f} GiB, predicted {100 * (guess / truth - 1):+.1f} %", flush=True)
            assert abs(guess / truth - 1) <= WITHIN, (rank, truth, guess)

    return check


FULL = ["--recompute-granularity", "full", "--recompute-method"]
TENSOR, PIPELINE = "--tensor-model-parallel-size", "--pipeline-model-parallel-size"

CASES = [
    ("memory-dense", "megatron.core", memory(1, [0], [])),
    ("memory-tp", "megatron.core", memory(2, [0], [TENSOR, "2"])),
    ("memory-pp", "megatron.core", memory(4, [0, 1, 3], [PIPELINE, "4"])),
    ("memory-vpp", "megatron.core", memory(4, [0, 1, 3], [PIPELINE, "4", "--virtual-pipeline-model-parallel-size", "2"])),
    ("memory-dp", "megatron.core", memory(2, [1], [], data_parallel=2)),
    ("memory-ddp", "megatron.core", memory(2, [1], ["--no-distributed-optimizer"], data_parallel=2)),
    ("memory-moe", "megatron.core", memory(4, [1], ["--num-experts", "8", "--expert-model-parallel-size", "4"], data_parallel=4)),
    ("memory-full", "megatron.core", memory(1, [0], [*FULL, "uniform", "--recompute-num-layers", "1"])),
    ("memory-full-2", "megatron.core", memory(1, [0], [*FULL, "uniform", "--recompute-num-layers", "2"])),
    ("memory-block", "megatron.core", memory(1, [0], [*FULL, "block", "--recompute-num-layers", "4"])),
    ("memory-full-pp", "megatron.core", memory(4, [0, 1, 3], [PIPELINE, "4", *FULL, "uniform", "--recompute-num-layers", "1"])),
    ("memory-selective", "megatron.core", memory(2, [0], [TENSOR, "2", "--recompute-granularity", "selective"])),
]
