#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What people write by mistake, and the hint that each has to get: tests/data/slips.txt, one line a slip."""
import concurrent.futures
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import ROOT, Scratch, Tap  # noqa: E402

SHORTHANDS = "L='--model llama-3.1-8b'; B=\"$L --cluster h100-sxm:8\"; "
# A model whose type nobody knows, one that lacks sizes, and one that stands in place of a job.
FILES = {
    "strange.json": '{"model_type": "strange_lm", "hidden_size": 4096, "vocab_size": 32000, "num_hidden_layers": 32, '
                    '"num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 11008, "max_position_embeddings": 4096}',
    "short.json": '{"model_type": "llama", "hidden_size": 4096, "vocab_size": 32000}',
    "config.json": '{"model_type": "llama", "hidden_size": 4096, "vocab_size": 32000, "num_hidden_layers": 32}',
}


def rows():
    for line in (ROOT / "tests/data/slips.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            command, words = (part.strip() for part in line.rsplit(" => ", 1))
            fine = command.startswith("ok ")
            yield command.removeprefix("ok "), words, fine


def play(row):
    """(good, what was said) of a command: a slip says the words, a fine one ends well and does not."""
    command, words, fine = row
    with Scratch() as scratch:
        for name, text in FILES.items():
            (scratch.path / name).write_text(text, encoding="utf-8")
        _, said, status = scratch.run(f"{SHORTHANDS} maquette {command} >out")
    ended = status in (0, 1) if fine or "warning" in said else status in (2, 3, 4)
    return ended and (words in said) != fine, f"status {status}\n{said}"


def main():
    tap, table = Tap(), list(rows())
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for row, (good, said) in zip(table, pool.map(play, table)):
            tap.result(good, f"{row[0]} => {row[1]}", "" if good else said)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
