#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""HTML reports: the same bytes twice, nothing of a user's words as markup, the document of --json whole; and in a browser, at 400 and 1,600
pixels, in light and dark: no error, every chart drawn, nothing wider than the page, and the numbers of the document in text and charts.

The browser is `chromium` (or what CHROMIUM names); without one those checks are skipped. Pages forbid scripts that are not their own, so that
what looks into them is added to a copy without that rule; the page as it is is loaded too.
maq-test: no sanitizer
"""
import concurrent.futures
import html
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import Scratch, Tap  # noqa: E402

BROWSER = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
MAX_BYTES = 2_000_000
WIDTHS = ((400, "dark"), (1600, "light"))

# What is asked of a page in the browser; the answer goes to the page that has it in a frame.
PROBE = r"""
<script>
(() => {
  const charts = {}, found = {};
  for (const chart of Object.values(Chart.instances))
    charts[chart.canvas.closest('.plot').id] = {sums: chart.data.datasets.map(d => d.data.map(v => v === null ? 0 : typeof v === 'object' ? v.y : v)),
      labels: chart.data.datasets.map(d => d.label)};
  found.charts = charts;
  found.empty = [...document.querySelectorAll('.plot')].filter(p => ![...p.querySelectorAll('canvas')].some(c => c.width > 0 && c.height > 0)).map(p => p.id);
  found.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  found.blank = [...document.querySelectorAll('.plot canvas')].filter(c => {
    const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
    for (let i = 3; i < d.length; i += 4) if (d[i]) return false;
    return true;
  }).length;
  found.paper = getComputedStyle(document.body).backgroundColor;
  found.tips = [];
  const gantt = document.querySelector('.gantt canvas');
  if (gantt) {
    const move = part => {
      const box = gantt.getBoundingClientRect();
      gantt.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + box.width * part, clientY: box.top + 30, bubbles: true}));
      const tip = gantt.parentNode.querySelector('.tip');
      found.tips.push(tip.hidden ? '' : tip.textContent);
    };
    for (let i = 1; i < 40; i++) move(i / 40);
    gantt.dispatchEvent(new WheelEvent('wheel', {deltaY: -500, ctrlKey: true, clientX: 200, clientY: 50, cancelable: true, bubbles: true}));
    gantt.dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight', bubbles: true}));
  }
  const before = found.paper;
  document.getElementById('theme').click();
  found.turned = getComputedStyle(document.body).backgroundColor !== before;
  parent.postMessage({name: location.hash.slice(1), found}, '*');
})();
</script>
"""


def page_json(text, name):
    return json.loads(re.search(rf'<script type="application/json" id="{name}">(.*?)</script>', text, re.S).group(1))


# All pages in frames, so that a browser is started once for a width. A page that does not answer has no entry in data-found.
FRAMES = """<!DOCTYPE html><html><body><script>
const found = {};
addEventListener('message', e => {
  found[e.data.name] = e.data.found;
  document.documentElement.setAttribute('data-found', JSON.stringify(found));
});
</script>%s</body></html>"""


def browse(file, width, theme):
    """DOM of a page, and what the console says."""
    profile = file.parent / f"profile-{file.stem}"
    args = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}", f"--window-size={width},900", "--disable-dev-shm-usage",
            "--hide-scrollbars", "--enable-logging=stderr", f"--blink-settings=preferredColorScheme={0 if theme == 'dark' else 1}",
            "--virtual-time-budget=8000", "--dump-dom", file.as_uri()]
    run = subprocess.run(args, capture_output=True, timeout=60, check=False)
    said = [line for line in run.stderr.decode("utf-8", "replace").splitlines() if "CONSOLE" in line]
    return run.stdout.decode("utf-8", "replace"), said


def close(a, b, tolerance=1e-6):
    return abs(a - b) <= tolerance * max(abs(a), abs(b), 1e-12)


# --- what each kind of page has to show: faults as text -------------------------------------------------------------------

def check_train(document, text, found):
    faults = []
    step = document["step_time_s"]
    shown = re.search(r'<h3>Step time</h3><p class="value">([0-9.]+) (\w+)</p>', text)
    units = {"s": 1, "ms": 1e-3, "us": 1e-6}
    if not shown or not close(float(shown.group(1)) * units[shown.group(2)], step, 5e-4):
        faults.append(f"step time {step} is not in the headline")
    if f'MFU {100 * document["mfu"]:.1f} %' not in text:
        faults.append("MFU is not in the headline")
    for row in document["operators"]:
        if html.escape(row["operator"]) not in text:
            faults.append("an operator is missing: " + row["operator"])
    if not found:
        return faults
    bars = found["charts"]["breakdown-chart"]
    for s, stage in enumerate(document["stages"]):
        if not close(sum(part[s] for part in bars["sums"]), step, 2e-3):
            faults.append(f"the bar of stage {s} is not the step")
        if not close(sum(part[s] for part in found["charts"]["memory-chart"]["sums"]) * 2**30, stage["memory"]["total_bytes"]):
            faults.append(f"the memory of stage {s} is not its total")
    lines = found["charts"]["memory-time"]["sums"]
    for s, stage in enumerate(document["stages"]):
        if len(document["stages"]) <= 16 and not close(max(lines[s]) * 2**30, stage["memory"]["total_bytes"], 1e-4):
            faults.append(f"memory over time of stage {s} does not reach its peak")
    tips = "\n".join(found["tips"])
    if "forward" not in tips or "microbatch 0" not in tips:
        faults.append("pointing at the pipeline says nothing")
    return faults


def check_post_training(document, text, found):
    faults = []
    more, parts = page_json(text, "more"), document["parts"]
    for key, seconds in parts.items():
        share = f'{100 * seconds / document["step_time_s"]:.1f} %</td>'
        if seconds > 0 and share not in text:
            faults.append(f"{key} is not in the table")
    steps = 1 / document["generation"]["generations_per_step"] if "generation" in document else 1
    if not close(more["end"], steps * document["step_time_s"]) or not close(sum(b - a for a, b in zip(more["at"], more["to"])), more["end"]):
        faults.append("the parts are not the cycle")
    if "generation" in document and not close(max(more["engines"]), document["generation"]["generation_s"]):
        faults.append("no engine is busy to the end")
    if f'{document["memory"]["training_bytes"] / 2**30:.2f}</td>' not in text:
        faults.append("the memory is not in the table")
    if found and not any("train" in tip and "begins at" in tip for tip in found["tips"]):
        faults.append("pointing at a part says nothing")
    return faults


def check_serve(document, text, found):
    faults = []
    latency = document["latency"]
    for key in ("ttft_s", "tpot_s", "itl_s", "e2el_s", "queue_s"):
        for part in ("mean", "p50", "p95"):
            if f'<td class="n">{latency[key][part] * 1e3:.2f}</td>' not in text:
                faults.append(f"{part} of {key} is not in the table")
    more = page_json(text, "more")
    own = [x for x in more["loads"] if x["asked"]]
    if len(own) != 1 or not close(own[0]["ttft_s"][0], latency["ttft_s"]["mean"]) or len(more["loads"]) < 4:
        faults.append("the report's own load is not among the others")
    for key in ("ttft_s", "tpot_s", "e2el_s"): # the document's quantiles are those of a histogram
        curve = more["curves"][key]
        if curve != sorted(curve) or not close(curve[100], latency[key]["p50"], 0.05) or not close(curve[190], latency[key]["p95"], 0.05):
            faults.append(f"the curve of {key} is not its quantiles")
    over = more.get("over_time")
    if ("fleet" in document) == bool(over):
        faults.append("charts over time where they say nothing, or none")
    if over and (max(over["kv"]) > document["iterations"]["kv_peak"] + 1e-6 or over["t"] != sorted(over["t"])):
        faults.append("the cache over time is fuller than at its peak")
    if found:
        front = found["charts"]["front"]["sums"][0]
        if not any(close(y, 1 / latency["tpot_s"]["mean"], 1e-5) for y in front):
            faults.append("the report's own load is not in the chart")
        if over and len(found["charts"]["queue-time"]["sums"][0]) != len(over["t"]):
            faults.append("the queue over time is not drawn")
    return faults


def check_serve_plan(document, text, found):
    faults = []
    best = document["best"]
    if f'{best["requests_per_s"]:.4g} requests/s' not in text or "How to start it" not in text:
        faults.append("the best deployment is not there")
    for point in document["front"]:
        if f'{point["tokens_per_s_per_user"]:.1f}</td>' not in text:
            faults.append("a point of the front is missing")
    if found:
        drawn = [y for sums in found["charts"]["front-chart"]["sums"] for y in sums]
        if not all(any(close(y, p["tokens_per_s_per_user"]) for y in drawn) for p in document["front"]):
            faults.append("a point of the front is not drawn")
    return faults


def check_plan(document, text, found):
    faults = []
    more = page_json(text, "more")
    if not document["fits"]:
        return [] if "no plan fits" in text and "What would make it fit" in text else ["it does not say that nothing fits"]
    for plan, name in zip(document["plans"], more["plans"]):
        if f'{plan["needed_bytes"] / 2**30:.1f}</td>' not in text or name.split(",")[0] not in text:
            faults.append("a plan is missing: " + name)
    if f'MFU {100 * document["plans"][0]["mfu"]:.1f} %' not in text or html.escape(document["document"]).strip() not in text:
        faults.append("the winner is not shown")
    if found:
        parts = found["charts"]["parts"]["sums"]
        for i, plan in enumerate(document["plans"]):
            if not close(sum(part[i] for part in parts), plan["step_time_s"], 5e-3):
                faults.append(f"the bar of plan {i + 1} is not its step")
        front = found["charts"]["front"]
        drawn = [y for sums in front["sums"] for y in sums]
        for plan in document["plans"] + document["pareto"]:
            if not any(close(y, plan["step_time_s"]) for y in drawn):
                faults.append("a plan is not in the chart")
    return faults


def check_mixed(document, text, found):
    stages = document["plans"][0]["stages"]
    shown = " of %.1f</td>" % (stages[0]["capacity_bytes"] / 2**30) in text and "The stages" in text
    return ([] if shown else ["the stages are not there"]) + stages_drawn(stages, ("compute_s", "hop_s"), found)


def check_slices(document, text, found):
    best = document["plans"][0]
    faults = [f"{piece['text']} is not in the table" for piece in best["pieces"] if html.escape(piece["text"]) not in text]
    faults += ["the plans are not listed"] if len(document["plans"]) > 1 and "Plans of other waves" not in text else []
    if f'{document["parallelizer"]["calls"]["made"]:,} calls' not in text:
        faults.append("what was asked is not there")
    return faults + stages_drawn(best["stages"], ("compute_s", "hop_s"), found)


def check_predict(document, text, found):
    faults = [] if ("does not fit on these" in text) == (not document["fits"]) else ["it does not say whether the plan fits"]
    for stage in document["stages"]:
        if f'{stage["memory_bytes"] / 2**30:.1f} of {stage["capacity_bytes"] / 2**30:.1f}</td>' not in text:
            faults.append(f"stage {stage['stage']} is not in the table")
    return faults + stages_drawn(document["stages"], ("forward_s", "backward_s", "hop_s"), found)


def stages_drawn(stages, times, found):
    if not found:
        return []
    drawn, memory = found["charts"]["stage-time"]["sums"], found["charts"]["stage-memory"]["sums"][0]
    return [f"stage {i} is not drawn" for i, stage in enumerate(stages)
            if not close(memory[i] * 2**30, stage["memory_bytes"]) or not all(close(part[i], stage[name]) for part, name in zip(drawn, times))]


def check_replay(document, text, found):
    faults = []
    more = page_json(text, "more")
    for key, name in (("computing", "computing_s"), ("moving", "moving_s"), ("peers", "waiting_for_peers_s")):
        mean = sum(c[name] * c["ranks"] for c in document["classes"]) / document["ranks"]
        if len(more[key]) != document["ranks"] or not close(sum(more[key]) / document["ranks"], mean, 1e-3):
            faults.append(f"{key} of ranks is not that of their classes")
    if f'{100 * (document["makespan_s"] / document["captured_makespan_s"] - 1):+.2f} %' not in text:
        faults.append("what the edit changes is not there")
    if found and not all(close(a, s["time_s"]) for a, s in zip(found["charts"]["step-chart"]["sums"][0], document["steps"])):
        faults.append("the steps are not drawn")
    return faults


def check_vary(document, text, found):
    faults = []
    for v in document["variants"]:
        if v["fits"] and f'{v["days_per_trillion_tokens"]:.3g}</td>' not in text:
            faults.append("a variant is missing")
    if found:
        drawn = [y for sums in found["charts"]["scaling"]["sums"] for y in sums]
        if not all(any(close(y, v["tokens_per_s"] / v["gpus"]) for y in drawn) for v in document["variants"] if v["fits"]):
            faults.append("a variant is not drawn")
    return faults


def check_serve_vary(document, text, found):
    faults = []
    served = [v for v in document["variants"] if v["fits"] and not v.get("why")]
    for v in served:
        if f'{v["output_tokens_per_s_per_device"]:.1f}</td>' not in text:
            faults.append("a combination is missing")
    if not served or '<th' not in text:
        faults.append("nothing was served")
    if found:
        for chart, figure in (("front-chart", lambda v: v["output_tokens_per_s_per_user"]), ("along", lambda v: v["ttft_mean_s"] * 1e3)):
            drawn = [y for sums in found["charts"][chart]["sums"] for y in sums]
            if not all(any(close(y, figure(v)) for y in drawn) for v in served):
                faults.append(f"a combination is not drawn in {chart}")
    return faults


def check_risk_step(document, text, found):
    faults = []
    for figure in ("p5", "p50", "p95", "p99", "mean"):
        if f'{document[figure]["value_s"]:#.5g} s</td>' not in text:
            faults.append(figure + " is not in the table")
    more = page_json(text, "more")
    t, share = more["t"], more["share"]
    if share != sorted(share) or t != sorted(t):
        faults.append("the distribution function falls")
    for figure, level in (("p5", 0.05), ("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        x = document[figure]["value_s"]
        i = next((i for i in range(1, len(t)) if t[i] >= x), len(t) - 1)
        at = share[i - 1] + (share[i] - share[i - 1]) * (x - t[i - 1]) / (t[i] - t[i - 1])
        if abs(at - level) > 0.01:
            faults.append(f"the distribution function has {at} at {figure}")
    if found and document["sources"]:
        alone = found["charts"]["tornado"]["sums"][0]
        if not all(close(a, 100 * s["p95_alone_s"] / document["base_s"]) for a, s in zip(alone, document["sources"])):
            faults.append("the tornado is not the sources")
    return faults


def check_risk_graph(document, text, found):
    faults = check_risk_step(document, text, found)
    for part in document["longest_path"]:
        if f'<td class="n">{100 * part["seconds"] / document["base_s"]:.1f} %</td>' not in text:
            faults.append(part["operator"] + " is not in the table")
    if found and not all(close(a, part["seconds"]) for a, part in zip(found["charts"]["longest-chart"]["sums"][0], document["longest_path"])):
        faults.append("the longest path is not drawn")
    return faults


def check_steady(document, text, found):
    faults = [] if f'{document["base_s"]:#.5g} s</td>' in text and document["p99"]["value_s"] == document["base_s"] else ["the time is not in the table"]
    return faults + (["a law without width is drawn"] if found and "density" in found["charts"] else [])


def check_risk_run(document, text, found):
    faults = []
    more = page_json(text, "more")
    curve = more["wall_s"]
    if curve != sorted(curve) or not close(curve[100], document["done_after"]["p50"]["value_s"], 1e-3) or not close(curve[190], document["done_after"]["p95"]["value_s"], 1e-3):
        faults.append("the curve is not the quantiles")
    for quantile in ("p5", "p50", "p95"):
        days = document["done_after"][quantile]["value_s"] / 86400
        if f"{days:.{3 if days < 9.995 else 2 if days < 99.95 else 1}f} d" not in text:
            faults.append(quantile + " is not in the table")
    if f'{100 * document["goodput"]:.2f} %' not in text:
        faults.append("the goodput is not there")
    if found:
        badput = sum(found["charts"]["buckets"]["sums"][0])
        if not close(badput * 86400, sum(b["time_s"] for b in document["buckets"] if b["bucket"] != "productive"), 1e-6):
            faults.append("the bars of badput do not add up")
        if not any(close(x, document["causes"][0]["lost_s"] / 3600) for x in found["charts"]["causes"]["sums"][0]):
            faults.append("a cause is not in the chart")
        if len(found["charts"]["variants"]["sums"][0]) != len(document["what_if"]["variants"]):
            faults.append("what if is not in the chart")
    return faults


def check_diff(document, text, found):
    faults = []
    figure = document["figures"][0]
    if f'<p class="value">{100 * figure["relative_change"]:+.{1 if abs(figure["relative_change"]) >= 0.09995 else 2}f} %</p>' not in text:
        faults.append("the change of the first figure is not in the headline")
    for table in document["tables"]:
        if "whole" not in table or not any(row["change"] for row in table["rows"]):
            continue
        if f'<section id="{table["table"]}">' not in text:
            faults.append(f"no section for {table['table']}")
        if found and not close(sum(found["charts"]["chart-" + table["table"]]["sums"][0]), table["change"], 1e-6):
            faults.append(f"the bars of {table['table']} do not add up to its change")
    return faults


def check_graph(document, text, found):
    faults = []
    if "time" in document:
        for name, seconds in document["time"].items():
            share = 100 * seconds / document["makespan_s"]
            if seconds > 0 and f'<td class="n">{share:.1f} %</td>' not in text:
                faults.append(f"{name} is not in the table")
        return faults
    for one in document["classes"]:
        if f'<td class="w">{html.escape(one["name"])}</td>' not in text or f'<td class="n">{one["records"]}</td>' not in text:
            faults.append(f"the class {one['name']} is missing")
    if found:
        drawn = found["charts"]["operator-chart"]["sums"][0]
        if not all(close(a, one["total_s"]) for a, one in zip(drawn, document["operators"])):
            faults.append("the operators are not drawn")
    return faults


def check_risk_fit(document, text, found):
    faults = []
    for number, series in enumerate(document["series"]):
        for figure in ("p50", "p95", "p99", "mean"):
            if f'<td class="n">{series[figure]["predicted"]:#.4g} s</td>' not in text:
                faults.append(f"{figure} of {series['name']} is not in the table")
        if found and not close(found["charts"][f"quantiles-{number}"]["sums"][0][1], 1):
            faults.append("the quantiles are not drawn")
    for record in document["records"]:
        for kernel in record["kernels"]:
            if f'<td class="n">{100 * kernel["share"]:.1f} %</td>' not in text:
                faults.append(f"the kernel {kernel['name']} is missing")
    return faults


def check_risk_replay(document, text, found):
    faults = [f"stage {one['stage']} is missing" for one in document["by_stage"] if f'<td class="n">{one["slowdown"]:.4f}</td>' not in text]
    if found:
        drawn = found["charts"]["step-chart"]["sums"][0]
        if not all(close(a, one["step_s"]) for a, one in zip(drawn, document["step_times"])):
            faults.append("the steps are not drawn")
        if not close(max(x for sums in found["charts"]["worker-chart"]["sums"] for x in sums), max(w["slowdown"] for w in document["by_worker"])):
            faults.append("the slowest worker is not drawn")
    return faults


def check_composed(document, text, found):
    faults = []
    if f'{document["step_time_s"]:.4f} s' not in text:
        faults.append("the step is not there")
    stages = [stage for pipeline in document["plans"][0]["pipelines"] for stage in pipeline["stages"]]
    if text.count("<td class=\"w\">") < len(stages):
        faults.append("a stage is missing")
    if found and not all(close(a, stage["compute_s"]) for a, stage in zip(found["charts"]["stage-chart"]["sums"][0], stages)):
        faults.append("a stage is not drawn")
    return faults


def check_batch(document, text, found):
    faults = []
    batch = document["batch"]
    for part, passes in (("prefill", 1), ("decode", batch["osl"] - 1)):
        for name, seconds in batch[part].items():
            if seconds > 0 and f'<td class="n">{seconds / passes * 1e3:.3f} ms</td>' not in text:
                faults.append(f"{name} of {part} is not in its table")
    return faults


def check_profile(document, text, found):
    counts, names = document["counts"], page_json(text, "more")["names"]
    cards = [counts["planned"], counts["held"], counts["skipped"] + counts["refused"]]
    faults = [f"{n} is in no card" for n in cards if f'<p class="value">{n:,}</p>' not in text]
    faults += [f"{name} is missing" for name in names if f'<td class="w">{html.escape(name)}</td>' not in text]
    faults += [f"the reason {x['why']} is missing" for x in document["items"] if x["why"] and html.escape(x["why"]) not in text]
    if found:
        drawn = [sum(bars) for bars in zip(*found["charts"]["shares"]["sums"])]
        if not all(close(a, 100 * x["predicted_share"]) for a, x in zip(drawn, document["items"])):
            faults.append("the shares are not drawn")
    return faults


def check_kernels(document, text, found):
    faults = [f"{name} is missing" for name in page_json(text, "more")["names"] if f'<td class="w">{html.escape(name)}</td>' not in text]
    if not document["rows"] and "no measurements yet" not in text:
        faults.append("it does not say that there are none")
    if found and document["rows"] and len(found["charts"]["kinds"]["sums"][0]) != len(document["rows"]):
        faults.append("a measurement is not drawn")
    return faults


def check_compare(document, text, found):
    faults = []
    for group in document["groups"]:
        for rival in ("fitted", "analytical"):
            if group[rival]["rows"] and f'<td class="n">{100 * group[rival]["median_ape"]:.1f}</td>' not in text:
                faults.append(f"the {rival} error of {group['op']} is not in the table")
    if found:
        fitted, analytical = found["charts"]["against-chart"]["sums"][:2]
        if not all(any(close(a, y) for y in fitted) for a in [r["fitted_s"] for r in document["rows"] if r["fitted_s"]]) \
                or not all(any(close(r["analytical_s"], y) for y in analytical) for r in document["rows"]):
            faults.append("a prediction is not drawn")
    return faults


def check_validate(document, text, found):
    faults = []
    for row in document.get("rows", document.get("groups", [])):
        if "predicted" in row and row["predicted"] is not None and f'<td class="n">{row["predicted"]:.6g}</td>' not in text:
            faults.append(f"a prediction is not in the table: {row['predicted']}")
        if row.get("error") is not None and f'<td class="n">{100 * row["error"]:.1f} %</td>' not in text:
            faults.append(f"an error is not in the table: {row['error']}")
    if "rows" in document and ("<svg" not in text or "Predicted against measured" not in text):
        faults.append("there is no plot")
    return faults


def recordings(folder):
    """Step times, operations of a recorded job, and a folder of measured layers."""
    lines = ["step,step_time_s"] + [f"{i},{1.5 + 0.02 * ((i * 7919) % 101 - 50) / 50 + (1.2 if i % 97 == 5 else 0):.6f}" for i in range(400)]
    (folder / "steps.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "nccl.csv").write_text("source,gpu,num_gpus,gpus_per_node,interconnect,collective,size_bytes,time_us\n"
                                     "<b>ours</b>,NVIDIA H100 80GB HBM3,8,8,NVLink4,all_reduce,1048576,25.4\n", encoding="utf-8")
    lines = ["step,dp_rank,pp_stage,op,start_us,dur_us"]
    for step in range(4):
        for rank in range(2):
            at = step * 10000
            for op in ("forward-compute", "backward-compute", "grads-reduce-scatter", "optimizer"):
                last = (3000 if rank == 1 and "compute" in op else 2000) + 10 * step
                lines.append(f"{step},{rank},0,{op},{at},{last}")
                at += last
    (folder / "ops.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "steady.yaml").write_text("title: t\nsource: s\ngpu_cv: 0\ngpu_outlier_share: 0\nnode_cv: 0\npass_cv: 0\nstep_cv: 0\n"
                                        "communication_cv: 0\ncongested_share: 0\nspike_share: 0\nmicrobatch_cv: 0\n", encoding="utf-8")
    (folder / "meta.yaml").write_text("dp_size: 2\npp_size: 1\n", encoding="utf-8")
    case = (pathlib.Path(__file__).resolve().parent / "golden" / "plan-profile" / "cmd").read_text(encoding="utf-8")
    subprocess.run(["sh", "-c", case.split("\nmaquette ")[0]], cwd=folder, check=True)
    (folder / "small.yaml").write_text("model: {base: gpt2, num_hidden_layers: 6}\nplan: {precision: fp16}\nworkload: {seq_length: 1024, global_batch_size: 32}\n"
                                       "cluster: {groups: [{device: v100-16gb, nodes: 2, devices_per_node: 2}, {device: t4, nodes: 2, devices_per_node: 2}]}\n", encoding="utf-8")
    pipelines = [{"microbatches": n, "stages": [{"first_layer": first, "layers": layers, "replicas": [{"device": device}]} for first, layers in cut]}
                 for n, device, cut in ((13, "v100-16gb", ((0, 8),)), (3, "t4", ((0, 5), (5, 3))))]
    (folder / "two.json").write_text(json.dumps({"mbs": 2, "gbs": 32, "pipelines": pipelines}), encoding="utf-8")


# What pages are made of beside their command.
BEFORE = ("train --model llama-3.1-8b --cluster h100-sxm:8 --gbs 64 --tp 2 --json --output tp2.json",
          "train --model llama-3.1-8b --cluster h100-sxm:8 --gbs 64 --tp 4 --pp 2 --json --output tp4.json",
          "plan examples/tangram/c1-8xv100-8xt4.yaml --json --output mixed128.json",
          "plan examples/tangram/c1-8xv100-8xt4.yaml --set workload.global_batch_size=64 --json --output mixed64.json",
          "serve plan --model llama-3.1-8b --cluster h100-sxm:1 --isl 500 --osl 100 --rate 5 --no-front --json --output rate5.json",
          "serve plan --model llama-3.1-8b --cluster h100-sxm:1 --isl 500 --osl 100 --rate 20 --slo 'ttft_p95<500ms' --no-front --json --output rate20.json",
          "profile import examples/kernels.csv --file kernels.db")

# name, command line, check
PAGES = [
    ("flagship", "train examples/llama3-405b-16k.yaml", check_train),
    ("not-fitting", "train --model llama-3-70b --cluster 'h100-sxm:8 x 2, rail 400G' --tp 4 --gbs 64 --seq 8192", check_train),
    ("one-gpu", "train --model gpt2 --cluster h100-sxm:1 --gbs 8 --seq 1024 --name '</script><script>alert(1)</script>&\"<b>'", check_train),
    ("grpo", "train --model llama-3.1-8b --cluster h100-sxm:8 --framework deepspeed --zero 3 --mbs 4 --gbs 128 --seq 2048 --set rl.method=grpo --set rl.osl=300 --set rl.length_spread=0.5", check_post_training),
    ("ppo", "train --model llama-3.2-1b --cluster h100-sxm:8 --framework huggingface --zero 0 --mbs 2 --gbs 64 --seq 1024 --set rl.method=ppo --set rl.reward_model=gpt2", check_post_training),
    ("dpo", "train --model llama-3.1-8b --cluster h100-sxm:8 --gbs 32 --seq 2048 --set rl.method=dpo", check_post_training),
    ("serve", "serve --model llama-3.1-8b --cluster h100-sxm:1 --isl 1000 --osl 200 --rate 6 --num-requests 300 --slo 'ttft_p95<500ms'", check_serve),
    ("serve-plan", "serve plan --model llama-3.1-8b --cluster h100-sxm:1 --isl 500 --osl 100 --rate 5 --slo 'ttft_p95<500ms' --space max-num-seqs=256 --space max-num-batched-tokens=2048", check_serve_plan),
    ("serve-vary", "serve --model llama-3.1-8b --cluster h100-sxm:2 --isl 500 --osl 50 --num-requests 60 --vary rate=2,4,8 --vary tp=1,2", check_serve_vary),
    ("plan", "plan --model llama-3.1-8b --cluster 'h100-sxm:8' --gbs 64 --seq 4096 --pareto memory --explain --space pp=1,2 --space vp=1,2 --tp 2", check_plan),
    ("vary", "plan --model gpt2 --cluster h100-sxm:8 --gbs 64 --seq 1024 --vary gpus=8,16 --vary gpu=h100-sxm,b200 --price 2", check_vary),
    ("mixed", "plan examples/tangram/c1-12xv100-4xt4.yaml --top 2", check_mixed),
    ("slices", "plan examples/tangram/c1-12xv100-4xt4.yaml --parallelizer examples/parallelizer/roofline.py --workers 2 --top 3", check_slices),
    ("predict", "plan small.yaml --predict two.json", check_predict),
    ("predict-not-fitting", "plan small.yaml --set plan.mbs=4 --set model.n_positions=16384 --seq 16384 --predict two.json", check_predict),
    ("replay", "replay examples/captured.mqt --slow rank:1=1.3x", check_replay),
    ("no-plan", "plan --model llama-3-8b --cluster h100-sxm:1 --gbs 8 --seq 8192 --tp 1", check_plan),
    ("risk-step", "risk --model llama-3.1-8b --cluster 'h100-sxm:8 x 2' --gbs 64 --seq 2048 --tp 2 --pp 2 --draws 1000", check_risk_step),
    ("risk-graph", "risk examples/captured.mqt --slow rank:1=1.2x --draws 300", check_risk_graph),
    ("risk-steady", "risk examples/captured.mqt --variation steady.yaml --draws 300", check_steady),
    ("risk-run", "risk --model llama-3.1-8b --cluster 'h100-sxm:8 x 2' --gbs 64 --seq 2048 --tp 2 --pp 2 --tokens 1T --replicas 1000 --failures llama3 --what-if checkpoint --start 2027-01-31", check_risk_run),
    ("graph", "graph examples/captured.mqt --check", check_graph),
    ("times", "graph examples/profiler-trace.json --times", check_graph),
    ("risk-fit", "risk fit steps.csv examples/profiler-trace.json --holdout half", check_risk_fit),
    ("risk-replay", "risk replay ops.csv --meta meta.yaml", check_risk_replay),
    ("composed", "plan --profile p --model toy --cluster 'fast:2 x 2 + slow:2 x 2' --gbs 16", check_composed),
    ("batch", "serve --model llama-3.1-8b --cluster h100-sxm:1 --batch 8 --isl 1000 --osl 100", check_batch),
    ("profile", "profile --model nemotron-h-8b --cluster h100-sxm:8 --tp 4 --seq 4096 --gbs 64 --dry-run --file kernels.db", check_profile),
    ("kernels", "profile show kernels.db", check_kernels),
    ("compare", "profile compare kernels.db", check_compare),
    ("validate", "validate train examples/measured.csv --worst 1", check_validate),
    ("collectives", "validate collectives nccl.csv", check_validate),
    ("diff", "diff tp2.json tp4.json", check_diff),
    ("diff-mixed", "diff mixed128.json mixed64.json", check_diff),
    ("diff-serve-plan", "diff rate5.json rate20.json", check_diff),
    ("fleet", "serve --model llama-3.1-8b --cluster h100-sxm:8 --isl 500 --osl 100 --concurrency 64 --num-requests 400 --replicas 4 --router least-requests", check_serve),
]


def without(document, *keys):
    return {k: v for k, v in document.items() if k not in keys}


def check_file(scratch, name, command):
    """The page's text and document, and faults that need no browser."""
    faults = []
    out, err, status = scratch.run(f"maquette {command} --json --html {name}.html > {name}.json; s=$?; maquette {command} --html again.html > /dev/null; exit $s")
    file = scratch.path / f"{name}.html"
    if status > 1 or not file.exists():
        return None, None, [f"status {status}: {out}{err}"]
    raw = file.read_bytes()
    text = raw.decode("utf-8")
    if raw != (scratch.path / "again.html").read_bytes():
        faults.append("two runs write different bytes")
    if len(raw) >= MAX_BYTES:
        faults.append(f"{len(raw)} bytes")
    document = json.loads((scratch.path / f"{name}.json").read_text(encoding="utf-8"))
    if without(page_json(text, "report"), "origins", "diagnostics") != without(document, "origins", "diagnostics"):
        faults.append("the page's document is not that of --json")
    body = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.S)
    if re.search(r"(?:src|href|action)\s*=\s*[\"']?(?!data:,|#)\w", body) or "url(" in text.split("</style>")[0]:
        faults.append("the page names something outside of itself")
    if text.count("<script") != text.count("</script>") or "<b>" in body or re.search(r"\son\w+=", body):
        faults.append("a user's words are markup")
    return text, document, faults


def probe(folder, pages, width, theme):
    """What the pages say of themselves, by name, and what the console says."""
    frames = ""
    for name, text, _, _ in pages:
        copy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text, count=1).replace("</body>", PROBE + "</body>")
        (folder / f"{name}-{width}.html").write_text(copy, encoding="utf-8")
        frames += f'<iframe src="{name}-{width}.html#{name}" style="border:0;width:{width}px;height:900px"></iframe>'
    file = folder / f"frames-{width}.html"
    file.write_text(FRAMES % frames, encoding="utf-8")
    dom, said = browse(file, width + 100, theme)
    match = re.search(r'data-found="(.*?)"', dom)
    return json.loads(html.unescape(match.group(1))) if match else {}, said


def judge(found, width, theme):
    faults = []
    if not found:
        return [f"{width} px: the page does not draw"]
    if found["empty"] or found["blank"]:
        faults.append(f"{width} px: charts are missing: {found['empty']}, {found['blank']} blank")
    if found["wide"] > 0:
        faults.append(f"{width} px: {found['wide']} px wider than the window")
    dark = sum(int(x) for x in re.findall(r"\d+", found["paper"])[:3]) < 384
    if dark != (theme == "dark") or not found["turned"]:
        faults.append(f"{width} px: colours are not {theme}, or cannot be changed")
    return faults


def in_browser(tap, folder, pages):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first = [page for i, page in enumerate(pages) if page[3] not in [p[3] for p in pages[:i]]] # of each kind one, where there is room
        looks = [(width, theme, some, pool.submit(probe, folder, some, width, theme)) for (width, theme), some in zip(WIDTHS, (pages, first))]
        alone = pool.submit(browse, folder / f"{pages[0][0]}.html", 800, "light")
    for width, theme, some, look in looks:
        answers, said = look.result()
        tap.result(not said, f"console at {width} px", "\n".join(said))
        for name, text, document, check in some:
            found = answers.get(name)
            faults = judge(found, width, theme) + (check(document, text, found) if found else [])
            tap.result(not faults, f"{name}: browser at {width} px", "\n".join(faults))
    dom, said = alone.result()
    tap.result(not said and 'class="drawn ready"' in dom, "a page under its own rules", "\n".join(said))


def main():
    tap = Tap()
    with Scratch() as scratch:
        pages = []
        recordings(scratch.path)
        for command in BEFORE:
            scratch.run(f"maquette {command}")
        for name, command, check in PAGES:
            text, document, faults = check_file(scratch, name, command)
            faults += check(document, text, None) if document else []
            tap.result(not faults, f"{name}: file", "\n".join(faults))
            if document:
                pages.append((name, text, document, check))
        if BROWSER and pages:
            in_browser(tap, scratch.path, pages)
        else:
            tap.skip("browser", "no chromium")
        out, err, status = scratch.run("maquette train --model gpt2 --cluster h100-sxm:1 --gbs 8 --html missing/x.html")
        tap.result(status == 4 and "missing/x.html" in err and not out, "a file that cannot be written", out + err)
        out, err, status = scratch.run("maquette train --model gpt2 --cluster h100-sxm:1 --gbs 8 --html x.txt")
        tap.result(status == 2 and "--html" in err, "a file of another kind", out + err)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
