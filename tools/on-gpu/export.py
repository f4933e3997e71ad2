#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `maquette profile` measured, as the table that `maquette profile import` reads.

    export.py KERNELS.db OUT.csv

Operators only, without their single repetitions; times to five digits.
"""
import csv
import sqlite3
import sys

COLUMNS = ("device gpu driver cuda cublas cudnn nccl kind dtype flags queries d0 d1 d2 d3 d4 d5 mode cache kernel n median_s min_s p90_s "
           "stddev_s sm_clock_hz power_w temperature_c created").split()


def text(column, value):
    if value is None or (value == 0 and column in ("queries", "d3", "d4", "d5")):
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if column in ("stddev_s", "power_w") else f"{value:.5g}"
    return str(value)


def main():
    base, out = sys.argv[1:3]
    with sqlite3.connect(f"file:{base}?mode=ro", uri=True) as db, open(out, "w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        rows = db.execute(f"SELECT {', '.join(COLUMNS)} FROM operator JOIN machine ON machine.id = operator.machine "
                          "ORDER BY kind, dtype, flags, queries, d0, d1, d2, d3, d4, d5, mode, cache, kernel")
        table.writerows([text(column, value) for column, value in zip(COLUMNS, row)] for row in rows)


if __name__ == "__main__":
    main()
