#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A parallelizer that does one thing wrong: MAQ_FAULT says which."""
import json
import os
import signal
import subprocess
import sys
import time

fault = os.environ.get("MAQ_FAULT", "")
if fault == "dies at once":
    sys.exit("no licence")
layers = 0
for line in sys.stdin:
    request = json.loads(line)
    op, answer = request["op"], {"id": request["id"]}
    if op == "open":
        layers = len(request["model"]["layers"])
        answer.update(version=2 if fault == "version" else 1, name="faulty", front=True)
        if fault == "no name":
            del answer["name"]
        if fault == "two kinds":
            answer["name"] = f"faulty {os.getpid()}"
    elif op == "slice_model":
        n = layers - 1 if fault == "atoms" else layers
        answer["atoms"] = [{"layers": 1, "signature": "a"} for _ in range(n)]
    elif op == "profile":
        answer.update(samples_per_s=0, min_bytes=-1 if fault == "profile" else 0)
    else:
        stage = {"atoms": request["slice"]["atoms"], "devices": 1, "time_s": 1.0, "static_bytes": 0, "flight_bytes": 0, "sync_s": 0,
                 "boundary_bytes": 0}
        answer["plans"] = [{"stages": [stage], "text": "x"}]
        if fault == "dies":
            print("cannot allocate\nGPU memory", file=sys.stderr)
            sys.exit(3)
        if fault == "signal":
            os.kill(os.getpid(), signal.SIGKILL)
        if fault == "hangs":
            child = subprocess.Popen(["sleep", "1000"])
            with open(os.environ["MAQ_FAULT_FILE"], "w", encoding="ascii") as out:
                out.write(f"{os.getpid()} {child.pid}")
            time.sleep(1000)
        if fault == "garbage":
            print("loading model ...", flush=True)
        if fault == "list":
            print("[1]", flush=True)
        if fault == "wrong id":
            answer["id"] += 5
        if fault == "no id":
            del answer["id"]
        if fault == "says so":
            answer = {"id": request["id"], "error": "no such device"}
        if fault == "missing":
            del stage["sync_s"]
        if fault == "unknown":
            stage["colour"] = "red"
        if fault == "text":
            stage["time_s"] = "1 s"
        if fault == "word":
            stage["recompute"] = "some"
        if fault == "negative":
            stage["time_s"] = -1.0
        if fault == "devices":
            stage["devices"] = 1000
        if fault == "cover":
            stage["atoms"] += 1
        if fault == "no plans":
            del answer["plans"]
    print(json.dumps(answer), flush=True)
if fault == "stays":
    time.sleep(1000)
