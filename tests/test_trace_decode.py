#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sample trace of test_trace.c, read by programs that are not ours: Python's json, protoc, and, where they are installed, the
protobuf classes of the `perfetto` package and Perfetto's trace_processor_shell. What is missing is skipped."""
import gzip
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import Tap  # noqa: E402

WRITER = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT", "build")) / "tests" / "test_trace"
PACKETS = 8 + 2 * 7 + 3  # tracks and root, begins and ends, counter values


def write(folder, name):
    path = folder / name
    subprocess.run([str(WRITER), "--write", str(path)], check=True)
    return path


def check_json(events):
    """Slices of each thread nest; flows start and end inside a slice of their thread."""
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == 7, len(slices)

    def inside(flow):
        return [e["name"] for e in slices if (e["pid"], e["tid"]) == (flow["pid"], flow["tid"])
                and e["ts"] <= flow["ts"] < e["ts"] + e["dur"]]

    starts = {e["id"]: inside(e) for e in events if e["ph"] == "s"}
    ends = {e["id"]: inside(e) for e in events if e["ph"] == "f"}
    assert starts == {77: ["send"]} and ends == {77: ["recv"]}, (starts, ends)
    for i, a in enumerate(slices):
        for b in slices[i + 1:]:
            if (a["pid"], a["tid"]) == (b["pid"], b["tid"]) and a["ts"] <= b["ts"] < a["ts"] + a["dur"]:
                assert b["ts"] + b["dur"] <= a["ts"] + a["dur"] + 1e-6, (a, b)


def raw_messages(text):
    """protoc --decode_raw output as nested lists of (number, value)."""
    stack = [[]]
    for line in text.splitlines():
        line = line.strip()
        if line.endswith("{"):
            child = []
            stack[-1].append((int(line.split()[0]), child))
            stack.append(child)
        elif line == "}":
            stack.pop()
        else:
            number, value = line.split(":", 1)
            stack[-1].append((int(number), value.strip()))
    return stack[0]


def check_raw(data):
    run = subprocess.run(["protoc", "--decode_raw"], input=data, capture_output=True, check=True)
    packets = raw_messages(run.stdout.decode())
    assert [number for number, _ in packets] == [1] * PACKETS, len(packets)
    assert all((10, "1") in packet for _, packet in packets)
    depth = {}
    for _, packet in packets:
        for number, event in packet:
            if number == 11:
                kind = next(v for n, v in event if n == 9)
                track = next(v for n, v in event if n == 11)
                depth[track] = depth.get(track, 0) + {"1": 1, "2": -1}.get(kind, 0)
                assert depth[track] >= 0
    assert set(depth.values()) == {0}, depth


def unknown_fields(message, reader):
    count = len(reader(message))
    for field, value in message.ListFields():
        if field.message_type is not None:
            children = [value] if hasattr(value, "DESCRIPTOR") else value
            count += sum(unknown_fields(child, reader) for child in children)
    return count


def main():
    tap = Tap()
    if not WRITER.exists():
        tap.skip("trace decoders", "test_trace is not built")
        return tap.done()

    def case(name, check, *args):
        try:
            check(*args)
            tap.result(True, name)
        except (AssertionError, ValueError, KeyError, subprocess.CalledProcessError) as error:
            tap.result(False, name, repr(error))

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        case("json", lambda: check_json(json.loads(write(folder, "a.json").read_text(encoding="utf-8"))["traceEvents"]))
        case("json.gz", lambda: check_json(json.loads(gzip.decompress(write(folder, "a.json.gz").read_bytes()))["traceEvents"]))
        data = write(folder, "a.pftrace").read_bytes()
        case("pftrace.gz", lambda: None if gzip.decompress(write(folder, "a.pftrace.gz").read_bytes()) == data else 1 / 0)
        if shutil.which("protoc"):
            case("protoc --decode_raw", check_raw, data)
        else:
            tap.skip("protoc --decode_raw", "no protoc")
        try:
            from google.protobuf.unknown_fields import UnknownFieldSet
            from perfetto.protos.perfetto.trace import perfetto_trace_pb2
        except ImportError:
            tap.skip("perfetto protobuf classes", "no `perfetto` package")
        else:
            trace = perfetto_trace_pb2.Trace()
            trace.ParseFromString(data)
            tap.result(unknown_fields(trace, UnknownFieldSet) == 0 and len(trace.packet) == PACKETS, "perfetto protobuf classes")
        shell = shutil.which("trace_processor_shell") or shutil.which("trace_processor")
        if shell:
            query = ("select s.ts, s.dur, s.depth, s.name from slice s order by s.ts, s.depth; "
                     "select o.name, i.name from flow join slice o on o.id = slice_out join slice i on i.id = slice_in;")
            run = subprocess.run([shell, "-Q", query, str(folder / "a.pftrace")], capture_output=True, check=False)
            out = run.stdout.decode()
            tap.result(run.returncode == 0 and '0,400,1,"gemm"' in out and '"send","recv"' in out, "trace processor", out)
        else:
            tap.skip("trace processor", "no trace_processor_shell")
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
