#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Slices that are forked off one program (src/launch/fork_server) do what slices do that start by themselves, and programs that cannot be forked
start by themselves.

The programs draw a number before they ask for their rank: it is the same in all ranks exactly where they were forked."""
# maq-test: long
import os
import pathlib
import re
import signal
import sys
import textwrap
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from capture_case import RANK, run_cases  # noqa: E402

WORLD = 4
BEGIN = """
import os, sys
print("begins", __name__, sys.argv, sys.path[0], os.path.basename(globals().get("__file__", "")))
drawn = os.urandom(8).hex()
"""
END = f"""
print("rank", os.environ["RANK"], "of", os.environ["WORLD_SIZE"], "drew", drawn)
import runpy
sys.argv = ["rank.py"]
runpy.run_path({RANK[-1]!r}, run_name="__main__")
"""


def write(scratch, name, text):
    path = scratch.path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return str(path)


def logs(scratch, name):
    """Output of each rank in its last pass."""
    found = {}
    for file in (scratch.path / f"{name}.slices").glob("p*-r*.log"):
        pass_, rank = (int(word[1:]) for word in file.stem.split("-"))
        found[rank] = max(found.get(rank, (-1, "")), (pass_, file.read_text(encoding="utf-8")))
    return [found[rank][1] for rank in sorted(found)]


def drawn(scratch, name):
    return [re.search("drew (.*)", text).group(1) for text in logs(scratch, name)]


def both(scratch, *command, of="job"):
    """Captured with and without a server: the same job, the same output. The numbers that ranks drew with one."""
    forked, alone = f"{of}-forked.mqt", f"{of}-alone.mqt"
    for name, options in ((forked, []), (alone, ["--no-fork-server"])):
        scratch.capture("--world", WORLD, "--libraries", "none", "--keep", *options, "--", *command, name=name)
    assert (scratch.path / forked).read_bytes() == (scratch.path / alone).read_bytes()
    hide = [[re.sub("drew .*", "drew", text) for text in logs(scratch, name)] for name in (forked, alone)]
    assert hide[0] == hide[1], hide
    assert len(set(drawn(scratch, alone))) == WORLD
    return drawn(scratch, forked)


def script(scratch):
    path = write(scratch, "folder/program.py", BEGIN + END)
    assert len(set(both(scratch, sys.executable, "-S", path, "word", "--option"))) == 1
    for number in range(WORLD):
        assert f"rank {number} of {WORLD}" in logs(scratch, "job-forked.mqt")[number]


def module(scratch):
    write(scratch, "program.py", BEGIN + END)
    assert len(set(both(scratch, sys.executable, "-S", "-u", "-m", "program", "word"))) == 1


def code(scratch):
    assert len(set(both(scratch, sys.executable, "-S", "-X", "utf8", "-c", BEGIN + END, "word"))) == 1


def stops_before(scratch):
    """What different ranks do each for themselves happens in each of them."""
    for at, text in enumerate(("open('w', 'a').write('x')", "os.makedirs('d', exist_ok=True)", "dict(os.environ)",
                               "os.system('true')", "import _socket; _socket.gethostname()", "os.environ.get('LOCAL_RANK')",
                               "'RANK' in os.environ", "len(os.environ)", "os.environb[b'RANK']")):
        folder = scratch.path / f"{at}"
        folder.mkdir()
        path = write(scratch, f"{at}.py", f"import os, sys\nos.chdir({str(folder)!r})\n{text}\ndrawn = os.urandom(8).hex()\n" + END)
        name = f"job{at}.mqt"
        scratch.capture("--world", 2, "--libraries", "none", "--keep", "--", sys.executable, "-S", path, name=name)
        assert len(set(drawn(scratch, name))) == 2, text
    written = (scratch.path / "0/w").read_text(encoding="utf-8")
    assert set(written) == {"x"} and len(written) > WORLD, written


def not_forked(scratch):
    """A thread, a shell, an end before anything is asked: each rank starts by itself."""
    thread = "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n"
    for name, text in (("thread", thread), ("fork", "if os.fork() == 0: os._exit(0)\nos.wait()\n")):
        path = write(scratch, f"{name}.py", BEGIN + text + END)
        numbers = both(scratch, sys.executable, "-S", path, of=name)
        assert (len(set(numbers)) == WORLD) == (name == "thread"), (name, numbers)
    path = write(scratch, "shell.py", BEGIN + END)
    assert len(set(both(scratch, "/bin/sh", "-c", f"exec {sys.executable} -S {path}", of="shell"))) == WORLD


def failures(scratch):
    """The exit status and the last words are those of the program, without a line of the server's."""
    for text, words in (("raise ValueError('of rank ' + os.environ['RANK'])", "ValueError: of rank 0"), ("os.environ['RANK']; sys.exit(7)", "status 7"),
                        ("import nowhere", "No module named 'nowhere'"), ("os.environ['RANK']; os.kill(os.getpid(), 9)", "signal 9")):
        path = write(scratch, "program.py", BEGIN + text)
        said = {}
        for option in ([], ["--no-fork-server"]):
            status, _, error = scratch.run("capture", "--world", 2, "--libraries", "none", "-o", "job.mqt", *option, "--", sys.executable, "-S", path)
            assert status == 3 and words in error, (status, error)
            said[len(option)] = (error, [re.sub("drew .*", "", text) for text in logs(scratch, "job.mqt")])
        assert said[0] == said[1], said


def installed(scratch):
    """What the first rank imported late, the server imports; but not what asks for the rank, nor for what the program has set: by name, or by going
    through all variables to find those that begin with the package's name."""
    site = scratch.path / "lib/site-packages"
    for name, text in (("plain", ""), ("asks", "os.environ.get('RANK')"), ("needs", "import asks"), ("child/__init__", "import asks"), ("child/of", ""),
                       ("set_before", "os.environ.get('CHOSEN')"), ("other", "os.environ.get('HOME')"),
                       ("looks", "{k: v for k, v in os.environ.items() if k.startswith('LOOKS_')}"), ("owned", "[k for k in os.environ if k.startswith('OWNED_')]"),
                       ("same", "os.environ.get('SAME')")):
        write(scratch, f"lib/site-packages/{name}.py", f"import os\n{text}\nnumber = os.urandom(8).hex()\n")
    names = ["plain", "asks", "needs", "child.of", "set_before", "other", "looks", "owned", "same"]
    scratch.env["SAME"] = "same"
    late = "os.environ['RANK']; os.environ['CHOSEN'] = os.environ['OWNED_1'] = 'x'; os.environ['SAME'] = 'same'\n" + "".join(f"import {name}\n" for name in names)
    late += "".join(f"print('{name}:', {name}.number)\n" for name in names)
    scratch.env["PYTHONPATH"] = str(site)
    path = write(scratch, "program.py", BEGIN + late + END)
    scratch.capture("--world", WORLD, "--libraries", "none", "--keep", "--", sys.executable, path)
    for name in names:
        numbers = {re.search(f"^{name}: (.*)", text, re.M).group(1) for text in logs(scratch, "job.mqt")}
        assert (len(numbers) == 1) == (name in ("plain", "other", "looks", "same")), (name, numbers)


def garbage(scratch):
    """The collector passes over what was there before the fork, and whoever asks for all objects gets all."""
    before = """
    import gc
    class Cycle:
        def __init__(self): self.itself = self
        def __del__(self): print("gone")
    held, named = Cycle(), Cycle()
    collect = gc.collect
    collect()
    """
    after = """
    os.environ["RANK"]
    frozen = gc.get_freeze_count() > 0
    print("found", sum(isinstance(it, Cycle) for it in gc.get_objects()), len([it for it in gc.get_referrers(named) if it is named.__dict__]))
    del held
    print("young", collect(0), gc.collect(generation=1))
    print("all", collect() > 0)
    """
    path = write(scratch, "program.py", BEGIN + textwrap.dedent(before) + textwrap.dedent(after) + END.replace("drawn)", "drawn, frozen)"))
    assert all(word.endswith(" True") for word in both(scratch, sys.executable, "-S", path))
    assert all(word.endswith(" False") for word in drawn(scratch, "job-alone.mqt"))


def running(text):
    """Processes whose command line has `text` in it."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text.encode() in path.read_bytes():
                found.append(path)
        except OSError:
            pass
    return found


def gone_in_time(text):
    until = time.monotonic() + 20
    while running(text) and time.monotonic() < until:
        time.sleep(0.05)
    return not running(text)


def ends(scratch):
    """Of a capture that is killed, and of one whose time is over, nothing is left, wherever the program is."""
    sleep = "import time; time.sleep(3600)\n"
    for name, text in (("before", sleep + END), ("after", "os.environ['RANK']\n" + sleep)):
        path = write(scratch, f"{name}-{os.getpid()}.py", BEGIN + text)
        status, _, error = scratch.run("capture", "--world", 2, "--libraries", "none", "-o", f"{name}.mqt", "--timeout", "1", "--", sys.executable, "-S", path)
        assert status == 5 and "MAQ1685" in error, (status, error)
        assert gone_in_time(path)
        capture = scratch.start("capture", "--world", 2, "--libraries", "none", "-o", f"{name}-killed.mqt", "--", sys.executable, "-S", path)
        until = time.monotonic() + 20
        while not running(path) and time.monotonic() < until:
            time.sleep(0.02)
        time.sleep(0.5)
        capture.send_signal(signal.SIGKILL)
        capture.communicate()
        assert gone_in_time(path)
        until = time.monotonic() + 20
        while list((scratch.path / "tmp").iterdir()) and time.monotonic() < until:
            time.sleep(0.05)


CASES = [script, module, code, stops_before, not_forked, failures, installed, garbage, ends]

if __name__ == "__main__":
    sys.exit(run_cases(CASES))
