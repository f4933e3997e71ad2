#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the C source of the extension module from the public headers.

    declarations.py OUTPUT.c --depfile FILE --include FOLDER... --cc COMMAND...

What Python sees is declared once, in include/maquette/*.h and src/cli/call.h: the C preprocessor expands them, what is theirs is kept, and
cffi makes the module of it (API mode: the C compiler checks every struct and function against the headers again).
"""
import argparse
import re
import subprocess
import sys

HEADERS = ("maquette/maquette.h", "cli/call.h")
MODULE = "maquette._native"
PREAMBLE = "#include <stdlib.h>\n" + "".join(f'#include "{header}"\n' for header in HEADERS)
# What our headers use, or ask their callers to use, of the C library; sig_atomic_t is an int in every one that there is.
LIBRARY = "typedef int sig_atomic_t; void free(void *);\n"


def expanded(cc, folders, watch):
    """The headers after preprocessing, without what comes from elsewhere."""
    command = [*cc, "-std=c17", "-D_GNU_SOURCE", *[f"-I{folder}" for folder in folders], *watch, "-E", "-x", "c", "-"]
    text = subprocess.run(command, input=PREAMBLE, capture_output=True, text=True, check=True).stdout
    kept, ours = [], False
    for line in text.splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = bool(re.search(r"(^|/)(include/maquette/[^/]+|cli/call)\.h$", marker.group(1)))
        elif ours and not line.startswith("#"):
            kept.append(line)
    return "\n".join(kept)


def balanced(text, at, opening, closing):
    """The end of the bracket that opens at or behind `at`."""
    depth = 0
    for i in range(text.index(opening, at), len(text)):
        depth += (text[i] == opening) - (text[i] == closing)
        if depth == 0:
            return i + 1
    raise ValueError(f"no {closing} for {text[at:at + 40]!r}")


def cut(text, word, end):
    """`text` without what begins with `word`; end(text, at) says where that ends."""
    while True:
        match = re.search(rf"\b{word}\b", text)
        if not match:
            return text
        text = text[:match.start()] + text[end(text, match.start()):]


def declarations(text):
    text = cut(text, "__attribute__", lambda t, at: balanced(t, at, "(", ")"))
    text = cut(text, "_Static_assert", lambda t, at: t.index(";", balanced(t, at, "(", ")")) + 1)
    text = cut(text, "static inline", lambda t, at: balanced(t, at, "{", "}"))
    text = re.sub(r"\b(_Noreturn|__extension__|inline)\b", "", text)
    # cffi works out lengths of arrays, but for casts in them.
    return re.sub(r"\[[^\[\]]*\]", lambda length: re.sub(r"\((int|unsigned|size_t)\)", "", length.group()), text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output")
    parser.add_argument("--depfile")
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--cc", nargs="+", required=True)
    given = parser.parse_args()
    try:
        import cffi
    except ImportError:
        sys.exit("declarations.py needs cffi (python3-cffi)")
    watch = ["-MD", "-MF", given.depfile, "-MT", given.output] if given.depfile else []
    ffi = cffi.FFI()
    ffi.cdef(LIBRARY + declarations(expanded(given.cc, given.include, watch)))
    ffi.set_source(MODULE, PREAMBLE)
    ffi.emit_c_code(given.output)


if __name__ == "__main__":
    main()
