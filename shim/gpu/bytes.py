#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A file as a C array: bytes.py NAME IN OUT."""
import sys

name, source, target = sys.argv[1:]
data = open(source, "rb").read()
rows = (", ".join(map(str, data[i : i + 24])) for i in range(0, len(data), 24))
with open(target, "w") as out:
    out.write(f"extern const unsigned char {name}[{len(data)}];\n")
    out.write(f"_Alignas(16) const unsigned char {name}[{len(data)}] = {{\n    " + ",\n    ".join(rows) + "};\n")
