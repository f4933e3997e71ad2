#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What PEFT's adapters train and keep, against `maquette train`: a small Llama in PEFT, on the CPU, as it is on this machine.

MAQ_TRANSFORMERS_PYTHON names a Python that has torch, transformers and peft; without those the test is skipped.
"""
import json
import os
import subprocess
import sys

from cli_case import Scratch, Tap

SIZES = {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 512}
TOKENS = 64
TARGETS = [["q_proj", "v_proj"], ["down_proj"], "all-linear"]

# Trained numbers, and bytes of what autograd still holds behind the forward pass beyond the parameters: each tensor once. What is saved for
# a result that nobody has a gradient of (B A of the unit matrix) is let go on the way.
PROGRAM = """
import json, sys, torch, weakref
from transformers import LlamaConfig, LlamaForCausalLM
from peft import LoraConfig, get_peft_model
class Kept:
    def __init__(self, tensor):
        self.tensor = tensor
for case in json.load(sys.stdin):
    sizes, tokens, rank, targets, dora = case
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**sizes)).to(torch.bfloat16)
    model = get_peft_model(model, LoraConfig(r=rank, target_modules=targets, use_dora=dora, lora_dropout=0.0), autocast_adapter_dtype=False)
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = weakref.WeakSet()
    def pack(tensor):
        box = Kept(tensor)
        kept.add(box)
        return box
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda box: box.tensor):
        out = model(input_ids=torch.zeros(1, tokens, dtype=torch.long)).logits
    live = {box.tensor.untyped_storage().data_ptr(): box.tensor.untyped_storage().nbytes() for box in kept}
    print(json.dumps([sum(p.numel() for p in model.parameters() if p.requires_grad), sum(n for p, n in live.items() if p not in own)]))
    del out
"""


def truths(python, cases):
    asked = json.dumps([[SIZES, TOKENS, *case] for case in cases])
    lines = subprocess.run([python, "-c", PROGRAM], input=asked, capture_output=True, text=True, check=True).stdout
    return [json.loads(line) for line in lines.splitlines()]


def told(rank, targets, dora):
    job = {"model": {"model_type": "llama", "tie_word_embeddings": False, **SIZES}, "cluster": "h100-sxm:1", "framework": {"base": "huggingface", "adapters_widen": False},
           "plan": {"zero": 0, "lora_rank": rank, "lora_target_modules": targets if isinstance(targets, str) else ",".join(targets), "use_dora": dora},
           "workload": {"global_batch_size": 1, "seq_length": TOKENS}}
    with Scratch() as scratch:
        (scratch.path / "job.json").write_text(json.dumps(job), encoding="utf-8")
        out, err, _ = scratch.run("maquette train --json job.json")
    if not out:
        raise AssertionError(err)
    memory = json.loads(out)["stages"][0]["memory"]
    return memory


def main():
    tap, python = Tap(), os.environ.get("MAQ_TRANSFORMERS_PYTHON") or sys.executable
    if subprocess.run([python, "-c", "import torch, transformers, peft"], capture_output=True, check=False).returncode != 0:
        tap.skip("adapters of PEFT", "no Python with torch, transformers and peft (MAQ_TRANSFORMERS_PYTHON)")
        return tap.done()
    cases = [(rank, targets, dora) for rank, targets in zip((4, 8, 16), TARGETS) for dora in (False, True)]
    counted = truths(python, cases)
    for i in range(0, len(cases), 2):
        rank, targets, _ = cases[i]
        plain, dora = counted[i:i + 2]
        ours = [told(rank, targets, False), told(rank, targets, True)]
        name = targets if isinstance(targets, str) else ",".join(targets)
        for what, number, memory in (("LoRA", plain, ours[0]), ("DoRA", dora, ours[1])):
            trained = memory["gradients_bytes"] / 4
            tap.result(trained == number[0], f"{what} of {name} trains {number[0]}", f"{trained}")
        # Beside what is kept here of each linear: the magnitude over its norm, a number for each output, which is not counted.
        more, said = dora[1] - plain[1], ours[1]["activations_bytes"] - ours[0]["activations_bytes"]
        small = 3 * 4 * (dora[0] - plain[0])
        tap.result(0 <= more - said <= small, f"DoRA of {name} keeps {more} bytes more", f"said {said}, {small} of vectors aside")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
