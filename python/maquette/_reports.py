# SPDX-License-Identifier: Apache-2.0
"""Commands as functions, and their reports as objects."""
from __future__ import annotations

import html
import os
import pathlib
import re
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from . import _call
from ._call import CommandLine, Diagnostic, Error, Job
from ._columns import Field, Record, Table, field, figures_html, wrap
from ._native import ffi, lib

if TYPE_CHECKING:
    from typing_extensions import Unpack
    from ._options import PlanOptions, RiskOptions, ServeOptions, ServePlanOptions, TrainOptions


# What a command writes beside its report is written once, when it is called.
_FILES = ("--write=", "--trace=", "--html=")


def _frame(page: str, title: str) -> str:
    text = html.escape(page).encode("ascii", "xmlcharrefreplace").decode()  # whatever the notebook is written in: scripts are known by their bytes
    return (f'<iframe srcdoc="{text}" sandbox="allow-scripts" title="{html.escape(title)}" '
            'style="display:block;width:100%;height:44rem;border:0;resize:vertical;overflow:auto"></iframe>')


def _is_of(page: str, members: Mapping[str, Any]) -> bool:
    """Whether the document that a page carries is this one. A page may say more; what was said on the way is not in it."""
    import json
    found = re.search(r'<script type="application/json" id="report">(.*?)</script>', page, re.S)
    document = json.loads(found.group(1)) if found else {}
    return all(document.get(name) == value for name, value in members.items()
               if value not in (None, []) and name not in ("diagnostics", "origins"))


class Report:
    """What a command found. Members of its document (docs/json.md) are attributes: numbers are SI, with the unit in the name."""

    #: of the document: "maquette.train/1"
    schema: str
    #: whether notebooks show the charts of `page()`, or tables alone; of all reports: `maquette.Report.charts = False`
    charts: bool = True

    def __init__(self, called: Any, diagnostics: List[Diagnostic], line: List[str], make_page: Optional[Callable[[], Optional[str]]] = None) -> None:
        self._called = called
        self._line = line
        self._parsed: Optional[Dict[str, Any]] = None
        self._make_page = make_page
        self._page: Optional[str] = None
        #: warnings and notes, in the order in which they were made
        self.diagnostics = tuple(diagnostics)

    @property
    def ok(self) -> bool:
        """False: the answer is no (the plan does not fit, a bound is missed, a promise is broken); the report says why."""
        return bool(self._called.status == lib.MAQ_OK)

    def text(self) -> str:
        """The report for people, as the command line prints it."""
        return _call.text_of(self._called.text)

    def page(self) -> Optional[str]:
        """The report as HTML, what `--html` writes: with charts, and without network. It is made when it is first asked for, by the same command once
        more. None: the command has no page, or does not find the same again, as where a file has changed or a search was ended."""
        if self._make_page is not None:
            make, self._make_page = self._make_page, None
            if self._members.get("complete") is not False:
                self._page = make()
            if self._page is not None and not _is_of(self._page, self._members):
                self._page = None
        return self._page

    def json_text(self) -> str:
        """The document as `--json` prints it."""
        return _call.text_of(self._called.json)

    def json(self) -> Dict[str, Any]:
        """The document, as new objects of Python."""
        import json
        parsed: Dict[str, Any] = json.loads(self.json_text())
        return parsed

    @property
    def _members(self) -> Dict[str, Any]:
        if self._parsed is None:
            self._parsed = self.json()
        return self._parsed

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        members = self._members
        if name not in members:
            raise AttributeError(f"a {type(self).__name__} report has no {name!r}; it has {', '.join(members)}")
        value = wrap(members[name])
        if isinstance(value, (Record, Table)):
            self.__dict__[name] = value
        return value

    def __dir__(self) -> List[str]:
        return [*super().__dir__(), *self._members]

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<maquette.{type(self).__name__}: {' '.join(self._line)}>"

    def _title(self) -> str:
        members = self._members
        job = members.get("job") or members.get("deployment") or members
        return str(job.get("name") or job.get("model") or members.get("schema"))

    def _tables(self) -> Iterable[Tuple[str, Any]]:
        """What a notebook shows below the figures."""
        return [(name, self.__getattr__(name)) for name, value in self._members.items()
                if isinstance(value, list) and value and isinstance(value[0], dict) and name != "diagnostics"][:1]

    def _repr_html_(self) -> str:
        """The page in a frame of its own, whose scripts reach nothing else, or tables; below it the report as text."""
        try:
            page = self.page() if self.charts else None
        except (Error, OSError):  # a file that is not there any more
            page = None
        notes = "".join(f"<li>{html.escape(d.severity)} {d.code}: {html.escape(d.message)}</li>" for d in self.diagnostics)
        shown = self._tables_html() if page is None else _frame(page, self._title())
        return (f"{shown}{f'<ul>{notes}</ul>' if notes else ''}"
                f"<details><summary>report</summary><pre>{html.escape(self.text())}</pre></details>")

    def _tables_html(self) -> str:
        skip = ("schema", "document", "megatron_arguments")
        figures = figures_html({name: value for name, value in self._members.items() if name not in skip})
        tables = "".join(f"<h5>{html.escape(name)}</h5>{table._repr_html_()}" for name, table in self._tables())
        return f"<h4>{html.escape(self._title())}</h4>{figures}{tables}"


def _stage_fields(result: Any, stage: Mapping[str, Any]) -> Dict[str, Field]:
    struct, first = "struct maq_stage_result", result.stages
    fields = {"parameters": field(struct, first, "params"), "peak_microbatches": field(struct, first, "peak_microbatches")}
    for kind in range(lib.MAQ_MEM_COUNT):
        fields[_call.text_of(lib.maq_mem_name(kind)) + "_bytes"] = field(struct, first, "bytes", kind)
    for name in ("allocated_bytes", "reserved_bytes", "total_bytes", "needed_bytes", "capacity_bytes", "busy_s"):
        fields[name] = field(struct, first, name)
    for bucket, name in enumerate(stage["breakdown"]):
        fields[name] = field(struct, first, "bucket_s", bucket)
    return fields


class Train(Report):
    """A training step: maquette.train/1."""

    job: Record
    fits: bool
    step_time_s: float
    step_time_low_s: float
    step_time_high_s: float
    memory_low: float
    memory_high: float
    fit_probability: float
    tokens_per_s: float
    tokens_per_s_per_device: float
    mfu: float
    hfu: float
    model_flop: float
    hardware_flop: float
    model_flop_per_s_per_device: float
    peak_flop_per_s: float
    critical_stage: int
    bubble_fraction: float
    worst_memory_stage: int
    advice: Optional[str]
    breakdown: Record
    operators: Table
    kinds: Table
    provenance: Record
    assumptions: List[str]

    @property
    def stages(self) -> Table:
        """A row for each pipeline stage; its columns are those of the C result."""
        if "stages" not in self.__dict__.setdefault("_kept", {}):
            rows, result = self._members["stages"], self._called.train
            self.__dict__["_kept"]["stages"] = Table(rows, fields=_stage_fields(result, rows[0]), owner=self._called)
        table: Table = self.__dict__["_kept"]["stages"]
        return table

    def _tables(self) -> Iterable[Tuple[str, Any]]:
        return [("stages", self.stages), ("operators", self.operators)]


class Plan(Report):
    """The best plans of a job: maquette.plan/1, or, over several node groups or with `vary`, `profile`, `parallelizer` or `predict`, that of
    what was asked for."""

    job: Record
    fits: bool
    complete: bool
    step_time_s: float
    lower_bound_s: Optional[float]
    gap: Optional[float]
    counts: Record
    space: Table
    document: Optional[str]
    megatron_arguments: Optional[str]

    @property
    def plans(self) -> Table:
        """The best plan of each combination of degrees, best first; with every key of a plan as a column."""
        if "plans" not in self.__dict__.setdefault("_kept", {}):
            rows, search = self._members.get("plans") or [], self._called.search
            fields = {}
            if search and search.n_plans == len(rows):
                fields = {"step_time_s": field("struct maq_search_plan", search.plans, "step_s"),
                          "needed_bytes": field("struct maq_search_plan", search.plans, "needed_bytes")}
            self.__dict__["_kept"]["plans"] = Table(rows, fields=fields, owner=self._called)
        table: Table = self.__dict__["_kept"]["plans"]
        return table

    def _tables(self) -> Iterable[Tuple[str, Any]]:
        return [("plans", self.plans)] if self._members.get("plans") else super()._tables()


def _request_table(called: Any) -> Table:
    result = called.served
    if not result or not result.served or not called.requests:
        return Table(n=0)
    requests = lib.maq_requests_get(called.requests)
    served, asked = "struct maq_served", "struct maq_request"
    fields = {name: field(served, result.served, name) for name in ("arrival_s", "scheduled_s", "first_s", "last_s")}
    fields["prompt_tokens"] = field(asked, requests.at, "prompt")
    fields["output_tokens"] = field(asked, requests.at, "output")
    fields["cached_tokens"] = field(served, result.served, "cached")
    fields["preemptions"] = field(served, result.served, "preemptions")
    fields["replica"] = field(served, result.served, "replica")
    return Table(n=min(result.n_requests, requests.n), fields=fields, owner=called)


class Serve(Report):
    """A deployment and what became of its requests: maquette.serve/1."""

    deployment: Record
    memory: Record
    throughput: Record
    latency: Record
    iterations: Record
    breakdown: Record

    @property
    def fits(self) -> bool:
        """Whether every GPU has the memory."""
        return bool(self._members["memory"]["fits"])

    @property
    def requests(self) -> Table:
        """A row for each request: when it came, was first scheduled, had its first and its last token. Columns are those of the C result;
        empty where there is none (one batch alone, a deployment that does not fit)."""
        if "requests" not in self.__dict__.setdefault("_kept", {}):
            self.__dict__["_kept"]["requests"] = _request_table(self._called)
        table: Table = self.__dict__["_kept"]["requests"]
        return table

    def _tables_html(self) -> str:
        parts = [part for part in ("throughput", "memory") if part in self._members]
        figures = "".join(f"<h5>{part}</h5>{figures_html(self._members[part])}" for part in parts)
        latency = self._members.get("latency")
        rows = Table([{"figure": name, **row} for name, row in latency.items()])._repr_html_() if latency else ""
        return f"<h4>{html.escape(self._title())}</h4>{rows}{figures}"


class ServePlan(Report):
    """The best deployment: maquette.serve.plan/1."""

    model: str
    carries: bool
    complete: bool
    best: Optional[Record]
    candidates: Table
    front: Table
    counts: Record

    @property
    def requests(self) -> Table:
        """Requests of the best deployment, simulated."""
        return _request_table(self._called)


class Risk(Report):
    """How long a step takes, or a run (with `tokens`), as distributions: maquette.risk.step/2, maquette.risk.run/2."""


class Fit(Report):
    """What was learnt of recorded times: maquette.risk.fit/1."""


class Replayed(Report):
    """A recorded job, run again: maquette.risk.replay/1."""


class Diff(Report):
    """What changed between two reports: maquette.diff/1."""

    same: bool
    settings: Table
    figures: Table
    tables: Table


class _Compared:
    """The texts of a comparison, where commands have their result."""

    def __init__(self, diff: Any, diag: Any) -> None:
        self.status = lib.MAQ_OK
        self.text = self.written(lib.maq_report_diff_text, diff, diag)
        self.json = self.written(lib.maq_report_diff_json, diff, diag)

    @staticmethod
    def written(write: Any, diff: Any, diag: Any) -> Any:
        out = ffi.new("char **")
        status = write(out, diff, ffi.NULL, diag)
        if status != lib.MAQ_OK:
            raise _call.error(status, diag)
        return ffi.gc(out[0], lib.free)


def _report(kind: Any, command: str, arguments: Iterable[Any], given: Mapping[str, Any], command_line: CommandLine = None,
            search: bool = False) -> Any:
    line, document = _call.words(command, arguments, given, command_line)
    run: Any = _call.call_search if search else _call.call
    called, diagnostics = run(line, document)

    def make_page() -> Optional[str]:
        end = line.index("--") if "--" in line else len(line)
        again = [word for word in line[:end] if not word.startswith(_FILES)] + line[end:]
        if document is None and "-" in line[:end]:  # standard input, which is read once
            return None
        owner, _ = run(again, document, page=True)  # of the page, until it is copied
        return _call.text_of(owner.page) or None

    return kind(called, diagnostics, line, make_page)


def train(job: Job = None, /, *, command_line: CommandLine = None, **options: Unpack[TrainOptions]) -> Train:
    """Predicts a training step. `job` is a file, or a document as a mapping or as text of several lines; options are those of `maquette train`, with `_` for `-`, and win
    over it. `command_line`: the arguments of a Megatron-LM script. A plan that does not fit is a result, whose `fits` is false.

    >>> train(model="llama-3.1-8b", cluster="h100-sxm:8", tp=2, gbs=64).fits
    True
    """
    report: Train = _report(Train, "train", [job], options, command_line)
    return report


def plan(job: Job = None, /, *, command_line: CommandLine = None, **options: Unpack[PlanOptions]) -> Plan:
    """Finds the best plan. Options are those of `maquette plan`; `space` and `vary` are mappings of keys to lists of values. Ctrl-C ends it."""
    report: Plan = _report(Plan, "plan", [job], options, command_line, search=True)
    return report


def serve(job: Job = None, /, *, command_line: CommandLine = None, **options: Unpack[ServeOptions]) -> Serve:
    """Predicts a serving deployment. Options are those of `maquette serve`, `vary` a mapping of options to lists of values; `command_line`: that of vLLM, SGLang or TensorRT-LLM."""
    report: Serve = _report(Serve, "serve", [job], options, command_line)
    return report


def serve_plan(job: Job = None, /, *, command_line: CommandLine = None, **options: Unpack[ServePlanOptions]) -> ServePlan:
    """Finds the best serving deployment. Options are those of `maquette serve plan`. Ctrl-C ends it."""
    report: ServePlan = _report(ServePlan, "serve plan", [job], options, command_line, search=True)
    return report


def risk(job: Job = None, /, *, command_line: CommandLine = None, **options: Unpack[RiskOptions]) -> Risk:
    """Predicts the distribution of a step, or, with `tokens`, when a run will be done. Options are those of `maquette risk`."""
    report: Risk = _report(Risk, "risk", [job], options, command_line)
    return report


def risk_fit(*files: Any, **options: Any) -> Fit:
    """Learns the law of recorded step times, and what kernels vary by, from files. Options are those of `maquette risk fit`."""
    report: Fit = _report(Fit, "risk", ["fit", *files], options)
    return report


def risk_replay(operations: Any, *, meta: Any, **options: Any) -> Replayed:
    """Runs a recorded job again: what it would take without stragglers, and which they are."""
    report: Replayed = _report(Replayed, "risk", ["replay", operations], {"meta": meta, **options})
    return report


def diff(before: Any, after: Any) -> Diff:
    """Compares two reports of one command: results of `train`, `plan`, `serve`, `risk`, `call("replay", ...)`, or files that `--json` wrote.

    >>> job = {"model": "llama-3.1-8b", "cluster": "h100-sxm:8", "workload": {"gbs": 64}}
    >>> diff(train(job, tp=2), train(job, tp=4)).figures[0].change > 0
    True
    """
    sides = (("before", before), ("after", after))
    if not any(isinstance(given, Report) for _, given in sides):
        report: Diff = _report(Diff, "diff", [before, after], {})
        return report
    held: List[Any] = []
    for name, given in sides:
        if isinstance(given, Report):
            label, text = name, given.json_text().encode("utf-8")
        else:
            label, text = os.fspath(given), pathlib.Path(given).read_bytes()
        held += [ffi.new("char[]", label.encode("utf-8", "surrogateescape")), ffi.new("char[]", text), len(text)]
    diag, out = _call.new_diag(), ffi.new("struct maq_diff **")
    status = lib.maq_diff_parse(out, held[0], {"ptr": held[1], "len": held[2]}, held[3], {"ptr": held[4], "len": held[5]}, diag)
    if status != lib.MAQ_OK:
        raise _call.error(status, diag)
    compared = ffi.gc(out[0], lib.maq_diff_free)
    return Diff(_Compared(compared, diag), _call.diagnostics(diag), ["diff", *(name for name, _ in sides)],
                lambda: _call.text_of(_Compared.written(lib.maq_report_diff_html, compared, diag)) or None)


def show(name: str) -> Report:
    """What the catalogue has: "models", "gpus", ..., or one of them by its name."""
    report: Report = _report(Report, "show", [name], {})
    return report


def call(command: str, *arguments: Any, command_line: CommandLine = None, **options: Any) -> Report:
    """Any other command that makes a report: "graph", "replay", "islands"."""
    report: Report = _report(Report, command, arguments, options, command_line)
    return report
