#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds vision towers against the transformers library: parameters of small ones of random sizes, and tokens of images of random sizes.

usage: vision.py [--python PYTHON] [--images-python PYTHON] [--build FOLDER] [--count N] [--seed S] [--write]

PYTHON (or MAQ_TRANSFORMERS_PYTHON) has torch, torchvision and transformers; SKIPPED with the reason where there is none. Models are made on the meta device, with text
models of a layer; of image processors the functions that count are asked, at the sizes that published models have. --write puts configurations, counts and images
into tests/data/vision_truth.txt, which tests/test_model_vision.c reads without either.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TABLE = HERE.parent.parent / "tests/data/vision_truth.txt"
HEAD = """# Vision towers of small models of random sizes, as transformers {version} counts them; written by tools/model-truth/vision.py --write.
# tower: parameters of tower and projector, config.json.   image: rule, width, height, tokens with marks, patches.
"""


def text(r, kind):
    heads = r.choice([2, 4])
    hidden = heads * r.choice([8, 16])
    keys = {"model_type": kind, "hidden_size": hidden, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": heads,
            "num_key_value_heads": heads, "vocab_size": 128, "max_position_embeddings": 64}
    if kind == "llama4_text":
        keys.update(num_local_experts=2, intermediate_size_mlp=32, head_dim=16)
    if kind in ("gemma3_text", "qwen3", "mistral"):
        keys["head_dim"] = 8
    if kind in ("qwen3_vl_text", "qwen3_5_text"):
        keys["head_dim"] = 16
    if kind == "qwen3_5_text":
        keys.update(linear_num_value_heads=2, linear_num_key_heads=2, linear_value_head_dim=8, linear_key_head_dim=8)
    return keys


def vit(r, kind):
    heads, patch = r.choice([2, 4]), r.choice([4, 8, 14])
    return {"model_type": kind, "hidden_size": heads * r.choice([8, 12]), "intermediate_size": 2 * r.randint(8, 40), "num_hidden_layers": r.randint(2, 5),
            "num_attention_heads": heads, "patch_size": patch, "image_size": patch * 2 * r.randint(2, 5), "num_channels": r.choice([1, 3])}


def llava(r):
    keys = {"model_type": "llava", "text_config": text(r, "llama"), "vision_config": vit(r, r.choice(["clip_vision_model", "siglip_vision_model"])),
            "vision_feature_layer": r.choice([-1, -2, [-1, -2]]), "multimodal_projector_bias": r.random() < 0.5}
    if keys["vision_config"]["model_type"] == "siglip_vision_model" and r.random() < 0.5:
        keys["vision_config"]["vision_use_head"] = False
    return keys


def gemma3(r):
    tower = vit(r, "siglip_vision_model")
    tower["vision_use_head"] = r.random() < 0.5
    side = tower["image_size"] // tower["patch_size"]
    return {"model_type": "gemma3", "text_config": text(r, "gemma3_text"), "vision_config": tower, "mm_tokens_per_image": (side // 2) ** 2}


def pixtral(r):
    outer = r.choice(["llava", "mistral3"])
    keys = {"model_type": outer, "text_config": text(r, "mistral"), "vision_config": vit(r, "pixtral"), "multimodal_projector_bias": r.random() < 0.5,
            "vision_feature_layer": -1}
    if outer == "mistral3":
        keys["spatial_merge_size"] = r.choice([1, 2, 3])
    return keys


def llama4(r):
    tower = vit(r, "llama4_vision_model")
    tower["intermediate_size"] = 4 * tower["hidden_size"]
    out = 8 * r.randint(2, 6)
    tower.update(projector_input_dim=out, projector_output_dim=out, vision_output_dim=out, pixel_shuffle_ratio=0.5)
    return {"model_type": "llama4", "text_config": text(r, "llama4_text"), "vision_config": tower}


def internvl(r):
    tower = vit(r, "internvl_vision")
    tower.update(norm_type=r.choice(["layer_norm", "rms_norm"]), use_mask_token=r.random() < 0.5, use_mean_pooling=r.random() < 0.5,
                 attention_bias=r.random() < 0.5, use_qk_norm=r.random() < 0.5, use_absolute_position_embeddings=r.random() < 0.7)
    return {"model_type": "internvl", "text_config": text(r, "qwen2"), "vision_config": tower, "downsample_ratio": 0.5}


def qwen(r, outer, inner):
    heads = r.choice([2, 4])
    tower = {"model_type": outer, "depth": r.randint(2, 5), "num_heads": heads, "patch_size": r.choice([4, 8]), "spatial_merge_size": r.choice([1, 2]),
             "temporal_patch_size": r.choice([1, 2]), "in_channels": 3}
    words = text(r, inner)
    width = heads * r.choice([8, 12])
    if outer == "qwen2_vl":
        tower.update(embed_dim=width, hidden_size=words["hidden_size"], mlp_ratio=r.choice([2, 4]))
    else:
        tower.update(hidden_size=width, intermediate_size=2 * r.randint(8, 40), out_hidden_size=words["hidden_size"])
    if outer == "qwen2_5_vl":
        tower.update(window_size=4 * tower["patch_size"], fullatt_block_indexes=[1])
    if outer in ("qwen3_vl", "qwen3_5"):
        tower["num_position_embeddings"] = r.randint(4, 12) ** 2
    if outer == "qwen3_vl":
        tower["deepstack_visual_indexes"] = sorted(r.sample(range(tower["depth"]), r.randint(0, 2)))
    return {"model_type": outer, "text_config": words, "vision_config": tower}


DRAWS = [llava, gemma3, pixtral, llama4, internvl, lambda r: qwen(r, "qwen2_vl", "qwen2_vl_text"), lambda r: qwen(r, "qwen2_5_vl", "qwen2_5_vl_text"),
         lambda r: qwen(r, "qwen3_vl", "qwen3_vl_text"), lambda r: qwen(r, "qwen3_5", "qwen3_5_text")]


def count(keys):
    import torch
    from transformers import AutoModelForImageTextToText
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    config = CONFIG_MAPPING[keys["model_type"]](**json.loads(json.dumps({k: v for k, v in keys.items() if k != "model_type"})))
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(config)
    parts = ("visual.", "vision_tower.", "vision_model.", "multi_modal_projector.")
    return sum(p.numel() for n, p in model.named_parameters() if any(n.removeprefix("model.").startswith(part) for part in parts))


def image(rule, width, height):
    """(tokens with marks, patches) of an image."""
    import torch
    from transformers.models.got_ocr2.image_processing_got_ocr2 import get_optimal_tiled_canvas
    from transformers.models.llama4 import image_processing_llama4 as llama
    from transformers.models.pixtral.image_processing_pixtral import get_resize_output_image_size
    from transformers.models.qwen2_vl.image_processing_qwen2_vl import smart_resize
    import numpy

    if rule in ("qwen2", "qwen3"):
        patch, bounds = (14, (3136, 12845056)) if rule == "qwen2" else (16, (65536, 16777216))
        high, wide = smart_resize(height, width, 2 * patch, *bounds)
        patches = high // patch * (wide // patch)
        return patches // 4, patches
    if rule in ("pixtral", "mistral3"):
        patch, longest = (16, 1024) if rule == "pixtral" else (28, 1540)
        high, wide = get_resize_output_image_size(numpy.broadcast_to(numpy.uint8(0), (height, width, 3)), (longest, longest), (patch, patch))
        rows, columns = high // patch, wide // patch
        return rows * (columns + 1), rows * columns * (1 if rule == "pixtral" else 4)
    if rule == "llama4":
        from transformers.image_utils import SizeDict
        from transformers.models.llama4.processing_llama4 import Llama4Processor

        grids = torch.tensor(llama.find_supported_resolutions(16, SizeDict(height=336, width=336)))
        high, wide = (int(x) // 336 for x in llama.get_best_fit((height, width), grids))
        shown = Llama4Processor._prompt_split_image(None, (high, wide), 144)
        tiles = high * wide + (high * wide > 1)
        return shown.count("<|"), tiles * 577
    columns, rows = get_optimal_tiled_canvas((height, width), (448, 448), 1, 12)
    tiles = columns * rows + (columns * rows > 1)
    return 2 + 256 * tiles, tiles * 1025


RULES = ["qwen2", "qwen3", "pixtral", "mistral3", "llama4", "internvl"]


def ask(seed, number, what):
    import transformers

    print(json.dumps({"transformers": transformers.__version__}))
    for n, draw in enumerate(DRAWS if what == "towers" else []):
        r = random.Random(f"{seed} {n}")
        for _ in range(number):
            keys = draw(r)
            print(json.dumps({"keys": keys, "parameters": count(keys)}))
    for rule in RULES if what == "images" else []:
        r = random.Random(f"{seed} {rule}")
        for k in range(4 * number):
            width, height = (r.randint(32, 4000), r.randint(32, 4000)) if k % 3 else (r.choice([224, 336, 448, 672, 896, 1024, 1344]),) * 2
            tokens, patches = image(rule, width, height)
            print(json.dumps({"rule": rule, "width": width, "height": height, "tokens": tokens, "patches": patches}))


def main():
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--python", default=os.environ.get("MAQ_TRANSFORMERS_PYTHON", sys.executable))
    args.add_argument("--images-python", help="another one for images, which need torchvision")
    args.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build")
    args.add_argument("--count", type=int, default=8)
    args.add_argument("--seed", type=int, default=1)
    args.add_argument("--asked", nargs="*", default=[], help="answers of --ask, instead of asking")
    args.add_argument("--ask", choices=["towers", "images"], help="only print what the library says of them")
    args.add_argument("--write", action="store_true")
    a = args.parse_args()
    if a.ask:
        ask(a.seed, a.count, a.ask)
        return 0
    rows = [json.loads(line) for path in a.asked for line in open(path, encoding="utf-8") if line.startswith("{")]
    head, rows = rows[0] if rows else {}, [row for row in rows if "transformers" not in row]
    for what, python in [] if rows else [("towers", a.python), ("images", a.images_python or a.python)]:
        done = subprocess.run([python, __file__, "--ask", what, "--count", str(a.count), "--seed", str(a.seed)], capture_output=True, text=True,
                              check=False, env=dict(os.environ, TRANSFORMERS_VERBOSITY="error"))
        if done.returncode:
            print(f"SKIPPED {what}: {python} cannot ask: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
            continue
        head, *more = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        rows += more
    if not rows:
        return 0
    wrong, lines = 0, []
    with tempfile.TemporaryDirectory() as folder:
        for n, row in enumerate(rows):
            if "keys" not in row:
                lines.append("image\t{rule}\t{width}\t{height}\t{tokens}\t{patches}\n".format(**row))
                continue
            lines.append(f"tower\t{row['parameters']}\t{json.dumps(row['keys'], separators=(',', ':'))}\n")
            path = pathlib.Path(folder) / f"{n}.json"
            path.write_text(json.dumps(row["keys"]), encoding="utf-8")
            got = subprocess.run([a.build / "maquette", "show", path, "--json"], capture_output=True, text=True, check=False)
            said = json.loads(got.stdout).get("vision", {}).get("parameters") if got.returncode == 0 else got.stderr.strip()
            if said != row["parameters"]:
                wrong += 1
                print(f"{row['keys']['model_type']}: {said}, not {row['parameters']}: {json.dumps(row['keys'])}")
    print(f"{sum('keys' in row for row in rows)} towers, {wrong} wrong")
    if a.write:
        TABLE.write_text(HEAD.format(version=head["transformers"]) + "".join(lines), encoding="utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
