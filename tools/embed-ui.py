#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns the files of src/cli/ui/assets into one C file.

    embed-ui.py OUT.c --page page.html --style ui.css --script ui.js --train train.yaml --serve serve.yaml

The hash of the script, as it stands in the page, goes with it, for the Content-Security-Policy. The same files give the same bytes.
"""
import argparse
import base64
import hashlib
import sys
from pathlib import Path

FILES = {"page": "ui_asset_page", "style": "ui_asset_style", "script": "ui_asset_script", "train": "ui_asset_train_job",
         "serve": "ui_asset_serve_job"}


def as_array(name: str, text: str) -> str:
    data = text.encode("utf-8") + b"\0"
    lines = ["    " + ",".join(str(byte) for byte in data[at:at + 32]) + "," for at in range(0, len(data), 32)]
    return f"static const unsigned char {name}_bytes[] = {{\n" + "\n".join(lines) + f"\n}};\nconst char *const {name} = (const char *){name}_bytes;\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    for key in FILES:
        parser.add_argument("--" + key, required=True)
    args = parser.parse_args()
    texts = {key: Path(getattr(args, key)).read_text(encoding="utf-8").replace("\r\n", "\n") for key in FILES}
    for key, ends in (("style", ("</style",)), ("script", ("</script", "<!--"))):
        for end in ends:
            if end in texts[key].lower():
                print(f"embed-ui.py: the {key} cannot be put into a page: '{end}' is in it", file=sys.stderr)
                return 1
    digest = base64.b64encode(hashlib.sha256(texts["script"].encode("utf-8")).digest()).decode("ascii")
    Path(args.out).write_text(
        "/* Made by tools/embed-ui.py from src/cli/ui/assets: do not edit. */\n" '#include "cli/ui/assets.h"\n\n' +
        "".join(as_array(name, texts[key]) for key, name in FILES.items()) +
        f'const char *const ui_asset_script_hash = "sha256-{digest}";\n', encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
