#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Chakra traces of ours, read by programs that are not: protoc with the part of the schema that is used, and, where it is installed, the
feeder's classes of the `chakra` package. What is missing is skipped."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import Tap  # noqa: E402

WRITER = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT", "build")) / "tests" / "test_import_chakra"
WORLD = 4

# Numbers and types of the fields that we write, as mlcommons/chakra has them; the rest of its schema is left out.
SCHEMA = """
syntax = "proto3";
message Longs { repeated int64 values = 1; }
message Ints { repeated uint32 values = 1; }
message Attribute {
  string name = 1; string doc_string = 2;
  oneof value { int64 int64_val = 9; Longs int64_list = 10; Ints uint32_list = 12; bool bool_val = 27; string string_val = 29; }
}
message Metadata { string version = 1; repeated Attribute attr = 2; }
enum Type { INVALID = 0; METADATA = 1; MEM_LOAD = 2; MEM_STORE = 3; COMP = 4; COMM_SEND = 5; COMM_RECV = 6; COMM_COLL = 7; }
message Trace { Metadata metadata = 1; repeated Node node = 2; }
message Node {
  uint64 id = 1; string name = 2; Type type = 3; repeated uint64 ctrl_deps = 4; repeated uint64 data_deps = 5;
  uint64 start_time_micros = 6; uint64 duration_micros = 7; repeated Attribute attr = 10;
}
"""


def varint(data, at):
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def messages(data):
    at = 0
    while at < len(data):
        size, at = varint(data, at)
        yield data[at:at + size]
        at += size


def length(n):
    out = bytearray()
    while n >= 128:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def check_with_protoc(folder, path):
    """All messages of a file as one, so that protoc is started once."""
    (folder / "et.proto").write_text(SCHEMA, encoding="utf-8")
    parts = list(messages(path.read_bytes()))
    one = b"\x0a" + length(len(parts[0])) + parts[0]
    one += b"".join(b"\x12" + length(len(p)) + p for p in parts[1:])
    run = subprocess.run(["protoc", f"--proto_path={folder}", "--decode=Trace", "et.proto"], input=one, capture_output=True,
                         check=False)
    assert run.returncode == 0, run.stderr
    text = run.stdout.decode()
    lines = [line.strip() for line in text.splitlines()]
    unknown = [line for line in lines if line.split(":")[0].isdigit() or line.split(" ")[0].isdigit()]
    assert not unknown, unknown[:5]
    assert lines.count("node {") == len(parts) - 1
    ids = {int(line.split()[1]) for line in lines if line.startswith("id:")}
    deps = {int(line.split()[1]) for line in lines if line.startswith(("ctrl_deps:", "data_deps:"))}
    assert len(ids) == len(parts) - 1 and deps <= ids and deps
    for name in ("COMP", "COMM_COLL", "COMM_SEND"):
        assert f"type: {name}" in lines or f"type: {name.replace('SEND', 'RECV')}" in lines, name
    for name in ("is_cpu_op", "comm_type", "comm_size", "pg_name", "num_ops", "tensor_size", "comm_src"):
        assert f'name: "{name}"' in lines, name


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory(prefix="maq-chakra-") as name:
        folder = pathlib.Path(name)
        subprocess.run([str(WRITER), "--write", str(folder / "job")], check=True)
        files = sorted((folder / "job").glob("job.*.et"))
        tap.result(len(files) == WORLD, "a file for each rank")
        if not shutil.which("protoc"):
            tap.skip("protoc reads them", "protoc is not installed")
        else:
            fault = ""
            try:
                for path in files:
                    check_with_protoc(folder, path)
            except AssertionError as error:
                fault = str(error) or "assertion"
            tap.result(not fault, "protoc reads them", fault)
        try:
            from chakra.schema.protobuf import et_def_pb2  # noqa: F401
            from chakra.src.third_party.utils.protolib import decodeMessage, openFileRd
        except ImportError:
            tap.skip("the chakra package reads them", "chakra is not installed")
        else:
            nodes, node = 0, et_def_pb2.Node()
            with openFileRd(str(files[0])) as et:
                decodeMessage(et, et_def_pb2.GlobalMetadata())
                while decodeMessage(et, node):
                    nodes += 1
            tap.result(nodes == len(list(messages(files[0].read_bytes()))) - 1, "the chakra package reads them", str(nodes))
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
