#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bytes of the states that real optimizers make, against `maquette train`: GaLore and bitsandbytes on a small Llama, on the CPU.

MAQ_TRANSFORMERS_PYTHON names a Python that has torch, transformers, galore_torch and bitsandbytes; what it lacks is skipped.
"""
import json
import os
import subprocess
import sys

from cli_case import Scratch, Tap

SIZES = {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 1024}
TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]

# Bytes of all tensors in the optimizer's state and of GaLore's projections; maps of quantization, which all parameters share, are left out.
PROGRAM = """
import json, sys, torch
from transformers import LlamaConfig, LlamaForCausalLM
sizes, targets, kind, rank = json.load(sys.stdin)
torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(tie_word_embeddings=False, **sizes))
for p in model.parameters():
    p.grad = torch.randn_like(p)
if kind == "galore":
    from galore_torch import GaLoreAdamW
    chosen = [m.weight for n, m in model.named_modules() if n.split(".")[-1] in targets]
    ids = {id(p) for p in chosen}
    rest = [p for p in model.parameters() if id(p) not in ids]
    optimizer = GaLoreAdamW([{"params": rest}, {"params": chosen, "rank": rank, "update_proj_gap": 200, "scale": 0.25, "proj_type": "std"}], no_deprecation_warning=True)
else:
    import bitsandbytes
    optimizer = getattr(bitsandbytes.optim, kind)(model.parameters(), lr=1e-3)
optimizer.step()
seen = 0
for state in optimizer.state.values():
    for name, value in state.items():
        if name == "projector":
            value = value.ortho_matrix
        if isinstance(value, torch.Tensor) and value.numel() > 1 and not name.startswith(("qmap", "gnorm", "new_max", "max")):
            seen += value.numel() * value.element_size()
print(seen)
"""

# A key of each, and how far counts may be apart: tensors under 4,096 numbers keep moments of 4 bytes in bitsandbytes.
CASES = [
    ("galore_torch", "galore", 32, {"galore_rank": 32, "galore_target_modules": ",".join(TARGETS)}, 0),
    ("galore_torch", "galore", 200, {"galore_rank": 200, "galore_target_modules": "q_proj,down_proj"}, 0),
    ("bitsandbytes", "AdamW", 0, {"optimizer": "adam"}, 0),
    ("bitsandbytes", "AdamW8bit", 0, {"optimizer": "adam", "exp_avg_dtype": "int8"}, 0.01),
    ("bitsandbytes", "Lion8bit", 0, {"optimizer": "lion", "exp_avg_dtype": "int8"}, 0.01),
]


def told(plan):
    job = {"model": {"model_type": "llama", "tie_word_embeddings": False, **SIZES}, "cluster": "h100-sxm:1", "framework": "huggingface",
           "plan": {"zero": 0, "precision": "fp32", **plan}, "workload": {"global_batch_size": 1, "seq_length": 64}}
    with Scratch() as scratch:
        (scratch.path / "job.json").write_text(json.dumps(job), encoding="utf-8")
        out, err, _ = scratch.run("maquette train --json job.json")
    if not out:
        raise AssertionError(err)
    return json.loads(out)["stages"][0]["memory"]["optimizer_bytes"]


def main():
    tap, python = Tap(), os.environ.get("MAQ_TRANSFORMERS_PYTHON") or sys.executable
    has = {name: subprocess.run([python, "-c", f"import torch, transformers, {name}"], capture_output=True, check=False).returncode == 0
           for name in ("galore_torch", "bitsandbytes")}
    for library, kind, rank, plan, apart in CASES:
        name = f"states of {kind} with {', '.join(f'{k} {v}' for k, v in plan.items())}"
        if not has[library]:
            tap.skip(name, f"no Python with torch, transformers and {library} (MAQ_TRANSFORMERS_PYTHON)")
            continue
        targets = plan.get("galore_target_modules", "").split(",")
        ran = subprocess.run([python, "-c", PROGRAM], input=json.dumps([SIZES, targets, kind, rank]), capture_output=True, text=True, check=False)
        if ran.returncode != 0:
            tap.skip(name, ran.stderr.strip().splitlines()[-1])
            continue
        theirs, ours = int(ran.stdout), told(plan)
        tap.result(abs(ours - theirs) <= apart * theirs, f"{name}: {theirs} bytes", f"{ours}")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
