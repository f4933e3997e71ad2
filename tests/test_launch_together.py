#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette run` of a rank whose program finds the others by means of its own: it is seen to wait, and all ranks run at once."""
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from capture_case import needs_device, run_cases  # noqa: E402

# Rank 0 waits at a socket of its own until every other rank has come.
PROGRAM = """
import os, socket, sys
rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
open(f"{sys.argv[1]}/ran-{rank}", "a").write("x")
if rank == 0:
    server = socket.socket(socket.AF_UNIX)
    server.bind(sys.argv[1] + "/meet")
    server.listen(world)
    os.rename(sys.argv[1] + "/meet", sys.argv[1] + "/open")
    got = sorted(server.accept()[0].recv(1)[0] for _ in range(1, world))
    print("rank 0 heard", got)
else:
    client = socket.socket(socket.AF_UNIX)
    while client.connect_ex(sys.argv[1] + "/open") != 0: # it is not there, or of the rank 0 that was ended
        pass
    client.send(bytes([rank]))
    print("rank", rank, "spoke")
"""


def start(s, *options, seconds=30, status=0):
    (s.path / "program.py").write_text(PROGRAM)
    folder = s.path / f"work{len(list(s.path.iterdir()))}"
    folder.mkdir()
    code, out, err = s.run("run", "--json", "--output", "run.json", "--timeout", seconds, "--kept", s.path / "kept", *options, "--", sys.executable, s.path / "program.py", folder)
    assert code == status, (code, out, err)
    return out, err, folder


def meets(s):
    needs_device()
    out, err, folder = start(s, "--world", 3, "--stall", 1)
    assert out == "rank 0 heard [1, 2]\n", out
    assert "MAQ1691" in err and "rank 0 did nothing for 1 s" in err and "all 3 ranks were run at once" in err, err
    report = json.loads((s.path / "run.json").read_text())
    assert [r["rank"] for r in report["ranks"]] == [0] and report["status"] == 0, report
    assert len((folder / "ran-0").read_text()) in (1, 2) # on a busy machine it is ended before it has begun
    assert len((folder / "ran-2").read_text()) == 1


def kept(s):
    """What was found is kept: the next call runs them at once."""
    needs_device()
    (s.path / "program.py").write_text(PROGRAM)
    for turn in range(2):
        for name in ("open", "ran-0", "ran-1"):
            (s.path / name).unlink(missing_ok=True)
        code, out, err = s.run("run", "--timeout", 30, "--kept", s.path / "kept", "--stall", 1, "--world", 2, "--", sys.executable, s.path / "program.py", s.path)
        assert code == 0 and out == "rank 0 heard [1]\n", (code, out, err)
        assert ("MAQ1691" in err) == (turn == 0), err
        begun = len((s.path / "ran-0").read_text())
        assert begun == 1 if turn else begun in (1, 2), begun # on a busy machine it is ended before it has begun


def alone(s):
    """Who asked for one rank alone is told, and the program is left to itself."""
    needs_device()
    _, err, folder = start(s, "--world", 2, "--alone", "--stall", 1, seconds=8, status=5)
    assert "rank 0 did nothing for 1 s" in err and "--all" in err and not (folder / "ran-1").exists(), err


def left(s):
    """Of ranks at once one fails: the others are ended, and the run has its status."""
    script = '[ "$RANK" != 1 ] || exit 3; sleep 60'
    began = time.monotonic()
    code, _, err = s.run("run", "--libraries", "none", "--all", "--world", 3, "--", "sh", "-c", script)
    assert code == 3 and time.monotonic() - began < 40, (code, err)
    assert "MAQ1693" in err and "rank 1 failed with exit status 3; 2 others, which waited on, were ended" in err, err


if __name__ == "__main__":
    sys.exit(run_cases([meets, kept, alone, left]))
