#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns files of text into strings of a C file.

    embed-text.py OUT.c HEADER NAME TEXT...

HEADER declares `struct maq_embedded_text`, a name and a text, and NAME as an array of them that ends with a name of NULL.
"""
import sys
from pathlib import Path

out, header, name, *texts = sys.argv[1:]
lines, rows = [f'/* Made by tools/embed-text.py: do not edit. */\n#include "{header}"\n\n#include <stddef.h>\n'], []
for number, path in enumerate(map(Path, texts)):
    data = path.read_text(encoding="utf-8").encode("utf-8") + b"\0"
    lines.append(f"static const unsigned char bytes_{number}[] = {{")
    lines += ["    " + ",".join(str(byte) for byte in data[at:at + 32]) + "," for at in range(0, len(data), 32)]
    lines.append("};")
    rows.append(f'    {{"{path.name}", (const char *)bytes_{number}}},')
Path(out).write_text("\n".join([*lines, f"const struct maq_embedded_text {name}[] = {{", *rows, "    {NULL, NULL},", "};", ""]), encoding="utf-8")
