#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vLLM's API server on the zero-GPU device, with vLLM's own benchmark client in front of it, and what its engine decided meanwhile.

usage: server.py --maquette MAQUETTE --python PYTHON --model FOLDER --out OUT.jsonl [--trace T.mqr] [--requests N] [--isl N] [--osl N]
           [--max-num-batched-tokens N] [--max-num-seqs N] [--max-model-len N] [--graphs]

FOLDER has a config.json; a copy of it gets a tokenizer of one word for each token. The server listens on the loopback and runs under
`maquette run --world 1`; the client runs beside it, in real time, so that what it measures is the host. OUT.jsonl and OUT.json are as
emulated.py writes them: compare.py reads them. --graphs: with compilation and CUDA graphs, which are off otherwise. Seen with vllm 0.33.0.
"""
import argparse
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
PLUGIN = "maquette_recording-1.dist-info"
TOKENIZER = """
import json, pathlib, sys
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast
folder = pathlib.Path(sys.argv[1])
words = {f"w{i}": i for i in range(json.loads((folder / "config.json").read_text())["vocab_size"])}
tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="w0", bos_token="w1", eos_token="w2").save_pretrained(folder)
"""
STARTS_S, ENDS_S = 400, 60


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def make_plugin(folder):
    """A package of nothing but an entry point: vLLM calls those of its group in every process."""
    (folder / PLUGIN).mkdir()
    (folder / PLUGIN / "METADATA").write_text("Metadata-Version: 2.1\nName: maquette-recording\nVersion: 1\n")
    (folder / PLUGIN / "entry_points.txt").write_text("[vllm.general_plugins]\nmaquette_recording = recording:begin_in_server\n")


def is_up(server, port):
    """Waits until it answers; false: it ended, or does not."""
    began = time.monotonic()
    while server.poll() is None and time.monotonic() - began < STARTS_S:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5):
                return True
        except OSError:
            time.sleep(1)
    return False


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--maquette", required=True)
    args.add_argument("--python", required=True)
    args.add_argument("--model", required=True, type=pathlib.Path)
    args.add_argument("--out", required=True, type=pathlib.Path)
    args.add_argument("--trace", type=pathlib.Path)
    args.add_argument("--graphs", action="store_true")
    for name, value in (("requests", 24), ("isl", 400), ("osl", 24), ("max-num-batched-tokens", 2048), ("max-num-seqs", 16), ("max-model-len", 4096)):
        args.add_argument(f"--{name}", type=int, default=value)
    a = args.parse_args()
    port = free_port()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        model = folder / "model"
        model.mkdir()
        shutil.copy(a.model / "config.json", model)
        subprocess.run([a.python, "-c", TOKENIZER, model], check=True, capture_output=True)
        make_plugin(folder)
        environment = {**os.environ, "PATH": f"{pathlib.Path(a.python).parent}{os.pathsep}{os.environ.get('PATH', '')}", "HF_HUB_OFFLINE": "1",
                       "VLLM_NO_USAGE_STATS": "1", "VLLM_USE_FLASHINFER_SAMPLER": "0"}
        inside = {**environment, "PYTHONPATH": f"{folder}{os.pathsep}{HERE}", "MAQ_RECORDING": str(a.out.resolve())}
        trace = ["--trace", a.trace] if a.trace else []
        command = [a.maquette, "run", "--world", 1, *trace, "--output", folder / "report", "--", a.python, "-m", "vllm.entrypoints.cli.main", "serve", model,
                   "--load-format", "dummy", "--host", "127.0.0.1", "--port", port, "--no-async-scheduling", "--max-model-len", a.max_model_len,
                   "--max-num-batched-tokens", a.max_num_batched_tokens, "--max-num-seqs", a.max_num_seqs, *([] if a.graphs else ["--enforce-eager"])]
        log = a.out.with_suffix(".log")
        with open(log, "w", encoding="utf-8") as said:
            server = subprocess.Popen([str(c) for c in command], stdout=said, stderr=said, env=inside)
        try:
            if not is_up(server, port):
                print(f"the server does not start: {log}", file=sys.stderr)
                return 1
            client = [a.python, "-m", "vllm.entrypoints.cli.main", "bench", "serve", "--backend", "openai", "--base-url", f"http://127.0.0.1:{port}",
                      "--model", model, "--dataset-name", "random", "--random-input-len", a.isl, "--random-output-len", a.osl, "--random-range-ratio", "0.5",
                      "--num-prompts", a.requests, "--seed", 1, "--ignore-eos"]
            code = subprocess.run([str(c) for c in client], env=environment, check=False, timeout=STARTS_S).returncode
        finally:
            server.send_signal(signal.SIGINT)
            try:
                server.wait(ENDS_S)
            except subprocess.TimeoutExpired:
                server.kill()
        if not a.out.exists():
            print(f"the engine left no recording: {log}", file=sys.stderr)
        return code or not a.out.exists()


if __name__ == "__main__":
    sys.exit(main())
