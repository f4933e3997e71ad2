# SPDX-License-Identifier: Apache-2.0
"""Every request of a job to PyTorch's caching allocator: `trace.py JOB.json`, run in the place of program.py; MAQ_TRACE names the file.

One line for each: `a STREAM BYTES` asks for a block and `f N` gives back the one that the Nth request asked for, when it can be used again;
`r BYTES` is what is reserved from there on. Streams are counted in the order in which they first asked. That is what test_allocator.c reads.
"""
import os
import sys

import torch

import program


def lines(events):
    streams, number, reserved = {}, {}, 0
    requests = 0
    for e in events:
        action, size = e["action"], e["size"]
        if action == "alloc":
            number[e["addr"]] = requests
            requests += 1
            yield f"a {streams.setdefault(e['stream'], len(streams))} {size}"
        elif action == "free_completed" and e["addr"] in number:
            yield f"f {number.pop(e['addr'])}"
        elif action in ("segment_alloc", "segment_map", "segment_free", "segment_unmap"):
            reserved += size if action in ("segment_alloc", "segment_map") else -size
            yield f"r {reserved}"


def main():
    torch.cuda.memory._record_memory_history(max_entries=4_000_000, stacks="python", context=None)
    try:
        program.main(end=False)
    finally:
        events = torch.cuda.memory._snapshot()["device_traces"][torch.cuda.current_device()]
        with open(os.environ["MAQ_TRACE"], "w", encoding="utf-8") as f:
            f.writelines(x + "\n" for x in lines(events))
        sys.stdout.flush()
        os._exit(0)


if __name__ == "__main__":
    main()
