# SPDX-License-Identifier: Apache-2.0
"""Scans over plans: step time and memory of thousands in one call, without the GIL."""
from __future__ import annotations

from typing import Any, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

from . import _call
from ._call import Job
from ._columns import Record, Table, _array, _numpy, field
from ._native import ffi, lib
from ._reports import Train, train


class Sweep(Table):
    """A row for each plan: the values of its axes, and

    `possible`       it goes together with the model and the cluster
    `fits`           and with the memory
    `step_time_s`    one training step; the same as `train` says; 0 where it is not possible
    `needed_bytes`   of the fullest GPU at its peak: what decides whether it fits
    `wait_s`         of passes, for the host and data parallelism
    `tail_s`         behind the computing of the last pass
    """

    def __init__(self, job: Any, axes: Mapping[str, Sequence[Any]], plans: Optional[Sequence[Mapping[str, Any]]], asked: Tuple[Job, Dict[str, Any]]) -> None:
        diag = _call.new_diag()
        self._job, self._asked = job, asked
        self._axes = {name: list(values) for name, values in axes.items()}
        self._given = [dict(one) for one in plans] if plans is not None else None
        if self._given is None:
            n, self._c_plans = _grid(job, self._axes, diag)
        else:
            n = len(self._given)
            self._c_plans = ffi.new("struct maq_plan[]", max(n, 1))
            for i, one in enumerate(self._given):
                _grid(job, {name: [value] for name, value in one.items()}, diag, self._c_plans + i)
        self._quick = ffi.new("struct maq_train_quick[]", max(n, 1))
        out = ffi.new("struct maq_train_sweep **")
        status = lib.maq_train_sweep_new(out, lib.maq_job_get(job.job), diag)
        if status != lib.MAQ_OK:
            raise _call.error(status, diag)
        self._sweep = ffi.gc(out[0], lib.maq_train_sweep_free)
        status = lib.maq_train_sweep_eval(self._sweep, self._quick, self._c_plans, n)
        if status != lib.MAQ_OK:
            raise _call.error(status, diag)
        struct = "struct maq_train_quick"
        fields = {name: field(struct, self._quick, name) for name in ("possible", "fits", "needed_bytes", "wait_s", "tail_s")}
        fields["step_time_s"] = field(struct, self._quick, "step_s")
        names = self._axes if self._given is None else dict.fromkeys(name for one in self._given for name in one)
        super().__init__(n=n, fields=fields, made={name: self._maker(name) for name in names}, owner=self._quick)

    def _maker(self, name: str) -> Any:
        return lambda: self._values(name)

    def _values(self, name: str) -> Any:
        numpy = _numpy()
        if self._given is not None:
            return _array(numpy, [one.get(name) for one in self._given])
        names, inner = list(self._axes), 1
        for later in names[names.index(name) + 1:]:
            inner *= len(self._axes[later])
        values = _array(numpy, self._axes[name])
        column = numpy.repeat(values, inner)
        return numpy.tile(column, self._n // max(len(column), 1))

    def values(self, i: int) -> Dict[str, Any]:
        """What the axes of plan `i` are, as options of `train`."""
        at = range(self._n)[i]
        if self._given is not None:
            return dict(self._given[at])
        found = {}
        for name in reversed(list(self._axes)):
            at, value = divmod(at, len(self._axes[name]))
            found[name] = self._axes[name][value]
        return dict(reversed(list(found.items())))

    def best(self) -> Optional[Record]:
        """The fastest plan that fits; None where none does."""
        i = self.best_index()
        return None if i is None else self[i]

    def best_index(self) -> Optional[int]:
        numpy = _numpy()
        if not self._n or not self["fits"].any():
            return None
        return int(numpy.where(self["fits"], self["step_time_s"], numpy.inf).argmin())

    def why(self, i: int) -> List[_call.Diagnostic]:
        """Why plan `i` is not possible; empty where it is."""
        diag = _call.new_diag()
        lib.maq_train_sweep_check(self._sweep, self._c_plans + range(self._n)[i], ffi.NULL, diag)
        return _call.diagnostics(diag)

    def train(self, i: int) -> Train:
        """The whole prediction of plan `i`."""
        job, options = self._asked
        return train(job, **{**options, **{name: value for name, value in self.values(i).items() if value is not None}})


def _grid(job: Any, axes: Mapping[str, Sequence[Any]], diag: Any, into: Any = None) -> Tuple[int, Any]:
    held: List[Any] = []

    def text(value: str) -> Any:
        held.append(ffi.new("char[]", value.encode()))
        return held[-1]

    c_axes = ffi.new("struct maq_plan_axis[]", max(len(axes), 1))
    for axis, (name, values) in zip(c_axes, axes.items()):
        pointers = ffi.new("char *[]", [text(_call.value_text(value)) for value in values])
        held.append(pointers)
        axis.key, axis.values, axis.n = text(name.rstrip("_")), pointers, len(values)
    n = ffi.new("size_t *")
    status = lib.maq_plan_grid(ffi.NULL, n, job.job, c_axes, len(axes), diag)
    if status == lib.MAQ_OK:
        into = ffi.new("struct maq_plan[]", max(n[0], 1)) if into is None else into
        status = lib.maq_plan_grid(into, ffi.NULL, job.job, c_axes, len(axes), diag)
    if status != lib.MAQ_OK:
        raise _call.error(status, diag)
    return n[0], into


def _is_axis(value: Any) -> bool:
    return isinstance(value, (list, tuple, range, set, frozenset)) or getattr(value, "ndim", 0) == 1


def sweep(job: Job = None, /, *, plans: Optional[Iterable[Mapping[str, Any]]] = None, **options: Any) -> Sweep:
    """Predicts many plans of one job. Options are those of `train`; those that are lists are axes, and every combination of their values is a
    plan, the last one changing fastest. Axes are keys of the plan. With `plans` instead: one for each mapping of keys to values.

    >>> scan = sweep(model="llama-3.1-8b", cluster="h100-sxm:8", gbs=64, seq=4096, tp=[1, 2, 4], recompute=["none", "full"])
    >>> len(scan)
    6
    """
    axes = {name: list(value.tolist() if hasattr(value, "tolist") else value) for name, value in options.items() if _is_axis(value) and name != "set"}
    fixed = {name: value for name, value in options.items() if name not in axes}
    if plans is not None and axes:
        raise TypeError(f"sweep() takes plans or axes ({', '.join(axes)}), not both")
    line, document = _call.words("train", [job], fixed, None)
    opened, _ = _call.call_open(line, document)
    return Sweep(opened, axes, list(plans) if plans is not None else None, (job, fixed))
