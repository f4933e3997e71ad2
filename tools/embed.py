#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the catalogue (data/<section>/*.yaml) into one C file.

    embed.py OUT.c DATA_DIR [--depfile FILE]
    embed.py --list DATA_DIR          the files that would be embedded, one per line

The output defines maq__catalogue[] and maq__catalogue_count (src/spec/catalogue_data.h), ordered by section and name, so that
the same data gives the same bytes. Sections without a folder are empty. Names, and the entries of a top-level `aliases:` list,
must be unique inside a section, case ignored; anything else stops the build with a message.

Only `aliases:` is read here, and without a YAML library, so that building needs nothing but Python: it must be a flow list on one
line (`aliases: [a, b]`) or a block list of plain or quoted items.
"""
import argparse
import re
import sys
from pathlib import Path

SECTIONS = ("devices", "fabrics", "frameworks", "models", "variability", "variability/failures")
NAME = re.compile(r"[a-z0-9][a-z0-9._+-]*\Z")
MAX_BYTES = 1 << 20


class Bad(Exception):
    pass


def unquote(item: str, where: str) -> str:
    item = item.strip()
    if len(item) >= 2 and item[0] == item[-1] and item[0] in "\"'":
        item = item[1:-1]
    elif " #" in item:
        item = item.split(" #", 1)[0].strip()
    if not item or re.search(r"[|\"'\\\x00-\x1f\[\]{},]", item):
        raise Bad(f"{where}: alias {item!r} is empty or has a character that an alias cannot have")
    return item


def aliases_of(text: str, path: Path) -> list[str]:
    found: list[str] = []
    lines = text.splitlines()
    for i, line in enumerate(lines):
        match = re.match(r"(?:aliases|\"aliases\")\s*:(.*)\Z", line)
        if not match:
            continue
        where = f"{path}:{i + 1}"
        rest = match.group(1).strip()
        flow = re.match(r"\[(.*)\]\s*(?:#.*)?\Z", rest)
        if flow:
            found += [unquote(item, where) for item in flow.group(1).split(",") if item.strip()]
        elif not rest or rest.startswith("#"):
            for k, item in enumerate(lines[i + 1:], i + 2):
                block = re.match(r"\s*-\s+(.*)\Z", item)
                if block:
                    found.append(unquote(block.group(1), f"{path}:{k}"))
                elif item.strip() and not item.lstrip().startswith("#"):
                    break
        else:
            raise Bad(f"{where}: write aliases as a list on one line: aliases: [a, b]")
    return found


def folded(name: str) -> str:
    """What the program looks names up by (src/spec/catalogue.c)."""
    name = name.lower()
    for maker in ("nvidia ", "amd ", "instinct ", "tesla ", "geforce "):
        name = name.removeprefix(maker)
    return re.sub("[ _]", "-", name)


def entries(data: Path) -> list[tuple[str, str, list[str], bytes, Path]]:
    out = []
    for section in SECTIONS:
        owner: dict[str, Path] = {}
        folder = data / section
        files = sorted(folder.glob("*.yaml"), key=lambda p: p.stem.encode()) if folder.is_dir() else []
        for path in files:
            raw = path.read_bytes()
            if len(raw) > MAX_BYTES:
                raise Bad(f"{path}: larger than {MAX_BYTES} bytes")
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                raise Bad(f"{path}: not UTF-8: {error}") from None
            if not NAME.match(path.stem):
                raise Bad(f"{path}: a catalogue name has only a-z 0-9 . _ + -")
            aliases = aliases_of(text, path)
            for name in [path.stem, *aliases]:
                other = owner.setdefault(folded(name), path)
                if other != path:
                    raise Bad(f"{path}: the name '{name}' is already that of {other}")
            if len({name.lower() for name in [path.stem, *aliases]}) != 1 + len(aliases):
                raise Bad(f"{path}: an alias is listed twice, or repeats the name")
            out.append((section, path.stem, aliases, raw, path))
    return out


def c_string(text: str) -> str:
    out = []
    for byte in text.encode("utf-8"):
        plain = 0x20 <= byte < 0x7F and chr(byte) not in "\"\\?"
        out.append(chr(byte) if plain else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def generate(rows) -> str:
    out = ["/* Made by tools/embed.py from data/: do not edit. */", '#include "spec/catalogue_data.h"', ""]
    for i, (section, name, _, raw, _) in enumerate(rows):
        out.append(f"static const unsigned char text_{i}[] = {{ /* {section}/{name} */")
        data = raw + b"\0"
        for at in range(0, len(data), 24):
            out.append("    " + ",".join(str(byte) for byte in data[at:at + 24]) + ",")
        out.append("};")
    out.append("")
    out.append("const struct maq_catalogue_entry maq__catalogue[] = {")
    for i, (section, name, aliases, raw, _) in enumerate(rows):
        out.append(f"    {{{c_string(section)}, {c_string(name)}, {c_string('|'.join(aliases))}, "
                   f"(const char *)text_{i}, {len(raw)}}},")
    out.append("    {0}, /* C has no empty arrays */")
    out.append("};")
    out.append(f"const size_t maq__catalogue_count = {len(rows)};")
    return "\n".join(out) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", help="C file to write")
    parser.add_argument("data", help="folder that holds models/, devices/, fabrics/ and frameworks/")
    parser.add_argument("--depfile", help="also write what the output depends on, for make and ninja")
    parser.add_argument("--list", action="store_true", help="list the files and stop")
    args = parser.parse_args()
    data = Path(args.data)
    try:
        rows = entries(data)
    except (Bad, OSError) as error:
        print(f"embed.py: {error}", file=sys.stderr)
        return 1
    if args.list:
        print("".join(f"{row[4]}\n" for row in rows), end="")
        return 0
    if not args.out:
        parser.error("OUT.c is missing")
    Path(args.out).write_text(generate(rows), encoding="utf-8")
    if args.depfile:
        # A folder's own time stamp changes when a file appears or goes.
        inputs = [p for p in (data / s for s in SECTIONS) if p.is_dir()] + [row[4] for row in rows]
        escaped = (str(p).replace(" ", "\\ ") for p in inputs)
        Path(args.depfile).write_text(f"{args.out}: {' '.join(escaped)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
