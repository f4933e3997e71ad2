#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`maquette run` of a rank that reads what others say: these run first, what they said is kept, and what is guessed is said by name."""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from capture_case import JOB, needs_device, run_cases  # noqa: E402

OBJECTS = ("--", *JOB, "dp", "--objects")
ALONG = ("--", *JOB, "pp", "--pp", 4, "--along")


def run(s, *arguments, status=0):
    """The report; the folder of what is kept is the test's own."""
    code, out, err = s.run("run", "--json", "--output", "run.json", "--kept", s.path / "kept", *arguments)
    assert code == status, (code, out, err)
    report = json.loads((s.path / "run.json").read_text())
    return [x["rank"] for x in report["ran_first"]], report["kept_ranks"], err


def objects(s):
    """A broadcast that the host reads from device memory, at three sizes; then at once, and for another rank too."""
    needs_device()
    for world, rank in ((2, 1), (16, 9), (4096, 4095)):
        first, kept, _ = run(s, "--world", world, "--rank", rank, "--trace", "first", *OBJECTS)
        assert 0 in first and rank not in first and kept == 0 and len(first) <= 2, (world, first, kept)
        again, kept, _ = run(s, "--world", world, "--rank", rank, "--trace", "again", *OBJECTS)
        assert again == [] and kept == len(first), (world, again, kept)
        assert (s.path / "first").read_bytes() == (s.path / "again").read_bytes(), "another trace with what was kept"
    other, kept, _ = run(s, "--world", 4096, "--rank", 77, *OBJECTS)
    assert other == [] and kept > 0, (other, kept)


def gathered(s):
    """Rank 0 reads what all the others send it: one of them runs, and the others are taken to follow."""
    needs_device()
    first, _, err = run(s, "--world", 512, *OBJECTS)
    assert first == [1] and "nobody has said" not in err, (first, err)


def each_of_them(s):
    """Rank 0 fails where all are taken to say the same: all run at once, and the next call begins there. In a job that is too large a word says why."""
    needs_device()
    program = ("--world", 6, "--rank", 3, "--trace", "own", *OBJECTS, "--each")
    first, _, err = run(s, *program)
    assert first == [] and "MAQ1692" in err and "rank 0 failed" in err and "all 6 ranks were run at once" in err, (first, err)
    trace = (s.path / "own").read_bytes()
    assert "MAQ1692" not in run(s, *program)[2] and (s.path / "own").read_bytes() == trace, "another trace at the second call"
    code, _, err = s.run("run", "--alone", "--world", 6, *OBJECTS, "--each")
    assert code == 1 and "MAQ1692" not in err, (code, err)
    first, _, err = run(s, "--world", 66, *OBJECTS, "--each", status=1)
    assert first == [1, 2, 8, 36, 65] and "rank 0 failed" in err and "--all runs the ranks of a small job at once" in err, (first, err)
    code, _, err = s.run("capture", "--world", 10, "--slices", 4, "--verify", 0, "-o", s.path / "job.mqt", *OBJECTS, "--each")
    assert code == 0, err


def by_pattern(s):
    """Objects whose numbers follow the rank: a few members are asked in a job that is too large to be run whole, and the next call begins there."""
    needs_device()
    program = ("--world", 500, "--rank", 77, "--", *JOB, "dp", "--plans", "--objects")
    first, _, err = run(s, *program)
    assert first == [1, 0] and "MAQ1692" not in err, (first, err)
    first, _, err = run(s, *program[:3], 0, *program[4:])
    assert first == [1, 2, 8, 253, 499] and "rank 0 failed" in err and "began anew" in err, (first, err)
    assert run(s, *program[:3], 0, *program[4:])[0] == []


def groups_of_their_size(s):
    """A group whose size is guessed, and not what the program has it for: all run at once, and the next call begins there. Not so in a job that is too large."""
    needs_device()
    program = ("--world", 16, "--rank", 4, "--", *JOB, "3d", "--tp", 2, "--pp", 2, "--first")
    first, _, err = run(s, *program)
    assert first == [] and "MAQ1692" in err and "all 16 ranks were run at once" in err, (first, err)
    assert "MAQ1692" not in run(s, *program)[2]
    code, _, err = s.run("run", "--alone", *program)
    assert code == 1 and "MAQ1692" not in err, (code, err)
    first, _, err = run(s, "--world", 128, *program[2:], status=1)
    assert first == [] and "MAQ1692" in err and "TORCH_DIST_USE_NCCL2=0" in err, (first, err)


def failed_for_itself(s):
    """What all ranks at once do not mend is the program's own: nothing is kept, and the next call tries again."""
    needs_device()
    script = '"$@" && [ "$RANK" != 0 ]'
    program = ("--world", 3, "--", "sh", "-c", script, "sh", *JOB, "dp", "--objects")
    assert run(s, "--rank", 1, *program)[0] == [0], "who is asked for and ends well is enough"
    for _ in range(2):
        _, _, err = run(s, *program, status=1)
        assert "all 3 ranks were run at once" in err, err
    assert not list(s.path.glob("kept/*")), list(s.path.glob("kept/*"))


def along(s):
    """A chain: each stage waits for the one in front of it, and later for the one behind."""
    needs_device()
    for rank in (7, 2):
        first, _, _ = run(s, "--world", 8, "--rank", rank, "--kept", "none", *ALONG)
        assert set(range(rank % 2, 8, 2)) - {rank} <= set(first), (rank, first)  # which ranks its pipeline has is a guess, too, at first


def by_name(s):
    """Alone it is guessed: said before the program's own error."""
    needs_device()
    first, kept, err = run(s, "--world", 16, "--rank", 9, "--alone", *OBJECTS, status=1)
    name = err.find("rank 9 reads 8 bytes that rank 0, place 0 of 16, was to say (broadcast 0 of this communicator)")
    assert (first, kept) == ([], 0) and 0 <= name < err.find("the length of an object is not known"), err
    assert not (s.path / "kept").exists()


def changed(s):
    """A program that was changed is another: what its ranks said is not kept for it."""
    needs_device()
    source, copy = pathlib.Path(JOB[-1]), s.path / "job.py"
    for name in ("job.py", "rank.py"):
        (s.path / name).write_bytes((source.parent / name).read_bytes())
    program = ("--world", 4, "--rank", 1, "--", *JOB[:-1], copy, "dp", "--objects")
    assert run(s, *program)[0] == [0] and run(s, *program)[1] == 1
    copy.write_text(copy.read_text() + "\n")
    assert run(s, *program)[:2] == ([0], 0)


def failed(s):
    """What a rank said that failed is read, since it was said, and not kept: the next call runs it again."""
    needs_device()
    script = '"$@" || exit $?; [ "$RANK" != 0 ] || [ -e mended ] || exit 3'
    program = ("--world", 4, "--rank", 1, "--", "sh", "-c", script, "sh", *JOB, "dp", "--objects")
    assert run(s, *program)[:2] == ([0], 0)
    report = json.loads((s.path / "run.json").read_text())
    assert report["status"] == 0 and report["ran_first"] == [{"rank": 0, "status": 3}], report["ran_first"]
    assert "rank 0 of those, exit status 3" in s.run("run", "--kept", s.path / "kept", *program)[2]
    assert not list(s.path.glob("kept/*")), "words of a rank that failed are kept"
    (s.path / "mended").touch()
    assert run(s, *program)[:2] == ([0], 0) and run(s, *program)[:2] == ([], 1)


def nobody_is_asked(s):
    """A program whose ranks read nothing of others runs alone, and leaves nothing behind."""
    needs_device()
    first, kept, _ = run(s, "--world", 4096, "--rank", 77, "--", *JOB, "dp")
    assert (first, kept) == ([], 0) and not list(s.path.glob("kept/*")), list(s.path.glob("kept/*"))


if __name__ == "__main__":
    sys.exit(run_cases([objects, gathered, each_of_them, by_pattern, groups_of_their_size, failed_for_itself, along, by_name, changed, failed, nobody_is_asked]))
