#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every option of vLLM's own argument parser is known to `maquette serve ... -- vllm serve`, in every form, with as many values as it takes;
and every quantization and type of the KV cache.

Needs an interpreter that has vllm: MAQ_VLLM_PYTHON, or the one that `make vllm-truth` made. Skipped without. maq-test: long"""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import PROGRAM, ROOT, Tap  # noqa: E402

NAME = "vLLM's options"
# The parser as `vllm serve` builds it; a machine without a GPU has no platform of its own, and any does here.
PROBE = """
import json, sys
import vllm, vllm.platforms, vllm.platforms.cpu
vllm.platforms._current_platform = vllm.platforms.cpu.CpuPlatform()
try:
    from vllm.entrypoints.common.cli_args import make_arg_parser
except ImportError:
    from vllm.entrypoints.openai.cli_args import make_arg_parser
try:
    from vllm.utils.argparse_utils import FlexibleArgumentParser
except ImportError:
    from vllm.utils import FlexibleArgumentParser
from vllm.config.cache import KV_CACHE_DTYPES
from vllm.model_executor.layers.quantization import QUANTIZATION_METHODS
parser = make_arg_parser(FlexibleArgumentParser(prog="vllm serve"))
json.dump({"version": vllm.__version__, "kv": list(KV_CACHE_DTYPES), "weights": list(QUANTIZATION_METHODS),
           "options": {form: action.nargs for form, action in parser._option_string_actions.items()}}, sys.stdout)
"""
UNKNOWN, VALUE = "has no option", "error[MAQ1582]"


def probe():
    """(what the parser has, None), or (None, why there is none)."""
    python = os.environ.get("MAQ_VLLM_PYTHON") or str(ROOT / "build/vllm-truth-venv/bin/python")
    if not pathlib.Path(python).exists():
        return None, "no interpreter with vllm: MAQ_VLLM_PYTHON, or `make vllm-truth`"
    run = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, check=False)
    if run.returncode:
        return None, (run.stderr.strip().splitlines() or ["vllm says nothing"])[-1]
    return json.loads(run.stdout.strip().splitlines()[-1]), None


def said(*words):
    """What is wrong with the words; an option that does not exist ends the command before it computes anything."""
    run = subprocess.run([PROGRAM, "serve", "--none", "--", "vllm", "serve", "m", *words], capture_output=True, text=True, check=False)
    return run.stderr


def fault(form, nargs):
    """How maquette takes an option otherwise than argparse does; None: the same."""
    alone, two = said(form), said(form, "x", "y")
    if UNKNOWN in alone:
        return "is not known"
    if ("needs a value" in alone) != (nargs is None or nargs == "+"):
        return f"alone: {alone}"
    left = [word for word in "xy" if f"'{word}' is no option" in two]
    if left != {0: ["x", "y"], None: ["y"], "?": ["y"]}.get(nargs, []):
        return f"of two values leaves {left}: {two}"
    return None


def main():
    tap = Tap()
    real, why = probe()
    if not real:
        tap.skip(NAME, why)
        return tap.done()
    faults = {form: fault(form, nargs) for form, nargs in real["options"].items()}
    wrong = [f"{form} {what}" for form, what in faults.items() if what]
    tap.result(not wrong and len(faults) > 300, f"{len(faults)} forms of options of vLLM {real['version']}", "\n".join(wrong))
    for option, words in (("--quantization", real["weights"]), ("--kv-cache-dtype", real["kv"])):
        wrong = [word for word in words if VALUE in said(option, word)]
        tap.result(not wrong and len(words) > 5, f"{len(words)} words of {option}", " ".join(wrong))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
