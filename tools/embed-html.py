#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns what every HTML report carries into one C file: its style, the plot library, and the scripts that draw.

    embed-html.py OUT.c --style FILE.css --library CHART.js --licence TEXT SCRIPT.js...

Library and scripts become one script, in the order given, so that a page has one hash that its Content-Security-Policy names. The same
files give the same bytes.
"""
import argparse
import base64
import hashlib
import sys
from pathlib import Path


def as_array(name: str, text: str) -> str:
    data = text.encode("utf-8") + b"\0"
    lines = ["    " + ",".join(str(byte) for byte in data[at:at + 32]) + "," for at in range(0, len(data), 32)]
    return f"static const unsigned char {name}_bytes[] = {{\n" + "\n".join(lines) + f"\n}};\nconst char *const maq__html_{name} = (const char *)" \
        f"{name}_bytes;\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--style", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--licence", required=True, help="what has to go with copies of the library")
    parser.add_argument("scripts", nargs="+")
    args = parser.parse_args()
    read = lambda path: Path(path).read_text(encoding="utf-8").replace("\r\n", "\n")
    style = read(args.style)
    licence = "/*\n" + read(args.licence).rstrip() + "\n*/\n"
    script = licence + "\n".join(read(path).rstrip() for path in [args.library, *args.scripts]) + "\n"
    for what, text, ends in (("the style", style, ("</style",)), ("the scripts", script, ("</script", "<!--"))):
        for end in ends:
            if end in text.lower():
                print(f"embed-html.py: {what} cannot be put into a page: '{end}' is in it", file=sys.stderr)
                return 1
    digest = base64.b64encode(hashlib.sha256(script.encode("utf-8")).digest()).decode("ascii")
    Path(args.out).write_text(
        "/* Made by tools/embed-html.py from src/report/html/assets and the plot library: do not edit. */\n"
        '#include "report/html/assets.h"\n\n' + as_array("style", style) + as_array("script", script) +
        f'const char *const maq__html_script_hash = "sha256-{digest}";\n', encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
