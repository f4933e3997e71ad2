#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the program of a build folder is made of, as a CycloneDX 1.5 document (JSON).

usage: sbom.py BUILD [--out FILE] [--validate]

Read, not kept here: libraries and their versions from Meson's own list of the build (for modules that it installs, too), what is compiled in
from the packages that it was taken from, data and their licences from NOTICE, where every source stands once. A library that this file has
no licence for is an error, so that a new one is not left out. The date is SOURCE_DATE_EPOCH or that of the commit: the same commit
gives the same bytes. --validate: against the schema of CycloneDX, by the package cyclonedx-python-lib.
"""
import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

ROOT = pathlib.Path(__file__).resolve().parents[2]
# By the name that Meson knows it by: what it is called, its licence, and the module that alone is linked to it.
LIBRARIES = {
    "yaml-0.1": ("libyaml", "MIT", None),
    "jansson": ("jansson", "MIT", None),
    "yajl": ("yajl", "ISC", None),
    "expat": ("expat", "MIT", None),
    "zlib": ("zlib", "Zlib", None),
    "sqlite3": ("SQLite", "blessing", None),
    "libmicrohttpd": ("GNU libmicrohttpd", "LGPL-2.1-or-later", "libmaquette-http.so"),
    "ompi-c": ("Open MPI", "BSD-3-Clause-Open-MPI", "libmaquette-mpi.so"),
}
NEITHER = {"threads", "cmocka", "m", "dl", "python", "python3", "python-3.11"}  # of the C library, of tests, of the Python package
SPDX = {"Apache-2.0", "MIT", "MIT-0", "BSD-3-Clause", "ISC", "CC-BY-SA-4.0"}


def licence(words):
    """[...] of a component; a licence that SPDX has no identifier for by its words in NOTICE."""
    name = words.replace("CC BY-SA 4.0", "CC-BY-SA-4.0").strip()
    return [{"license": {"id": name} if name in SPDX | {row[1] for row in LIBRARIES.values()} else {"name": words.strip()}}]


def component(kind, name, version, words, **more):
    made = {"type": kind, "bom-ref": re.sub(r"[^A-Za-z0-9._-]+", "-", f"{kind}-{name}"), "name": name}
    if version:
        made["version"] = version
    made["licenses"] = licence(words)
    return {**made, **more}


def libraries(build):
    modules = {pathlib.Path(path).name for path in build["installed"]}
    for row in sorted({row["name"]: row for row in build["dependencies"]}.values(), key=lambda row: row["name"]):  # once for each program
        if row["name"] in NEITHER or row["name"].startswith("python"):
            continue
        if row["name"] not in LIBRARIES:
            sys.exit(f"{row['name']} is linked, and sbom.py and NOTICE do not say under which licence it is")
        name, words, module = LIBRARIES[row["name"]]
        if module and module not in modules:
            continue
        made = component("library", name, row["version"], words, scope="optional" if module else "required")
        if module:
            made["description"] = f"loaded by {module} alone"
        yield made
    if "libmaquette-cuda.so" in modules:
        yield component("library", "NVIDIA CUDA Toolkit", "", "NVIDIA CUDA Toolkit EULA", scope="optional",
                        description="cudart and cuBLASLt, cuDNN and NCCL where they are, loaded by libmaquette-cuda.so alone")


def embedded(build):
    options = {row["name"]: row["value"] for row in build["buildoptions"]}
    chart = pathlib.Path(options["chart_js"]).read_bytes()
    version = re.search(rb"Chart\.js v([0-9.]+)", chart[:400])
    yield component("library", "Chart.js", version.group(1).decode() if version else "", "MIT", scope="required",
                    description="compiled in as text, for HTML reports; contains @kurkle/color (MIT)",
                    hashes=[{"alg": "SHA-256", "content": hashlib.sha256(chart).hexdigest()}])
    random123 = subprocess.run(["dpkg-query", "-W", "-f", "${source:Upstream-Version}", "librandom123-dev"], capture_output=True, text=True, check=False)
    yield component("library", "Random123", random123.stdout.strip() if random123.returncode == 0 else "", "BSD-3-Clause", scope="required",
                    description="headers, compiled in")


def data():
    """Sources of figures: the lines of NOTICE that name one and its licence, under the heading that says what was made of it."""
    heading = ""
    for line in (ROOT / "NOTICE").read_text(encoding="utf-8").split("\n6. Libraries")[0].splitlines():
        heading = line[3:] if re.match(r"[1-5]\. ", line) else heading
        found = re.match(r" {0,2}(\S.*?\S) {3,}(\S.*)$", line)
        if heading and found:
            yield component("data", found.group(1), "", found.group(2), scope="required", description=heading)


def document(folder):
    version = re.search(r"version: '([^']+)'", (ROOT / "meson.build").read_text(encoding="utf-8")).group(1)
    commit = subprocess.run([ROOT / "tools/packages/commit.sh"], capture_output=True, text=True, check=True).stdout.strip()
    seconds = os.environ.get("SOURCE_DATE_EPOCH") or subprocess.run(
        ["git", "-C", ROOT, "log", "-1", "--format=%ct"], capture_output=True, text=True, check=True).stdout
    build = json.loads(subprocess.run(["meson", "introspect", "--dependencies", "--installed", "--buildoptions", folder],
                                      capture_output=True, check=True).stdout)
    parts = [*libraries(build), *embedded(build), *data()]
    main = component("application", "maquette", version, "Apache-2.0", properties=[{"name": "commit", "value": commit}])
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.5.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, f"maquette {version} {commit} {json.dumps(parts)}")),
        "version": 1,
        "metadata": {"timestamp": datetime.datetime.fromtimestamp(int(seconds), datetime.timezone.utc).isoformat(), "component": main},
        "components": parts,
        "dependencies": [{"ref": main["bom-ref"], "dependsOn": [part["bom-ref"] for part in parts]},
                         *({"ref": part["bom-ref"]} for part in parts)],
    }


def validate(text):
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator
    wrong = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
    if wrong:
        sys.exit(f"not what CycloneDX 1.5 allows: {str(wrong)[-400:]}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--out")
    parser.add_argument("--validate", action="store_true")
    args = parser.parse_args()
    text = json.dumps(document(args.build), indent=2) + "\n"
    if args.validate:
        validate(text)
    if args.out:
        pathlib.Path(args.out).write_text(text, encoding="utf-8")
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
