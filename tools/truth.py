# SPDX-License-Identifier: Apache-2.0
"""What the tools share that record what an engine's scheduler decides, and let maquette decide the same (sglang-truth, vllm-truth)."""
import argparse
import os
import pathlib
import subprocess
import sys


def last_line(text):
    return (text.strip().splitlines() or ["?"])[-1]


def run(*command):
    return subprocess.run([str(c) for c in command], capture_output=True, text=True, check=False)


def arguments(doc, variable):
    """Of the command line; `variable` names an interpreter that has the engine where --python does not."""
    args = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--python", default=os.environ.get(variable))
    args.add_argument("--first", type=int, default=1000)
    args.add_argument("--count", type=int, default=50)
    args.add_argument("--build", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent / "build")
    return args.parse_args()


def interpreter(given, build, engine, version, probe, installs):
    """(path, None), or (None, why there is none). `probe` prints the engine's version; installs: [(what, arguments of pip install)]."""
    if given:
        got = run(given, "-c", probe)
        return (given, None) if got.returncode == 0 else (None, f"{given} has no {engine}: {last_line(got.stderr)}")
    python = build / f"{engine}-truth-venv/bin/python"
    if not python.exists() and run(sys.executable, "-m", "venv", python.parent.parent).returncode:
        return None, "no virtual environment can be made here"
    if last_line(run(python, "-c", probe).stdout) != version:
        print(f"# installing {engine} {version}", flush=True)
        for what, packages in installs:
            got = run(python, "-m", "pip", "install", "--quiet", *packages)
            if got.returncode:
                return None, f"{what} cannot be installed: {last_line(got.stderr)}"
    return interpreter(str(python), build, engine, version, probe, installs)


def recordings(record, out):
    """What a run of record.py has left in `out`; [], and the reason is said, where it has failed or there is nothing."""
    files = sorted(out.glob("*.jsonl.gz"))
    if record.returncode or not files:
        print(record.stderr[-2000:], file=sys.stderr)
        print(f"SKIPPED: nothing could be recorded: {last_line(record.stderr)}")
        return []
    return files
