#!/usr/bin/env python3
"""shim/abi/cuda.h against the toolkit's headers: values, sizes and offsets are equal.

The check is compiled, not run: it is a file of static assertions. SKIPPED where a header is missing.
"""
import os
import pathlib
import subprocess

ROOT = pathlib.Path(os.environ.get("MAQ_SOURCE_ROOT", pathlib.Path(__file__).resolve().parent.parent))
NEEDED = ("cuda.h", "cuda_runtime_api.h")


def toolkits():
    """Folders of headers in which everything is, or a reason why there is none."""
    places = [pathlib.Path(os.environ[v]) for v in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(v)]
    places += [pathlib.Path("/usr/local/cuda"), *sorted(pathlib.Path("/usr/local").glob("cuda-1*"))]
    found = {}
    for place in places:
        include = place / "include"
        if all((include / name).is_file() for name in NEEDED):
            found.setdefault(include.resolve(), include)
    return list(found.values())


def main():
    print("TAP version 13")
    found = toolkits()
    if not found:
        print("ok 1 - shim/abi equals the toolkit's headers # SKIP no CUDA toolkit with " + ", ".join(NEEDED))
    for number, include in enumerate(found, 1):
        run = subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-fsyntax-only", f"-I{ROOT}", "-isystem", include,
                              ROOT / "tests/victims/abi_cuda.c"], capture_output=True, text=True, check=False)
        for line in run.stderr.splitlines()[:20]:
            print("# " + line)
        print(f"{'ok' if run.returncode == 0 else 'not ok'} {number} - shim/abi equals the headers of toolkit {number}")
    print(f"1..{max(1, len(found))}")


if __name__ == "__main__":
    main()
