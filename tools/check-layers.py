#!/usr/bin/env python3
"""Floors: a file includes only from its own floor or a lower one.

Reads the #include "..." and <maquette/...> lines of src/, include/ and shim/ and prints every violation as
file:line: text. Exit status 1 when there is one. `--self-test` checks the checker.

Rooms of one floor may know each other except where `STRANGERS` says no. The command line sees public headers and its own files
only; public headers see public headers only; shim/ sees nothing of the library, and src/emulate, src/imports and src/session see shim/record.h, link.h and meet.h of it.
"""
import pathlib
import re
import sys
import tempfile

FLOOR = {
    "base": 0, "spec": 1, "model": 2, "cluster": 2, "plan": 2, "cost": 3, "graph": 4, "train": 5, "serve": 5,
    "risk": 6, "search": 6, "mixed": 6, "compose": 6, "stages": 6, "mixed_search": 6, "slices": 6, "emulate": 6, "imports": 6, "session": 6, "report": 7, "trace": 7, "validate": 7, "profile": 7, "cli": 8,
}
# Public headers stand on the floor of what they describe.
PUBLIC = {
    "diag": 0, "peers": 0, "model": 2, "cluster": 2, "islands": 2, "framework": 2, "plan": 2, "job": 2, "cost": 3, "graph": 4, "timeline": 4, "train": 5,
    "serve": 5, "risk": 6, "checkpoint": 6, "failures": 6, "risk_run": 6, "search": 6, "compose": 6, "mixed_plan": 6, "mixed_search": 6, "parallelizer": 6, "slices": 6, "emulate": 6, "capture": 6, "capture_graph": 6, "replay": 6, "session": 6, "report": 7, "trace": 7, "validate": 7, "profile": 7,
    "catalogue": 7, "maquette": 8,
}
STRANGERS = {("model", "cluster"), ("cluster", "model"), ("model", "plan"), ("cluster", "plan"), ("train", "serve"),
             ("serve", "train")}
STRANGERS |= {(a, b) for a in ("risk", "search", "emulate") for b in ("risk", "search", "emulate") if a != b}
# What makes captured jobs stands on the room of captured jobs, which knows neither maker; they do not know each other.
STRANGERS |= {("emulate", "imports"), ("emulate", "session"), ("imports", "session"), ("session", "imports")}

# Plans on mixed GPUs, from the ground up: the search of one kind of node, plans and profiles, and the composer know nothing of each
# other; stage costs stand on the last two, the search over node groups on all of them, slices on what finds stages and composes them.
PLANNERS = [("search", "mixed", "compose"), ("stages",), ("mixed_search",), ("slices",)]
STRANGERS |= {(a, b) for i, low in enumerate(PLANNERS) for a in low for high in PLANNERS[i:] for b in high if a != b}
STRANGERS |= {("stages", "search")}

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
        return None if here in ("emulate", "imports", "session") and there in ("record", "link", "meet") else "only captured jobs, their imports and sessions include shim/record.h, link.h and meet.h"
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
        "src/risk/side.c": ('  #  include "search/s.h"\n', True),
        "src/train/down.c": ('#include "graph/g.h"\n#include <yaml.h>\n', False),
        "src/cli/a.c": ('#include "maquette/maquette.h"\n#include "cli/opt.h"\n', False),
        "src/cli/deep.c": ('#include "base/str.h"\n', True),
        "src/attic/a.c": ('#include "base/str.h"\n', True),
        "include/maquette/plan.h": ('#include "maquette/model.h"\n#include "cluster.h"\n', False),
        "include/maquette/cluster.h": ('#include "maquette/diag.h"\n', False),
        "include/maquette/model.h": ('#include "base/str.h"\n', True),
        "src/emulate/a.c": ('#include "shim/record.h"\n', False),
        "src/emulate/b.c": ('#include "shim/meet.h"\n', False),
        "src/emulate/inside.c": ('#include "shim/vgpu.h"\n', True),
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
