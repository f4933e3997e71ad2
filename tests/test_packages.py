#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What can be known of packages without building one: that they leave nothing out and that versions and needs are those of the build.

maq-test: no sanitizer  (which is no build to be installed)
"""
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import PROGRAM, ROOT, Tap  # noqa: E402

BUILD = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT") or ROOT / "build")
DEBIAN = ROOT / "debian"
# What the Debian package is built with by other means than install-deps.sh names, and what only tests need.
ELSEWHERE = {"gcc", "libc6-dev", "ninja-build", "git", "libcmocka-dev"}


def words(path):
    return [line.split("#")[0].split() for line in path.read_text(encoding="utf-8").splitlines() if line.split("#")[0].strip()]


def names(pattern, path):
    """Whether a line of a package names a file, itself or by a folder: as the shell's patterns, whose stars end at a slash."""
    wanted, given = pattern.split("/"), path.split("/")
    return len(wanted) <= len(given) and all(fnmatch.fnmatch(g, w) for g, w in zip(given, wanted))


def versions(tap):
    ours = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8")).group(1)
    debian = re.match(r"maquette \(([^)-]+)-\d+\)", (DEBIAN / "changelog").read_text(encoding="utf-8")).group(1)
    said = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, check=True).stdout
    tap.result(ours == debian and f"maquette {ours} " in said, "one version in meson.build, debian/changelog and the program", "" if ours == debian else f"{ours} {debian} {said}")


def needs(tap):
    control = (DEBIAN / "control").read_text(encoding="utf-8")
    build = set(re.findall(r"[a-z0-9.+-]{3,}", re.search(r"Build-Depends:(.*?)\n\n", control, re.S).group(1)))
    script = (ROOT / "tools/install-deps.sh").read_text(encoding="utf-8").split('if [ "$what" = all ]')[0]
    wanted = {name for _, name in re.findall(r"^need_(?:command|library) (\S+) (\S+)$", script, re.M)}
    wanted |= set(re.findall(r"missing\+=\(([a-z0-9.+-]+)\)", script))
    tap.result(len(wanted) > 8 and wanted - ELSEWHERE <= build, "debian/control needs what install-deps.sh installs", " ".join(wanted - ELSEWHERE - build))


def everything(tap):
    """Each file that meson installs is in one package, and each line of a package names one."""
    if not shutil.which("meson"):
        tap.skip("files of packages", "there is no meson")
        return
    said = subprocess.run(["meson", "introspect", "--installed", BUILD], capture_output=True, text=True, check=False)
    if said.returncode != 0:
        tap.skip("files of packages", "the build folder is another Meson's")
        return
    files = {"usr/" + re.sub(r"^/usr/(local/)?", "", path) for path in json.loads(said.stdout).values()}
    # Debian's Python has one place for all its versions; another Python that the build found has its own.
    files = {re.sub(r"^usr/lib/(python3?|python3\.\d+)/(site|dist)-packages/", "usr/lib/python3/dist-packages/", path) for path in files}
    places = {package.stem: [line[0] for line in words(package)] for package in DEBIAN.glob("*.install")}
    with_python = any("/_native." in path for path in files)
    places["not installed"] = [line[0] for line in words(DEBIAN / "not-installed")]
    for path in sorted(files):
        held = [name for name, patterns in places.items() for p in patterns if names(p, path)]
        if len(held) != 1:
            tap.result(False, f"{path} is in one package", f"it is in {held or 'none'}")
    for name, patterns in places.items():
        lost = [p for p in patterns if not any(names(p, path) for path in files)]
        if not with_python:
            lost = [p for p in lost if not p.startswith("usr/lib/python3")]
        tap.result(not lost, f"{name}: every line names something", " ".join(lost))


def parts(tap):
    """The list of parts has what the program is linked to, each with a licence that NOTICE names, and is the same twice."""
    if not shutil.which("meson") or not shutil.which("readelf"):
        tap.skip("list of parts", "there is no meson or no readelf")
        return
    ask = [sys.executable, ROOT / "tools/packages/sbom.py", BUILD]
    said, again = (subprocess.run(ask, capture_output=True, text=True, check=False) for _ in range(2))
    tap.result(said.returncode == 0 and said.stdout == again.stdout, "a list of parts, the same twice", said.stderr)
    if said.returncode != 0:
        return
    parts_ = json.loads(said.stdout)["components"]
    libraries = [part["name"].lower() for part in parts_ if part["type"] == "library"]
    linked = re.findall(r"NEEDED.*\[lib([a-z]+)", subprocess.run(["readelf", "-d", PROGRAM], capture_output=True, text=True, check=True).stdout)
    left = [name for name in linked if name not in ("c", "m", "dl", "pthread") and not any(name in n for n in libraries)]
    tap.result(not left and len(libraries) > 6, "what the program is linked to is in it", " ".join(left))
    notice = (ROOT / "NOTICE").read_text(encoding="utf-8").lower()
    left = [name for name in libraries if name.replace("gnu ", "") not in notice]
    tap.result(not left, "NOTICE names each library", " ".join(left))


def main():
    tap = Tap()
    for check in (versions, needs, everything, parts):
        check(tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
