#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/fit-train-error, leave-one-out and accuracy on numbers made here: fits find what made the residuals, intervals
hold what they say, pages are filled in."""
import importlib.machinery
import importlib.util
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from cli_case import Tap  # noqa: E402

sys.dont_write_bytecode = True  # a tool has no .py at its end: Python would leave its byte code in tools/


def load(name):
    path = str(HERE.parent / "tools" / name)
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


sys.path.insert(0, str(HERE.parent / "tools"))
fit = load("fit-train-error")
page = load("accuracy")
left = load("leave-one-out")


def laplace(k, n):
    """Quantile (k + 1/2) / n of the Laplace distribution with scale 1: a sample without luck."""
    u = (k + 0.5) / n - 0.5
    return math.copysign(1, u) * -math.log(1 - 2 * abs(u))


def made_rows(base, slope, sources=4, n=200):
    """Residuals of scale sqrt(base^2 + (slope x)^2) for x = 0 and 0.5; a second share has nothing to do with them."""
    rows = []
    for s in range(sources):
        for k in range(n):
            for x in (0.0, 0.5):
                r = laplace((k * 7 + s) % n, n) * math.sqrt(base ** 2 + (slope * x) ** 2)
                row = fit.Row("source %d" % s, r, [x, 0.3 * (k % 2)])
                row.weight = 1.0 / (2 * n)
                rows.append(row)
    return rows


def test_fit():
    base, slope = fit.STEPS[8], fit.STEPS[15]  # on the grid
    c = fit.fit(made_rows(base, slope))
    assert abs(c[0] / base - 1) < 0.26 and abs(c[1] / slope - 1) < 0.26, (c, base, slope)
    assert c[2] < base, c


def test_held_back_interval():
    rows = made_rows(0.05, 0.5)
    pairs = fit.held_back(rows)
    low, high = fit.limits(pairs)
    inside = sum(low <= z <= high for _, z in pairs) / len(pairs)
    assert abs(inside - 0.8) < 0.02, inside
    assert low < 0 < high and abs(low + high) < 0.1 * high, (low, high)


def test_quantile():
    pairs = [(3.0, 1.0), (1.0, 1.0), (2.0, 2.0)]
    assert [fit.quantile(pairs, q) for q in (0.1, 0.25, 0.5, 0.75, 0.9)] == [1.0, 1.0, 2.0, 2.0, 3.0]


def test_cap():
    """40 of 100, spread evenly: those that maq__validate_is_capped() has."""
    chosen = fit.capped(list(range(100)))
    assert len(chosen) == 40 and chosen[:4] == [0, 3, 5, 8] and sum(k < 50 for k in chosen) == 20, chosen
    assert fit.capped([1, 2]) == [1, 2]


def test_leave_one_out():
    """The source that would choose 0.9 alone gets what the other two choose."""
    errors = {"0.9": [0.0, 0.3, 0.3], "1.0": [0.2, 0.1, 0.1]}
    predictions = {v: {"abc"[i]: [(e, "full"), (-e, "near")] for i, e in enumerate(es)} for v, es in errors.items()}
    assert left.best_value(predictions, ["b", "c"]) == "1.0"
    assert left.best_value(predictions, ["a", "b"]) == "0.9"  # a tie: 0.15 each
    assert left.median([(0.1, ""), (-0.3, ""), (0.2, "")]) == 0.2
    assert abs(left.p90([(k / 10, "") for k in range(11)]) - 0.9) < 1e-12
    assert left.define_of("#define A 1\n#define SHARE 0.93\n", "SHARE") == "0.93"


def test_bars():
    bars = page.Bars()
    bars.most("a", 6, 0.0604)
    bars.most("b", 6, 0.0599)
    bars.between("c", -3, 3, -0.031)
    bars.least("d", 0.8, 0.8)
    bars.most("e", 6, None)
    assert [r[2:] for r in bars.rows] == [["6.0 %", "no"], ["6.0 %", "yes"], ["-3.1 %", "no"], ["0.800", "yes"],
                                          ["-", "-"]], bars.rows


def test_page():
    page.SECTIONS["test"] = lambda runs: "| %s |\n" % runs
    assert page.fill("<!-- note: x -->\n# T\n<!-- test -->\n<!-- other -->\n", 7) == "# T\n| 7 |\n<!-- other -->\n"
    template = (HERE.parent / "docs/accuracy.in.md").read_text(encoding="utf-8")
    for name in page.SECTIONS:
        assert name == "test" or "<!-- %s -->\n" % name in template, name


def main():
    tap = Tap()
    for name, test in sorted(globals().items()):
        if name.startswith("test_"):
            try:
                test()
                tap.result(True, name)
            except AssertionError as error:
                tap.result(False, name, str(error))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
