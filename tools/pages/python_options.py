#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python/maquette/_options.pyi: the keywords of each function, for type checkers and editors.

    PYTHONPATH=build/python tools/pages/python_options.py [--check]

They are read from the program's own tables, through maquette.options(). --check writes nothing and says whether the file is as it would be
written; tests/test_python.py asks for it.
"""
import keyword
import pathlib
import sys

import maquette

FILE = pathlib.Path(__file__).resolve().parent.parent.parent / "python" / "maquette" / "_options.pyi"
CLASSES = {"TrainOptions": "train", "PlanOptions": "plan", "ServeOptions": "serve", "ServePlanOptions": "serve plan", "RiskOptions": "risk"}
HEAD = '''# SPDX-License-Identifier: Apache-2.0
# Written by tools/pages/python_options.py from the tables of the program: the keywords of each function.
from os import PathLike
from typing import Any, Literal, Mapping, Sequence, TypedDict, Union

Value = Union[str, int, float, bool, "PathLike[str]", Sequence[Any], Mapping[str, Any], None]
'''


def kind(option):
    if option.flag:
        return "bool"
    if option.mapping:
        return "Union[Mapping[str, Any], Sequence[str], str]"
    if option.words:
        words = ", ".join(f'"{word}"' for word in option.words)
        of_job = "" if option.value else ", bool" if {"true", "false"} <= set(option.words) else ", int"  # ZeRO's stages are numbers
        return f"Union[Literal[{words}]{of_job}, None]"
    return "Value"


def member(name):
    return name + "_" if keyword.iskeyword(name) else name


def text():
    out = [HEAD]
    for name, command in CLASSES.items():
        out += ["", f"class {name}(TypedDict, total=False):"]
        seen = set()
        for option in maquette.options(command):
            for one in (*option.aliases, option.name):
                if one not in seen:
                    out.append(f"    {member(one)}: {kind(option)}")
                seen.add(one)
    return "\n".join(out) + "\n"


def main():
    if "--check" in sys.argv:
        sys.exit(FILE.read_text(encoding="utf-8") != text() and f"{FILE}: tools/pages/python_options.py would write it anew")
    FILE.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    main()
