# SPDX-License-Identifier: Apache-2.0
"""A scale model of LLM clusters: what a training job or a serving deployment would do on a cluster, predicted in milliseconds.

    import maquette
    step = maquette.train(model="llama-3.1-70b", cluster="h100-sxm:8 x 8, rail 400G", tp=8, pp=2, gbs=256, seq=8192)
    step.step_time_s, step.mfu, step.fits
    step.stages.needed_bytes          # a NumPy array, a view of the result
    print(step)                       # the report

Options are those of the command line with `_` for `-`: `maquette train --help-all`, or `maquette.options("train")`.
"""
from ._call import Diagnostic, Error, InputError, Option, UsageError, options, text_of as _text_of
from ._columns import Record, Table
from ._native import lib as _lib
from ._reports import Diff, Fit, Plan, Replayed, Report, Risk, Serve, ServePlan, Train, call, diff, plan, risk, risk_fit, risk_replay, serve, serve_plan, show, train
from ._sweep import Sweep, sweep

__version__: str = _text_of(_lib.maq_version())

__all__ = [
    "Diagnostic", "Diff", "Error", "Fit", "InputError", "Option", "Plan", "Record", "Replayed", "Report", "Risk", "Serve", "ServePlan", "Sweep", "Table",
    "Train", "UsageError", "call", "diff", "options", "plan", "risk", "risk_fit", "risk_replay", "serve", "serve_plan", "show", "sweep", "train",
]

for _name in __all__:  # in messages they are maquette's, wherever they stand
    globals()[_name].__module__ = "maquette"
