# SPDX-License-Identifier: Apache-2.0
"""Commands whose documents, taken together, have every member that a schema names; and a small validator."""
import json
import os
import subprocess

SMALL = "--model llama-3.1-8b --cluster h100-sxm:8 --gbs 64"
SERVE = "--model llama-3.1-8b --cluster h100-sxm:1 --num-requests 40 --isl 256 --osl 16"
EXAMPLE = "examples/llama3-405b-16k.yaml"

# Reports that are compared, by the names of their files.
REPORTS = {
    "tp2": f"train {SMALL} --tp 2 --price 2",
    "tp4": f"train {SMALL} --tp 4 --pp 2",
    "rate4": f"serve {SERVE} --rate 4",
    "rate8": f"serve {SERVE} --rate 8 --weights fp8",
}

# What a schema is called, and the commands; {db} is a file of measured kernels, {reports} the folder of REPORTS.
DOCUMENTS = {
    "train": [
        f"train {SMALL} --tp 2",
        f"train {SMALL}",
        f"train {EXAMPLE} --explain --engine static --price 2.5",
        "train --model gpt2 --cluster h100:64 --seq 2048 --gbs 64",
        "train --model deepseek-v3 --cluster 'h100-sxm:8 x 32, rail 400G' --ep 8 --pp 4 --layout balanced --gbs 1024 --precision fp8-blockwise",
        "train --model llama-3.1-8b --cluster 'h100-sxm:8 x 2 + a100-80gb:8 x 2' --tp 8 --gbs 64",
        "train --model llama-3.1-8b --cluster gb200:4 --tp 2 --gbs 64 --framework megatron-lm",
        "train --model llama-3.1-8b --cluster l40s:8 --tp 2 --gbs 64 --lora-rank 8",
        f"train {SMALL} --tp 2 --measured {{db}}",
        "train examples/transgan-16xv100-deepspeed.yaml",
        "train --model apertus-70b --cluster 'a10:8 x 1' --gbs 48 --zero 0",
        "train --model gpt2 --cluster titan-rtx:8 --gbs 64",
    ],
    "post_training": [
        f"train {SMALL} --tp 2 --set rl.method=dpo",
        f"train {SMALL} --tp 2 --set rl.method=kto",
        "train --model llama-3.2-1b --cluster h100-sxm:8 --zero 0 --gbs 64 --seq 2048 --set rl.method=ppo --set rl.reward_model=gpt2 --set rl.length_spread=0.5",
        "train --model llama-3.1-8b --cluster h100-sxm:8 --zero 3 --gbs 64 --seq 2048 --set rl.method=grpo --set rl.use_vllm=false",
        "train --model llama-3.1-8b --cluster h100-sxm:8 --zero 3 --gbs 64 --seq 2048 --set rl.method=grpo",
        "train --model llama-3.1-8b --cluster h100-sxm:8 --zero 3 --gbs 64 --seq 2048 --set rl.method=grpo --set rl.vllm_mode=server "
        "--set rl.vllm_server=h100-sxm:8 --set rl.reward_model=gpt2",
    ],
    "plan": [
        f"plan {SMALL} --seq 4096 --explain --pareto memory --price 2",
        f"plan {SMALL} --seq 4096 --framework torchtitan",
        f"plan {SMALL} --seq 4096 --min-fit-probability 0",
        "plan --model llama-3.1-70b --cluster h100-sxm:1 --gbs 8 --seq 4096",
        "plan --model gpt2 --cluster h100:64 --seq 2048 --gbs 64",
        "plan --model command-r-plus-104b --cluster h200:8 --gbs 32 --seq 1024 --explain",
        "plan --model granite-3.1-8b --cluster rtx-4090:8 --gbs 32 --seq 1024 --explain",
        "plan --model olmoe-1b-7b --cluster rtx-6000-ada:8 --gbs 32 --seq 1024 --explain",
    ],
    "serve": [
        f"serve {SERVE} --rate 8 --slo 'ttft_p95<500ms, tpot_mean<=40ms' --power --price 2",
        f"serve {SERVE} --rate 8 --slo 'itl_p99<1s'",
        f"serve {SERVE} --concurrency 4 --speculative-method eagle3 --num-speculative-tokens 3 --acceptance 0.7",
        f"serve {SERVE} --rate 8 --kv-offloading-size 4GiB --kv-ssd-size inf --kv-ssd-bandwidth 12GB/s",
        f"serve {SERVE} --rate 8 --enable-lora --max-loras 2 --adapters 4",
        f"serve {SERVE} --find-rate --draws 2 --slo 'ttft_p95<500ms'",
        "serve --model llama-3.1-8b --cluster h100-sxm:8 --num-requests 40 --isl 256 --osl 16 --rate 8 --replicas 2 --router least-requests --router-max-requests 4 --router-queue 4",
        "serve --model llama-3.1-8b --cluster h100-sxm:8 --num-requests 40 --isl 256 --osl 16 --rate 8 --prefill-replicas 1",
        "serve --model llama-3.1-8b --cluster 'h100-sxm:1 x 4' --num-requests 400 --isl 256 --osl 16 --rate 8 --prefill-replicas 1 --failures 'llama3,rate=20000/node/day,repair=5s' --prefill-autoscale requests=1 "
        "--start-time 2s --price 2 --slo 'ttft_p95<500ms' --draws 3 --what-if spare-nodes=1",
        "serve --model llama-3.1-8b --cluster h100-sxm:1 --batch 4 --isl 256 --osl 16",
        "serve --model llama-3.1-8b --cluster h100-sxm:1 --num-requests 10 --isl 256 --osl 1 --rate 1 --engine trtllm",
        "serve --model llama-3.1-70b --cluster h100-sxm:1 --rate 1",
        "serve --model llama-3.1-8b --cluster 'h100-sxm:8 x 4' --tp 8 --replicas 4 --rate 2 --num-requests 200 --isl 256 --osl 16 "
        "--slo 'ttft_p95<500ms' --failures 'llama3,rate=200/node/day' --autoscale requests=1 --start-time 90s --draws 3",
        "serve --model llama-3.1-8b --cluster h100-sxm:1 --rate 4 --num-requests 10 --isl 256 --osl 4 --images-per-request 1 --image-tokens 256 --encoder-model gpt2",
        "serve --model llama-3.1-8b --cluster h100-sxm:2 --rate 4 --num-requests 10 --isl 256 --osl 4 --images-per-request 1 --image-tokens 256 --encoder-model gpt2 --encode-replicas 1",
        "serve --model deepseek-v3 --cluster h200-sxm:8 --tp 8 --rate 1 --num-requests 10 --engine sglang",
        "serve --model qwen3-30b-a3b --cluster h100-sxm:8 --tp 2 --afd-ffn-ranks 2 --concurrency 4 --num-requests 8 --isl 256 --osl 16",
        "serve --model qwen3-30b-a3b --cluster h100-sxm:8 --afd-ffn-ranks 2 --afd-exchange m2n --batch 4 --isl 256 --osl 16",
        "serve --model qwen3-next-80b-a3b --cluster h200:8 --tp 4 --engine sglang --engine-version 0.5.9 --rate 1 --duration 10s --isl 256 --osl 16",
    ],
    "serve.plan": [
        f"serve plan {SERVE} --slo 'tpot_mean<40ms' --price 2",
        f"serve plan {SERVE} --slo 'ttft_p95<1ms' --no-front",
        "serve plan --model llama-3.1-8b --cluster h100-sxm:2 --num-requests 40 --isl 256 --osl 16 --rate 30 --no-front --space tp=1,2",
        "serve plan --model qwen3-30b-a3b --cluster h100-sxm:4 --num-requests 40 --isl 256 --osl 16 --rate 10 --no-front --space tp=1 --space pp=1 --space dp=1 --space afd-ffn-ranks=0,2 --space afd-micro-batches=2",
        "serve plan --model llama-3.1-8b --cluster 'h100-sxm:2 x 3' --num-requests 40 --isl 256 --osl 16 --rate 30 --slo 'ttft_p95<2s' --no-front --space tp=1,2 --failures 'llama3,rate=1/node/day,repair=1h' --draws 2",
    ],
    "risk.step": [
        f"risk {SMALL} --tp 2 --draws 1000",
        f"risk {SMALL} --tp 2 --draws 1000 --no-sources --slow rank:3=1.2x",
        f"risk {SMALL} --tp 2 --pp 2 --draws 1000 --what-if kernels",
        f"risk {SMALL} --tp 2 --pp 2 --draws 1000 --what-if dimensions",
        f"risk {SMALL} --tp 2 --pp 2 --draws 1000 --what-if stages",
        f"risk {SMALL} --tp 2 --pp 2 --draws 1000 --what-if placement",
    ],
    "risk.run": [
        f"risk {EXAMPLE} --tokens 1T --failures llama3 --spares 16 --replicas 200 --promise 60d@95% --start 2027-01-31 --price 2",
        f"risk {EXAMPLE} --tokens 10B --replicas 20 --failures llama3 --spares 16 --checkpoint none",
        f"risk {EXAMPLE} --tokens 1T --replicas 60 --step-time 6s --failures rate=1e-3/node/day --what-if checkpoint",
        f"risk {EXAMPLE} --tokens 1T --replicas 60 --failures llama3 --spares 16 --what-if spares",
        f"risk {EXAMPLE} --tokens 100B --replicas 60 --failures rate=1e-9/node/day --recovery elastic",
    ],
    "diff": ["diff {reports}/tp2.json {reports}/tp4.json", "diff {reports}/tp4.json {reports}/tp2.json", "diff {reports}/tp2.json {reports}/tp2.json", "diff {reports}/rate4.json {reports}/rate8.json"],
    "error": ["train --model gpt2 --cluster h100-sxm:8 --tp 9", "train missing.yaml", "train --model gpt2 --cluster h100-sxm:8 --tpp 9"],
}


def document(program, command, root, db):
    done = subprocess.run(f"{program} {command.format(db=db, reports=os.path.dirname(db))} --json", shell=True, cwd=root, capture_output=True, text=True, check=False,
                          env={**os.environ, "LC_ALL": "C"})
    return json.loads(done.stdout)


def prepared(program, root, folder):
    """A file of measured kernels, and beside it the reports that are compared."""
    for name, command in REPORTS.items():
        subprocess.run(f"{program} {command} --json --output {folder}/{name}.json", shell=True, cwd=root, capture_output=True, check=False)
    db = os.path.join(folder, "kernels.db")
    subprocess.run([program, "profile", "import", "examples/kernels.csv", "--file", db], cwd=root, capture_output=True, check=False)
    return db


KINDS = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def is_kind(value, kind):
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, KINDS[kind])


def faults(schema, value, at="", strict=False, root=None):
    """What is wrong with a document: of JSON Schema what our schemas use. strict: members that the schema does not name are wrong, too."""
    root = schema if root is None else root
    if "$ref" in schema:
        return faults(root["$defs"][schema["$ref"].rsplit("/", 1)[1]], value, at, strict, root)
    if "anyOf" in schema:
        every = [faults(one, value, at, strict, root) for one in schema["anyOf"]]
        return min(every, key=len)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_kind(value, kind) for kind in kinds):
        return [f"{at or '/'}: {type(value).__name__}, not {' or '.join(kinds)}"]
    if "const" in schema and value != schema["const"]:
        return [f"{at}: {value!r}, not {schema['const']!r}"]
    found = []
    if isinstance(value, dict):
        known = schema.get("properties", {})
        found += [f"{at}/{name}: is missing" for name in schema.get("required", []) if name not in value]
        for name, one in value.items():
            if name in known:
                found += faults(known[name], one, f"{at}/{name}", strict, root)
            elif isinstance(schema.get("additionalProperties"), dict):
                found += faults(schema["additionalProperties"], one, f"{at}/{name}", strict, root)
            elif strict:
                found.append(f"{at}/{name}: the schema does not name it")
    elif isinstance(value, list) and "items" in schema:
        for i, one in enumerate(value):
            found += faults(schema["items"], one, f"{at}/{i}", strict, root)
    return found
