#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the trap stubs and the version script of one shared object from shim/names.

usage: stubs.py CUDA_MAJOR STUBS.c SCRIPT.map LIST...

A stub is a weak function: where a source file defines the name, that one is linked. Stubs lie in a section of their own, so
that a look-up by name (shim/cuda/entry.c) knows them. The script has one version node per
library, which is what a program that was linked against the real one asks for; what is in no list (MPI, host clocks)
stays without a version, and hidden symbols stay hidden by -fvisibility.
"""
import pathlib
import sys


def read(path):
    head, names = {}, []
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            key, _, value = line[2:].partition(": ")
            head[key] = value
        elif line:
            names.append(line)
    return head["file"], head["node"], int(head["answer"].split()[0]), names


def main():
    major, stubs, script = int(sys.argv[1]), sys.argv[2], sys.argv[3]
    code = ["/* Made by shim/stubs.py from shim/names. */", '#include "shim/vgpu.h"', "",
            f"const int vg_cuda_major = {major};", "",
            "#define STUB(library, name, answer) \\",
            "    VG_EXPORT __attribute__((weak, section(\"vg_stubs\"))) intptr_t name(void); \\",
            "    intptr_t name(void) { return vg_trap(library, #name, answer); }", ""]
    nodes, seen = [], set()
    for path in sys.argv[4:]:
        file, node, answer, names = read(path)
        fresh = [n for n in names if n not in seen]
        seen.update(fresh)
        code += [f'STUB("{file}", {name}, {answer})' for name in fresh]
        if node != "-":
            nodes.append(f"{node} {{\n    global:\n" + "".join(f"        {n};\n" for n in fresh) + "};\n")
    pathlib.Path(stubs).write_text("\n".join(code) + "\n", encoding="utf-8")
    pathlib.Path(script).write_text("\n".join(nodes), encoding="utf-8")


if __name__ == "__main__":
    main()
