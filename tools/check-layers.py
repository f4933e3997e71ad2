#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Floors: a file includes only from its own floor or a lower one.

Reads the #include "..." and <maquette/...> lines of src/, include/ and shim/ and prints every violation as
file:line: text. Exit status 1 when there is one. `--self-test` checks the checker.

Wings of one floor may know each other except where `STRANGERS` says no; `ROOMS` orders the rooms of a wing. The command line sees public
headers and its own files only; public headers see public headers only; shim/ sees nothing of the library, and capture, replay and launch
see shim/record.h, link.h and shm.h of it.
"""
import pathlib
import re
import sys
import tempfile

FLOOR = {
    "base": 0, "spec": 1, "model": 2, "cluster": 2, "plan": 2, "cost": 3, "graph": 4, "lower": 5, "train": 6, "serve": 6,
    "post_training": 7, "risk": 7, "planner": 7, "capture": 7, "replay": 7, "launch": 7, "report": 8, "measure": 8, "validate": 8, "cli": 9,
}
# Public headers stand on the floor of what they describe.
PUBLIC = {
    "diag": 0, "module": 0, "peers": 0, "range": 0, "path_hint": 1, "model": 2, "vision": 2, "cluster": 2, "islands": 2, "framework": 2, "framework_words": 2, "plan": 2, "job": 2, "mixed_plan": 2, "cost": 3,
    "graph": 4, "train": 6, "mixed_step": 6, "serve": 6, "serve_draft": 6, "serve_afd": 6, "serve_kv_tiers": 6, "serve_lora": 6, "serve_images": 6, "serve_fleet": 6, "serve_autoscaling": 6, "slo": 6, "serve_command": 6, "post_training": 7, "report_post_training": 8, "risk": 7, "checkpoint": 7, "failures": 7, "fleet_outages": 7, "fleet_availability": 7, "risk_run": 7, "planner": 7,
    "planner_measured": 7, "planner_mixed": 7, "planner_external": 7, "serve_planner": 7, "parallelizer": 7, "capture": 7, "capture_graph": 7,
    "replay": 7, "launch": 7, "report": 8, "report_diff": 8, "report_serve": 8, "trace": 8, "validate": 8, "validate_serve": 8, "measure": 8, "catalogue": 8, "maquette": 9,
}
STRANGERS = {("model", "cluster"), ("cluster", "model"), ("model", "plan"), ("cluster", "plan"), ("train", "serve"),
             ("serve", "train")}
# The readings on floor 7 do not know each other, but that replay stands on captured jobs, and launch on both.
STRANGERS |= {(a, b) for a in ("risk", "planner") for b in ("risk", "planner", "capture", "replay", "launch") if a != b}
STRANGERS |= {(a, b) for a in ("capture", "replay", "launch") for b in ("risk", "planner")}
STRANGERS |= {(a, b) for a in ("post_training",) for b in ("risk", "planner", "capture", "replay", "launch")}
STRANGERS |= {(b, a) for a in ("post_training",) for b in ("risk", "planner", "capture", "replay", "launch")}
STRANGERS |= {("capture", "replay"), ("capture", "launch"), ("replay", "launch")}

# Rooms of a wing, from the ground up: a room knows itself, lower rows, and the files of the wing that are in no room. Rooms of a row do
# not know each other, but those of NEIGHBOURS. The rooms of a wing that is not listed do not know each other.
ROOMS = {
    "model": [("layer",), ("hf",)],
    "plan": [("schedule", "megatron", "mixed"), ("words", "resolve"), ("framework_files",)],
    "cost": [("analytical",), ("fitted",), ("measured",), ("collective",)],
    "train": [("step", "memory"), ("mixed", "profiled")],
    "risk": [("run", "stragglers", "step"), ("fit", "fleet"), ("graph",)],
    "planner": [("space", "compose", "serve"), ("uniform", "stages"), ("mixed", "measured"), ("external",)],
    "capture": [("trace", "price", "graph", "infer"), ("mqt",), ("import",)],
    "serve": [("kv", "pass", "request", "slo", "command", "draft", "transfer"), ("sched",), ("engine",), ("fleet",)],
    "report": [("train", "post_training", "plan", "risk", "capture", "serve", "show", "timeline", "diff"), ("html",)],
    "validate": [("train",), ("collectives", "plans", "risk", "serve"), ("kernels",)],
}
NEIGHBOURS = {("train", "step", "memory"), ("train", "memory", "step")}
WINGS_WITH_SHIM = ("capture", "replay", "launch")

INCLUDE = re.compile(r'^\s*#\s*include\s+(?:"([^"]+)"|<(maquette/[^>]+)>)')
GENERATED = {"maq_build.h"}


def includes(path):
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) or match.group(2)


def room_of(root, file, target):
    """('public', noun), ('src', folder), ('shim', name), or None when the file is not ours."""
    if target in GENERATED:
        return None
    if target.startswith("maquette/"):
        return "public", pathlib.PurePath(target).stem
    beside = file.parent / target
    if "/" not in target and beside.is_file():
        rel = beside.relative_to(root)
        if rel.parts[0] == "include":
            return "public", rel.stem
        return ("src", rel.parts[1]) if rel.parts[0] == "src" else (rel.parts[0], rel.stem)
    first = target.split("/")[0]
    if first == "shim":
        return "shim", pathlib.PurePath(target).stem
    return ("src", first) if "/" in target else None


def fault(kind, here, what):
    """Why a file of `kind` ('public', 'src', 'shim') and room `here` may not include `what`; None when it may."""
    there_kind, there = what
    if there_kind == "public" and there not in PUBLIC:
        return f"public header {there}.h has no floor: add it to tools/check-layers.py"
    if there_kind == "src" and there not in FLOOR:
        return f"folder src/{there} has no floor: add it to tools/check-layers.py"
    if kind == "public":
        if there_kind != "public":
            return "a public header includes only public headers"
        if here in PUBLIC and PUBLIC[there] > PUBLIC[here]:
            return f"floor {PUBLIC[here]} ({here}.h) includes floor {PUBLIC[there]} ({there}.h)"
        return None
    if kind == "shim":
        return None if there_kind == "shim" else "shim/ shares nothing with the library"
    if there_kind == "shim":
        known = here in WINGS_WITH_SHIM and there in ("record", "link", "shm")
        return None if known else "only capture, replay and launch include shim/record.h, link.h and shm.h"
    if here not in FLOOR:
        return f"folder src/{here} has no floor: add it to tools/check-layers.py"
    if here == "cli":
        return None if there_kind == "public" or there == "cli" else "the command line includes public headers only"
    floor = PUBLIC[there] if there_kind == "public" else FLOOR[there]
    if floor > FLOOR[here]:
        return f"floor {FLOOR[here]} ({here}) includes floor {floor} ({there})"
    if (here, there) in STRANGERS:
        return f"{here} and {there} do not know each other"
    return None


def room_fault(rel, target):
    """Why a file of a room may not include one of another room of its wing; None when it may."""
    here, there = rel.parts[1:-1], pathlib.PurePath(target).parts[:-1]
    if len(here) < 2 or len(there) < 2 or here[0] != there[0] or here[1] == there[1]:
        return None
    wing, mine, other = here[0], here[1], there[1]
    rows = ROOMS.get(wing, [])
    level = {room: i for i, row in enumerate(rows) for room in row}
    if level.get(other, 0) < level.get(mine, 0) or (wing, mine, other) in NEIGHBOURS:
        return None
    return f"in {wing}, {mine} does not know {other}"


def check(root):
    found = []
    for top, kind in (("include", "public"), ("src", "src"), ("shim", "shim")):
        for file in sorted((root / top).glob("**/*.[ch]")):
            rel = file.relative_to(root)
            if kind == "src" and len(rel.parts) < 3:
                continue
            here = rel.parts[1] if kind == "src" else rel.stem
            for line, target in includes(file):
                what = room_of(root, file, target)
                why = fault(kind, here, what) if what else None
                why = why or (room_fault(rel, target) if kind == "src" else None)
                if why:
                    found.append(f"{rel}:{line}: {target}: {why}")
    return found


def self_test():
    cases = {  # file: (text, is it a violation)
        "src/base/a.c": ('#include "maquette/diag.h"\n#include "base/a.h"\n', False),
        "src/base/up.c": ('#include "spec/doc.h"\n', True),
        "src/base/up2.c": ("#include <maquette/model.h>\n", True),
        "src/plan/a.c": ('#include "model/m.h"\n#include "maquette/cluster.h"\n', False),
        "src/model/side.c": ('#include "maquette/cluster.h"\n', True),
        "src/cluster/side.c": ('#include "plan/p.h"\n', True),
        "src/risk/side.c": ('  #  include "planner/s.h"\n', True),
        "src/train/down.c": ('#include "graph/g.h"\n#include <yaml.h>\n', False),
        "src/cli/a.c": ('#include "maquette/maquette.h"\n#include "cli/opt.h"\n', False),
        "src/cli/deep.c": ('#include "base/str.h"\n', True),
        "src/attic/a.c": ('#include "base/str.h"\n', True),
        "include/maquette/plan.h": ('#include "maquette/model.h"\n#include "cluster.h"\n', False),
        "include/maquette/cluster.h": ('#include "maquette/diag.h"\n', False),
        "include/maquette/model.h": ('#include "base/str.h"\n', True),
        "src/capture/a.c": ('#include "shim/record.h"\n', False),
        "src/capture/b.c": ('#include "shim/shm.h"\n', False),
        "src/capture/inside.c": ('#include "shim/vgpu.h"\n', True),
        "src/planner/uniform/a.c": ('#include "planner/space/s.h"\n#include "planner/codes.h"\n', False),
        "src/planner/space/up.c": ('#include "planner/uniform/u.h"\n', True),
        "src/planner/uniform/side.c": ('#include "planner/stages/s.h"\n', True),
        "src/capture/up.c": ('#include "replay/r.h"\n', True),
        "src/train/shim.c": ('#include "shim/record.h"\n', True),
        "shim/hook.c": ('#include "shim/record.h"\n', False),
        "shim/bad.c": ('#include "maquette/diag.h"\n', True),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, (text, _) in cases.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        found = {line.split(":")[0] for line in check(root)}
    wanted = {name for name, (_, bad) in cases.items() if bad}
    for name in sorted(found ^ wanted):
        print(f"self-test: {name}: {'wrongly reported' if name in found else 'not reported'}")
    return 0 if found == wanted else 1


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    found = check(pathlib.Path(__file__).resolve().parent.parent)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
