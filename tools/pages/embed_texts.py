#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the C file of texts that the program prints: schemas of its documents, and what each code of a diagnostic means.

    embed_texts.py OUTPUT.c docs/diagnostics.md docs/schemas/NAME.json...

src/cli/texts.h declares what is in it. Schemas are their files, deflated. Codes are the rows of the page's tables, under the heading that they
stand under.
"""
import pathlib
import re
import sys
import zlib

ROW = re.compile(r"^\| (\d{4}) \| (.*?) \| (.*?) \|$")


def literal(text):
    """String literals of a line each; octal escapes have three digits, so that what follows cannot join them."""
    out = []
    for line in text.splitlines(keepends=True):
        piece = "".join(chr(b) if 0x20 <= b < 0x7F and chr(b) not in '"\\?' else f"\\{b:03o}" for b in line.encode())
        out.append(f'        "{piece}"')
    return "\n".join(out) or '        ""'


def array(data):
    return ["    " + ",".join(str(byte) for byte in data[at:at + 32]) + "," for at in range(0, len(data), 32)]


def plain(text):
    """Markdown of a table's cell as text: links are their words."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("\\|", "|")


def codes(page):
    heading, found = "", []
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:]
        row = ROW.match(line)
        if row:
            found.append((int(row.group(1)), heading, plain(row.group(2)), plain(row.group(3))))
    found.sort()
    numbers = [code for code, *_ in found]
    if len(set(numbers)) != len(numbers) or not found:
        sys.exit(f"{page}: a code stands there twice, or none does")
    return found


def main():
    output, page, schemas = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), [pathlib.Path(name) for name in sys.argv[3:]]
    lines, rows = ["/* Written by tools/pages/embed_texts.py. */", '#include "cli/texts.h"', ""], []
    for number, path in enumerate(sorted(schemas)):
        text = path.read_bytes()
        deflated = zlib.compress(text, 9)
        lines += [f"static const unsigned char schema_{number}[] = {{", *array(deflated), "};"]
        rows.append(f'    {{"{path.stem}", {len(text)}, {len(deflated)}, schema_{number}}},')
    lines += ["const struct cli_schema cli_schemas[] = {", *rows]
    lines += ["    {0, 0, 0, 0},", "};", "", "const struct cli_code cli_codes[] = {"]
    for code, heading, what, remedy in codes(page):
        lines += [f"    {{{code},", literal(heading) + ",", literal(what) + ",", literal(remedy), "    },"]
    lines += ["    {0, 0, 0, 0},", "};", ""]
    output.write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
