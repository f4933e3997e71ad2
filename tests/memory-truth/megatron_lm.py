# SPDX-License-Identifier: Apache-2.0
"""The matrix of Megatron-LM's own pretrain_gpt.py on mock data: what `maquette train` says of a command line, and what the script of that command
line does. Both read the same words.

Half of the jobs, by a hash of the name, are held out: run.py shows their errors in sums alone, and no mechanism was looked for in them.
"""
import hashlib
import os
import pathlib
import re

TITLE = "Megatron-LM's pretrain_gpt.py"
KEPT = "memory_truth_megatron.json"
LIBRARIES = ("torch", "transformer-engine")
LATER = []

SCRIPTED = ("--train-iters 3 --mock-data --tokenizer-type NullTokenizer --bf16 --lr 1e-4 --log-interval 1 --eval-iters 0 --eval-interval 1000 "
            "--max-position-embeddings 4096 --use-distributed-optimizer --no-gradient-accumulation-fusion")
LLAMA = "--swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope --untie-embeddings-and-output-weights"
EXPERTS = "--moe-grouped-gemm --moe-token-dispatcher-type alltoall --moe-router-load-balancing-type aux_loss --moe-aux-loss-coeff 0.01"
MODELS = {
    "gpt": "--num-layers 8 --hidden-size 1024 --num-attention-heads 16 --vocab-size 32000",
    "deep": "--num-layers 16 --hidden-size 768 --num-attention-heads 12 --vocab-size 8000",
    "llama": f"--num-layers 8 --hidden-size 1024 --ffn-hidden-size 2816 --num-attention-heads 16 --group-query-attention --num-query-groups 4 "
             f"--vocab-size 32000 {LLAMA}",
    "wide": f"--num-layers 4 --hidden-size 2048 --ffn-hidden-size 5632 --num-attention-heads 16 --group-query-attention --num-query-groups 8 "
            f"--vocab-size 64000 {LLAMA}",
    "moe": f"--num-layers 8 --hidden-size 768 --ffn-hidden-size 2048 --num-attention-heads 12 --group-query-attention --num-query-groups 4 "
           f"--vocab-size 32000 --num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 768 {EXPERTS} {LLAMA}",
    "mla": f"--num-layers 8 --hidden-size 768 --ffn-hidden-size 2048 --num-attention-heads 8 --vocab-size 32000 --multi-latent-attention "
           f"--q-lora-rank 384 --kv-lora-rank 256 --qk-head-dim 64 --qk-pos-emb-head-dim 32 --v-head-dim 64 {LLAMA}",
}
WORDS = {
    "tp": "--tensor-model-parallel-size", "pp": "--pipeline-model-parallel-size", "cp": "--context-parallel-size",
    "ep": "--expert-model-parallel-size", "etp": "--expert-tensor-parallel-size", "vp": "--num-virtual-stages-per-pipeline-rank", "layers": "--recompute-num-layers",
    "modules": "--recompute-modules",
}
# The kernels behind which it reads how many: of few tokens, of many (cub reduces these twice), for each expert and rank.
READ = "NonZeroOp 4 i32", "DeviceReduceSingleTileKernel 4 i32", "sum_functorIlllE * i64"
FLAGS = {
    "sp": "--sequence-parallel", "overlap": "--overlap-grad-reduce --overlap-param-gather", "bf16grads": "--grad-reduce-in-bf16",
    "full": "--recompute-granularity full --recompute-method uniform", "block": "--recompute-granularity full --recompute-method block",
    "selective": "--recompute-granularity selective", "fp8": "--fp8-format hybrid", "fp8gather": "--fp8-param-gather",
    "tensorwise": "--fp8-recipe tensorwise", "blockwise": "--fp8-recipe blockwise", "plain": "--no-use-distributed-optimizer",
    "fusedloss": "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te",
    "precise": "--use-precision-aware-optimizer", "bf16moments": "--exp-avg-dtype bf16 --exp-avg-sq-dtype bf16",
    "capacity": "--moe-expert-capacity-factor 1.0 --moe-pad-expert-input-to-capacity",
    "shared": "--moe-shared-expert-intermediate-size 768", "mtp": "--mtp-num-layers 1",
}


def job(model, mbs, seq, world=1, rank=0, batches=4, **options):
    name = "-".join(["megatron", model, f"{mbs}x{seq}", f"w{world}", f"r{rank}"] +
                    [k if v is True else f"{k}_{str(v).replace(' ', '+')}" for k, v in options.items()])
    if batches != 4:
        name += f"-mb{batches}"
    data = world
    for k in ("tp", "pp", "cp"):
        data //= options.get(k, 1)
    line = [*MODELS[model].split(), *SCRIPTED.split(), "--seq-length", str(seq), "--micro-batch-size", str(mbs), "--global-batch-size",
            str(mbs * data * batches)]
    for k, v in options.items():
        line += FLAGS[k].split() if v is True else [WORDS[k], *str(v).split()]
    if options.get("plain"):
        line = [x for x in line if not x.endswith("use-distributed-optimizer")]
    return {"name": name, "way": "megatron", "world": world, "rank": rank, "line": line, "stage": rank * options.get("pp", 1) // world,
            "routed": mbs * seq * 2 // (options.get("tp", 1) * options.get("cp", 1)) if "--num-experts" in line else 0}


def order(j):
    return hashlib.sha256(j["name"].encode()).digest()[1:]


def held_out(name):
    return hashlib.sha256(name.encode()).digest()[0] % 2 == 1


JOBS = [
    *(job(m, b, s) for m in ("gpt", "llama", "deep", "wide", "mla") for b, s in ((2, 1024), (1, 2048))),
    job("gpt", 8, 1024), job("llama", 4, 2048), job("moe", 2, 1024), job("moe", 1, 2048),
    # data parallel
    *(job(m, 2, 1024, 8, 1) for m in ("gpt", "llama", "deep", "mla")),
    *(job(m, 2, 1024, 8, 1, overlap=True) for m in ("gpt", "llama", "wide")),
    *(job(m, 2, 1024, 8, 1, plain=True) for m in ("gpt", "llama")),
    *(job(m, 2, 1024, 8, 1, bf16grads=True) for m in ("llama", "wide")),
    *(job(m, 2, 1024, 8, 1, precise=True, bf16moments=True) for m in ("llama", "deep")),
    job("llama", 2, 1024, 512, 1), job("llama", 2, 1024, 8, 1, batches=1),
    # recomputed
    *(job(m, 4, 1024, full=True, layers=1) for m in ("gpt", "llama", "wide")),
    *(job(m, 4, 1024, block=True, layers=4) for m in ("gpt", "deep")),
    *(job(m, 4, 1024, selective=True) for m in ("gpt", "llama")),
    *(job(m, 4, 1024, selective=True, modules="layernorm") for m in ("llama", "wide")),
    *(job(m, 4, 1024, selective=True, modules="mlp") for m in ("llama",)),
    *(job("moe", 2, 1024, selective=True, modules=x) for x in ("moe_act", "moe")),
    *(job("mla", 4, 1024, selective=True, modules=x) for x in ("mla_up_proj", "core_attn")),
    # tensor, sequence, context
    *(job(m, 2, 1024, 2, 1, tp=2) for m in ("gpt", "llama")),
    *(job(m, 2, 2048, 4, 1, tp=4, sp=True) for m in ("gpt", "llama", "wide", "mla")),
    *(job(m, 2, 1024, 8, 1, tp=2, sp=True, overlap=True) for m in ("deep", "wide")),
    *(job(m, 1, 4096, 2, 1, cp=2) for m in ("gpt", "llama", "wide")),
    *(job(m, 1, 4096, 8, 1, cp=4, tp=2, sp=True) for m in ("llama", "deep")),
    # pipelines
    *(job(m, 2, 1024, 4, r, pp=4, batches=8) for m in ("gpt", "llama") for r in (0, 1, 3)),
    *(job(m, 2, 1024, 2, r, pp=2, batches=8) for m in ("wide", "deep") for r in (0, 1)),
    *(job(m, 2, 1024, 4, r, pp=4, vp=2, batches=8) for m in ("gpt", "llama") for r in (0, 2, 3)),
    *(job(m, 2, 1024, 8, r, pp=2, tp=2, sp=True, overlap=True, batches=8) for m in ("deep", "wide") for r in (1, 5)),
    *(job(m, 2, 1024, 4, r, pp=4, full=True, layers=1, batches=8) for m in ("deep",) for r in (0, 3)),
    # experts
    *(job("moe", 2, 1024, 8, 1, ep=e) for e in (4, 8)),
    job("moe", 2, 1024, 8, 1, ep=4, tp=2, etp=1, sp=True),
    *(job("moe", 2, 1024, 8, r, ep=4, pp=2, batches=8) for r in (1, 5)),
    job("moe", 2, 1024, 8, 1, ep=4, shared=True), job("moe", 2, 1024, 8, 1, ep=4, capacity=True),
    job("moe", 2, 1024, 8, 1, ep=4, full=True, layers=1), job("moe", 2, 1024, 8, 1, ep=4, mtp=True),
    # eight bits
    *(job(m, 2, 1024, 8, 1, fp8=True) for m in ("gpt", "llama", "wide")),
    *(job(m, 2, 1024, 8, 1, fp8=True, tensorwise=True) for m in ("llama", "deep")),
    *(job(m, 2, 1024, 8, 1, fp8=True, blockwise=True) for m in ("llama", "wide")),
    *(job(m, 2, 1024, 8, 1, fp8=True, tensorwise=True, fp8gather=True) for m in ("llama", "wide")),
    *(job(m, 2, 1024, 8, 1, fusedloss=True) for m in ("gpt", "wide")),
]


# ---- as it is run ----

def missing():
    """Why no job can be run, beside libraries that are not there."""
    return None if "MAQ_MEGATRON_LM" in os.environ else "no checkout of Megatron-LM (MAQ_MEGATRON_LM)"


def other_versions():
    """Of the checkout."""
    text = (pathlib.Path(os.environ["MAQ_MEGATRON_LM"]) / "megatron/core/package_info.py").read_text(encoding="utf-8")
    return {"megatron-lm": ".".join(re.search(rf"^{part} = (\d+)", text, re.M)[1] for part in ("MAJOR", "MINOR", "PATCH"))}


def rank(j):
    return j["rank"]


def program(j, _):
    """What Python is to run, what the device answers, and variables of the environment. A router deals its tokens alike."""
    folder = pathlib.Path(os.environ["MAQ_MEGATRON_LM"])
    values = "".join(f"after {kernel} share {j['routed']}\n" for kernel in READ) if j["routed"] else ""
    # What the compiler keeps of one job was not right for another (a gradient too many), and it need not start a process for each core.
    variables = {"PYTHONPATH": str(folder), "CUDA_DEVICE_MAX_CONNECTIONS": "1", "TORCH_DIST_USE_NCCL2": "0",
                 "TORCHINDUCTOR_FX_GRAPH_CACHE": "0", "TORCHINDUCTOR_AUTOGRAD_CACHE": "0", "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    return [pathlib.Path(__file__).with_name("script.py"), folder / "pretrain_gpt.py", *j["line"]], values, variables


# ---- in the words of maquette ----

# PyTorch 2.15, with which it was run, keeps no workspace of cuBLAS.
FRAMEWORK = "{base: megatron-lm, keeps_workspaces: false}"


def prediction(j):
    """Arguments, and what they read."""
    world = j["world"]
    cluster = f"h100-sxm:{min(world, 8)} x {max(world // 8, 1)}"
    return ["train", "--json", "--cluster", cluster, "--framework", FRAMEWORK, "--", "pretrain_gpt.py", *j["line"]], None
