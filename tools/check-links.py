#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pages, comments and scripts point at is there.

Reads the pages (README.md and the others of the root, docs/), the C sources, and the scripts, build files and catalogue, and prints as
file:line: text
- a relative link of a page to a file, or to a heading, that is not there; a page of docs/ that docs/README.md does not link to;
- a path of this tree (`src/...`, `docs/...`, ...) that is not there, in backquotes on a page, in a comment of C, anywhere in a script;
- a file of C that is named with its folder (from the root, from src/ or include/) or without (record.h), and is in no folder of the tree.
Stars are patterns, {a,b} alternatives, and NAME or <name> stands for anything. Exit status 1 when something is found. `--self-test`
checks the checker.
"""
import itertools
import pathlib
import re
import sys
import tempfile

TOPS = ("src", "include", "shim", "tools", "data", "tests", "docs", "bench", "examples")
CODE = ("src", "include", "shim", "tests", "bench", "tools")

# Files of other projects that pages and comments name, as they are written there.
FOREIGN = {
    # NCCL
    "src/channel.cc", "src/enqueue.cc", "src/graph/paths.cc", "src/graph/topo.h", "src/graph/tuning.cc", "src/include/alloc.h",
    "src/include/device.h", "src/init.cc", "src/transport/p2p.cc",
    # Megatron-LM, Megatron-Bridge, PyTorch, AMP
    "examples/sc21", "fused_kernels/scaled_masked_softmax.h", "src/megatron/bridge/perf_recipes", "src/megatron/bridge/recipes",
    "tools/autograd/derivatives.yaml", "BinaryInternal.h", "src/het_cluster.py", "examples/ds_pretrain_transgan_pipe.sh",
    # Chakra, TraceLens
    "src/converter/pytorch_node.py", "src/feeder/et_feeder.cpp", "tests/traces/mi300/resnet_act_checkpoint.json.gz",
    # CUDA, zlib; llm.c is a program
    "library_types.h", "nvToolsExt.h", "nvtxDetail/nvtxTypes.h", "zlib.h", "llm.c",
    # ROCm's and SGLang's documentation
    "docs/conceptual/gpu-arch/mi250.md", "docs/advanced_features/server_arguments.md",
    # the measurements, which lie beside the repository
    "data/measured/training.csv", "data/models.csv",
    # a wing to come
    "src/serve",
}
# Speaks of files as they were: only its links are looked at.
PAST = {"CHANGELOG.md"}
# Their examples are no files.
UNREAD = {"tools/check-links.py", "tools/check-layers.py"}

LINK = re.compile(r"\[[^\]\[]*\]\(([^()\s]+)\)")
HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*\s*$")
FENCE = re.compile(r"^\s*(```|~~~)")
QUOTED = re.compile(r"`([^`]+)`")
OUTPUT = re.compile(r"output: '([\w.-]+)'")
WORD = r"[\w.*{},<>+@-]+"
PATH = re.compile(rf"(?<![\w/.$}}-])(?:{'|'.join(TOPS)})/(?:{WORD}/)*(?:{WORD})?")
C_FILE = re.compile(r"(?<![\w/.$*{}-])(?:[\w{},*-]+/)*[\w*-]+\.[ch]\b(?![\w/])(?!\.\w)")
PAGE = re.compile(r"(?<![\w/])docs/[\w.-]+\.md(?:#[\w-]+)?")
COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|/\*.*?\*/|//[^\n]*', re.DOTALL)


def slug(heading):
    """The fragment that a heading has where Markdown is shown."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def prose(text):
    """(line number, line) of a page outside of fences."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def fragments(page):
    seen, out = {}, set()
    for _, line in prose(page.read_text(encoding="utf-8")):
        match = HEADING.match(line)
        if match:
            name = slug(match.group(2))
            out.add(name if name not in seen else f"{name}-{seen[name]}")
            seen[name] = seen.get(name, 0) + 1
    return out


def alternatives(path):
    """A path with its braces written out, and a star for what stands for anything."""
    match = re.search(r"\{([^{}]*)\}", path)
    if match:
        return itertools.chain.from_iterable(
            alternatives(path[:match.start()] + a + path[match.end():]) for a in match.group(1).split(","))
    return [re.sub(r"<[^<>]*>|(?<![A-Za-z])[A-Z][A-Z_]+(?![a-z])", "*", path)]


class Tree:
    def __init__(self, root):
        self.root = root
        self.c_names = {p.name for top in CODE for p in (root / top).glob("**/*.[ch]")}
        for top in CODE:  # what the build makes
            for p in (root / top).glob("**/meson.build"):
                self.c_names.update(OUTPUT.findall(p.read_text(encoding="utf-8")))
        self.fragments = {}

    def exists(self, path):
        """A path from the root; patterns have to match something."""
        for one in alternatives(path):
            if (self.root / one).exists() or (one.startswith("bench/") and (self.root / f"{one}.c").exists()):
                continue
            if "*" not in one or not any(self.root.glob(one)):
                return False
        return True

    def c_file(self, path, folder):
        if "/" not in path:
            return path in self.c_names or ("*" in path and any(pathlib.PurePath(n).match(path) for n in self.c_names))
        return any(self.exists(f"{start}{path}") for start in ("", "src/", "include/", f"{folder}/", f"{folder.parent}/"))

    def heading(self, page, fragment):
        if page not in self.fragments:
            self.fragments[page] = fragments(page)
        return fragment in self.fragments[page]

    def link(self, target, page):
        """Why a relative link on `page` leads nowhere; None when it leads somewhere."""
        name, _, fragment = target.partition("#")
        page = (page.parent / name).resolve() if name else page
        if not page.exists():
            return f"{target}: no such file"
        if fragment and page.suffix == ".md" and not self.heading(page, fragment):
            return f"{target}: no such heading"
        return None


def mentions(tree, text, folder):
    """What is named in a text and is not there."""
    for match in PATH.finditer(text):
        path = match.group().rstrip(".,:;-")
        if path not in FOREIGN and not tree.exists(path):
            yield f"{path}: not in the tree"
    for match in C_FILE.finditer(text):
        path = match.group()
        if not path.startswith(tuple(f"{top}/" for top in TOPS)) and path not in FOREIGN and not tree.c_file(path, folder):
            yield f"{path}: a file of no folder of the tree"
    for match in PAGE.finditer(text):
        page, _, fragment = match.group().partition("#")
        if fragment and (tree.root / page).exists() and not tree.heading(tree.root / page, fragment):
            yield f"{match.group()}: no such heading"


def of_page(tree, file, folder, past):
    text = file.read_text(encoding="utf-8")
    for number, line in prose(text):
        bare = QUOTED.sub("", line)
        for match in LINK.finditer(QUOTED.sub("q", line)):
            if not re.match(r"[a-z]+:", match.group(1)):
                why = tree.link(match.group(1), file)
                if why:
                    yield number, why
        if past:
            continue
        for quoted in QUOTED.findall(line):
            for why in mentions(tree, quoted, folder):
                yield number, why
        for match in PAGE.finditer(LINK.sub("", bare)):
            why = tree.link(match.group(), tree.root / "README.md")
            if why:
                yield number, why


def of_c(tree, file, folder):
    text = file.read_text(encoding="utf-8", errors="replace")
    for match in COMMENT.finditer(text):
        is_comment = match.group().startswith("/")
        begin = text.count("\n", 0, match.start()) + 1
        for i, line in enumerate(match.group().split("\n")):
            if is_comment:
                yield from ((begin + i, why) for why in mentions(tree, line, folder))
            else:
                yield from ((begin, f"{page}: not in the tree") for page in PAGE.findall(line) if not tree.exists(page.partition("#")[0]))


def of_script(tree, file):
    for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        for match in PATH.finditer(line):
            path = match.group().rstrip(".,:;-")
            if path not in FOREIGN and not tree.exists(path):
                yield number, f"{path}: not in the tree"


def unreachable(root):
    """Pages of docs/ that its index does not link to."""
    index = root / "docs/README.md"
    if index.exists():
        linked = {target.partition("#")[0] for _, line in prose(index.read_text(encoding="utf-8")) for target in LINK.findall(line)}
        for page in sorted((root / "docs").glob("*.md")):
            if page != index and page.name not in linked:
                yield f"docs/README.md:1: docs/{page.name}: the index does not link to it"


def files_of(root):
    """The files that are read: of the root and its folders, but those that begin with a dot or that a build makes."""
    for path in sorted(root.iterdir()):
        if path.is_file():
            yield path
        elif path.name in TOPS or path.name == ".ci":
            yield from sorted(p for p in path.glob("**/*") if p.is_file())


def is_script(rel):
    if rel.parts[0] in ("tools", ".ci"):
        return True
    return rel.name in ("Makefile", "NOTICE", "meson.build") or (rel.suffix == ".yaml" and rel.parts[0] in ("data", "examples"))


def check(root):
    tree, found = Tree(root), []
    for path in files_of(root):
        rel = path.relative_to(root)
        if str(rel) in UNREAD:
            continue
        if rel.suffix == ".md" and (len(rel.parts) == 1 or rel.parts[0] == "docs"):
            hits = of_page(tree, path, rel.parent, str(rel) in PAST)
        elif rel.suffix in (".c", ".h", ".cu") and rel.parts[0] in CODE:
            hits = of_c(tree, path, rel.parent)
        elif is_script(rel):
            hits = of_script(tree, path)
        else:
            continue
        found += [f"{rel}:{line}: {why}" for line, why in hits]
    return list(dict.fromkeys(found)) + list(unreachable(root))


def self_test():
    cases = {  # file: (text, what is found there)
        "README.md": ("[a](docs/a.md) [b](docs/a.md#one-two-c) [c](docs/none.md) [d](docs/a.md#three) [e](https://x.y/z) `docs/none2.md`\n"
                      "```\n[f](docs/fenced.md)\n```\n`src/base/NAME.c` `src/*/a.c` `data/{a,none3}.yaml` `src/base/a.c` tests/x `src/old/`\n",
                      ["docs/none.md", "docs/a.md#three", "docs/none2.md", "data/{a,none3}.yaml", "src/old/"]),
        "docs/a.md": ("# A\n## One, two: `c`\n[up](../README.md) [here](#a) [none](#b) `base/a.c` `base/none.c` `a.c` `b.c` docs/z.md\n",
                      ["#b", "base/none.c", "b.c", "docs/z.md"]),
        "docs/README.md": ("[a](a.md)\n", ["docs/b.md"]),
        "docs/b.md": ("# B\n", []),
        "CHANGELOG.md": ("`src/gone.c` [a](gone.md)\n", ["gone.md"]),
        "src/base/a.c": ('/* See a.h and base/a.c, not gone.h:\n * base/gone.c (llm.c, made.c). */\n#include "old.h"\n'
                         'char *s = "// no.h, but docs/none.md";\n// tests/none.c\n',
                         ["gone.h", "base/gone.c", "docs/none.md", "tests/none.c"]),
        "src/base/a.h": ("/* docs/a.md#a, docs/a.md#none */\n", ["docs/a.md#none"]),
        "src/base/meson.build": ("custom_target(output: 'made.c', input: 'src/base/none.c')\n", ["src/base/none.c"]),
        "data/a.yaml": ("# docs/a.md; src/graph/tuning.cc; docs/none.md\n", ["docs/none.md"]),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, (text, _) in cases.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        found = {(line.split(":")[0], line.split(": ")[1]) for line in check(root)}
    wanted = {(name, what) for name, (_, whats) in cases.items() for what in whats}
    for name, what in sorted(found ^ wanted):
        print(f"self-test: {name}: {what} {'wrongly reported' if (name, what) in found else 'not reported'}")
    return 0 if found == wanted else 1


def main():
    if "--self-test" in sys.argv[1:]:
        return self_test()
    found = check(pathlib.Path(__file__).resolve().parent.parent)
    for line in found:
        print(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
