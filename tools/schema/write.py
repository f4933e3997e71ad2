#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes docs/schemas/*.json: what documents of many commands have in common, with the words of docs/json.md.

    tools/schema/write.py [build/maquette]

What is required is what every document has, at its top and in the two levels of maps below it; not in lists, whose items differ, nor of a plan,
whose keys depend on the others. A program that reads documents has to pass over members that it does not know: more may come
without a new number (docs/json.md). tests/test_schema.py holds the schemas against documents; when a member is new, run this and read the
difference.
"""
import json
import pathlib
import re
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from documents import DOCUMENTS, document, prepared  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Maps whose keys are names of things: they have values, not members.
# Parts that several documents have: one definition, of all of them.
SHARED = ("plan", "workload", "cluster")
OPEN = {"origins", "peak_flop_per_s", "sustained_flop_per_s", "of_a_request"}
PAGES = {"train": "json.md", "plan": "json.md", "serve": "json.md", "serve.plan": "json.md", "risk.step": "risk.md", "risk.run": "json.md", "diff": "json.md", "post_training": "post-training.md",
         "error": "json.md"}


def kind_of(value):
    if value is None:
        return "null"
    for kind, type_ in (("boolean", bool), ("integer", int), ("number", float), ("string", str), ("array", list), ("object", dict)):
        if isinstance(value, type_):
            return kind
    raise TypeError(type(value))


def shared_parts(value, found):
    """Collects the parts of a document that are SHARED, by name."""
    if isinstance(value, dict):
        for key, one in value.items():
            if key in SHARED and isinstance(one, dict):
                found[key].append(one)
            shared_parts(one, found)
    elif isinstance(value, list):
        for one in value:
            shared_parts(one, found)


def merged(values, name="", depth=0, of_plan=False):
    """The schema of all values. depth: of maps, so far; more than 2 behind a list."""
    kinds = list(dict.fromkeys(kind_of(value) for value in values))
    if depth > 0 and name in SHARED and "object" in kinds:
        reference = {"$ref": f"#/$defs/{name}"}
        return {"anyOf": [reference, {"type": "null"}]} if "null" in kinds else reference
    if "number" in kinds and "integer" in kinds:
        kinds.remove("integer")
    if of_plan and ("boolean" in kinds or "auto" in values):  # a switch: auto, or settled
        kinds = ["boolean", "string"]
    if "number" in kinds and "null" not in kinds:  # one that is not finite
        kinds.append("null")
    schema = {"type": kinds[0] if len(kinds) == 1 else sorted(kinds)}
    maps = [value for value in values if isinstance(value, dict)]
    if maps and name in OPEN:
        schema["additionalProperties"] = merged([one for value in maps for one in value.values()], depth=9)
    elif maps:
        names = list(dict.fromkeys(key for value in maps for key in value))
        schema["properties"] = {key: merged([value[key] for value in maps if key in value], key, depth + 1, name == "plan") for key in names}
        if depth <= 2 and name != "plan" and len(maps) == len(values):
            schema["required"] = [key for key in names if all(key in value for value in maps)]
    items = [one for value in values if isinstance(value, list) for one in value]
    if items:
        schema["items"] = merged(items, depth=9)
    return schema


def descriptions(page, title):
    """Words of the tables in the section of a page that is about a document."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = {}
    sections = re.split(r"^## ", text, flags=re.M)
    section = next((one for one in sections if one.startswith(title)), text if page != "json.md" else "")
    for row in re.findall(r"^\| (`[^|]*) \| ([^|\n]*) \|$", section, flags=re.M):
        for name in re.findall(r"`(\w+)`", row[0]):
            found.setdefault(name, re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", row[1]).replace("`", ""))
    return found


def part_schema(name, values):
    """Of a part: its keys depend on each other, and none is required."""
    keys = list(dict.fromkeys(key for value in values for key in value))
    return {"type": "object", "properties": {key: merged([value[key] for value in values if key in value], key, 9, name == "plan") for key in keys}}


def definitions(schema, parts):
    """Those that a schema refers to."""
    text, found = json.dumps(schema), {}
    for name in SHARED:
        if f"#/$defs/{name}\"" in text:
            found[name] = part_schema(name, parts[name])
    return found


def write(name, documents, parts):
    titles = {one["schema"] for one in documents}
    assert len(titles) == 1, [(c, d.get("diagnostics")) for c, d in zip(DOCUMENTS[name], documents) if d["schema"] == "maquette.error/1"]
    title = titles.pop()
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title,
              "description": f"docs/json.md describes it. Numbers are SI, with the unit at the end of the name. Members may be added.", **merged(documents)}
    said = descriptions(PAGES[name], title)
    for key, member in schema["properties"].items():
        if key in said:
            member["description"] = said[key]
    schema["properties"]["schema"] = {"const": title, "description": "what the document is, and the number of its form"}
    schema["$defs"] = definitions(schema, parts)
    if not schema["$defs"]:
        del schema["$defs"]
    path = ROOT / "docs" / "schemas" / f"{name}.json"
    path.write_text(json.dumps(schema, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{path.relative_to(ROOT)}: {title}, {len(documents)} documents, {len(schema['properties'])} members")


def main():
    program = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build" / "maquette").resolve())
    with tempfile.TemporaryDirectory() as folder:
        db = prepared(program, ROOT, folder)
        documents = {name: [document(program, command, ROOT, db) for command in commands] for name, commands in DOCUMENTS.items()}
        parts = {name: [] for name in SHARED}
        shared_parts(list(documents.values()), parts)
        for name, own in documents.items():
            write(name, own, parts)


if __name__ == "__main__":
    main()
