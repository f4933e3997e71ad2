# SPDX-License-Identifier: Apache-2.0
"""What was in memory at the peak of a job: `peak.py JOB.json`, run in the place of program.py.

PyTorch writes down every allocation with the Python line that made it; they are played back to the peak, and what is there is added up
by the innermost lines.
"""
import collections
import os
import sys

import torch

import program


def frames(event, depth=3):
    """The innermost lines that are no part of torch.nn or of the dispatcher; of the backward pass there are none."""
    lines = [f"{os.path.basename(f['filename'])}:{f['line']} {f['name']}" for f in event.get("frames", [])]
    told = [x for x in lines if not x.startswith(("module.py", "_ops.py", "??", "functional.py"))]
    return " < ".join((told or lines)[:depth])


def live_at_peak(events):
    live, total, most, at = {}, 0, 0, {}
    for e in events:
        if e["action"] == "alloc":
            live[e["addr"]] = e
            total += e["size"]
            if total > most:
                most, at = total, None
        elif e["action"] == "free_requested" and e["addr"] in live:
            if at is None:
                at = dict(live)  # the peak was just left
            total -= live.pop(e["addr"])["size"]
    return most, at if at is not None else live


def main():
    torch.cuda.memory._record_memory_history(max_entries=2_000_000, stacks="python")
    try:
        program.main(end=False)
    finally:
        events = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
        most, live = live_at_peak(events)
        groups = collections.Counter()
        numbers = collections.Counter()
        for e in live.values():
            groups[e["size"], frames(e)] += e["size"]
            numbers[e["size"], frames(e)] += 1
        pools = collections.Counter()
        for segment in torch.cuda.memory._snapshot()["segments"]:
            pools[segment["stream"], segment["segment_type"]] += segment["total_size"]
        print("reserved, by stream:", {k: round(v / 2**20, 1) for k, v in pools.items()})
        print("peak", most)
        for (size, where), sum_ in groups.most_common(int(os.environ.get("LINES", "45"))):
            print(f"{sum_ / 2**20:9.1f} MiB {numbers[size, where]:4d} x {size / 2**20:8.2f}  {where}")
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
