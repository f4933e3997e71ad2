#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the fitted tables (data/fitted/*.json) into one C file.

    embed-fitted.py OUT.c DATA_DIR [--depfile FILE]

The output defines maq__fit_tables[] and maq__fit_devices[] (src/cost/fitted/table.h), ordered as the lookup needs them, so that the
same data gives the same bytes. A document that does not have the form of docs/fitted.md stops the build with a message.
"""
import argparse
import base64
import json
import re
import struct
import sys
import zlib
from pathlib import Path


class Bad(Exception):
    pass


def enum_of(header: Path, pattern: str) -> list[str]:
    """Names of an X-macro list of a header, in order."""
    return re.findall(pattern, header.read_text(encoding="utf-8"))


def c_text(data: bytes) -> str:
    """String literals of 100 bytes a line. Octal escapes have three digits, so that what follows cannot join them."""
    out = []
    for at in range(0, len(data), 100):
        piece = data[at:at + 100]
        out.append('    "' + "".join(chr(b) if 0x20 <= b < 0x7F and chr(b) not in '"\\?' else f"\\{b:03o}" for b in piece) + '"')
    return "\n".join(out) or '    ""'


def number(x: float) -> str:
    """A float constant that reads back as the same 32 bits."""
    value = struct.unpack("f", struct.pack("f", x))[0]
    text = f"{value:.9g}"
    return (text if "." in text or "e" in text else text + ".0") + "f"


def knots_of(table) -> str:
    """The elements of its array of knots, those of all axes; axes beyond the last have one knot."""
    return ", ".join(number(k) for axis in table["knots"] + [[0.0]] * (4 - len(table["knots"])) for k in axis)


def load(path: Path, families: list[str]) -> dict:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        for table in document["tables"]:
            values = bytearray(zlib.decompress(base64.b64decode(table["values"])))
            for i in range(1, len(values)):  # stored as differences
                values[i] = (values[i] + values[i - 1]) & 255
            values = bytes(values)
            size = 1
            for knots in table["knots"]:
                if knots != sorted(set(knots)) or not 1 <= len(knots) <= 255:
                    raise Bad(f"{path}: knots must ascend")
                size *= len(knots)
            if table["family"] not in families or size != len(values) or len(table["knots"]) > 4 or len(table["variant"]) != 3:
                raise Bad(f"{path}: a table of {table['family']} has the wrong shape")
            table["bytes"] = values
        return document
    except (KeyError, TypeError, ValueError, zlib.error) as error:
        raise Bad(f"{path}: {error!r}") from None


def generate(documents: list[dict], lists: dict[str, list[str]]) -> str:
    rows = []
    devices = {}
    for d in documents:
        known = devices.setdefault(d["device"], d["figures"])
        for burst in ("burst_flops", "burst_narrow_flops"):
            known[burst] = max(known[burst], d["figures"][burst])
        for t in d["tables"]:
            key = (d["device"].encode(), lists["library"].index(d["library"]), lists["family"].index(t["family"]),
                   lists["dtype"].index(t["dtype"]), t["variant"], -t["rows"], t["kernel"].encode())
            rows.append((key, d, t))
    rows.sort(key=lambda row: row[0])
    out = ["/* Made by tools/embed-fitted.py from data/fitted/: do not edit. */", '#include "cost/fitted/table.h"', ""]
    knots = {}  # the text of an array -> the first table that has it
    for i, (_, _, t) in enumerate(rows):
        if knots.setdefault(knots_of(t), i) == i:
            out.append(f"static const float knots_{i}[] = {{{knots_of(t)}}};")
        out.append(f"static const unsigned char values_{i}[] =\n{c_text(t['bytes'])};")
    out.append("const struct maq_fit_table maq__fit_tables[] = {")
    for i, (key, d, t) in enumerate(rows):
        n = [len(axis) for axis in t["knots"]] + [1] * (4 - len(t["knots"]))
        out.append(f"    {{{json.dumps(d['device'])}, {key[1]}, {json.dumps(t['kernel'])}, {{{key[2]}, {key[3]}, {{{', '.join(map(str, t['variant']))}}}}}, "
                   f"{{{', '.join(map(str, n))}}}, knots_{knots[knots_of(t)]}, values_{i}, {number(t['step'])}, {number(t['center'])}, {number(t['held_out']['median'])}, "
                   f"{number(t['held_out']['p80'])}, {t['rows']}}},")
    out.append("    {0}, /* C has no empty arrays */\n};")
    out.append(f"const size_t maq__fit_tables_count = {len(rows)};\n")
    out.append("const struct maq_fit_device maq__fit_devices[] = {")
    for name, figures in sorted(devices.items()):
        peaks = ", ".join(f"[{lists['dtype'].index(k)}] = {v!r}" for k, v in figures["peak_flops"].items())
        out.append(f"    {{{{.name = {json.dumps(name)}, .arch = {lists['arch'].index(figures['arch'])}, .peak_flops = {{{peaks}}}, "
                   f".sustained_flops = {{[{lists['dtype'].index('bf16')}] = {figures['sustained_flops']!r}}}, .host_bps = {figures['host_bps']!r}, "
                   f".vector_flops = {figures['vector_flops']!r}, .mem_bps = {figures['mem_bps']!r}, .inline_ecc = {str(figures['inline_ecc']).lower()}, .l2_bytes = {figures['l2_bytes']!r}, "
                   f".l2_bps = {figures['l2_bps']!r}, .sms = {figures['sms']}, .clock_hz = {figures['clock_hz']!r}}}, {figures['burst_flops']!r}, "
                   f"{figures['burst_narrow_flops']!r}}},")
    out.append("    {{0}, 0, 0},\n};")
    out.append(f"const size_t maq__fit_devices_count = {len(devices)};")
    return "\n".join(out) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", help="C file to write")
    parser.add_argument("data", help="folder that holds fitted/")
    parser.add_argument("--depfile", help="also write what the output depends on, for make and ninja")
    args = parser.parse_args()
    folder = Path(args.data) / "fitted"
    root = Path(__file__).resolve().parent.parent
    lists = {
        "family": enum_of(root / "src/cost/fitted/table.h", r'^    X\([A-Z0-9_]+, "([a-z0-9_]+)"'.replace("^", "(?m)^")),
        "dtype": ["fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8"],
        "library": ["training", "trtllm", "vllm", "sglang"],
        "arch": ["volta", "turing", "ampere", "ada", "hopper", "blackwell", "cdna2", "cdna3", "cdna4", "other"],
    }
    try:
        paths = sorted(folder.glob("*--*.json"), key=lambda p: p.name.encode()) if folder.is_dir() else []
        text = generate([load(path, lists["family"]) for path in paths], lists)
    except (Bad, OSError) as error:
        print(f"embed-fitted.py: {error}", file=sys.stderr)
        return 1
    Path(args.out).write_text(text, encoding="utf-8")
    if args.depfile:
        inputs = [folder if folder.is_dir() else folder.parent] + paths + [root / "src/cost/fitted/table.h"]
        escaped = (str(p).replace(" ", "\\ ") for p in inputs)
        Path(args.depfile).write_text(f"{args.out}: {' '.join(escaped)}\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
