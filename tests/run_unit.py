#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one cmocka program and passes its TAP on, mended where cmocka 1.1.5 and TAP differ.

cmocka prints a skipped test as `not ok N # SKIP`, and a program with several groups prints one plan per group. Here
tests are numbered through, skips are `ok ... # SKIP`, and there is one plan, at the end. A crash is one more failed test.
"""
import os
import re
import signal
import subprocess
import sys

PLAN = re.compile(r"^\s*1\.\.(\d+)\s*$")
RESULT = re.compile(r"^(not ok|ok)\s*\d*\s*(?:-\s*)?(.*)$")


def main():
    program = sys.argv[1:]
    env = dict(os.environ, CMOCKA_MESSAGE_OUTPUT="TAP")
    run = subprocess.run(program, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=env,
                         check=False)
    seen = planned = failed = 0
    recent = []  # what the program said since its last result
    print("TAP version 13")
    for line in run.stdout.decode("utf-8", "replace").splitlines():
        plan, result = PLAN.match(line), RESULT.match(line)
        if plan:
            planned += int(plan.group(1))
        elif result:
            seen += 1
            recent.clear()
            verdict, name = result.groups()
            skip = re.match(r"^#?\s*SKIP\s*(.*)$", name)
            if skip:
                print(f"ok {seen} - {skip.group(1)} # SKIP")
            else:
                failed += verdict != "ok"
                print(f"{verdict} {seen} - {name.replace('#', ' ')}")
        elif line.strip():
            print("# " + line)
            recent.append(line)
    if run.returncode < 0 or planned != seen or (run.returncode and not failed):
        seen += 1
        why = (f"killed by {signal.Signals(-run.returncode).name}" if run.returncode < 0
               else f"exit status {run.returncode} after {seen - 1} of {planned} tests")
        print(f"not ok {seen} - {os.path.basename(program[0])} {why}")
        for line in recent[-60:]:
            print("# " + line)
    print(f"1..{seen}")


if __name__ == "__main__":
    main()
