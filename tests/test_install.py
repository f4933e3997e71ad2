#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `meson install` puts where: the program, the library with its headers and its pkg-config file, manual pages, completions that complete."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import PROGRAM, ROOT, Tap  # noqa: E402

BUILD = pathlib.Path(os.environ.get("MAQ_BUILD_ROOT") or ROOT / "build")
USER = """
#include <stdio.h>
#include <maquette/maquette.h>
int main(void)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *job;
    struct maq_train_result *step;
    static const char text[] = "model: llama-3.1-8b\\ncluster: h100-sxm:8\\nplan: {tp: 2}\\nworkload: {gbs: 64}\\n";
    if (maq_job_parse(&job, "job", (struct maq_str){text, sizeof text - 1}, NULL, 0, diag) != MAQ_OK ||
        maq_train_predict(&step, maq_job_get(job), diag) != MAQ_OK)
        return 1;
    printf("%s %.2f s\\n", maq_version(), step->step_s);
    return 0;
}
"""
# Words before the cursor, the last one being completed; some that come, some that do not.
COMPLETE = [
    (["tr"], {"train"}, {"serve"}),
    (["se"], {"serve"}, {"train"}),
    (["serve", "p"], {"plan"}, set()),
    (["train", "--en"], {"--engine"}, {"--rate"}),
    (["train", "--engine", ""], {"fast", "static", "dynamic"}, set()),
    (["train", "--sch"], {"--schedule"}, set()),
    (["train", "--schedule", "zb"], {"zb-h1", "zb-v"}, {"gpipe"}),
    (["serve", "--ra"], {"--rate"}, set()),
    (["serve", "plan", "--sp"], {"--space"}, set()),
    (["serve", "--sp"], set(), {"--space"}),
    (["plan", "--model", "llama-3.1-"], {"llama-3.1-8b", "llama-3.1-405b"}, {"gpt2"}),
    (["train", "--cluster", "h100-s"], {"h100-sxm"}, {"a100-40gb"}),
    (["train", "--framework", "mega"], {"megatron-lm"}, set()),
    (["risk", "--failures", "lla"], {"llama3"}, set()),
    (["show", "mod"], {"models"}, set()),
    (["show", "deepseek-v"], {"deepseek-v3"}, set()),
]


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def commands():
    text = run([PROGRAM, "--help"]).stdout
    return re.findall(r"^  ((?:serve plan|\S+)) +\S", text.split("commands:")[1].split("options:")[0], re.M)


def library(root, tap):
    prefix = next(path.parent.parent for path in root.rglob("bin/maquette"))
    pc = next(root.rglob("maquette.pc")).parent
    tap.result(run([prefix / "bin/maquette", "--version"]).returncode == 0, "the program runs")
    theirs, ours = {p.name for p in (prefix / "include/maquette").glob("*.h")}, {p.name for p in (ROOT / "include/maquette").glob("*.h")}
    tap.result(theirs == ours, "headers", str(theirs ^ ours) if theirs != ours else "")
    if not shutil.which("pkg-config") or not shutil.which("cc"):
        tap.skip("a program of somebody else", "there is no pkg-config or no cc")
        return
    env = {**os.environ, "PKG_CONFIG_PATH": str(pc), "PKG_CONFIG_SYSROOT_DIR": str(root)}
    flags = run(["pkg-config", "--cflags", "--libs", "maquette"], env=env)
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder) / "user.c", pathlib.Path(folder) / "user"
        source.write_text(USER, encoding="utf-8")
        built = run(["cc", "-o", program, source, *flags.stdout.split()])
        said = run([program], env={**os.environ, "LD_LIBRARY_PATH": str(pc.parent)}) if built.returncode == 0 else built
    if built.returncode != 0 and re.search(r"undefined reference to `__(asan|tsan)_init", built.stderr):
        tap.skip("a program of somebody else, by pkg-config", "the library is built under a sanitizer")
        return
    tap.result(said.returncode == 0 and said.stdout.endswith(" s\n"), "a program of somebody else, by pkg-config", flags.stderr + built.stderr + said.stderr)


def manuals(root, tap):
    pages = {path.stem: path for path in root.rglob("man1/*.1")}
    wanted = {"maquette", *("maquette-" + name.replace(" ", "-") for name in commands())}
    tap.result(set(pages) == wanted, "a page for each command", str(set(pages) ^ wanted) if set(pages) != wanted else "")
    for name in ("train", "serve plan"):
        text = pages["maquette-" + name.replace(" ", "-")].read_text(encoding="utf-8").replace("\\-", "-")
        options = re.findall(r"^  (--[a-z0-9-]+)", run([PROGRAM, *name.split(), "--help-all"]).stdout, re.M)
        left = [option for option in options if f"\\fB{option}\\fR" not in text]
        tap.result(len(options) > 20 and not left, f"options of {name}", " ".join(left))
    if not shutil.which("groff"):
        tap.skip("groff", "it is not installed")
        return
    said = "".join(run(["groff", "-man", "-ww", "-z", page]).stderr for page in pages.values())
    tap.result(not said, "groff has nothing to say", said)


def by_bash(script, words):
    line = " ".join(f"'{word}'" for word in ["maquette", *words])
    return run(["bash", "-c", f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; _maquette; printf '%s\\n' \"${{COMPREPLY[@]}}\""])


def by_fish(script, words):
    return run(["fish", "-N", "-c", f"source {script}; complete -C 'maquette {' '.join(words)}'"])


def completions(root, tap):
    scripts = {"bash": (next(root.rglob("completions/maquette")), by_bash), "fish": (next(root.rglob("maquette.fish")), by_fish),
               "zsh": (next(root.rglob("_maquette")), None)}
    for shell, (script, ask) in scripts.items():
        if not shutil.which(shell):
            tap.skip(shell, "it is not installed")
            continue
        said = run([shell, "-n", script])
        tap.result(said.returncode == 0 and not said.stderr, f"{shell} reads it", said.stderr)
        for words, come, stay in COMPLETE if ask else ():
            answer = ask(script, words)
            got = {line.split("\t")[0] for line in answer.stdout.splitlines()}
            good = come <= got and not stay & got and not answer.stderr
            tap.result(good, f"{shell}: {' '.join(words)}", "" if good else f"{sorted(got)[:20]} {answer.stderr}")
    text = scripts["zsh"][0].read_text(encoding="utf-8")
    tap.result(all(f"'*--{name}=" in text for name in ("tp", "engine", "rate", "slo")) and "(fast static dynamic)" in text, "zsh: options")


def main():
    tap = Tap()
    if not shutil.which("meson"):
        tap.skip("meson install", "there is no meson")
        return tap.done()
    with tempfile.TemporaryDirectory() as folder:
        done = run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", folder])
        if "does not exist" in done.stdout + done.stderr or "not found" in done.stdout + done.stderr:
            tap.skip("meson install", "not everything is built yet")
            return tap.done()
        tap.result(done.returncode == 0, "meson install", done.stdout[-2000:] + done.stderr[-2000:])
        if done.returncode == 0:
            for check in (library, manuals, completions):
                check(pathlib.Path(folder), tap)
    return tap.done()


if __name__ == "__main__":
    sys.exit(main())
