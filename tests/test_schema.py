#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Schemas of documents: what the program prints is what docs/schemas has, real documents meet it, and have no member that it does not name.

maq-test: no sanitizer
"""
import importlib.util
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import PROGRAM, ROOT, Tap  # noqa: E402

sys.path.insert(0, str(ROOT / "tools" / "schema"))
from documents import DOCUMENTS, document, faults, prepared  # noqa: E402

# Documents that the schemas were not written from.
OTHERS = {
    "train": ["train --model gpt-oss-120b --cluster 'b200:8 x 2, rail 400G' --ep 8 --gbs 64 --seq 4096",
              "train --model mamba2-2.7b --cluster a100-80gb:8 --gbs 64 --seq 2048",
              "train --model llama-3.1-70b --cluster 'h100-sxm:8 x 4, rail 400G' --tp 8 --pp 2 --vp 2 --gbs 64 --recompute full --cp 2",
              "train --model qwen3-30b-a3b --cluster mi300x:8 --ep 8 --gbs 64 --zero 3 --pp 1"],
    "post_training": ["train --model qwen3-30b-a3b --cluster h200:8 --ep 8 --gbs 64 --seq 2048 --set rl.method=grpo --set rl.beta=0.1 --set rl.vllm_gpu_memory_utilization=0.7",
                      "train --model llama-3.1-8b --cluster h100-sxm:8 --lora-rank 8 --gbs 64 --set rl.method=kto"],
    "plan": ["plan --model qwen3-30b-a3b --cluster 'h200:8' --gbs 64 --seq 4096", "plan --model gpt2 --cluster a100-40gb:4 --gbs 64 --seq 1024 --full"],
    "serve": ["serve --model qwen3-30b-a3b --cluster h200:8 --tp 2 --ep 2 --rate 4 --num-requests 50",
              "serve --model llama-3.1-8b --cluster a100-80gb:1 --rate 100 --num-requests 300"],
    "serve.plan": ["serve plan --model llama-3.1-8b --cluster a100-80gb:1 --num-requests 30 --isl 128 --osl 8"],
    "risk.step": ["risk --model llama-3.1-8b --cluster 'h100-sxm:8 x 2, rail 400G' --pp 2 --tp 4 --gbs 32 --draws 500"],
    "risk.run": ["risk --model llama-3.1-8b --cluster 'h100-sxm:8 x 2, rail 400G' --tp 2 --gbs 64 --tokens 20B --replicas 50 --recovery replica"],
    "diff": ["diff {reports}/rate8.json {reports}/rate4.json"],
    "error": ["serve --model gpt2 --cluster h100-sxm:8", "plan"],
}


def schemas():
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "schemas").glob("*.json"))}


def golden(title):
    """Transcripts that are such a document."""
    for path in sorted((ROOT / "tests" / "golden").glob("*/stdout")):
        text = path.read_text(encoding="utf-8", errors="replace")
        if f'"schema": "{title}"' in text:
            try:
                yield path.parent.name, json.loads(text)
            except ValueError:  # a part of one, or with a placeholder in it
                continue


def broken(schema, one):
    """Documents with a fault, which the validator has to find: a member that is missing, one of another kind."""
    first = schema["required"][-1]
    yield {name: value for name, value in one.items() if name != first}
    yield {**one, first: [[]]}


def main():
    tap = Tap()
    texts = schemas()
    tap.result(set(texts) == set(DOCUMENTS), "a schema for each document")
    library = importlib.util.find_spec("jsonschema") is not None
    with tempfile.TemporaryDirectory() as folder:
        db = prepared(PROGRAM, ROOT, folder)
        for name, text in texts.items():
            schema = json.loads(text)
            said = subprocess.run([PROGRAM, "schema", *name.split(".")], capture_output=True, text=True, check=False)
            tap.result(said.stdout == text, f"maquette schema {name.replace('.', ' ')}", said.stderr)
            found, documents = [], []
            for command in DOCUMENTS[name] + OTHERS[name]:
                one = document(PROGRAM, command, ROOT, db)
                documents.append(one)
                found += [f"{command}: {fault}" for fault in faults(schema, one, strict=command in DOCUMENTS[name])]
            for case, one in golden(schema["title"]):
                documents.append(one)
                found += [f"golden {case}: {fault}" for fault in faults(schema, one, strict=True)]
            tap.result(not found, f"{len(documents)} documents meet {schema['title']}",
                       "\n".join([*found[:20], "members that are new: tools/schema/write.py"]) if found else "")
            tap.result(all(faults(schema, one) for one in broken(schema, documents[0])), f"{schema['title']}: faults are found")
            if not library:
                tap.skip(f"{schema['title']} by jsonschema", "it is not installed")
                continue
            import jsonschema  # noqa: PLC0415
            jsonschema.Draft202012Validator.check_schema(schema)
            errors = [error.message for one in documents for error in jsonschema.Draft202012Validator(schema).iter_errors(one)]
            tap.result(not errors, f"{schema['title']} by jsonschema", "\n".join(errors[:5]))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
