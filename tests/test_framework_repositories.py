#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# maq-test: no sanitizer
"""The example files of training frameworks, where MAQ_FRAMEWORKS names a folder with their repositories; SKIP without it.

The folder has checkouts by their names (DeepSpeed, DeepSpeedExamples, accelerate, axolotl, LLaMA-Factory, torchtitan, Megatron-LM, ...). Each
file is read for a cluster of 8 H100, or another size that its degrees and batch fit, with a model of another name where its own is not known here, and with GPT-2's vocabulary where a
tokenizer would have to be opened. It is read, or refused with a reason. The counts are
those of docs/framework-files.md; `--why` lists each refusal.
"""
import collections
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import Tap  # noqa: E402

# repository, files, files that are something else
SETS = (
    ("DeepSpeed", r".*(ds_config.*|deepspeed_.*config|template_zero\d)\.json", r"csrc/|hybrid_engine|accelerator/"),
    ("DeepSpeedExamples", r".*(ds_|deepspeed_|zf_config|bf16_full|baseline|torchcompile_config|autosp_config).*\.json", r"TEMPLATE"),
    ("accelerate", r"(examples|tests/test_configs|tests/tp)/.*\.ya?ml", r"invalid_keys|sagemaker|validate_launch"),
    ("torchtitan", r"torchtitan/.*(train_configs|configs)/.*\.toml", None),
    ("axolotl", r"(examples|deepspeed_configs)/.*\.(ya?ml|json)", r"cloud/|/(config|cicd)/"),
    ("LLaMA-Factory", r"examples/.*\.(ya?ml|json)", r"multi_tokens|/inference/|merge_lora|export_lora|tokens_cfg"),
    ("Megatron-LM", r"tests/functional_tests/.*/model_config\.yaml", None),
    ("nanotron", r"examples/.*\.ya?ml", None),
    ("maxtext", r"src/maxtext/configs/(gpu|tpu)/.*\.yml", r"inference"),
    ("litgpt", r"config_hub/.*\.yaml", None),
    ("NeMo-Framework-Launcher", r"launcher_scripts/conf/training/(gpt3|llama|mixtral|mistral|nemotron|qwen2|falcon|baichuan2|chatglm|grok|starcoder2)/.*\.yaml", None),
)
CLUSTERS = ("h100-sxm:8", "h100-sxm:1", "h100-sxm:4", "h100-sxm:8 x 2, rail 400G", "h100-sxm:8 x 3, rail 400G", "h100-sxm:8 x 18, rail 400G",
            "h100-sxm:8 x 64, rail 400G", "gb200:4 x 16")
UNKNOWN_MODEL = re.compile(r"no model and no file is named|the key 'model' is missing|is no published model|known without the model"
                           r"|which layers are recomputed cannot be told")
DEGREES = re.compile(r"does not divide|is not a multiple of|is not dp \d|h100-sxm has no arithmetic")
PLACE = re.compile(r"^[^\n:]+:\d+:\d+: error\[MAQ\d+\]: (.*)$", re.M)


def told(path, cluster, *more):
    done = subprocess.run([os.environ["MAQ"], "train", str(path), "--cluster", cluster, "--output", os.devnull, *more],
                          capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


def on(path, cluster):
    """('read' | 'model' | 'vocabulary' | 'refused', what was said)"""
    status, said = told(path, cluster)
    if status <= 1:
        return "read", said
    errors = re.findall(r"error\[MAQ\d+\]: (.*)", said)
    if errors and all(UNKNOWN_MODEL.search(e) for e in errors):
        status, said = told(path, cluster, "--model", "llama-3.1-8b")
        if status > 1 and "has no routed experts" in said:
            status, said = told(path, cluster, "--model", "mixtral-8x7b")
        return ("model" if status <= 1 else "refused"), said
    if len(errors) == 1 and "vocab_size" in errors[0]:
        status, said = told(path, cluster, "--set", "model.vocab_size=50257")
        return ("vocabulary" if status <= 1 else "refused"), said
    return "refused", said


def attempt(path):
    """The first of the clusters that the file's degrees and batch fit, or what the last of them says."""
    for cluster in CLUSTERS:
        kind, said = on(path, cluster)
        if kind != "refused" or not DEGREES.search(said):
            break
    return kind, said


def main():
    tap, folder = Tap(), os.environ.get("MAQ_FRAMEWORKS")
    if not folder:
        tap.skip("files of frameworks", "MAQ_FRAMEWORKS names no folder with their repositories")
        return tap.done()
    for name, pattern, other in SETS:
        root = pathlib.Path(folder) / name
        files = sorted(p for p in root.rglob("*") if p.is_file() and re.fullmatch(pattern, str(p.relative_to(root)))
                       and not (other and re.search(other, str(p.relative_to(root)))))
        if not files:
            tap.skip(name, "the folder does not have it")
            continue
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            answers = list(zip(files, pool.map(attempt, files)))
        counts = collections.Counter(kind for _, (kind, _) in answers)
        faults = [f"{path}\n{said}" for path, (kind, said) in answers if kind == "refused" and "error[MAQ" not in said]
        print(f"# {name}: {len(files)} files, {counts['read']} read, {counts['model']} with --model, {counts['vocabulary']} with a vocabulary, "
              f"{counts['refused']} refused")
        if "--why" in sys.argv:
            for path, (kind, said) in answers:
                if kind == "refused":
                    print(f"#   {path.relative_to(root)}: {'; '.join(PLACE.findall(said)) or said[:200]}")
        tap.result(not faults, f"{name}: each is read, or refused with a reason", "\n".join(faults[:5]))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
