#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pictures of docs/, in docs/pictures: each drawn from what the program answers to the command that stands below it.

usage: pictures.py PROGRAM [--check] [NAME...]        e.g. tools/pages/pictures.py build/maquette schedules

--check compares with what is there and writes nothing; exit status 1 when a picture is not what the program says today.
The same program gives the same bytes.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from svg import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Chart, Picture  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs/pictures"
GIB = 2.0 ** 30


class Program:
    """Answers of the program, and pages that it writes; commands are what follows `maquette`."""

    def __init__(self, path):
        self.path, self.pool = os.path.abspath(path), concurrent.futures.ThreadPoolExecutor(2)

    def run(self, command):
        done = subprocess.run([self.path, *shlex.split(command)], cwd=ROOT, capture_output=True, check=False)
        if done.returncode not in (0, 1):  # 1: an answer, and it does not fit
            sys.exit(f"maquette {command}: exit status {done.returncode}\n{done.stderr.decode()}")
        return done.stdout

    def json(self, command):
        return json.loads(self.run(command + " --json"))

    def all_json(self, commands):
        return list(self.pool.map(self.json, commands))

    def page_data(self, command):
        """(the document, what the charts have besides) of an HTML report."""
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.html"
            self.run(f"{command} --html {shlex.quote(str(page))}")
            text = page.read_text(encoding="utf-8")
        return [json.loads(re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', text, re.S).group(1)) for name in ("report", "more")]


def plain(x):
    return f"{x:,.10g}"


def ms(seconds):
    return f"{1e3 * seconds:,.0f} ms"


def passes(stage):
    """(kind, microbatch, chunk, begin, end) of a stage's passes in ticks; `g` counts from the end of the one before."""
    end = 0
    for kind, microbatch, chunk, gap, duration in zip(stage["k"], stage["m"], stage["c"], stage["g"], stage["d"]):
        begin = end + gap
        end = begin + duration
        yield kind, microbatch, chunk, begin, end


def schedules(program):
    """A step under six schedules, on one scale, with what the fullest stage keeps."""
    names = ["gpipe", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe-v"]
    job = "train --model llama-2-7b --cluster h100-sxm:4 --pp 4 --gbs 8 --seq 4096"
    data = list(program.pool.map(lambda n: program.page_data(f"{job}{' --vp 2' if n == 'interleaved' else ''} --schedule {n}"), names))
    last = [max(end for stage in more["stages"] for kind, *_, end in passes(stage) if kind in "fbwp") for _, more in data]
    picture = Picture(1000, 96 + 106 * len(names), "One step of Llama 2 7B on four pipeline stages, eight microbatches",
                      f"maquette {job} --schedule NAME  (interleaved: --vp 2)")
    picture.legend(20, 50, [(BLUE, "forward"), (ORANGE, "backward (of the input, where it is split)"), (GREEN, "gradient of the weights"),
                            (PURPLE, "a forward with a backward"), (GREY, "lighter: the stage's second chunk of layers")])
    colors = {"f": BLUE, "b": ORANGE, "w": GREEN, "p": PURPLE}
    scale = 800.0 / max(last)
    for row, (name, (report, more), end) in enumerate(zip(names, data, last)):
        top = 72 + 106 * row
        kept = max(stage["memory"]["activations_bytes"] for stage in report["stages"])
        picture.text(20, top + 12, name, "s")
        picture.text(20, top + 30, f"{1e3 * end * more['tick_s']:,.0f} ms", "l")
        picture.text(20, top + 46, f"activations {kept / GIB:.1f} GiB", "l")
        picture.text(20, top + 62, "of the fullest stage", "l")
        for number, stage in enumerate(more["stages"]):
            picture.rect(170, top + 21 * number, scale * end, 17, "#f2f2f2")
            for kind, microbatch, chunk, begin, finish in passes(stage):
                if kind in colors:
                    picture.rect(170 + scale * begin, top + 21 * number, scale * (finish - begin) - 0.6, 17, colors[kind], 0.55 if chunk else 1.0,
                                 f"stage {number}, microbatch {microbatch}")
    return picture


def cost_model(program):
    """The costliest operators of a step under the roofline, and what a product reaches by its tokens and device."""
    job = "train --model llama-3.1-8b --cluster GPU:1 --gbs 1 --seq N"
    devices = [("a100-80gb", GREEN), ("h100-sxm", BLUE), ("b200", ORANGE)]
    lengths = [64, 128, 256, 512, 1024, 2048, 4096, 8192]
    reports = program.all_json([job.replace("GPU", d).replace("N", str(n)) for d, _ in devices for n in lengths])
    shown = {d: program.json(f"show {d}") for d, _ in devices}
    picture = Picture(1060, 430, "The costliest operators of a training step under the roofline, and a product by its tokens", "maquette " + job)
    chart = Chart(picture, (80, 84, 430, 262), (0.1, 5000), (0.1, 1200), True, True)
    chart.axes("FLOP per byte of memory that an operator cannot do without", "TFLOP/s, H100", plain, plain, [0.1, 1, 10, 100, 1000], [0.1, 1, 10, 100, 1000])
    card = shown["h100-sxm"]
    peak, rate = card["peak_flop_per_s"]["bf16"] / 1e12, card["memory_bytes_per_s"] / 1e12
    chart.line([(0.1, 0.1 * rate), (peak / rate, peak), (5000, peak)], GREY, dots=False)
    sizes = [(64, ORANGE), (512, BLUE), (8192, PURPLE)]
    for tokens, color in sizes:
        for operator in reports[len(lengths) + lengths.index(tokens)]["operators"]:
            if operator["flop_per_call"] and operator["bytes_per_call"]:
                reached = operator["flop_per_call"] * operator["calls"] / operator["time_s"] / 1e12
                picture.dot(*chart.at(operator["flop_per_call"] / operator["bytes_per_call"], reached), color, 4, 0.7)
    picture.legend(100, 102, [(color, f"{tokens:,} tokens") for tokens, color in sizes])
    chart = Chart(picture, (610, 84, 350, 262), (64, 8192), (0, 1), True)
    chart.axes("tokens", "linear_fc1, tokens x 28,672 x 4,096: share of the dense peak", plain, lambda v: f"{100 * v:.0f} %", lengths, [0, 0.2, 0.4, 0.6, 0.8, 1])
    for number, (device, color) in enumerate(devices):
        points = []
        for n, report in zip(lengths, reports[number * len(lengths):]):
            product = next(o for o in report["operators"] if o["operator"].startswith(f"gemm {n}x28672x4096 "))
            points.append((n, product["flop_per_call"] * product["calls"] / product["time_s"] / shown[device]["peak_flop_per_s"]["bf16"]))
        chart.line(points, color, device, down=4 + 6 * (number == 2) - 3 * (number == 1))
    return picture


def plan_front(program):
    """Step time against memory, no plan better in both."""
    command = "plan --model llama-3.1-8b --cluster h100-sxm:8 --gbs 64 --seq 8192 --pareto memory"
    report = program.json(command)
    front = [(p["needed_bytes"] / GIB, p["step_time_s"]) for p in report["pareto"]]
    picture = Picture(820, 430, f"Of {report['counts']['considered']:,} plans those that no other is better than in both", "maquette " + command)
    chart = Chart(picture, (80, 84, 560, 262), (0, 80), (6, 12))
    chart.axes("GiB that the fullest GPU needs", "seconds a step", plain, plain)
    chart.line(front, BLUE)
    marks = (report["pareto"][0], next(p for p in report["pareto"] if p["step_time_s"] > 1.05 * front[0][1]), report["pareto"][-1])
    for mark in marks:
        plan = mark["plan"]
        x, y = chart.at(mark["needed_bytes"] / GIB, mark["step_time_s"])
        picture.dot(x, y, ORANGE, 5)
        words = [f"tp{plan['tensor_model_parallel_size']}", f"pp{plan['pipeline_model_parallel_size']}", f"recompute {plan['recompute_granularity']}"]
        words += [f"{plan['optimizer_offload_fraction']:.0%} of the optimizer on the host"] * (plan["optimizer_offload_fraction"] > 0)
        picture.text(x + 9, y - 8, " ".join(words), "l")
    return picture


def risk_step(program):
    """Quantiles of a step, and what its 95th percentile is due to."""
    command = "risk --model llama-3.1-70b --cluster 'h100-sxm:8 x 8, rail 400G' --tp 8 --pp 2 --gbs 256 --seq 8192"
    report = program.json(command)
    names = {"step": "noise that all GPUs share", "pass": "noise of single passes", "gpu": "lasting differences between GPUs"}
    picture = Picture(900, 330, "How long a step takes, and why", "maquette " + command)
    base = report["base_s"]

    def percent(v):
        return f"{100 * v:+.1f} %"
    points = [(report[q]["value_s"] / base - 1, share) for q, share in (("p5", 0.05), ("p50", 0.5), ("p95", 0.95), ("p99", 0.99))]
    chart = Chart(picture, (70, 84, 330, 160), (-0.005, 0.04), (0, 1))
    chart.axes(f"over the step in which nothing varies, {base:.2f} s", "share of steps that take no longer", percent, lambda v: f"{v:.0%}", [0, 0.01, 0.02, 0.03, 0.04], [0, 0.25, 0.5, 0.75, 1])
    chart.line(points, BLUE)
    for x, share in points:
        picture.text(*[c + d for c, d in zip(chart.at(x, share), (8, 14 if share > 0.1 else -4))], f"p{100 * share:.0f}", "l")
    shown = [s for s in report["sources"] if s["p95_alone_s"] > 1e-4 * base]
    chart = Chart(picture, (690, 84, 180, 160), (0, 0.015), (0, len(shown)))
    chart.axes("of the 95th percentile, from it alone", "", percent, lambda v: "", [0, 0.005, 0.01, 0.015], [0])
    for row, source in enumerate(shown):
        height = 160 / len(shown)
        width = 180 * source["p95_alone_s"] / base / 0.015
        picture.rect(690, 84 + row * height + height / 4, width, height / 2, ORANGE)
        picture.text(680, 84 + row * height + height / 2 + 4, names.get(source["source"], source["source"].replace("_", " ")), anchor="end")
    return picture


def risk_run(program):
    """When a run is done, by the nodes that stand by."""
    command = "risk --model llama-3.1-8b --cluster 'h100-sxm:8 x 64, rail 400G' --tp 2 --gbs 1024 --tokens 15T --failures llama3 --what-if spares"
    report = program.json(command)
    variants = [v for v in report["what_if"]["variants"] if v["done_after"]["p95"]["value_s"]]
    at = [(v["options"]["spares"], {q: v["done_after"][q]["value_s"] / 86400 for q in ("p5", "p50", "p95")}) for v in variants]
    without, at = at[0][1], at[1:]
    low, high = report["ideal_s"] / 86400, max(v["p95"] for _, v in at)
    picture = Picture(820, 400, "When 15 trillion tokens are done on 64 nodes, by the nodes that stand by", "maquette " + command)
    chart = Chart(picture, (80, 84, 560, 216), (at[0][0], at[-1][0]), (low - 0.5, high + 0.5))
    chart.axes("spare nodes", "days", plain, plain, [n for n, _ in at])
    chart.band([(n, v["p5"]) for n, v in at], [(n, v["p95"]) for n, v in at], BLUE)
    for quantile, color, down in (("p5", GREY, 10), ("p50", BLUE, 2), ("p95", ORANGE, -6)):
        chart.line([(n, v[quantile]) for n, v in at], color, quantile, down=down)
    picture.text(chart.at(at[0][0], high)[0] + 120, 100, f"without any: {without['p50']:.0f} days in the median, {without['p95']:.0f} in one run of twenty", "l")
    picture.path([chart.at(x, low) for x in chart.x], GREEN, 1.5, dash="5 4")
    picture.text(chart.at(chart.x[0], low)[0] + 8, chart.at(0, low)[1] + 14, "if nothing ever failed", "l", color=GREEN)
    return picture


def serving(program):
    """Latency against load, until the deployment is full."""
    command = "serve --model llama-3.1-8b --cluster h100-sxm:1 --isl 1000 --osl 200 --num-requests 2000 --rate R"
    rates = [1, 4, 8, 12, 16, 20, 22, 24, 26, 28]
    reports = program.all_json([command.replace("R", str(r)) for r in rates])
    picture = Picture(1000, 400, "Latency against load: one H100, Llama 3.1 8B, prompts of 1,000 tokens, answers of 200", "maquette " + command)
    for left, metric, top, title in ((80, "ttft_s", 500, "time to the first token, ms"), (560, "tpot_s", 100, "time per output token, ms")):
        chart = Chart(picture, (left, 84, 350, 232), (0, 28), (0, top))
        chart.axes("requests a second", title, plain, plain)
        for quantile, color in (("p50", BLUE), ("p95", ORANGE)):
            points = [(r, 1e3 * d["latency"][metric][quantile]) for r, d in zip(rates, reports)]
            inside = [p for p in points if p[1] <= top]
            chart.line(inside, color, quantile)
            if len(inside) < len(points):
                picture.text(*[c - d for c, d in zip(chart.at(*inside[-1]), (40, 14))], f"{points[len(inside)][1]:,.0f} at {points[len(inside)][0]}", "l")
    return picture


def disaggregation(program):
    """What eight GPUs carry, together and divided into pools in every proportion."""
    command = "serve --model llama-3.1-8b --cluster h100-sxm:8 --replicas N --prefill-replicas M --router least-requests --isl 4000 --osl 200 --num-requests 300 --draws 1 --find-rate --slo 'ttft_p95<2s, tpot_p95<12ms'"
    prefill = [0, 2, 3, 4, 5, 6]
    reports = program.all_json([command.replace(" --prefill-replicas M", f" --prefill-replicas {m}" if m else "").replace("N", str(8 - m)) for m in prefill])
    picture = Picture(1000, 390, "The most requests a second that hold both bounds, on eight H100", "maquette " + command)
    rates = [r["capacity"]["requests_per_s"] for r in reports]
    chart = Chart(picture, (260, 74, 640, 220), (0, 50), (0, len(prefill)))
    chart.axes("requests a second", "", plain, lambda v: "", None, [0])
    for row, (m, rate) in enumerate(zip(prefill, rates)):
        top = 74 + row * 220 / len(prefill)
        x, _ = chart.at(rate, 0)
        picture.rect(260, top + 7, x - 260, 22, GREEN if m == 0 else BLUE)
        picture.text(250, top + 22, f"{m} compute prompts, {8 - m} decode" if m else "all eight do both", anchor="end")
        picture.text(x + 8, top + 22, f"{rate:.1f}", "l")
    picture.text(20, 52, "prompts of 4,000 tokens, answers of 200; time to the first token below 2 s and 12 ms a token in 95 of 100 requests", "l")
    return picture


def kv_tiers(program):
    """Six texts that take turns, on blocks for three: what memory of the host is worth."""
    sizes = [0, 1, 2, 3, 4, 6]
    with tempfile.TemporaryDirectory() as folder:
        requests = pathlib.Path(folder) / "six.jsonl"
        lines = [{"timestamp": i * 500, "input_length": 4200, "output_length": 20, "hash_ids": [10 * (1 + i % 6) + k for k in range(1, 9)]} for i in range(1, 61)]
        requests.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        command = f"serve --model llama-3.1-8b --cluster h100-sxm:1 --requests {requests} --num-gpu-blocks-override 800"
        reports = program.all_json([command + (f" --kv-offloading-size {n}GiB" if n else "") for n in sizes])
    picture = Picture(900, 380, "Six texts of 4,200 tokens that are asked about in turn; the GPU's blocks hold three of them",
                      "maquette serve --model llama-3.1-8b --cluster h100-sxm:1 --requests six.jsonl --num-gpu-blocks-override 800 --kv-offloading-size N")
    for left, title, top, words, value in (
            (80, "time to the first token, mean, ms", 250, plain, lambda d: 1e3 * d["latency"]["ttft_s"]["mean"]),
            (520, "tokens of prompts that were found", 1, lambda v: f"{v:.0%}", lambda d: sum(t["hit_share"] for t in d["tiers"]["tiers"]) if d.get("tiers") else d["iterations"]["prefix_hit_rate"])):
        chart = Chart(picture, (left, 84, 300, 210), (0, 6), (0, top))
        chart.axes("GiB of host memory", title, plain, words, sizes)
        chart.line([(n, value(d)) for n, d in zip(sizes, reports)], BLUE)
    return picture


def emulation(program):
    """A rank that computes slower, and what 31 others make of it."""
    command = "replay examples/captured.mqt --slow rank:5=FACTORx"
    factors = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0]
    reports = program.all_json([command.replace("FACTOR", f"{f:g}") if f > 1 else command[:command.index(" --slow")] for f in factors])
    base = reports[0]["makespan_s"]
    picture = Picture(1000, 400, "One slow rank of 32: what a job loses, and who waits", "maquette " + command)
    chart = Chart(picture, (80, 84, 340, 232), (1, 2), (1, 2))
    chart.axes("the rank's slowdown", "the job's", plain, plain)
    chart.line([(1, 1), (2, 2)], GREY, dots=False, dash="5 4", width=1.5)
    chart.line([(f, r["makespan_s"] / base) for f, r in zip(factors, reports)], BLUE)
    chart = Chart(picture, (540, 84, 340, 232), (1, 2), (0, 0.6))
    chart.axes("the rank's slowdown", "share of the time that ranks wait for others", plain, lambda v: f"{v:.0%}")
    for number, color in ((0, ORANGE), (1, BLUE)):
        chart.line([(f, r["classes"][number]["waiting_for_peers_s"] / r["classes"][number]["last_end_s"]) for f, r in zip(factors, reports)], color,
                   reports[0]["classes"][number]["name"], down=8 - 10 * number)
    return picture


def offloading(program):
    """The optimizer on the host, in part: memory that it saves, time that it costs."""
    command = "train --model llama-3.1-8b --cluster h100-sxm:8 --tp 2 --gbs 64 --seq 8192 --optimizer-offload-fraction SHARE"
    shares = [0, 0.25, 0.5, 0.75, 1]
    reports = program.all_json([command.replace("SHARE", f"{s:g}") for s in shares])
    picture = Picture(1000, 400, "The optimizer on the host, in part: what it saves and costs", "maquette " + command)
    parts = [("weights_bytes", BLUE), ("gradients_bytes", GREEN), ("optimizer_bytes", ORANGE), ("activations_bytes", PURPLE), ("transient_bytes", RED)]
    chart = Chart(picture, (80, 100, 340, 216), (-0.15, 1.15), (0, 80))
    chart.axes("share of the optimizer's states on the host", "GiB of a GPU at its peak", lambda v: f"{v:.0%}", plain, shares)
    picture.legend(80, 62, [(color, key.split("_", maxsplit=1)[0]) for key, color in parts])
    for share, report in zip(shares, reports):
        memory, below = report["stages"][0]["memory"], 0.0
        for key, color in parts:
            above = below + memory[key] / GIB
            (x, low), (_, high) = chart.at(share, below), chart.at(share, above)
            picture.rect(x - 22, high, 44, low - high, color, 0.85)
            below = above
    chart = Chart(picture, (560, 100, 340, 216), (0, 1), (0, max(r["step_time_s"] for r in reports) * 1.1))
    chart.axes("share of the optimizer's states on the host", "seconds a step", lambda v: f"{v:.0%}", plain, shares)
    chart.line([(s, r["step_time_s"]) for s, r in zip(shares, reports)], BLUE)
    return picture


def plan_mixed(program):
    """Two kinds of GPU, together and each alone, by the network between their nodes."""
    cluster = ("cluster={groups: [{device: a100-40gb, nodes: 1, devices_per_node: 4, nics_per_node: 1, fabric: {base: ethernet-100, rate: RATE Gb/s}}, "
               "{device: v100-32gb, nodes: 1, devices_per_node: 8, nics_per_node: 1, fabric: {base: ethernet-100, rate: RATE Gb/s}}]}")
    command = f"plan --model gpt2-medium --seq 1024 --gbs 2048 --mbs 16 --precision fp16 --set '{cluster}'"
    rates = [5, 10, 25, 50, 100]
    reports = program.all_json([command.replace("RATE", str(r)) for r in rates])
    picture = Picture(900, 400, "Four A100 and eight V100 train GPT-2 medium together, or the A100 alone",
                      "maquette plan --model gpt2-medium --seq 1024 --gbs 2048 --mbs 16 --precision fp16 --cluster two.yaml")
    chart = Chart(picture, (80, 84, 560, 232), (5, 100), (7, 10), True)
    chart.axes("Gb/s of a node's port", "seconds a step, least first", plain, plain, rates)
    chart.line([(r, d["step_time_s"]) for r, d in zip(rates, reports)], BLUE, "the best plan")
    chart.line([(r, d["islands"][0]["alone_s"]) for r, d in zip(rates, reports)], GREEN, "A100 alone", dots=False, dash="5 4")
    return picture


PICTURES = {"cost-model": cost_model, "disaggregation": disaggregation, "emulation": emulation, "kv-tiers": kv_tiers, "offloading": offloading,
            "plan-front": plan_front, "plan-mixed": plan_mixed, "risk-run": risk_run, "risk-step": risk_step, "schedules": schedules, "serving": serving}


def main():
    arguments = [a for a in sys.argv[1:] if a != "--check"]
    check = len(arguments) + 1 < len(sys.argv)
    if not arguments or any(name not in PICTURES for name in arguments[1:]):
        sys.exit(__doc__)
    program, other = Program(arguments[0]), []
    FOLDER.mkdir(exist_ok=True)
    for name in arguments[1:] or PICTURES:
        path, text = FOLDER / f"{name}.svg", PICTURES[name](program).svg()
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            other.append(name)
        elif not check:
            path.write_text(text, encoding="utf-8")
    if other:
        sys.exit(f"not what the program says today: {', '.join(other)} of docs/pictures; `make pictures` draws them")


if __name__ == "__main__":
    main()
