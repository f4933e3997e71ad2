#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pictures of the documentation: each is what the program says today, and shown by a page.
maq-test: no sanitizer
"""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from cli_case import Tap  # noqa: E402

ROOT = pathlib.Path(os.environ.get("MAQ_SOURCE_ROOT") or pathlib.Path(__file__).resolve().parents[1])
tap = Tap()
shown = {name for page in (ROOT / "docs").glob("*.md") for name in re.findall(r"!\[[^\]]+\]\(pictures/([a-z-]+)\.svg\)", page.read_text(encoding="utf-8"))}
drawn = {path.stem for path in (ROOT / "docs/pictures").glob("*.svg")}
tap.result(shown == drawn and len(drawn) > 0, "a page shows every picture, and no other", f"only shown: {shown - drawn}, only drawn: {drawn - shown}")
made = subprocess.run([sys.executable, ROOT / "tools/pages/pictures.py", os.environ["MAQ"], "--check"], capture_output=True, check=False, text=True)
for name in sorted(drawn):
    tap.result(made.returncode == 0 or name not in made.stderr, f"{name} is what the program says", made.stderr)
tap.result(made.returncode == 0, "all of them can be drawn", made.stderr)
sys.exit(tap.done())
