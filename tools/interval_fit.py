# SPDX-License-Identifier: Apache-2.0
"""The fit of how sure a step time is: src/train/uncertainty.c has the model, tools/fit-train-error writes what is found here.

A residual r = ln(measured / predicted) is Laplacian with scale s(x), x the shares of the regimes of its step. The coefficients of s
are those of the least sum of ln s + |r| / s, by trying a fixed grid, one coefficient after the other, until nothing changes.
"""
import math

from rows import capped

Q_LOW, Q_HIGH = 0.1, 0.9
STEPS = [0.0] + [0.01 * 1.25 ** k for k in range(0, 32)]  # 0.01 to 10
START = 0.1


class Row:
    def __init__(self, source, residual, shares):
        self.source, self.residual, self.shares = source, residual, shares
        self.weight = 0.0


def rows_of(by_source):
    """Rows of {source: rows of `validate train --json`}, at most CAP of each; a source weighs 1."""
    out = []
    for source, rows in by_source.items():
        chosen = capped(rows)
        for r in chosen:
            row = Row(source, math.log(r['measured'] / r['predicted']), list(r.get('regime', {}).values()))
            row.weight = 1.0 / len(chosen)
            out.append(row)
    return out


def loss(rows, squares):
    total = 0.0
    for row, s2 in zip(rows, squares):
        s = math.sqrt(s2)
        total += row.weight * (math.log(s) + abs(row.residual) / s)
    return total


def fit(rows):
    """[s_0, c_1, ...]; s_0 > 0."""
    n = 1 + len(rows[0].shares)
    x2 = [[1.0] + [v * v for v in row.shares] for row in rows]
    c = [START] * n
    best = math.inf
    while True:
        before = best
        for k in range(n):
            rest = [sum(c[j] * c[j] * x[j] for j in range(n) if j != k) for x in x2]
            for step in STEPS[1:] if k == 0 else STEPS:
                value = loss(rows, [r + step * step * x[k] for r, x in zip(rest, x2)])
                if value < best - 1e-12:
                    best, c[k] = value, step
        if best >= before - 1e-9:
            return c


def scale_of(c, row):
    return math.sqrt(c[0] * c[0] + sum((a * b) ** 2 for a, b in zip(c[1:], row.shares)))


def quantile(pairs, q):
    """Smallest value with at least q of the weight at or below it."""
    pairs = sorted(pairs)
    total = sum(w for _, w in pairs)
    done = 0.0
    for value, weight in pairs:
        done += weight
        if done >= q * total * (1 - 1e-12):
            return value
    return pairs[-1][0]


def held_back(rows):
    """(row, r / s) with s fitted without the row's source; s is 1 where there are no shares to fit."""
    if not rows[0].shares:
        return [(r, r.residual) for r in rows]
    out = []
    for source in sorted({r.source for r in rows}):
        c = fit([r for r in rows if r.source != source])
        out += [(r, r.residual / scale_of(c, r)) for r in rows if r.source == source]
    return out


def limits(pairs):
    zs = [(z, 1.0) for _, z in pairs]
    return quantile(zs, Q_LOW), quantile(zs, Q_HIGH)


def inside(pairs, source):
    """[whether the row is inside] of a source that took part neither in the coefficients nor in the ends."""
    low, high = limits([p for p in pairs if p[0].source != source])
    return [low <= z <= high for r, z in pairs if r.source == source]
