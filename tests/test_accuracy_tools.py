#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/fit-train-error, leave-one-out and accuracy on numbers made here: fits find what made the residuals, intervals hold what
they say, pages are filled in; and the list of what runs taught is that of this tree."""
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
import interval_fit as fit  # noqa: E402
from rows import capped, stats  # noqa: E402

load("fit-train-error")
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
    chosen = capped(list(range(100)))
    assert len(chosen) == 40 and chosen[:4] == [0, 3, 5, 8] and sum(k < 50 for k in chosen) == 20, chosen
    assert capped([1, 2]) == [1, 2]


def test_choice():
    """The source that would choose 0.9 alone gets what the other two choose; the smaller value on a tie."""
    losses = {"0.9": dict(zip("abc", (0.0, 0.3, 0.3))), "1.0": dict(zip("abc", (0.2, 0.1, 0.1)))}
    assert left.best_value(losses, ["b", "c"]) == "1.0"
    assert left.best_value(losses, ["a", "b"]) == "0.9"  # 0.15 each
    assert abs(left.loss([{"measured": 2.0, "predicted": 1.0}, {"measured": 1.0, "predicted": 2.0}]) - math.log(2)) < 1e-12
    assert left.defined("#define A 1\n#define SHARE 0.93\n", "SHARE") == "0.93"
    assert left.defined("#define A 1\n#define SHARE 0.93\n", "SHARE", "0.8") == "#define A 1\n#define SHARE 0.8\n"


def test_stats():
    s = stats([{"error": k / 10} for k in range(-5, 6)])
    assert s["n"] == 11 and abs(s["bias"]) < 1e-12 and abs(s["median"] - 0.3) < 1e-12 and abs(s["p90"] - 0.5) < 1e-12, s
    assert stats([]) == {"n": 0}


def test_left_out_rows():
    """A part has its own 40 rows of a source."""
    rows = [{"completeness": "full" if k % 2 else "near", "at": k} for k in range(100)]
    assert len(left.of_part(rows, "all")) == 40 and len(left.of_part(rows, "full")) == 40
    assert all(r["at"] % 2 for r in left.of_part(rows, "full"))


def test_inventory():
    """Every figure that came from runs is where learnt-from-runs.json says, so that it can be left out; sources are written alike."""
    learnt = left.learnt()
    text = lambda name: (HERE.parent / name).read_text(encoding="utf-8")
    assert left.defined(text(learnt["chosen"]["file"]), learnt["chosen"]["define"]) in learnt["chosen"]["values"]
    for entry in learnt["read_off"]:
        for edit in entry["edits"]:
            changed = left.edited(text(edit["file"]), edit)
            assert edit["was"] not in changed and edit["becomes"] in changed, edit
    assert all((HERE.parent / e["file"]).exists() for e in learnt["fitted"])
    named = {s for e in learnt["read_off"] + learnt["seen"] for s in e["sources"]}
    assert all(s == s.lower() and " " not in s for s in named), named


def test_bars():
    bars = page.Bars()
    bars.most("a", 6, 0.0604)
    bars.most("b", 6, 0.0599)
    bars.between("c", -3, 3, -0.031)
    bars.least("d", 0.8, 0.8)
    bars.most("e", 6, None)
    bars.most("f", 6, 0.0599, 0.0604)  # judged with the source left out
    assert [r[2:] for r in bars.rows] == [["-", "6.0 %", "no"], ["-", "6.0 %", "yes"], ["-", "-3.1 %", "no"], ["-", "0.800", "yes"],
                                          ["-", "-", "-"], ["6.0 %", "6.0 %", "no"]], bars.rows


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
