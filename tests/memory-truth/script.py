# SPDX-License-Identifier: Apache-2.0
"""Somebody's script as it is, and at its end what PyTorch's allocator counted, as JSON behind the word FIGURES.

    script.py SCRIPT ARGUMENTS...
"""
import json
import os
import runpy
import sys

script = os.path.abspath(sys.argv[1])
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(script)
runpy.run_path(script, run_name="__main__")

import torch  # noqa: E402  (the script says which variables of its environment are read first)

stats = torch.cuda.memory_stats()
free, total = torch.cuda.mem_get_info()
print("FIGURES", json.dumps({**{k: stats[f"{k}_bytes.all.peak"] for k in ("allocated", "reserved", "active")}, "device": total - free}), flush=True)
os._exit(0)  # watchdogs and compilers' workers have nobody to say goodbye to
