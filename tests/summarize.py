#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test cases in meson's testlog.json and prints `N passed, N failed[, N skipped]` as its last line.

Every TAP case counts; a test program that ended badly without naming a failed case counts as one failed. With several
logs the counts are summed. Exit status 1 when anything failed or when there was nothing to count.
"""
import json
import re
import sys

CASE = re.compile(r"^(not ok|ok)\b\s*\d*\s*(?:-\s*)?(.*)$")
SKIP = re.compile(r"#\s*SKIP", re.IGNORECASE)
TODO = re.compile(r"#\s*TODO", re.IGNORECASE)


def count(test):
    """(passed, failed, skipped, names of failed cases) of one entry of the log."""
    passed = skipped = 0
    failures = []
    after_failure = False
    for line in (test.get("stdout") or "").splitlines():
        case = CASE.match(line)
        if case:
            after_failure = False
        if not case:
            if after_failure and line.startswith("#"):
                failures[-1] += "\n    " + line[1:].strip()
            if re.match(r"^1\.\.0\b", line) and "skip" in line.lower():
                skipped += 1
            continue
        verdict, name = case.groups()
        if SKIP.search(name):
            skipped += 1
        elif verdict == "ok" or TODO.search(name):
            passed += 1
        else:
            failures.append(f"{test['name']}: {name}")
            after_failure = True
    bad = test.get("result") in ("FAIL", "ERROR", "TIMEOUT", "INTERRUPT", "UNEXPECTEDPASS")
    if bad and not failures:
        failures.append(f"{test['name']}: {test['result'].lower()}, exit status {test.get('returncode')}")
    if not bad and passed + skipped + len(failures) == 0:
        if test.get("result") == "SKIP":
            skipped += 1
        else:
            passed += 1  # a test that speaks through its exit status alone
    return passed, len(failures), skipped, failures


def print_slowest(entries, most=10):
    """The tests that took longest: who adds one that belongs here looks at why first."""
    slowest = sorted(entries, key=lambda test: -(test.get("duration") or 0))[:most]
    print("slowest: " + ", ".join(f"{test['name'].split(' / ')[-1].split(':')[-1]} {test.get('duration') or 0:.0f} s" for test in slowest))


def main():
    total = [0, 0, 0]
    names = []
    for log in sys.argv[1:]:
        try:
            with open(log, encoding="utf-8") as lines:
                entries = [json.loads(line) for line in lines if line.strip()]
        except (OSError, ValueError) as error:
            print(f"no test log: {error}")
            entries = []
            total[1] += 1
        print_slowest(entries)
        for test in entries:
            passed, failed, skipped, failures = count(test)
            total[0] += passed
            total[1] += failed
            total[2] += skipped
            names += failures
            if failures and test.get("stderr"):
                print(test["stderr"].rstrip())
    for name in names:
        print(f"failed: {name}")
    print(f"{total[0]} passed, {total[1]} failed" + (f", {total[2]} skipped" if total[2] else ""))
    return 1 if total[1] or not total[0] else 0


if __name__ == "__main__":
    sys.exit(main())
