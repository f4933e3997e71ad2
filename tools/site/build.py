#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/ as a site, by MkDocs with the theme Material, in BUILD/site; nothing that is shown comes from a network.

usage: build.py PROGRAM [FOLDER]

Navigation is docs/README.md: its questions are the sections, the pages of its tables the entries, so that a page that no question leads to is
an error here. Links to files of the repository that are no pages become their names. MkDocs is strict; afterwards every link, every anchor and every
source of the written pages is looked at, and nothing but links in text may lead out. The picture of the first page is the report of its own
command, taken by headless Chromium where there is one; without it, the plot of docs/accuracy.md.
"""
import html.parser
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "tools/site"
OUTSIDE = ("CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "NOTICE", "LICENSE", "data/on-gpu/h100-sxm/README.md")
LINK = re.compile(r"(!?)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
HIDDEN = {"accuracy.in.md"}  # what accuracy.md is written from


def title_of(path):
    text = path.read_text(encoding="utf-8")
    found = re.search(r"^# (.+)$", text, re.M)
    return found.group(1).strip() if found else path.name


def is_page(path):
    return path.suffix == ".md" and path.parent == ROOT / "docs" and path.name not in HIDDEN


def staged(path, pages):
    """A page's text, its links to what is not on the site as names, its lists and tables as Python-Markdown reads them."""
    def link(found):
        image, text, target = found.groups()
        place, _, anchor = target.partition("#")
        if not place or re.match(r"[a-z]+:", target):
            return found.group(0)
        file = (path.parent / place).resolve()
        if file == ROOT / "README.md":
            text = "Start" if text == place else text
            return f"{image}[{text}]({'../' * len(path.relative_to(ROOT).parent.parts)}index.md)"
        if file not in pages:
            return text
        if text == place and file.suffix == ".md":  # a page by its title
            text = title_of(file)
        if file.suffix != ".md" and not image and file.parent == ROOT:
            return f"[{text}]({place}.md)"
        return f"{image}[{text}]({place}{'#' + anchor if anchor else ''})"

    out, code = [], False
    for line in path.read_text(encoding="utf-8").splitlines():
        code ^= line.lstrip().startswith("```")
        if not code:
            line = LINK.sub(link, line)
            line = re.sub(r"^ {2,3}([-*] )", r"    \1", line)
            line = re.sub(r"`[^`]*`", lambda m: m.group(0).replace(r"\|", "|"), line) if line.startswith("|") else line
        out.append(line)
    return "\n".join(out) + "\n"


def navigation():
    """[(section, [page, ...])], and the pages that no section has."""
    sections, seen = [], {"README.md"} | HIDDEN
    for part in re.split(r"^## ", (ROOT / "docs/README.md").read_text(encoding="utf-8"), flags=re.M)[1:]:
        rows = re.findall(r"^\| (.*?) \|", part, re.M)
        targets = [target for row in rows for _, _, target in LINK.findall(row)]  # a place inside a page is no entry
        names = [t for t in targets if re.fullmatch(r"[a-z0-9.-]+\.md", t) and t not in seen]
        seen |= set(names)
        if names:
            sections.append((part.split("\n")[0].strip(), list(dict.fromkeys(names))))
    return sections, sorted({p.name for p in (ROOT / "docs").glob("*.md")} - seen)


def short(title):
    return re.sub(r"`", "", title)


def write_navigation(stage):
    sections, lost = navigation()
    if lost:
        sys.exit("no question of docs/README.md leads to " + ", ".join(lost))
    lines = ["nav:", "  - Start: index.md", "  - By question: docs/README.md"]
    for section, names in sections:
        lines.append(f'  - "{section}":')
        lines += [f'    - "{short(title_of(ROOT / "docs" / name))}": {"docs/" + name}' for name in names]
    lines += ['  - "The project":']
    lines += [f"    - {(name if name.endswith('.md') else name + '.md')}" for name in OUTSIDE]
    config = (HERE / "mkdocs.yml").read_text(encoding="utf-8")
    (stage / "mkdocs.yml").write_text(f"{config}docs_dir: pages\nsite_dir: site\n" + "\n".join(lines) + "\n", encoding="utf-8")


def picture(program, pages, command):
    """Writes the report, and pictures of it; returns what the first page shows."""
    subprocess.run([program, *shlex.split(command)[1:-1], pages / "step.html"], check=True, capture_output=True)
    browser = shutil.which("chromium")
    if not browser:
        return "![predicted and measured time per step](docs/accuracy-time.svg)"
    for theme in ("light", "dark"):
        with tempfile.TemporaryDirectory() as profile:
            dark = ["--blink-settings=preferredColorScheme=0"] if theme == "dark" else ["--blink-settings=preferredColorScheme=1"]
            subprocess.run([browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}", *dark,
                            "--window-size=1400,1000", "--virtual-time-budget=4000", f"--screenshot={pages / f'step-{theme}.png'}",
                            (pages / "step.html").as_uri()], check=True, capture_output=True, timeout=120)
    return "\n".join(f"[![the report: headline, where the step goes, the pipeline](step-{theme}.png#{theme})](step.html)" for theme in ("light", "dark"))


def stage_pages(program, stage):
    pages = stage / "pages"
    kept = {p for p in (ROOT / "docs").rglob("*") if p.is_file() and p.name not in HIDDEN} | {ROOT / name for name in OUTSIDE}
    for path in sorted(kept):
        place = pages / path.relative_to(ROOT)
        place.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            place.write_text(staged(path, kept), encoding="utf-8")
        elif path.parent == ROOT:
            place.with_name(path.name + ".md").write_text(f"# {path.name}\n\n```\n{path.read_text(encoding='utf-8')}```\n", encoding="utf-8")
        else:
            shutil.copyfile(path, place)
    for name in ("site.css", "icon.svg"):
        shutil.copyfile(HERE / name, pages / name)
    text = (HERE / "index.md").read_text(encoding="utf-8")
    command = re.search(r"^```\n(maquette train .*?)\n```", text, re.M | re.S).group(1).replace("\\\n", " ")
    (pages / "index.md").write_text(text.replace("{{PICTURE}}", picture(program, pages, command)), encoding="utf-8")


class Written(html.parser.HTMLParser):
    """Links, anchors and sources of a written page."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.sources = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        elif attrs.get("src"):
            self.sources.append(attrs["src"])
        elif tag == "link" and attrs.get("href") and "canonical" not in attrs.get("rel", ""):
            self.sources.append(attrs["href"])


def check(site):
    """What is wrong with the written pages: links into nothing, sources from elsewhere, pages that no page leads to."""
    pages = {path: Written(path) for path in site.rglob("*.html") if path.name not in ("404.html", "step.html")}
    wrong, reached = [], {site / "index.html"}
    for path, page in pages.items():
        for target in page.links + page.sources:
            url = urllib.parse.urlsplit(target)
            if url.scheme or url.netloc:
                if target in page.sources and url.scheme != "data":
                    wrong.append(f"{path.relative_to(site)} loads {target}")
                continue
            file = (path.parent / urllib.parse.unquote(url.path)).resolve() if url.path else path
            file = file / "index.html" if file.is_dir() else file
            reached.add(file)
            anchor = urllib.parse.unquote(url.fragment)
            if not file.exists():
                wrong.append(f"{path.relative_to(site)}: {target} is not there")
            elif anchor and file in pages and anchor not in pages[file].ids and not anchor.startswith("__"):
                wrong.append(f"{path.relative_to(site)}: {target} has no such anchor")
    wrong += [f"no page leads to {path.relative_to(site)}" for path in pages if path not in reached]
    for style in site.rglob("*.css"):
        wrong += [f"{style.relative_to(site)} loads {url}" for url in re.findall(r"url\([\"']?(https?:[^)\"']+)", style.read_text(encoding="utf-8"))]
    return sorted(set(wrong)), len(pages)


def commit_time():
    """What the site map calls the date of every page: that of the commit, so that the same commit gives the same bytes."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    said = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return given or said.stdout.strip() or "0"


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "build-site").resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    stage_pages(program, folder)
    write_navigation(folder)
    said = subprocess.run(["/usr/bin/python3", "-m", "mkdocs", "build", "--strict", "--quiet", "-f", folder / "mkdocs.yml"],
                          capture_output=True, text=True, check=False, env={**os.environ, "SOURCE_DATE_EPOCH": commit_time()})
    if said.returncode != 0:
        sys.exit(said.stdout + said.stderr)
    wrong, count = check(folder / "site")
    if wrong:
        sys.exit("\n".join(wrong))
    size = sum(p.stat().st_size for p in (folder / "site").rglob("*") if p.is_file()) / 1e6
    print(f"{folder / 'site' / 'index.html'}: {count} pages, {size:.1f} MB; every link and anchor leads somewhere, nothing is loaded from a network")


if __name__ == "__main__":
    main()
