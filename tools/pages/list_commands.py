#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of the program's commands, a line each, for the build: which manual pages there will be. usage: list_commands.py src/cli"""
import pathlib
import re
import sys

COMMAND = re.compile(r'^const struct cli_command \w+ = \{\s*\.name = "([^"]+)"', re.MULTILINE)

for path in sorted(pathlib.Path(sys.argv[1]).rglob("*.c")):
    for name in COMMAND.findall(path.read_text(encoding="utf-8")):
        print(name)
