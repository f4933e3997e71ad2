# SPDX-License-Identifier: Apache-2.0
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

HERE = pathlib.Path(__file__).resolve().parent
SCRIPT = HERE / "megatron_gpt.py"
WITHIN = 0.03  # of the peak; 0.029 is the most that was seen

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


def measured(maquette, python, world, rank, program):
    """The peak that PyTorch counts, of one rank among virtual ones. A router deals its tokens alike (megatron_moe.values)."""
    with tempfile.TemporaryDirectory(prefix="maq-program-") as folder:
        values = pathlib.Path(folder) / "values"
        values.write_text("".join(f"after {kernel} share {ROUTED}\n" for kernel in READ))
        done = subprocess.run([str(maquette), "run", "--world", str(world), "--rank", str(rank), "--device", "h100-sxm", "--values",
                               str(values), "--", str(python), *map(str, program)], env={**os.environ, "TORCH_DIST_USE_NCCL2": "0"}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=600, check=False)
    said = re.search(r"peak (\d+)", done.stdout)
    assert done.returncode == 0 and said, done.stderr[-2500:]
    return int(said[1])


def memory(world, ranks, arguments, data_parallel=1):
    def check(maquette, python):
        stages = predicted(maquette, world, arguments, data_parallel)
        for rank in ranks:
            program = [SCRIPT, *SIZES, "--num-microbatches", MICROBATCHES, *arguments]
            near(rank, world, measured(maquette, python, world, rank, program), stages[rank * len(stages) // world])

    return check


def near(rank, world, truth, guess):
    print(f"# rank {rank} of {world}: allocated {truth / 2**30:.3f} GiB, predicted {100 * (guess / truth - 1):+.1f} %", flush=True)
    assert abs(guess / truth - 1) <= WITHIN, (rank, truth, guess)


def fsdp(world, rank, layers, batch):
    """fsdp2.py, whose policy is that of torchtitan."""
    job = f"""
model: {{model_type: megatron, num_layers: {layers}, hidden_size: 2048, num_attention_heads: 16, vocab_size: 51200,
  make_vocab_size_divisible_by: 1, max_position_embeddings: 1024, hidden_dropout: 0.0, attention_dropout: 0.0,
  untie_embeddings_and_output_weights: true}}
cluster: "h100-sxm:{min(world, 8)} x {max(world // 8, 1)}"
framework: torchtitan
plan: {{micro_batch_size: {batch}}}
workload: {{global_batch_size: {batch * world}, seq_length: 1024}}
"""
    program = [HERE / "fsdp2.py", "--layers", layers, "--width", 2048, "--heads", 16, "--sequence", 1024, "--vocabulary", 51200,
               "--batch", batch, "--no-autocast"]

    def check(maquette, python):
        done = subprocess.run([str(maquette), "train", "--json", "-"], input=job, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, done.stderr
        guess = json.loads(done.stdout)["stages"][0]["memory"]["allocated_bytes"]
        near(rank, world, measured(maquette, python, world, rank, program), guess)

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
    ("memory-fsdp2", "torch", fsdp(16, 1, layers=8, batch=8)),
    ("memory-selective", "megatron.core", memory(2, [0], [TENSOR, "2", "--recompute-granularity", "selective"])),
]
