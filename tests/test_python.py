#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python package: the same answers as the command line, faults with their places, columns that are views, scans, memory, examples.

maq-test: long
"""
import difflib
import doctest
import gc
import html
import importlib.util
import json
import os
import pathlib
import pickle
import re
import signal
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import test_html  # noqa: E402
from cli_case import PROGRAM, ROOT, Tap  # noqa: E402

BUILT = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT") or ROOT / "build") / "python"
NUMPY = importlib.util.find_spec("numpy") is not None
PANDAS = NUMPY and importlib.util.find_spec("pandas") is not None
CHROMIUM = test_html.BROWSER
MYPY = importlib.util.find_spec("mypy") is not None
SMALL = {"model": "llama-3.1-8b", "cluster": "h100-sxm:8", "gbs": 64}
EXAMPLE = "examples/llama3-405b-16k.yaml"

# name, arguments, options, the same on the command line
SAME = [
    ("train", [], {**SMALL, "tp": 2}, "train --model llama-3.1-8b --cluster h100-sxm:8 --gbs 64 --tp 2"),
    ("train", [EXAMPLE], {"set": {"workload.seq_length": 4096}, "explain": True, "engine": "static"},
     f"train {EXAMPLE} --set workload.seq_length=4096 --explain --engine static"),
    ("train", [], {"model": "llama-3-70b", "cluster": "h100-sxm:8 x 2, rail 400G", "tp": 4, "gbs": 64, "seq": 8192},
     "train --model llama-3-70b --cluster 'h100-sxm:8 x 2, rail 400G' --tp 4 --gbs 64 --seq 8192"),
    ("train", [], {"model": "mixtral-8x7b", "cluster": "h100-sxm:8", "ep": 8, "gbs": 64, "seq": 4096, "recompute": "selective",
                   "recompute_modules": ["core_attn", "moe_act"], "sequence_parallel": False, "price": 2.5},
     "train --model mixtral-8x7b --cluster h100-sxm:8 --ep 8 --gbs 64 --seq 4096 --recompute selective --recompute-modules core_attn,moe_act "
     "--sequence-parallel false --price 2.5"),
    ("train", [], {"cluster": "h100-sxm:8", "command_line": "pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 32 "
                   "--seq-length 2048 --max-position-embeddings 2048 --vocab-size 50304 --micro-batch-size 4 --global-batch-size 128 --bf16"},
     "train --cluster h100-sxm:8 -- pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 32 --seq-length 2048 "
     "--max-position-embeddings 2048 --vocab-size 50304 --micro-batch-size 4 --global-batch-size 128 --bf16"),
    ("plan", [], {**SMALL, "seq": 4096, "space": {"tp": [1, 2, 4]}, "top": 3, "explain": True},
     "plan --model llama-3.1-8b --cluster h100-sxm:8 --gbs 64 --seq 4096 --space tp=1,2,4 --top 3 --explain"),
    ("plan", [], {**SMALL, "seq": 4096, "vary": {"gpus": [8, 16], "gpu": ["h100-sxm", "b200"]}},
     "plan --model llama-3.1-8b --cluster h100-sxm:8 --gbs 64 --seq 4096 --vary gpus=8,16 --vary gpu=h100-sxm,b200"),
    ("serve", [], {"model": "llama-3.1-8b", "cluster": "h100-sxm:1", "rate": 8, "num_requests": 200, "slo": "ttft_p95<500ms"},
     "serve --model llama-3.1-8b --cluster h100-sxm:1 --rate 8 --num-requests 200 --slo 'ttft_p95<500ms'"),
    ("serve", [], {"model": "llama-3.1-8b", "cluster": "h100-sxm:1", "batch": 32, "isl": 1024, "osl": 128},
     "serve --model llama-3.1-8b --cluster h100-sxm:1 --batch 32 --isl 1024 --osl 128"),
    ("serve_plan", [], {"model": "llama-3.1-8b", "cluster": "h100-sxm:1", "slo": "tpot_mean<40ms", "no_pools": True, "num_requests": 30, "isl": 256, "osl": 16},
     "serve plan --model llama-3.1-8b --cluster h100-sxm:1 --slo 'tpot_mean<40ms' --no-pools --num-requests 30 --isl 256 --osl 16"),
    ("risk", [], {**SMALL, "tp": 2, "draws": 1000, "slow": ["rank:3=1.2x"]},
     "risk --model llama-3.1-8b --cluster h100-sxm:8 --gbs 64 --tp 2 --draws 1000 --slow rank:3=1.2x"),
    ("risk", [EXAMPLE], {"tokens": "1T", "failures": "llama3", "spares": 16, "replicas": 200, "promise": "60d@95%"},
     f"risk {EXAMPLE} --tokens 1T --failures llama3 --spares 16 --replicas 200 --promise 60d@95%"),
    ("show", ["schedules"], {}, "show schedules"),
    ("call", ["graph", "examples/profiler-trace.json"], {"times": True}, "graph examples/profiler-trace.json --times"),
]


def command_line(words, *, text):
    before, options, behind = words.partition(" --")
    done = subprocess.run(f"{PROGRAM} {before}{'' if text else ' --json'}{options}{behind}", shell=True, cwd=ROOT, capture_output=True, text=True,
                          env={**os.environ, "LC_ALL": "C.UTF-8"}, check=False)
    return done.stdout, done.returncode


def same(maquette, case):
    name, arguments, options, words = case
    report = getattr(maquette, name)(*arguments, **options)
    text, status = command_line(words, text=True)
    document, _ = command_line(words, text=False)
    for ours, theirs in ((report.json_text(), document), (report.text(), text)):
        ours, theirs = (re.sub(r'"commit": "[^"]*"', "", one) for one in (ours, theirs))  # of builds that were made apart
        assert ours == theirs, "\n".join(list(difflib.unified_diff(theirs.splitlines(), ours.splitlines(), "shell", "python", lineterm="", n=0))[:20])
    assert report.ok == (status == 0), status
    assert {**report.json(), "maquette": 0} == {**json.loads(document), "maquette": 0}
    tables = report._tables_html()
    assert "<table>" in tables and tables.count("<table>") == tables.count("</table>")
    assert report.schema == json.loads(document)["schema"] and "schema" in dir(report)


def documents(maquette):
    job = {"model": "llama-3.1-8b", "cluster": "h100-sxm:8", "plan": {"tp": 2, "recompute": "selective"}, "workload": {"gbs": 64}}
    one = maquette.train(job)
    two = maquette.train(**SMALL, tp=2, recompute="selective")
    assert one.json() == two.json()
    assert one.job.plan.tensor_model_parallel_size == 2 and one.job["plan"]["recompute_granularity"] == "selective"
    assert maquette.train(job, tp=4).job.plan.tensor_model_parallel_size == 4
    assert maquette.train({**job, "model": {"base": "llama-3.1-8b", "num_hidden_layers": 2}}).job.model.layers == 2
    assert "Infinity" not in one.json_text()


def comparisons(maquette):
    two, four = maquette.train(**SMALL, tp=2), maquette.train(**SMALL, tp=4)
    with tempfile.TemporaryDirectory() as folder:
        files = [os.path.join(folder, name) for name in ("two.json", "four.json")]
        for file, report in zip(files, (two, four)):
            pathlib.Path(file).write_text(report.json_text(), encoding="utf-8")
        same(maquette, ("diff", files, {}, " ".join(["diff", *files])))
        of_files, mixed = maquette.diff(*files), maquette.diff(two, files[1])
    ours = maquette.diff(two, four)
    for name in ("settings", "figures", "tables", "of"):
        assert ours.json()[name] == of_files.json()[name] == mixed.json()[name], name
    assert ours.files.before == "before" and "step" in ours.text() and ours.ok and not ours.same
    assert maquette.diff(two, two).same
    try:
        maquette.diff(two, maquette.serve(model="gpt2", cluster="h100-sxm:1", rate=1, num_requests=5, isl=16, osl=4))
        raise AssertionError("nothing was raised")
    except maquette.InputError as fault:
        assert fault.diagnostics[0].code == "MAQ1893" and fault.diagnostics[0].file == "after", fault.diagnostics


def charts(maquette):
    """A notebook shows the page of --html, whole, in a frame; or tables, where there is no page or it would be of something else."""
    with tempfile.TemporaryDirectory() as folder:
        file, job = (os.path.join(folder, name) for name in ("step.html", "job.yaml"))
        pathlib.Path(job).write_text("model: llama-3.1-8b\ncluster: h100-sxm:8\nplan: {tp: 2}\nworkload: {gbs: 64}\n", encoding="utf-8")
        trace = os.path.join(folder, "step.json")
        step = maquette.train(job, trace=trace, tp=4)
        os.unlink(trace)
        subprocess.run([PROGRAM, "train", job, "--tp", "4", "--html", file], cwd=ROOT, capture_output=True, check=True)
        same_page = [re.sub(r'"commit": ?"[^"]*"|\([0-9a-f]+(-dirty)?\)', "", one) for one in (step.page(), pathlib.Path(file).read_text(encoding="utf-8"))]
        assert same_page[0] == same_page[1]
        assert not os.path.exists(trace)  # what is looked at writes nothing
        shown = step._repr_html_()
        frame = re.search(r'<iframe srcdoc="([^"]*)" sandbox="allow-scripts"', shown)
        assert frame and html.unescape(frame.group(1)) == step.page() and "<summary>report</summary>" in shown
        maquette.Report.charts = False
        try:
            assert "<iframe" not in step._repr_html_() and "<table>" in step._repr_html_()
        finally:
            maquette.Report.charts = True
        two, gone = maquette.train(job), maquette.train(job)
        change = maquette.diff(two, step)
        assert "maquette.diff/1" in change.page() and "<iframe" in change._repr_html_()
        pathlib.Path(job).write_text("model: llama-3.1-8b\ncluster: h100-sxm:8\nplan: {tp: 8}\nworkload: {gbs: 64}\n", encoding="utf-8")
        assert two.page() is None and "<iframe" not in two._repr_html_()
        os.unlink(job)
        assert "<iframe" not in gone._repr_html_()
    assert maquette.show("gpus").page() is None
    if CHROMIUM:
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "notebook.html").write_text("<!DOCTYPE html>" + step._repr_html_(), encoding="utf-8")
            dom, said = test_html.browse(pathlib.Path(folder, "notebook.html"), 1000, "light")
            assert "<iframe" in dom and not said, said  # no script or style of it is refused


def faults(maquette):
    def fails(kind, call, code, **expected):
        try:
            call()
        except maquette.Error as fault:
            assert type(fault) is kind, type(fault)
            first = fault.diagnostics[0]
            assert first.code == code, first
            for name, value in expected.items():
                got = getattr(first, name)
                assert value in got if isinstance(value, str) and got else value == got, (name, got)
            again = pickle.loads(pickle.dumps(fault))
            assert again.diagnostics == fault.diagnostics and str(again) == str(fault)
            assert first.message in str(fault)
            return fault
        raise AssertionError("nothing was raised")

    fails(maquette.UsageError, lambda: maquette.train(**SMALL, tpp=2), "MAQ1801", hint="--tp", file=None)
    fails(maquette.UsageError, lambda: maquette.train(**SMALL, engine="quick"), "MAQ1802", hint="fast")
    fails(maquette.UsageError, lambda: maquette.train(**SMALL, json=True), "MAQ1801")
    fails(maquette.UsageError, lambda: maquette.train(), "MAQ1803")
    fails(maquette.InputError, lambda: maquette.train({"model": "llama-3.1-8b", "cluster": "h100-sxm:8", "plan": {"tp": 3}}), "MAQ1300",
          file="job", line=1, column=67)
    fails(maquette.InputError, lambda: maquette.train({"model": "llama-3.1-8b", "cluster": "h100-sxm:8", "plan": {"tpp": 3}}), "MAQ1021",
          hint="tp", line=1)
    many = fails(maquette.InputError, lambda: maquette.train({"model": "llama-9", "cluster": "h999:8", "plan": {"tpp": 3}}), "MAQ1101", line=1)
    assert len(many.diagnostics) >= 3 and many.status == "bad input" and many.exit_status == 3
    fails(maquette.Error, lambda: maquette.train("missing.yaml"), "MAQ1030")
    fails(maquette.UsageError, lambda: maquette.call("trian"), "MAQ1800", hint="train")
    fails(maquette.UsageError, lambda: maquette.call("run", "true"), "MAQ1800")
    fails(maquette.Error, lambda: maquette.risk(model="llama-3.1-70b", cluster="h100-sxm:8", gbs=8), "MAQ1802")
    for wrong in (object(), b"tp"):
        try:
            maquette.train(**SMALL, tp=wrong)
            raise AssertionError("nothing was raised")
        except (TypeError, maquette.Error):
            pass
    step = maquette.train(**SMALL)
    for name in ("step_time", "_nothing"):
        assert not hasattr(step, name)
    assert maquette.train(model="gpt2", cluster="h100:64", seq=2048, gbs=64).diagnostics[0].code == "MAQ1218"


def close(a, b):
    """Documents have 12 digits, and whole bytes."""
    return abs(a - b) <= max(1e-10 * max(abs(a), abs(b)), 0.5 if abs(b) > 1e4 else 0)


def columns(maquette):
    import numpy
    step = maquette.train(EXAMPLE)
    stages = step.stages
    for i, row in enumerate(step.json()["stages"]):
        flat = {**row, **row["memory"], **row["breakdown"]}
        for name in stages.columns:
            assert close(float(stages[name][i]), flat[name]), (name, i)
    needed = stages.needed_bytes
    assert isinstance(needed, numpy.ndarray) and not needed.flags.writeable and needed.dtype == numpy.float64
    assert numpy.shares_memory(needed, maquette.Table.__getitem__(step.stages, "needed_bytes"))
    fields = {name for name, column in ((n, stages[n]) for n in stages.columns) if column.base is not None}
    assert {"needed_bytes", "weights_bytes", "bubble_s", "parameters"} <= fields, fields
    before = needed.copy()
    del step, stages
    gc.collect()
    for _ in range(20):
        maquette.train(**SMALL)
    assert (needed == before).all()
    operators = maquette.train(**SMALL).operators
    assert operators.operator[0] == operators[0].operator and operators.time_s.dtype == numpy.float64

    plan = maquette.plan(**SMALL, seq=4096)
    assert plan.plans.tensor_model_parallel_size[0] == plan.plans[0].plan.tensor_model_parallel_size
    assert all(close(a, b["step_time_s"]) for a, b in zip(plan.plans.step_time_s, plan.json()["plans"]))
    assert plan.plans.step_time_s.base is not None and plan.plans.step_time_s.strides[0] > 8

    served = maquette.serve(model="llama-3.1-8b", cluster="h100-sxm:1", rate=8, num_requests=300)
    requests = served.requests
    assert len(requests) == 300 and requests.first_s.strides[0] > 8
    assert close(float((requests.first_s - requests.arrival_s).mean()), served.latency.ttft_s.mean)
    assert close(float((requests.last_s - requests.arrival_s).mean()), served.latency.e2el_s["mean"])
    assert requests.prompt_tokens.tolist() == [1024] * 300 and requests[3].output_tokens == 128
    assert len(maquette.serve(model="llama-3.1-8b", cluster="h100-sxm:1", batch=8).requests) == 0
    assert len(maquette.serve(model="llama-3.1-70b", cluster="h100-sxm:1", rate=1).requests) == 0
    if PANDAS:
        frame = requests.to_pandas()
        assert numpy.shares_memory(frame["first_s"].to_numpy(), requests.first_s) and len(frame) == 300
    for table in (requests, operators, plan.plans):
        assert table._repr_html_().startswith("<table>") and len(table.to_dict()) == len(table.columns)


def scans(maquette):
    import numpy
    job = {**SMALL, "seq": 4096}
    scan = maquette.sweep(**job, tp=[1, 2, 3, 8], recompute=["none", "full"], zero=range(4))
    assert len(scan) == 32 and scan.columns[:3] == ("tp", "recompute", "zero")
    for i, row in enumerate(scan):
        values = scan.values(i)
        assert values == {name: row[name] for name in values}
        if not row.possible:
            assert values["tp"] == 3 and scan.why(i)[0].code == "MAQ1300" and row.step_time_s == 0
            continue
        step = scan.train(i)
        exact = float(step.stages.needed_bytes.max())
        assert close(row.step_time_s, step.step_time_s) and row.fits == step.fits and close(row.needed_bytes, exact) and not scan.why(i)
    best = scan.best()
    assert best.step_time_s == scan.step_time_s[scan.fits].min() and scan.tp.dtype == numpy.int64
    listed = maquette.sweep(**job, plans=[scan.values(i) for i in range(len(scan))])
    for name in scan.columns:
        assert (listed[name] == scan[name]).all(), name
    assert maquette.sweep(**job, tp=2)[0].step_time_s == scan.step_time_s[8 + 1]
    assert len(maquette.sweep(**job, tp=numpy.array([1, 2]))) == 2 and len(maquette.sweep(**job, tp=[])) == 0
    assert maquette.sweep(**job, tp=[]).best() is None
    column = scan.step_time_s
    before = column.copy()
    del scan
    gc.collect()
    assert (column == before).all()
    for axes, code in (({"tpp": [1, 2]}, "MAQ1021"), ({"seq": [1, 2]}, "MAQ1021"), ({"recompute": ["sometimes"]}, "MAQ1026")):
        try:
            maquette.sweep(**{**job, **axes})
            raise AssertionError(f"{axes}: nothing was raised")
        except maquette.Error as fault:
            assert fault.diagnostics[0].code == code, fault.diagnostics
    try:
        maquette.sweep(**job, tp=[1], plans=[{"pp": 2}])
        raise AssertionError("nothing was raised")
    except TypeError:
        pass


def many_threads(maquette):
    expected = maquette.train(EXAMPLE).json_text()
    got = []
    workers = [threading.Thread(target=lambda: got.extend(maquette.train(EXAMPLE).json_text() for _ in range(10))) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert got == [expected] * 40


def others_go_on(maquette):
    """While a scan runs, this thread counts: with the GIL held it could not."""
    job = {"model": "llama-3.1-405b", "cluster": "h100-sxm:8 x 2048, rail 400G", "gbs": 16384, "seq": 8192}
    axes = {"tp": [1, 2, 4, 8], "pp": [1, 2, 4, 8, 16], "vp": [1, 2, 4], "mbs": [1, 2, 4], "recompute": ["none", "full"], "zero": [0, 1, 3],
            "tp_comm_overlap": [True, False], "cp": [1, 2, 4]}
    done, counted, rows = threading.Event(), 0, []

    def work():
        try:
            rows.append(len(maquette.sweep(**job, **axes)))
        finally:
            done.set()

    worker = threading.Thread(target=work)
    worker.start()
    while not done.wait(0.0002):  # a scan may be over in 20 ms
        counted += 1
    worker.join()
    assert rows == [6480] and counted > 20, (rows, counted)


def interrupts(maquette):
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        maquette.plan(model="llama-3.1-405b", cluster="h100-sxm:8 x 2048, rail 400G", gbs=2048, seq=8192, full=True)
        return "the search was done before"
    except KeyboardInterrupt:
        return None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def resident():
    return int(pathlib.Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def no_leak(maquette):
    def once():
        maquette.train(**SMALL, tp=2).step_time_s
        try:
            maquette.train({"model": "llama-3.1-8b", "cluster": "h100-sxm:8", "plan": {"tp": 3}})
        except maquette.Error:
            pass
        scan = maquette.sweep(**SMALL, seq=4096, tp=[1, 2])
        if NUMPY:
            scan.best()
        maquette.serve(model="llama-3.1-8b", cluster="h100-sxm:1", rate=8, num_requests=20).latency

    for _ in range(50):
        once()
    gc.collect()
    begin = resident()
    for _ in range(250):
        once()
    gc.collect()
    assert resident() - begin < 8 << 20, f"{(resident() - begin) / 2**20:.1f} MiB more after 1,000 calls"


ALONE = """
import sys
sys.modules["numpy"] = sys.modules["pandas"] = None
import maquette
step = maquette.train(model="llama-3.1-8b", cluster="h100-sxm:8", gbs=64, tp=2)
assert step.stages[0].memory.needed_bytes > 0 and step.fits and step.operators[0].operator
scan = maquette.sweep(model="llama-3.1-8b", cluster="h100-sxm:8", gbs=64, tp=[1, 2])
assert scan.values(1) == {"tp": 2} and len(scan) == 2
try:
    step.stages.needed_bytes
except ImportError as fault:
    assert "numpy" in str(fault)
else:
    sys.exit("no ImportError")
assert "numpy" not in [name for name, module in sys.modules.items() if module]
"""


def without_numpy(_maquette):
    done = subprocess.run([sys.executable, "-c", ALONE], env={**os.environ, "PYTHONPATH": str(BUILT)}, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stdout and not done.stderr, done.stdout + done.stderr


def hints(maquette):
    """The members that a class declares are those of its documents."""
    for kind, report, optional in (
            (maquette.Train, maquette.train(**SMALL), {"schema", "maquette", "stages"}),
            (maquette.Plan, maquette.plan(**SMALL, seq=4096), set()),
            (maquette.Serve, maquette.serve(model="llama-3.1-8b", cluster="h100-sxm:1", rate=8, num_requests=20), set()),
            (maquette.ServePlan, maquette.serve_plan(model="llama-3.1-8b", cluster="h100-sxm:1", no_pools=True, num_requests=30, isl=256, osl=16), set())):
        declared, members = set(kind.__annotations__), set(report.json())
        assert declared <= members, declared - members
        if optional:
            assert members - optional <= declared, members - optional - declared
        for name in declared:
            getattr(report, name)
    options = {option.name: option for option in maquette.options("train")}
    assert options["tensor_model_parallel_size"].aliases == ("tp",) and options["engine"].words == ("fast", "static", "dynamic")
    assert options["explain"].flag and options["set"].mapping and "json" not in options


def keywords(_maquette):
    """What type checkers know of options is what the program takes."""
    done = subprocess.run([sys.executable, ROOT / "tools" / "pages" / "python_options.py", "--check"], env={**os.environ, "PYTHONPATH": str(BUILT)},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


WRONG = """
import maquette
maquette.train(model="llama-3.1-8b", cluster="h100-sxm:8", tpp=2)
maquette.train(model="llama-3.1-8b", cluster="h100-sxm:8", engine="quick")
step: str = maquette.train(model="llama-3.1-8b", cluster="h100-sxm:8", tp=2, sequence_parallel=True, zero=1, set={"plan.pp": 1}).step_time_s
maquette.plan(model="llama-3.1-8b", cluster="h100-sxm:8", gbs=64, space={"tp": [1, 2]}, free=True, class_="mixed")
"""


def types(_maquette):
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", os.devnull], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "wrong.py"
        file.write_text(WRONG, encoding="utf-8")
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file=", "--cache-dir", os.devnull, file], cwd=folder, capture_output=True,
                              env={**os.environ, "MYPYPATH": str(ROOT / "python")}, text=True, check=False)
    found = re.findall(r"wrong.py:(\d): error", done.stdout)
    assert found == ["3", "4", "5"], done.stdout + done.stderr


def page(maquette, path):
    """The examples of a page, one after another."""
    text = "\n".join(block.group(1) for block in re.finditer(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S) if ">>>" in block.group(1))
    test = doctest.DocTestParser().get_doctest(text, {"maquette": maquette}, path.name, str(path), 0)
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(test, out=said.append)
    assert runner.failures == 0 and len(test.examples) > 5, "".join(said)


def main():
    tap = Tap()
    if not list((BUILT / "maquette").glob("_native.*.so")):
        tap.skip("the Python package", "it was not built: cffi or the headers of Python are missing")
        return tap.done()
    sys.path.insert(0, str(BUILT))
    os.chdir(ROOT)
    import maquette  # noqa: PLC0415

    def run(name, function, *arguments, needs=True, why=""):
        if not needs:
            tap.skip(name, why)
            return
        try:
            skipped = function(maquette, *arguments)
        except Exception as fault:  # a test that fails says why
            import traceback
            tap.result(False, name, traceback.format_exc() + str(fault))
            return
        if skipped:
            tap.skip(name, skipped)
        else:
            tap.result(True, name)

    for case in SAME:
        run(f"the same as maquette {case[3][:90]}", same, case)
    run("documents as mappings", documents)
    run("two results side by side", comparisons)
    run("charts of notebooks", charts)
    run("faults have their places", faults)
    run("columns are views", columns, needs=NUMPY, why="NumPy is not installed")
    run("scans over plans", scans, needs=NUMPY, why="NumPy is not installed")
    run("many threads", many_threads)
    run("other threads go on during a scan", others_go_on)
    run("Ctrl-C ends a search", interrupts)
    run("memory does not grow", no_leak)
    run("without NumPy, and without a word printed", without_numpy)
    run("declared members", hints)
    run("keywords that type checkers know", keywords)
    run("types", types, needs=MYPY, why="mypy is not installed")
    run("examples of docs/python.md", page, ROOT / "docs" / "python.md", needs=PANDAS, why="pandas is not installed")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
