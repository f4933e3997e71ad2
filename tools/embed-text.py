#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns a file of text into a string of a C file.

    embed-text.py OUT.c TEXT HEADER NAME      HEADER declares `extern const char *const NAME;`
"""
import sys
from pathlib import Path

out, text, header, name = sys.argv[1:]
data = Path(text).read_text(encoding="utf-8").encode("utf-8") + b"\0"
lines = ["    " + ",".join(str(byte) for byte in data[at:at + 32]) + "," for at in range(0, len(data), 32)]
Path(out).write_text(f'/* Made by tools/embed-text.py: do not edit. */\n#include "{header}"\n\nstatic const unsigned char bytes[] = {{\n' +
                     "\n".join(lines) + f"\n}};\nconst char *const {name} = (const char *)bytes;\n", encoding="utf-8")
