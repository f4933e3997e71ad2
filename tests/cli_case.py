# SPDX-License-Identifier: Apache-2.0
"""What golden transcripts and documentation examples share: where a command runs and what of its output varies."""
import os
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(os.environ.get("MAQ_SOURCE_ROOT") or pathlib.Path(__file__).resolve().parent.parent)
PROGRAM = os.environ.get("MAQ") or str(ROOT / "build" / "maquette")
LIMIT_S = 120

# What differs from run to run or from release to release, and what stands for it.
PLACEHOLDERS = (
    (re.compile(r"\bmaquette v?\d+\.\d+\.\d+\S*"), "maquette <VERSION>"),
    (re.compile(r"\((?:commit )?[0-9a-f]{7,40}(?:-dirty)?\)"), "(<COMMIT>)"),
    (re.compile(r'("(?:version|commit|compiler)": )"[^"]*"'), r'\1"<BUILD>"'),
    (re.compile(r'("(?:elapsed|wall)_s": )[0-9.eE+-]+'), r"\1<TIME>"),
    (re.compile(r"\b(computed|simulated|planned|evaluated|done|took)( in)? [0-9.]+ ?(?:ns|us|ms|s|min)\b"), r"\1\2 <TIME>"),
)


class Scratch:
    """An empty folder that looks like the checkout: examples/, data/, docs/ ..., `maquette` in PATH and as build/maquette."""

    def __init__(self, extra=None):
        self.folder = tempfile.TemporaryDirectory(prefix="maq-test-")
        self.path = pathlib.Path(self.folder.name)
        for name in ("examples", "data", "docs", "README.md"):
            if (ROOT / name).exists():
                (self.path / name).symlink_to(ROOT / name)
        for folder in ("build", ".bin"):
            (self.path / folder).mkdir()
            (self.path / folder / "maquette").symlink_to(pathlib.Path(PROGRAM).resolve())
        for file in extra or ():
            (self.path / file.name).symlink_to(file.resolve())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def run(self, script, stdin=b"", limit_s=LIMIT_S):
        """(stdout, stderr, status) of a shell script, normalised."""
        env = {k: v for k, v in os.environ.items() if k.endswith("SAN_OPTIONS") or k in ("HOME", "LANG", "LD_LIBRARY_PATH")}
        env.update(PATH=f"{self.path}/.bin:{os.environ.get('PATH', '')}", LC_ALL="C", TZ="UTC", NO_COLOR="1", COLUMNS="100",
                   MAQ=PROGRAM, HOME=str(self.path))
        try:
            run = subprocess.run(["/bin/sh", "-c", script], cwd=self.path, env=env, input=stdin, capture_output=True,
                                 timeout=limit_s, check=False)
        except subprocess.TimeoutExpired:
            return "", f"no end after {limit_s} s\n", 124
        return self.normalise(run.stdout), self.normalise(run.stderr), run.returncode

    def normalise(self, raw):
        text = raw.decode("utf-8", "replace").replace(str(self.path) + "/", "").replace(str(ROOT) + "/", "")
        for pattern, stand_in in PLACEHOLDERS:
            text = pattern.sub(stand_in, text)
        return text


def part_of(whole):
    """What a test has of a list that several tests share: MAQ_PART=K/N says which, from 1; without it all."""
    part, of = map(int, os.environ.get("MAQ_PART", "1/1").split("/"))
    return whole[part - 1::of]


class Tap:
    """Test results on standard output, plan at the end."""

    def __init__(self):
        self.count = 0
        self.failed = 0
        print("TAP version 13")

    def result(self, good, name, detail=""):
        self.count += 1
        self.failed += not good
        print(f"{'ok' if good else 'not ok'} {self.count} - {name}")
        for line in detail.splitlines():
            print("# " + line)

    def skip(self, name, why):
        self.count += 1
        print(f"ok {self.count} - {name} # SKIP {why}")

    def done(self):
        print(f"1..{self.count}" + ("" if self.count else " # SKIP nothing to run"))
        return 1 if self.failed else 0
